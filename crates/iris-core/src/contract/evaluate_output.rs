//! `evaluate_output`: judge one output with the deterministic rules.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::strict::{Arguments, not_negative, tool_calls};
use super::{Code, Error, Hints, Prose, Tool};
use crate::model::{EvalType, RuleResult, TokenUsage, ToolCall, TraceId};

/// The tool.
pub struct EvaluateOutput;

/// Arguments of `evaluate_output`.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// What to judge; may be left out when trace_id names a trace that holds it.
    #[serde(default)]
    pub output: Option<String>,
    /// Which bundle of rules: completeness, relevance, safety, cost, custom or all.
    #[serde(default)]
    pub eval_type: Option<EvalType>,
    /// What a right answer would say; only expected_coverage reads it.
    #[serde(default)]
    pub expected: Option<String>,
    /// What was asked; the relevance rules need it.
    #[serde(default)]
    pub input: Option<String>,
    /// A stored or open trace to judge or to link to; what the call leaves out is taken from it.
    #[serde(default)]
    pub trace_id: Option<String>,
    /// What it cost, in US dollars.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// Token counts.
    #[serde(default)]
    pub token_usage: Option<TokenUsage>,
    /// The tools that were used, in call order; an empty list says that none were.
    #[serde(default)]
    pub tool_calls: Option<Vec<ToolCall>>,
}

/// Reply of `evaluate_output`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reply {
    /// The evaluation's id.
    pub id: String,
    /// The linked trace, when one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// State, passed, basis (which layer decided), by (the rules), also (the other layers that decided), risk.
    pub verdict: Value,
    /// Per question: judged, unjudged and why, or not_applicable; and the inputs carried.
    pub coverage: Value,
    /// Version, ruleset and config hashes, thresholds and time.
    pub provenance: Value,
    /// Set once the linked trace was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erased_at: Option<String>,
    /// The bundle that ran.
    pub eval_type: EvalType,
    /// Weighted quality over the rules that ran, 0 to 1; never decides.
    pub score: f64,
    /// The ship verdict; false when nothing was judged.
    pub passed: bool,
    /// Per rule: verdict, message, kind, role, question, saw, evidence, uncertainty.
    pub rule_results: Vec<RuleResult>,
    /// What to change.
    pub suggestions: Vec<String>,
    /// How many rules judged.
    pub rules_evaluated: usize,
    /// How many rules skipped.
    pub rules_skipped: usize,
    /// True when no rule could judge.
    pub insufficient_data: bool,
    /// Critical rules that failed and vetoed.
    pub critical_failures: Vec<String>,
    /// Critical rules that could not judge; treat as unknown.
    pub critical_skipped: Vec<String>,
    /// Verdict per bundle, for eval_type all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub categories: Option<Value>,
    /// Present when eval_type was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Arguments for Args {
    fn check(&self) -> Result<(), Error> {
        not_negative("cost_usd", self.cost_usd)?;
        tool_calls(self.tool_calls.as_deref())?;
        match &self.trace_id {
            Some(text) => text.parse::<TraceId>().map(drop).map_err(|error| Error::invalid_argument("trace_id", error)),
            None if self.output.is_none() => {
                Err(Error::invalid_argument("output", "needed, unless trace_id names a trace that holds one"))
            }
            None => Ok(()),
        }
    }
}

impl Tool for EvaluateOutput {
    const NAME: &'static str = "evaluate_output";
    const TITLE: &'static str = "Judge an output";
    const PROSE: Prose = Prose {
        summary: "Judge an agent's output with the deterministic rules: the ship verdict and what decided it, every rule's result with evidence, and \
                  what could not be judged.",
        does: "Runs in this process, without network or key. eval_type picks one bundle or all (the default). A rule without the input it needs \
               skips, is named, and never counts as a pass: input is needed by relevance, tool_calls (given, or stored with trace_id) by the \
               trajectory rules, cost_usd and token_usage by cost, expected by expected_coverage. One row is stored, linked to trace_id when given.",
        not_for: "To screen what goes into an agent: the rules read its output. To find traces: get_traces. Executions that arrived over \
                  OpenTelemetry are judged by themselves when they end.",
        errors: "",
    };
    const ERRORS: &'static [Code] = &[Code::UnknownTrace, Code::StorageError];
    const SIBLINGS: &'static [(&'static str, &'static str)] = &[
        ("log_trace", "store the execution first"),
        ("list_rules", "what each rule needs and how accurate it is"),
        ("get_traces", "find a trace_id"),
    ];
    const HINTS: Hints = Hints { read_only: false, destructive: false, idempotent: false, open_world: false };
    type Args = Args;
    type Reply = Reply;
}
