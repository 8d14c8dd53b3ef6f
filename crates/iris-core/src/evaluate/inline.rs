//! Judging a trace that settled: every run of it, one row, an id that replay finds again.
//!
//! With several runs each rule judges every run, and its one stored result is the worst it said: fail before a skip
//! for being defeated, before pass, before a skip for lack of input. Evidence names its run (`runs[1].output`). What the
//! row says was supplied is what any run supplied, except the output: that is the trace's own answer, its last run's.

use std::cmp::Reverse;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::engine::{Identity, Texts, assemble, inputs, judge};
use super::prepared::Prepared;
use super::ruleset::{Occasion, hex};
use super::{Ruleset, Settings};
use crate::model::{EVERY_SPAN, EvalType, Evaluation, Evidence, RuleResult, Run, Timestamp, Trace, UNMAPPED};
use crate::rules::{Case, EVIDENCE_MAX, Need, Subject};

/// How many runs of one trace are judged; a trace with more says so in its results.
const RUNS_MAX: usize = 64;

/// What judging depends on beside the trace, the rules and the settings.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// When it is.
    pub now: Timestamp,
    /// What earlier runs of the trace's agent cost in USD, the oldest first; empty when nobody knows.
    pub cost_history: &'a [f64],
    /// Whether the budget for this trace is spent: the rules still to run are skipped as defeated then, in this run of
    /// the trace and in every later one.
    pub is_spent: &'a dyn Fn() -> bool,
}

impl Given<'_> {
    /// A time, no history and no budget.
    pub fn at(now: Timestamp) -> Self {
        Self { now, cost_history: &[], is_spent: &|| false }
    }
}

/// Judges a settled trace. The id follows from tenant, trace, version and ruleset, so judging again gives the same row.
pub fn judge_trace(ruleset: &Ruleset, trace: &Trace, settings: &Settings, now: Timestamp) -> Evaluation {
    judge_trace_within(ruleset, trace, settings, &Given::at(now))
}

/// The same with what else is given.
pub fn judge_trace_within(ruleset: &Ruleset, trace: &Trace, settings: &Settings, given: &Given<'_>) -> Evaluation {
    let prepared = ruleset.prepared(Occasion::Trace, settings, &settings.ingest_required_evidence);
    judged(ruleset, trace, &prepared, "inline", given)
}

/// Judges a trace that is still going on, to be shown and never stored: what has not come yet is not a finding, and
/// nothing is passed for the lack of it.
pub fn provisional(ruleset: &Ruleset, trace: &Trace, settings: &Settings, now: Timestamp) -> Evaluation {
    provisional_within(ruleset, trace, settings, &Given::at(now))
}

/// The same with what else is given.
pub fn provisional_within(ruleset: &Ruleset, trace: &Trace, settings: &Settings, given: &Given<'_>) -> Evaluation {
    let prepared = ruleset.prepared(Occasion::Trace, settings, &settings.ingest_required_evidence);
    judged(ruleset, trace, &prepared, "provisional", given)
}

/// Judges a conversation of bare traces as one trajectory, to be shown and never stored: what has not come yet is not a
/// finding, because the next call may follow.
pub fn conversation_within(ruleset: &Ruleset, trace: &Trace, settings: &Settings, given: &Given<'_>) -> Evaluation {
    let prepared = ruleset.prepared(Occasion::Trace, settings, &settings.ingest_required_evidence);
    judged(ruleset, trace, &prepared, "conversation", given)
}

fn judged(ruleset: &Ruleset, trace: &Trace, prepared: &Prepared, why: &str, given: &Given<'_>) -> Evaluation {
    let Given { now, cost_history, is_spent } = *given;
    let runs = subjects(trace, cost_history);
    let mut merged: Vec<RuleResult> = Vec::new();
    let mut carried = [false; Need::ALL.len()];
    for (at, subject) in runs.iter().enumerate() {
        let case = Case::new(subject);
        let results = judge(ruleset, &case, prepared, EvalType::All, is_spent);
        carried.iter_mut().zip(Need::ALL).for_each(|(any, need)| *any |= case.carries(*need));
        let results =
            results.into_iter().map(|result| if runs.len() > 1 { in_run(result, at, runs.len()) } else { result });
        if merged.is_empty() {
            merged = results.collect();
        } else {
            merged = merged.into_iter().zip(results).map(|(before, next)| worse(before, next)).collect();
        }
    }
    let identity = Identity {
        id: derived_id(&[
            why,
            trace.tenant.as_str(),
            &trace.trace_id.to_string(),
            &trace.version.to_string(),
            ruleset.hash(),
        ]),
        tenant: trace.tenant.clone(),
        trace_id: Some(trace.trace_id),
        trace_version: Some(trace.version),
        seen_through: trace.seen_through,
        position: None,
        inline: true,
    };
    let supplied = supplied(&carried, trace);
    // The version of the trace that the row names holds the text; a second copy would double what is stored.
    let texts = Texts { output: None, expected: None };
    assemble(ruleset, prepared, EvalType::All, identity, now, merged, supplied, texts)
}

fn subjects<'a>(trace: &'a Trace, cost_history: &'a [f64]) -> Vec<Subject<'a>> {
    let knows_calls = trace.tool_calls.is_some();
    if trace.runs.len() > 1 {
        return trace.runs.iter().take(RUNS_MAX).map(|run| of_run(run, knows_calls)).collect();
    }
    vec![Subject {
        output: trace.output.as_deref(),
        input: trace.input.as_deref(),
        tool_calls: trace.tool_calls.as_deref(),
        cost_usd: trace.cost_usd,
        // What is known is what whole traces cost, so it says nothing of one run among several.
        cost_history,
        cost_parts: trace.cost_parts.as_ref(),
        token_usage: trace.token_usage,
        finish_reasons: trace.runs.first().map(|run| run.finish_reasons.as_slice()).unwrap_or_default(),
        ..Subject::default()
    }]
}

fn of_run(run: &Run, knows_calls: bool) -> Subject<'_> {
    Subject {
        output: run.output.as_deref(),
        input: run.input.as_deref(),
        tool_calls: (knows_calls || !run.tool_calls.is_empty()).then_some(run.tool_calls.as_slice()),
        cost_usd: run.cost_usd,
        cost_parts: run.cost_parts.as_ref(),
        token_usage: run.token_usage,
        finish_reasons: &run.finish_reasons,
        ..Subject::default()
    }
}

/// Points a result at its run.
fn in_run(mut result: RuleResult, at: usize, of: usize) -> RuleResult {
    for evidence in &mut result.evidence {
        if let Evidence::Span { source, .. } = evidence {
            *source = format!("runs[{at}].{source}");
        }
    }
    if result.state == "fail" {
        result.message = format!("run {} of {of}: {}", at + 1, result.message);
    }
    result
}

/// How bad a result is.
fn gravity(result: &RuleResult) -> u8 {
    match (&*result.state, result.skip_class.as_deref()) {
        ("fail", _) => 3,
        (_, Some("defeated" | "config_invalid")) => 2,
        ("pass", _) => 1,
        _ => 0,
    }
}

/// The worse of two results of one rule, with what both saw; two failures keep the evidence of both.
fn worse(before: RuleResult, next: RuleResult) -> RuleResult {
    let both_failed = gravity(&before) == 3 && gravity(&next) == 3;
    let mut pair = [before, next];
    pair.sort_by_key(|result| Reverse(gravity(result)));
    let [mut kept, other] = pair;
    for need in other.saw {
        if !kept.saw.contains(&need) {
            kept.saw.push(need);
        }
    }
    if both_failed {
        kept.evidence.extend(other.evidence);
        kept.evidence.truncate(EVIDENCE_MAX);
        kept.score = kept.score.min(other.score);
    }
    kept
}

/// What any run supplied; the output is the trace's own.
fn supplied(carried: &[bool], trace: &Trace) -> Map<String, Value> {
    let mut supplied = inputs(|need| match need {
        Need::Output => trace.output.is_some(),
        _ => carried.get(need as usize).copied().unwrap_or(false),
    });
    if let Some(keys) = trace.metadata.get("otel").and_then(|otel| otel.get(UNMAPPED)) {
        supplied.insert(UNMAPPED.to_owned(), keys.clone());
    }
    if let Some(every) = trace.metadata.get("otel").and_then(|otel| otel.get(EVERY_SPAN)) {
        supplied.insert(EVERY_SPAN.to_owned(), every.clone());
    }
    supplied
}

/// A UUID of version 8 whose bits come from the parts. Source: <https://www.rfc-editor.org/rfc/rfc9562#section-5.8>.
fn derived_id(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let hex = hex(&hash.finalize(), 16);
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("{}-{}-8{}-a{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}
