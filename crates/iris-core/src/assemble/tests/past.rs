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
