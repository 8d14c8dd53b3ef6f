//! A trace that is deleted: in time no byte of it is here.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::iris::Iris;
use crate::support::spans::{agent_run, request, trace_hex};

/// Files below a folder that hold a text as it is.
fn files_with(folder: &Path, text: &str) -> Vec<PathBuf> {
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

async fn until_gone(iris: &Iris, canary: &str) {
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

/// Scenario: a trace over OTLP and one logged by a tool, each with a canary that the same search finds before; both are
/// deleted, with bytes to go at once; then a late span, a restart, the same export again.
/// Guarantees: the answers say what is so; no file has the canaries; nothing of the traces comes back; another trace stands.
#[tokio::test(flavor = "multi_thread")]
async fn no_byte_of_a_deleted_trace_is_left() {
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
        assert_eq!((status, &again["deleted"], &again["erasure"]), (200, &json!(false), &Value::Null));
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
