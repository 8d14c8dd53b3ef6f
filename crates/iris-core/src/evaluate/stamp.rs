//! The receipt on each result: what the rule was, what it saw, and how sure one can be.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::accuracy::round;
use super::ruleset::Picked;
use super::{Composer, Matrix, Ruleset, Settings};
use crate::model::RuleResult;
use crate::rules::{Finding, Kind, Outcome, RuleMeta, Subject};

/// Turns what a rule said into its stored result. The role is filled in when the verdict is composed.
pub(super) fn stamp(
    ruleset: &Ruleset,
    picked: Picked<'_>,
    subject: &Subject<'_>,
    settings: &Settings,
    composer: &Composer,
    outcome: Outcome,
) -> RuleResult {
    let meta = picked.rule.meta();
    let (critical, critical_source) = settings.critical(meta, picked.custom.is_none());
    let saw = meta
        .needs
        .iter()
        .chain(meta.reads)
        .filter(|need| subject.carries(**need))
        .map(|need| Cow::Borrowed(need.as_str()));
    let mut result = RuleResult {
        rule_name: meta.name.clone(),
        rule_id: picked.custom.and_then(|custom| custom.id.clone()),
        category: picked.bundle.as_str().into(),
        critical,
        critical_source: critical_source.into(),
        state: "not_checked".into(),
        passed: false,
        score: 0.0,
        message: String::new(),
        skipped: false,
        skip_reason: None,
        skip_class: None,
        kind: meta.kind.as_str().into(),
        role: None,
        question: meta.question.as_str().into(),
        classes: meta.classes.iter().map(|class| class.as_str().into()).collect(),
        rule_version: meta.version,
        origin: picked.custom.map(|_| "custom".into()),
        saw: saw.collect(),
        uncertainty: None,
        evidence: Vec::new(),
        value: None,
        weight: meta.weight,
        stands: false,
        seen_in_version: None,
    };
    let accuracy = ruleset.accuracy();
    let measured = accuracy.of(&meta.name, meta.version);
    match outcome {
        Outcome::Pass(finding) => fill(&mut result, finding, true),
        Outcome::Fail(finding) => {
            fill(&mut result, finding, false);
            result.stands = meta.stands;
        }
        Outcome::Skip { class, why } => {
            result.skipped = true;
            result.skip_class = Some(class.as_str().into());
            result.message = format!("not checked: {why}");
            result.skip_reason = Some(why);
            return result;
        }
    }
    let version = accuracy.corpus_version.as_deref();
    result.uncertainty = Some(uncertainty(meta, measured, version, !result.passed, composer));
    result
}

fn fill(result: &mut RuleResult, finding: Finding, passed: bool) {
    result.state = if passed { "pass" } else { "fail" }.into();
    result.passed = passed;
    result.score = finding.score;
    result.message = finding.message;
    result.evidence = finding.evidence;
    result.value = finding.value;
}

/// How sure one can be, in the terms of the kind of claim; says honestly when nobody has measured it.
fn uncertainty(
    meta: &RuleMeta,
    measured: Option<Matrix>,
    corpus: Option<&str>,
    fired: bool,
    composer: &Composer,
) -> Value {
    let unmeasured = |why: &str| json!({"basis": "unmeasured", "why": why});
    match meta.kind {
        Kind::Policy => json!({"basis": "policy"}),
        Kind::Measurement => json!({"basis": "definition"}),
        Kind::Judgment => unmeasured("a model's judgment has no error rate of its own"),
        Kind::Verification => unmeasured("the check is as good as the source it reads"),
        Kind::Detection | Kind::Inference => match measured {
            None => unmeasured("no accuracy has been published for this version of the rule"),
            Some(matrix) => {
                let Matrix { tp, fp, missed, tn } = matrix;
                let mut value = json!({
                    "basis": "published_accuracy", "fired": fired,
                    "prior": {"pi": composer.prior, "classes": composer.prior_classes},
                    "corpus": {"n": tp + fp + missed + tn, "tp": tp, "fp": fp, "fn": missed, "tn": tn, "version": corpus},
                });
                let (name, point) = if fired {
                    ("ppv", matrix.predictive_value(composer.prior))
                } else {
                    ("missRate", matrix.miss_rate(composer.prior))
                };
                if let Value::Object(fields) = &mut value {
                    fields.insert(name.to_owned(), json!({"point": round(point, 4)}));
                }
                value
            }
        },
    }
}
