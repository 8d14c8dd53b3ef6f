//! What follows from rules and settings alone: worked out once, used for every judging under them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::accuracy::round;
use super::ruleset::{Picked, hash};
use super::{Accuracy, Composer, Matrix, Provenance, Ruleset, Settings};
use crate::model::{EvalType, Name};
use crate::rules::{FailureClass, Kind, Knobs, Need, RuleMeta};

/// Rules and settings, ready to judge with.
#[derive(Debug)]
pub(super) struct Prepared {
    settings: Settings,
    /// How verdicts are composed.
    pub composer: Composer,
    /// The numbers and lists for the rules.
    pub knobs: Knobs,
    /// What every result of a rule says whatever the rule says, by the rule's place in the ruleset.
    receipts: Vec<Receipt>,
    /// The places of the rules, in the order in which the hash of those that ran lists them.
    listed: Vec<usize>,
    /// The provenance of every evaluation, without the hash of the rules that ran and without a time.
    provenance: Value,
}

/// What is the same in every result of one rule.
#[derive(Debug)]
pub(super) struct Receipt {
    pub critical: bool,
    pub critical_source: &'static str,
    pub classes: Vec<Name>,
    /// How sure one can be of a pass, and of a failure.
    pub passed: Arc<Value>,
    pub failed: Arc<Value>,
    /// As the hash of the rules that ran lists it.
    listed: String,
}

impl Prepared {
    /// Works it out, with what evidence is required here.
    pub fn of(ruleset: &Ruleset, settings: &Settings, required: &[Need]) -> Self {
        let composer = settings.composer(required);
        let picked: Vec<Picked<'_>> = ruleset.pick(EvalType::All).collect();
        let receipts: Vec<Receipt> =
            picked.iter().map(|picked| Receipt::of(ruleset, *picked, settings, &composer)).collect();
        let order = |at: &usize| {
            let (picked, receipt) = (picked.get(*at)?, receipts.get(*at)?);
            let meta = picked.rule.meta();
            Some((&*meta.name, meta.version, meta.kind.as_str(), receipt.critical, meta.weight.to_string()))
        };
        let mut listed: Vec<usize> = (0..receipts.len()).collect();
        listed.sort_by(|one, other| order(one).cmp(&order(other)));
        Self {
            provenance: Provenance::template(ruleset, settings, &composer).into_value(),
            settings: settings.clone(),
            knobs: settings.knobs(),
            composer,
            receipts,
            listed,
        }
    }

    /// Whether it is what follows from these settings.
    pub fn is_of(&self, settings: &Settings, required: &[Need]) -> bool {
        self.composer.required_evidence == required && self.settings == *settings
    }

    /// What every result of the rule at this place of the ruleset says.
    pub fn receipt(&self, at: usize) -> Option<&Receipt> {
        self.receipts.get(at)
    }

    /// The provenance of an evaluation in which the rules at these places ran.
    pub fn provenance(&self, ran: impl Fn(usize) -> bool, judged_at: String) -> Value {
        let mut text = String::with_capacity(64 * self.receipts.len());
        for receipt in self.listed.iter().filter(|at| ran(**at)).filter_map(|at| self.receipts.get(*at)) {
            text.push(if text.is_empty() { '[' } else { ',' });
            text.push_str(&receipt.listed);
        }
        text.push_str(if text.is_empty() { "[]" } else { "]" });
        let mut value = self.provenance.clone();
        for (key, now) in [("rulesetHash", hash(&text)), ("judgedAt", judged_at)] {
            if let Some(field) = value.get_mut(key) {
                *field = Value::String(now);
            }
        }
        value
    }
}

impl Receipt {
    fn of(ruleset: &Ruleset, picked: Picked<'_>, settings: &Settings, composer: &Composer) -> Self {
        let meta = picked.rule.meta();
        let (critical, critical_source) = settings.critical(meta, picked.custom.is_none());
        let accuracy = ruleset.accuracy();
        let listed = (&*meta.name, meta.version, meta.kind.as_str(), critical, meta.weight.to_string());
        Self {
            critical,
            critical_source,
            classes: meta.classes.iter().map(|class: &FailureClass| class.as_str().into()).collect(),
            passed: Arc::new(uncertainty(meta, accuracy, false, composer)),
            failed: Arc::new(uncertainty(meta, accuracy, true, composer)),
            listed: serde_json::to_string(&listed).unwrap_or_default(),
        }
    }
}

/// How sure one can be, in the terms of the kind of claim; says honestly when nobody has measured it.
fn uncertainty(meta: &RuleMeta, accuracy: &Accuracy, fired: bool, composer: &Composer) -> Value {
    let unmeasured = |why: &str| json!({"basis": "unmeasured", "why": why});
    match meta.kind {
        Kind::Policy => json!({"basis": "policy"}),
        Kind::Measurement => match accuracy.own(&meta.name, meta.version) {
            None => json!({"basis": "definition"}),
            Some(own) => {
                json!({"basis": "definition", "conformance": {"n": own.n(), "matched": own.tp + own.tn}})
            }
        },
        Kind::Judgment => unmeasured("a model's judgment has no error rate of its own"),
        Kind::Verification => unmeasured("the check is as good as the source it reads"),
        Kind::Detection | Kind::Inference => match accuracy.of(&meta.name, meta.version) {
            None => unmeasured("no accuracy has been published for this version of the rule"),
            Some((source, matrix)) => {
                let Matrix { tp, fp, missed, tn } = matrix;
                let (name, point) = if fired {
                    ("ppv", matrix.predictive_value(composer.prior))
                } else {
                    ("missRate", matrix.miss_rate(composer.prior))
                };
                json!({
                    "basis": "published_accuracy", "fired": fired,
                    "prior": {"pi": composer.prior, "classes": composer.prior_classes},
                    "corpus": {
                        "n": matrix.n(), "tp": tp, "fp": fp, "fn": missed, "tn": tn,
                        "labelling": source.as_str(), "version": accuracy.corpus_version,
                    },
                    name: {"point": round(point, 4)},
                })
            }
        },
    }
}
