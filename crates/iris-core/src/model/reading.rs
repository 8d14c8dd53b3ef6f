//! What a dialect read from one span or log record.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Name;

/// The part a span plays in an agent's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Role {
    /// One run of an agent.
    Agent,
    /// A step, chain, workflow or graph node around others.
    Chain,
    /// One call of a model.
    Llm,
    /// One execution of a tool.
    Tool,
    /// An embedding call.
    Embedding,
    /// A retrieval.
    Retriever,
    /// A reranking.
    Reranker,
    /// A guardrail check.
    Guardrail,
    /// An evaluation made by the application itself.
    Evaluator,
    /// A prompt template.
    Prompt,
    /// Belongs to an AI library but plays none of these parts.
    Other,
}

/// Token counts as the span states them; null when it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens sent, cached ones included.
    pub input: Option<u64>,
    /// Tokens received, reasoning included.
    pub output: Option<u64>,
    /// Their sum, when stated apart.
    pub total: Option<u64>,
    /// Of the input, read from a cache.
    pub cache_read: Option<u64>,
    /// Of the input, written to a cache.
    pub cache_write: Option<u64>,
    /// Of the output, spent on reasoning.
    pub reasoning: Option<u64>,
    /// Of the input, sound.
    #[serde(default)]
    pub input_audio: Option<u64>,
    /// Of the output, sound.
    #[serde(default)]
    pub output_audio: Option<u64>,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant` or `tool`, whatever the library called it.
    pub role: String,
    /// Its parts in order.
    pub parts: Vec<Part>,
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// Reasoning, shown apart from the answer.
    Reasoning {
        /// The words.
        text: String,
    },
    /// A tool the model asks for.
    ToolCall {
        /// The call's id.
        id: Option<String>,
        /// The tool's name.
        name: String,
        /// Its arguments, parsed when they were JSON.
        arguments: Value,
    },
    /// What a tool answered.
    ToolResult {
        /// The call's id.
        id: Option<String>,
        /// The tool's name, when said.
        name: Option<String>,
        /// Its answer.
        result: Value,
    },
    /// Media or anything else, replaced by a placeholder that names it.
    Other {
        /// Such as `image/png, 3145728 bytes, sha256=9f86d081884c7d65`.
        what: String,
    },
}

/// What the dialects read from one span, merged field by field. Absent means the span did not say.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Reading {
    /// The dialects that spoke, in order of precedence.
    pub dialects: Vec<String>,
    /// The part the span plays; absent when it is no AI span.
    pub role: Option<Role>,
    /// The agent's name.
    pub agent_name: Option<String>,
    /// The library the agent was built with.
    pub framework: Option<String>,
    /// The run's or step's own input as text.
    pub input: Option<String>,
    /// The run's or step's own output as text.
    pub output: Option<String>,
    /// The messages sent to the model, or the run's transcript so far.
    pub input_messages: Option<Vec<Message>>,
    /// The messages the model answered.
    pub output_messages: Option<Vec<Message>>,
    /// The tool's name.
    pub tool_name: Option<String>,
    /// The id that ties a tool's execution to the model's request.
    pub tool_call_id: Option<String>,
    /// The tool's arguments.
    pub tool_arguments: Option<Value>,
    /// The tool's result.
    pub tool_result: Option<Value>,
    /// The text of the error with which the span ended.
    pub error: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// The model that was asked for.
    pub request_model: Option<String>,
    /// Who served it.
    pub provider: Option<String>,
    /// The provider's id of the answer; the same call seen twice has it twice.
    pub response_id: Option<String>,
    /// Why the model stopped.
    pub finish_reasons: Vec<String>,
    /// Tokens.
    pub usage: Usage,
    /// The cost in USD that the span states.
    pub cost_usd: Option<f64>,
    /// The conversation.
    pub session_id: Option<String>,
    /// The end user.
    pub user_id: Option<String>,
    /// Which attribute each field came from.
    pub sources: BTreeMap<Name, Name>,
    /// Attributes that seem to hold what is missing and that no dialect could read: keys only, at most sixteen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmapped: Vec<String>,
}

impl Reading {
    /// Whether the span alone makes a trace: an agent, a model call, an embedding or a tool, or a step that was asked
    /// something and answered. Other steps, prompts and retrievals only belong to one.
    pub fn is_agentic(&self) -> bool {
        matches!(self.role, Some(Role::Agent | Role::Llm | Role::Tool | Role::Embedding)) || self.is_answered_step()
    }

    /// A step that says what it was asked and what it answered.
    pub fn is_answered_step(&self) -> bool {
        self.role == Some(Role::Chain) && self.input.is_some() && self.output.is_some()
    }
}
