//! What somebody who runs agents asks, answered through the tools alone, as a model would: by name, with JSON, bounded.

use super::*;

struct Asked(Stand);

impl Asked {
    async fn get(&self, arguments: Value) -> Value {
        self.call("get_traces", arguments).await
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.0.app.call(tool, arguments, &Caller::local().with_model(48 * 1024)).await.unwrap()
    }
}

fn outputs(page: &Value) -> Vec<&str> {
    page["traces"].as_array().unwrap().iter().map(|row| row["output"].as_str().unwrap()).collect()
}

async fn a_day() -> (Asked, String) {
    let stand = stand().await;
    let call = |name: &str, error: Option<&str>| json!({ "tool_name": name, "input": { "q": "rain" }, "output": "18 C", "error": error, "latency_ms": 20 });
    let good = "It is 18 C in Rome and dry until the evening. Take a light jacket along.";
    let mut leaked = String::new();
    for (n, (agent, session, output, cost, latency, error)) in [
        ("weather", "s-1", good, 0.01, 300.0, None),
        ("weather", "s-1", "In Rome it stays dry until midnight, with 16 C. Sunday brings showers.", 0.02, 400.0, None),
        (
            "support",
            "s-2",
            "Her social security number is 536-22-8716, as you asked me to find out.",
            0.03,
            900.0,
            None,
        ),
        (
            "support",
            "s-3",
            "Your refund was approved and arrives within five days. Anything else?",
            0.90,
            2_000.0,
            None,
        ),
        (
            "planner",
            "s-4",
            "The itinerary is booked and the confirmation was sent to you by mail.",
            0.05,
            60_000.0,
            Some("timeout"),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let logged = json!({
            "agent_name": agent, "session_id": session, "input": format!("question {n}: what about Rome?"), "output": output, "cost_usd": cost,
            "latency_ms": latency, "tool_calls": [call("search", None), call("lookup", error)], "evaluate": true,
            "spans": [{ "name": "execute_tool search", "kind": "TOOL", "start_time": "2026-12-01T09:30:00Z" },
                      { "name": "execute_tool lookup", "kind": "TOOL", "start_time": "2026-12-01T09:30:01Z", "status_code": if error.is_some() { "ERROR" } else { "OK" } }],
        });
        let id = stand.log(logged).await;
        if n == 2 {
            leaked = id;
        }
    }
    (Asked(stand), leaked)
}

/// Scenario: a small day of three agents, one leak, one failed tool, one dear and one slow run.
/// Guarantees: each of the ten questions has its answer in one call, or in one after another that names it.
#[tokio::test(flavor = "multi_thread")]
async fn ten_questions_of_an_operator_are_answered_by_tools_alone() {
    let (asked, leaked) = a_day().await;
    // 1. What failed, and which rule decided?
    let failed = asked.get(json!({ "verdict": "fail" })).await;
    let decided: Vec<(&Value, &Value)> =
        failed["traces"].as_array().unwrap().iter().map(|row| (&row["trace_id"], &row["verdict"]["by"][0])).collect();
    assert!(decided.contains(&(&json!(leaked), &json!("no_pii"))), "{decided:?}");
    // 2. Which runs leaked personal data?
    let leaks = asked.get(json!({ "rule": "no_pii" })).await;
    assert_eq!((&leaks["total"], &leaks["traces"][0]["trace_id"]), (&json!(1), &json!(leaked)));
    // 3. Where in the text does it stand?
    let evaluation = leaks["traces"][0]["evaluation_id"].as_str().unwrap();
    let evaluation =
        asked.0.app.read_resource(&format!("iris://evaluations/{evaluation}"), &Caller::local()).await.unwrap();
    let results = evaluation["rule_results"].as_array().unwrap();
    let evidence = &results.iter().find(|result| result["ruleName"] == "no_pii").unwrap()["evidence"][0];
    assert_eq!((&evidence["start"], &evidence["end"]), (&json!(30), &json!(41)), "{evidence}");
    // 4. What did that run do, step by step?
    let steps = asked.get(json!({ "trace_id": leaked, "part": "/tool_calls" })).await;
    assert_eq!(steps["part"]["value"][0]["tool_name"], "search", "{}", steps["part"]);
    // 5. Which was the dearest?
    let dearest = asked.get(json!({ "sort_by": "cost_usd", "limit": 1 })).await;
    assert_eq!(dearest["traces"][0]["cost_usd"], 0.9);
    // 6. Which was the slowest, and did a tool fail in it?
    let slowest = asked.get(json!({ "sort_by": "latency_ms", "limit": 1 })).await;
    assert_eq!(slowest["traces"][0]["agent_name"], "planner");
    assert_eq!(slowest["traces"][0]["tool_calls"][1]["error"], "timeout");
    // 7. What was said in this conversation?
    let said = asked.get(json!({ "session_id": "s-1", "sort_order": "asc" })).await;
    assert_eq!((outputs(&said).len(), outputs(&said)[0].contains("18 C")), (2, true));
    // 8. Where was a refund mentioned?
    let mentioned = asked.get(json!({ "q": "REFUND \"five days\"" })).await;
    assert_eq!((&mentioned["total"], &mentioned["traces"][0]["agent_name"]), (&json!(1), &json!("support")));
    // 9. How was the last hour?
    let summary = asked.get(json!({ "include_summary": true, "limit": 1 })).await["summary"].clone();
    assert_eq!(summary["total_traces"], 5);
    assert!((summary["total_cost_usd"].as_f64().unwrap() - 1.01).abs() < 1e-9, "{summary}");
    assert!(summary["eval_pass_rate"].as_f64().unwrap() < 1.0, "{summary}");
    // 10. Can the rule that failed be trusted, and does its failure veto?
    let rules = asked.call("list_rules", json!({})).await;
    let rule = rules["built_in"].as_array().unwrap().iter().find(|rule| rule["name"] == "no_pii").unwrap().clone();
    assert_eq!(rule["critical"], true);
    assert!(rule["proof"]["precision"].is_number(), "{}", rule["proof"]);
}
