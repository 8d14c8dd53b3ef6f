//! The tools as a caller sees them, over a real journal, store and pipeline in a folder of their own.

mod cited;
mod judged;
mod large;
mod questions;
mod redacted;
mod rules;
mod sql;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use iris_core::contract::Code;
use iris_core::model::Trace;

use super::*;
use crate::ingest::{self, Mind};
use crate::journal::RealDisk;

struct Stand {
    app: App,
    _home: tempfile::TempDir,
}

/// Later by a second at each call, so that the order of traces is theirs.
fn now() -> Timestamp {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let calls = CALLS.fetch_add(1, Ordering::Relaxed);
    crate::telemetry::now().after(Duration::from_secs(calls))
}

fn app(home: &std::path::Path) -> App {
    let (journal, _) =
        Journal::open(home, &crate::journal::Config::default(), false, Arc::new(RealDisk)).expect("a journal");
    App {
        rulebook: Rulebook::open(home),
        settings: Arc::default(),
        journal,
        world: World { now, ..World::REAL },
        backend: crate::tools::Slot::default(),
        started: Timestamp::default(),
        deleted: crate::deleted::Deletions::default(),
        facts: Facts::default(),
        judging: None,
    }
}

async fn stand() -> Stand {
    let home = tempfile::tempdir().unwrap();
    Stand { app: opened(home.path()).await, _home: home }
}

async fn opened(home: &std::path::Path) -> App {
    let app = app(home);
    let (store, boot) = Store::open(home, &store::Config::default(), app.deleted.clone()).unwrap();
    let rulebook = app.rulebook.clone();
    let parts = ingest::Parts {
        home: home.to_owned(),
        journal: app.journal.clone(),
        store: store.clone(),
        deleted: app.deleted.clone(),
        mind: Mind::new(move |tenant| rulebook.snapshot(tenant), Arc::clone(&app.settings), now),
    };
    let pipeline = Pipeline::start(parts, &iris_core::assemble::Config::default(), false, boot).await.unwrap();
    app.backend.set(Backend { store, pipeline });
    app
}

impl Stand {
    async fn call(&self, name: &str, arguments: Value) -> Result<Value, Error> {
        self.app.call(name, arguments, &Caller::local()).await
    }

    async fn log(&self, arguments: Value) -> String {
        let reply = self.call("log_trace", arguments).await.unwrap();
        reply["trace_id"].as_str().unwrap().to_owned()
    }
}

fn names(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Scenario: a trace is logged and judged in one call, then asked for by every way there is.
/// Guarantees: it is found with the same id, output and verdict.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_logged_is_found_again() {
    let stand = stand().await;
    let reply = stand
        .call("log_trace", json!({ "agent_name": "planner", "input": "2+2?", "output": "It is 4.", "evaluate": true }))
        .await
        .unwrap();
    let id = reply["trace_id"].as_str().unwrap();
    assert_eq!(reply["evaluation"]["trace_id"], id);
    assert!(reply.get("note").is_none(), "{reply}");
    let page = stand.call("get_traces", json!({ "trace_id": id, "include_summary": true })).await.unwrap();
    assert_eq!((&page["total"], &page["traces"][0]["output"]), (&json!(1), &json!("It is 4.")));
    assert_eq!(page["traces"][0]["verdict"]["state"], reply["evaluation"]["verdict"]["state"]);
    assert_eq!(page["summary"]["total_traces"].as_u64(), Some(1), "{page}");
    assert!(page.get("truncated").is_none(), "{page}");
    let detail = stand.app.trace_detail(id, &Caller::local()).await.unwrap();
    assert_eq!(detail["trace"]["output"], "It is 4.");
    assert_eq!(detail["evals"][0]["id"], reply["evaluation"]["id"]);
}

/// Scenario: ids, ranges and limits that cannot be meant.
/// Guarantees: each is refused under its own code, naming the argument.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_meant_is_refused_by_name() {
    let stand = stand().await;
    let unknown = "0af7651916cd43dd8448eb211c80319c";
    let error = stand.call("evaluate_output", json!({ "trace_id": unknown })).await.unwrap_err();
    assert_eq!((error.code, error.field.as_deref()), (Code::UnknownTrace, Some("trace_id")));
    let error = stand.app.trace_detail(unknown, &Caller::local()).await.unwrap_err();
    assert_eq!(error.code, Code::UnknownTrace);
    let cases = [
        ("get_traces", json!({ "trace_id": "xyz" }), "trace_id"),
        ("get_traces", json!({ "limit": 0 }), "limit"),
        ("get_traces", json!({ "limit": 1001 }), "limit"),
        ("get_traces", json!({ "offset": -1 }), "offset"),
        ("get_traces", json!({ "min_score": 1.5 }), "min_score"),
        ("get_traces", json!({ "min_score": 0.9, "max_score": 0.1 }), "min_score"),
        ("get_traces", json!({ "since": "2026-02-02", "until": "2026-02-01" }), "since"),
        ("get_traces", json!({ "since": "yesterday" }), "since"),
        ("get_traces", json!({ "nonsense": 1 }), "nonsense"),
        ("log_trace", json!({ "agent_name": " " }), "agent_name"),
        ("log_trace", json!({ "agent_name": "\u{200b}\u{2060}" }), "agent_name"),
        ("log_trace", json!({ "agent_name": "a", "cost_usd": -1 }), "cost_usd"),
        ("log_trace", json!({ "agent_name": "a", "latency_ms": -0.5 }), "latency_ms"),
        (
            "log_trace",
            json!({ "agent_name": "a", "token_usage": { "prompt_tokens": -1 } }),
            "token_usage.prompt_tokens",
        ),
        ("log_trace", json!({ "agent_name": "a", "token_usage": { "total_tokens": 1.5 } }), "token_usage.total_tokens"),
        ("log_trace", json!({ "agent_name": "a", "tool_calls": [{ "tool_name": "" }] }), "tool_calls[0].tool_name"),
        (
            "log_trace",
            json!({ "agent_name": "a", "tool_calls": [{ "tool_name": "t" }, { "tool_name": "t", "latency_ms": -1 }] }),
            "tool_calls[1].latency_ms",
        ),
        (
            "log_trace",
            json!({ "agent_name": "a", "spans": [{ "name": "s", "start_time": "2026-12-01T09:30:00Z", "end_time": "2026-12-01T10:29:59+01:00" }] }),
            "spans[0].end_time",
        ),
        ("log_trace", json!({ "agent_name": "a", "timestamp": "2026-12-01" }), "timestamp"),
        ("log_trace", json!({ "agent_name": "a", "evaluate": true }), "evaluate"),
        ("evaluate_output", json!({}), "output"),
        ("evaluate_output", json!({ "trace_id": "xyz" }), "trace_id"),
        ("evaluate_output", json!({ "output": "x", "cost_usd": -1 }), "cost_usd"),
        (
            "evaluate_output",
            json!({ "output": "x", "tool_calls": [{ "tool_name": "\u{2800}" }] }),
            "tool_calls[0].tool_name",
        ),
    ];
    for (tool, arguments, field) in cases {
        let error = stand.call(tool, arguments.clone()).await.unwrap_err();
        assert_eq!((error.code, error.field.as_deref()), (Code::InvalidArgument, Some(field)), "{tool} {arguments}");
    }
    let none = stand.call("get_traces", json!({})).await.unwrap();
    assert_eq!(none["total"], 0, "nothing that was refused was stored");
}

/// Scenario: more and longer values than a reply may hold, among them metadata and the attributes of many spans.
/// Guarantees: the reply stays small, keeps every trace and names what was cut.
#[tokio::test(flavor = "multi_thread")]
async fn replies_are_cut_and_say_so() {
    let stand = stand().await;
    let long = "x".repeat(700_000);
    let id = stand.log(json!({ "agent_name": "a", "output": "fine", "metadata": { "blob": long } })).await;
    let whole = stand.call("get_traces", json!({})).await.unwrap();
    assert_eq!(whole["traces"][0]["metadata"]["blob"].as_str().map(str::len), Some(700_000), "one alone fits");
    stand.log(json!({ "agent_name": "a", "output": "fine", "metadata": { "blob": long } })).await;
    let cut = stand.call("get_traces", json!({})).await.unwrap();
    assert_eq!(names(&cut["truncated"]), ["traces[0].metadata", "traces[1].metadata"]);
    assert!(cut.to_string().len() < 20_000);
    let brief = stand.call("get_traces", json!({ "detail": "brief", "trace_id": id })).await.unwrap();
    assert_eq!(names(&brief["truncated"]), ["traces[0].metadata"]);
    assert!(names(&brief["untrusted"]["fields"]).contains(&"traces[].metadata"));

    let step = |n: usize| {
        json!({ "name": format!("step {n}"), "start_time": "2026-12-01T09:30:00Z",
        "attributes": { "page": "y".repeat(4000) } })
    };
    let spans: Vec<Value> = (0..2100).map(step).collect();
    let id = stand.log(json!({ "agent_name": "a", "spans": spans })).await;
    let detail = stand.app.trace_detail(&id, &Caller::local()).await.unwrap();
    assert!(detail.to_string().len() < 5 * 1024 * 1024);
    assert_eq!(detail["spans"].as_array().map(Vec::len), Some(2000));
    let truncated = names(&detail["truncated"]);
    assert!(truncated.contains(&"spans[7].attributes"), "{:?}", &truncated[..3]);
    let untrusted = names(&detail["untrusted"]["fields"]);
    for field in ["trace.runs", "trace.user_id", "spans[].attributes", "spans[].scope"] {
        assert!(untrusted.contains(&field), "{field}");
    }
}

/// Scenario: traces with outputs of 2 MB, asked for as a page, one by one, and in brief.
/// Guarantees: a page cuts them and says how much is gone; one by its id is whole, unless brief is wanted; one beyond
/// the reply's limit is cut.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_page_cuts_is_whole_by_its_id() {
    let stand = stand().await;
    let output = "é".repeat(1_000_000);
    let mut ids = Vec::new();
    for _ in 0..3 {
        let arguments = json!({ "agent_name": "a", "input": "short", "output": output, "metadata": { "k": "v" } });
        ids.push(stand.log(arguments).await);
    }
    let page = stand.call("get_traces", json!({})).await.unwrap();
    assert_eq!(names(&page["truncated"]), ["traces[0].output", "traces[1].output", "traces[2].output"]);
    let cut = format!("{} [cut: 998000 more characters]", "é".repeat(2000));
    assert_eq!((&page["traces"][1]["output"], &page["traces"][1]["input"]), (&json!(cut), &json!("short")));
    assert_eq!(page["traces"][1]["metadata"]["k"], "v");
    let one = stand.call("get_traces", json!({ "trace_id": ids[1] })).await.unwrap();
    assert!(one["traces"][0]["output"] == output.as_str() && one.get("truncated").is_none(), "whole");
    let brief = stand.call("get_traces", json!({ "trace_id": ids[1], "detail": "brief" })).await.unwrap();
    let cut = format!("{} [cut: 999800 more characters]", "é".repeat(200));
    assert_eq!((&brief["traces"][0]["output"], names(&brief["truncated"])), (&json!(cut), vec!["traces[0].output"]));

    let id = stand.log(json!({ "agent_name": "a", "output": "z".repeat(9 << 20) })).await;
    let beyond = stand.call("get_traces", json!({ "trace_id": id })).await.unwrap();
    assert_eq!(names(&beyond["truncated"]), ["traces[0].output"]);
    let cut = format!("{} [cut: {} more characters]", "z".repeat(4000), (9 << 20) - 4000);
    assert_eq!(beyond["traces"][0]["output"], cut);
}

/// Scenario: a span of an agent that has not ended, then another start.
/// Guarantees: before and after, every way to ask for one trace finds it, as not ended.
#[tokio::test(flavor = "multi_thread")]
async fn an_open_trace_is_found_after_another_start() {
    let Stand { app, _home: home } = stand().await;
    let id = "0af7651916cd43dd8448eb211c80319c";
    let body = json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": [{
        "traceId": id, "spanId": "b7ad6b7169203331", "parentSpanId": "00f067aa0ba902b7", "name": "execute_tool search",
        "startTimeUnixNano": "1796083200000000000", "endTimeUnixNano": "1796083201000000000",
        "attributes": [{ "key": "gen_ai.operation.name", "value": { "stringValue": "execute_tool" } },
                       { "key": "gen_ai.tool.name", "value": { "stringValue": "search" } }]
    }] }] }] });
    let record = Record {
        kind: Kind::Otlp,
        tenant: Tenant::local(),
        door: Door::Http,
        encoding: Encoding::Json,
        arrived: crate::telemetry::now(),
        body: Bytes::from(body.to_string()),
    };
    let seq = app.journal.append(Lane::Traces, record).await.unwrap();
    let read = |app: &App| {
        let status = app.backend.get().unwrap().pipeline.status();
        status.lanes.first().is_some_and(|lane| lane.read_through >= seq)
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    while !read(&app) {
        assert!(Instant::now() < deadline, "never read");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let stand = Stand { app, _home: home };
    found_open(&stand, id).await;
    let Stand { app, _home: home } = stand;
    let backend = app.backend.get().unwrap();
    backend.pipeline.drain(Duration::from_secs(5)).await;
    backend.store.close(Duration::from_secs(5)).await.unwrap();
    app.journal.close().await;
    drop(app);
    let stand = Stand { app: opened(home.path()).await, _home: home };
    found_open(&stand, id).await;
}

async fn found_open(stand: &Stand, id: &str) {
    for sort_by in ["timestamp", "cost_usd"] {
        let arguments = json!({ "trace_id": id, "sort_by": sort_by });
        let page = stand.call("get_traces", arguments).await.unwrap();
        assert_eq!(page["traces"][0]["in_progress"], true, "{page}");
        assert_eq!(page["traces"][0]["tool_calls"][0]["tool_name"], "search", "{page}");
    }
    let page = stand.call("get_traces", json!({})).await.unwrap();
    assert_eq!(page["traces"][0]["trace_id"], id, "{page}");
    let detail = stand.app.trace_detail(id, &Caller::local()).await.unwrap();
    assert_eq!(detail["trace"]["in_progress"], true, "{detail}");
    stand.call("evaluate_output", json!({ "trace_id": id, "output": "fine" })).await.unwrap();
}

/// Scenario: the store goes away while the journal still takes records.
/// Guarantees: the caller learns that its trace is kept under its id and must not be sent again; a later start
/// finds exactly one.
#[tokio::test(flavor = "multi_thread")]
async fn a_journalled_trace_is_never_asked_for_twice() {
    let Stand { app, _home: home } = stand().await;
    let backend = app.backend.get().unwrap();
    backend.pipeline.drain(Duration::from_secs(5)).await;
    backend.store.close(Duration::from_secs(5)).await.unwrap();
    let logged = json!({ "agent_name": "a", "output": "fine", "evaluate": true });
    let error = app.call("log_trace", logged, &Caller::local()).await.unwrap_err();
    assert_eq!((error.code, error.retryable, error.retry_after_ms), (Code::StorageError, false, None));
    assert!(error.recovery[0].starts_with("do not repeat"), "{error:?}");
    let id = error.message.split_whitespace().nth(1).unwrap().to_owned();
    app.journal.close().await;
    drop(app);

    let stand = Stand { app: opened(home.path()).await, _home: home };
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let page = stand.call("get_traces", json!({ "agent_name": "a" })).await.unwrap();
        if page["total"] == 1 {
            assert_eq!(page["traces"][0]["trace_id"], id.as_str());
            break;
        }
        assert!(Instant::now() < deadline, "{page}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Scenario: more traces with two words in a row than one question reads here.
/// Guarantees: the reply says where it ended, and the same search goes on there until all are found, each once.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_ended_early_says_where_it_goes_on() {
    let stand = stand().await;
    for n in 0..200 {
        stand.log(json!({ "agent_name": "clerk", "output": format!("number {n} of the blue kettles") })).await;
    }
    let (mut found, mut asks, mut questions) = (Vec::new(), json!({ "q": "\"blue kettles\"", "limit": 1000 }), 0);
    loop {
        let reply = stand.call("get_traces", asks.clone()).await.unwrap();
        found.extend(reply["traces"].as_array().unwrap().iter().map(|row| row["trace_id"].to_string()));
        questions += 1;
        let Some(until) = reply["unsearched"]["until"].as_str() else { break };
        assert!(reply["unsearched"]["traces"].as_u64() > Some(0) && questions < 50, "{reply}");
        asks["until"] = json!(until);
    }
    found.sort_unstable();
    // Those of the last millisecond may be found from both sides.
    found.dedup();
    assert!(found.len() == 200 && questions > 1, "{} in {questions}", found.len());
}

/// Scenario: every kind of failure the store has while it is only read.
/// Guarantees: a passing one says when to come back; a lasting one does not invite to try for ever.
#[tokio::test]
async fn a_passing_failure_of_the_store_can_be_tried_again() {
    let home = tempfile::tempdir().unwrap();
    let app = app(home.path());
    for passing in [
        store::Error::Deadline(Duration::from_secs(5)),
        store::Error::Busy(Duration::from_secs(5)),
        store::Error::Locked { pid: Some(7) },
        store::Error::NoSpace("IO Error".to_owned()),
    ] {
        let error = app.failed(&passing);
        assert_eq!((error.retryable, error.retry_after_ms), (true, Some(STORE_RETRY_AFTER_MS)), "{passing}");
    }
    let lasting = app.failed(&store::Error::Corrupt("Corrupt".to_owned()));
    assert_eq!((lasting.code, lasting.retryable), (Code::StorageError, false));
}

/// Scenario: a program calls a model four times in one conversation, without an agent around it: four traces.
/// Guarantees: each is shown with the conversation, which is judged as one trajectory: a failure in the first call that the
/// last answer hides is found there and nowhere else.
#[tokio::test(flavor = "multi_thread")]
async fn bare_calls_of_one_conversation_are_judged_together() {
    let stand = stand().await;
    let backend = stand.app.backend().unwrap();
    let id = stand.log(json!({ "agent_name": "harbor", "input": "Where is my order?", "session_id": "s-1" })).await;
    let logged = backend.store.trace(&Tenant::local(), id.parse().unwrap()).await.unwrap().unwrap();
    for n in 1..=4_u8 {
        let failed = json!([{ "tool_name": "find", "call_id": "c1", "input": {}, "output": "Error: no such order", "error": "no such order" }]);
        let trace = Trace {
            source: iris_core::model::TraceSource::Otlp,
            notes: iris_core::model::Notes { bare: true, ..Default::default() },
            trace_id: iris_core::model::TraceId::from_bytes(&[n; 16]).unwrap(),
            timestamp: logged.timestamp.after(Duration::from_secs(n.into())),
            output: Some("Your order arrived this morning, everything went well.".to_owned()),
            tool_calls: Some(if n == 1 { serde_json::from_value(failed).unwrap() } else { Vec::new() }),
            ..logged.clone()
        };
        let position = Position { lane: Lane::Traces, seq: (1 << 62) + u64::from(n), ordinal: 0 };
        backend.store.write(ToolWrite::Trace { trace, spans: Vec::new(), position }).await.unwrap();
    }
    let detail = stand.app.trace_detail(&"04".repeat(16), &Caller::local()).await.unwrap();
    let told = &detail["conversation"];
    assert_eq!(told["trace_ids"].as_array().map(Vec::len), Some(4), "{told}");
    assert_eq!((&told["session_id"], &told["tool_calls"][0]["call_id"]), (&json!("s-1"), &json!("c1")));
    let results = told["evaluation"]["rule_results"].as_array().unwrap();
    let hidden = results.iter().find(|result| result["ruleName"] == "no_silent_tool_failure").unwrap();
    assert_eq!(hidden["state"], "fail", "{hidden}");
    assert!(names(&detail["untrusted"]["fields"]).contains(&"conversation.tool_calls"));
    let alone = stand.app.trace_detail(&id, &Caller::local()).await.unwrap();
    assert!(alone.get("conversation").is_none(), "what was logged is whole by itself");
}
