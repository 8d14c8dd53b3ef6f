//! `query_sql` against statements that mean harm, with canaries beside it.

use std::sync::atomic::AtomicUsize;

use super::*;
use crate::door::Holder;
use iris_core::contract::Scope;

const STATEMENTS: &str = include_str!("../../../tests/cases/tool/sql.jsonl");

/// What another tenant's rows and a file hold, and no reply may.
const FOREIGN: &str = "azure answer of the second house";
const IN_A_FILE: &str = "canary,in,a,file";

fn caller(tenant: &str) -> Caller {
    Caller::from(&Holder {
        name: tenant.to_owned(),
        tenant: Tenant::new(tenant),
        scopes: Scope::ALL.to_vec(),
        may_set_tenant: false,
    })
}

async fn fill(app: &App) {
    for (tenant, house, output) in [("red", "first", "crimson answer of the first house"), ("blue", "second", FOREIGN)]
    {
        for _ in 0..2 {
            let logged = json!({
                "agent_name": format!("clerk-{tenant}"), "input": "Who?", "output": output, "cost_usd": 0.02, "latency_ms": 5, "evaluate": true,
                "metadata": { "house": house },
                "spans": [{ "name": output, "start_time": "2026-01-02T03:04:05Z", "attributes": { "said": output } }],
            });
            app.call("log_trace", logged, &caller(tenant)).await.unwrap();
        }
    }
}

/// Scenario: every statement of `tests/cases/tool/sql.jsonl`, with a listener and a file that each of them may try for.
/// Guarantees: what is refused is refused as an argument, nothing connects, no file is read or made, the rows of another
/// tenant stay out, and the tool answers on afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_statements_reach_nothing() {
    let Stand { mut app, _home: home } = stand().await;
    app.facts.sql = true;
    fill(&app).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let connected = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connected);
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("canary.csv");
    std::fs::write(&file, IN_A_FILE).unwrap();
    let mut refused = 0;
    for line in STATEMENTS.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let sql = case["sql"].as_str().unwrap().replace("$FILE", file.to_str().unwrap()).replace("$URL", &url);
        let answer = app.call("query_sql", json!({ "sql": sql }), &caller("red")).await;
        let told = match answer {
            Ok(reply) => {
                assert_ne!(case["refused"], true, "{sql}: {reply}");
                if case["rows"].is_array() {
                    assert_eq!(reply["rows"], case["rows"], "{sql}");
                }
                reply.to_string()
            }
            Err(error) => {
                assert_eq!(case["refused"], true, "{sql}: {error}");
                assert_eq!(
                    (error.code, error.field.as_deref()),
                    (Code::InvalidArgument, Some("sql")),
                    "{sql}: {error}"
                );
                refused += 1;
                error.envelope().to_string()
            }
        };
        for secret in [FOREIGN, "clerk-blue", IN_A_FILE, "\"second\""] {
            assert!(!told.contains(secret), "{sql}: {told}");
        }
    }
    assert!(refused >= 60, "{refused}");
    assert_eq!(connected.load(Ordering::SeqCst), 0, "something connected");
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(files, ["canary.csv"]);
    let count = json!({ "sql": "SELECT count(*) FROM traces" });
    assert_eq!(app.call("query_sql", count, &caller("blue")).await.unwrap()["rows"], json!([[2]]));
    drop(home);
}

/// Guarantees: without a statement the tool says what can be asked; rows and values are bounded and say so; text that
/// others wrote is marked; who may not, or is not offered it, is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_query_is_described_bounded_and_marked() {
    let Stand { mut app, _home: home } = stand().await;
    let off = app.call("query_sql", json!({}), &Caller::local()).await.unwrap_err();
    assert_eq!(off.code, Code::InvalidArgument, "not offered by default");
    app.facts.sql = true;
    for n in 0..30 {
        let logged = json!({ "agent_name": "a", "output": format!("{n} {}", "é".repeat(5000)) });
        app.call("log_trace", logged, &Caller::local()).await.unwrap();
    }
    let described = app.call("query_sql", json!({}), &Caller::local()).await.unwrap();
    let names: Vec<&str> =
        described["tables"].as_array().unwrap().iter().filter_map(|table| table["name"].as_str()).collect();
    assert_eq!(names, ["traces", "spans", "evaluations"]);
    assert_eq!(described["tables"][0]["columns"][0], json!({ "name": "trace_id", "type": "VARCHAR" }));
    assert!(described["functions"].as_array().unwrap().contains(&json!("date_trunc")));
    let asked = json!({ "sql": "SELECT output FROM traces", "limit": 20 });
    let reply = app.call("query_sql", asked.clone(), &Caller::local()).await.unwrap();
    assert_eq!((reply["rows"].as_array().map(Vec::len), &reply["more"]), (Some(20), &json!(true)));
    assert_eq!(reply["untrusted"]["fields"], json!(["rows"]));
    assert!(reply["truncated"][0].as_str().unwrap().starts_with("rows: 20 values cut"), "{}", reply["truncated"]);
    let small = app.call("query_sql", asked, &Caller::local().with_model(16 * 1024)).await.unwrap();
    assert!(small.to_string().len() < 20_000, "{}", small.to_string().len());
    let error = app.call("query_sql", json!({ "sql": "SELECT 1" }), &Caller::onlooker()).await.unwrap_err();
    assert!(error.message.contains("scope admin"), "{error}");
    app.facts.stored_text = StoredText::Omitted;
    let asked = json!({ "sql": "SELECT agent_name FROM traces", "limit": 1 });
    assert_eq!(
        app.call("query_sql", asked, &Caller::local()).await.unwrap()["rows"],
        json!([["[omitted: 1 characters]"]])
    );
    drop(home);
}

/// Scenario: a statement that never ends.
/// Guarantees: it is stopped at the deadline, said to be too long, and the next one is answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_query_without_end_is_stopped() {
    let Stand { mut app, _home: home } = stand().await;
    app.facts.sql = true;
    for n in 0..40 {
        app.call("log_trace", json!({ "agent_name": format!("a{n}"), "output": "x" }), &Caller::local()).await.unwrap();
    }
    let all = ["traces"; 9].iter().enumerate().map(|(at, name)| format!("{name} t{at}")).collect::<Vec<_>>().join(", ");
    let endless = json!({ "sql": format!("SELECT sum(t1.cost_usd + t8.version) FROM {all}") });
    let error = app.call("query_sql", endless, &Caller::local()).await.unwrap_err();
    assert_eq!((error.code, error.retryable), (Code::StorageError, true), "{error}");
    let next = app.call("query_sql", json!({ "sql": "SELECT 1" }), &Caller::local()).await.unwrap();
    assert_eq!(next["rows"], json!([[1]]));
    drop(home);
}
