//! Receiving, as it goes wrong in the field: what of it needs sockets. Each test bears the id of its case.

use std::io::Write as _;
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use iris_core::dialect;
use iris_core::otlp::{Encoding, decode_logs};
use serde_json::{Value, json};

use crate::support::iris::Iris;
use crate::support::spans::{agent_run, request, trace_hex};

const PROTOBUF: &str = "application/x-protobuf";
const WAIT: Duration = Duration::from_secs(30);

fn is_judged(detail: &Value) -> bool {
    detail["trace"]["in_progress"] == false && detail["evals"].as_array().is_some_and(|evals| !evals.is_empty())
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().timeout(WAIT).build().unwrap()
}

/// Scenario: a stock exporter compresses with gzip; another says so and does not.
/// Guarantees: the first is stored once, the second is told so with 400 and stores nothing.
#[tokio::test(flavor = "multi_thread")]
async fn g1_01_compressed_requests_are_taken_and_a_lying_header_is_named() {
    let iris = Iris::start(&[("IRIS__ASSEMBLY__QUIET_MS", "300")]).await;
    let url = format!("http://{}/v1/traces", iris.door("http"));
    let post = |encoding: &str, body: Vec<u8>| {
        client().post(&url).header("content-type", PROTOBUF).header("content-encoding", encoding).body(body).send()
    };
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&request(agent_run(11, 3, "It is 18 C."))).unwrap();
    assert_eq!(post("gzip", gzip.finish().unwrap()).await.unwrap().status(), 200);
    let lying = post("gzip", request(agent_run(12, 3, "It is 18 C.")).to_vec()).await.unwrap();
    assert_eq!(lying.status(), 400);
    assert!(!lying.bytes().await.unwrap().is_empty(), "without a reason");
    let unknown = post("br", vec![1, 2, 3]).await.unwrap().status().as_u16();
    assert!(unknown == 415 || unknown == 400, "{unknown}");
    let detail = iris.until("web", &format!("/api/v1/traces/{}", trace_hex(11)), WAIT, is_judged).await;
    assert_eq!(detail["spans"].as_array().unwrap().len(), 3);
    assert_eq!(iris.get("web", &format!("/api/v1/traces/{}", trace_hex(12))).await.0, 404);
}

/// Scenario: bytes that are no request, as protobuf and as JSON.
/// Guarantees: 400 in the encoding of the request.
#[tokio::test(flavor = "multi_thread")]
async fn g1_02_refusals_come_in_the_encoding_of_the_request() {
    let iris = Iris::start(&[]).await;
    let url = format!("http://{}/v1/traces", iris.door("http"));
    for (kind, body) in [(PROTOBUF, &b"\xff\xfe\x13\x07"[..]), ("application/json", b"{\"resourceSpans\": [")] {
        let answer = client().post(&url).header("content-type", kind).body(body.to_vec()).send().await.unwrap();
        assert_eq!(answer.status(), 400, "{kind}");
        let said = answer.headers()["content-type"].to_str().unwrap().to_owned();
        assert!(said.starts_with(kind), "{kind} was answered in {said}");
    }
}

/// Scenario: the same request four times, as a client does whose deadline passed.
/// Guarantees: success each time, every span once, one evaluation.
#[tokio::test(flavor = "multi_thread")]
async fn g1_05_a_request_sent_again_is_stored_once() {
    let iris = Iris::start(&[("IRIS__ASSEMBLY__QUIET_MS", "300")]).await;
    let body = request(agent_run(13, 4, "It is 18 C."));
    for _ in 0..4 {
        assert_eq!(iris.post("traces", PROTOBUF, body.clone()).await.unwrap().0, 200);
    }
    let detail = iris.until("web", &format!("/api/v1/traces/{}", trace_hex(13)), WAIT, is_judged).await;
    assert_eq!(detail["spans"].as_array().unwrap().len(), 4);
    assert_eq!(detail["evals"].as_array().unwrap().len(), 1);
}

fn record(event: &str, nanos: u64, more: &Value) -> Value {
    let mut attributes = json!({"event.name": event, "session.id": "s-1", "prompt.id": "p-1"});
    attributes.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let attributes: Vec<Value> = attributes
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| json!({"key": key, "value": {"stringValue": value}}))
        .collect();
    json!({"timeUnixNano": nanos.to_string(), "body": {"stringValue": format!("claude_code.{event}")},
        "attributes": attributes, "traceId": "", "spanId": ""})
}

/// Scenario: a coding agent sends log records without ids, the answer in an earlier request than the question.
/// Guarantees: 200, and after a silence one judged trace with question, answer, tool and tokens. Metrics are taken too.
#[tokio::test(flavor = "multi_thread")]
async fn g1_09_log_records_of_a_coding_agent_become_a_trace() {
    let iris = Iris::start(&[("IRIS__ASSEMBLY__IDLE_MS", "700")]).await;
    let service = json!({"attributes": [{"key": "service.name", "value": {"stringValue": "claude-code"}}]});
    let body = |records: &[Value]| {
        let logs = json!({"resourceLogs": [{"resource": service, "scopeLogs": [{"logRecords": records}]}]});
        Bytes::from(logs.to_string())
    };
    let start = 1_772_000_000_000_000_000;
    let later = body(&[
        record(
            "api_request",
            start + 2_000_000_000,
            &json!({"model": "m", "input_tokens": "7", "output_tokens": "3",
            "cost_usd": "0.012", "duration_ms": "900", "request_id": "r-1"}),
        ),
        record(
            "tool_result",
            start + 1_000_000_000,
            &json!({"tool_name": "Bash", "success": "true", "tool_use_id": "t-1",
            "tool_input": "{\"command\": \"cargo test\"}"}),
        ),
        record(
            "assistant_response",
            start + 2_000_000_001,
            &json!({"response": "All 42 tests pass.", "request_id": "r-1"}),
        ),
    ]);
    let first = body(&[record("user_prompt", start, &json!({"prompt": "Do the tests pass?"}))]);
    let log = decode_logs(Encoding::Json, &first).unwrap().remove(0);
    let trace_id = dialect::step_of(&log).unwrap().trace_id;
    for body in [later, first] {
        assert_eq!(iris.post("logs", "application/json", body).await.unwrap().0, 200);
    }
    assert_eq!(iris.post("metrics", PROTOBUF, Bytes::new()).await.unwrap().0, 200);
    let detail = iris.until("web", &format!("/api/v1/traces/{trace_id}"), WAIT, is_judged).await;
    let trace = &detail["trace"];
    assert_eq!((&trace["agent_name"], &trace["input"]), (&json!("claude-code"), &json!("Do the tests pass?")));
    assert_eq!(trace["output"], json!("All 42 tests pass."));
    assert_eq!(trace["tool_calls"][0]["tool_name"], json!("Bash"));
    assert_eq!(trace["token_usage"]["prompt_tokens"], json!(7));
    assert_eq!(detail["spans"].as_array().unwrap().len(), 4);
}

/// Scenario: a trailing slash, a parameter of the media type, and paths that nobody serves.
/// Guarantees: the former are taken; the latter are told at once what is served, and counted.
#[tokio::test(flavor = "multi_thread")]
async fn g1_11_a_wrong_path_is_told_the_right_one() {
    let iris = Iris::start(&[]).await;
    let at = |path: &str| format!("http://{}{path}", iris.door("http"));
    let post = |path: &str, kind: &'static str, body: Bytes| {
        client().post(at(path)).header("content-type", kind).body(body).send()
    };
    let body = request(agent_run(14, 2, "Fine."));
    for (path, kind) in [("/v1/traces/", PROTOBUF), ("/v1/traces", "application/x-protobuf; charset=utf-8")] {
        assert_eq!(post(path, kind, body.clone()).await.unwrap().status(), 200, "{path} {kind}");
    }
    for path in ["/", "/v1/trace"] {
        let answer = post(path, PROTOBUF, body.clone()).await.unwrap();
        assert_eq!(answer.status(), 404, "{path}");
        let said = answer.bytes().await.unwrap();
        assert!(said.windows(10).any(|window| window == b"/v1/traces"), "{path}: {said:?}");
    }
    let (_, metrics) = iris.get("ops", "/metrics").await;
    let counted = metrics
        .lines()
        .find(|line| line.contains("not_accepted") && line.contains("misdirected") && line.contains("http"));
    assert!(counted.is_some_and(|line| !line.ends_with(" 0")), "{counted:?}");
}
