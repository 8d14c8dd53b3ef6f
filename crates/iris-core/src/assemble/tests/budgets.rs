//! Undecided traces, spilling, the limits, and the position.

use super::*;

fn settings() -> Settings {
    Settings::default()
}

#[test]
fn a_trace_without_ai_is_dropped_and_never_stored() {
    let mut bench = Bench::new();
    bench.push(&[made(1, 1), made(1, 2).under(1)]);
    assert_eq!(bench.assembler.settled().traces, 0, "undecided rows hold the position");
    bench.pass(2_000);
    assert!(bench.stored.is_empty() && bench.settled.is_empty() && bench.loads.is_empty());
    assert_eq!(bench.dropped.len(), 2);
    assert!(bench.dropped.iter().all(|(_, why)| *why == Dropped::Other));
    assert_eq!(bench.assembler.settled().traces, 1);
    assert_eq!(bench.assembler.counts().open, 0);
}

#[test]
fn keep_other_traces_stores_it_without_judging() {
    let mut bench = Bench::with(Config::default(), Settings { keep_other_traces: true, ..settings() });
    bench.push(&[made(1, 1), made(1, 2).under(1)]);
    bench.pass(2_000);
    assert_eq!(bench.stored.len(), 2);
    assert!(bench.settled.is_empty() && bench.dropped.is_empty());
}

#[test]
fn an_agentic_span_decides_and_what_waited_is_stored() {
    let mut bench = Bench::new();
    bench.push(&[made(1, 1).unended(), made(1, 2).under(1)]);
    assert!(bench.stored.is_empty());
    bench.pass(5_000);
    bench.push(&[made(1, 3).under(2).role(Role::Agent), made(1, 4).under(3)]);
    assert_eq!(bench.stored.len(), 4);
    assert_eq!(bench.assembler.counts().undecided_bytes, 0);
    bench.push(&[made(1, 1)]);
    bench.pass(2_000);
    assert_eq!(bench.settled[0].rows.len(), 5);
}

#[test]
fn undecided_rows_are_stored_after_undecided_ms_and_hold_nothing() {
    let mut bench = Bench::new();
    bench.push(&[made(1, 2).under(1)]);
    bench.pass(9_999);
    assert!(bench.stored.is_empty());
    bench.pass(1);
    assert_eq!(bench.stored.len(), 1);
    assert_eq!(bench.assembler.settled().traces, 1);
    assert_eq!(bench.assembler.counts().plain, 1);
}

#[test]
fn undecided_ms_counts_from_the_first_row() {
    let mut bench = Bench::new();
    for span in 2..12 {
        bench.push(&[made(1, span).under(1)]);
        bench.pass(1_000);
    }
    assert_eq!(bench.stored.len(), 10);
}

#[test]
fn an_agent_that_appears_after_its_plain_spans_were_stored_is_judged_with_them() {
    let mut bench = Bench::new();
    bench.push(&[made(1, 2).under(1)]);
    bench.pass(11_000);
    let plain = bench.stored.clone();
    bench.push(&[made(1, 1).role(Role::Agent)]);
    bench.pass(2_000);
    assert_eq!(bench.loads, [key(1)]);
    assert!(bench.settled.is_empty());
    let mut rows = plain;
    rows.push(made(1, 1).role(Role::Agent).at(2, 0));
    bench.assembler.loaded(bench.now, &key(1), Loaded { rows, ..Loaded::default() });
    bench.pass(0);
    assert_eq!(Bench::spans_of(&bench.settled[0]), [1, 2]);
}

#[test]
fn undecided_rows_beyond_their_budget_are_stored_oldest_first() {
    let mut bench = Bench::with(Config::default(), Settings { undecided_bytes_max: 12_000, ..settings() });
    for trace in 1..=4 {
        bench.push(&[made(trace, 2).under(1).text(&"x".repeat(1_000))]);
    }
    let stored: Vec<_> = bench.stored.iter().map(|row| row.trace_id).collect();
    assert_eq!(stored, [trace_id(1)]);
    assert!(bench.assembler.counts().undecided_bytes <= 12_000);
}

#[test]
fn text_beyond_its_budget_is_spilled_longest_silent_first_and_loaded_back() {
    let mut bench = Bench::with(Config::default(), Settings { text_bytes_max: 24_000, ..settings() });
    for trace in 1..=3 {
        bench.push(&[made(trace, 2).under(1).role(Role::Tool).text(&"x".repeat(4_000))]);
        bench.pass(1);
    }
    assert_eq!(bench.spills, [key(1)]);
    let view = |trace| bench.assembler.view(&key(trace)).unwrap();
    assert_eq!((view(1).elsewhere, view(1).rows.len()), (Some(1), 0), "its row is only in the store");
    assert_eq!((view(2).elsewhere, view(2).rows.len()), (None, 1));
    bench.push(&[made(1, 1).role(Role::Agent)]);
    bench.pass(2_000);
    assert_eq!(bench.loads, [key(1)]);
    let rows = bench.stored.iter().filter(|row| row.trace_id == trace_id(1)).cloned().collect();
    bench.assembler.loaded(bench.now, &key(1), Loaded { rows, ..Loaded::default() });
    bench.pass(0);
    assert_eq!(Bench::spans_of(&bench.settled[0]), [1, 2]);
    assert!(!bench.settled[0].partial);
}

#[test]
fn under_load_a_judged_trace_keeps_no_text_while_it_waits_for_its_commit() {
    let mut bench = Bench::with(Config::default(), Settings { text_bytes_max: 36_000, ..settings() });
    bench.push(&[made(1, 1).role(Role::Agent).text(&"x".repeat(4_000))]);
    bench.pass(250);
    bench.judge(false);
    let view = bench.assembler.view(&key(1)).unwrap();
    assert_eq!((view.rows.len(), view.elsewhere, view.judged), (0, Some(1), true));
    bench.push(&[made(1, 2).under(1).role(Role::Tool)]);
    bench.pass(5_000);
    assert_eq!(bench.loads, [key(1)], "a late span brings it back");
    let rows = bench.stored.clone();
    bench.assembler.loaded(bench.now, &key(1), Loaded { rows, ..Loaded::default() });
    bench.pass(0);
    let again = bench.settled.last().unwrap();
    assert_eq!((Bench::spans_of(again), again.version, again.previous.is_some()), (vec![1, 2], 2, true));

    let mut calm = Bench::new();
    calm.push(&[made(1, 1).role(Role::Agent)]);
    calm.pass(250);
    calm.judge(false);
    assert_eq!(calm.assembler.view(&key(1)).unwrap().elsewhere, None);
}

#[test]
fn waiting_makes_room_while_whole_traces_hold_the_text() {
    let settings = Settings { text_bytes_max: 36_000, ..settings() };
    let text = "x".repeat(4_000);
    let mut whole = Bench::with(Config::default(), settings);
    whole.push(&[made(1, 1).role(Role::Agent).text(&text)]);
    assert!(whole.assembler.makes_room());
    whole.pass(250);
    assert!(whole.assembler.makes_room(), "while it is judged");
    whole.judge(true);
    assert!(!whole.assembler.makes_room());
    assert_eq!(whole.assembler.counts().closing_bytes, 0);

    // What these lack may stand in a record that is not read yet: nobody may wait for them.
    let mut torn = Bench::with(Config::default(), settings);
    torn.push(&[made(1, 2).under(1).role(Role::Agent).text(&text)]);
    torn.push(&[made(2, 1).role(Role::Agent).unended().text(&text)]);
    assert!(!torn.assembler.makes_room());
    torn.push(&[made(1, 1).role(Role::Agent)]);
    assert!(torn.assembler.makes_room(), "its parent came");
}

#[test]
fn the_tenant_that_holds_most_is_spilled() {
    let mut bench = Bench::with(Config::default(), Settings { text_bytes_max: 30_000, ..settings() });
    bench.push(&[made(1, 2).under(1).role(Role::Tool).tenant("small").text(&"x".repeat(2_000))]);
    for trace in 2..=5 {
        bench.pass(1);
        bench.push(&[made(trace, 2).under(1).role(Role::Tool).tenant("big").text(&"x".repeat(4_000))]);
    }
    assert!(!bench.spills.is_empty());
    assert!(bench.spills.iter().all(|key| key.tenant.as_str() == "big"));
}

#[test]
fn a_load_that_lacks_a_spilled_row_is_repeated_then_given_up_as_partial() {
    let mut bench = Bench::with(Config::default(), Settings { text_bytes_max: 0, ..settings() });
    bench.push(&[made(1, 1).role(Role::Agent)]);
    bench.push(&[made(1, 2).under(1).role(Role::Tool)]);
    bench.pass(2_000);
    assert_eq!(bench.loads.len(), 1);
    let stored = bench.stored.clone();
    for _ in 0..=20 {
        bench.assembler.loaded(bench.now, &key(1), Loaded { rows: stored[..1].to_vec(), ..Loaded::default() });
        bench.pass(500);
    }
    assert_eq!(bench.loads.len(), 21);
    assert_eq!(bench.settled.len(), 1);
    assert!(bench.settled[0].partial);
}

#[test]
fn a_failed_load_is_repeated() {
    let mut bench = Bench::with(Config::default(), Settings { text_bytes_max: 0, ..settings() });
    bench.push(&[made(1, 1).role(Role::Agent)]);
    bench.pass(2_000);
    bench.assembler.load_failed(bench.now, &key(1));
    bench.pass(1_999);
    assert_eq!(bench.loads.len(), 1);
    bench.pass(1);
    assert_eq!(bench.loads.len(), 2);
}

#[test]
fn beyond_open_max_the_oldest_is_closed_as_partial() {
    let config = Config { open_max: 3, ..Config::default() };
    let mut bench = Bench::with(config, settings());
    for trace in 1..=5 {
        bench.push(&[made(trace, 2).under(1).role(Role::Tool)]);
        bench.pass(10);
    }
    let closed: Vec<_> = bench.settled.iter().map(|settling| (settling.key.clone(), settling.partial)).collect();
    assert_eq!(closed, [(key(1), true), (key(2), true)]);
    bench.judge(true);
    assert_eq!(bench.assembler.counts().open, 4);
}

#[test]
fn beyond_open_max_the_oldest_undecided_is_stored_plain() {
    let config = Config { open_max: 2, ..Config::default() };
    let mut bench = Bench::with(config, settings());
    for trace in 1..=3 {
        bench.push(&[made(trace, 2).under(1)]);
    }
    assert_eq!(bench.stored.len(), 1);
    assert_eq!(bench.assembler.counts().open, 2);
    assert!(bench.settled.is_empty());
}

#[test]
fn rows_beyond_the_cap_are_stored_but_not_looked_at_and_the_root_still_counts() {
    let mut bench = Bench::with(Config::default(), Settings { rows_max: 5, ..settings() });
    for span in 2..=10 {
        bench.push(&[made(1, span).under(1).role(Role::Tool)]);
    }
    bench.push(&[made(1, 1).role(Role::Agent)]);
    bench.pass(2_000);
    assert_eq!(bench.stored.len(), 10);
    assert_eq!(bench.settled[0].rows.len(), 6);
    assert!(bench.settled[0].partial && bench.settled[0].cut);
    bench.judge(true);
    assert_eq!(bench.assembler.settled().traces, 10);
}

#[test]
fn the_cap_holds_for_undecided_rows_too() {
    let mut bench = Bench::with(Config::default(), Settings { rows_max: 5, ..settings() });
    for span in 2..=10 {
        bench.push(&[made(1, span).under(1)]);
    }
    assert_eq!(bench.stored.len(), 9);
    assert_eq!(bench.assembler.settled().traces, 9);
}

#[test]
fn the_position_waits_for_the_lowest_uncovered_row_of_each_lane() {
    let mut bench = Bench::new();
    bench.push(&[made(1, 1).role(Role::Agent)]);
    bench.push(&[made(2, 2).under(1).role(Role::Tool)]);
    bench.push_rows(Lane::Logs, 3, vec![log_of(1, 1, 3)]);
    bench.push_rows(Lane::Traces, 4, Vec::new());
    assert_eq!(bench.assembler.settled(), Settled { traces: 0, logs: 2 });
    bench.pass(2_000);
    assert_eq!(bench.assembler.settled(), Settled { traces: 0, logs: 2 }, "handed out is not covered");
    let judged = bench.judge(false);
    assert_eq!(judged.settled_through, Settled { traces: 1, logs: 3 });
    bench.pass(600_000);
    bench.assembler.loaded(bench.now, &key(2), Loaded::default());
    bench.pass(0);
    assert_eq!(bench.judge(false).settled_through, Settled { traces: 4, logs: 3 });
}

#[test]
fn a_trace_is_let_go_only_when_its_evaluation_is_committed() {
    let mut bench = Bench::new();
    bench.push(&[made(1, 1).role(Role::Agent)]);
    bench.pass(250);
    let first = bench.judge(false);
    assert!(bench.assembler.view(&key(1)).is_some());
    bench.push(&[made(2, 1).role(Role::Agent)]);
    bench.pass(250);
    let second = bench.judge(false);
    assert!(second.ticket > first.ticket);
    bench.assembler.committed(first.ticket);
    assert!(bench.assembler.view(&key(1)).is_none());
    assert!(bench.assembler.view(&key(2)).is_some());
    bench.assembler.committed(second.ticket);
    assert_eq!(bench.assembler.counts().open, 0);
}

#[test]
fn a_judging_that_failed_covers_its_rows() {
    let mut bench = Bench::new();
    bench.push(&[made(1, 1).role(Role::Agent)]);
    bench.pass(250);
    let judged = bench.assembler.judged(&key(1), None);
    assert_eq!(judged.settled_through.traces, 1);
    assert_eq!(bench.assembler.counts().open, 0);
}

#[test]
fn a_deleted_trace_is_forgotten_and_its_undecided_rows_are_dropped() {
    let mut bench = Bench::new();
    bench.push(&[made(1, 2).under(1)]);
    let effects = bench.assembler.forget(&key(1));
    bench.note(effects);
    assert_eq!(bench.dropped.len(), 1);
    assert_eq!(bench.assembler.settled().traces, 1);
    assert_eq!(bench.assembler.counts(), Counts::default());
}

#[test]
fn views_show_only_agents_of_the_tenant_newest_first() {
    let mut bench = Bench::new();
    bench.push(&[made(1, 2).under(1).role(Role::Tool), made(2, 2).under(1).role(Role::Tool), made(3, 2).under(1)]);
    bench.push(&[made(4, 2).under(1).role(Role::Tool).tenant("other")]);
    bench.push(&[made(5, 2).under(1).role(Role::Tool)]);
    let shown: Vec<_> = bench.assembler.views(&Tenant::local(), 2).into_iter().map(|view| view.key).collect();
    assert_eq!(shown, [key(5), key(2)]);
}
