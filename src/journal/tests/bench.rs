//! Cost on the real disk, by hand, in `IRIS_BENCH_DIR` or `/var/tmp`:
//! `cargo test --release --workspace --lib journal::tests::bench -- --ignored --nocapture`.

#![allow(clippy::print_stdout)]

use std::time::Instant;

use super::*;

/// CPU seconds of this process so far.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

async fn measure(what: &str, record_bytes: usize, spans: usize, records: usize, concurrency: usize, follow: bool) {
    let home = tempfile::tempdir_in(std::env::var("IRIS_BENCH_DIR").unwrap_or_else(|_| "/var/tmp".into())).unwrap();
    let (journal, _) = Journal::open(home.path(), &Config::default(), false, Arc::new(RealDisk)).unwrap();
    let body = Bytes::from((0..record_bytes).map(|at| (at * 31 % 251) as u8).collect::<Vec<_>>());
    let (cpu, clock) = (cpu_s(), Instant::now());
    let follower = tokio::spawn({
        let journal = journal.clone();
        async move {
            let mut reader = journal.reader(Lane::Traces, Follower::Store, 0);
            let mut left = if follow { records } else { 0 };
            while left > 0 {
                let Read::Entry(entry) = reader.next().await else { return };
                journal.stored(Lane::Traces, entry.seq);
                left -= 1;
            }
        }
    });
    let mut waits = Vec::new();
    for _ in 0..concurrency {
        let (journal, body) = (journal.clone(), body.clone());
        waits.push(tokio::spawn(async move {
            let mut longest = Duration::ZERO;
            for _ in 0..records / concurrency {
                let start = Instant::now();
                let seq = journal.append(Lane::Traces, record(body.clone())).await.unwrap();
                longest = longest.max(start.elapsed());
                if !follow {
                    journal.stored(Lane::Traces, seq);
                }
            }
            longest
        }));
    }
    let mut longest = Duration::ZERO;
    for wait in waits {
        longest = longest.max(wait.await.unwrap());
    }
    follower.await.unwrap();
    let (cpu, wall) = (cpu_s() - cpu, clock.elapsed().as_secs_f64());
    let total = (records * spans) as f64;
    let syncs = status(&journal, Lane::Traces).syncs;
    println!(
        "{what}: {:.2} CPU-s per 1M spans, {:.0} spans/s, {:.0} records/s, {:.1} records a sync, longest {longest:?}",
        cpu / total * 1e6,
        total / wall,
        records as f64 / wall,
        records as f64 / syncs as f64,
    );
    journal.close().await;
}

#[test]
#[ignore = "a measurement"]
fn cost() {
    runtime().block_on(async {
        measure("700 KB x 2 at once", 719_354, 512, 2000, 2, false).await;
        measure("700 KB x 8 at once", 719_354, 512, 2000, 8, false).await;
        measure("700 KB x 2 at once, followed", 719_354, 512, 2000, 2, true).await;
        measure("1.4 KB x 16 at once", 1405, 1, 30_000, 16, false).await;
        measure("1.4 KB x 256 at once", 1405, 1, 204_800, 256, false).await;
        measure("1.4 KB x 256 at once, followed", 1405, 1, 204_800, 256, true).await;
    });
}
