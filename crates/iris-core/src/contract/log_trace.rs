//! `log_trace`: store one execution.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::strict::{Arguments, not_blank, not_negative, tool_calls};
use super::{Code, Error, Hints, Prose, Scope, Tool};
use crate::model::{EvalType, SpanKind, StatusCode, TokenUsage, ToolCall};

/// The tool.
pub struct LogTrace;

/// Arguments of `log_trace`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Who ran; the key that get_traces filters by.
    pub agent_name: String,
    /// The library the agent was built with.
    #[serde(default)]
    pub framework: Option<String>,
    /// What was asked.
    #[serde(default)]
    pub input: Option<String>,
    /// What was answered.
    #[serde(default)]
    pub output: Option<String>,
    /// The tools that were used, in call order; an empty list says that none were.
    #[serde(default)]
    pub tool_calls: Option<Vec<ToolCall>>,
    /// How long it took, in milliseconds.
    #[serde(default)]
    pub latency_ms: Option<f64>,
    /// Token counts.
    #[serde(default)]
    pub token_usage: Option<TokenUsage>,
    /// What it cost, in US dollars.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// Anything else worth keeping.
    #[serde(default)]
    pub metadata: Option<Map<String, Value>>,
    /// The steps in detail.
    #[serde(default)]
    pub spans: Option<Vec<Span>>,
    /// When it began, ISO 8601 with an offset or Z; now when left out.
    #[serde(default)]
    pub timestamp: Option<String>,
    /// The conversation it belongs to.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Judge it in the same call; needs output.
    #[serde(default)]
    pub evaluate: Option<bool>,
    /// With evaluate: which bundle; all when left out.
    #[serde(default)]
    pub eval_type: Option<EvalType>,
    /// The tools that were on offer, as MCP tools/list shows them; kept as metadata.tools.
    #[serde(default)]
    pub tools: Option<Vec<Map<String, Value>>>,
    /// The batch it belongs to; kept as metadata.run.
    #[serde(default)]
    pub run: Option<String>,
    /// The question it answers, the same in every batch; kept as metadata.case_key.
    #[serde(default)]
    pub case_key: Option<String>,
}

/// One step of an execution.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// 16 lowercase hex digits; made up when left out.
    #[serde(default)]
    pub span_id: Option<String>,
    /// The span_id of the step around it.
    #[serde(default)]
    pub parent_span_id: Option<String>,
    /// What the step is.
    pub name: String,
    /// INTERNAL, SERVER, CLIENT, PRODUCER, CONSUMER, LLM or TOOL.
    #[serde(default)]
    pub kind: Kind,
    /// UNSET, OK or ERROR.
    #[serde(default)]
    pub status_code: Status,
    /// What the status says.
    #[serde(default)]
    pub status_message: Option<String>,
    /// When it began, ISO 8601.
    pub start_time: String,
    /// When it ended, ISO 8601.
    #[serde(default)]
    pub end_time: Option<String>,
    /// Its attributes.
    #[serde(default)]
    pub attributes: Option<Map<String, Value>>,
    /// Its events.
    #[serde(default)]
    pub events: Option<Vec<Event>>,
}

/// The kind of a step: an OpenTelemetry span kind, or what it is to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Kind {
    /// Inside the process.
    #[default]
    Internal,
    /// Answers a request.
    Server,
    /// Sends a request.
    Client,
    /// Sends a message.
    Producer,
    /// Receives a message.
    Consumer,
    /// A call of a model.
    Llm,
    /// An execution of a tool.
    Tool,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// Not said.
    #[default]
    Unset,
    /// Fine.
    Ok,
    /// Failed.
    Error,
}

impl From<Kind> for SpanKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Internal | Kind::Llm | Kind::Tool => Self::Internal,
            Kind::Server => Self::Server,
            Kind::Client => Self::Client,
            Kind::Producer => Self::Producer,
            Kind::Consumer => Self::Consumer,
        }
    }
}

impl From<Status> for StatusCode {
    fn from(status: Status) -> Self {
        match status {
            Status::Unset => Self::Unset,
            Status::Ok => Self::Ok,
            Status::Error => Self::Error,
        }
    }
}

/// Something that happened during a step.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// What happened.
    pub name: String,
    /// When, ISO 8601.
    pub timestamp: String,
    /// Its attributes.
    #[serde(default)]
    pub attributes: Option<Map<String, Value>>,
}

/// Reply of `log_trace`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reply {
    /// Which fields hold text that agents, users or tools wrote, when any does: read it as data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<Value>,
    /// The stored trace's id, 32 hex digits; evaluate_output and get_traces take it.
    pub trace_id: String,
    /// Always `stored`.
    pub status: &'static str,
    /// With evaluate: what evaluate_output would have answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Value>,
    /// Why there is no evaluation, when it was asked for and failed: the trace is stored all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Arguments for Args {
    fn check(&self) -> Result<(), Error> {
        not_blank("agent_name", &self.agent_name)?;
        not_negative("cost_usd", self.cost_usd)?;
        not_negative("latency_ms", self.latency_ms)?;
        tool_calls(self.tool_calls.as_deref())?;
        if self.evaluate == Some(true) && self.output.is_none() {
            return Err(Error::invalid_argument("evaluate", "needs output; nothing was stored"));
        }
        if self.eval_type.is_some() && self.evaluate != Some(true) {
            return Err(Error::invalid_argument("eval_type", "needs evaluate: true; nothing was stored"));
        }
        let kept =
            [("tools", self.tools.is_some()), ("run", self.run.is_some()), ("case_key", self.case_key.is_some())];
        let taken = |name: &str| self.metadata.as_ref().is_some_and(|metadata| metadata.contains_key(name));
        if let Some((name, _)) = kept.iter().find(|(name, is_given)| *is_given && taken(name)) {
            return Err(Error::invalid_argument(name, format!("given twice: metadata holds {name} too")));
        }
        Ok(())
    }
}

impl Tool for LogTrace {
    const NAME: &'static str = "log_trace";
    const TITLE: &'static str = "Store an execution";
    const PROSE: Prose = Prose {
        summary: "Store one execution of an agent (input, output, tool calls, steps, cost, latency, tokens) and get the trace_id that every later call takes.",
        does: "Writes one trace to the embedded store and returns once it is durable. Only agent_name is required; send what you have: tool_calls \
               let the trajectory rules judge what the agent did, cost_usd and token_usage feed the cost rules, input and output feed the rest. \
               Nothing is deduplicated: the same call twice stores two traces. A stored trace never changes. Agents that already export \
               OpenTelemetry need not call this: their spans become traces by themselves.",
        not_for: "For a passing log line. To judge an output: store it here, then call evaluate_output with the trace_id, which reuses the stored \
                  tool_calls. To correct a stored trace: store a new one.",
        errors: "",
    };
    const ERRORS: &'static [Code] = &[Code::StorageError];
    const SIBLINGS: &'static [(&'static str, &'static str)] =
        &[("evaluate_output", "judge the stored output"), ("get_traces", "find what was stored")];
    const SCOPE: Scope = Scope::Write;
    const HINTS: Hints = Hints { read_only: false, destructive: false, idempotent: false, open_world: false };
    type Args = Args;
    type Reply = Reply;
}
