//! Claude Code (`claude_code.*`): log records of prompts, model requests and tools, and in its beta traces spans of the
//! same. Source: <https://code.claude.com/docs/en/monitoring-usage>.

use serde_json::Value;

use super::super::attributes::{self, Slots};
use super::super::guide::Guide;
use super::super::{Dialect, calls, fill, keys, messages, recorded, salvage};
use super::{Counts, Step, event, first, is_false, said, session, step, text, usage, words};
use crate::model::{RawLog, RawSpan, Reading, Role};

/// See the module.
pub struct ClaudeCode;

const GUIDE: Guide = Guide {
    title: "Claude Code",
    setup: "`CLAUDE_CODE_ENABLE_TELEMETRY=1`, `OTEL_LOGS_EXPORTER=otlp`, `OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf`, \
            `OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318`; for content `OTEL_LOG_USER_PROMPTS=1`, \
            `OTEL_LOG_ASSISTANT_RESPONSES=1`, `OTEL_LOG_TOOL_DETAILS=1`.",
    reads: &[
        (
            "trace",
            "one a prompt: from `service.name`, `session.id` and `prompt.id`; one a session where no prompt is named",
        ),
        ("input", "`prompt` of `claude_code.user_prompt`"),
        (
            "output",
            "`response` of `claude_code.assistant_response`, `body` of `claude_code.api_response_body`, of the main conversation only",
        ),
        (
            "model, tokens, cost",
            "`model`, `input_tokens` + `cache_read_tokens` + `cache_creation_tokens`, `output_tokens`, `cost_usd` of `claude_code.api_request`",
        ),
        (
            "tools",
            "`tool_name`, `tool_use_id`, `tool_input` or `tool_parameters`, `success`, `error` of `claude_code.tool_result`",
        ),
        ("failed calls", "`error`, `status_code` of `claude_code.api_error`"),
        (
            "beta traces",
            "spans `claude_code.interaction`, `claude_code.llm_request`, `claude_code.tool` with the same keys; records written inside a span only add words to it",
        ),
    ],
    notes: "A trace of log records settles after `assembly.idle_ms` of silence. What a tool answered is not among the records.",
    cases: &["claude-code"],
};

const FAMILY: &str = "claude_code";
/// Every record that is read.
const EVENTS: &[&str] = &[
    "claude_code.user_prompt",
    "claude_code.api_request",
    "claude_code.api_error",
    "claude_code.tool_result",
    "claude_code.assistant_response",
    "claude_code.api_response_body",
];
/// How their names arrive: in full, or without the agent's name in front.
const LOG_EVENTS: &[&str] = &[
    "claude_code.user_prompt",
    "claude_code.api_request",
    "claude_code.api_error",
    "claude_code.tool_result",
    "claude_code.assistant_response",
    "claude_code.api_response_body",
    "user_prompt",
    "api_request",
    "api_error",
    "tool_result",
    "assistant_response",
    "api_response_body",
];

impl Dialect for ClaudeCode {
    fn name(&self) -> &'static str {
        "claude_code"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.name.starts_with("claude_code.")
    }

    fn read(&self, span: &RawSpan) -> Reading {
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let mut reading = Reading { framework: Some("claude-code".to_owned()), ..Reading::default() };
        let sources = &mut reading.sources;
        fill("session_id", &mut reading.session_id, sources, slots.text(Field::Session as usize));
        fill("user_id", &mut reading.user_id, sources, slots.text(Field::User as usize));
        let role = match span.name.strip_prefix("claude_code.").unwrap_or_default() {
            "user_prompt" | "interaction" => Role::Agent,
            "api_request" | "api_error" | "llm_request" | "assistant_response" | "api_response_body" => Role::Llm,
            "tool_result" | "tool" => Role::Tool,
            _ => Role::Other,
        };
        fill("role", &mut reading.role, sources, Some((keys::SPAN_NAME, role)));
        match role {
            Role::Agent => run(&slots, &mut reading),
            Role::Llm => call(span, &slots, &mut reading),
            Role::Tool => tool(span, &slots, &mut reading),
            _ => {}
        }
        reading
    }

    fn log_events(&self) -> &'static [&'static str] {
        LOG_EVENTS
    }

    fn read_log(&self, log: &RawLog) -> Option<Reading> {
        match event(log, FAMILY, EVENTS).filter(|_| is_ours(log))? {
            "claude_code.user_prompt" => words(log, Some("prompt"), None),
            "claude_code.assistant_response" if is_main(&log.attributes) => words(log, None, Some("response")),
            _ => None,
        }
    }

    fn step(&self, log: &RawLog) -> Option<RawSpan> {
        let event = event(log, FAMILY, EVENTS).filter(|_| is_ours(log))?;
        let session = session(log);
        let prompt = text(log, "prompt.id").unwrap_or_default();
        let error = match event {
            "claude_code.api_error" => Some(first(&log.attributes, &["error", "status_code"])),
            "claude_code.tool_result" if is_false(log, "success") => {
                Some(first(&log.attributes, &["error", "error_type"]))
            }
            _ => None,
        };
        let error = error.map(|found| found.map_or_else(|| "error".to_owned(), |(_, words)| words));
        let begins = event == "claude_code.user_prompt";
        step(log, Step { event, session: &session, prompt: &prompt, begins, error })
    }
}

/// Whether a record with a name that others may use too comes from Claude Code.
fn is_ours(log: &RawLog) -> bool {
    let starts = |value: Option<&Value>| value.and_then(Value::as_str).is_some_and(|text| text.starts_with(FAMILY));
    let service = log.resource.attributes.get("service.name").and_then(Value::as_str);
    log.event_name.starts_with(FAMILY)
        || starts(Some(&log.body))
        || starts(log.attributes.get("event.name"))
        || log.scope.name.contains("claude_code")
        || service.is_some_and(|name| name.starts_with("claude"))
}

/// Whether a call belongs to the conversation itself and not to a helper of it, such as one that finds a title.
fn is_main(attributes: &crate::model::Attributes) -> bool {
    let source = attributes.get("query_source").and_then(Value::as_str).unwrap_or_default();
    source.is_empty() || source.contains("main") || source.starts_with("repl") || source.starts_with("sdk")
}

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    Session,
    User,
    Prompt,
    Response,
    Body,
    Model,
    RequestId,
    Cost,
    Stop,
    ToolName,
    ToolId,
    ToolArguments,
    ToolParameters,
}

const FIELDS: usize = Field::ToolParameters as usize + 1;

fn place(name: &str) -> Option<(usize, u8)> {
    use Field as F;
    let (field, rank) = match name {
        keys::general::SESSION => (F::Session, 0),
        "user.account_uuid" => (F::User, 0),
        keys::general::USER => (F::User, 1),
        "prompt" => (F::Prompt, 0),
        "user_prompt" => (F::Prompt, 1),
        "response" => (F::Response, 0),
        "response.model_output" => (F::Response, 1),
        "body" => (F::Body, 0),
        "model" => (F::Model, 0),
        "request_id" => (F::RequestId, 0),
        keys::gen_ai::RESPONSE_ID => (F::RequestId, 1),
        "cost_usd" => (F::Cost, 0),
        "stop_reason" => (F::Stop, 0),
        "tool_name" => (F::ToolName, 0),
        "tool_use_id" => (F::ToolId, 0),
        keys::gen_ai::TOOL_CALL_ID => (F::ToolId, 1),
        "tool_input" => (F::ToolArguments, 0),
        "tool_parameters" => (F::ToolParameters, 0),
        _ => return None,
    };
    Some((field as usize, rank))
}

fn run(slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    let sources = &mut reading.sources;
    fill("agent_name", &mut reading.agent_name, sources, Some((keys::SCOPE, "claude-code".to_owned())));
    fill("input", &mut reading.input, sources, slots.text(Field::Prompt as usize));
}

fn call(span: &RawSpan, slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    use Field as F;
    let sources = &mut reading.sources;
    fill("model", &mut reading.model, sources, slots.text(F::Model as usize));
    fill("provider", &mut reading.provider, sources, Some((keys::SCOPE, "anthropic".to_owned())));
    fill("response_id", &mut reading.response_id, sources, slots.text(F::RequestId as usize));
    fill("cost_usd", &mut reading.cost_usd, sources, slots.amount(F::Cost as usize));
    reading.finish_reasons.extend(slots.text(F::Stop as usize).map(|(_, reason)| reason));
    let counts = Counts {
        input: &["input_tokens"],
        output: &["output_tokens"],
        cache_read: &["cache_read_tokens"],
        cache_write: &["cache_creation_tokens"],
        reasoning: &[],
        beside_cache: true,
        beside_reasoning: false,
    };
    usage(span, &counts, reading);
    if !is_main(&span.attributes) {
        return;
    }
    if let Some((key, value)) = slots.get(F::Body as usize) {
        let answered = messages::read_as(value, Some("assistant")).map(|read| (key, read));
        fill("output_messages", &mut reading.output_messages, &mut reading.sources, answered);
    }
    said(reading, first(&span.attributes, &["response", "response.model_output"]));
}

fn tool(span: &RawSpan, slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    use Field as F;
    let parameters = slots.get(F::ToolParameters as usize).map(|(key, value)| (key, salvage::unwrapped(value)));
    let part = |name: &str| parameters.as_ref().and_then(|(_, map)| map.get(name)?.as_str());
    // Tools of MCP servers share one name; the parameters tell which it is.
    let of_server = match (slots.text(F::ToolName as usize), part("mcp_server_name"), part("mcp_tool_name")) {
        (Some((key, name)), Some(server), Some(tool)) if name == "mcp_tool" => {
            Some((key, format!("mcp__{server}__{tool}")))
        }
        (named, ..) => named,
    };
    let sources = &mut reading.sources;
    fill("tool_name", &mut reading.tool_name, sources, of_server);
    fill("tool_call_id", &mut reading.tool_call_id, sources, slots.text(F::ToolId as usize));
    let asked = slots.get(F::ToolArguments as usize).map(|(key, value)| (key, calls::arguments(value)));
    fill("tool_arguments", &mut reading.tool_arguments, sources, asked.or(parameters));
    let output = span.events.iter().find(|event| event.name == "tool.output");
    let output =
        output.and_then(|event| ["content", "output"].iter().find_map(|key| Some((*key, event.attributes.get(*key)?))));
    recorded::tool(reading, None, output.filter(|(_, value)| attributes::text(value).is_some()));
}
