//! Gemini CLI (`gemini_cli.*`): log records of prompts, model calls and tools.
//! Source: <https://github.com/google-gemini/gemini-cli/blob/main/docs/cli/telemetry.md>.

use serde_json::{Value, json};

use super::super::attributes::Slots;
use super::super::guide::Guide;
use super::super::{Dialect, calls, fill, keys, messages, salvage};
use super::{Counts, Step, event, first, is_false, session, step, text, usage, words};
use crate::model::{Message, RawLog, RawSpan, Reading, Role};

/// See the module.
pub struct GeminiCli;

const GUIDE: Guide = Guide {
    title: "Gemini CLI",
    setup: "In `.gemini/settings.json`: `\"telemetry\": {\"enabled\": true, \"target\": \"local\", \
            \"otlpEndpoint\": \"http://127.0.0.1:4317\", \"logPrompts\": true}`.",
    reads: &[
        ("trace", "one a prompt: from `service.name`, `session.id` and `prompt_id`"),
        ("input", "`prompt` of `gemini_cli.user_prompt`"),
        ("output", "`response_text` of the last `gemini_cli.api_response` of the main conversation"),
        (
            "model, tokens",
            "`model`, `input_token_count`, `output_token_count` + `thoughts_token_count`, `cached_content_token_count` of `gemini_cli.api_response`",
        ),
        ("tools", "`function_name`, `function_args`, `success`, `error` of `gemini_cli.tool_call`"),
        ("failed calls", "`error`, `status_code` of `gemini_cli.api_error`"),
    ],
    notes: "A trace of log records settles after `assembly.idle_ms` of silence. What a tool answered is not among the records.",
    cases: &["gemini-cli"],
};

const FAMILY: &str = "gemini_cli";
/// Every record that is read.
const EVENTS: &[&str] =
    &["gemini_cli.user_prompt", "gemini_cli.api_response", "gemini_cli.api_error", "gemini_cli.tool_call"];

impl Dialect for GeminiCli {
    fn name(&self) -> &'static str {
        "gemini_cli"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.name.starts_with("gemini_cli.")
    }

    fn read(&self, span: &RawSpan) -> Reading {
        use Field as F;
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let mut reading = Reading { framework: Some("gemini-cli".to_owned()), ..Reading::default() };
        let role = match span.name.as_str() {
            "gemini_cli.user_prompt" => Role::Agent,
            "gemini_cli.api_response" | "gemini_cli.api_error" => Role::Llm,
            "gemini_cli.tool_call" => Role::Tool,
            _ => Role::Other,
        };
        let sources = &mut reading.sources;
        fill("role", &mut reading.role, sources, Some((keys::SPAN_NAME, role)));
        match role {
            Role::Agent => {
                fill("agent_name", &mut reading.agent_name, sources, Some((keys::SCOPE, "gemini-cli".to_owned())));
                fill("input", &mut reading.input, sources, slots.text(F::Prompt as usize));
            }
            Role::Llm => {
                fill("model", &mut reading.model, sources, slots.text(F::Model as usize));
                fill("provider", &mut reading.provider, sources, Some((keys::SCOPE, "gcp.gen_ai".to_owned())));
                usage(span, &COUNTS, &mut reading);
                if is_main(span)
                    && let Some((key, value)) = slots.get(F::Response as usize)
                {
                    let said = reply(value).map(|read| (key, read));
                    fill("output_messages", &mut reading.output_messages, &mut reading.sources, said);
                }
            }
            Role::Tool => {
                fill("tool_name", &mut reading.tool_name, sources, slots.text(F::ToolName as usize));
                let asked = slots.get(F::Arguments as usize).map(|(key, value)| (key, calls::arguments(value)));
                fill("tool_arguments", &mut reading.tool_arguments, sources, asked);
            }
            _ => {}
        }
        reading
    }

    fn log_events(&self) -> &'static [&'static str] {
        EVENTS
    }

    fn read_log(&self, log: &RawLog) -> Option<Reading> {
        match event(log, FAMILY, EVENTS)? {
            "gemini_cli.user_prompt" => words(log, Some("prompt"), None),
            _ => None,
        }
    }

    fn step(&self, log: &RawLog) -> Option<RawSpan> {
        let event = event(log, FAMILY, EVENTS)?;
        let error = match event {
            "gemini_cli.api_error" => Some(first(&log.attributes, &["error", "error.message", "error_type"])),
            "gemini_cli.tool_call" if is_false(log, "success") => {
                Some(first(&log.attributes, &["error", "error.message", "error_type"]))
            }
            _ => None,
        };
        let error = error.map(|found| found.map_or_else(|| "error".to_owned(), |(_, words)| words));
        let (session, prompt) = (session(log), text(log, "prompt_id").unwrap_or_default());
        let begins = event == "gemini_cli.user_prompt";
        step(log, Step { event, session: &session, prompt: &prompt, begins, error })
    }
}

/// Cached tokens are part of the input, those of tools too; thoughts stand beside the output.
const COUNTS: Counts<'_> = Counts {
    input: &["input_token_count"],
    output: &["output_token_count"],
    cache_read: &["cached_content_token_count"],
    cache_write: &[],
    reasoning: &["thoughts_token_count"],
    beside_cache: false,
    beside_reasoning: true,
};

/// Whether a call belongs to the conversation and not to a helper of it.
fn is_main(span: &RawSpan) -> bool {
    span.attributes.get("role").and_then(Value::as_str).is_none_or(|role| role == "main")
}

/// The model's words: plain, one reply as JSON, or the pieces of a streamed one.
fn reply(value: &Value) -> Option<Vec<Message>> {
    let opened = salvage::unwrapped(value);
    let pieces = match &opened {
        Value::Array(pieces) => pieces.as_slice(),
        Value::Object(_) => std::slice::from_ref(&opened),
        Value::String(text) => {
            return messages::read(&json!({ "role": "assistant", "content": text }));
        }
        _ => return None,
    };
    let parts = pieces.iter().filter_map(|piece| piece.pointer("/candidates/0/content/parts")?.as_array()).flatten();
    let mut words = String::new();
    let mut others = Vec::new();
    for part in parts {
        match part.get("text").and_then(Value::as_str) {
            Some(_) if part.get("thought") == Some(&Value::Bool(true)) => {}
            Some(text) => words.push_str(text),
            None => others.push(part.clone()),
        }
    }
    let text = (!words.is_empty()).then(|| json!({ "text": words }));
    let parts: Vec<Value> = text.into_iter().chain(others).collect();
    messages::read(&json!({ "role": "model", "parts": parts }))
        .filter(|read| read.iter().any(|message| !message.parts.is_empty()))
}

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    Prompt,
    Model,
    Response,
    ToolName,
    Arguments,
}

const FIELDS: usize = Field::Arguments as usize + 1;

fn place(name: &str) -> Option<(usize, u8)> {
    use Field as F;
    let (field, rank) = match name {
        "prompt" => (F::Prompt, 0),
        "model" => (F::Model, 0),
        "model_name" => (F::Model, 1),
        "response_text" => (F::Response, 0),
        "function_name" => (F::ToolName, 0),
        "function_args" => (F::Arguments, 0),
        _ => return None,
    };
    Some((field as usize, rank))
}
