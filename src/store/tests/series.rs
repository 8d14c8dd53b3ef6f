//! Figures over time, by name and by rule, and the sessions of a window.

use std::sync::Arc;
use std::time::{Duration, Instant};

use iris_core::model::{EvalType, Evaluation, RuleResult, Tenant, Timestamp, Trace, VerdictState};
use serde_json::json;

use super::fixtures::*;
use super::pages::judge;
use crate::store::{By, Figures, Step, Store, Window, Write};

const HOUR: u64 = 3600;

fn window(since: u64, until: u64, names: &[(By, &str)]) -> Window {
    let names = names.iter().map(|(by, name)| (*by, (*name).to_owned())).collect();
    Window { since: at(since), until: at(until), names }
}

fn failed(rule: &str) -> RuleResult {
    serde_json::from_value(json!({
        "ruleName": rule, "category": "safety", "critical": false, "criticalSource": "default", "state": "fail", "passed": false,
        "score": 0.0, "message": "m", "kind": "detection", "question": "safe_output", "classes": [], "ruleVersion": 1, "saw": [], "weight": 1.0,
    }))
    .unwrap()
}

/// A trace that began at that second and its evaluation: passed, or failed by these rules.
async fn put(store: &Store, trace: Trace, rules: &[&str], id: &str) {
    let n_at = trace.timestamp;
    let mut evaluation = Evaluation {
        trace_id: Some(trace.trace_id),
        tenant: trace.tenant.clone(),
        created_at: n_at.after(Duration::from_secs(3)),
        rule_results: rules.iter().map(|rule| failed(rule)).collect(),
        ..evaluation(1, id, if rules.is_empty() { 1.0 } else { 0.0 })
    };
    evaluation.trace_version = Some(trace.version);
    judge(store, trace, evaluation).await;
}

fn begun(n: u64, seconds: u64) -> Trace {
    Trace { timestamp: at(seconds), cost_usd: Some(0.5), latency_ms: Some(100.0 * n as f64), ..trace(n, 1) }
}

/// Five traces in three hours, one of them in two versions, and one of another tenant.
async fn filled(store: &Store) {
    put(store, begun(1, 60), &[], "e1").await;
    put(store, begun(2, 120), &["no_pii", "r,\"2"], "e2").await;
    put(store, Trace { model: Some("m-2".to_owned()), ..begun(3, HOUR) }, &["no_pii"], "e3").await;
    put(store, Trace { session_id: None, model: None, ..begun(4, 2 * HOUR) }, &[], "e4").await;
    put(store, begun(5, 2 * HOUR + 60), &["no_pii"], "e5").await;
    // The newer version and the newer evaluation count.
    put(store, Trace { version: 2, cost_usd: Some(0.25), ..begun(5, 2 * HOUR + 60) }, &[], "e6").await;
    put(store, Trace { tenant: Tenant::new("red"), ..begun(6, 90) }, &["no_pii"], "e7").await;
    store.flush().await.unwrap();
}

fn shape(figures: &Figures) -> [u64; 4] {
    [figures.traces, figures.passed, figures.failed, figures.unknown]
}

#[test]
fn figures_count_each_trace_once_by_its_latest_verdict() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        filled(&store).await;
        let all = window(0, 4 * HOUR, &[]);
        let found = store.series(&Tenant::local(), &all, Step::Hour, By::Model).await.unwrap();
        assert_eq!(shape(&found.total), [5, 3, 2, 0]);
        assert_eq!((found.total.cost_usd, found.total.input_tokens), (Some(2.25), Some(5)));
        assert_eq!(found.total.latency_ms_p50, Some(300.0));
        let points: Vec<(Timestamp, [u64; 4])> = found.points.iter().map(|(time, one)| (*time, shape(one))).collect();
        let hour = |n: u64| Step::Hour.begin(at(n * HOUR));
        assert_eq!(points, [(hour(0), [2, 1, 1, 0]), (hour(1), [1, 0, 1, 0]), (hour(2), [2, 2, 0, 0])]);
        let names: Vec<(Option<&str>, u64)> =
            found.names.iter().map(|(name, one)| (name.as_deref(), one.traces)).collect();
        assert_eq!(names, [(Some("m-1"), 3), (Some("m-2"), 1), (None, 1)]);
        assert_eq!(found.rules, [("no_pii".to_owned(), 2), ("r,\"2".to_owned(), 1)]);
        let some = window(0, 4 * HOUR, &[(By::Model, "m-1"), (By::Agent, "planner")]);
        let found = store.series(&Tenant::local(), &some, Step::Day, By::Agent).await.unwrap();
        assert_eq!((shape(&found.total), found.points.len()), ([3, 2, 1, 0], 1));
        let nobody =
            store.series(&Tenant::local(), &window(9 * HOUR, 10 * HOUR, &[]), Step::Hour, By::Agent).await.unwrap();
        assert_eq!((shape(&nobody.total), nobody.points.len(), nobody.rules.len()), ([0; 4], 0, 0));
        let red = store.series(&Tenant::new("red"), &all, Step::Hour, By::Agent).await.unwrap();
        assert_eq!(shape(&red.total), [1, 0, 1, 0], "another tenant sees its own alone");
    });
}

#[test]
fn sessions_and_what_all_evaluations_said() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        assert_eq!(store.newest_trace(&Tenant::local()).await.unwrap(), None);
        filled(&store).await;
        let all = window(0, 4 * HOUR, &[]);
        let sessions = store.sessions(&Tenant::local(), &all, 10, 0).await.unwrap();
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        let one = &sessions[0];
        assert_eq!((one.session_id.as_str(), one.agents, shape(&one.figures)), ("s-1", 1, [4, 2, 2, 0]));
        let micros = |time: Timestamp| Timestamp::from_unix_nanos(time.as_unix_nanos() / 1000 * 1000);
        assert_eq!((one.first, one.last), (micros(at(60)), micros(at(2 * HOUR + 60))));
        assert!(store.sessions(&Tenant::local(), &all, 10, 1).await.unwrap().is_empty());
        assert_eq!(store.newest_trace(&Tenant::local()).await.unwrap(), Some(micros(at(2 * HOUR + 60))));
        let mut said = store.said(&Tenant::local(), &[trace_id(5), trace_id(6)]).await.unwrap();
        said.sort_by_key(|(_, _, state)| state.as_str());
        let expected = [VerdictState::Fail, VerdictState::Pass].map(|state| (trace_id(5), EvalType::All, state));
        assert_eq!(said, expected, "the other tenant's trace is none of ours");
        assert!(store.said(&Tenant::local(), &[]).await.unwrap().is_empty());
    });
}

/// Scenario: 200,000 judged traces.
/// Guarantees: none; prints how long the figures of all take.
#[test]
#[ignore = "a measurement"]
#[expect(clippy::print_stdout, reason = "a measurement says what it measured")]
fn figures_of_many_traces() {
    const TRACES: u64 = 200_000;
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        for n in 1..=TRACES {
            let trace = Box::new(Trace { timestamp: at(n), agent_name: format!("agent-{}", n % 9), ..trace(n, 1) });
            let rules = if n % 7 == 0 { vec![failed("no_pii")] } else { Vec::new() };
            let score = if n % 7 == 0 { 0.0 } else { 1.0 };
            let judged =
                Evaluation { rule_results: rules, created_at: at(n + 3), ..evaluation(n, &format!("e-{n}"), score) };
            let settled_through = crate::store::Settled::default();
            let write = Write::Judged { ticket: n, trace, evaluation: Arc::new(judged), settled_through };
            store.send_async(write).await.unwrap();
        }
        store.checkpoint().await.unwrap();
        for (what, since) in [("all", 0), ("the last tenth", TRACES * 9 / 10)] {
            let started = Instant::now();
            let window = window(since, TRACES + 10, &[]);
            let found = store.series(&Tenant::local(), &window, Step::Hour, By::Agent).await.unwrap();
            println!(
                "figures of {what} ({} traces): {:.1} ms",
                found.total.traces,
                started.elapsed().as_secs_f64() * 1e3
            );
        }
    });
}
