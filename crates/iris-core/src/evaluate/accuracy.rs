//! Measured accuracy of rules: counts on labelled texts, and what they say.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The shares of bad outputs at which a predictive value is published, and their names.
const PREVALENCES: [(&str, f64); 4] = [("0.01", 0.01), ("0.05", 0.05), ("0.20", 0.20), ("0.50", 0.50)];

/// How often a rule was right and wrong on labelled texts. Positive means that the rule should fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Matrix {
    /// Failed, and should.
    pub tp: u32,
    /// Failed, and should not.
    pub fp: u32,
    /// Did not fail, and should.
    #[serde(rename = "fn")]
    pub missed: u32,
    /// Did not fail, and should not.
    pub tn: u32,
}

impl Matrix {
    /// One more text: whether the rule should fail it, and whether it did.
    pub const fn add(&mut self, want: bool, got: bool) {
        let count = match (want, got) {
            (true, true) => &mut self.tp,
            (false, true) => &mut self.fp,
            (true, false) => &mut self.missed,
            (false, false) => &mut self.tn,
        };
        *count += 1;
    }

    /// The counts of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            tp: self.tp + other.tp,
            fp: self.fp + other.fp,
            missed: self.missed + other.missed,
            tn: self.tn + other.tn,
        }
    }

    /// How many texts.
    pub const fn n(self) -> u32 {
        self.tp + self.fp + self.missed + self.tn
    }

    /// The share of fires that were right; nothing when it never fired.
    pub fn precision(self) -> Option<f64> {
        share(self.tp, self.tp + self.fp)
    }

    /// The share of what should fail that did; nothing when nothing should.
    pub fn recall(self) -> Option<f64> {
        share(self.tp, self.tp + self.missed)
    }

    /// The harmonic mean of precision and recall; nothing when nothing should fail and nothing did.
    pub fn f1(self) -> Option<f64> {
        share(2 * self.tp, 2 * self.tp + self.fp + self.missed)
    }

    /// The 95 % interval of the precision.
    pub fn precision_interval(self) -> Option<(f64, f64)> {
        wilson(self.tp, self.tp + self.fp)
    }

    /// The 95 % interval of the recall.
    pub fn recall_interval(self) -> Option<(f64, f64)> {
        wilson(self.tp, self.tp + self.missed)
    }

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

    /// The published form: precision, recall, F1, their intervals, the predictive value at four prevalences, and the
    /// counts that all of it comes from.
    pub fn stats(self) -> Value {
        let rounded = |value: Option<f64>| value.map(|value| round(value, 4));
        let ends = |ends: Option<(f64, f64)>| ends.map(|(low, high)| [round(low, 4), round(high, 4)]);
        let at: BTreeMap<&str, f64> =
            PREVALENCES.iter().map(|(name, prior)| (*name, round(self.predictive_value(*prior), 4))).collect();
        json!({
            "precision": rounded(self.precision()),
            "recall": rounded(self.recall()),
            "f1": rounded(self.f1()),
            "intervals": {"precision": ends(self.precision_interval()), "recall": ends(self.recall_interval())},
            "ppvAt": at,
            "counts": {"n": self.n(), "tp": self.tp, "fp": self.fp, "fn": self.missed, "tn": self.tn},
        })
    }
}

fn share(part: u32, whole: u32) -> Option<f64> {
    (whole > 0).then(|| f64::from(part) / f64::from(whole))
}

/// The 95 % Wilson score interval; nothing without cases.
/// Source: Wilson 1927, doi:10.1080/01621459.1927.10502953.
fn wilson(part: u32, whole: u32) -> Option<(f64, f64)> {
    let p = share(part, whole)?;
    let (n, z) = (f64::from(whole), 1.959_963_984_540_054);
    let centre = p + z * z / (2.0 * n);
    let spread = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    Some((((centre - spread) / scale).max(0.0), ((centre + spread) / scale).min(1.0)))
}

/// Rounds half away from zero to so many places.
pub(super) fn round(value: f64, places: i32) -> f64 {
    let scale = 10_f64.powi(places);
    (value * scale).round() / scale
}

/// Who labelled what a rule was measured on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Others, for purposes of their own.
    Independent,
    /// Who wrote the rule: what it was repaired on, too.
    Own,
}

impl Source {
    /// The name as it stands in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Independent => "independent",
            Self::Own => "own",
        }
    }
}

/// What was measured of one version of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measured {
    /// On the rule's own cases: the version of the rule, and the counts.
    pub own: Option<(u32, Matrix)>,
    /// On texts that others labelled.
    pub independent: Option<(u32, Matrix)>,
}

/// What was measured of which rules.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Accuracy {
    /// Names what it was measured on; nothing measured has none.
    pub corpus_version: Option<String>,
    /// By rule name.
    pub rules: BTreeMap<String, Measured>,
}

impl Accuracy {
    /// The counts to reckon with for this very version of a rule: those of others when there are any, else its own.
    pub fn of(&self, rule: &str, version: u32) -> Option<(Source, Matrix)> {
        let measured = self.rules.get(rule)?;
        [(Source::Independent, measured.independent), (Source::Own, measured.own)].into_iter().find_map(
            |(source, counts)| counts.filter(|(measured, _)| *measured == version).map(|(_, matrix)| (source, matrix)),
        )
    }

    /// The counts on the rule's own cases, if this very version was measured.
    pub fn own(&self, rule: &str, version: u32) -> Option<Matrix> {
        let (measured, matrix) = self.rules.get(rule)?.own?;
        (measured == version).then_some(matrix)
    }
}
