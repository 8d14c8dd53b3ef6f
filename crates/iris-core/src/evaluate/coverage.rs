//! What was asked and what was not.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Dormant, Provenance};
use crate::model::{Evaluation, RuleResult, UNMAPPED};
use crate::rules::Question;

/// How far one question was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct QuestionCoverage {
    /// The question.
    pub id: String,
    /// `judged`, `unjudged` or `not_applicable` (no rule of what ran asks it).
    pub status: String,
    /// Why it was not, or not wholly, judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How many of its rules ran.
    pub evaluated: usize,
    /// How many there are.
    pub of: usize,
}

/// What was asked and what was not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Coverage {
    /// Which inputs were there, by name.
    pub inputs: Map<String, Value>,
    /// Every question, in the order of the registry.
    pub questions: Vec<QuestionCoverage>,
    /// Attributes of the trace's spans that seem to hold what is missing and that nothing could read: keys, never values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmapped_attributes: Vec<String>,
    /// Deployed rules that would veto and did not fire, because this version could not read them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dormant: Vec<Dormant>,
}

/// The coverage of an evaluation.
pub fn coverage(evaluation: &Evaluation) -> Coverage {
    let questions = Question::ALL.iter().map(|question| one(question.as_str(), &evaluation.rule_results)).collect();
    let mut inputs = evaluation.inputs.clone();
    let unmapped = inputs.remove(UNMAPPED);
    let keys = unmapped.as_ref().and_then(Value::as_array).into_iter().flatten();
    let unmapped_attributes = keys.filter_map(Value::as_str).map(str::to_owned).collect();
    let dormant = Provenance::read(evaluation).map(|provenance| provenance.dormant).unwrap_or_default();
    Coverage { inputs, questions, unmapped_attributes, dormant }
}

fn one(question: &str, results: &[RuleResult]) -> QuestionCoverage {
    let asked: Vec<&RuleResult> = results.iter().filter(|result| result.question == question).collect();
    let skipped: Vec<&RuleResult> = asked.iter().copied().filter(|result| result.skipped).collect();
    let (of, evaluated) = (asked.len(), asked.len() - skipped.len());
    let (status, why) = match (of, evaluated) {
        (0, _) => ("not_applicable", None),
        (_, 0) => ("unjudged", Some(reason(&skipped))),
        _ if skipped.is_empty() => ("judged", None),
        _ => ("judged", Some(format!("partial: {} of {of} skipped: {}", skipped.len(), reason(&skipped)))),
    };
    QuestionCoverage { id: question.to_owned(), status: status.to_owned(), why, evaluated, of }
}

/// The gravest kind of skip and what it concerns.
fn reason(skipped: &[&RuleResult]) -> String {
    for class in ["defeated", "config_invalid"] {
        let of_class = skipped.iter().filter(|result| result.skip_class.as_deref() == Some(class));
        let rules: Vec<&str> = of_class.map(|result| &*result.rule_name).collect();
        if !rules.is_empty() {
            return format!("{class}: {}", rules.join(", "));
        }
    }
    let mut whys: Vec<&str> = skipped.iter().filter_map(|result| result.skip_reason.as_deref()).collect();
    whys.sort_unstable();
    whys.dedup();
    format!("not supplied: {}", whys.join("; "))
}
