//! Field cases of assembly by their ids: orphans, late roots, endless traces, and when a trace counts as finished.

use super::*;

#[test]
fn g2_01_orphans_are_judged_as_partial_and_nothing_is_lost() {
    let mut bench = Bench::new();
    bench.push(&[made(1, 2).under(9).role(Role::Tool), made(1, 3).under(9).role(Role::Llm)]);
    bench.pass(600_000);
    bench.assembler.loaded(bench.now, &key(1), Loaded::default());
    bench.pass(600_000);
    assert_eq!(bench.settled.len(), 1);
    assert!(bench.settled[0].partial);
    assert_eq!(Bench::spans_of(&bench.settled[0]), [2, 3]);
    assert_eq!((bench.stored.len(), bench.dropped.len()), (2, 0));
}

#[test]
fn g2_02_a_late_root_is_merged_and_judged_once_more() {
    let mut bench = Bench::new();
    bench.push(&[2, 3, 4].map(|span| made(1, span).under(1).role(Role::Llm)));
    bench.pass(660_000);
    bench.assembler.loaded(bench.now, &key(1), Loaded::default());
    bench.pass(60_000);
    assert_eq!((bench.settled.len(), bench.settled[0].partial, bench.settled[0].version), (1, true, 1));
    let rows = bench.settled[0].rows.clone();
    let first = bench.judge(true);
    bench.push(&[made(1, 1).role(Role::Agent)]);
    bench.pass(10_000);
    if bench.settled.len() < 2 {
        let loaded = Loaded { rows, version: 1, evaluation: Some(evaluation(1, 1, 1)) };
        bench.assembler.loaded(bench.now, &key(1), loaded);
        bench.pass(60_000);
    }
    assert_eq!(bench.settled.len(), 2, "judged again exactly once");
    let again = &bench.settled[1];
    assert_eq!(
        (again.partial, again.version, again.previous.is_some()),
        (false, 2, true),
        "the old verdict is superseded"
    );
    assert_eq!(Bench::spans_of(again), [1, 2, 3, 4]);
    assert!(bench.judge(true).ticket > first.ticket);
    bench.pass(700_000);
    assert_eq!(bench.settled.len(), 2);
}

#[test]
fn g2_05_one_trace_with_endless_spans_stays_one_bounded_trace() {
    let settings = Settings { rows_max: 50, ..Settings::default() };
    let mut bench = Bench::with(Config::default(), settings);
    bench.push(&[made(1, 1).role(Role::Agent)]);
    for span in 2..=200 {
        bench.push(&[made(1, span).under(1).role(Role::Llm).text("words")]);
        bench.pass(10);
    }
    bench.pass(10_000);
    assert_eq!(bench.settled.len(), 1, "one row");
    let settling = &bench.settled[0];
    assert!(settling.partial && settling.cut, "rules are told that they did not see all");
    assert!(settling.rows.len() <= 51, "{}", settling.rows.len());
    assert_eq!(bench.stored.len(), 200, "what is not looked at is stored");
}

#[test]
fn g2_06_a_trace_is_finished_when_its_root_has_ended_and_nothing_comes() {
    let call = |span| made(1, span).under(1).role(Role::Llm);
    let root = || made(1, 1).role(Role::Agent);
    // All of it in one request.
    let mut bench = Bench::new();
    bench.push(&[call(2), call(3), call(4), root()]);
    bench.pass(2_000);
    assert_eq!(bench.settled.len(), 1);
    // A child every 25 s for 6 minutes, the root last.
    let mut bench = Bench::new();
    for span in 2..17 {
        bench.push(&[call(span)]);
        bench.pass(25_000);
    }
    assert!(bench.settled.is_empty(), "never split");
    bench.push(&[root()]);
    bench.pass(2_000);
    assert_eq!((bench.settled.len(), bench.settled[0].rows.len(), bench.settled[0].partial), (1, 16, false));
    // The root first, a child 10 s later.
    let mut bench = Bench::new();
    bench.push(&[root()]);
    bench.pass(10_000);
    assert_eq!(bench.settled.len(), 1);
    bench.judge(false);
    bench.push(&[call(2)]);
    bench.pass(60_000);
    assert_eq!((bench.settled.len(), bench.settled[1].rows.len()), (2, 2));
    assert!(bench.settled[1].previous.is_some());
}
