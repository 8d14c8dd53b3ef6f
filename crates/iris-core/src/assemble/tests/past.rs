//! Late spans, reopening after a start, and what a later judging may not take back.

use super::*;
use crate::model::{Evidence, RuleResult};

/// A trace judged, committed and let go.
fn let_go() -> Bench {
    let mut bench = Bench::new();
    bench.push(&[made(1, 1).role(Role::Agent)]);
    bench.pass(250);
    bench.judge(true);
    assert_eq!(bench.assembler.counts().open, 0);
    bench
}

fn committed(bench: &Bench) -> Loaded {
    Loaded { rows: bench.stored.clone(), version: 1, evaluation: Some(evaluation(1, 1, 1)) }
}

#[test]
fn a_late_span_loads_the_trace_and_makes_a_new_version() {
    let mut bench = let_go();
    bench.push(&[made(1, 2).under(1).role(Role::Tool)]);
    assert_eq!(bench.stored.len(), 2, "known to be an agent's: stored at once");
    assert!(bench.assembler.view(&key(1)).is_none(), "the store knows more of it");
    bench.pass(4_000);
    assert_eq!(bench.loads, [key(1)]);
    let loaded = committed(&bench);
    bench.assembler.loaded(bench.now, &key(1), loaded);
    bench.pass(0);
    assert_eq!(bench.settled.len(), 2);
    assert_eq!(bench.settled[1].version, 2);
    assert_eq!(Bench::spans_of(&bench.settled[1]), [1, 2]);
    assert_eq!(bench.settled[1].previous.as_ref().unwrap().id, "1-1");
    assert_eq!(bench.judge(true).settled_through.traces, 2);
}

#[test]
fn a_late_span_without_ai_reopens_it_too() {
    let mut bench = let_go();
    bench.push(&[made(1, 2).under(1)]);
    bench.pass(4_000);
    let loaded = committed(&bench);
    bench.assembler.loaded(bench.now, &key(1), loaded);
    bench.pass(0);
    assert_eq!(bench.settled.len(), 2);
}

#[test]
fn a_late_resend_is_not_judged_again() {
    let mut bench = let_go();
    bench.push(&[made(1, 1).role(Role::Agent)]);
    bench.pass(4_000);
    assert_eq!(bench.loads, [key(1)]);
    let loaded = committed(&bench);
    bench.assembler.loaded(bench.now, &key(1), loaded);
    bench.pass(100_000);
    assert_eq!(bench.settled.len(), 1);
    assert_eq!(bench.assembler.counts().open, 0);
    assert_eq!(bench.assembler.settled().traces, 2);
}

#[test]
fn a_load_that_lacks_remembered_rows_is_repeated() {
    let mut bench = let_go();
    bench.push(&[made(1, 2).under(1).role(Role::Tool)]);
    bench.pass(4_000);
    bench.assembler.loaded(bench.now, &key(1), Loaded::default());
    bench.pass(499);
    assert_eq!(bench.loads.len(), 1);
    bench.pass(1);
    assert_eq!(bench.loads.len(), 2);
}

#[test]
fn a_span_of_a_dropped_trace_settles_although_its_parents_are_gone() {
    let mut bench = Bench::new();
    bench.push(&[made(1, 1), made(1, 2).under(1)]);
    bench.pass(2_000);
    assert_eq!(bench.dropped.len(), 2);
    bench.push(&[made(1, 3).under(2).role(Role::Agent)]);
    bench.pass(7_000);
    assert_eq!(bench.settled.len(), 1);
    assert!(bench.loads.is_empty());
}

#[test]
fn an_orphan_of_an_unknown_trace_asks_the_store() {
    let mut bench = Bench::new();
    bench.push(&[made(1, 2).under(1).role(Role::Tool)]);
    bench.pass(30_000);
    assert_eq!(bench.loads, [key(1)]);
    let rows = vec![made(1, 1).role(Role::Agent).at(0, 0)];
    let loaded = Loaded { rows, version: 3, evaluation: Some(evaluation(1, 3, 0)) };
    bench.assembler.loaded(bench.now, &key(1), loaded);
    bench.pass(0);
    assert_eq!(bench.settled[0].version, 4);
    assert_eq!(Bench::spans_of(&bench.settled[0]), [1, 2]);
}

#[test]
fn an_orphan_asks_only_once() {
    let mut bench = Bench::new();
    bench.push(&[made(1, 2).under(1).role(Role::Tool)]);
    bench.pass(30_000);
    bench.assembler.loaded(bench.now, &key(1), Loaded::default());
    bench.pass(500_000);
    assert_eq!(bench.loads.len(), 1);
    assert!(bench.assembler.view(&key(1)).unwrap().provisional);
}

#[test]
fn a_trace_from_before_the_horizon_asks_before_it_settles() {
    let mut bench = Bench::new();
    bench.assembler.forgot(Timestamp::from_unix_nanos(1_001));
    bench.push(&[made(1, 1).role(Role::Agent)]);
    bench.pass(2_000);
    assert_eq!(bench.loads, [key(1)]);
    bench.assembler.loaded(bench.now, &key(1), Loaded::default());
    bench.pass(0);
    assert_eq!(bench.settled[0].version, 1);
}

#[test]
fn undecided_rows_of_a_trace_found_in_the_store_are_stored() {
    let mut bench = Bench::new();
    bench.assembler.forgot(Timestamp::from_unix_nanos(1_001));
    bench.push(&[made(1, 2).under(1)]);
    bench.pass(2_000);
    assert_eq!(bench.loads, [key(1)]);
    let rows = vec![made(1, 1).role(Role::Agent).at(0, 0)];
    let loaded = Loaded { rows, version: 1, evaluation: Some(evaluation(1, 1, 0)) };
    let effects = bench.assembler.loaded(bench.now, &key(1), loaded);
    bench.note(effects);
    assert_eq!(bench.stored.len(), 1, "what came, not what was there");
    bench.pass(4_000);
    assert_eq!(bench.settled[0].version, 2);
}

#[test]
fn the_memory_of_traces_is_bounded_and_forgetting_raises_the_horizon() {
    let settings = Settings { remembered_max: 2, ..Settings::default() };
    let mut bench = Bench::with(Config::default(), settings);
    for trace in 1..=3 {
        bench.push(&[made(trace, 1).role(Role::Agent)]);
        bench.pass(2_000);
        bench.judge(true);
    }
    assert_eq!(bench.assembler.counts().remembered, 2);
    bench.push(&[made(1, 2).role(Role::Agent)]);
    bench.pass(2_000);
    assert_eq!(bench.loads, [key(1)], "it began before the first was let go");
}

#[test]
fn a_reopened_trace_holds_the_position_until_it_is_judged() {
    let mut bench = Bench::new();
    let covered = Settled { traces: 5, logs: 7 };
    bench.assembler = Assembler::new(Config::default(), Settings::default(), Settled { traces: 9, logs: 8 });
    bench.assembler.reopen(bench.now, &key(1), covered);
    assert_eq!(bench.assembler.settled(), covered);
    bench.pass(2_000);
    let rows = vec![made(1, 1).role(Role::Agent).at(6, 0)];
    bench.assembler.loaded(bench.now, &key(1), Loaded { rows, ..Loaded::default() });
    bench.pass(0);
    assert_eq!(bench.judge(true).settled_through, Settled { traces: 9, logs: 8 });
}

#[test]
fn a_reopened_trace_with_nothing_new_is_not_judged() {
    let mut bench = Bench::new();
    bench.assembler.reopen(bench.now, &key(1), Settled::default());
    bench.pass(2_000);
    let rows = vec![made(1, 1).role(Role::Agent).at(6, 0), made(1, 1).role(Role::Agent).at(9, 0)];
    let loaded = Loaded { rows, version: 1, evaluation: Some(evaluation(1, 1, 6)) };
    bench.assembler.loaded(bench.now, &key(1), loaded);
    bench.pass(100_000);
    assert!(bench.settled.is_empty());
    assert_eq!(bench.assembler.counts().open, 0);
}

#[test]
fn a_reopened_trace_without_ai_holds_nothing() {
    let mut bench = Bench::new();
    bench.assembler = Assembler::new(Config::default(), Settings::default(), Settled { traces: 9, logs: 8 });
    bench.assembler.reopen(bench.now, &key(1), Settled { traces: 5, logs: 5 });
    bench.pass(2_000);
    let rows = vec![made(1, 2).under(1).at(6, 0)];
    bench.assembler.loaded(bench.now, &key(1), Loaded { rows, ..Loaded::default() });
    assert_eq!(bench.assembler.settled(), Settled { traces: 9, logs: 8 });
}

fn result(rule: &str, state: &str, role: &str, evidence: Vec<Evidence>) -> RuleResult {
    RuleResult {
        rule_name: rule.to_owned(),
        rule_id: None,
        category: "safety".to_owned(),
        critical: true,
        critical_source: "default".to_owned(),
        state: state.to_owned(),
        passed: state == "pass",
        score: 0.0,
        message: String::new(),
        skipped: false,
        skip_reason: None,
        skip_class: None,
        kind: "detection".to_owned(),
        role: Some(role.to_owned()),
        question: String::new(),
        classes: Vec::new(),
        rule_version: 1,
        origin: None,
        saw: Vec::new(),
        uncertainty: None,
        evidence,
        value: None,
        weight: 1.0,
        stands: false,
        seen_in_version: None,
    }
}

fn judging(id: &str, results: Vec<RuleResult>) -> Evaluation {
    Evaluation { id: id.to_owned(), rule_results: results, ..Evaluation::clone(&evaluation(1, 1, 1)) }
}

fn seen() -> Vec<Evidence> {
    vec![Evidence::Pattern { name: "leak".to_owned(), count: 1 }]
}

fn counted(value: f64) -> Vec<Evidence> {
    vec![Evidence::Count {
        stat: "length".to_owned(),
        unit: "characters".to_owned(),
        value,
        threshold: Some(50.0),
        threshold_source: None,
    }]
}

#[test]
fn a_fail_from_something_seen_stands_and_says_where_it_was_seen_first() {
    let first = judging("first", vec![result("no_pii", "fail", "veto", seen())]);
    let mut second = judging("second", vec![result("no_pii", "pass", "veto", Vec::new())]);
    assert!(stand(&first, &mut second));
    assert_eq!(second.rule_results[0].state, "fail");
    let mut third = judging("third", vec![result("no_pii", "pass", "veto", Vec::new())]);
    assert!(stand(&second, &mut third));
    assert_eq!(third.provenance["stands"], json!([{ "rule": "no_pii", "evaluation_id": "first" }]));
}

#[test]
fn a_fail_from_something_absent_heals() {
    for evidence in [Vec::new(), counted(3.0)] {
        let first = judging("first", vec![result("min_output_length", "fail", "risk", evidence)]);
        let mut second = judging("second", vec![result("min_output_length", "pass", "risk", Vec::new())]);
        assert!(!stand(&first, &mut second));
        assert_eq!(second.rule_results[0].state, "pass");
        assert_eq!(second.provenance, json!({}));
    }
}

#[test]
fn too_much_of_something_stands() {
    let first = judging("first", vec![result("cost", "fail", "veto", counted(99.0))]);
    let mut second = judging("second", vec![result("cost", "pass", "veto", Vec::new())]);
    assert!(stand(&first, &mut second));
}

#[test]
fn a_rule_that_advises_or_is_gone_or_fails_anyway_is_left_alone() {
    let first = judging(
        "first",
        vec![
            result("advice", "fail", "advisory", seen()),
            result("gone", "fail", "veto", seen()),
            result("again", "fail", "veto", seen()),
        ],
    );
    let results =
        vec![result("advice", "pass", "advisory", Vec::new()), result("again", "fail", "veto", counted(99.0))];
    let mut second = judging("second", results.clone());
    assert!(!stand(&first, &mut second));
    assert_eq!(second.rule_results, results);
}
