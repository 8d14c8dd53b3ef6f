//! Picks the rules, runs each, keeps what they say.

use serde_json::{Map, Value};

use super::compose::{settle, state};
use super::prepared::Prepared;
use super::ruleset::Occasion;
use super::score::score;
use super::stamp::stamp;
use super::{Composer, Ruleset, Settings};
use crate::model::{EvalType, Evaluation, Name, Position, RuleResult, Tenant, Timestamp, TraceId, VerdictState};
use crate::rules::{Case, Need, Outcome, SkipClass, Subject, run};

/// Which evaluation this is.
#[derive(Debug, Clone, PartialEq)]
pub struct Identity {
    /// A UUID.
    pub id: String,
    /// Whose.
    pub tenant: Tenant,
    /// The trace it is about, when linked to one.
    pub trace_id: Option<TraceId>,
    /// The version of that trace.
    pub trace_version: Option<u32>,
    /// The highest journal sequence number of the trace that was seen; 0 for none.
    pub seen_through: u64,
    /// The journal record, when a tool made it.
    pub position: Option<Position>,
    /// Made because a trace settled, not because somebody asked.
    pub inline: bool,
}

/// Judges a subject by the rules of a bundle, or of all.
pub fn evaluate(
    ruleset: &Ruleset,
    subject: &Subject<'_>,
    settings: &Settings,
    eval_type: EvalType,
    identity: Identity,
    now: Timestamp,
) -> Evaluation {
    evaluate_within(ruleset, subject, settings, eval_type, identity, now, &|| false)
}

/// The same under a budget: once `is_spent` says so, the rules still to run are skipped as defeated, which a critical
/// rule turns into an unknown verdict, never into a pass.
pub fn evaluate_within(
    ruleset: &Ruleset,
    subject: &Subject<'_>,
    settings: &Settings,
    eval_type: EvalType,
    identity: Identity,
    now: Timestamp,
    is_spent: &dyn Fn() -> bool,
) -> Evaluation {
    let prepared = ruleset.prepared(Occasion::Call, settings, &settings.required_evidence);
    let case = Case::new(subject);
    let results = judge(ruleset, &case, &prepared, eval_type, is_spent);
    let texts = Texts { output: subject.output, expected: subject.expected };
    let inputs = inputs(|need| case.carries(need));
    assemble(ruleset, &prepared, eval_type, identity, now, results, inputs, texts)
}

/// What every picked rule says of a subject.
pub(super) fn judge(
    ruleset: &Ruleset,
    case: &Case<'_>,
    prepared: &Prepared,
    eval_type: EvalType,
    is_spent: &dyn Fn() -> bool,
) -> Vec<RuleResult> {
    let mut results: Vec<RuleResult> = ruleset
        .pick(eval_type)
        .filter_map(|picked| {
            let outcome = if is_spent() {
                Outcome::Skip { class: SkipClass::Defeated, why: "the time for judging ran out".to_owned() }
            } else {
                run(picked.rule, case, &prepared.knobs)
            };
            stamp(picked, prepared, case, outcome)
        })
        .collect();
    // A result is half a KiB, and evaluations wait by the hundred.
    results.shrink_to_fit();
    results
}

/// Which inputs were there, by name.
pub(super) fn inputs(carries: impl Fn(Need) -> bool) -> Map<String, Value> {
    Need::ALL.iter().map(|need| (need.as_str().to_owned(), Value::Bool(carries(*need)))).collect()
}

/// The texts kept with an evaluation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Texts<'a> {
    pub output: Option<&'a str>,
    pub expected: Option<&'a str>,
}

#[expect(clippy::too_many_arguments, reason = "the one place where all parts of a row meet")]
pub(super) fn assemble(
    ruleset: &Ruleset,
    prepared: &Prepared,
    eval_type: EvalType,
    identity: Identity,
    now: Timestamp,
    results: Vec<RuleResult>,
    inputs: Map<String, Value>,
    texts: Texts<'_>,
) -> Evaluation {
    let mut ran: Vec<usize> = Vec::with_capacity(results.len());
    let judged = ruleset.pick(eval_type).zip(&results).filter(|(_, result)| !result.skipped);
    ran.extend(judged.map(|(picked, _)| picked.at));
    let provenance = prepared.provenance(|at| ran.binary_search(&at).is_ok(), now.to_string());
    let mut evaluation = Evaluation {
        id: identity.id,
        tenant: identity.tenant,
        trace_id: identity.trace_id,
        trace_version: identity.trace_version,
        eval_type,
        created_at: now,
        inline: identity.inline,
        seen_through: identity.seen_through,
        position: identity.position,
        output_text: texts.output.map(str::to_owned),
        expected_text: texts.expected.map(str::to_owned),
        score: 0.0,
        passed: false,
        state: VerdictState::Unknown,
        rule_results: results,
        inputs,
        suggestions: Vec::new(),
        provenance,
        answered: None,
        erased_at: None,
    };
    suggest(ruleset, &mut evaluation);
    finish(&mut evaluation, &prepared.composer);
    evaluation
}

/// Fills in what follows from the rule results: roles, score and verdict.
pub(super) fn finish(evaluation: &mut Evaluation, composer: &Composer) {
    settle(evaluation, composer);
    evaluation.score = score(evaluation.rule_results.iter()).unwrap_or(0.0);
    evaluation.state = state(evaluation, composer);
    evaluation.passed = evaluation.state == VerdictState::Pass;
}

fn suggest(ruleset: &Ruleset, evaluation: &mut Evaluation) {
    let failed = evaluation.rule_results.iter().filter(|result| result.state == "fail");
    // A custom rule may have a built-in one's name.
    let failed: Vec<(&Name, bool, Option<&str>)> =
        failed.map(|result| (&result.rule_name, result.origin.is_some(), result.rule_id.as_deref())).collect();
    if failed.is_empty() {
        return;
    }
    let advice = ruleset.pick(evaluation.eval_type).filter_map(|picked| {
        let meta = picked.rule.meta();
        let id = picked.custom.and_then(|custom| custom.id.as_deref());
        let advises = failed.contains(&(&meta.name, picked.custom.is_some(), id)) && !meta.suggestion.is_empty();
        advises.then(|| format!("{}: {}", meta.name, meta.suggestion))
    });
    evaluation.suggestions = advice.collect();
}
