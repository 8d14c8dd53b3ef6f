//! More than can be taken: said in words that a client obeys, and over when its cause is.

use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::Value;

use crate::support::collector::{Collector, Mood};
use crate::support::iris::Iris;
use crate::support::spans::{agent_run, request, trace_hex};

const WAIT: Duration = Duration::from_secs(30);
/// How long the share of a processor is measured, and how much of one the blocked sidecar may use.
const MEASURED: Duration = Duration::from_secs(2);
const BLOCKED_SHARE_MAX: f64 = 0.5;

fn is_judged(detail: &Value) -> bool {
    detail["trace"]["in_progress"] == false && detail["evals"].as_array().is_some_and(|evals| !evals.is_empty())
}

fn long_run(number: u64) -> Bytes {
    request(agent_run(number, 2, &format!("Run {number}. {}", "It is 18 C in the harbour. ".repeat(600))))
}

/// Sends runs by both doors in turn until each has refused one; returns the one refused last, and checks what the
/// refusals say.
async fn flood(iris: &Iris) -> (u64, Bytes) {
    let client = reqwest::Client::builder().no_proxy().timeout(WAIT).build().unwrap();
    let url = format!("http://{}/v1/traces", iris.door("http"));
    let (mut by_http, mut by_grpc, deadline) = (false, false, Instant::now() + WAIT);
    for number in 100.. {
        assert!(Instant::now() < deadline, "it takes everything: http refused {by_http}, grpc refused {by_grpc}");
        let body = long_run(number);
        if number % 2 == 0 {
            let sent = client.post(&url).header("content-type", "application/x-protobuf").body(body.clone());
            let answer = sent.send().await.unwrap();
            if answer.status() != 200 {
                assert_eq!(answer.status(), 503);
                let wait: u64 = answer.headers()["retry-after"].to_str().unwrap().parse().unwrap();
                assert!((1..=60).contains(&wait), "{wait}");
                by_http = true;
            }
        } else if let Err(status) = iris.export("traces", body.clone()).await {
            assert_eq!(status.code(), tonic::Code::Unavailable, "{status}");
            let says_when = status.details().windows(9).any(|window| window == b"RetryInfo");
            assert!(says_when, "without RetryInfo: {status:?}");
            by_grpc = true;
        }
        if by_http && by_grpc {
            return (number, body);
        }
    }
    unreachable!("numbers do not end")
}

/// Processor time that the sidecar has used so far, in ticks. Field 14 and 15 of `proc_pid_stat(5)`.
fn ticks(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    after_name.split_whitespace().skip(11).take(2).map(|field| field.parse::<f64>().unwrap()).sum()
}

/// Scenario: the collector reads and never answers, and more comes than the journal holds until rows are committed; then
/// the flood ends, and later the collector is back.
/// Guarantees: before it, a trace is judged and stored whatever the collector does; refusals are 503 and UNAVAILABLE and say
/// when to come again; within half a minute what was refused is taken; a blocked sidecar is no busy one; what was taken
/// last arrives once the collector answers.
#[tokio::test(flavor = "multi_thread")]
async fn g1_10_overload_is_refused_retryably_and_is_over_when_its_cause_is() {
    let collector = Collector::start().await;
    collector.set(&Mood::Silence);
    let iris = Iris::start(&[
        ("IRIS__FORWARD__ENDPOINT", &collector.endpoint()),
        ("IRIS__FORWARD__TIMEOUT_MS", "1000"),
        ("IRIS__FORWARD__RETRY_INITIAL_MS", "50"),
        ("IRIS__FORWARD__RETRY_MAX_MS", "500"),
        ("IRIS__JOURNAL__BYTES_MAX", "1048576"),
        ("IRIS__STORE__GROUP_MS", "3000"),
        ("IRIS__STORE__GROUP_ROWS", "1000000"),
        ("IRIS__ASSEMBLY__QUIET_MS", "300"),
    ])
    .await;
    assert_eq!(iris.post("traces", "application/x-protobuf", request(agent_run(1, 3, "18 C."))).await.unwrap().0, 200);
    iris.until("web", &format!("/api/v1/traces/{}", trace_hex(1)), WAIT, is_judged).await;
    assert!(collector.bodies("traces").is_empty());

    let (number, refused) = flood(&iris).await;
    let deadline = Instant::now() + WAIT;
    while iris.post("traces", "application/x-protobuf", refused.clone()).await.unwrap().0 != 200 {
        assert!(Instant::now() < deadline, "it does not recover:\n{}", iris.log());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    iris.until("web", &format!("/api/v1/traces/{}", trace_hex(number)), WAIT, is_judged).await;

    let before = ticks(iris.pid());
    tokio::time::sleep(MEASURED).await;
    let share = (ticks(iris.pid()) - before) / 100.0 / MEASURED.as_secs_f64();
    assert!(share < BLOCKED_SHARE_MAX, "{share:.2} of a processor while the collector is silent");

    collector.set_calm();
    collector.until("what was taken last", |collector| collector.bodies("traces").contains(&refused)).await;
}
