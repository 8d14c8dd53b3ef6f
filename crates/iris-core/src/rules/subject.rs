//! What may be looked at.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::meta::vocabulary;
use crate::model::{CostParts, TokenUsage, ToolCall};
use crate::text::is_blank;

vocabulary! {
    /// One kind of input.
    Need {
        /// The answer.
        Output = "output",
        /// The ask.
        Input = "input",
        /// The answer that was expected.
        Expected = "expected",
        /// The tools that were called.
        ToolCalls = "tool_calls",
        /// What those tools returned.
        ToolOutputs = "tool_outputs",
        /// The tools that could have been called.
        ToolsCatalogue = "tools_catalogue",
        /// The steps that were expected.
        ExpectedTrajectory = "expected_trajectory",
        /// The cost in USD.
        Cost = "cost",
        /// Token counts.
        Tokens = "tokens",
        /// Cited sources.
        Citations = "citations",
    }
}

/// What one judging may look at. What is absent was not supplied; it is never read as empty or zero.
#[derive(Debug, Clone, Copy, Default)]
pub struct Subject<'a> {
    /// The answer; sent and empty is not the same as not sent.
    pub output: Option<&'a str>,
    /// The ask.
    pub input: Option<&'a str>,
    /// The answer that was expected.
    pub expected: Option<&'a str>,
    /// The tools called, in order; an empty list says that none was.
    pub tool_calls: Option<&'a [ToolCall]>,
    /// The tools on offer, as MCP `tools/list` shows them.
    pub tools_catalogue: Option<&'a Value>,
    /// The steps expected.
    pub expected_trajectory: Option<&'a Value>,
    /// The cost in USD.
    pub cost_usd: Option<f64>,
    /// What earlier runs of this agent cost in USD, the oldest first; empty when nobody knows.
    pub cost_history: &'a [f64],
    /// What the cost is made of, and why it is not known.
    pub cost_parts: Option<&'a CostParts>,
    /// Token counts.
    pub token_usage: Option<TokenUsage>,
    /// Why the model stopped, as it said.
    pub finish_reasons: &'a [String],
}

impl Subject<'_> {
    /// Whether the subject carries this input. A blank input or expectation and a negative cost count as absent.
    pub fn carries(&self, need: Need) -> bool {
        let shown = |text: Option<&str>| text.is_some_and(|text| !is_blank(text));
        let listed = |value: Option<&Value>| match value {
            Some(Value::Array(items)) => !items.is_empty(),
            Some(Value::Object(fields)) => !fields.is_empty(),
            _ => false,
        };
        let steps = self.tool_calls.unwrap_or_default();
        match need {
            Need::Output => self.output.is_some(),
            Need::Input => shown(self.input),
            Need::Expected => shown(self.expected),
            Need::ToolCalls => !steps.is_empty(),
            Need::ToolOutputs => steps.iter().any(|step| {
                shown(step.error.as_deref())
                    || match &step.output {
                        Some(Value::String(text)) => !is_blank(text),
                        Some(Value::Null) | None => false,
                        Some(_) => true,
                    }
            }),
            Need::ToolsCatalogue => listed(self.tools_catalogue),
            Need::ExpectedTrajectory => listed(self.expected_trajectory),
            Need::Cost => self.cost_usd.is_some_and(|cost| cost >= 0.0),
            Need::Tokens => self
                .token_usage
                .is_some_and(|usage| usage.prompt_tokens.or(usage.completion_tokens).or(usage.total_tokens).is_some()),
            Need::Citations => false,
        }
    }

    /// Why an input that is not carried is not, in words.
    pub fn lack(&self, need: Need) -> String {
        match need {
            Need::ToolCalls if self.tool_calls.is_some() => "no tool calls were made".to_owned(),
            Need::Cost => {
                self.cost_parts.and_then(CostParts::lack).unwrap_or_else(|| format!("{} not supplied", need.as_str()))
            }
            _ => format!("{} not supplied", need.as_str()),
        }
    }
}
