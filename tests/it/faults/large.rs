//! Traces without end, spans with very many links, and more trace ids than can be remembered.

use std::time::{Duration, Instant};

use bytes::Bytes;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::Link;
use serde_json::Value;

use super::{SOON, all_there, is_long, open, put};
use crate::support::iris::Iris;
use crate::support::proc::peak_kib;
use crate::support::spans::{agent_run, request, span, trace_hex, web_request};

/// What the process may have had resident at most, in KiB.
const RESIDENT_MAX_KIB: u64 = 256 * 1024;

/// Posts until it is taken: a refusal says when to come again, and is no loss.
async fn take(iris: &Iris, body: &Bytes) {
    let until = Instant::now() + SOON;
    while iris.post("traces", "application/x-protobuf", body.clone()).await.map_or(0, |(status, _)| status) != 200 {
        assert!(Instant::now() < until, "never taken\n{}", iris.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn until_read(iris: &Iris) {
    let read = |state: &Value| {
        let lane = &state["pipeline"]["lanes"][0];
        lane["lag"] == 0 && lane["read_through"] == state["journal"][0]["acknowledged"]
    };
    iris.until("ops", "/readyz?full", Duration::from_secs(600), read).await;
}

fn assert_small(iris: &Iris, what: &str) {
    let peak = peak_kib(iris.pid());
    assert!(peak < RESIDENT_MAX_KIB, "{what}: {peak} KiB resident");
}

/// Scenario: one trace gets spans for ever, 60,000 in the long form, while other runs come beside it; then it falls
/// silent.
/// Guarantees: every span of it is stored; it settles and is judged, as partial when there were more spans than are looked
/// at; the others are judged; memory is bounded.
#[tokio::test(flavor = "multi_thread")]
async fn one_trace_without_end_costs_nobody_else_anything() {
    let iris = Iris::start(&[("IRIS__ASSEMBLY__QUIET_MS", "300"), ("IRIS__MCP__SQL", "true")]).await;
    open(&iris).await;
    let (total, each): (u64, u64) = if is_long() { (60_000, 1_000) } else { (6_000, 500) };
    take(&iris, &request(agent_run(1, 2, "It is 18 C."))).await;
    for first in (3..=total).step_by(usize::try_from(each).unwrap()) {
        let spans: Vec<Span> =
            (first..(first + each).min(total + 1)).map(|number| span(1, number, "step", Vec::new())).collect();
        take(&iris, &request(spans)).await;
        assert_eq!(put(&iris, 10 + first).await, 200);
    }
    until_read(&iris).await;
    all_there(&iris, (3..=total).step_by(usize::try_from(each).unwrap()).map(|first| 10 + first), "beside it").await;
    let path = format!("/api/v1/traces/{}", trace_hex(1));
    let detail = iris.until("web", &path, SOON, |detail| detail["trace"]["in_progress"] == false).await;
    assert_ne!(detail["evals"][0]["verdict"]["state"], "", "{detail}");
    let sql = format!("SELECT count(DISTINCT span_id) FROM spans WHERE trace_id = '{}'", trace_hex(1));
    let (_, found) = iris.tool("query_sql", &serde_json::json!({ "sql": sql })).await;
    assert_eq!(found["rows"][0][0], total, "{found}");
    assert_small(&iris, "one trace without end");
}

/// Scenario: a span has 100,000 links.
/// Guarantees: it is taken and stored whole; the trace is judged and shown within the limits of a reply; memory is bounded.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_links_are_one_span() {
    let iris = Iris::start(&[("IRIS__ASSEMBLY__QUIET_MS", "300")]).await;
    open(&iris).await;
    let mut run = agent_run(1, 2, "It is 18 C.");
    run[1].links = (0..100_000_u64)
        .map(|number| Link {
            trace_id: [[7; 8], (number + 1).to_be_bytes()].concat(),
            span_id: (number + 1).to_be_bytes().to_vec(),
            ..Link::default()
        })
        .collect();
    let body = request(run);
    take(&iris, &body).await;
    assert_eq!(put(&iris, 2).await, 200);
    all_there(&iris, [2], "beside it").await;
    let path = format!("/api/v1/traces/{}", trace_hex(1));
    let detail = iris.until("web", &path, SOON, |detail| detail["trace"]["in_progress"] == false).await;
    assert_eq!(detail["spans"].as_array().map(Vec::len), Some(2), "{}", detail["truncated"]);
    assert!(detail.to_string().len() < 9 << 20, "{} bytes of reply", detail.to_string().len());
    // Of one record this large several copies are in hand at once.
    assert!(peak_kib(iris.pid()) < 2 * RESIDENT_MAX_KIB, "{} KiB", peak_kib(iris.pid()));
}

/// Scenario: traces of plain web requests without an agent, each with an id of its own: two million in the long form; then
/// one of an agent.
/// Guarantees: memory is bounded whatever the number of ids; the agent's trace is judged.
#[tokio::test(flavor = "multi_thread")]
async fn any_number_of_trace_ids_fits() {
    let iris = Iris::start(&[("IRIS__ASSEMBLY__QUIET_MS", "200"), ("IRIS__ASSEMBLY__UNDECIDED_MS", "300")]).await;
    open(&iris).await;
    let (total, each): (u64, u64) = if is_long() { (2_000_000, 4_000) } else { (12_000, 1_000) };
    for first in (1_000..1_000 + total).step_by(usize::try_from(each).unwrap()) {
        let spans: Vec<Span> = (first..first + each).map(|trace| web_request(trace).swap_remove(0)).collect();
        take(&iris, &request(spans)).await;
        assert_small(&iris, "very many trace ids");
    }
    assert_eq!(put(&iris, 1).await, 200);
    until_read(&iris).await;
    all_there(&iris, [1], "after them").await;
    assert_small(&iris, "very many trace ids");
}
