//! The two providers' requests and answers as bytes: Anthropic's Messages and `OpenAI`'s Chat Completions.
//!
//! Sources: <https://platform.claude.com/docs/en/api/messages>, <https://developers.openai.com/api/reference/chat>.

use serde_json::{Map, Value, json};

use super::{Manner, Provider};

/// Where a provider is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// Whose.
    pub provider: Provider,
    /// The origin that its key belongs to, with the version in its path.
    pub base: &'static str,
    /// What stands behind the base.
    pub path: &'static str,
    /// The header that carries the key.
    pub key_header: &'static str,
    /// What stands before the key in that header.
    pub key_prefix: &'static str,
    /// Headers that every request has.
    pub headers: &'static [(&'static str, &'static str)],
}

/// Where each provider is asked.
pub const ENDPOINTS: [Endpoint; 2] = [
    Endpoint {
        provider: Provider::Anthropic,
        base: "https://api.anthropic.com/v1",
        path: "/messages",
        key_header: "x-api-key",
        key_prefix: "",
        headers: &[("anthropic-version", "2023-06-01")],
    },
    Endpoint {
        provider: Provider::OpenAi,
        base: "https://api.openai.com/v1",
        path: "/chat/completions",
        key_header: "authorization",
        key_prefix: "Bearer ",
        headers: &[],
    },
];

/// One request.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Whom it goes to.
    pub provider: Provider,
    /// The model.
    pub model: &'a str,
    /// The system prompt.
    pub system: &'a str,
    /// The user's message.
    pub user: &'a str,
    /// Tokens of the answer at most.
    pub output_tokens_max: u64,
    /// The parameters the model takes.
    pub manner: Manner,
}

/// The body of a request, as JSON.
pub fn body(request: &Request<'_>) -> Vec<u8> {
    let mut fields = Map::new();
    fields.insert("model".to_owned(), json!(request.model));
    fields.insert(request.manner.token_field.as_str().to_owned(), json!(request.output_tokens_max));
    if let Some(temperature) = request.manner.temperature {
        fields.insert("temperature".to_owned(), json!(temperature));
    }
    let user = json!({ "role": "user", "content": request.user });
    match request.provider {
        Provider::Anthropic => {
            fields.insert("system".to_owned(), json!(request.system));
            fields.insert("messages".to_owned(), json!([user]));
        }
        Provider::OpenAi => {
            let system = json!({ "role": "system", "content": request.system });
            fields.insert("messages".to_owned(), json!([system, user]));
        }
    }
    Value::Object(fields).to_string().into_bytes()
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It had finished.
    End,
    /// It ran out of tokens.
    Cut,
    /// It would not answer.
    Refused,
}

/// A provider's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What the model wrote; empty when it wrote nothing.
    pub text: String,
    /// Why it stopped.
    pub stop: Stop,
    /// The provider's own id.
    pub id: Option<String>,
    /// Tokens sent and received; none when the provider does not say.
    pub usage: Option<(u64, u64)>,
}

/// Code points of a provider's id that are kept.
const ID_CHARS_MAX: usize = 128;

/// Reads an answer of status 200. None when it is no answer of this provider at all.
pub fn read_answer(provider: Provider, body: &[u8]) -> Option<Answer> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let id = value
        .get("id")
        .and_then(Value::as_str)
        .map(|id| id.chars().filter(|letter| !letter.is_control()).take(ID_CHARS_MAX).collect());
    let count = |place: &str| value.pointer(place).and_then(Value::as_u64);
    match provider {
        Provider::Anthropic => {
            let blocks = value.get("content")?.as_array()?;
            let texts = blocks.iter().filter(|block| block.get("type").and_then(Value::as_str) == Some("text"));
            let text = texts.filter_map(|block| block.get("text")?.as_str()).collect::<Vec<_>>().join("\n");
            let stop = match value.get("stop_reason").and_then(Value::as_str) {
                Some("max_tokens" | "model_context_window_exceeded" | "pause_turn") => Stop::Cut,
                Some("refusal") => Stop::Refused,
                _ => Stop::End,
            };
            // What was read from or written to a cache is stated apart.
            let cached = count("/usage/cache_read_input_tokens")
                .unwrap_or(0)
                .saturating_add(count("/usage/cache_creation_input_tokens").unwrap_or(0));
            let usage = count("/usage/input_tokens").zip(count("/usage/output_tokens"));
            Some(Answer {
                text,
                stop,
                id,
                usage: usage.map(|(sent, received)| (sent.saturating_add(cached), received)),
            })
        }
        Provider::OpenAi => {
            let choice = value.pointer("/choices/0")?;
            let message = choice.get("message")?;
            let refused = message.get("refusal").and_then(Value::as_str).is_some_and(|words| !words.is_empty());
            let text = message.get("content").and_then(Value::as_str).unwrap_or_default().to_owned();
            let stop = match choice.get("finish_reason").and_then(Value::as_str) {
                _ if refused => Stop::Refused,
                Some("content_filter") => Stop::Refused,
                Some("length") => Stop::Cut,
                _ => Stop::End,
            };
            let usage = count("/usage/prompt_tokens").zip(count("/usage/completion_tokens"));
            Some(Answer { text, stop, id, usage })
        }
    }
}
