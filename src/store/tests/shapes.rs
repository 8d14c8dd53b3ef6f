//! Results of rules, stored by their shapes.

use iris_core::model::{Evaluation, RuleResult, Tenant};
use serde_json::json;

use super::fixtures::*;
use super::pages::judge;
use super::writing::count;
use crate::store::{self, Bounds, Error};

/// What a rule says of one output; all but the message, the score and the evidence is the same of every output.
fn result(rule: &str, n: u64) -> RuleResult {
    serde_json::from_value(json!({
        "ruleName": rule, "category": "safety", "critical": true, "criticalSource": "default", "state": "fail",
        "passed": false, "score": 0.25, "message": format!("{n} found"), "kind": "detection", "role": "veto",
        "question": "?", "classes": ["pii_leak"], "ruleVersion": 1, "saw": ["output"], "weight": 1.5,
        "uncertainty": {"basis": "measured", "n": 100}, "value": {"stat": "n", "value": n}, "stands": n > 1,
        "evidence": [{"kind": "count", "stat": "n", "unit": "items", "value": 1.0, "threshold": 2.0, "thresholdSource": "default"}],
    }))
    .unwrap()
}

fn skipped(rule: &str, why: &str) -> RuleResult {
    RuleResult { skipped: true, skip_reason: Some(why.to_owned()), role: None, ..result(rule, 0) }
}

fn judged(n: u64) -> Evaluation {
    let results = vec![result("a", n), result("b", n), skipped("c", &format!("no input {n}"))];
    Evaluation { rule_results: results, output_text: None, ..evaluation(n, &format!("e-{n}"), 0.2) }
}

/// Scenario: ten evaluations by the same three rules, before and after a start, and one by another.
/// Guarantees: each shape is stored once; every evaluation reads back as it was written, in a page and alone.
#[test]
fn results_come_back_whole_and_their_shapes_are_stored_once() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        for start in [0, 5] {
            let (store, _) = open(home.path());
            for n in start + 1..=start + 5 {
                judge(&store, trace(n, 1), judged(n)).await;
            }
            store.close(std::time::Duration::from_secs(5)).await.unwrap();
        }
        let (store, _) = open(home.path());
        assert_eq!(count(&store, "shapes").await, 3);
        for n in 1..=10 {
            assert_eq!(store.evaluation(&Tenant::local(), &format!("e-{n}")).await.unwrap(), Some(judged(n)));
            let of_trace = store.evaluations(&Tenant::local(), trace_id(n), Bounds::WHOLE).await.unwrap();
            assert_eq!(of_trace.items, [judged(n)]);
        }
        judge(&store, trace(11, 1), Evaluation { rule_results: vec![result("d", 1)], ..judged(11) }).await;
        store.flush().await.unwrap();
        assert_eq!(count(&store, "shapes").await, 4);
    });
}

/// Scenario: the first group with a shape cannot be written because of a neighbour; the next one can.
/// Guarantees: the shape is in the file with the rows that name it, also after another start.
#[test]
fn a_shape_is_stored_with_the_rows_that_name_it() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        let bad = Evaluation { score: f64::NAN, ..judged(1) };
        judge(&store, trace(1, 1), bad).await;
        judge(&store, trace(2, 1), judged(2)).await;
        store.flush().await.unwrap();
        assert_eq!(store.status().set_aside, 1);
        judge(&store, trace(3, 1), judged(3)).await;
        store.close(std::time::Duration::from_secs(5)).await.unwrap();
        let (store, _) = open(home.path());
        assert_eq!(count(&store, "shapes").await, 3);
        for n in [2, 3] {
            assert_eq!(store.evaluation(&Tenant::local(), &format!("e-{n}")).await.unwrap(), Some(judged(n)));
        }
    });
}

/// Scenario: a shape is gone from the file.
/// Guarantees: evaluations that name it are unreadable and say so; the store starts.
#[test]
fn an_evaluation_whose_shape_is_gone_is_unreadable() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        judge(&store, trace(1, 1), judged(1)).await;
        store.close(std::time::Duration::from_secs(5)).await.unwrap();
        let connection = store::open::engine(home.path(), &config()).unwrap();
        connection.execute("DELETE FROM shapes WHERE id = 2", []).unwrap();
        drop(connection);
        let (store, _) = open(home.path());
        let error = store.evaluation(&Tenant::local(), "e-1").await.unwrap_err();
        assert!(matches!(error, Error::Unreadable { table: "evaluations", .. }), "{error:?}");
        judge(&store, trace(2, 1), judged(2)).await;
        store.flush().await.unwrap();
        assert_eq!(store.evaluation(&Tenant::local(), "e-2").await.unwrap(), Some(judged(2)));
    });
}
