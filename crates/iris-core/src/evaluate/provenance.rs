//! What an evaluation must remember to say the same for ever.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ruleset::hash;
use super::{Composer, Dormant, Ruleset, Settings};
use crate::model::Evaluation;

/// Thresholds as they were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Thresholds {
    /// Labels the score.
    pub default: f64,
    /// Set by the deployment or the call.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub per_rule: BTreeMap<String, f64>,
}

/// Who judged, with what, when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    /// The version of the program.
    pub iris_version: String,
    /// First 16 hex digits of SHA-256 over name, version, kind, effective criticality and weight of the rules that ran.
    pub ruleset_hash: String,
    /// First 16 hex digits of SHA-256 over thresholds, critical lists and composer settings.
    pub config_hash: String,
    /// Thresholds as they were.
    pub thresholds: Thresholds,
    /// How the verdict is composed.
    pub composer: Composer,
    /// The corpus on which accuracy was measured; null when nothing was.
    pub corpus_version: Option<String>,
    /// When it was judged: ISO 8601.
    pub judged_at: String,
    /// Deployed rules that would veto and did not fire, because this version could not read them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dormant: Vec<Dormant>,
}

impl Provenance {
    /// What the provenance of every evaluation says, without the hash of the rules that ran and without a time.
    pub(super) fn template(ruleset: &Ruleset, settings: &Settings, composer: &Composer) -> Self {
        let mut per_rule = settings.rule_thresholds.clone();
        per_rule.extend(settings.call_thresholds.iter().map(|(name, value)| (name.clone(), *value)));
        let sorted = |list: &[String]| {
            let mut list = list.to_vec();
            list.sort();
            list
        };
        let config = json!({
            "threshold": settings.default_threshold,
            "ruleThresholds": per_rule,
            "ruleLists": settings.rule_lists,
            "criticalRules": sorted(&settings.critical_rules),
            "nonCriticalRules": sorted(&settings.non_critical_rules),
            "composer": composer,
        });
        Self {
            iris_version: ruleset.version().to_owned(),
            ruleset_hash: String::new(),
            config_hash: hash(&config.to_string()),
            thresholds: Thresholds { default: settings.default_threshold, per_rule },
            composer: composer.clone(),
            corpus_version: ruleset.accuracy().corpus_version.clone(),
            judged_at: String::new(),
            dormant: ruleset.dormant().to_vec(),
        }
    }

    /// The provenance a row carries, if it can be read.
    pub fn read(evaluation: &Evaluation) -> Option<Self> {
        Self::deserialize(&evaluation.provenance).ok()
    }

    pub(super) fn into_value(self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}
