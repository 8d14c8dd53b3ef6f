//! The doors that agents use, as they go wrong in the field. Each test bears the id of its case; those that need no
//! process stand beside the code they test.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::iris::Iris;

const WAIT: Duration = Duration::from_secs(60);

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().timeout(WAIT).build().unwrap()
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn greeting() -> Value {
    json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } })
}

/// Posts to `/mcp`: status, whether it asks for authorisation and how, and the answer.
async fn post(iris: &Iris, headers: &[(&str, &str)], body: String) -> (u16, String, Value) {
    let mut asked = client()
        .post(format!("http://{}/mcp", iris.door("web")))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(body);
    for (name, value) in headers {
        asked = asked.header(*name, *value);
    }
    let answer = asked.send().await.unwrap();
    let status = answer.status().as_u16();
    let challenge = answer.headers().get("www-authenticate").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let challenge = challenge.to_owned();
    (status, challenge, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or_default())
}

/// Scenario: an output larger than one message may be, over HTTP and over standard input; a limit that is none.
/// Guarantees: both name the size and the setting and serve on; the setting is refused at the start by its name.
#[tokio::test(flavor = "multi_thread")]
async fn g5_03_one_limit_holds_at_every_door() {
    let limit = ("IRIS__MCP__MESSAGE_BYTES_MAX", "1048576");
    let mut iris = Iris::start(&[limit]).await;
    let large =
        request(2, "tools/call", &json!({ "name": "evaluate_output", "arguments": { "output": "x".repeat(2 << 20) } }))
            .to_string();
    let (status, _, answer) = post(&iris, &[], large.clone()).await;
    assert_eq!((status, &answer["error"]["code"]), (413, &json!(-32600)));
    let over_http = answer["error"]["message"].as_str().unwrap().to_owned();
    assert!(over_http.contains("1048576 bytes (mcp.message_bytes_max)"), "{over_http}");
    let small = request(3, "tools/call", &json!({ "name": "list_rules", "arguments": {} })).to_string();
    assert!(post(&iris, &[], small.clone()).await.2["result"]["structuredContent"]["built_in"].is_array());

    let mut child = Command::new(env!("CARGO_BIN_EXE_iris-sidecar"))
        .arg("mcp")
        .env_clear()
        .env("IRIS_HOME", iris.home())
        .env(limit.0, limit.1)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut input, mut answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
    let mut told = |message: &str| {
        writeln!(input, "{message}").unwrap();
        serde_json::from_str::<Value>(&answers.next().unwrap().unwrap()).unwrap()
    };
    told(&request(1, "initialize", &greeting()).to_string());
    assert_eq!(told(&large)["error"]["message"], json!(over_http));
    assert!(told(&small)["result"]["structuredContent"]["built_in"].is_array(), "the session goes on");
    drop(input);
    assert!(child.wait().unwrap().success());

    iris.terminate().await;
    iris.set(limit.0, "lots");
    let (status, said) = iris.start_refused().await;
    assert!(!status.success() && said.contains("message_bytes_max"), "{said}");
}

/// Scenario: a client keeps the session id that another server gave it, across a restart; no id; an id at initialize.
/// Guarantees: there are no sessions, so every call is answered, before and after.
#[tokio::test(flavor = "multi_thread")]
async fn g5_06_an_old_session_id_is_no_obstacle() {
    let mut iris = Iris::start(&[]).await;
    let call = request(2, "tools/call", &json!({ "name": "list_rules", "arguments": {} })).to_string();
    for restarted in [false, true] {
        if restarted {
            iris.kill();
            iris.start_again().await;
        }
        for headers in [&[][..], &[("mcp-session-id", "0f3a2b1c-dead-beef-0000-000000000000")]] {
            let (status, _, answer) = post(&iris, headers, request(1, "initialize", &greeting()).to_string()).await;
            assert_eq!((status, &answer["result"]["serverInfo"]["name"]), (200, &json!("iris-sidecar")), "{answer}");
            let (status, _, answer) = post(&iris, headers, call.clone()).await;
            assert_eq!((status, answer["error"].is_null()), (200, true), "{answer}");
            assert!(answer["result"]["structuredContent"]["built_in"].is_array());
        }
    }
}

/// Scenario: standard streams with the loudest log, without a configuration, and with standard error closed.
/// Guarantees: every line of standard output is JSON-RPC, and the process serves to the end.
#[test]
fn g5_07_standard_output_carries_messages_alone() {
    for closed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let shell = if closed { "exec \"$0\" mcp 2>&-" } else { "exec \"$0\" mcp 2>/dev/null" };
        let mut child = Command::new("/bin/sh")
            .args(["-c", shell, env!("CARGO_BIN_EXE_iris-sidecar")])
            .env_clear()
            .env("IRIS_HOME", folder.path().join("home"))
            .env("IRIS_LOG_LEVEL", "debug")
            .env("RUST_LOG", "trace")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let store = json!({ "name": "log_trace", "arguments": { "agent_name": "a", "output": "o", "evaluate": true } });
        for message in [
            request(1, "initialize", &greeting()),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            request(2, "tools/call", &store),
            request(3, "no/such/method", &json!({})),
            request(4, "tools/call", &json!({ "name": "evaluate_output", "arguments": { "output": 7 } })),
        ] {
            writeln!(input, "{message}").unwrap();
        }
        drop(input);
        let mut ids = Vec::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
            ids.extend(message["id"].as_u64());
        }
        ids.sort_unstable();
        assert_eq!(ids, [1, 2, 3, 4], "closed: {closed}");
        assert!(child.wait().unwrap().success(), "closed: {closed}");
    }
}

/// Scenario: a key is set; a client shows none, a wrong one, the right one, and looks for an authorization server.
/// Guarantees: 401 with a plain challenge and a body that names the header; 403; 200 at once; plain 404s elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn g5_09_a_static_key_starts_no_authorization() {
    let iris = Iris::start(&[("IRIS_API_KEY", "right-key-0123456789")]).await;
    let call = request(2, "tools/call", &json!({ "name": "list_rules", "arguments": {} })).to_string();
    let (status, challenge, answer) = post(&iris, &[], call.clone()).await;
    assert_eq!((status, challenge.as_str()), (401, "Bearer"), "{answer}");
    assert!(answer.to_string().contains("Authorization: Bearer"), "{answer}");
    assert_eq!(post(&iris, &[("authorization", "Bearer wrong")], call.clone()).await.0, 403);
    let (status, _, answer) = post(&iris, &[("authorization", "Bearer right-key-0123456789")], call).await;
    assert!(status == 200 && answer["result"]["structuredContent"]["built_in"].is_array(), "{answer}");
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server", "/register"] {
        let (status, text) = iris.get("web", path).await;
        assert!(status == 404 && serde_json::from_str::<Value>(&text).is_ok(), "{path}: {status} {text}");
    }
}
