//! The rules as `list_rules` shows them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Accuracy, Ruleset, Settings, Source};
use crate::rules::{FailureClass, Kind, Mechanism, Need, RULES, RuleMeta};

/// One built-in rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RosterEntry {
    /// Its name.
    pub name: String,
    /// Its bundle.
    pub category: String,
    /// What it checks.
    pub description: String,
    /// Its weight in the score.
    pub weight: f64,
    /// The kind of claim.
    pub kind: String,
    /// How it arrives at it.
    pub mechanism: String,
    /// The inputs it needs.
    pub needs: Vec<String>,
    /// The question it answers.
    pub question: String,
    /// The failure classes it looks for.
    pub classes: Vec<String>,
    /// Its version.
    pub version: u32,
    /// Whether its failure vetoes, as configured.
    pub critical: bool,
    /// Who decided that: `default` or `config`.
    pub critical_source: String,
    /// Measured accuracy of this version; null until it is measured, and where measuring only checks that a rule holds a
    /// number against a threshold as it is defined to.
    pub proof: Option<Value>,
}

/// Every built-in rule, in order, as these settings make it.
pub fn roster(ruleset: &Ruleset, settings: &Settings) -> Vec<RosterEntry> {
    let entries = RULES.iter().map(|rule| {
        let meta = rule.meta();
        let (critical, source) = settings.critical(meta, true);
        RosterEntry {
            name: meta.name.to_string(),
            category: meta.bundle.as_str().to_owned(),
            description: meta.description.to_string(),
            weight: meta.weight,
            kind: meta.kind.as_str().to_owned(),
            mechanism: meta.mechanism.as_str().to_owned(),
            needs: meta.needs.iter().map(|need: &Need| need.as_str().to_owned()).collect(),
            question: meta.question.as_str().to_owned(),
            classes: meta.classes.iter().map(|class: &FailureClass| class.as_str().to_owned()).collect(),
            version: meta.version,
            critical,
            critical_source: source.to_owned(),
            proof: proof(meta, ruleset.accuracy()),
        }
    });
    entries.collect()
}

/// Whether what was measured of a rule only says that it follows its definition: it holds a number against a threshold,
/// and nobody else labelled texts for it.
pub fn is_conformance(meta: &RuleMeta, accuracy: &Accuracy) -> bool {
    let holds_a_number = matches!(meta.kind, Kind::Measurement | Kind::Policy) && meta.mechanism == Mechanism::Formula;
    holds_a_number && accuracy.rules.get(&*meta.name).is_none_or(|measured| measured.independent.is_none())
}

/// What was measured of a rule, by others if they did; the counts on its own cases stand beside them.
fn proof(meta: &RuleMeta, accuracy: &Accuracy) -> Option<Value> {
    let (source, matrix) = accuracy.of(&meta.name, meta.version).filter(|_| !is_conformance(meta, accuracy))?;
    let mut proof = matrix.stats();
    if let Value::Object(fields) = &mut proof {
        fields.insert("source".to_owned(), Value::from(source.as_str()));
        fields.insert("corpusVersion".to_owned(), accuracy.corpus_version.clone().into());
        let own = accuracy.own(&meta.name, meta.version).filter(|_| source == Source::Independent);
        fields.insert("own".to_owned(), own.map(super::Matrix::stats).unwrap_or_default());
    }
    Some(proof)
}
