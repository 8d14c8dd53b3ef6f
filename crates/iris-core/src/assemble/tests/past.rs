//! Late spans, and reopening after a start.

use super::*;

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
    let view = bench.assembler.view(&key(1)).unwrap();
    assert_eq!((view.elsewhere, view.rows.len(), view.judged), (Some(0), 1, false), "the store knows more of it");
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

/// What an earlier process let go of at 900, and one that began at 1000.
#[test]
fn what_an_earlier_process_knew_is_loaded_and_nothing_else_is() {
    let mut bench = Bench::new();
    let last = Timestamp::from_unix_nanos(900);
    bench.assembler.remember(&Known { key: key(1), version: 3, agentic: true, last });
    bench.push(&[made(1, 2).under(1)]);
    bench.push(&[made(2, 1).role(Role::Agent)]);
    bench.pass(60_000);
    assert_eq!(bench.loads, [key(1)]);
    assert_eq!(bench.settled.len(), 1, "the other needed nobody");
    let rows = vec![made(1, 1).role(Role::Agent).at(0, 0)];
    bench.assembler.loaded(bench.now, &key(1), Loaded { rows, version: 3, evaluation: Some(evaluation(1, 3, 0)) });
    bench.pass(60_000);
    assert_eq!(bench.settled[1].version, 4);
    assert_eq!(Bench::spans_of(&bench.settled[1]), [1, 2]);
}

#[test]
fn a_plain_trace_of_an_earlier_process_is_not_taken_for_a_dropped_one() {
    let mut bench = Bench::new();
    let last = Timestamp::from_unix_nanos(900);
    bench.assembler.remember(&Known { key: key(1), version: 0, agentic: false, last });
    bench.push(&[made(1, 1)]);
    bench.pass(20_000);
    bench.push(&[made(1, 2).under(1).role(Role::Agent)]);
    bench.pass(20_000);
    assert_eq!(bench.loads, [key(1)], "what it had is still in the store");
}

/// Scenario: an earlier process had more traces than can be remembered.
/// Guarantees: of the oldest it is known that they may be in the store; one that began as early and was not among them
/// asks nobody.
#[test]
fn of_more_than_are_remembered_the_oldest_are_asked_for() {
    let settings = Settings { remembered_max: 2, ..Settings::default() };
    let mut bench = Bench::with(Config::default(), settings);
    for (trace, last) in [(1, 900), (2, 2_000_000), (3, 3_000_000)] {
        let last = Timestamp::from_unix_nanos(last);
        bench.assembler.remember(&Known { key: key(trace), version: 1, agentic: true, last });
    }
    bench.push(&[made(4, 1).role(Role::Agent).starting(1)]);
    bench.pass(2_000);
    assert!(bench.loads.is_empty(), "it is new");
    bench.push(&[made(1, 2).role(Role::Agent)]);
    bench.pass(2_000);
    assert_eq!(bench.loads, [key(1)]);
}

#[test]
fn a_trace_let_go_again_is_forgotten_by_when_it_was_last() {
    let settings = Settings { remembered_max: 2, ..Settings::default() };
    let mut bench = Bench::with(Config::default(), settings);
    for (trace, last) in [(1, 100), (2, 200), (1, 300), (3, 400)] {
        let last = Timestamp::from_unix_nanos(last);
        bench.assembler.remember(&Known { key: key(trace), version: 1, agentic: true, last });
    }
    bench.push(&[made(2, 2).under(1)]);
    assert!(bench.stored.is_empty(), "it was the oldest: that it is an agent's must be asked first");
    bench.push(&[made(1, 2).under(1)]);
    assert_eq!(bench.stored.len(), 1, "it is remembered as an agent's");
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

/// Scenario: a trace that was judged is forgotten for others, and a span comes that claims to have begun long after.
/// Guarantees: the store is asked, whatever its spans claim, and the verdict that was stands before the new one.
#[test]
fn a_forgotten_trace_is_found_whenever_its_spans_claim_to_have_begun() {
    let settings = Settings { remembered_max: 2, ..Settings::default() };
    let mut bench = Bench::with(Config::default(), settings);
    for trace in 1..=3 {
        bench.push(&[made(trace, 1).role(Role::Agent)]);
        bench.pass(2_000);
        bench.judge(true);
    }
    assert_eq!(bench.assembler.counts().remembered, 2);
    bench.push(&[made(1, 2).role(Role::Agent).starting(u64::MAX)]);
    bench.push(&[made(4, 1).role(Role::Agent).starting(u64::MAX)]);
    bench.pass(2_000);
    assert_eq!(bench.loads, [key(1)], "the other is new");
    let rows = vec![made(1, 1).role(Role::Agent).at(0, 0)];
    bench.assembler.loaded(bench.now, &key(1), Loaded { rows, version: 1, evaluation: Some(evaluation(1, 1, 0)) });
    bench.pass(60_000);
    let last = bench.settled.iter().rfind(|settling| settling.key == key(1)).unwrap();
    assert_eq!((last.version, last.previous.is_some()), (2, true));
    assert_eq!(Bench::spans_of(last), [1, 2]);
}

/// Scenario: the same, and first a span comes that has nothing to do with an agent; an earlier process judged it.
/// Guarantees: it does not make of the trace one whose rows were dropped.
#[test]
fn a_plain_span_does_not_hide_a_forgotten_trace() {
    let mut bench = Bench::new();
    let mut forgotten = Forgotten::default();
    forgotten.insert(&key(1));
    bench.assembler =
        Assembler::new(Config::default(), Settings::default(), Settled::default()).with_forgotten(forgotten);
    bench.push(&[made(1, 2).starting(u64::MAX)]);
    bench.push(&[made(2, 1).starting(u64::MAX)]);
    bench.pass(20_000);
    assert_eq!(bench.loads, [key(1)]);
    let rows = vec![made(1, 1).role(Role::Agent).at(0, 0)];
    bench.assembler.loaded(bench.now, &key(1), Loaded { rows, version: 1, evaluation: Some(evaluation(1, 1, 0)) });
    bench.pass(60_000);
    let judged: Vec<_> = bench.settled.iter().map(|settling| (settling.version, settling.previous.is_some())).collect();
    assert_eq!(judged, [(2, true)]);
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

/// Scenario: damage took a trace's row and left its spans and the evaluation that covers them.
/// Guarantees: the trace is made anew, and what the evaluation said before goes with it.
#[test]
fn a_reopened_trace_that_is_missing_is_made_anew() {
    let mut bench = Bench::new();
    bench.assembler.reopen(bench.now, &key(1), Settled::default());
    bench.pass(2_000);
    let rows = vec![made(1, 1).role(Role::Agent).at(6, 0)];
    let loaded = Loaded { rows, version: 0, evaluation: Some(evaluation(1, 1, 6)) };
    bench.assembler.loaded(bench.now, &key(1), loaded);
    bench.pass(2_000);
    assert_eq!(bench.settled.len(), 1);
    assert!(bench.settled[0].previous.is_some());
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
