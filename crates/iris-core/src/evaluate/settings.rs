//! What a deployment may decide about judging: thresholds, which rules veto, and how verdicts are composed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::accuracy::round;
use crate::rules::{Knob, Knobs, LISTS, Need, RULES, RuleMeta, ThresholdSource, canonical};

/// What a critical rule that was defeated means for the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnCriticalSkipped {
    /// Nobody can say.
    #[default]
    Unknown,
    /// It fails.
    Fail,
    /// Nothing.
    Pass,
}

/// How rule results become a verdict. All of it is written into every evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Composer {
    /// A built-in policy gates at its shipped threshold too, instead of only advising.
    pub defaults_gate: bool,
    /// What passing something bad costs, against 1 for failing something good. Raising it blocks more.
    pub false_pass_cost: f64,
    /// What a critical rule that was defeated means.
    pub on_critical_skipped: OnCriticalSkipped,
    /// The share of outputs that are bad, before anything is known.
    pub prior: f64,
    /// Over how many failure classes that share is spread; constant, so that examining more never lowers a risk.
    pub prior_classes: u32,
    /// Inputs that must have been seen, or the verdict is unknown.
    pub required_evidence: Vec<Need>,
    /// The version of the composing rules themselves.
    pub rules: u32,
}

impl Default for Composer {
    fn default() -> Self {
        Self {
            defaults_gate: false,
            false_pass_cost: 1.0,
            on_critical_skipped: OnCriticalSkipped::Unknown,
            prior: 0.5,
            prior_classes: 5,
            required_evidence: Vec::new(),
            rules: 1,
        }
    }
}

/// Everything about judging that a deployment or a call sets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Labels the score; it never decides.
    #[serde(alias = "defaultThreshold")]
    pub default_threshold: f64,
    /// Thresholds of rules, set by the deployment.
    #[serde(alias = "ruleThresholds")]
    pub rule_thresholds: BTreeMap<String, f64>,
    /// Lists of rules, set by the deployment: `blocklist`, the phrases that no_blocklist_words looks for instead of its own
    /// (10,000); `stub_markers`, those of no_stub_output (100); `injection_compliance_trusted_tools`, the tools whose
    /// results no_injection_compliance trusts (1,000).
    #[serde(alias = "ruleLists")]
    pub rule_lists: BTreeMap<String, Vec<String>>,
    /// Built-in rules that veto though they do not by default.
    #[serde(alias = "criticalRules")]
    pub critical_rules: Vec<String>,
    /// Built-in rules that do not veto though they do by default.
    #[serde(alias = "nonCriticalRules")]
    pub non_critical_rules: Vec<String>,
    /// A built-in policy gates at its shipped threshold too.
    #[serde(alias = "defaultsGate")]
    pub defaults_gate: bool,
    /// What passing something bad costs, against 1 for failing something good. Raising it blocks more.
    #[serde(alias = "falsePassCost")]
    pub false_pass_cost: f64,
    /// What a critical rule that was defeated means: `unknown`, `fail` or `pass`.
    #[serde(alias = "onCriticalSkipped")]
    pub on_critical_skipped: OnCriticalSkipped,
    /// Inputs that must have been seen in an evaluation made by a call.
    #[serde(alias = "requiredEvidence")]
    pub required_evidence: Vec<Need>,
    /// Inputs that must have been seen when a trace that arrived over OTLP is judged.
    #[serde(alias = "ingestRequiredEvidence")]
    pub ingest_required_evidence: Vec<Need>,
    /// The share of outputs that are bad, before anything is known: between 0 and 1.
    pub prior: f64,
    /// Over how many failure classes that share is spread.
    #[serde(alias = "priorClasses")]
    pub prior_classes: u32,
    /// Processor time that the rules may take for one trace, in milliseconds; those still to run then are skipped as
    /// defeated, which makes a verdict unknown and never a pass. 0: no limit.
    #[serde(alias = "budgetMs")]
    pub budget_ms: u64,
    /// Thresholds set by the call; they win over the deployment's. Never read from a file.
    #[serde(skip)]
    pub call_thresholds: BTreeMap<String, f64>,
}

impl Default for Settings {
    fn default() -> Self {
        let composer = Composer::default();
        Self {
            default_threshold: 0.7,
            rule_thresholds: BTreeMap::new(),
            rule_lists: BTreeMap::new(),
            critical_rules: Vec::new(),
            non_critical_rules: Vec::new(),
            defaults_gate: composer.defaults_gate,
            false_pass_cost: composer.false_pass_cost,
            on_critical_skipped: composer.on_critical_skipped,
            required_evidence: Vec::new(),
            ingest_required_evidence: vec![Need::Output],
            prior: composer.prior,
            prior_classes: composer.prior_classes,
            budget_ms: 250,
            call_thresholds: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// Everything that is wrong with these settings, each naming its key and what would be right; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let names: Vec<&str> = RULES.iter().map(|rule| rule.meta().name.as_ref()).collect();
        for (key, list) in [("critical_rules", &self.critical_rules), ("non_critical_rules", &self.non_critical_rules)]
        {
            for name in list.iter().filter(|name| !names.contains(&name.as_str())) {
                problems.push(format!(
                    "eval.{key}: no built-in rule is called {name:?}; the rules are {}",
                    names.join(", ")
                ));
            }
        }
        for name in self.critical_rules.iter().filter(|name| self.non_critical_rules.contains(name)) {
            problems.push(format!("eval.critical_rules: {name:?} is in eval.non_critical_rules too; it can be in one"));
        }
        let knobs: Vec<&Knob> = knobs().collect();
        for (name, value) in self.rule_thresholds.iter().chain(&self.call_thresholds) {
            match knobs.iter().find(|knob| knob.name == canonical(name)) {
                None if knobs.is_empty() => {
                    problems.push(format!("eval.rule_thresholds: {name:?} is no threshold; there are none"));
                }
                None => {
                    let valid: Vec<&str> = knobs.iter().map(|knob| knob.name).collect();
                    problems
                        .push(format!("eval.rule_thresholds: {name:?} is no threshold; they are {}", valid.join(", ")));
                }
                Some(knob) if !(knob.lowest..=knob.highest).contains(value) => problems.push(format!(
                    "eval.rule_thresholds.{name}: {value} is not between {} and {}",
                    knob.lowest, knob.highest
                )),
                Some(_) => {}
            }
        }
        problems.extend(self.rule_lists.iter().filter_map(|(name, list)| wrong_list(name, list)));
        let mut within = |key: &str, value: f64, low: f64, high: f64| {
            if !(value > low && value < high) {
                problems.push(format!("eval.{key}: {value} is not above {low} and below {high}"));
            }
        };
        within("prior", self.prior, 0.0, 1.0);
        within("false_pass_cost", self.false_pass_cost, 0.0, 1e6);
        within("default_threshold", self.default_threshold, -1e-9, 1.0 + 1e-9);
        within("prior_classes", f64::from(self.prior_classes), 0.0, 1001.0);
        problems
    }

    /// Who vetoes, and who decided that: `default` or `config`. Only built-in rules can be moved.
    pub(super) fn critical(&self, meta: &RuleMeta, built_in: bool) -> (bool, &'static str) {
        let named = |list: &[String]| built_in && list.iter().any(|name| *name == meta.name);
        if named(&self.critical_rules) {
            (true, "config")
        } else if named(&self.non_critical_rules) {
            (false, "config")
        } else {
            (meta.critical, "default")
        }
    }

    /// The numbers and lists for the rules, each with who set it.
    pub(super) fn knobs(&self) -> Knobs {
        let set = |source| move |(name, value): (&String, &f64)| (canonical(name).to_owned(), (*value, source));
        let config = self.rule_thresholds.iter().map(set(ThresholdSource::Config));
        let call = self.call_thresholds.iter().map(set(ThresholdSource::Call));
        Knobs { numbers: config.chain(call).collect(), lists: self.rule_lists.clone() }
    }

    /// The composer's part, with what evidence is required here.
    pub(super) fn composer(&self, required: &[Need]) -> Composer {
        Composer {
            defaults_gate: self.defaults_gate,
            // Few enough digits that every JSON reader gives the same number back.
            false_pass_cost: round(self.false_pass_cost, 9),
            on_critical_skipped: self.on_critical_skipped,
            prior: round(self.prior, 9),
            prior_classes: self.prior_classes,
            required_evidence: required.to_vec(),
            ..Composer::default()
        }
    }
}

fn knobs() -> impl Iterator<Item = &'static Knob> {
    RULES.iter().flat_map(|rule| rule.meta().knobs)
}

/// What is wrong with a list of a rule, if anything is.
fn wrong_list(name: &str, list: &[String]) -> Option<String> {
    let Some((_, entries_max, bytes_max)) = LISTS.iter().find(|(known, ..)| *known == name) else {
        let valid: Vec<&str> = LISTS.iter().map(|(known, ..)| *known).collect();
        return Some(format!("eval.rule_lists: {name:?} is no list; they are {}", valid.join(", ")));
    };
    if list.len() > *entries_max {
        return Some(format!("eval.rule_lists.{name}: {} entries; at most {entries_max}", list.len()));
    }
    let wrong = list.iter().position(|entry| entry.trim().is_empty() || entry.len() > *bytes_max)?;
    Some(format!("eval.rule_lists.{name}[{wrong}]: blank, or longer than {bytes_max} bytes"))
}
