//! An agent trace: who ran, what was asked, what was answered, with which tools, tokens and cost.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::{CostParts, Notes, SpanId, Tenant, Timestamp, TraceId};

/// Where a trace came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TraceSource {
    /// Assembled from OTLP spans; may gain spans.
    Otlp,
    /// Stored by `log_trace`; never changes.
    Tool,
}

/// Where a cost came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CostSource {
    /// Stated by the spans or the caller.
    Reported,
    /// Tokens times list price.
    Estimated,
}

/// One execution of a tool.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The tool's name.
    pub tool_name: String,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// Its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// How long it took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<f64>,
    /// The error with which it failed.
    #[serde(default, deserialize_with = "error", skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The id that ties it to the model's request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
}

/// Token counts of a run; absent when nothing stated them, never 0 for unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenUsage {
    /// Tokens sent to models.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// Tokens received from models.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub completion_tokens: Option<u64>,
    /// Their sum.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
}

/// Accepts a flag in place of the text of an error: many recorders write `"error": false` for none.
fn error<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Told {
        Text(String),
        Flag(bool),
    }
    Ok(Option::<Told>::deserialize(deserializer)?.and_then(|told| match told {
        Told::Text(text) => Some(text),
        Told::Flag(failed) => failed.then(|| "failed".to_owned()),
    }))
}

/// Accepts any JSON number that is a whole count: some clients write `12.0`.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else { return Ok(None) };
    if let Some(count) = number.as_u64() {
        return Ok(Some(count));
    }
    match number.as_f64() {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be whole, not negative and below 2^53"
        )]
        Some(count) if count >= 0.0 && count.fract() == 0.0 && count < 9_007_199_254_740_992.0 => {
            Ok(Some(count as u64))
        }
        _ => Err(serde::de::Error::custom("not a whole number of tokens, zero or more")),
    }
}

/// Where `metadata.otel` of a trace, and the inputs of its evaluation, name the attributes that seem to hold what is
/// missing and that no dialect could read.
pub const UNMAPPED: &str = "unmapped_attributes";

/// Where `metadata.otel` of a trace, and the inputs of its evaluation, say `false` when it has spans that were not looked
/// at: there are too many, or they could not be read back.
pub const EVERY_SPAN: &str = "every_span";

impl Trace {
    /// Says in `metadata.otel` that it has spans which were not looked at.
    pub fn note_cut(&mut self) {
        let otel = self.metadata.entry("otel").or_insert_with(|| Value::Object(Map::new()));
        if let Some(otel) = otel.as_object_mut() {
            otel.insert(EVERY_SPAN.to_owned(), Value::Bool(false));
        }
    }
}

/// One top-most agent run of a trace. Most traces have exactly one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// The span that is the run.
    pub span_id: Option<SpanId>,
    /// Who ran.
    pub agent_name: Option<String>,
    /// What was asked.
    pub input: Option<String>,
    /// What was answered.
    pub output: Option<String>,
    /// The tools it used, in order.
    pub tool_calls: Vec<ToolCall>,
    /// Its tokens.
    pub token_usage: Option<TokenUsage>,
    /// Its cost in USD.
    pub cost_usd: Option<f64>,
    /// What that cost is made of, and why it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_parts: Option<CostParts>,
    /// How long it took, in milliseconds.
    pub latency_ms: Option<f64>,
    /// The error with which the run itself ended.
    pub error: Option<String>,
    /// Why its last model call stopped, as it said; empty when it did not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finish_reasons: Vec<String>,
}

/// One version of a trace. The highest version wins when read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Whose.
    pub tenant: Tenant,
    /// Its id.
    pub trace_id: TraceId,
    /// Counts from 1; rises when a late span reopens the trace.
    pub version: u32,
    /// Where it came from.
    pub source: TraceSource,
    /// Who ran; the service's name when no span says.
    pub agent_name: String,
    /// The library it was built with.
    pub framework: Option<String>,
    /// What was asked.
    pub input: Option<String>,
    /// What was answered.
    pub output: Option<String>,
    /// The tools it used, in order; absent when the spans cannot tell, empty when they say none ran.
    pub tool_calls: Option<Vec<ToolCall>>,
    /// How long the run took, in milliseconds.
    pub latency_ms: Option<f64>,
    /// Its tokens.
    pub token_usage: Option<TokenUsage>,
    /// Its cost in USD.
    pub cost_usd: Option<f64>,
    /// Where the cost came from.
    pub cost_source: Option<CostSource>,
    /// What that cost is made of, and why it is not known; absent for a trace that was stored by a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_parts: Option<CostParts>,
    /// Whatever the caller attached, or the resource and scope of an OTLP trace.
    pub metadata: Map<String, Value>,
    /// When it began.
    pub timestamp: Timestamp,
    /// The conversation.
    pub session_id: Option<String>,
    /// The end user.
    pub user_id: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// Who served it.
    pub provider: Option<String>,
    /// `deployment.environment.name` of the resource.
    pub environment: Option<String>,
    /// `service.version` of the resource.
    pub service_version: Option<String>,
    /// Every top-most agent run, in order of start, then what models answered beside them and, where a span came in
    /// several contents, the other forms of a run.
    pub runs: Vec<Run>,
    /// Closed without its root, by time or by a limit.
    pub partial: bool,
    /// Not settled yet; only ever true for a trace read from memory.
    pub in_progress: bool,
    /// A span id came twice with different content.
    pub conflicting_spans: bool,
    /// Spans seen.
    pub span_count: u32,
    /// Spans that ended in an error.
    pub error_count: u32,
    /// What is odd about its spans.
    #[serde(default, skip_serializing_if = "Notes::is_empty")]
    pub notes: Notes,
    /// The highest journal sequence number it has seen.
    pub seen_through: u64,
}

#[cfg(test)]
mod tests {
    use super::ToolCall;

    #[test]
    fn an_error_is_a_text_or_a_flag() {
        let error = |json: &str| serde_json::from_str::<ToolCall>(json).map(|call| call.error);
        assert_eq!(error(r#"{"tool_name": "t"}"#).unwrap(), None);
        assert_eq!(error(r#"{"tool_name": "t", "error": null}"#).unwrap(), None);
        assert_eq!(error(r#"{"tool_name": "t", "error": false}"#).unwrap(), None);
        assert_eq!(error(r#"{"tool_name": "t", "error": true}"#).unwrap().as_deref(), Some("failed"));
        assert_eq!(error(r#"{"tool_name": "t", "error": "gone"}"#).unwrap().as_deref(), Some("gone"));
        assert!(error(r#"{"tool_name": "t", "error": 3}"#).is_err());
    }
}
