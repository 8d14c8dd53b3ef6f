//! Rules that a deployment writes itself: a type from a closed list and what that type asks for.
//!
//! A definition is compiled once, when it is deployed or comes with a call, and refused with the key that is wrong and
//! what would be right. Compiled, it is a rule like any other: it skips without its input, it never fails, and when a
//! bound on its work is reached before it is done it says that it was defeated, never that it passed.
//!
//! Adding a type: one file, a member of [`RuleType`] and a line in [`TYPES`].

mod action;
mod broken;
mod cost;
mod doubt;
mod json_schema;
mod keys;
mod keywords;
mod length;
mod regex;

#[cfg(test)]
mod tests;

pub use broken::BrokenRule;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::meta::vocabulary;
use super::{Bundle, Case, FailureClass, Kind, Knobs, Mechanism, Need, Outcome, Question, Rule, RuleMeta, SkipClass};
use crate::text::{TEXT_BYTES_MAX, head};

/// The most that a rule may weigh in the score.
pub const WEIGHT_MAX: f64 = 1000.0;

vocabulary! {
    /// What a custom rule checks.
    RuleType {
        /// The output matches a pattern: pattern, flags.
        RegexMatch = "regex_match",
        /// The output matches a pattern nowhere: pattern, flags.
        RegexNoMatch = "regex_no_match",
        /// The output has at least so many characters: min_length.
        MinLength = "min_length",
        /// The output has at most so many characters: max_length.
        MaxLength = "max_length",
        /// The output contains keywords, all or a share of them: keywords, threshold.
        ContainsKeywords = "contains_keywords",
        /// The output contains none of the keywords: keywords.
        ExcludesKeywords = "excludes_keywords",
        /// The output is JSON, and fits a schema when one is given: schema.
        JsonSchema = "json_schema",
        /// The run cost at most so many US dollars: max_cost.
        CostThreshold = "cost_threshold",
        /// The tools were called as allowed: allow, deny.
        ActionPolicy = "action_policy",
    }
}

vocabulary! {
    /// What a failure does: low and medium lower the score, high and critical veto.
    Severity {
        /// Lowers the score.
        Low = "low",
        /// Lowers the score.
        Medium = "medium",
        /// Vetoes.
        High = "high",
        /// Vetoes.
        Critical = "critical",
    }
}

impl Severity {
    /// Whether a failure vetoes.
    pub const fn vetoes(self) -> bool {
        matches!(self, Self::High | Self::Critical)
    }
}

/// What a custom rule checks, as it is written down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Ignored: the rule's own name counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What is checked.
    #[serde(rename = "type")]
    pub rule_type: RuleType,
    /// What that type asks for.
    #[serde(default)]
    pub config: Map<String, Value>,
    /// Its weight in the score, above 0; 1 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
}

/// What is wrong with a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The key, as a dotted path from the definition.
    pub field: String,
    /// What is wrong with it and what would be right; never the value.
    pub why: String,
    /// The keys that would be valid, when one is missing or unknown.
    pub valid: Vec<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.why)
    }
}

/// A definition's check, or what is wrong with the definition.
type Compiled = Result<Box<dyn Check>, Problem>;

/// A type of custom rule.
struct Type {
    rule_type: RuleType,
    needs: &'static [Need],
    mechanism: Mechanism,
    /// The question it answers; that of its bundle when it can be asked about anything.
    question: Option<Question>,
    classes: &'static [FailureClass],
    /// What it found stays true whatever comes later.
    stands: bool,
    suggestion: &'static str,
    compile: fn(&Map<String, Value>) -> Compiled,
}

/// What a definition becomes.
trait Check: Send + Sync {
    /// Judges a case that carries the needs of the type.
    fn judge(&self, case: &Case<'_>) -> Outcome;

    /// The memory it takes, in bytes.
    fn bytes(&self) -> usize;
}

/// Every type.
const TYPES: &[Type] = &[
    regex::MATCH,
    regex::NO_MATCH,
    length::MIN,
    length::MAX,
    keywords::CONTAINS,
    keywords::EXCLUDES,
    json_schema::TYPE,
    cost::TYPE,
    action::TYPE,
];

/// A compiled custom rule.
pub struct CustomRule {
    meta: RuleMeta,
    check: Box<dyn Check>,
}

impl fmt::Debug for CustomRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomRule").field("name", &self.meta.name).finish_non_exhaustive()
    }
}

impl CustomRule {
    /// Compiles a definition.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn compile(
        name: &str,
        description: &str,
        bundle: Bundle,
        severity: Severity,
        definition: &Definition,
    ) -> Result<Self, Problem> {
        let weight = definition.weight.unwrap_or(1.0);
        if !(weight > 0.0 && weight <= WEIGHT_MAX) {
            return Err(problem("weight", format!("a number above 0 and at most {WEIGHT_MAX}")));
        }
        let wanted = |kind: &&Type| kind.rule_type == definition.rule_type;
        let kind = TYPES.iter().find(wanted).ok_or_else(|| problem("type", "is not known"))?;
        let check = (kind.compile)(&definition.config)?;
        let meta = RuleMeta {
            name: Cow::Owned(name.to_owned()),
            bundle,
            description: Cow::Owned(description.to_owned()),
            suggestion: Cow::Borrowed(kind.suggestion),
            weight,
            kind: Kind::Policy,
            mechanism: kind.mechanism,
            needs: kind.needs,
            reads: &[],
            question: kind.question.unwrap_or_else(|| asked(bundle)),
            classes: kind.classes,
            version: 1,
            critical: severity.vetoes(),
            stands: kind.stands,
            knobs: &[],
        };
        Ok(Self { meta, check })
    }

    /// The memory that what was compiled takes, in bytes.
    pub fn bytes(&self) -> usize {
        self.check.bytes()
    }
}

impl Rule for CustomRule {
    fn meta(&self) -> &RuleMeta {
        &self.meta
    }

    fn judge(&self, case: &Case<'_>, _: &Knobs) -> Outcome {
        self.check.judge(case)
    }
}

/// The question that a bundle as a whole asks.
const fn asked(bundle: Bundle) -> Question {
    match bundle {
        Bundle::Completeness => Question::Complete,
        Bundle::Relevance => Question::Relevant,
        Bundle::Safety => Question::SafeOutput,
        Bundle::Cost => Question::WithinBudget,
        Bundle::Custom => Question::TaskCompleted,
    }
}

fn problem(field: &str, why: impl Into<String>) -> Problem {
    Problem { field: field.to_owned(), why: why.into(), valid: Vec::new() }
}

/// A rule that reached a bound before it was done.
fn defeated(why: impl Into<String>) -> Outcome {
    Outcome::Skip { class: SkipClass::Defeated, why: why.into() }
}

/// The output and how many bytes of it are looked at.
fn output<'a>(case: &Case<'a>) -> (&'a str, usize) {
    let text = case.subject().output.unwrap_or_default();
    (text, head(text, TEXT_BYTES_MAX).len())
}

/// What a rule says that looked for something in an output and found nothing in the part it looked at.
fn beyond(text: &str) -> Outcome {
    defeated(format!("only the first {TEXT_BYTES_MAX} of {} bytes of the output were read", text.len()))
}
