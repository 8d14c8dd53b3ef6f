//! What a rule says.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ThresholdSource;
use super::meta::vocabulary;
use crate::model::Evidence;

/// How many pieces of evidence one result carries.
pub const EVIDENCE_MAX: usize = 25;

vocabulary! {
    /// Why a rule did not judge.
    SkipClass {
        /// What it reads was not supplied: it was never asked.
        NotApplicable = "not_applicable",
        /// It was asked and could not finish: over its budget, cut text, or its own failure.
        Defeated = "defeated",
        /// Its definition is broken.
        ConfigInvalid = "config_invalid",
    }
}

/// What a rule found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// 0 to 1.
    pub score: f64,
    /// One sentence; never a value that was found.
    pub message: String,
    /// Where; what goes over [`EVIDENCE_MAX`] is dropped.
    pub evidence: Vec<Evidence>,
    /// The number that was measured: `{stat, unit, value}`.
    pub value: Option<Value>,
}

impl Outcome {
    /// The rule has nothing to judge here.
    pub fn not_applicable(why: impl Into<String>) -> Self {
        Self::Skip { class: SkipClass::NotApplicable, why: why.into() }
    }
}

impl Finding {
    /// A finding with a score and a sentence and nothing to point at.
    pub fn new(score: f64, message: impl Into<String>) -> Self {
        Self { score, message: message.into(), evidence: Vec::new(), value: None }
    }

    /// The same with the number that was measured.
    #[must_use]
    pub fn measuring(mut self, stat: &str, unit: &str, value: f64) -> Self {
        self.value = Some(json!({"stat": stat, "unit": unit, "value": finite(value)}));
        self
    }

    /// The same with evidence.
    #[must_use]
    pub fn with(mut self, evidence: Vec<Evidence>) -> Self {
        self.evidence = evidence;
        self.evidence.truncate(EVIDENCE_MAX);
        self
    }
}

/// The nearest number that JSON can hold: what was stored without a value could not be read back.
fn finite(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(f64::MIN, f64::MAX) }
}

/// A number held against a threshold, with who set it.
pub fn count(stat: &str, unit: &str, value: f64, threshold: Option<(f64, ThresholdSource)>) -> Evidence {
    Evidence::Count {
        stat: stat.to_owned(),
        unit: unit.to_owned(),
        value: finite(value),
        threshold: threshold.map(|(threshold, _)| finite(threshold)),
        threshold_source: threshold.map(|(_, source)| source.as_str().to_owned()),
    }
}

/// What a rule says.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Nothing wrong.
    Pass(Finding),
    /// Something wrong.
    Fail(Finding),
    /// It cannot say.
    Skip {
        /// Why, in a word.
        class: SkipClass,
        /// Why, in a sentence.
        why: String,
    },
}
