//! From rule results to a verdict, in ordered layers of which every one is asked.
//!
//! Gate, veto, unknown, evidence, risk. A failing layer outranks an unknown one; the other deciding layers are listed
//! in `also`. The only place where `passed` is decided.

use serde::{Deserialize, Serialize};

use super::risk::{p_bad, without_interval};
use super::{Composer, Examined, Matrix, OnCriticalSkipped, Prior, Provenance, Risk, risk};
use crate::model::{EVERY_SPAN, Evaluation, Evidence, RuleResult, VerdictState};

/// What decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// A policy, a judgment or a verification failed.
    PolicyGate,
    /// A critical rule failed.
    DetectorVeto,
    /// A critical rule could not finish.
    CriticalUnknown,
    /// An input that must be seen was not.
    RequiredEvidenceMissing,
    /// What fired makes it too likely that something is wrong.
    RiskOverLoss,
    /// Nothing decided against it.
    Clean,
    /// No rule ran.
    NoRules,
}

impl Basis {
    /// The name as it stands in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PolicyGate => "policy_gate",
            Self::DetectorVeto => "detector_veto",
            Self::CriticalUnknown => "critical_unknown",
            Self::RequiredEvidenceMissing => "required_evidence_missing",
            Self::RiskOverLoss => "risk_over_loss",
            Self::Clean => "clean",
            Self::NoRules => "no_rules",
        }
    }

    /// The same in words, for people.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::PolicyGate => "a policy, a judgement or a citation failed",
            Self::DetectorVeto => "a rule that vetoes found something",
            Self::CriticalUnknown => "a rule that vetoes could not finish",
            Self::RequiredEvidenceMissing => "what must be seen was not sent",
            Self::RiskOverLoss => "what was found makes it too likely that something is wrong",
            Self::Clean => "nothing was found that decides against it",
            Self::NoRules => "no rule could run",
        }
    }
}

/// How firmly a risk speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Backed by a calibration corpus. No evaluation says so yet.
    Decisive,
    /// Not backed by one.
    Marginal,
}

/// A layer that decided beside the one that did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Deciding {
    /// Which.
    pub basis: Basis,
    /// For what.
    pub state: VerdictState,
    /// The rules, needs or classes it rests on.
    pub by: Vec<String>,
}

/// A verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Verdict {
    /// Pass, fail or unknown.
    pub state: VerdictState,
    /// Whether it may ship: `state` is pass.
    pub passed: bool,
    /// What decided.
    pub basis: Basis,
    /// The rules, needs or classes it rests on; never empty on a fail.
    pub by: Vec<String>,
    /// The estimate, when the risk layer had the last word and anything was measured.
    pub risk: Option<Risk>,
    /// Only with a risk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// The other layers that decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Deciding>,
}

/// The verdict of an evaluation, from nothing but its rule results, its inputs and the settings it carries. A row whose
/// settings cannot be read is unknown.
pub fn compose(evaluation: &Evaluation) -> Verdict {
    composed(evaluation, risk)
}

/// The same verdict with no risk stated: its interval, which is only shown, takes a thousand times as long.
pub fn decide(evaluation: &Evaluation) -> Verdict {
    Verdict { risk: None, ..composed(evaluation, without_interval) }
}

fn composed(evaluation: &Evaluation, estimate: fn(&[Examined<'_>], Prior) -> Option<Risk>) -> Verdict {
    let results = &evaluation.rule_results;
    let Some(composer) = Provenance::read(evaluation).map(|provenance| provenance.composer) else {
        return nothing_judged();
    };
    if results.iter().all(|result| result.skipped) {
        return unjudged(evaluation, &composer);
    }
    let estimate = estimate(&examined(results), prior(&composer));
    let over = estimate.as_ref().filter(|risk| is_over(risk.p_bad, &composer));
    let mut layers = layers(evaluation, &composer, over.map(|risk| risk_by(results, risk)));
    let winner = winner(&layers).map(|at| layers.remove(at));
    let Some(winner) = winner else {
        let confidence = estimate.as_ref().map(|_| Confidence::Marginal);
        return Verdict {
            state: VerdictState::Pass,
            passed: true,
            basis: Basis::Clean,
            by: Vec::new(),
            risk: estimate,
            confidence,
            also: Vec::new(),
        };
    };
    let by_risk = winner.basis == Basis::RiskOverLoss;
    Verdict {
        state: winner.state,
        passed: false,
        basis: winner.basis,
        by: winner.by,
        confidence: by_risk.then_some(Confidence::Marginal),
        risk: estimate.filter(|_| by_risk),
        also: layers,
    }
}

/// The state of that verdict, for one who holds the settings and does not ask how sure one can be of it.
pub(super) fn state(evaluation: &Evaluation, composer: &Composer) -> VerdictState {
    let results = &evaluation.rule_results;
    if results.iter().all(|result| result.skipped) {
        return unjudged(evaluation, composer).state;
    }
    let likely = p_bad(&examined(results), prior(composer));
    let over = likely.filter(|likely| is_over(*likely, composer)).map(|_| Vec::new());
    let layers = layers(evaluation, composer, over);
    winner(&layers).and_then(|at| layers.get(at)).map_or(VerdictState::Pass, |layer| layer.state)
}

/// Every layer that decides, in order; the risk layer for what it is given to rest on.
fn layers(evaluation: &Evaluation, composer: &Composer, over: Option<Vec<String>>) -> Vec<Deciding> {
    let results = &evaluation.rule_results;
    let risk_layer = over.map(|by| Deciding { basis: Basis::RiskOverLoss, state: VerdictState::Fail, by });
    let layers = [
        gate_layer(results, composer),
        veto_layer(results),
        unknown_layer(results, composer),
        evidence_layer(evaluation, composer),
        risk_layer,
    ];
    layers.into_iter().flatten().collect()
}

/// The layer that decides: the first that fails, else the first.
fn winner(layers: &[Deciding]) -> Option<usize> {
    let failing = layers.iter().position(|layer| layer.state == VerdictState::Fail);
    failing.or((!layers.is_empty()).then_some(0))
}

fn is_over(p_bad: f64, composer: &Composer) -> bool {
    p_bad > 1.0 / (1.0 + composer.false_pass_cost)
}

fn unjudged(evaluation: &Evaluation, composer: &Composer) -> Verdict {
    let unknown = unknown_layer(&evaluation.rule_results, composer);
    let mut verdict = nothing_judged();
    verdict.also = [unknown, evidence_layer(evaluation, composer)].into_iter().flatten().collect();
    outrank(verdict)
}

fn nothing_judged() -> Verdict {
    Verdict {
        state: VerdictState::Unknown,
        passed: false,
        basis: Basis::NoRules,
        by: Vec::new(),
        risk: None,
        confidence: None,
        also: Vec::new(),
    }
}

/// When nothing was judged, a layer that knows why has the word: a setting may even make it a fail.
fn outrank(mut verdict: Verdict) -> Verdict {
    let at = verdict.also.iter().position(|layer| layer.state == VerdictState::Fail);
    if let Some(at) = at.or((!verdict.also.is_empty()).then_some(0)) {
        let layer = verdict.also.remove(at);
        (verdict.state, verdict.basis, verdict.by) = (layer.state, layer.basis, layer.by);
    }
    verdict
}

fn is_fired(result: &RuleResult) -> bool {
    !result.skipped && !result.passed
}

/// Judgments and verifications always decide; a policy does unless it only holds the shipped number.
fn gates(result: &RuleResult, composer: &Composer) -> bool {
    match &*result.kind {
        "judgment" | "verification" => true,
        "policy" => {
            let custom = result.origin.as_deref() == Some("custom");
            result.critical || !custom && (composer.defaults_gate || !holds_shipped_number(result))
        }
        _ => false,
    }
}

fn holds_shipped_number(result: &RuleResult) -> bool {
    result.evidence.iter().any(|evidence| {
        matches!(evidence, Evidence::Count { threshold: Some(_), threshold_source: Some(source), .. } if source == "default")
    })
}

fn vetoes(result: &RuleResult) -> bool {
    result.critical && !matches!(&*result.kind, "policy" | "judgment" | "verification")
}

fn names<'a>(results: impl Iterator<Item = &'a RuleResult>) -> Vec<String> {
    results.map(|result| result.rule_name.to_string()).collect()
}

fn layer(basis: Basis, state: VerdictState, by: Vec<String>) -> Option<Deciding> {
    (!by.is_empty()).then_some(Deciding { basis, state, by })
}

fn gate_layer(results: &[RuleResult], composer: &Composer) -> Option<Deciding> {
    let fired = results.iter().filter(|result| is_fired(result) && gates(result, composer));
    layer(Basis::PolicyGate, VerdictState::Fail, names(fired))
}

fn veto_layer(results: &[RuleResult]) -> Option<Deciding> {
    layer(
        Basis::DetectorVeto,
        VerdictState::Fail,
        names(results.iter().filter(|result| is_fired(result) && vetoes(result))),
    )
}

/// A rule that was never asked for lack of input is not in doubt; one that was asked and could not finish is.
fn unknown_layer(results: &[RuleResult], composer: &Composer) -> Option<Deciding> {
    let state = match composer.on_critical_skipped {
        OnCriticalSkipped::Unknown => VerdictState::Unknown,
        OnCriticalSkipped::Fail => VerdictState::Fail,
        OnCriticalSkipped::Pass => return None,
    };
    let stuck = results.iter().filter(|result| {
        result.critical && result.skipped && matches!(result.skip_class.as_deref(), Some("defeated" | "config_invalid"))
    });
    layer(Basis::CriticalUnknown, state, names(stuck))
}

fn evidence_layer(evaluation: &Evaluation, composer: &Composer) -> Option<Deciding> {
    let missing = composer.required_evidence.iter().map(|need| need.as_str()).filter(|need| {
        let carried = evaluation.inputs.get(*need).and_then(serde_json::Value::as_bool) == Some(true);
        let seen =
            evaluation.rule_results.iter().any(|result| !result.skipped && result.saw.iter().any(|saw| saw == need));
        !(carried && seen)
    });
    // What was not looked at may hold anything.
    let left_out = evaluation.inputs.get(EVERY_SPAN) == Some(&serde_json::Value::Bool(false));
    let missing = missing.chain(left_out.then_some(EVERY_SPAN));
    layer(Basis::RequiredEvidenceMissing, VerdictState::Unknown, missing.map(str::to_owned).collect())
}

/// The counts a result carries with it, so that a stored row needs no table.
fn matrix(result: &RuleResult) -> Option<Matrix> {
    let corpus = result.uncertainty.as_ref()?.get("corpus")?;
    Matrix::deserialize(corpus).ok()
}

fn is_estimable(result: &RuleResult) -> bool {
    !result.skipped && matches!(&*result.kind, "detection" | "inference")
}

fn is_estimated(result: &RuleResult) -> bool {
    is_estimable(result) && matrix(result).is_some()
}

fn prior(composer: &Composer) -> Prior {
    Prior { share: composer.prior, classes: composer.prior_classes }
}

/// The rules that ran and whose accuracy was measured.
fn examined(results: &[RuleResult]) -> Vec<Examined<'_>> {
    results
        .iter()
        .filter(|result| is_estimable(result))
        .filter_map(|result| {
            Some(Examined {
                rule: &result.rule_name,
                classes: &result.classes,
                fired: !result.passed,
                matrix: matrix(result)?,
            })
        })
        .collect()
}

/// The classes that are more likely than not, without those that what was seen speaks against; when there is none, the rules
/// that fired; when none did, the classes that were examined.
fn risk_by(results: &[RuleResult], risk: &Risk) -> Vec<String> {
    let is_likely = |class: &str, q: Option<f64>| q.is_some_and(|q| q > 0.5) && is_seen(results, class);
    let likely: Vec<String> =
        risk.per_class.iter().filter(|(class, q)| is_likely(class, **q)).map(|(class, _)| class.clone()).collect();
    if !likely.is_empty() {
        return likely;
    }
    let fired = names(results.iter().filter(|result| is_estimated(result) && is_fired(result)));
    if !fired.is_empty() {
        return fired;
    }
    risk.per_class.iter().filter(|(_, q)| q.is_some()).map(|(class, _)| class.clone()).collect()
}

/// Whether a class is among what the rules that looked for it and fired saw. Of a rule that looks for several, what it saw says
/// which it was; one that does not say may have seen any.
fn is_seen(results: &[RuleResult], class: &str) -> bool {
    let mut fired = results
        .iter()
        .filter(|result| is_estimated(result) && is_fired(result) && result.classes.iter().any(|of| **of == *class))
        .peekable();
    fired.peek().is_none()
        || fired.any(|result| {
            let mut said = result.evidence.iter().filter_map(|evidence| match evidence {
                Evidence::Span { class, .. } => class.as_deref(),
                _ => None,
            });
            said.clone().next().is_none() || said.any(|said| said == class)
        })
}

/// Writes each result's role: what the composer does with it.
pub(super) fn settle(evaluation: &mut Evaluation, composer: &Composer) {
    for result in &mut evaluation.rule_results {
        let role = if gates(result, composer) {
            "gate"
        } else if vetoes(result) {
            "veto"
        } else if is_estimated(result) {
            "risk"
        } else {
            "advisory"
        };
        result.role = (!result.skipped).then(|| role.into());
    }
}

/// The critical rules that ran and failed.
pub fn critical_failures(evaluation: &Evaluation) -> Vec<String> {
    names(evaluation.rule_results.iter().filter(|result| result.critical && is_fired(result)))
}

/// The critical rules that did not run.
pub fn critical_skipped(evaluation: &Evaluation) -> Vec<String> {
    names(evaluation.rule_results.iter().filter(|result| result.critical && result.skipped))
}
