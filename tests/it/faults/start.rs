//! How soon it is there again.

use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, fcntl_lock};
use serde_json::Value;

use super::{all_there, is_long, open};
use crate::support::iris::Iris;
use crate::support::spans::{agent_run, request};

/// What an unoptimised build takes more than the one that is measured in `docs/performance.md`.
const UNOPTIMISED: u32 = if cfg!(debug_assertions) { 12 } else { 1 };
/// Goals of an optimised build with 64 MiB.
const READY_MAX: Duration = Duration::from_secs(1);
const FULL_MAX: Duration = Duration::from_secs(10);
const MIB: usize = 1 << 20;

/// Locks a file for this process as long as the value lives.
fn held(path: &std::path::Path) -> std::fs::File {
    let file = std::fs::File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap();
    fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    file
}

/// Scenario: the database is held by another process while runs come, 64 MiB of them in the long form; the sidecar is
/// killed, the database let go of, and the sidecar started.
/// Guarantees: it acknowledges within a second, whatever the journal holds; within ten all of it is read, as on an
/// optimised build; nothing is lost.
#[expect(clippy::print_stderr, reason = "figures for docs/performance.md")]
#[tokio::test(flavor = "multi_thread")]
async fn ready_in_a_second_whatever_the_journal_holds() {
    let mut iris = Iris::prepared(&[("IRIS__ASSEMBLY__QUIET_MS", "300")]);
    let lock = held(&iris.home().join("iris.duckdb"));
    iris.start_again().await;
    let wanted = if is_long() || !cfg!(debug_assertions) { 64 * MIB } else { 8 * MIB };
    let (mut sent, mut number) = (0, 0);
    while sent < wanted {
        // Eight runs of eight spans a request, about 1.4 KB a span.
        let spans = (0..8).flat_map(|_| {
            number += 1;
            agent_run(number, 8, &format!("Run {number}. {}", "It is 18 C in the harbour. ".repeat(36)))
        });
        let body = request(spans.collect());
        sent += body.len();
        assert_eq!(iris.post("traces", "application/x-protobuf", body).await.unwrap().0, 200);
    }
    iris.kill();
    drop(lock);
    let begun = Instant::now();
    iris.start_again().await;
    let ready = begun.elapsed();
    open(&iris).await;
    let opened = begun.elapsed();
    let read = |state: &Value| {
        let lane = &state["pipeline"]["lanes"][0];
        lane["replaying"] == false && lane["lag"] == 0 && lane["read_through"] == state["journal"][0]["acknowledged"]
    };
    iris.until("ops", "/readyz?full", Duration::from_secs(600), read).await;
    let full = begun.elapsed();
    eprintln!("{} MiB of journal: ready {ready:?}, store open {opened:?}, all read {full:?}", sent / MIB);
    assert!(ready < READY_MAX * UNOPTIMISED.min(3), "ready after {ready:?}");
    assert!(full < FULL_MAX * UNOPTIMISED, "all read after {full:?}");
    for one in (1..=number).step_by(61) {
        let path = format!("/api/v1/traces/{}", crate::support::spans::trace_hex(one));
        let detail = iris
            .until("web", &path, Duration::from_secs(120), |detail| {
                detail["trace"]["in_progress"] == false
                    && detail["evals"].as_array().is_some_and(|evals| evals.len() == 1)
            })
            .await;
        assert_eq!(detail["spans"].as_array().map(Vec::len), Some(8), "run {one}");
    }
    assert_eq!(super::put(&iris, number + 1).await, 200);
    all_there(&iris, [number + 1], "after a start").await;
}
