//! Traces of `log_trace` on their way to a collector of their own.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::collector::Collector;
use crate::support::iris::Iris;

const WITHIN: Duration = Duration::from_secs(60);

/// Scenario: traces with and without steps are stored while the collector is there and while it is not.
/// Guarantees: the collector gets what was stored, as OTLP/JSON, and nothing else; without it the call succeeds all the
/// same, and what was not taken is counted.
#[tokio::test(flavor = "multi_thread")]
async fn stored_traces_are_sent_on_and_nothing_waits_for_it() {
    let mut collector = Collector::start().await;
    let endpoint = format!("{}/v1/traces", collector.endpoint());
    let iris = Iris::start(&[
        ("IRIS_OTEL_ENDPOINT", &endpoint),
        ("IRIS_OTEL_SERVICE_NAME", "agents"),
        ("IRIS_OTEL_TIMEOUT_MS", "2000"),
    ])
    .await;
    iris.until("web", "/api/v1/health", WITHIN, |health| health["status"] == "ok").await;
    let whole =
        json!({ "agent_name": "clerk", "input": "Who?", "output": "Nobody.", "cost_usd": 0.5, "latency_ms": 250 });
    let steps = json!({ "agent_name": "clerk", "spans": [{
        "name": "search", "kind": "TOOL", "status_code": "ERROR", "start_time": "2026-01-02T03:04:05Z", "end_time": "2026-01-02T03:04:06Z",
        "attributes": { "q": ["a", 1, true, null, { "b": 1.5 }] },
        "events": [{ "name": "tried", "timestamp": "2026-01-02T03:04:05Z" }],
    }] });
    let mut ids = Vec::new();
    for logged in [&whole, &steps] {
        let (status, reply) = iris.tool("log_trace", logged).await;
        assert_eq!(status, 200, "{reply}");
        ids.push(reply["trace_id"].as_str().unwrap().to_owned());
    }
    collector.until("both traces", |collector| collector.bodies("traces").len() == 2).await;
    let mut sent: Vec<Value> =
        collector.bodies("traces").iter().map(|body| serde_json::from_slice(body).unwrap()).collect();
    sent.sort_by_key(|request| !request.to_string().contains(&ids[0]));
    let span = |at: usize| sent[at]["resourceSpans"][0]["scopeSpans"][0]["spans"][0].clone();
    assert_eq!((&span(0)["traceId"], &span(0)["name"]), (&json!(ids[0]), &json!("clerk")));
    assert!(
        span(0)["attributes"]
            .as_array()
            .unwrap()
            .contains(&json!({ "key": "iris.output", "value": { "stringValue": "Nobody." } }))
    );
    assert_eq!(
        (&span(1)["traceId"], &span(1)["name"], &span(1)["status"]["code"]),
        (&json!(ids[1]), &json!("search"), &json!(2))
    );
    assert_eq!(span(1)["startTimeUnixNano"], "1767323045000000000");
    let service = &sent[0]["resourceSpans"][0]["resource"]["attributes"][0];
    assert_eq!(service, &json!({ "key": "service.name", "value": { "stringValue": "agents" } }));

    collector.stop().await;
    assert_eq!(iris.tool("log_trace", &whole).await.0, 200);
    let deadline = std::time::Instant::now() + WITHIN;
    while !iris.get("ops", "/metrics").await.1.contains("iris_export_lost_traces_total 1") {
        assert!(std::time::Instant::now() < deadline, "it is not counted");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (_, page) = iris.get("web", "/api/v1/traces").await;
    assert_eq!(serde_json::from_str::<Value>(&page).unwrap()["total"], 3);
}

/// Scenario: a trace is logged by the tool while the collector is away and deleted, another while it is there; with
/// `forward.tool_traces` on.
/// Guarantees: the collector gets the second as OTLP beside what came over OTLP, and nothing of the first.
#[tokio::test(flavor = "multi_thread")]
async fn logged_traces_are_forwarded_when_asked_for() {
    let mut collector = Collector::start().await;
    collector.stop().await;
    let endpoint = collector.endpoint();
    let iris = Iris::start(&[("IRIS__FORWARD__ENDPOINT", &endpoint), ("IRIS__FORWARD__TOOL_TRACES", "true")]).await;
    iris.until("web", "/api/v1/health", WITHIN, |health| health["status"] == "ok").await;
    let log = async |agent: &str| {
        let call = json!({ "agent_name": agent, "output": "Nobody is there.", "spans": [
            { "name": "look it up", "kind": "TOOL", "start_time": "2026-01-02T03:04:05Z", "attributes": { "n": 7 } }] });
        let (status, reply) = iris.tool("log_trace", &call).await;
        assert_eq!(status, 200, "{reply}");
        reply["trace_id"].as_str().unwrap().to_owned()
    };
    let gone = log("forgotten").await;
    let (status, reply) = iris.tool("delete_trace", &json!({ "trace_id": gone })).await;
    assert_eq!(status, 200, "{reply}");
    log("clerk").await;
    collector.start_again().await;
    let holds = |body: &[u8], text: &str| body.windows(text.len()).any(|part| part == text.as_bytes());
    let has = |text: &'static str| {
        move |collector: &Collector| collector.bodies("traces").iter().any(|body| holds(body, text))
    };
    collector.until("the trace", has("look it up")).await;
    assert!(has("clerk")(&collector) && !has("forgotten")(&collector));
}
