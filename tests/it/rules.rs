//! A deployment's own rules, from the call that deploys one to the trace that it judges.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::iris::Iris;
use crate::support::spans::{agent_run, request, trace_hex};

const WITHIN: Duration = Duration::from_secs(60);
const PROTOBUF: &str = "application/x-protobuf";

/// Calls a tool over MCP's streamable HTTP: what stands in `structuredContent`.
async fn call(iris: &Iris, name: &str, arguments: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": name } });
    message["params"]["arguments"] = arguments;
    let client = reqwest::Client::builder().no_proxy().timeout(WITHIN).build().unwrap();
    let asked = client
        .post(format!("http://{}/mcp", iris.door("web")))
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-11-25")
        .json(&message);
    let text = asked.send().await.unwrap().text().await.unwrap();
    // As one JSON text or as the one event of a stream.
    let body = text.lines().find_map(|line| line.strip_prefix("data:").filter(|data| !data.trim().is_empty()));
    let reply: Value = serde_json::from_str(body.unwrap_or(&text)).unwrap_or_else(|error| panic!("{error}: {text}"));
    reply["result"]["structuredContent"].clone()
}

/// Sends an agent run and waits for its evaluation.
async fn judged(iris: &Iris, trace: u64, answer: &str) -> Value {
    let sent = iris.post("traces", PROTOBUF, request(agent_run(trace, 2, answer))).await.unwrap();
    assert_eq!(sent.0, 200);
    let path = format!("/api/v1/traces/{}", trace_hex(trace));
    let settled = |detail: &Value| {
        detail["trace"]["in_progress"] == false && detail["evals"].as_array().is_some_and(|evals| !evals.is_empty())
    };
    iris.until("web", &path, WITHIN, settled).await["evals"][0].clone()
}

fn result<'a>(evaluation: &'a Value, name: &str) -> Option<&'a Value> {
    evaluation["rule_results"].as_array().unwrap().iter().find(|result| result["ruleName"] == name)
}

/// Scenario: a rule is deployed over MCP while traces come in, disabled, enabled after `kill -9`, and deleted.
/// Guarantees: each next trace over OTLP is judged by what was in force when it settled, and each change is in the log.
#[tokio::test(flavor = "multi_thread")]
async fn a_rule_deployed_over_mcp_judges_the_next_trace() {
    let mut iris = Iris::start(&[("IRIS__ASSEMBLY__QUIET_MS", "300")]).await;
    let answer = "It will be 18 C, guaranteed.";
    assert!(result(&judged(&iris, 1, answer).await, "no guarantees").is_none());

    let rule = json!({
        "name": "no guarantees", "eval_type": "safety", "severity": "critical",
        "definition": { "type": "regex_no_match", "config": { "pattern": "\\bguarantee", "flags": "i" } },
    });
    let deployed = call(&iris, "deploy_rule", rule.clone()).await;
    let id = deployed["rule"]["id"].as_str().unwrap_or_else(|| panic!("{deployed}")).to_owned();
    let again = call(&iris, "deploy_rule", rule).await;
    assert_eq!(again["error"]["code"], "IRIS_DUPLICATE_RULE");
    assert!(again["error"]["message"].as_str().unwrap().contains(&id), "{again}");

    let evaluation = judged(&iris, 2, answer).await;
    let fired = result(&evaluation, "no guarantees").unwrap();
    assert_eq!((&fired["state"], &fired["ruleId"], &fired["origin"]), (&json!("fail"), &json!(id), &json!("custom")));
    assert_eq!(
        fired["evidence"][0],
        json!({ "kind": "span", "source": "output", "start": 17, "end": 26, "label": "pattern" })
    );
    assert_eq!(
        (&evaluation["verdict"]["state"], &evaluation["verdict"]["basis"]),
        (&json!("fail"), &json!("policy_gate"))
    );
    assert_eq!(evaluation["critical_failures"], json!(["no guarantees"]));
    assert_eq!(judged(&iris, 3, "About 18 C.").await["verdict"]["state"], "pass");

    assert_eq!(call(&iris, "delete_rule", json!({ "rule_id": id, "enabled": false })).await["toggled"], true);
    assert!(result(&judged(&iris, 4, answer).await, "no guarantees").is_none(), "off at once");
    iris.kill();
    iris.start_again().await;
    let listed = call(&iris, "list_rules", json!({})).await;
    assert_eq!((&listed["total"], &listed["enabled_count"]), (&json!(1), &json!(0)), "off after a start: {listed}");
    assert!(result(&judged(&iris, 5, answer).await, "no guarantees").is_none());
    assert_eq!(call(&iris, "delete_rule", json!({ "rule_id": id, "enabled": true })).await["enabled"], true);
    let fired = judged(&iris, 6, answer).await;
    assert_eq!(result(&fired, "no guarantees").unwrap()["ruleId"], json!(id), "under the same id");

    assert_eq!(call(&iris, "delete_rule", json!({ "rule_id": id })).await["deleted"], true);
    assert!(result(&judged(&iris, 7, answer).await, "no guarantees").is_none());
    let (_, past) = iris.get("web", &format!("/api/v1/traces/{}", trace_hex(2))).await;
    let past: Value = serde_json::from_str(&past).unwrap();
    assert_eq!(past["evals"][0]["verdict"]["state"], "fail", "past evaluations stay");

    let (status, log) = iris.get("web", "/api/v1/audit").await;
    let log: Value = serde_json::from_str(&log).unwrap();
    let told: Vec<&str> =
        log["entries"].as_array().unwrap().iter().filter_map(|line| line["action"].as_str()).collect();
    assert_eq!((status, told), (200, vec!["rule.delete", "rule.toggle", "rule.toggle", "rule.deploy"]), "{log}");
}

/// Scenario: a rule file that cannot be read lies in the home folder at the start.
/// Guarantees: traces are taken and judged, no verdict passes, the file stays, and the next start after a repair is well.
#[tokio::test(flavor = "multi_thread")]
async fn a_rule_file_that_cannot_be_read_lets_nothing_pass() {
    let mut iris = Iris::prepared(&[("IRIS__ASSEMBLY__QUIET_MS", "300")]);
    let path = iris.home().join("custom-rules.json");
    std::fs::write(&path, "{\"version\": 1, \"rules\": [,]}").unwrap();
    iris.start_again().await;
    let evaluation = judged(&iris, 1, "About 18 C.").await;
    assert_eq!(evaluation["verdict"]["basis"], "critical_unknown", "{}", evaluation["verdict"]);
    assert_eq!(call(&iris, "list_rules", json!({})).await["error"]["code"], "IRIS_INTERNAL_ERROR");
    let rule = json!({ "name": "x", "eval_type": "custom", "definition": { "type": "json_schema" } });
    assert_eq!(call(&iris, "deploy_rule", rule).await["error"]["code"], "IRIS_STORAGE_ERROR");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"version\": 1, \"rules\": [,]}");
    assert!(iris.log().contains("the rule file cannot be read"), "{}", iris.log());

    iris.terminate().await;
    std::fs::remove_file(&path).unwrap();
    iris.start_again().await;
    assert_eq!(judged(&iris, 2, "About 18 C.").await["verdict"]["state"], "pass");
}

/// Guarantees: the HTTP API answers about rules with the statuses it promises, and refuses what it does not take by name.
#[tokio::test(flavor = "multi_thread")]
async fn the_http_api_answers_about_rules() {
    let iris = Iris::start(&[]).await;
    let client = reqwest::Client::builder().no_proxy().timeout(WITHIN).build().unwrap();
    let web = iris.door("web");
    let send = async |method: &str, path: &str, body: Value| {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let asked = client.request(method, format!("http://{web}/api/v1{path}"));
        let asked = if body.is_null() { asked } else { asked.json(&body) };
        let answer = asked.send().await.unwrap();
        let status = answer.status().as_u16();
        (status, serde_json::from_str::<Value>(&answer.text().await.unwrap()).unwrap_or_default())
    };
    // The preview needs the store.
    iris.until("web", "/api/v1/health", WITHIN, |health| health["status"] == "ok").await;
    let definition = json!({ "type": "cost_threshold", "config": { "max_cost": 0.1 } });
    let rule = json!({ "name": "cheap", "evalType": "cost", "severity": "high", "definition": definition });
    let (status, deployed) = send("POST", "/rules/custom", rule.clone()).await;
    assert_eq!(status, 201, "{deployed}");
    let path = format!("/rules/custom/{}", deployed["rule"]["id"].as_str().unwrap());
    let (status, taken) = send("POST", "/rules/custom", rule).await;
    assert_eq!((status, &taken["error"]["code"]), (409, &json!("IRIS_DUPLICATE_RULE")));
    let named = json!({ "name": "not plain", "evalType": "cost", "definition": definition });
    assert_eq!(send("POST", "/rules/custom", named).await.1["error"]["field"], "name");

    let (_, all) = send("GET", "/rules?eval_type=cost", Value::Null).await;
    assert_eq!((&all["total"], all["built_in"].as_array().unwrap().is_empty()), (&json!(1), false));
    let (_, custom) = send("GET", "/rules/custom", Value::Null).await;
    assert_eq!((&custom["rules"][0]["name"], custom.get("built_in")), (&json!("cheap"), None));
    assert!(send("GET", "/rules/builtin", Value::Null).await.1["rules"].as_array().unwrap().len() > 20);
    assert_eq!(send("GET", "/rules?colour=red", Value::Null).await.0, 400);

    let (status, switched) = send("PATCH", &path, json!({ "enabled": false })).await;
    assert_eq!((status, &switched["rule"]["enabled"]), (200, &json!(false)));
    assert_eq!(send("PATCH", &path, json!({ "enabled": "no" })).await.0, 400);
    assert_eq!(send("PATCH", "/rules/custom/rule-ffffffff", json!({ "enabled": true })).await.0, 404);
    assert_eq!(send("DELETE", "/rules/custom/nonsense", Value::Null).await.0, 400);
    assert_eq!((send("DELETE", &path, Value::Null).await.0, send("DELETE", &path, Value::Null).await.0), (204, 404));

    let (status, preview) = send("POST", "/rules/custom/preview", json!({ "definition": definition })).await;
    assert_eq!((status, &preview["tracesEvaluated"]), (200, &json!(0)), "{preview}");
    let slip = json!({ "definition": { "type": "cost_threshold", "config": {} } });
    let (status, rejected) = send("POST", "/rules/custom/preview", slip).await;
    assert_eq!((status, &rejected["error"]), (422, &json!("Rule definition rejected")));
    assert!(rejected["message"].as_str().unwrap().contains("max_cost"));
    assert_eq!(send("POST", "/rules/custom/preview", json!({ "definition": definition, "traces": 3 })).await.0, 400);

    let (status, log) = send("GET", "/audit?limit=2&action=rule.toggle", Value::Null).await;
    assert_eq!((status, &log["total"], &log["entries"][0]["user"]), (200, &json!(1), &json!("dashboard")), "{log}");
    for query in ["limit=0", "limit=x", "action=trace.delete", "since=yesterday", "colour=red"] {
        assert_eq!(send("GET", &format!("/audit?{query}"), Value::Null).await.0, 400, "{query}");
    }
}
