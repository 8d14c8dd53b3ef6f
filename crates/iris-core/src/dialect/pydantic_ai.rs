//! pydantic-ai and logfire: what they write beside the GenAI conventions. Earlier versions keep messages as JSON lists of
//! events, the agent's transcript and result stand under keys of their own.
//! Source: <https://ai.pydantic.dev/logfire/> and <https://logfire.pydantic.dev/docs/>.

use serde_json::Value;

use super::attributes::Slots;
use super::guide::Guide;
use super::{Dialect, calls, fill, messages, recorded, salvage, words};
use crate::model::{Message, RawSpan, Reading, Role};

/// The names that the OpenAI Agents integration gives its spans; what a span is stands nowhere else.
const AGENT_RUN: &str = "Agent run: {name!r}";
const AGENTS_TRACE: &str = "OpenAI Agents trace: {name}";
const FUNCTION: &str = "Function: {name}";
const HANDOFF: &str = "Handoff";

/// See the module.
pub struct PydanticAi;

const GUIDE: Guide = Guide {
    title: "pydantic-ai and Logfire",
    setup: "`Agent.instrument_all()` with an OTLP exporter, or `logfire.configure(send_to_logfire=False)` with `OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318`.",
    reads: &[
        (
            "messages",
            "`gen_ai.input.messages`, `gen_ai.output.messages`, `pydantic_ai.all_messages`; format 1 `events`, `all_messages_events`, or log records",
        ),
        ("input, output of a run", "the transcript's last question, `final_result`"),
        ("agent's name", "`gen_ai.agent.name`, `agent_name`"),
        (
            "tools",
            "`gen_ai.tool.call.arguments`, `gen_ai.tool.call.result`; format 1 and 2 `tool_arguments`, `tool_response`",
        ),
        ("tokens, cost", "`gen_ai.usage.*` of calls, `gen_ai.aggregated_usage.*` of runs, `operation.cost`"),
        ("Logfire's integrations", "`request_data`, `response_data`; spans of the OpenAI Agents SDK by their names"),
    ],
    notes: "What Logfire scrubbed is read as not sent.",
    cases: &["pydantic-ai_logfire", "pydantic-ai_v1", "pydantic-ai_v1_logs", "pydantic-ai_v2", "pydantic-ai_v5"],
};

impl Dialect for PydanticAi {
    fn name(&self) -> &'static str {
        "pydantic_ai"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.scope.name == "pydantic-ai" || span.scope.name.starts_with("logfire")
    }

    fn read(&self, span: &RawSpan) -> Reading {
        use Field as F;
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let mut reading = Reading::default();
        if span.scope.name == "logfire.openai_agents" {
            openai_agents(span, &slots, &mut reading);
        }
        let sources = &mut reading.sources;
        if !span.attributes.contains_key(super::keys::gen_ai::OPERATION) {
            // Before 1.0 only the names of spans said what they are.
            let by_name = step_role(&span.name).map(|role| (super::keys::SPAN_NAME, role));
            fill("role", &mut reading.role, sources, by_name);
        }
        fill("agent_name", &mut reading.agent_name, sources, slots.text(F::AgentName as usize));
        fill("request_model", &mut reading.request_model, sources, slots.text(F::ModelName as usize));
        if let Some((key, value)) = slots.get(F::Arguments as usize) {
            fill("tool_arguments", &mut reading.tool_arguments, sources, Some((key, calls::arguments(value))));
        }
        if let Some((key, value)) = slots.get(F::Response as usize) {
            fill("tool_result", &mut reading.tool_result, sources, Some((key, calls::answered(value).result)));
        }
        if let Some((key, value)) = slots.get(F::Events as usize) {
            events(key, value, &mut reading);
        }
        transcript(&slots, &mut reading);
        raw_call(&slots, &mut reading);
        reading
    }
}

fn step_role(span_name: &str) -> Option<Role> {
    Some(match span_name {
        "agent run" => Role::Agent,
        "running tool" => Role::Tool,
        name if name.starts_with("running ") && name.ends_with(['l', 's']) && name.contains(" tool") => Role::Chain,
        _ => return None,
    })
}

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    AgentName,
    ModelName,
    Arguments,
    Response,
    Events,
    Transcript,
    Result,
    Request,
    Reply,
    Name,
    Input,
    Output,
}

const FIELDS: usize = Field::Output as usize + 1;

fn place(name: &str) -> Option<(usize, u8)> {
    use Field as F;
    let (field, rank) = match name {
        "agent_name" => (F::AgentName, 0),
        "model_name" => (F::ModelName, 0),
        "tool_arguments" => (F::Arguments, 0),
        "tool_response" => (F::Response, 0),
        "events" => (F::Events, 0),
        "pydantic_ai.all_messages" => (F::Transcript, 0),
        "all_messages_events" => (F::Transcript, 1),
        "final_result" => (F::Result, 0),
        "request_data" => (F::Request, 0),
        "response_data" => (F::Reply, 0),
        "name" => (F::Name, 0),
        "input" => (F::Input, 0),
        "output" => (F::Output, 0),
        _ => return None,
    };
    Some((field as usize, rank))
}

/// The events of one model call: the last word is the model's.
fn events(key: &str, value: &Value, reading: &mut Reading) {
    let Value::Array(events) = salvage::unwrapped(value) else { return };
    let is_choice = |event: &Value| event.get("event.name").is_some_and(|name| name == "gen_ai.choice");
    let read = |events: Vec<Value>| messages::read(&Value::Array(events));
    let split = match events.iter().position(is_choice) {
        Some(choice) => choice,
        // Calls of the responses API end with the assistant's own messages.
        None => events
            .iter()
            .rposition(|event| event.get("role").is_none_or(|role| role != "assistant"))
            .map_or(0, |at| at + 1),
    };
    let (asked, answered) = events.split_at(split.min(events.len()));
    fill(
        "input_messages",
        &mut reading.input_messages,
        &mut reading.sources,
        read(asked.to_vec()).map(|read| (key, read)),
    );
    fill(
        "output_messages",
        &mut reading.output_messages,
        &mut reading.sources,
        read(answered.to_vec()).map(|read| (key, read)),
    );
}

/// The agent's transcript: its last question and everything after it, and the run's result.
fn transcript(slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    use Field as F;
    let sources = &mut reading.sources;
    if let Some((key, value)) = slots.get(F::Transcript as usize)
        && let Some(read) = messages::read(value)
    {
        fill("input", &mut reading.input, sources, messages::question(&read).map(|text| (key, text)));
        fill(
            "output_messages",
            &mut reading.output_messages,
            sources,
            Some((key, since_question(read))).filter(|(_, read)| !read.is_empty()),
        );
    }
    if let Some((key, text)) = slots.text(F::Result as usize) {
        let answer = words::answer(&Value::String(text.clone())).unwrap_or(text);
        fill("output", &mut reading.output, sources, Some((key, answer)));
    }
}

/// The messages that follow the user's last words.
fn since_question(mut read: Vec<Message>) -> Vec<Message> {
    let asks = |message: &Message| message.role == "user" && messages::text_of(&message.parts).is_some();
    let from = read.iter().rposition(asks).map_or(0, |at| at + 1);
    read.drain(..from);
    read
}

/// A client's call as logfire records it: the request and what is left of the response.
fn raw_call(slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    use Field as F;
    let asked = slots.get(F::Request as usize).and_then(|(key, value)| Some((key, messages::read(value)?)));
    fill("input_messages", &mut reading.input_messages, &mut reading.sources, asked);
    let Some((key, value)) = slots.get(F::Reply as usize) else { return };
    let reply = salvage::unwrapped(value);
    let answered = messages::read(&reply).or_else(|| {
        // Streams keep the text only.
        let text = reply.get("combined_chunk_content")?.clone();
        messages::read(&serde_json::json!({ "role": "assistant", "content": text }))
    });
    fill("output_messages", &mut reading.output_messages, &mut reading.sources, answered.map(|read| (key, read)));
    recorded::usage(reading, reply.get("usage").map(|usage| (key, usage)));
}

/// Spans of the OpenAI Agents SDK, told apart by their names.
fn openai_agents(span: &RawSpan, slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    use Field as F;
    let is_call = span.attributes.contains_key("gen_ai.request.model");
    let role = match span.name.as_str() {
        AGENT_RUN => Role::Agent,
        FUNCTION => Role::Tool,
        AGENTS_TRACE => Role::Chain,
        _ if is_call => return,
        name if name.starts_with("Task: ") || name.starts_with("Turn ") || name.starts_with(HANDOFF) => Role::Chain,
        name if name.starts_with("Guardrail") => Role::Guardrail,
        _ => return,
    };
    let sources = &mut reading.sources;
    fill("role", &mut reading.role, sources, Some((super::keys::SPAN_NAME, role)));
    fill("framework", &mut reading.framework, sources, Some((super::keys::SCOPE, "openai-agents".to_owned())));
    match role {
        Role::Agent => fill("agent_name", &mut reading.agent_name, sources, slots.text(F::Name as usize)),
        Role::Tool => {
            fill("tool_name", &mut reading.tool_name, sources, slots.text(F::Name as usize));
            let arguments = slots.get(F::Input as usize).map(|(key, value)| (key, calls::arguments(value)));
            fill("tool_arguments", &mut reading.tool_arguments, sources, arguments);
            let answered = slots.get(F::Output as usize).map(|(key, value)| (key, calls::answered(value).result));
            fill("tool_result", &mut reading.tool_result, sources, answered);
        }
        _ => {}
    }
}
