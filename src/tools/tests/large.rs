//! Replies that a model reads: bounded, and everything that was cut can be read in pieces.

use std::collections::BTreeSet;

use super::*;

/// What `mcp.reply_bytes_max` is unless somebody changes it.
const REPLY_BYTES: usize = 48 * 1024;

/// What a client is known to take of one reply.
const REPLY_MAX: usize = 60_000;

fn model() -> Caller {
    Caller::local().with_model(REPLY_BYTES)
}

impl Stand {
    async fn ask(&self, arguments: Value) -> Value {
        let reply = self.app.call("get_traces", arguments.clone(), &model()).await.unwrap();
        let bytes = reply.to_string().len();
        assert!(bytes <= REPLY_MAX, "{bytes} bytes for {arguments}");
        reply
    }
}

/// Scenario: sixty traces with answers of 20 KB; a page as it comes, one of a thousand with the summary, the pages after
/// it; one trace with an answer of 2 MB.
/// Guarantees: every reply is bounded, says what it cut, counts all, and leads to the next page; the large answer is
/// read whole, piece by piece.
#[tokio::test(flavor = "multi_thread")]
async fn g5_01_replies_are_bounded_and_lead_on() {
    let stand = stand().await;
    for n in 0..60 {
        let calls: Vec<Value> =
            (0..20).map(|at| json!({ "tool_name": format!("t{at}"), "output": "z".repeat(300) })).collect();
        stand
            .log(json!({ "agent_name": "a", "input": format!("question {n}"), "output": "x".repeat(20_000), "tool_calls": calls,
                         "metadata": { "note": "y".repeat(2000) } }))
            .await;
    }
    let page = stand.ask(json!({})).await;
    assert_eq!((&page["total"], page["traces"].as_array().map(Vec::len)), (&json!(60), Some(50)));
    assert_eq!(page["next_offset"], 50);
    assert!(!names(&page["truncated"]).is_empty());
    assert!(page["traces"][0]["output"].as_str().unwrap().ends_with(" more characters]"));

    let (mut seen, mut offset, mut pages) = (BTreeSet::new(), 0_u64, 0);
    loop {
        let page = stand.ask(json!({ "limit": 1000, "offset": offset, "include_summary": offset == 0 })).await;
        assert_eq!(page["total"], 60);
        seen.extend(page["traces"].as_array().unwrap().iter().map(|row| row["trace_id"].as_str().unwrap().to_owned()));
        pages += 1;
        let Some(next) = page["next_offset"].as_u64() else { break };
        assert!(next > offset && pages < 60, "{next}");
        offset = next;
    }
    assert_eq!(seen.len(), 60);

    let large = "é".repeat(1_000_000);
    let id = stand.log(json!({ "agent_name": "large", "output": large })).await;
    let one = stand.ask(json!({ "trace_id": id })).await;
    assert_eq!(names(&one["truncated"]), ["traces[0].output"]);
    let (mut read, mut offset) = (String::new(), 0_u64);
    loop {
        let reply = stand.ask(json!({ "trace_id": id, "part": "/output", "part_offset": offset })).await;
        let part = &reply["part"];
        assert_eq!((&part["kind"], &part["length"]), (&json!("text"), &json!(1_000_000)));
        read.push_str(part["text"].as_str().unwrap());
        let Some(next) = part["next_offset"].as_u64() else { break };
        offset = next;
    }
    assert!(read == large);
    let untrusted = stand.ask(json!({ "trace_id": id, "part": "/output" })).await;
    assert!(names(&untrusted["untrusted"]["fields"]).contains(&"part.text"));
}

/// Scenario: a trace of four hundred spans with tool results of 20 KB, one of them failed.
/// Guarantees: read by its address it is a skeleton within the bound; its spans are listed page by page with name, size
/// and error, and one of them is read whole.
#[tokio::test(flavor = "multi_thread")]
async fn g5_10_a_long_trace_is_a_skeleton_first_and_then_one_step() {
    let stand = stand().await;
    let result = "r".repeat(20_000);
    let span = |n: usize| {
        json!({
            "name": format!("execute_tool t{n}"), "kind": "TOOL", "start_time": "2026-12-01T09:30:00Z",
            "status_code": if n == 17 { "ERROR" } else { "OK" }, "attributes": { "result": result, "n": n },
        })
    };
    let calls: Vec<Value> = (0..400).map(|n| json!({ "tool_name": format!("t{n}"), "output": result })).collect();
    let spans: Vec<Value> = (0..400).map(span).collect();
    let id = stand
        .log(json!({ "agent_name": "a", "output": "done", "tool_calls": calls, "spans": spans, "evaluate": true }))
        .await;
    for _ in 0..3 {
        stand.call("evaluate_output", json!({ "trace_id": id })).await.unwrap();
    }
    let skeleton = stand.app.trace_detail(&id, &model()).await.unwrap();
    let bytes = skeleton.to_string().len();
    assert!(bytes <= REPLY_MAX, "{bytes}");
    assert_eq!((&skeleton["trace"]["trace_id"], &skeleton["trace"]["output"]), (&json!(id), &json!("done")));
    assert!(skeleton["spans"][0]["bytes"].as_u64().unwrap() > 20_000, "{}", skeleton["spans"][0]);
    assert!(skeleton["spans"][0].get("attributes").is_none());
    let evals = skeleton["evals"].as_array().unwrap();
    assert_eq!(evals.len(), 4);
    assert!(evals.iter().all(|evaluation| evaluation["verdict"]["state"].is_string()), "{evals:?}");
    assert!(evals[3].get("rule_results").is_none());
    let truncated = names(&skeleton["truncated"]);
    assert!(truncated.iter().any(|place| place.contains("/spans/0")), "{truncated:?}");

    let (mut listed, mut offset) = (Vec::new(), 0_u64);
    loop {
        let reply = stand.ask(json!({ "trace_id": id, "part": "/spans", "part_offset": offset })).await;
        listed.extend(reply["part"]["entries"].as_array().unwrap().clone());
        let Some(next) = reply["part"]["next_offset"].as_u64() else { break };
        offset = next;
    }
    assert_eq!(listed.len(), 400);
    let failed: Vec<&Value> = listed.iter().filter(|entry| entry["failed"] == true).collect();
    assert_eq!((failed.len(), &failed[0]["name"]), (1, &json!("execute_tool t17")));
    let pointer = format!("{}/attributes/result", failed[0]["pointer"].as_str().unwrap());
    let reply = stand.ask(json!({ "trace_id": id, "part": pointer })).await;
    assert_eq!(reply["part"]["text"], result);
    let missing = stand.app.call("get_traces", json!({ "trace_id": id, "part": "/spans/400" }), &model()).await;
    assert_eq!(missing.unwrap_err().field.as_deref(), Some("part"));
}
