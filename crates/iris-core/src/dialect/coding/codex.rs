//! OpenAI's Codex (`codex.*`): log records of a conversation, its prompts, model calls and tools. They name no prompt, so
//! a conversation is one trace. Source: <https://developers.openai.com/codex/config-advanced#observability-and-telemetry>.

use super::super::attributes::Slots;
use super::super::guide::Guide;
use super::super::{Dialect, calls, fill, keys, recorded};
use super::{Counts, Step, event, first, is_false, number, said, session, step, text, usage, words};
use crate::model::{RawLog, RawSpan, Reading, Role};

/// See the module.
pub struct Codex;

const GUIDE: Guide = Guide {
    title: "Codex",
    setup: "In `~/.codex/config.toml`: `[otel]`, `log_user_prompt = true`, \
            `exporter = { otlp-http = { endpoint = \"http://127.0.0.1:4318/v1/logs\", protocol = \"binary\" } }`.",
    reads: &[
        ("trace", "one a conversation: from `service.name` and `conversation.id`"),
        ("input", "`prompt` of the first `codex.user_prompt`"),
        ("output", "`response` of the last `codex.agent_response`, which is sent only when it is turned on"),
        (
            "model, tokens",
            "`model`, `input_token_count`, `output_token_count`, `cached_token_count`, `reasoning_token_count` of `codex.sse_event` with `event.kind=response.completed`",
        ),
        ("tools", "`tool_name`, `call_id`, `arguments`, `output`, `success` of `codex.tool_result`"),
        (
            "failed calls",
            "`error.message`, `http.response.status_code` of `codex.api_request`; `error.message` of `codex.sse_event`",
        ),
    ],
    notes: "A trace of log records settles after `assembly.idle_ms` of silence and opens again with the next prompt.",
    cases: &["codex"],
};

const FAMILY: &str = "codex";
/// Every record that is read.
const EVENTS: &[&str] = &[
    "codex.conversation_starts",
    "codex.user_prompt",
    "codex.sse_event",
    "codex.api_request",
    "codex.tool_result",
    "codex.agent_response",
];

impl Dialect for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.name.starts_with("codex.") && EVENTS.contains(&span.name.as_str())
    }

    fn read(&self, span: &RawSpan) -> Reading {
        use Field as F;
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let mut reading = Reading { framework: Some("codex".to_owned()), ..Reading::default() };
        let role = match span.name.as_str() {
            "codex.conversation_starts" | "codex.user_prompt" => Role::Agent,
            "codex.tool_result" => Role::Tool,
            _ => Role::Llm,
        };
        let sources = &mut reading.sources;
        fill("role", &mut reading.role, sources, Some((keys::SPAN_NAME, role)));
        fill("session_id", &mut reading.session_id, sources, slots.text(F::Conversation as usize));
        fill("user_id", &mut reading.user_id, sources, slots.text(F::User as usize));
        match role {
            Role::Agent => {
                fill("agent_name", &mut reading.agent_name, sources, Some((keys::SCOPE, "codex".to_owned())));
                fill("provider", &mut reading.provider, sources, slots.text(F::Provider as usize));
                fill("input", &mut reading.input, sources, slots.text(F::Prompt as usize));
            }
            Role::Tool => {
                fill("tool_name", &mut reading.tool_name, sources, slots.text(F::ToolName as usize));
                fill("tool_call_id", &mut reading.tool_call_id, sources, slots.text(F::CallId as usize));
                let asked = slots.get(F::Arguments as usize).map(|(key, value)| (key, calls::arguments(value)));
                fill("tool_arguments", &mut reading.tool_arguments, sources, asked);
                recorded::tool(&mut reading, None, slots.get(F::Output as usize));
            }
            _ => {
                fill("model", &mut reading.model, sources, slots.text(F::Model as usize));
                fill("response_id", &mut reading.response_id, sources, slots.text(F::Item as usize));
                usage(span, &COUNTS, &mut reading);
                said(&mut reading, first(&span.attributes, &["response"]));
            }
        }
        reading
    }

    fn log_events(&self) -> &'static [&'static str] {
        EVENTS
    }

    fn read_log(&self, log: &RawLog) -> Option<Reading> {
        match event(log, FAMILY, EVENTS)? {
            "codex.user_prompt" => words(log, Some("prompt"), None),
            "codex.agent_response" => words(log, None, Some("response")),
            _ => None,
        }
    }

    fn step(&self, log: &RawLog) -> Option<RawSpan> {
        let event = event(log, FAMILY, EVENTS)?;
        let failed = first(&log.attributes, &["error.message"]).map(|(_, words)| words);
        let error = match event {
            "codex.tool_result" if is_false(log, "success") => {
                Some(first(&log.attributes, &["output"]).map_or_else(|| "error".to_owned(), |(_, words)| words))
            }
            "codex.tool_result" => None,
            // A request that succeeds is told by the event that completes it, and a stream has many others.
            "codex.api_request" => {
                let refused = number(log, &["http.response.status_code"]).filter(|status| *status >= 400);
                Some(failed.or_else(|| refused.map(|status| format!("status {status}")))?)
            }
            "codex.sse_event" => {
                let completed = text(log, "event.kind").is_some_and(|kind| kind == "response.completed");
                if !completed && failed.is_none() {
                    return None;
                }
                failed
            }
            "codex.agent_response" if text(log, "agent.type").is_some_and(|kind| kind == "subagent") => return None,
            _ => None,
        };
        let session = session(log);
        let begins = event == "codex.conversation_starts";
        step(log, Step { event, session: &session, prompt: "", begins, error })
    }
}

/// Cached tokens are part of the input, reasoning is part of the output.
const COUNTS: Counts<'_> = Counts {
    input: &["input_token_count"],
    output: &["output_token_count"],
    cache_read: &["cached_token_count"],
    cache_write: &[],
    reasoning: &["reasoning_token_count"],
    beside_cache: false,
    beside_reasoning: false,
};

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    Conversation,
    User,
    Provider,
    Prompt,
    Model,
    Item,
    ToolName,
    CallId,
    Arguments,
    Output,
}

const FIELDS: usize = Field::Output as usize + 1;

fn place(name: &str) -> Option<(usize, u8)> {
    use Field as F;
    let (field, rank) = match name {
        "conversation.id" => (F::Conversation, 0),
        "user.account_id" => (F::User, 0),
        "provider_name" => (F::Provider, 0),
        "prompt" => (F::Prompt, 0),
        "model" => (F::Model, 0),
        "slug" => (F::Model, 1),
        "item.id" => (F::Item, 0),
        "tool_name" => (F::ToolName, 0),
        "call_id" => (F::CallId, 0),
        "arguments" => (F::Arguments, 0),
        "output" => (F::Output, 0),
        _ => return None,
    };
    Some((field as usize, rank))
}
