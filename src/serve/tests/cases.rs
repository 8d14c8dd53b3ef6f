//! One file of calls through every door: what comes back is the same.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use iris_core::contract::{Code, every_tool};
use serde_json::{Value, json};
use tokio::io::{DuplexStream, ReadHalf, WriteHalf};

use super::*;
use crate::fetch::fake::{Names, Server};
use crate::ingest::{self, Mind, Pipeline};
use crate::judge::fake::{Act, Fake, JSON, claude, config, fake};
use crate::store::Store;
use crate::tools::{Backend, Caller, Judging};
use crate::{fetch, judge};

const CALLS: &str = include_str!("../../../tests/cases/tool/calls.jsonl");

/// How many random bytes were taken: the same bytes for every door.
static TAKEN: AtomicU64 = AtomicU64::new(0);

fn random(bytes: &mut [u8]) {
    for byte in bytes {
        let taken = TAKEN.fetch_add(1, Ordering::Relaxed);
        *byte = u8::try_from(taken.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56).unwrap_or_default();
    }
}

fn now() -> Timestamp {
    Timestamp::parse("2026-01-02T03:10:00Z").unwrap_or_default()
}

/// A provider that fails when the text says so, and else finds everything right.
fn provider(body: &Value) -> Act {
    let shown = body["messages"][0]["content"].as_str().unwrap();
    if shown.contains("the provider fails") {
        return Act::Says(500, JSON, json!({ "error": { "message": "overloaded" } }).to_string());
    }
    claude("{\"score\":0.9,\"supported\":true,\"confidence\":1,\"rationale\":\"It holds.\"}")
}

/// A judge before that provider, and one source.
async fn judging() -> (Judging, Fake, Server) {
    let provider = fake(vec![Act::Makes(provider)], Duration::ZERO).await;
    let source = fetch::fake::serve(fetch::fake::page("text/plain", "as it says")).await;
    let names = Names::default().with("a.example.org", &[&[(fetch::fake::PUBLIC, source.port)]]);
    let only = judge::Config { openai_api_key: None, openai_base_url: None, ..config(provider.port) };
    let models = iris_core::judge::Models::with(&iris_core::price::Config::default()).unwrap();
    let ledger = judge::Ledger::forgetful(judge::Ceilings::default());
    let asked = judge::Judge::new(&only, models, ledger).unwrap();
    (Judging::new(asked, &fetch::Config::default()).resolving(names), provider, source)
}

/// A stand with an open store and a frozen world.
async fn stand(home: &std::path::Path, judging: Judging) -> Arc<App> {
    TAKEN.store(0, Ordering::Relaxed);
    let (journal, _) = Journal::open(home, &crate::journal::Config::default(), false, Arc::new(RealDisk)).unwrap();
    let app = App {
        rulebook: Rulebook::open(home),
        settings: Arc::default(),
        journal,
        world: World { now, random },
        backend: crate::tools::Slot::default(),
        started: now(),
        deleted: crate::deleted::Deletions::default(),
        facts: crate::tools::Facts { sql: true, reply_bytes_max: 8 << 20, ..crate::tools::Facts::default() },
        judging: Some(Arc::new(judging)),
    };
    let (store, boot) = Store::open(home, &crate::store::Config::default(), app.deleted.clone()).unwrap();
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
    Arc::new(app)
}

/// A way to call a tool, and what comes back: the reply, or the object in `error`.
enum Way {
    Direct(Arc<App>),
    McpHttp(SocketAddr),
    McpLines(Box<BufReader<ReadHalf<DuplexStream>>>, WriteHalf<DuplexStream>),
    Api(SocketAddr),
}

impl Way {
    async fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let request = json!({
            "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": { "name": tool, "arguments": arguments },
        });
        match self {
            Self::Direct(app) => match app.call(tool, arguments.clone(), &Caller::local()).await {
                Ok(reply) => reply,
                Err(error) => error.envelope()["error"].clone(),
            },
            Self::McpHttp(to) => {
                let (status, answer) = post(*to, "/mcp", &MCP, request.to_string().as_bytes()).await;
                assert_eq!(status, 200, "{answer}");
                result(&serde_json::from_str(&answer).unwrap())
            }
            Self::McpLines(answers, calls) => {
                calls.write_all(format!("{request}\n").as_bytes()).await.unwrap();
                let mut answer = String::new();
                tokio::time::timeout(Duration::from_secs(20), answers.read_line(&mut answer)).await.unwrap().unwrap();
                result(&serde_json::from_str(&answer).unwrap())
            }
            Self::Api(to) => {
                let body = arguments.to_string();
                let (status, answer) = post(*to, &format!("/api/v1/tools/{tool}"), &MCP, body.as_bytes()).await;
                let answer: Value = serde_json::from_str(&answer).unwrap();
                match status {
                    200 => answer,
                    _ => {
                        assert_eq!(answer["message"], answer["error"]["message"], "{answer}");
                        answer["error"].clone()
                    }
                }
            }
        }
    }
}

impl Way {
    /// What stands at an address; null where nothing does.
    async fn read(&mut self, uri: &str) -> Value {
        let request =
            json!({ "jsonrpc": "2.0", "id": 8, "method": "resources/read", "params": { "uri": uri } }).to_string();
        let held = |answer: &Value| match answer["error"]["code"].as_i64() {
            None => serde_json::from_str(answer["result"]["contents"][0]["text"].as_str().unwrap()).unwrap(),
            code => {
                assert_eq!(code, Some(-32002), "{answer}");
                Value::Null
            }
        };
        match self {
            Self::Direct(app) => match app.read_resource(uri, &Caller::local()).await {
                Ok(value) => value,
                Err(crate::tools::NotRead::Unknown) => Value::Null,
                Err(crate::tools::NotRead::Failed(error)) => panic!("{uri}: {error}"),
            },
            Self::McpHttp(to) => {
                let (_, answer) = post(*to, "/mcp", &MCP, request.as_bytes()).await;
                held(&serde_json::from_str(&answer).unwrap())
            }
            Self::McpLines(answers, calls) => {
                calls.write_all(format!("{request}\n").as_bytes()).await.unwrap();
                let mut answer = String::new();
                tokio::time::timeout(Duration::from_secs(20), answers.read_line(&mut answer)).await.unwrap().unwrap();
                held(&serde_json::from_str(&answer).unwrap())
            }
            Self::Api(to) => {
                let path = uri.strip_prefix("iris://").unwrap().replace("dashboard/summary", "summary?hours=1");
                let (status, answer) = get(*to, &format!("/api/v1/{path}"), &[]).await;
                assert!(matches!(status, 200 | 404), "{uri}: {answer}");
                let body = answer.split_once("\r\n\r\n").unwrap().1;
                if status == 200 { serde_json::from_str(body).unwrap() } else { Value::Null }
            }
        }
    }
}

/// What an MCP result holds, once as text and once as it is.
fn result(answer: &Value) -> Value {
    let result = &answer["result"];
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"], "{answer}");
    for link in result["content"].as_array().unwrap().iter().skip(1) {
        assert_eq!(link["type"], "resource_link", "{answer}");
    }
    match result["isError"] == true {
        true => text["error"].clone(),
        false => text,
    }
}

fn filled(arguments: &Value, saved: &str) -> Value {
    serde_json::from_str(&arguments.to_string().replace("$saved", saved)).unwrap()
}

/// How long a provider took is no matter of the door.
fn timeless(mut reply: Value) -> Value {
    let took = |value: &mut Value| {
        if value.get("latency_ms").is_some_and(Value::is_number) && value.get("cost_usd").is_some() {
            value["latency_ms"] = Value::Null;
        }
    };
    took(&mut reply);
    for citation in reply.get_mut("citations").and_then(Value::as_array_mut).into_iter().flatten() {
        took(&mut citation["judge"]);
    }
    reply
}

async fn replies(way: &mut Way) -> Vec<Value> {
    let (mut replies, mut saved) = (Vec::new(), String::new());
    for line in CALLS.lines() {
        let call: Value = serde_json::from_str(line).unwrap();
        if let Some(uri) = call["resource"].as_str() {
            let held = way.read(&uri.replace("$saved", &saved)).await;
            assert_eq!(held.is_null(), call["unknown"] == true, "{line}\n{held}");
            replies.push(timeless(held));
            continue;
        }
        let reply = way.call(call["tool"].as_str().unwrap(), &filled(&call["arguments"], &saved)).await;
        let code = reply.get("code").unwrap_or(&Value::Null);
        assert_eq!(code, call.get("code").unwrap_or(&Value::Null), "{line}\n{reply}");
        if let Some(pointer) = call["save"].as_str() {
            saved = reply.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
        }
        replies.push(timeless(reply));
    }
    replies
}

/// Scenario: the calls of `tests/cases/tool/calls.jsonl`, one sequence a door, each on a store of its own.
/// Guarantees: direct, over MCP by HTTP and by lines, and over the HTTP API the JSON is equal; every code of the
/// contract is provoked.
#[tokio::test(flavor = "multi_thread")]
async fn every_door_answers_a_call_alike() {
    let mut first: Option<Vec<Value>> = None;
    for door in ["direct", "mcp over http", "mcp by lines", "api"] {
        let home = tempfile::tempdir().unwrap();
        let (judging, _provider, _source) = judging().await;
        let app = stand(home.path(), judging).await;
        let cancel = CancellationToken::new();
        let mut way = match door {
            "direct" => Way::Direct(app),
            "mcp by lines" => {
                let (ours, theirs) = tokio::io::duplex(64 * 1024);
                tokio::spawn(attend(theirs, app, LIMIT, cancel.clone()));
                let (answers, mut calls) = tokio::io::split(ours);
                let mut answers = BufReader::new(answers);
                let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
                let begun = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
                calls.write_all(format!("{hello}\n{begun}\n").as_bytes()).await.unwrap();
                answers.read_line(&mut String::new()).await.unwrap();
                Way::McpLines(Box::new(answers), calls)
            }
            _ => {
                let to = open_app(app, Config::default(), Vec::new(), cancel.clone()).await;
                if door == "api" { Way::Api(to) } else { Way::McpHttp(to) }
            }
        };
        let found = replies(&mut way).await;
        let first = first.get_or_insert_with(|| found.clone());
        for ((line, one), other) in CALLS.lines().zip(first).zip(&found) {
            assert_eq!(one, other, "{door}: {line}");
        }
        cancel.cancel();
    }
    let provoked: BTreeSet<&str> = first.iter().flatten().filter_map(|reply| reply["code"].as_str()).collect();
    // Before the store is open.
    let home = tempfile::tempdir().unwrap();
    let busy = app(home.path()).call("get_traces", json!({}), &Caller::local()).await.unwrap_err();
    // A rule file that is none.
    std::fs::write(home.path().join("custom-rules.json"), "{").unwrap();
    let unreadable = app(home.path()).call("list_rules", json!({}), &Caller::local()).await.unwrap_err();
    let more = [busy.code.as_str(), unreadable.code.as_str()];
    let provoked: BTreeSet<&str> = provoked.into_iter().chain(more).collect();
    let all: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(provoked, all);
    let called: BTreeSet<String> = CALLS.lines().map(|line| text_of(line, "tool")).collect();
    for tool in every_tool() {
        assert!(called.contains(tool.name), "{}: no call in tests/cases/tool/calls.jsonl", tool.name);
    }
}

fn text_of(line: &str, field: &str) -> String {
    let line: Value = serde_json::from_str(line).unwrap();
    line[field].as_str().unwrap_or_default().to_owned()
}

/// Guarantees: the instructions, the prompt and the descriptions name only tools and addresses that there are, within
/// their bound.
#[tokio::test]
async fn what_is_named_is_there() {
    let home = tempfile::tempdir().unwrap();
    let app = app(home.path());
    let instructions = app.instructions();
    assert!(instructions.len() <= 2600, "{}", instructions.len());
    for address in [
        "iris://capabilities",
        "iris://proof",
        "iris://dashboard/summary",
        "iris://traces/{trace_id}",
        "iris://evaluations/{id}",
    ] {
        assert!(iris_core::contract::RESOURCES.iter().any(|one| one.uri == address), "{address}");
        assert!(instructions.contains(address), "{address}");
    }
    let described: String = every_tool().map(|tool| (tool.describe)()).collect();
    let prompt = iris_core::contract::prompt("output", "1") + &iris_core::contract::prompt("trace-file", "1");
    for text in [&instructions, &described, &prompt] {
        for uri in text.split("iris://").skip(1) {
            let uri: String =
                uri.chars().take_while(|letter| letter.is_ascii_alphanumeric() || "/{}_".contains(*letter)).collect();
            let uri = format!("iris://{uri}").replace("{id}", "x").replace("{trace_id}", "x");
            assert!(iris_core::contract::RESOURCES.iter().any(|one| one.matches(&uri).is_some()), "{uri}");
        }
        for word in text.split(|letter: char| !(letter.is_ascii_lowercase() || letter == '_')) {
            let looks_like_a_tool = ["log_", "get_", "list_", "deploy_", "delete_", "evaluate_", "verify_"]
                .iter()
                .any(|start| word.starts_with(start));
            assert!(!looks_like_a_tool || iris_core::contract::tool(word).is_some(), "{word}");
        }
    }
}
