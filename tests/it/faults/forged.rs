//! Spans that come late, come twice, or are made up to take a verdict back.

use std::time::Duration;

use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::Value;

use super::open;
use crate::support::iris::Iris;
use crate::support::spans::{agent_run, request, span, trace_hex, trace_id};

const LEAK: &str = "Her social security number is 536-22-8716.";
const CLEAN: &str = "I cannot say.";
const SETTLED_MAX: Duration = Duration::from_secs(60);

/// What is sent after the leak was judged, to make it look well.
type Forgery = (&'static str, fn(u64) -> Vec<Span>);

const FORGERIES: &[Forgery] = &[
    ("the same spans again", |trace| agent_run(trace, 2, LEAK)),
    ("the same ids with a clean answer", |trace| agent_run(trace, 2, CLEAN)),
    ("the root alone, clean", |trace| agent_run(trace, 2, CLEAN).drain(..1).collect()),
    ("a clean child that ends later", |trace| {
        let mut late = agent_run(trace, 3, CLEAN).split_off(2);
        late[0].end_time_unix_nano += 60_000_000_000;
        late
    }),
    ("a clean parent above the root", |trace| {
        let mut above = agent_run(trace, 2, CLEAN);
        above.truncate(1);
        above[0].span_id = vec![9; 8];
        above[0].start_time_unix_nano -= 1_000_000_000;
        above[0].end_time_unix_nano += 1_000_000_000;
        let mut root = agent_run(trace, 2, CLEAN);
        root.truncate(1);
        root[0].parent_span_id = vec![9; 8];
        above.extend(root);
        above
    }),
    ("a second root", |trace| {
        let mut second = agent_run(trace, 2, CLEAN);
        for (at, span) in second.iter_mut().enumerate() {
            span.span_id = vec![0x70 + at as u8; 8];
            span.parent_span_id = if at == 0 { Vec::new() } else { vec![0x70; 8] };
        }
        second
    }),
    ("the same ids without any content", |trace| {
        (1..=2).map(|number| span(trace, number, "chat", Vec::new())).collect()
    }),
    ("the same ids at another time", |trace| {
        let mut moved = agent_run(trace, 2, CLEAN);
        for span in &mut moved {
            span.start_time_unix_nano = 1;
            span.end_time_unix_nano = 2;
        }
        moved
    }),
    ("the same ids that end before they begin", |trace| {
        let mut moved = agent_run(trace, 2, CLEAN);
        moved.iter_mut().for_each(|span| span.end_time_unix_nano = 0);
        moved
    }),
    ("a parent that is its own child", |trace| {
        let mut ring = agent_run(trace, 3, CLEAN);
        let (one, two) = (ring[1].span_id.clone(), ring[2].span_id.clone());
        (ring[1].parent_span_id, ring[2].parent_span_id) = (two, one);
        ring
    }),
    ("very many clean spans", |trace| agent_run(trace, 800, CLEAN).split_off(2)),
];

fn is_settled(detail: &Value, version: u64) -> bool {
    detail["trace"]["in_progress"] == false && detail["trace"]["version"].as_u64().is_some_and(|now| now >= version)
}

/// Scenario: a leak is answered and judged; then spans of the same trace are forged in every way that is known, one way a
/// trace; then all of them again, and after a restart once more.
/// Guarantees: no fail from something that was seen becomes anything else; resends add nothing.
#[tokio::test(flavor = "multi_thread")]
async fn no_forged_span_takes_a_fail_back() {
    let mut iris = Iris::start(&[("IRIS__ASSEMBLY__QUIET_MS", "200"), ("IRIS__ASSEMBLY__SETTLE_MS", "200")]).await;
    open(&iris).await;
    let traces: Vec<(u64, &Forgery)> = (1..).zip(FORGERIES).collect();
    let post = async |iris: &Iris, spans: Vec<Span>| {
        let (status, _) = iris.post("traces", "application/x-protobuf", request(spans)).await.unwrap();
        assert_eq!(status, 200);
    };
    for (trace, _) in &traces {
        post(&iris, agent_run(*trace, 2, LEAK)).await;
    }
    for (trace, (what, _)) in &traces {
        let path = format!("/api/v1/traces/{}", trace_hex(*trace));
        let detail = iris.until("web", &path, SETTLED_MAX, |detail| is_settled(detail, 1)).await;
        assert_eq!(detail["evals"][0]["verdict"]["state"], "fail", "before {what}");
    }
    for round in ["at once", "again", "after a restart"] {
        if round == "after a restart" {
            iris.kill();
            iris.start_again().await;
            open(&iris).await;
        }
        for (trace, (_, forge)) in &traces {
            post(&iris, forge(*trace)).await;
        }
        // What comes after them in the journal is judged after them.
        let last = 1000 + round.len() as u64;
        post(&iris, agent_run(last, 2, "It is 18 C.")).await;
        let path = format!("/api/v1/traces/{}", trace_hex(last));
        iris.until("web", &path, SETTLED_MAX, |detail| is_settled(detail, 1)).await;
        for (trace, (what, _)) in &traces {
            let path = format!("/api/v1/traces/{}", trace_hex(*trace));
            let detail = iris.until("web", &path, SETTLED_MAX, |detail| is_settled(detail, 1)).await;
            assert_eq!(
                detail["evals"][0]["verdict"]["state"], "fail",
                "{what}, {round}: {}",
                detail["evals"][0]["verdict"]
            );
            for earlier in detail["evals"].as_array().unwrap() {
                assert_eq!(earlier["verdict"]["state"], "fail", "{what}, {round}");
            }
        }
        let (_, page) = iris.get("web", "/api/v1/traces?verdict=pass").await;
        let page: Value = serde_json::from_str(&page).unwrap();
        let passed = page["traces"].as_array().unwrap().iter().filter_map(|trace| trace["trace_id"].as_str());
        for id in passed {
            assert!(traces.iter().all(|(trace, _)| trace_hex(*trace) != id), "{id} passes, {round}");
        }
    }
    assert_eq!(trace_id(1).len(), 16);
}
