//! What is acknowledged is kept, once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::faults::is_long;
use crate::support::iris::Iris;
use crate::support::spans::{agent_run, request, trace_hex};

/// Kills; `make faults` sets the long form.
const ROUNDS: u64 = 10;
const ROUNDS_LONG: u64 = 100;
const SENDERS: u64 = 4;
pub const SPANS: u64 = 5;

/// Scenario: four senders post agent runs one after the other; the sidecar is killed (SIGKILL) while they do, and
/// started again in the same home; ten times, or a hundred.
/// Guarantees: every run that was answered with 200 is in the store whole, no span of it twice, and judged once.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_or_doubled_by_kill_9() {
    let mut iris = Iris::start(&[("IRIS__ASSEMBLY__QUIET_MS", "300")]).await;
    let numbers = Arc::new(AtomicU64::new(1));
    let mut acknowledged = BTreeSet::new();
    for round in 0..if is_long() { ROUNDS_LONG } else { ROUNDS } {
        let stop = Arc::new(AtomicBool::new(false));
        let url = format!("http://{}/v1/traces", iris.door("http"));
        let senders: Vec<_> =
            (0..SENDERS).map(|_| tokio::spawn(send(url.clone(), Arc::clone(&numbers), Arc::clone(&stop)))).collect();
        // Not luck: the kill may come at any moment, and does at another one each round.
        let target = numbers.load(Ordering::Relaxed) + 40 + round % 10 * 17;
        while numbers.load(Ordering::Relaxed) < target {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        iris.kill();
        stop.store(true, Ordering::Relaxed);
        for sender in senders {
            acknowledged.extend(sender.await.unwrap());
        }
        iris.start_again().await;
    }
    assert!(acknowledged.len() > 200, "only {} runs were acknowledged", acknowledged.len());
    for number in &acknowledged {
        let path = format!("/api/v1/traces/{}", trace_hex(*number));
        let settled = |detail: &Value| {
            detail["trace"]["in_progress"] == false && !detail["evals"].as_array().is_none_or(Vec::is_empty)
        };
        let detail = iris.until("web", &path, Duration::from_secs(180), settled).await;
        let spans = detail["spans"].as_array().unwrap();
        let ids: BTreeSet<&str> = spans.iter().filter_map(|span| span["span_id"].as_str()).collect();
        assert_eq!((spans.len() as u64, ids.len() as u64), (SPANS, SPANS), "trace {number}");
        assert_eq!(
            detail["evals"].as_array().unwrap().len(),
            1,
            "trace {number} was judged twice: {}",
            detail["evals"]
        );
    }
}

/// Posts runs until told to stop or the other side is gone; returns those that were acknowledged.
pub async fn send(url: String, numbers: Arc<AtomicU64>, stop: Arc<AtomicBool>) -> Vec<u64> {
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5)).build().unwrap();
    let mut acknowledged = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        let body = request(agent_run(number, SPANS, "It is 18 C."));
        match client.post(&url).header("content-type", "application/x-protobuf").body(body).send().await {
            Ok(answer) if answer.status() == 200 => acknowledged.push(number),
            _ => {}
        }
    }
    acknowledged
}

/// Scenario: a run is sent, the sidecar is told to stop (SIGTERM) at once, and started again.
/// Guarantees: it exits with 0, and the run is there and judged once.
#[tokio::test(flavor = "multi_thread")]
async fn a_drain_leaves_nothing_behind() {
    let mut iris = Iris::start(&[]).await;
    let (status, _) =
        iris.post("traces", "application/x-protobuf", request(agent_run(7, SPANS, "It is 18 C."))).await.unwrap();
    assert_eq!(status, 200);
    assert!(iris.terminate().await.success());
    iris.start_again().await;
    let path = format!("/api/v1/traces/{}", trace_hex(7));
    let detail = iris
        .until("web", &path, Duration::from_secs(30), |detail| detail["evals"][0]["verdict"]["state"] == "pass")
        .await;
    assert_eq!(detail["evals"].as_array().unwrap().len(), 1);
    assert_eq!(detail["spans"].as_array().unwrap().len() as u64, SPANS);
}

/// Scenario: a leak is answered; later a span of the same trace comes that answers without it.
/// Guarantees: one trace, a new version, and the verdict stays a fail.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_span_reopens_a_trace_and_heals_no_leak() {
    let iris = Iris::start(&[("IRIS__ASSEMBLY__QUIET_MS", "300")]).await;
    let leak = request(agent_run(9, 2, "Her social security number is 536-22-8716."));
    assert_eq!(iris.post("traces", "application/x-protobuf", leak).await.unwrap().0, 200);
    let path = format!("/api/v1/traces/{}", trace_hex(9));
    iris.until("web", &path, Duration::from_secs(20), |detail| {
        detail["trace"]["in_progress"] == false && detail["evals"][0]["verdict"]["state"] == "fail"
    })
    .await;
    let late = request(agent_run(9, 3, "I cannot say.").split_off(2));
    assert_eq!(iris.post("traces", "application/x-protobuf", late).await.unwrap().0, 200);
    let detail = iris
        .until("web", &path, Duration::from_secs(20), |detail| {
            detail["trace"]["in_progress"] == false && detail["trace"]["version"] == 2
        })
        .await;
    assert_eq!(detail["evals"][0]["verdict"]["state"], "fail", "{}", detail["evals"][0]["verdict"]);
    let (_, page) = iris.get("web", "/api/v1/traces").await;
    assert_eq!(serde_json::from_str::<Value>(&page).unwrap()["total"], 1);
}
