//! One judging as it is stored. The verdict is derived from it by `evaluate::compose`, now and on every read.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Position, Tenant, Timestamp, TraceId};

/// Which rules ran.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum EvalType {
    /// Is the answer all there?
    Completeness,
    /// Does it speak to what was asked?
    Relevance,
    /// Does it harm?
    Safety,
    /// Did it cost too much?
    Cost,
    /// Deployed and inline custom rules only.
    Custom,
    /// Every bundle.
    #[default]
    All,
}

impl EvalType {
    /// The name as it stands in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completeness => "completeness",
            Self::Relevance => "relevance",
            Self::Safety => "safety",
            Self::Cost => "cost",
            Self::Custom => "custom",
            Self::All => "all",
        }
    }
}

/// What a verdict says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VerdictState {
    /// Nothing that was judged is wrong.
    Pass,
    /// Something is wrong.
    Fail,
    /// It cannot be said.
    Unknown,
}

impl VerdictState {
    /// The name as it stands in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Unknown => "unknown",
        }
    }
}

/// Where a rule saw something. Offsets count Unicode code points of the raw text; never an excerpt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Evidence {
    /// A stretch of a text.
    Span {
        /// `output`, `input` or `tool_outputs[i]`.
        source: String,
        /// First code point.
        start: usize,
        /// One past the last code point.
        end: usize,
        /// What kind of thing stands there, such as `phone` or `test_value`.
        label: String,
        /// The failure class, such as `pii_leak`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<String>,
    },
    /// A named pattern and how often it was seen.
    Pattern {
        /// Its name.
        name: String,
        /// How often.
        count: usize,
    },
    /// A tool call.
    ToolCall {
        /// Its place in the trajectory, from 0.
        index: usize,
        /// The tool's name.
        #[serde(rename = "toolName")]
        tool_name: String,
        /// What is wrong with it.
        label: String,
    },
    /// A number held against a threshold.
    Count {
        /// What was counted.
        stat: String,
        /// In which unit.
        unit: String,
        /// How much there was.
        value: f64,
        /// How much was allowed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        threshold: Option<f64>,
        /// Who set the threshold: `default`, `config`, `call` or `rule`.
        #[serde(default, rename = "thresholdSource", skip_serializing_if = "Option::is_none")]
        threshold_source: Option<String>,
    },
}

/// A word of a closed list, or of a custom rule. Most are known when the program is built and need no memory of their
/// own: a judging holds some three hundred of them.
pub type Name = Cow<'static, str>;

/// What one rule said. Field names are the contract's, in camel case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleResult {
    /// The rule.
    pub rule_name: Name,
    /// The id of a deployed custom rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_id: Option<String>,
    /// Its bundle.
    pub category: Name,
    /// Whether its failure vetoes.
    pub critical: bool,
    /// Who decided that: `default` or `config`.
    pub critical_source: Name,
    /// `pass`, `fail` or `not_checked`.
    pub state: Name,
    /// Whether it passed; false for a rule that skipped.
    pub passed: bool,
    /// 0 to 1.
    pub score: f64,
    /// One sentence; never a value the rule found.
    pub message: String,
    /// Present and true when the rule could not judge.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
    /// Why it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_reason: Option<String>,
    /// `not_applicable`, `defeated` or `config_invalid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_class: Option<Name>,
    /// The kind of claim: measurement, detection, inference, judgment, policy or verification.
    pub kind: Name,
    /// What the composer did with it: gate, veto, risk or advisory; absent for a rule that skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Name>,
    /// The question it answers.
    pub question: Name,
    /// The failure classes it looks for.
    pub classes: Vec<Name>,
    /// Its version.
    pub rule_version: u32,
    /// `custom` for a custom rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Name>,
    /// The declared needs that the subject carried.
    pub saw: Vec<Name>,
    /// How sure one can be of it; absent on skips. The same for every result of a rule that says the same.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "shared")]
    #[schemars(with = "Option<Value>")]
    pub uncertainty: Option<Arc<Value>>,
    /// At most 25 items.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// The number a measurement measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Its weight in the score.
    pub weight: f64,
    /// The failure comes from something seen, so no later span of the same trace takes it back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stands: bool,
    /// The version of the trace in which it failed, when a later version no longer shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_in_version: Option<u32>,
}

/// A value that many results share, written as if each had its own.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    pub fn serialize<S: Serializer>(value: &Option<Arc<Value>>, serializer: S) -> Result<S::Ok, S::Error> {
        value.as_deref().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<Value>>, D::Error> {
        Ok(Option::<Value>::deserialize(deserializer)?.map(Arc::new))
    }
}

/// One stored evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Its id: a UUID; derived from trace, version and ruleset when judged inline.
    pub id: String,
    /// Whose.
    pub tenant: Tenant,
    /// The trace it judged, when linked to one.
    pub trace_id: Option<TraceId>,
    /// The version of that trace.
    pub trace_version: Option<u32>,
    /// Which rules ran.
    pub eval_type: EvalType,
    /// When.
    pub created_at: Timestamp,
    /// Made by the sidecar when the trace settled, not by a call.
    pub inline: bool,
    /// The highest journal sequence number of the trace it saw; 0 when it saw no stored trace.
    pub seen_through: u64,
    /// The journal record of an evaluation made by a tool.
    pub position: Option<Position>,
    /// What was judged; absent on inline rows, whose text is the output of the trace's version.
    pub output_text: Option<String>,
    /// What was expected.
    pub expected_text: Option<String>,
    /// Weighted quality of the rules that ran, 0 to 1.
    pub score: f64,
    /// The ship verdict.
    pub passed: bool,
    /// The verdict's state, for filters; the rest of the verdict is composed on read.
    pub state: VerdictState,
    /// What each rule said.
    pub rule_results: Vec<RuleResult>,
    /// Which needs the subject carried, by name.
    pub inputs: Map<String, Value>,
    /// What to change.
    pub suggestions: Vec<String>,
    /// Version, hashes, thresholds, composer settings and time: enough to compose the same verdict again.
    pub provenance: Value,
    /// What the tool that made it answered beyond all that, when a model was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Value>,
    /// Set once the linked trace was deleted.
    pub erased_at: Option<Timestamp>,
}

impl Evaluation {
    /// Whether a model should have been asked and ruled on nothing: there is neither a score nor a verdict then.
    pub fn judged_nothing(&self) -> bool {
        self.answered.is_some() && self.rule_results.iter().all(|result| result.skipped)
    }
}
