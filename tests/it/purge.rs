//! Many traces are deleted at once.

use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};

use crate::deleted::{files_with, until_gone};
use crate::support::iris::Iris;
use crate::support::spans::{agent_run, request, trace_hex};

/// Runs the program on a home.
fn run(iris: &Iris, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iris-sidecar"));
    command.env_clear().env("IRIS_HOME", iris.home()).args(arguments).output().unwrap()
}

async fn total(iris: &Iris, path: &str) -> Value {
    let (_, page) = iris.get("web", path).await;
    serde_json::from_str::<Value>(&page).unwrap()["total"].clone()
}

async fn purge(iris: &Iris, wanted: &Value) -> (u16, Value) {
    iris.posted("web", "/api/v1/purge", wanted).await
}

/// Scenario: runs of one agent over OTLP, traces of two others by a tool, evaluations with and without a trace; then
/// purges by agent, by age, with wrong arguments; by the command while a sidecar runs, and after it has ended.
/// Guarantees: exactly what was asked for goes, with what judged it; in the end nothing is left in any file, and what came
/// before does not come back.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_purge_names_goes_and_nothing_else() {
    let (one, other, alone) = ("canary-c07b1d5e", "canary-91d2aa60", "canary-5f6e0b7c");
    let mut iris = Iris::start(&[("IRIS__ASSEMBLY__QUIET_MS", "200"), ("IRIS__ASSEMBLY__SETTLE_MS", "300")]).await;
    iris.until("ops", "/readyz?full", Duration::from_secs(30), |state| state["store"]["state"] == "open").await;
    for number in 1..=5 {
        iris.post("traces", "application/x-protobuf", request(agent_run(number, 3, other))).await.unwrap();
    }
    for number in 1..=5 {
        let path = format!("/api/v1/traces/{}", trace_hex(number));
        iris.until("web", &path, Duration::from_secs(30), |detail| detail["trace"]["in_progress"] == false).await;
    }
    for agent in ["first", "second", "second"] {
        iris.tool("log_trace", &json!({"agent_name": agent, "output": one, "evaluate": true})).await;
    }
    iris.tool("evaluate_output", &json!({"output": alone})).await;
    assert_eq!(total(&iris, "/api/v1/traces").await, 8);
    let evaluations = total(&iris, "/api/v1/evaluations").await;

    let (status, wrong) = purge(&iris, &json!({"agent": "second"})).await;
    assert_eq!((status, &wrong["error"]["code"]), (400, &json!("IRIS_INVALID_ARGUMENT")));
    let (_, nothing) = purge(&iris, &json!({"older_than_days": 1})).await;
    assert_eq!((&nothing["traces"], &nothing["more"]), (&json!(0), &json!(false)));
    assert_eq!(total(&iris, "/api/v1/evaluations").await, evaluations);
    let (_, purged) = purge(&iris, &json!({"agent_name": "second"})).await;
    assert_eq!((&purged["traces"], &purged["erasure"]["journal"]["state"]), (&json!(2), &json!("due")));
    assert_eq!(total(&iris, "/api/v1/traces").await, 6);
    assert_eq!(total(&iris, "/api/v1/traces?agent_name=second").await, 0);
    assert!(!files_with(&iris.home(), one).is_empty(), "the first is to stay");

    let refused = run(&iris, &["purge"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && said.contains("POST http://"), "{said}");
    assert_eq!(run(&iris, &["purge", "--older-than-days", "0"]).status.code(), Some(2));
    assert_eq!(run(&iris, &["--purge", "--dashboard"]).status.code(), Some(2));
    assert!(iris.terminate().await.success());
    let done = run(&iris, &["purge", "--agent", "first"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(files_with(&iris.home(), one), Vec::<std::path::PathBuf>::new());
    assert!(!files_with(&iris.home(), other).is_empty(), "the control finds it");
    let done = run(&iris, &["--purge"]);
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success() && said.contains("local: 5 traces deleted"), "{said}");
    for canary in [one, other, alone] {
        until_gone(&iris, canary).await;
    }

    iris.start_again().await;
    iris.until("ops", "/readyz?full", Duration::from_secs(30), |state| state["store"]["state"] == "open").await;
    iris.post("traces", "application/x-protobuf", request(agent_run(9, 2, "after"))).await.unwrap();
    let path = format!("/api/v1/traces/{}", trace_hex(9));
    iris.until("web", &path, Duration::from_secs(30), |detail| detail["trace"]["in_progress"] == false).await;
    assert_eq!(total(&iris, "/api/v1/traces").await, 1);
    assert_eq!(total(&iris, "/api/v1/evaluations").await, 1);
}
