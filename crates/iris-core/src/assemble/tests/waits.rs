//! When a trace settles, becomes provisional, or is given up.

use super::*;

/// The silence after which a trace made of these requests settles.
fn settles_after(requests: &[&[Made]]) -> u64 {
    let mut bench = Bench::new();
    for request in requests {
        bench.push(request);
    }
    for waited in 0..700_000 {
        if !bench.settled.is_empty() {
            return waited;
        }
        bench.pass(1);
    }
    panic!("did not settle");
}

fn agent(trace: u8) -> Made {
    made(trace, 1).role(Role::Agent)
}

#[test]
fn complete_in_one_request_settles_after_complete_ms() {
    assert_eq!(settles_after(&[&[made(1, 2).under(1).role(Role::Llm), agent(1)]]), 250);
}

#[test]
fn a_trace_split_over_requests_settles_after_quiet_ms() {
    assert_eq!(settles_after(&[&[made(1, 2).under(1).role(Role::Llm)], &[agent(1)]]), 2_000);
}

#[test]
fn a_model_span_without_messages_waits_settle_ms() {
    assert_eq!(settles_after(&[&[made(1, 2).under(1).role(Role::Llm).hollow(), agent(1)]]), 7_000);
}

#[test]
fn a_tool_span_without_messages_does_not_wait_longer() {
    assert_eq!(settles_after(&[&[made(1, 2).under(1).role(Role::Tool).hollow(), agent(1)]]), 250);
}

#[test]
fn messages_that_come_as_logs_end_the_longer_wait() {
    let mut bench = Bench::new();
    bench.push(&[made(1, 2).under(1).role(Role::Llm).hollow(), agent(1)]);
    bench.pass(1_000);
    bench.push_rows(Lane::Logs, 9, vec![log_of(1, 2, 9)]);
    bench.pass(1_999);
    assert!(bench.settled.is_empty());
    bench.pass(1);
    assert_eq!(bench.settled.len(), 1);
    assert_eq!(bench.settled[0].rows.len(), 3);
    assert_eq!(bench.settled[0].seen_through, 9);
}

#[test]
fn several_resources_wait_settle_ms() {
    assert_eq!(settles_after(&[&[made(1, 2).under(1).role(Role::Llm).service("other"), agent(1)]]), 7_000);
}

#[test]
fn equal_resources_of_two_requests_are_one() {
    assert_eq!(settles_after(&[&[made(1, 2).under(1).role(Role::Llm)], &[agent(1)]]), 2_000);
}

#[test]
fn every_row_starts_the_silence_again() {
    let mut bench = Bench::new();
    bench.push(&[agent(1)]);
    for span in 2..20 {
        bench.pass(200);
        bench.push(&[made(1, span).under(1)]);
    }
    bench.pass(1_999);
    assert!(bench.settled.is_empty());
    bench.pass(1);
    assert_eq!(bench.settled.len(), 1);
    assert_eq!(bench.settled[0].rows.len(), 19);
    assert!(!bench.settled[0].partial);
}

#[test]
fn a_resend_does_not_start_the_silence_again() {
    let mut bench = Bench::new();
    bench.push(&[made(1, 2).under(1).role(Role::Llm)]);
    bench.push(&[agent(1)]);
    bench.pass(1_500);
    bench.push(&[agent(1)]);
    bench.pass(500);
    assert_eq!(bench.settled.len(), 1);
    assert_eq!(bench.dropped, [(Position { lane: Lane::Traces, seq: 3, ordinal: 0 }, Dropped::Duplicate)]);
}

#[test]
fn an_orphan_is_no_root() {
    let mut bench = Bench::new();
    bench.push(&[made(1, 2).under(9).role(Role::Agent)]);
    bench.pass(599_999);
    assert!(bench.settled.is_empty());
    bench.assembler.loaded(bench.now, &key(1), Loaded::default());
    bench.pass(1);
    assert_eq!(bench.settled.len(), 1);
    assert!(bench.settled[0].partial);
}

#[test]
fn a_root_with_a_missing_parent_below_it_waits_for_it() {
    let mut bench = Bench::new();
    bench.push(&[agent(1), made(1, 3).under(2).role(Role::Tool)]);
    bench.pass(10_000);
    assert!(bench.settled.is_empty());
    bench.push(&[made(1, 2).under(1)]);
    bench.pass(2_000);
    assert_eq!(bench.settled.len(), 1);
    assert!(!bench.settled[0].partial);
}

#[test]
fn a_remote_parent_makes_a_local_root() {
    assert_eq!(settles_after(&[&[made(1, 2).under(9).remote().role(Role::Agent)]]), 250);
}

#[test]
fn a_span_that_names_itself_as_parent_is_a_root() {
    assert_eq!(settles_after(&[&[made(1, 2).under(2).role(Role::Agent)]]), 250);
}

#[test]
fn an_unended_root_is_provisional_then_given_up() {
    let mut bench = Bench::new();
    bench.push(&[agent(1).unended()]);
    bench.pass(29_999);
    assert!(!bench.assembler.view(&key(1)).unwrap().provisional);
    bench.pass(1);
    assert!(bench.assembler.view(&key(1)).unwrap().provisional);
    assert!(bench.settled.is_empty());
    bench.pass(569_999);
    assert!(bench.settled.is_empty());
    bench.pass(1);
    assert!(bench.settled[0].partial);
}

#[test]
fn the_ended_form_of_a_root_settles_it_and_both_forms_are_kept() {
    let mut bench = Bench::new();
    bench.push(&[agent(1).unended()]);
    bench.pass(60_000);
    bench.push(&[agent(1)]);
    assert!(!bench.assembler.view(&key(1)).unwrap().provisional);
    bench.pass(2_000);
    assert_eq!(bench.settled.len(), 1);
    assert_eq!(bench.settled[0].rows.len(), 2);
    assert!(!bench.settled[0].partial);
    assert!(bench.dropped.is_empty());
}

#[test]
fn the_same_id_with_other_content_is_kept() {
    let mut bench = Bench::new();
    bench.push(&[agent(1).text("a"), agent(1).text("bb"), agent(1).text("a")]);
    bench.pass(250);
    assert_eq!(bench.settled[0].rows.len(), 2);
    assert_eq!(bench.dropped.len(), 1);
    assert_eq!(bench.stored.len(), 2);
}

#[test]
fn a_trace_that_is_never_silent_is_closed_at_an_age() {
    let mut bench = Bench::new();
    bench.push(&[agent(1).unended()]);
    for minute in 1..=60_u32 {
        bench.pass(60_000);
        bench.push(&[made(1, 2).under(1).text(&"x".repeat(minute as usize))]);
    }
    bench.pass(1);
    assert_eq!(bench.settled.len(), 1);
    assert!(bench.settled[0].partial);
}

#[test]
fn each_reopening_doubles_the_wait_up_to_a_minute() {
    let mut bench = Bench::new();
    bench.push(&[agent(1)]);
    let mut waits = Vec::new();
    for span in 2..10 {
        let mut waited = 0;
        let before = bench.settled.len();
        while bench.settled.len() == before {
            bench.pass(10);
            waited += 10;
        }
        waits.push(waited);
        bench.judge(false);
        bench.push(&[made(1, span).under(1).text("late")]);
    }
    assert_eq!(waits, [250, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
    assert_eq!(bench.settled.last().unwrap().version, 8);
    assert_eq!(bench.assembler.counts().reopened, 7);
}

#[test]
fn a_row_that_comes_while_its_trace_is_judged_reopens_it() {
    let mut bench = Bench::new();
    bench.push(&[agent(1)]);
    bench.pass(250);
    bench.push(&[made(1, 2).under(1).role(Role::Tool)]);
    bench.pass(100_000);
    assert_eq!(bench.settled.len(), 1, "one judging at a time");
    bench.judge(true);
    bench.pass(4_000);
    assert_eq!(bench.settled.len(), 2);
    assert_eq!(Bench::spans_of(&bench.settled[1]), [1, 2]);
    assert_eq!(bench.settled[1].previous.as_ref().unwrap().trace_version, Some(1));
}

#[test]
fn two_tenants_may_use_the_same_trace_id() {
    let mut bench = Bench::new();
    bench.push(&[agent(1), agent(1).tenant("other")]);
    bench.pass(250);
    assert_eq!(bench.settled.len(), 2);
    assert!(bench.settled.iter().all(|settling| settling.rows.len() == 1));
}

#[test]
fn without_room_nothing_is_handed_out_and_nothing_lost() {
    let mut bench = Bench::new();
    for trace in 1..=5 {
        bench.push(&[agent(trace)]);
    }
    bench.now += ms(250);
    let effects = bench.assembler.tick(bench.now, Room { judgings: 0, loads: 0 });
    assert!(effects.is_empty());
    for left in (1..=5).rev() {
        assert_eq!(bench.settled.len(), 5 - left);
        let effects = bench.assembler.tick(bench.now, Room { judgings: 1, loads: 0 });
        bench.note(effects);
    }
    assert_eq!(bench.settled.len(), 5);
}

#[test]
fn a_load_without_room_keeps_nothing_else_waiting() {
    let mut bench = Bench::new();
    bench.assembler.reopen(bench.now, &key(1), Settled::default());
    bench.push(&[agent(2)]);
    bench.now += ms(2_000);
    let effects = bench.assembler.tick(bench.now, Room { judgings: 1, loads: 0 });
    bench.note(effects);
    assert_eq!(bench.settled.len(), 1);
    assert!(bench.loads.is_empty());
    bench.pass(100);
    assert_eq!(bench.loads, [key(1)]);
}

#[test]
fn steps_that_came_as_log_records_settle_by_silence_alone() {
    let recorded = |made: &Made, seq: u64| {
        let mut row = Row::clone(&made.at(seq, 0));
        row.position.lane = Lane::Logs;
        Arc::new(row)
    };
    let mut bench = Bench::new();
    // What began the run may never come.
    bench.push_rows(Lane::Logs, 1, vec![recorded(&made(1, 2).under(9).role(Role::Llm).hollow(), 1)]);
    bench.pass(20_000);
    bench.push_rows(Lane::Logs, 2, vec![recorded(&made(1, 3).under(9).role(Role::Tool), 2)]);
    bench.pass(29_999);
    assert!(bench.settled.is_empty());
    bench.pass(1);
    assert_eq!(bench.settled.len(), 1);
    assert!(!bench.settled[0].partial);
    assert_eq!(bench.settled[0].rows.len(), 2);
}
