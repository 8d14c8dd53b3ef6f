//! Measured accuracy of rules: counts on a labelled corpus, and what they say.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How often a rule was right and wrong on a labelled corpus. Positive means that the rule should fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Matrix {
    /// Failed, and should.
    pub tp: u32,
    /// Failed, and should not.
    pub fp: u32,
    /// Passed, and should not.
    #[serde(rename = "fn")]
    pub missed: u32,
    /// Passed, and should.
    pub tn: u32,
}

impl Matrix {
    /// How often it fires on what is bad: with half a count on either side, so that no corpus makes it certain.
    pub fn sensitivity(self) -> f64 {
        (f64::from(self.tp) + 0.5) / (f64::from(self.tp) + f64::from(self.missed) + 1.0)
    }

    /// How often it stays quiet on what is good, likewise.
    pub fn specificity(self) -> f64 {
        (f64::from(self.tn) + 0.5) / (f64::from(self.tn) + f64::from(self.fp) + 1.0)
    }

    /// The share of fires that are right when `prior` of all outputs are bad.
    pub fn predictive_value(self, prior: f64) -> f64 {
        let right = self.sensitivity() * prior;
        let wrong = (1.0 - self.specificity()) * (1.0 - prior);
        right / (right + wrong)
    }

    /// The share of quiet outputs that are bad all the same.
    pub fn miss_rate(self, prior: f64) -> f64 {
        let missed = (1.0 - self.sensitivity()) * prior;
        let right = self.specificity() * (1.0 - prior);
        missed / (missed + right)
    }

    /// The published form: counts, precision, recall and predictive value at four prevalences; null when nothing was
    /// measured.
    pub fn proof(self) -> Value {
        let n = self.tp + self.fp + self.missed + self.tn;
        let share =
            |part: u32, whole: u32| if whole == 0 { Value::Null } else { json!(f64::from(part) / f64::from(whole)) };
        let at = |prior: f64| round(self.predictive_value(prior), 4);
        json!({
            "n": n, "tp": self.tp, "fp": self.fp, "fn": self.missed, "tn": self.tn,
            "precision": share(self.tp, self.tp + self.fp),
            "recall": share(self.tp, self.tp + self.missed),
            "intervals": {"precision": wilson(self.tp, self.tp + self.fp), "recall": wilson(self.tp, self.tp + self.missed)},
            "ppvAt": {"0.01": at(0.01), "0.05": at(0.05), "0.20": at(0.20), "0.50": at(0.50)},
        })
    }
}

/// The 95 % Wilson score interval; null without cases.
/// Source: Wilson 1927, doi:10.1080/01621459.1927.10502953.
fn wilson(part: u32, whole: u32) -> Value {
    if whole == 0 {
        return Value::Null;
    }
    let (n, z) = (f64::from(whole), 1.959_963_984_540_054);
    let p = f64::from(part) / n;
    let centre = p + z * z / (2.0 * n);
    let spread = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    json!([round(((centre - spread) / scale).max(0.0), 4), round(((centre + spread) / scale).min(1.0), 4)])
}

/// Rounds half away from zero to so many places.
pub(super) fn round(value: f64, places: i32) -> f64 {
    let scale = 10_f64.powi(places);
    (value * scale).round() / scale
}

/// What was measured of which rules, on which corpus.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Accuracy {
    /// Names the corpus; nothing measured has none.
    pub corpus_version: Option<String>,
    /// Counts by rule name and the version of the rule that was measured.
    pub rules: BTreeMap<String, (u32, Matrix)>,
}

impl Accuracy {
    /// The counts of a rule, if this very version of it was measured.
    pub fn of(&self, rule: &str, version: u32) -> Option<Matrix> {
        self.rules.get(rule).filter(|(measured, _)| *measured == version).map(|(_, matrix)| *matrix)
    }
}
