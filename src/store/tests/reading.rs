//! Pages of traces and the figures of a window.

use std::sync::Arc;
use std::time::Duration;

use iris_core::contract::{HourCount, NameCount, SortBy};
use iris_core::model::{Evaluation, RuleResult, Tenant, Timestamp, ToolCall, Trace, VerdictState};
use serde_json::json;

use super::fixtures::*;
use crate::store::known;
use crate::store::{Budget, Settled, Store, TracePage, TraceQuery, Write};

async fn judge(store: &Store, trace: Trace, evaluation: Evaluation) {
    let (trace, evaluation) = (Box::new(trace), Arc::new(evaluation));
    let settled_through = Settled::default();
    store.send_async(Write::Judged { ticket: 1, trace, evaluation, settled_through }).await.unwrap();
}

fn failing(rule: &str) -> RuleResult {
    serde_json::from_value(json!({
        "ruleName": rule, "category": "safety", "critical": true, "criticalSource": "default", "state": "fail",
        "passed": false, "score": 0.0, "message": "found", "kind": "detection", "question": "?", "classes": [],
        "ruleVersion": 1, "saw": [], "weight": 1.0
    }))
    .unwrap()
}

/// Four traces: 1 has two versions, 2 was judged twice, 3 knows no latency, 4 is another tenant's.
async fn filled(home: &std::path::Path) -> Store {
    let (store, _) = open(home);
    judge(&store, Trace { agent_name: "old name".to_owned(), ..trace(1, 1) }, evaluation(1, "e-1", 0.9)).await;
    judge(&store, Trace { cost_usd: Some(9.0), ..trace(2, 1) }, evaluation(2, "e-2", 0.9)).await;
    let mut again = evaluation(2, "e-3", 0.2);
    again.rule_results = vec![failing("no_pii")];
    judge(&store, Trace { cost_usd: Some(9.0), latency_ms: Some(1.0), ..trace(2, 2) }, again).await;
    let mut second = evaluation(1, "e-4", 0.7);
    second.created_at = at(200);
    judge(&store, trace(1, 2), second).await;
    let quiet = Trace { latency_ms: None, framework: None, agent_name: "other".to_owned(), ..trace(3, 1) };
    let mut unlinked = evaluation(3, "e-5", 1.0);
    unlinked.trace_id = None;
    judge(&store, quiet, unlinked).await;
    let stranger = Tenant::new("stranger");
    let theirs = Evaluation { tenant: stranger.clone(), ..evaluation(1, "e-6", 0.0) };
    judge(&store, Trace { tenant: stranger, ..trace(1, 9) }, theirs).await;
    store.flush().await.unwrap();
    store
}

async fn ids(store: &Store, query: TraceQuery) -> (Vec<u64>, u64) {
    let query = if query.limit == 0 { TraceQuery { limit: 50, ..query } } else { query };
    let page = store.traces(&Tenant::local(), &query, Budget::WHOLE).await.unwrap();
    let number = |trace: &Trace| (1..9).find(|n| trace_id(*n) == trace.trace_id).unwrap();
    (page.rows.iter().map(|row| number(&row.trace)).collect(), page.total)
}

/// Scenario: every filter, alone.
/// Guarantees: newest versions and latest evaluations only; tenants do not see each other; `total` counts all pages.
#[test]
fn filters_look_at_what_is_newest() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let store = filled(home.path()).await;
        let all = TraceQuery::default;
        let text = |text: &str| Some(text.to_owned());
        for (query, expected) in [
            (all(), vec![3, 2, 1]),
            (TraceQuery { agent_name: text("planner"), ..all() }, vec![2, 1]),
            (TraceQuery { agent_name: text("old name"), ..all() }, vec![]),
            (TraceQuery { framework: text("langchain"), ..all() }, vec![2, 1]),
            (TraceQuery { session_id: text("s-1"), ..all() }, vec![3, 2, 1]),
            (TraceQuery { session_id: text("s' OR 1=1"), ..all() }, vec![]),
            (TraceQuery { trace_id: Some(trace_id(2)), ..all() }, vec![2]),
            (TraceQuery { since: Some(at(2)), ..all() }, vec![3, 2]),
            (TraceQuery { until: Some(at(2)), ..all() }, vec![2, 1]),
            (TraceQuery { min_score: Some(0.8), ..all() }, vec![]),
            (TraceQuery { min_score: Some(0.7), ..all() }, vec![1]),
            (TraceQuery { max_score: Some(0.7), ..all() }, vec![2, 1]),
            (TraceQuery { verdict: Some(VerdictState::Fail), ..all() }, vec![2]),
            (TraceQuery { rule: text("no_pii"), ..all() }, vec![2]),
            (TraceQuery { rule: text("pii"), ..all() }, vec![]),
        ] {
            let (found, total) = ids(&store, query.clone()).await;
            assert_eq!(found, expected, "{query:?}");
            assert_eq!(total, expected.len() as u64, "{query:?}");
        }
        let page = store.traces(&Tenant::local(), &TraceQuery { limit: 50, ..all() }, Budget::WHOLE).await.unwrap();
        let latest: Vec<_> = page.rows.iter().map(|row| row.evaluation.as_ref().map(|e| e.id.as_str())).collect();
        assert_eq!(latest, [None, Some("e-3"), Some("e-4")]);
        assert_eq!(page.rows[2].trace, Trace { runs: Vec::new(), ..trace(1, 2) });
        let one = store.trace(&Tenant::local(), trace_id(1)).await.unwrap().unwrap();
        assert_eq!(one.version, 2);
    });
}

/// Scenario: each order, and pages.
/// Guarantees: unknown values come last both ways; pages do not overlap.
#[test]
fn orders_and_pages() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let store = filled(home.path()).await;
        for (sort_by, ascending, expected) in [
            (SortBy::Timestamp, true, [1, 2, 3]),
            (SortBy::LatencyMs, false, [1, 2, 3]),
            (SortBy::LatencyMs, true, [2, 1, 3]),
            (SortBy::CostUsd, false, [2, 3, 1]),
        ] {
            let query = TraceQuery { sort_by, ascending, ..TraceQuery::default() };
            assert_eq!(ids(&store, query).await.0, expected, "{sort_by:?} {ascending}");
        }
        for (offset, expected) in [(0, vec![3, 2]), (2, vec![1]), (5, vec![])] {
            let query = TraceQuery { limit: 2, offset, ..TraceQuery::default() };
            assert_eq!(ids(&store, query).await, (expected, 3));
        }
    });
}

/// Scenario: a window with traces, one of which failed in a tool call only.
/// Guarantees: figures as the contract has them; an empty window has nulls where there is no mean.
#[test]
fn summaries() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let store = filled(home.path()).await;
        let failed = ToolCall { error: Some("timeout".to_owned()), ..ToolCall::default() };
        let late = Trace {
            tool_calls: Some(vec![failed]),
            timestamp: at(3700),
            cost_usd: None,
            latency_ms: Some(0.555),
            ..trace(5, 1)
        };
        judge(&store, late, evaluation(5, "e-7", 0.1)).await;
        store.flush().await.unwrap();
        let summary = store.summary(&Tenant::local(), at(0), at(4000)).await.unwrap();
        assert_eq!(summary.total_traces, 4);
        assert_eq!(summary.avg_latency_ms, Some(((1234.5 + 1.0 + 0.555) / 3.0 * 100.0_f64).round() / 100.0));
        assert!((summary.total_cost_usd - (9.0 + 2.0 / 3.0)).abs() < 1e-9, "{summary:?}");
        assert_eq!(summary.error_rate, 0.25);
        // e-1, e-2, e-4 and e-5 passed, e-3 and e-7 did not.
        assert_eq!(summary.eval_pass_rate, Some(4.0 / 6.0));
        let hour = |n: u64| Timestamp::from_unix_nanos(DAY + n * 3600 * SECOND).to_string();
        assert_eq!(
            summary.traces_per_hour,
            [HourCount { hour: hour(0), count: 3 }, HourCount { hour: hour(1), count: 1 }]
        );
        let agent = |name: &str, count| NameCount { agent_name: name.to_owned(), count };
        assert_eq!(summary.top_agents, [agent("planner", 3), agent("other", 1)]);
        let empty = store.summary(&Tenant::local(), at(90_000), at(90_001)).await.unwrap();
        assert_eq!((empty.total_traces, empty.avg_latency_ms, empty.eval_pass_rate), (0, None, None));
        store.close(Duration::from_secs(5)).await.unwrap();
    });
}

/// Scenario: many rows of several requests share resources.
/// Guarantees: loading shares them again instead of copying them.
#[test]
fn loaded_rows_share_their_resource() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        store.send_async(packed(rows(1, 1, 20))).await.unwrap();
        store.flush().await.unwrap();
        let loaded = store.load(&key(1)).await.unwrap();
        let resources: Vec<_> = loaded.rows.iter().map(|row| Arc::as_ptr(&row.span().unwrap().resource)).collect();
        assert!(resources.windows(2).all(|pair| pair[0] == pair[1]));
    });
}

/// Scenario: 700 traces in the order of time and two that are not, some in several versions, another tenant's among them.
/// Guarantees: the first pages, found near the end of the table, are those that sorting everything gives.
#[test]
fn the_newest_are_the_same_near_the_end_as_in_all() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        for n in 1..=700_u64 {
            judge(&store, Trace { timestamp: at(n), ..trace(n, 1) }, evaluation(n, &format!("e-{n}"), 0.9)).await;
            if n % 7 == 0 {
                // A later span moves the beginning.
                let moved = if n % 14 == 0 { at(n + 40) } else { at(n.saturating_sub(300)) };
                judge(&store, Trace { timestamp: moved, ..trace(n, 2) }, evaluation(n, &format!("e-{n}-2"), 0.1)).await;
            }
            if n % 5 == 0 {
                let stranger = Tenant::new("stranger");
                let theirs = Evaluation { tenant: stranger.clone(), ..evaluation(n, &format!("s-{n}"), 0.0) };
                judge(&store, Trace { tenant: stranger, timestamp: at(5000 + n), ..trace(n, 1) }, theirs).await;
            }
        }
        for n in [3, 400] {
            judge(&store, Trace { timestamp: at(9000 + n), ..trace(n, 2) }, evaluation(n, &format!("e-{n}-2"), 0.1))
                .await;
        }
        store.checkpoint().await.unwrap();
        let page = async |query: TraceQuery| store.traces(&Tenant::local(), &query, Budget::WHOLE).await.unwrap();
        for (limit, offset) in [(1, 0), (50, 0), (50, 50), (7, 130), (200, 1), (50, 690), (50, 700)] {
            let plain = TraceQuery { limit, offset, ..TraceQuery::default() };
            let whole = page(TraceQuery { since: Some(Timestamp::default()), ..plain.clone() }).await;
            let quick = page(plain).await;
            let ids = |page: &TracePage| page.rows.iter().map(|row| row.trace.trace_id).collect::<Vec<_>>();
            assert_eq!((ids(&quick), quick.total), (ids(&whole), 700), "{limit} from {offset}");
            assert!(quick == whole, "{limit} from {offset}: values or verdicts differ");
        }
    });
}

/// Scenario: words at the beginning, deep inside and across two pieces of values far longer than a row.
/// Guarantees: each is found, whatever its case and accents, with the right total; what stands nowhere is not.
#[test]
fn a_search_reads_the_whole_of_long_values() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        let filler = "lorem ipsum ".repeat(5000);
        // Pieces have 4,096 bytes: this word lies across the end of the second.
        let across = format!("{}Zwölfkreuz{}", &filler[..2 * 4096 - 5], &filler[..20_000]);
        let texts = [format!("Anfang {filler}"), format!("{filler}Überraschung{filler}"), across, filler.clone()];
        for (n, text) in (1..).zip(&texts) {
            let long = Trace { output: Some(text.clone()), timestamp: at(n), ..trace(n, 1) };
            judge(&store, long, Evaluation { output_text: None, ..evaluation(n, &format!("e-{n}"), 0.9) }).await;
        }
        store.checkpoint().await.unwrap();
        for (words, found) in [
            (vec!["anfang"], vec![1]),
            (vec!["UBERRASCHUNG"], vec![2]),
            (vec!["zwolfkreuz"], vec![3]),
            (vec!["ZWÖLFKREUZ", "ipsum"], vec![3]),
            (vec!["lorem"], vec![4, 3, 2, 1]),
            (vec!["nowhere"], vec![]),
        ] {
            let query =
                TraceQuery { words: words.iter().map(|word| (*word).to_owned()).collect(), ..TraceQuery::default() };
            assert_eq!(ids(&store, query.clone()).await, (found.clone(), found.len() as u64), "{words:?}");
            let beyond = TraceQuery { offset: 10, ..query };
            assert_eq!(ids(&store, beyond).await.1, found.len() as u64, "{words:?}: the total on a page beyond");
        }
    });
}

/// Scenario: an earlier process judged five traces, of which a start remembers two.
/// Guarantees: the others are among those that it knows to be in the file, whatever number of rows is read at a time.
#[test]
fn a_start_knows_of_every_trace_that_was_judged() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        for n in 1..=5 {
            store.send_async(packed(rows(n, n, 1))).await.unwrap();
            judge(&store, trace(n, 1), evaluation(n, &format!("e-{n}"), 0.9)).await;
        }
        store.close(Duration::from_secs(5)).await.unwrap();
        let file = duckdb::Connection::open(home.path().join("iris.duckdb")).unwrap();
        let (known, horizon) = known::known(&file, 2).unwrap();
        assert_eq!(known.len(), 2);
        assert!(horizon > Timestamp::default());
        for stretch_rows in [1, 2, 5, 100] {
            let judged = known::judged(&file, stretch_rows).unwrap();
            assert!((1..=5).all(|n| judged.may_contain(&key(n))));
            assert!(!(6..=50).any(|n| judged.may_contain(&key(n))));
        }
    });
}
