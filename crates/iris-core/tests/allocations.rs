//! How often judging an ordinary trace asks for memory. Counted, not timed: the figures are the same on every machine.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test reads what it likes")]

#[path = "it/load.rs"]
mod load;

use iris_core::evaluate::{Ruleset, Settings, judge_trace};
use iris_core::model::Timestamp;
use iris_core::rules::{Case, Knobs, RULES, Subject, run};

/// How often one judging may ask for memory, a little above what it does.
const ALLOCATIONS_MAX: u64 = 480;

/// Scenario: a trace of eight spans, judged by every rule, then written as the store writes it; and each rule by itself.
#[test]
fn judging_a_trace_takes_little_memory() {
    let trace = load::trace(7);
    let (ruleset, settings) = (Ruleset::built_in(), Settings::default());
    let judge = || judge_trace(&ruleset, &trace, &settings, Timestamp::default());
    // What is made once for all traces is made now.
    let evaluation = judge();
    let mut table = vec![("judge_trace".to_owned(), allocation_counter::measure(|| drop(judge())))];
    let json = || drop(serde_json::to_string(&evaluation));
    table.push(("evaluation to JSON".to_owned(), allocation_counter::measure(json)));
    let subject = Subject {
        output: trace.output.as_deref(),
        input: trace.input.as_deref(),
        tool_calls: trace.tool_calls.as_deref(),
        ..Subject::default()
    };
    let case = Case::new(&subject);
    for rule in RULES {
        let judge = || drop(run(*rule, &case, &Knobs::default()));
        table.push((format!("rule {}", rule.meta().name), allocation_counter::measure(judge)));
    }
    let shown: Vec<String> = table
        .iter()
        .map(|(what, info)| format!("{what:32} {:6} allocations {:8} bytes", info.count_total, info.bytes_total))
        .collect();
    let most = |what: &str| table.iter().find(|(name, _)| name == what).unwrap().1;
    assert!(most("judge_trace").count_total <= ALLOCATIONS_MAX, "{}", shown.join("\n"));
}
