//! Processes that are killed where it hurts.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::{Random, SOON, is_long, open};
use crate::acknowledged::{SPANS as SPANS_SENT, send};
use crate::support::iris::Iris;
use crate::support::spans::trace_hex;

/// Scenario: a sidecar under load checkpoints all the time and is killed (SIGKILL) at moments of every kind: under load,
/// and again and again while it is still opening.
/// Guarantees: it always opens again, and has every run that was answered with 200 whole, no span of it twice, judged once.
#[tokio::test(flavor = "multi_thread")]
async fn kills_while_it_opens_and_checkpoints_lose_nothing() {
    let mut iris = Iris::prepared(&[
        ("IRIS__ASSEMBLY__QUIET_MS", "200"),
        ("IRIS__STORE__CHECKPOINT_WAL_BYTES", "32768"),
        ("IRIS__STORE__GROUP_MS", "20"),
    ]);
    let rounds = if is_long() { 100 } else { 4 };
    let mut random = Random(42);
    let (numbers, mut acknowledged) = (Arc::new(AtomicU64::new(1)), BTreeSet::new());
    for _ in 0..rounds {
        for _ in 0..3 {
            iris.start_for(Duration::from_millis(random.below(400)));
        }
        iris.start_again().await;
        open(&iris).await;
        let stop = Arc::new(AtomicBool::new(false));
        let url = format!("http://{}/v1/traces", iris.door("http"));
        let target = numbers.load(Ordering::Relaxed) + 30 + random.below(40);
        let sender = tokio::spawn(send(url, Arc::clone(&numbers), Arc::clone(&stop)));
        while numbers.load(Ordering::Relaxed) < target {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        iris.kill();
        stop.store(true, Ordering::Relaxed);
        acknowledged.extend(sender.await.unwrap());
    }
    iris.start_again().await;
    open(&iris).await;
    assert!(acknowledged.len() > 50, "only {} runs were acknowledged", acknowledged.len());
    for number in &acknowledged {
        let path = format!("/api/v1/traces/{}", trace_hex(*number));
        let judged = |detail: &Value| {
            detail["trace"]["in_progress"] == false && detail["evals"].as_array().is_some_and(|evals| !evals.is_empty())
        };
        let detail = iris.until("web", &path, SOON, judged).await;
        let (spans, evals) = (detail["spans"].as_array().unwrap(), detail["evals"].as_array().unwrap());
        let ids: BTreeSet<&str> = spans.iter().filter_map(|span| span["span_id"].as_str()).collect();
        assert_eq!((spans.len() as u64, ids.len() as u64, evals.len()), (SPANS_SENT, SPANS_SENT, 1), "run {number}");
    }
}
