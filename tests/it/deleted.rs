//! A trace that is deleted: in time no byte of it is here.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::collector::Collector;
use crate::support::iris::Iris;
use crate::support::spans::{agent_run, request, trace_hex};

/// Files below a folder that hold a text as it is.
pub fn files_with(folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if std::fs::read(&path).unwrap_or_default().windows(text.len()).any(|part| part == text.as_bytes()) {
            found.push(path);
        }
    }
    found
}

pub async fn until_gone(iris: &Iris, canary: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let found = files_with(&iris.home(), canary);
        if found.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{canary} is still in {found:?}\n{}", iris.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Scenario (field case G8-07): a trace over OTLP and one logged by a tool, each with a canary that the same search finds before; both are
/// deleted, with bytes to go at once; then a late span, a restart, the same export again.
/// Guarantees: the answers say what is so; no file has the canaries; nothing of the traces comes back; another trace stands.
#[tokio::test(flavor = "multi_thread")]
async fn g8_07_no_byte_of_a_deleted_trace_is_left() {
    let (sent, logged) = ("canary-8b1f0c5e7d", "canary-51ac94be02");
    let mut iris = Iris::start(&[("IRIS__ERASE__WITHIN_MINUTES", "0"), ("IRIS__ASSEMBLY__SETTLE_MS", "300")]).await;
    iris.until("ops", "/readyz?full", Duration::from_secs(30), |state| state["store"]["state"] == "open").await;
    for (number, answer) in [(1, sent), (2, "It is 18 C.")] {
        iris.post("traces", "application/x-protobuf", request(agent_run(number, 3, answer))).await.unwrap();
        let path = format!("/api/v1/traces/{}", trace_hex(number));
        iris.until("web", &path, Duration::from_secs(30), |detail| detail["trace"]["in_progress"] == false).await;
    }
    let (_, stored) = iris.tool("log_trace", &json!({"agent_name": logged, "output": logged, "evaluate": true})).await;
    let tool_trace = stored["trace_id"].as_str().unwrap().to_owned();
    for canary in [sent, logged] {
        assert!(!files_with(&iris.home(), canary).is_empty(), "the control finds {canary}");
    }

    for id in [trace_hex(1), tool_trace.clone()] {
        let (status, reply) = iris.tool("delete_trace", &json!({"trace_id": id})).await;
        assert_eq!((status, &reply["deleted"], &reply["erasure"]["downstream"]), (200, &json!(true), &json!("none")));
        let (status, again) = iris.tool("delete_trace", &json!({"trace_id": id})).await;
        assert_eq!((status, &again["deleted"], &again["erasure"]["downstream"]), (200, &json!(false), &json!("none")));
        let (status, _) = iris.get("web", &format!("/api/v1/traces/{id}")).await;
        assert_eq!(status, 404);
    }
    until_gone(&iris, sent).await;
    until_gone(&iris, logged).await;

    iris.kill();
    iris.start_again().await;
    iris.until("ops", "/readyz?full", Duration::from_secs(30), |state| state["store"]["state"] == "open").await;
    iris.post("traces", "application/x-protobuf", request(agent_run(1, 4, "late"))).await.unwrap();
    iris.post("traces", "application/x-protobuf", request(agent_run(3, 2, "after"))).await.unwrap();
    let path = format!("/api/v1/traces/{}", trace_hex(3));
    iris.until("web", &path, Duration::from_secs(30), |detail| detail["trace"]["in_progress"] == false).await;
    let (_, page) = iris.get("web", "/api/v1/traces").await;
    assert_eq!(serde_json::from_str::<Value>(&page).unwrap()["total"], 2);
    assert_eq!(iris.get("web", &format!("/api/v1/traces/{}", trace_hex(1))).await.0, 404);
}

/// Eight random bytes as text, which no file has by chance.
fn random_text(door: &str) -> String {
    let number = std::hash::BuildHasher::hash_one(&std::collections::hash_map::RandomState::new(), door);
    format!("canary-{number:016x}")
}

/// A request of one span as JSON.
fn as_json(number: u64, answer: &str) -> bytes::Bytes {
    let attribute = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let said = json!([{"role": "assistant", "parts": [{"type": "text", "content": answer}]}]).to_string();
    let span = json!({
        "traceId": trace_hex(number), "spanId": format!("{number:016x}"), "name": "invoke_agent json",
        "startTimeUnixNano": "1796083200000000000", "endTimeUnixNano": "1796083201000000000",
        "attributes": [attribute("gen_ai.operation.name", "invoke_agent"), attribute("gen_ai.output.messages", &said)],
    });
    let request = json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]});
    serde_json::to_vec(&request).unwrap().into()
}

/// What a coding agent logs of one prompt, without any trace id.
fn session(name: &str, said: &str) -> bytes::Bytes {
    let attribute = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let record = |event: &str, key: &str, value: &str| {
        json!({"timeUnixNano": "1796083200000000000", "body": {"stringValue": format!("claude_code.{event}")}, "attributes": [
            attribute("event.name", event), attribute("session.id", name), attribute("prompt.id", "p"), attribute(key, value)]})
    };
    let records = [record("user_prompt", "prompt", said), record("api_request", "model", "claude")];
    let request = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]});
    serde_json::to_vec(&request).unwrap().into()
}

/// Sends a text of its own through every door; returns the texts with the trace that each is in.
async fn through_every_door(iris: &Iris, first: u64, word: &str) -> Vec<(String, String)> {
    let mut sent = Vec::new();
    let mut text = |door: &str, trace: String| {
        let text = random_text(door);
        sent.push((text.clone(), trace));
        text
    };
    let run = |number: u64, said: &str| request(agent_run(number, 3, said));
    let said = text("grpc", trace_hex(first));
    iris.export("traces", run(first, &said)).await.unwrap();
    let said = text("http", trace_hex(first + 1));
    assert_eq!(iris.post("traces", "application/x-protobuf", run(first + 1, &said)).await.unwrap().0, 200);
    let said = text("json", trace_hex(first + 2));
    assert_eq!(iris.post("traces", "application/json", as_json(first + 2, &said)).await.unwrap().0, 200);
    // One message of two traces: only one of them will go.
    let said = text("mixed", trace_hex(first + 3));
    let mixed = [agent_run(first + 3, 2, &said), agent_run(first + 40, 2, "It is 18 C.")].concat();
    assert_eq!(iris.post("traces", "application/x-protobuf", request(mixed)).await.unwrap().0, 200);
    let said = random_text("logs");
    assert_eq!(iris.post("logs", "application/json", session(word, &said)).await.unwrap().0, 200);
    let path = format!("/api/v1/traces?session_id={word}");
    let found =
        iris.until("web", &path, Duration::from_secs(30), |page| page["traces"][0]["trace_id"].is_string()).await;
    sent.push((said, found["traces"][0]["trace_id"].as_str().unwrap().to_owned()));
    let (logged, judged) = (random_text("log_trace"), random_text("evaluate_output"));
    let (_, reply) = iris.tool("log_trace", &json!({"agent_name": "a", "input": logged, "output": logged})).await;
    let trace = reply["trace_id"].as_str().unwrap().to_owned();
    let (status, _) = iris.tool("evaluate_output", &json!({"output": judged, "trace_id": trace})).await;
    assert_eq!(status, 200);
    sent.extend([(logged, trace.clone()), (judged, trace)]);
    let session = sent[4].1.clone();
    for (_, trace) in &sent {
        let path = format!("/api/v1/traces/{trace}");
        // A session goes on until nothing came of it for long; it is there all the same.
        let stands = |detail: &Value| {
            detail["trace"]["trace_id"].is_string() && (*trace == session || detail["trace"]["in_progress"] == false)
        };
        iris.until("web", &path, Duration::from_secs(30), stands).await;
    }
    sent
}

/// Scenario: a text of its own comes in by every door while the collector is gone; all of it is deleted, but for what came
/// with it; the database is lost and made again of the journal; the collector comes back.
/// Guarantees: in time no file has any of the texts, without the collector's help, and each deletion says that it is
/// done; the rebuilt store and the collector get none of them, and all of the rest.
#[tokio::test(flavor = "multi_thread")]
async fn what_came_by_any_door_goes_from_every_file_while_the_collector_is_gone() {
    let mut collector = Collector::stopped().await;
    let endpoint = collector.endpoint();
    let mut iris = Iris::start(&[
        ("IRIS__ERASE__WITHIN_MINUTES", "0"),
        ("IRIS__ASSEMBLY__QUIET_MS", "200"),
        ("IRIS__ASSEMBLY__SETTLE_MS", "300"),
        ("IRIS__FORWARD__ENDPOINT", &endpoint),
        ("IRIS__FORWARD__PROTOCOL", "http"),
        ("IRIS__FORWARD__RETRY_INITIAL_MS", "50"),
        ("IRIS__FORWARD__RETRY_MAX_MS", "200"),
    ])
    .await;
    iris.until("ops", "/readyz?full", Duration::from_secs(30), |state| state["store"]["state"] == "open").await;
    let gone = through_every_door(&iris, 100, "s-gone").await;
    let kept = through_every_door(&iris, 200, "s-kept").await;
    for (text, _) in gone.iter().chain(&kept) {
        assert!(!files_with(&iris.home(), text).is_empty(), "the control finds {text}");
    }
    let set_aside = iris.home().join("duckdb").join("set-aside");
    std::fs::create_dir_all(&set_aside).unwrap();
    std::fs::write(set_aside.join("1796083200000-iris.duckdb"), &gone[0].0).unwrap();
    for (_, trace) in &gone {
        let (status, reply) = iris.tool("delete_trace", &json!({"trace_id": trace})).await;
        assert_eq!((status, &reply["erasure"]["journal"]["state"]), (200, &json!("due")));
    }
    for (text, _) in &gone {
        until_gone(&iris, text).await;
    }
    iris.until("ops", "/readyz?full", Duration::from_secs(60), |state| {
        state["erasure"]["journal"]["state"] == "done" && state["erasure"]["store"]["state"] == "done"
    })
    .await;
    let (_, reply) = iris.tool("delete_trace", &json!({"trace_id": gone[0].1})).await;
    assert_eq!((&reply["deleted"], &reply["erasure"]["journal"]["state"]), (&json!(false), &json!("done")));

    iris.kill();
    for file in ["iris.duckdb", "iris.duckdb.wal"] {
        // The log may be empty and gone.
        let _ = std::fs::remove_file(iris.home().join(file));
    }
    iris.start_again().await;
    for (_, trace) in &kept {
        let path = format!("/api/v1/traces/{trace}");
        iris.until("web", &path, Duration::from_secs(60), |detail| detail["trace"]["trace_id"].is_string()).await;
    }
    for (text, trace) in &gone {
        assert_eq!(files_with(&iris.home(), text), Vec::<PathBuf>::new());
        assert_eq!(iris.get("web", &format!("/api/v1/traces/{trace}")).await.0, 404);
    }
    for (text, _) in &kept {
        assert!(!files_with(&iris.home(), text).is_empty(), "{text} is to stay");
    }

    collector.start_again().await;
    let has = |collector: &Collector, text: &str| {
        let bodies = [collector.bodies("traces"), collector.bodies("logs")].concat();
        bodies.iter().any(|body| body.windows(text.len()).any(|part| part == text.as_bytes()))
    };
    let arrived = |collector: &Collector| kept[..5].iter().all(|(text, _)| has(collector, text));
    collector.until("what was kept", arrived).await;
    assert!(gone.iter().all(|(text, _)| !has(&collector, text)));
}
