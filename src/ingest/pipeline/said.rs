//! What was said of settled traces, counted for whoever watches: by state, and by the rules that failed.
//!
//! Rules have names of this program's or of an operator's, never an agent's, and only so many are told apart.

use std::collections::BTreeMap;

use iris_core::model::Evaluation;

/// Rules that are told apart; the failures of all others are counted together.
const RULES_MAX: usize = 256;
/// The name under which those are.
const OTHERS: &str = "other";

/// Counts since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// Verdicts by their state.
    pub states: BTreeMap<&'static str, u64>,
    /// Failures by the rule's name.
    pub failed: BTreeMap<String, u64>,
}

impl Said {
    /// Counts one evaluation.
    pub(super) fn add(&mut self, evaluation: &Evaluation) {
        *self.states.entry(evaluation.state.as_str()).or_default() += 1;
        for result in evaluation.rule_results.iter().filter(|result| !result.passed && !result.skipped) {
            let is_full = self.failed.len() >= RULES_MAX;
            let name = result.rule_name.to_string();
            let name = if is_full && !self.failed.contains_key(&name) { OTHERS.to_owned() } else { name };
            *self.failed.entry(name).or_default() += 1;
        }
    }
}
