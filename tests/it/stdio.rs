//! MCP on standard input and output, with real processes on one home.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::collector::Collector;
use crate::support::iris::Iris;
use crate::support::spans::{agent_run, request};

const SOON: Duration = Duration::from_secs(60);

fn holder(home: &Path) -> Option<u32> {
    std::fs::read_to_string(home.join("lock")).ok()?.trim().parse().ok()
}

/// Scenario: two clients on one home; the process that holds it is killed, once while it is answering.
/// Guarantees: the other one answers its client's next call from the same store, and the call that was under way gets
/// an error that says to call again; a sidecar started then is told who holds the home.
#[tokio::test(flavor = "multi_thread")]
async fn when_the_holder_of_the_home_is_killed_the_other_client_goes_on() {
    let mut iris = Iris::prepared(&[]);
    let home = iris.home();
    let mut first = Client::greeted(&home, &[]);
    let stored = first.call("log_trace", &json!({ "agent_name": "clerk", "output": "It is 18 C." }));
    let mut second = Client::greeted(&home, &[]);
    let mut third = Client::greeted(&home, &[]);
    assert_eq!(holder(&home), Some(first.child.id()));
    assert_eq!(second.call("get_traces", &json!({}))["total"], 1);

    // Stopped, it takes the call and cannot answer it.
    first.signal(Signal::STOP);
    let id = second.send("tools/call", &json!({ "name": "get_traces", "arguments": {} }));
    // Lines go one after the other: once this one is answered, the call has gone to the holder.
    second.write("hello");
    assert_eq!(second.answer()["error"]["code"], -32700);
    first.kill();
    let lost = second.answer();
    assert_eq!((&lost["id"], &lost["error"]["code"]), (&json!(id), &json!(-32000)), "{lost}");
    assert_eq!(lost["error"]["data"]["retryable"], true, "{lost}");
    for client in [&mut second, &mut third] {
        let found = client.call("get_traces", &json!({}));
        assert_eq!((&found["total"], &found["traces"][0]["trace_id"]), (&json!(1), &stored["trace_id"]), "{found}");
    }
    let now = holder(&home).unwrap();
    assert!(now == second.child.id() || now == third.child.id(), "{now}");

    let (status, said) = iris.start_refused().await;
    assert!(!status.success() && said.contains(&format!("pid {now}")), "{said}");

    // Whoever holds it now leaves as clients do; the last one is answered all the same.
    let (mut leaving, mut last) = if now == second.child.id() { (second, third) } else { (third, second) };
    drop(leaving.input.take());
    assert_eq!(last.call("get_traces", &json!({}))["total"], 1);
    assert!(leaving.child.wait().unwrap().success());
}

/// Scenario: a sidecar that a client is bridged to is killed and started again.
/// Guarantees: the client is answered by the sidecar that came back; its home was not taken from it meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_sidecar_that_comes_back_finds_its_home_and_its_clients() {
    let mut iris = Iris::start(&[]).await;
    let mut client = Client::greeted(&iris.home(), &[]);
    client.call("log_trace", &json!({ "agent_name": "clerk", "output": "It is 18 C." }));
    iris.kill();
    iris.start_again().await;
    assert_eq!(client.call("get_traces", &json!({}))["total"], 1);
    assert_eq!(holder(&iris.home()), Some(iris.pid()));
}

/// Guarantees: alone and bridged alike, what is no message is answered as JSON-RPC says, a message above the limit
/// with the limit and the setting, and the session goes on.
#[test]
fn what_is_no_message_is_answered_and_the_session_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let settings = [("IRIS__MCP__MESSAGE_BYTES_MAX", "65536")];
    let mut alone = Client::greeted(&home, &settings);
    let mut bridged = Client::greeted(&home, &settings);
    for client in [&mut alone, &mut bridged] {
        let long = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": { "name": "evaluate_output", "arguments": { "output": "x".repeat(65536) } } });
        for (line, code) in
            [("hello", -32700), ("{\"jsonrpc\"", -32700), ("[]", -32600), ("{}", -32600), (&*long.to_string(), -32600)]
        {
            client.write(line);
            let answer = client.answer();
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &Value::Null), "{line:.30}: {answer}");
            let told = answer["error"]["message"].as_str().unwrap();
            assert_eq!(told.contains("65536 bytes (mcp.message_bytes_max)"), line.len() > 65536, "{told}");
        }
        let unknown = client.ask("tools/call", &json!({ "name": "no_such_tool" }));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
        assert!(client.call("list_rules", &json!({}))["total"].is_number());
    }
}

/// Guarantees: a client that sends everything at once and closes its side gets every answer, and the process ends well.
#[test]
fn everything_sent_at_once_is_answered_before_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::start(&folder.path().join("home"), &[]);
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    client.send("initialize", &params);
    client.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    client.send("tools/list", &json!({}));
    drop(client.input.take());
    let mut ids = [client.answer()["id"].clone(), client.answer()["id"].clone()];
    ids.sort_by_key(Value::as_u64);
    assert_eq!(ids, [json!(1), json!(2)]);
    assert!(client.child.wait().unwrap().success());
}

/// Scenario: a sidecar with a downstream that is gone is killed with spans unsent; a client works alone on its home,
/// with and without the downstream in its environment; the sidecar and the downstream come back.
/// Guarantees: every message reaches the downstream, and nothing else does.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_sidecar_left_unsent_outlives_a_client_alone() {
    let mut collector = Collector::start().await;
    let endpoint = collector.endpoint();
    let mut iris = Iris::start(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("IRIS__FORWARD__RETRY_INITIAL_MS", "50"),
        ("IRIS__FORWARD__RETRY_MAX_MS", "200"),
    ])
    .await;
    collector.stop().await;
    let sent: Vec<_> = (1..=3).map(|number| request(agent_run(number, 3, "It is 18 C."))).collect();
    for body in &sent {
        assert_eq!(iris.post("traces", "application/x-protobuf", body.clone()).await.unwrap().0, 200);
    }
    let path = "/api/v1/traces";
    iris.until("web", path, SOON, |page| page["total"] == 3).await;
    iris.kill();
    for env in [&[][..], &[("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint)]] {
        let mut client = Client::greeted(&iris.home(), env);
        for _ in 0..3 {
            client.call("log_trace", &json!({ "agent_name": "clerk", "output": "fine" }));
        }
        drop(client.input.take());
        assert!(client.child.wait().unwrap().success());
    }
    collector.start_again().await;
    iris.start_again().await;
    let all = |collector: &Collector| sent.iter().all(|body| collector.bodies("traces").contains(body));
    collector.until("all three", all).await;
    assert!(collector.bodies("traces").iter().all(|body| sent.contains(body)), "something else arrived");
}
