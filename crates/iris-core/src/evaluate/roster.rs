//! The rules as `list_rules` shows them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Ruleset, Settings};
use crate::rules::{FailureClass, Need, RULES};

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
    /// Measured accuracy; null until it is measured, and for rules that only hold a number.
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
            proof: ruleset.accuracy().of(&meta.name, meta.version).map(super::Matrix::proof),
        }
    });
    entries.collect()
}
