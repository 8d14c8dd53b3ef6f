//! What judging an ordinary trace costs, and where the time goes: `cargo test -p iris-core --release --test it
//! _a_trace -- --ignored --nocapture`. By hand only; how much memory it takes is in `tests/allocations.rs`.

use std::hint::black_box;
use std::io::Write as _;
use std::time::Instant;

use iris_core::assemble::understand;
use iris_core::evaluate::{Ruleset, Settings, compose, judge_trace};
use iris_core::model::{Timestamp, Trace};
use iris_core::rules::{Case, Knobs, RULES, Subject, run};

use crate::load::{rows, trace};

const TRACES: u64 = 64;
const ROUNDS: usize = 60;

fn subject(trace: &Trace) -> Subject<'_> {
    Subject {
        output: trace.output.as_deref(),
        input: trace.input.as_deref(),
        tool_calls: trace.tool_calls.as_deref(),
        cost_usd: trace.cost_usd,
        cost_parts: trace.cost_parts.as_ref(),
        token_usage: trace.token_usage,
        finish_reasons: trace.runs.first().map(|run| run.finish_reasons.as_slice()).unwrap_or_default(),
        ..Subject::default()
    }
}

/// The mean over all traces of the least time that each took in many rounds, in microseconds: what else the machine did
/// is left out.
fn least<T>(of: &[T], mut work: impl FnMut(&T)) -> f64 {
    let mut least = vec![f64::MAX; of.len()];
    for _ in 0..ROUNDS {
        for (one, least) in of.iter().zip(&mut least) {
            let start = Instant::now();
            work(one);
            *least = least.min(start.elapsed().as_secs_f64());
        }
    }
    least.iter().sum::<f64>() * 1e6 / of.len() as f64
}

/// Scenario: sixty-four traces of eight spans each, different words in each: all rules over one case, and the frame
/// around them: results, provenance, verdict, JSON.
#[test]
#[ignore = "measures time"]
fn judging_a_trace() {
    let traces: Vec<Trace> = (0..TRACES).map(trace).collect();
    assert!(traces.iter().all(|trace| trace.runs.len() == 1));
    let (ruleset, settings) = (Ruleset::built_in(), Settings::default());
    let judge = |one: &Trace| judge_trace(&ruleset, one, &settings, Timestamp::default());
    let judged: Vec<_> = traces.iter().map(judge).collect();
    let subjects: Vec<Subject<'_>> = traces.iter().map(subject).collect();
    let all = least(&subjects, |subject| {
        let case = Case::new(subject);
        for rule in RULES {
            black_box(run(*rule, &case, &Knobs::default()));
        }
    });
    let whole = least(&traces, |one| drop(black_box(judge(one))));
    let rows: Vec<_> = (0..TRACES).map(rows).collect();
    let bytes: usize = judged.iter().map(|one| serde_json::to_string(one).unwrap().len()).sum();
    let table = [
        ("all rules", all),
        ("judge_trace", whole),
        ("judge_trace less all rules", whole - all),
        ("compose, as on every read", least(&judged, |one| drop(black_box(compose(one))))),
        ("evaluation to JSON", least(&judged, |one| drop(black_box(serde_json::to_string(one).unwrap())))),
        ("evaluation clone", least(&judged, |one| drop(black_box(one.clone())))),
        ("trace to JSON", least(&traces, |one| drop(black_box(serde_json::to_string(one).unwrap())))),
        ("understand", least(&rows, |rows| drop(black_box(understand(&rows[0].key(), 1, rows))))),
    ];
    let mut out = std::io::stderr().lock();
    for (what, micros) in table {
        writeln!(out, "{what:28} {micros:8.2} us a trace").unwrap();
    }
    writeln!(out, "{:28} {:8} bytes of JSON a trace", "evaluation", bytes / judged.len()).unwrap();
}

/// Scenario: each rule by itself, on the same traces, after those before it, so that what they share is there.
#[test]
#[ignore = "measures time"]
fn each_rule_of_a_trace() {
    let traces: Vec<Trace> = (0..TRACES).map(trace).collect();
    let subjects: Vec<Subject<'_>> = traces.iter().map(subject).collect();
    let mut least = vec![f64::MAX; RULES.len()];
    for _ in 0..ROUNDS {
        let mut sums = vec![0.0; RULES.len()];
        for subject in &subjects {
            let case = Case::new(subject);
            for (rule, sum) in RULES.iter().zip(&mut sums) {
                let start = Instant::now();
                black_box(run(*rule, &case, &Knobs::default()));
                *sum += start.elapsed().as_secs_f64();
            }
        }
        least.iter_mut().zip(sums).for_each(|(least, sum)| *least = least.min(sum));
    }
    let mut out = std::io::stderr().lock();
    for (rule, least) in RULES.iter().zip(least) {
        writeln!(out, "{:28} {:8.2} us a trace", rule.meta().name, least * 1e6 / TRACES as f64).unwrap();
    }
}
