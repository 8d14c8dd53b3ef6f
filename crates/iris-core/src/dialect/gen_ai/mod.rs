//! The OpenTelemetry GenAI conventions, current and older, as attributes, span events and log records.
//! Source: <https://opentelemetry.io/docs/specs/semconv/gen-ai/> and <https://github.com/open-telemetry/semantic-conventions-genai>.

mod events;

use serde_json::{Map, Value};

use super::attributes::{self, Slots};
use super::guide::Guide;
use super::keys::{self, gen_ai as key};
use super::{Dialect, calls, fill, messages, salvage, words};
use crate::model::{Message, Part, RawLog, RawSpan, Reading, Role};

/// See the module.
pub struct GenAi;

const GUIDE: Guide = Guide {
    title: "OpenTelemetry GenAI conventions",
    setup: "Set `OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318` and `OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf`, or port 4317 and `grpc`; content with `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` (`span_only`; in older instrumentations `true`, or `span_only` with `OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental`). Send logs too: several modes keep the content in log records.",
    reads: &[
        ("role", "`gen_ai.operation.name`, else what the span carries"),
        (
            "messages",
            "`gen_ai.input.messages`, `gen_ai.output.messages`, `gen_ai.system_instructions`, as JSON or structured, on the span, its events or the log record `gen_ai.client.inference.operation.details`; until 1.36 `gen_ai.*.message` and `gen_ai.choice` records and events; until 1.27 `gen_ai.prompt`, `gen_ai.completion`, whole or indexed, `gen_ai.content.*` events",
        ),
        ("agent's name", "`gen_ai.agent.name`, else the name after `invoke_agent`"),
        (
            "tools",
            "`gen_ai.tool.name`, `gen_ai.tool.call.id`, `gen_ai.tool.call.arguments`, `gen_ai.tool.call.result`; Spring AI's `spring.ai.kind`, `spring.ai.tool.*`",
        ),
        (
            "model, provider",
            "`gen_ai.response.model`, `gen_ai.request.model`, `gen_ai.provider.name`, until 1.36 `gen_ai.system`",
        ),
        ("tokens", "`gen_ai.usage.*` in their current and older names"),
        ("retrieval", "`gen_ai.retrieval.query.text`, `gen_ai.retrieval.documents`"),
        ("session", "`gen_ai.conversation.id`"),
        ("failure", "status, `exception` event, `error.type`, log record `gen_ai.client.operation.exception`"),
    ],
    notes: "Where a new and an older name disagree the new one counts.",
    cases: &[
        "otel-genai-langchain",
        "otel-genai-openai-agents",
        "otel-genai-openai_default",
        "otel-genai-openai_span",
        "otel-openai-agents-v2",
        "otel-openai-v2_default",
        "otel-openai-v2_default_content",
        "otel-openai-v2_latest_event_only",
        "otel-openai-v2_latest_no_content",
        "otel-openai-v2_latest_span_and_event",
        "otel-openai-v2_latest_span_only",
    ],
};

impl Dialect for GenAi {
    fn name(&self) -> &'static str {
        "gen_ai"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.attributes.keys().any(|name| name.starts_with(key::PREFIX))
            || span.events.iter().any(|event| event.name.starts_with(key::PREFIX))
    }

    fn read(&self, span: &RawSpan) -> Reading {
        let mut reading = read(&span.attributes, Some(&span.name));
        if reading.agent_name.as_deref() == Some("OpenAI Agent") && span.scope.name.ends_with("openai_agents") {
            // A constant of that instrumentation, on every span whatever the agent's name.
            reading.agent_name = None;
        }
        if reading.agent_name.is_none() && reading.role == Some(Role::Agent) {
            reading.agent_name = name_after_operation(&span.name, &reading);
            reading.sources.insert("agent_name".into(), keys::SPAN_NAME.into());
        }
        events::read_span_events(span, &mut reading);
        if reading.role.is_none() {
            let asked = reading.input.is_some() || reading.input_messages.is_some();
            let answered = reading.output.is_some() || reading.output_messages.is_some();
            // Content in events is a model's; on a span that says nothing else it is that of a run.
            let in_events = [&"input_messages", &"output_messages"]
                .iter()
                .any(|field| reading.sources.get(**field).is_some_and(|source| source == events::SOURCE));
            let role = if in_events { (events::SOURCE, Role::Llm) } else { (keys::CONTENT, Role::Agent) };
            let guessed = (asked || answered).then_some(role);
            fill("role", &mut reading.role, &mut reading.sources, guessed);
        }
        reading
    }

    fn log_events(&self) -> &'static [&'static str] {
        events::LOG_EVENTS
    }

    fn read_log(&self, log: &RawLog) -> Option<Reading> {
        events::read_log(log)
    }
}

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    Operation,
    Provider,
    Conversation,
    Agent,
    Workflow,
    RequestModel,
    Model,
    ResponseId,
    FinishReasons,
    Instructions,
    Input,
    Output,
    Prompt,
    Completion,
    ToolName,
    ToolCallId,
    ToolArguments,
    ToolResult,
    InputTokens,
    OutputTokens,
    TotalTokens,
    CacheRead,
    CacheWrite,
    Reasoning,
    Cost,
    Query,
    Documents,
    Handoff,
    Indexed,
}

const FIELDS: usize = Field::Indexed as usize + 1;

/// Which field a key fills, and how it ranks among its older names.
fn place(name: &str) -> Option<(usize, u8)> {
    use Field as F;
    if !name.starts_with(key::PREFIX) {
        return Some(match name {
            key::LLM_TOTAL_TOKENS => (F::TotalTokens as usize, 1),
            key::OPERATION_COST => (F::Cost as usize, 2),
            key::SPRING_KIND => (F::Operation as usize, 0),
            key::SPRING_TOOL => (F::ToolName as usize, 1),
            key::SPRING_ARGUMENTS => (F::ToolArguments as usize, 4),
            key::SPRING_RESULT => (F::ToolResult as usize, 4),
            _ => return None,
        });
    }
    let (field, rank) = match name {
        key::OPERATION => (F::Operation, 1),
        key::PROVIDER => (F::Provider, 0),
        key::SYSTEM => (F::Provider, 1),
        key::CONVERSATION => (F::Conversation, 0),
        key::AGENT_NAME => (F::Agent, 0),
        key::WORKFLOW_NAME => (F::Workflow, 0),
        key::REQUEST_MODEL => (F::RequestModel, 0),
        key::RESPONSE_MODEL => (F::Model, 0),
        key::RESPONSE_ID => (F::ResponseId, 0),
        key::FINISH_REASONS => (F::FinishReasons, 0),
        key::FINISH_REASON => (F::FinishReasons, 1),
        key::SYSTEM_INSTRUCTIONS => (F::Instructions, 0),
        key::INPUT_MESSAGES => (F::Input, 0),
        key::OUTPUT_MESSAGES => (F::Output, 0),
        key::PROMPT => (F::Prompt, 0),
        key::COMPLETION => (F::Completion, 0),
        key::TOOL_NAME => (F::ToolName, 0),
        key::TOOL_CALL_ID => (F::ToolCallId, 0),
        key::TOOL_ARGUMENTS => (F::ToolArguments, 0),
        key::TOOL_RESULT => (F::ToolResult, 0),
        "gen_ai.retrieval.query.text" => (F::Query, 0),
        "gen_ai.retrieval.documents" => (F::Documents, 0),
        key::INPUT_TOKENS => (F::InputTokens, 0),
        key::PROMPT_TOKENS => (F::InputTokens, 1),
        key::AGGREGATED_INPUT => (F::InputTokens, 2),
        key::OUTPUT_TOKENS => (F::OutputTokens, 0),
        key::COMPLETION_TOKENS => (F::OutputTokens, 1),
        key::AGGREGATED_OUTPUT => (F::OutputTokens, 2),
        key::TOTAL_TOKENS => (F::TotalTokens, 0),
        key::CACHE_READ => (F::CacheRead, 0),
        key::CACHE_READ_OLD => (F::CacheRead, 1),
        key::CACHE_READ_DETAILS => (F::CacheRead, 2),
        key::CACHE_WRITE => (F::CacheWrite, 0),
        key::CACHE_CREATION => (F::CacheWrite, 1),
        key::CACHE_CREATION_OLD => (F::CacheWrite, 2),
        key::CACHE_WRITE_OLD => (F::CacheWrite, 3),
        key::REASONING => (F::Reasoning, 0),
        key::REASONING_OLD => (F::Reasoning, 1),
        key::REASONING_EXPERIMENTAL => (F::Reasoning, 2),
        key::REASONING_DETAILS => (F::Reasoning, 3),
        key::COST => (F::Cost, 0),
        key::TOTAL_COST => (F::Cost, 1),
        key::HANDOFF_FROM => (F::Handoff, 0),
        _ if name.starts_with("gen_ai.prompt.") || name.starts_with("gen_ai.completion.") => (F::Indexed, 0),
        _ => made_up(name)?,
    };
    Some((field as usize, rank))
}

/// Names in the conventions' space that only some libraries write.
fn made_up(name: &str) -> Option<(Field, u8)> {
    use Field as F;
    Some(match name {
        "gen_ai.thread.id" => (F::Conversation, 1),
        "gen_ai.request.messages" => (F::Input, 1),
        "gen_ai.response.text" => (F::Output, 1),
        "gen_ai.tool.call_id" => (F::ToolCallId, 1),
        "gen_ai.tool.arguments" => (F::ToolArguments, 1),
        "gen_ai.tool.input" => (F::ToolArguments, 2),
        "gen_ai.tool.args" => (F::ToolArguments, 3),
        "gen_ai.tool.result" => (F::ToolResult, 1),
        "gen_ai.tool.output" => (F::ToolResult, 2),
        "gen_ai.tool.call.response" => (F::ToolResult, 3),
        "gen_ai.usage.input_tokens.cached" => (F::CacheRead, 3),
        "gen_ai.usage.output_tokens.reasoning" => (F::Reasoning, 4),
        "gen_ai.retrieval.query" => (F::Query, 1),
        _ => return None,
    })
}

/// What the attributes of a span or of a details record say.
fn read(attributes: &Map<String, Value>, span_name: Option<&str>) -> Reading {
    let slots: Slots<'_, FIELDS> = Slots::collect(attributes, place);
    let mut reading = Reading::default();
    plain_fields(&slots, &mut reading);
    tool_fields(&slots, &mut reading);
    let role = role(&slots, attributes);
    reading.role = role.map(|(_, role)| role);
    if let Some((source, _)) = role {
        reading.sources.insert("role".into(), source.into());
    }
    message_fields(&slots, attributes, &mut reading);
    if reading.role == Some(Role::Tool) && reading.tool_name.is_none() {
        let name =
            span_name.and_then(|name| name.strip_prefix("execute_tool ").or_else(|| name.strip_prefix("tool_call ")));
        fill(
            "tool_name",
            &mut reading.tool_name,
            &mut reading.sources,
            name.map(|name| (keys::SPAN_NAME, name.to_owned())),
        );
    }
    retrieval(&slots, &mut reading);
    if reading.role != Some(Role::Tool) {
        // Some libraries describe on the model's span the call that it asks for.
        (reading.tool_name, reading.tool_call_id) = (None, None);
        (reading.tool_arguments, reading.tool_result) = (None, None);
    }
    reading
}

/// What was looked for and what was found.
fn retrieval(slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    if !matches!(reading.role, Some(Role::Retriever | Role::Reranker)) {
        return;
    }
    let sources = &mut reading.sources;
    fill("input", &mut reading.input, sources, slots.text(Field::Query as usize));
    let documents = slots.get(Field::Documents as usize).and_then(|(key, value)| Some((key, words::documents(value)?)));
    fill("output", &mut reading.output, sources, documents);
}

fn plain_fields(slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    use Field as F;
    let sources = &mut reading.sources;
    fill("provider", &mut reading.provider, sources, slots.text(F::Provider as usize));
    fill("session_id", &mut reading.session_id, sources, slots.text(F::Conversation as usize));
    fill("agent_name", &mut reading.agent_name, sources, slots.text(F::Agent as usize));
    fill("request_model", &mut reading.request_model, sources, slots.text(F::RequestModel as usize));
    fill("model", &mut reading.model, sources, slots.text(F::Model as usize));
    fill("response_id", &mut reading.response_id, sources, slots.text(F::ResponseId as usize));
    fill("usage.input", &mut reading.usage.input, sources, slots.count(F::InputTokens as usize));
    fill("usage.output", &mut reading.usage.output, sources, slots.count(F::OutputTokens as usize));
    fill("usage.total", &mut reading.usage.total, sources, slots.count(F::TotalTokens as usize));
    fill("usage.cache_read", &mut reading.usage.cache_read, sources, slots.count(F::CacheRead as usize));
    fill("usage.cache_write", &mut reading.usage.cache_write, sources, slots.count(F::CacheWrite as usize));
    fill("usage.reasoning", &mut reading.usage.reasoning, sources, slots.count(F::Reasoning as usize));
    fill("cost_usd", &mut reading.cost_usd, sources, slots.amount(F::Cost as usize));
    if let Some((_, reasons)) = slots.get(F::FinishReasons as usize) {
        reading.finish_reasons = finish_reasons(reasons);
    }
}

fn tool_fields(slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    use Field as F;
    let sources = &mut reading.sources;
    fill("tool_name", &mut reading.tool_name, sources, slots.text(F::ToolName as usize));
    fill("tool_call_id", &mut reading.tool_call_id, sources, slots.text(F::ToolCallId as usize));
    let arguments = slots.get(F::ToolArguments as usize).map(|(key, value)| (key, calls::arguments(value)));
    fill("tool_arguments", &mut reading.tool_arguments, sources, arguments);
    if let Some((key, value)) = slots.get(F::ToolResult as usize) {
        let answered = calls::answered(value);
        fill("tool_result", &mut reading.tool_result, sources, Some((key, answered.result)));
        fill("tool_call_id", &mut reading.tool_call_id, sources, answered.call_id.map(|id| (key, id)));
        fill("error", &mut reading.error, sources, answered.error.map(|error| (key, error)));
    }
}

/// `["stop"]`, `"stop"`, or the list as a JSON text.
fn finish_reasons(value: &Value) -> Vec<String> {
    let of = |items: &[Value]| items.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    match value {
        Value::Array(items) => of(items),
        Value::String(text) => match salvage::json(text) {
            Some(Value::Array(items)) => of(&items),
            Some(Value::String(reason)) => vec![reason],
            _ => vec![text.clone()],
        },
        _ => Vec::new(),
    }
}

/// The part the span plays, and the key that says so.
fn role(slots: &Slots<'_, FIELDS>, attributes: &Map<String, Value>) -> Option<(&'static str, Role)> {
    use Field as F;
    if slots.get(F::Handoff as usize).is_some() {
        return Some((key::HANDOFF_FROM, Role::Chain));
    }
    let model_call = || {
        slots.get(F::RequestModel as usize).or_else(|| slots.get(F::Model as usize)).is_some()
            || slots.count(F::InputTokens as usize).is_some()
    };
    if let Some((_, operation)) = slots.text(F::Operation as usize) {
        let role = operation_role(&operation.to_ascii_lowercase());
        return Some((key::OPERATION, role.unwrap_or(if model_call() { Role::Llm } else { Role::Other })));
    }
    if slots.get(F::Indexed as usize).is_some() || slots.get(F::Output as usize).is_some() && model_call() {
        return Some((key::OUTPUT_MESSAGES, Role::Llm));
    }
    if slots.get(F::ToolCallId as usize).is_some() && slots.get(F::ToolName as usize).is_some() {
        return Some((key::TOOL_CALL_ID, Role::Tool));
    }
    if model_call() && attributes.contains_key(key::REQUEST_MODEL) {
        return Some((key::REQUEST_MODEL, Role::Llm));
    }
    None
}

/// The operations of the conventions, of their earlier versions, and of libraries that made up their own.
fn operation_role(operation: &str) -> Option<Role> {
    Some(match operation {
        "invoke_agent" | "agent" | "agent_call" | "process_thread_run" => Role::Agent,
        "invoke_workflow"
        | "invoke_swarm"
        | "invoke_graph"
        | "conversation"
        | "schedule_tool_calls"
        | "plan"
        | "agent_step"
        | "execute_event_loop_cycle"
        | "execute_task"
        | "chain"
        | "workflow"
        | "task"
        | "agent_handoff"
        | "unknown" => Role::Chain,
        "chat" | "generate_content" | "text_completion" | "completion" | "generate" | "response" | "responses"
        | "chat_model" | "llm" | "message" | "messages" | "llm_call" | "chat.completions" | "text.completions"
        | "generatecontent" => Role::Llm,
        "execute_tool" | "tool" | "tool_call" => Role::Tool,
        "chat_client" | "advisor" => Role::Chain,
        "embeddings" | "embedding" => Role::Embedding,
        "retrieval" | "retriever" => Role::Retriever,
        "rerank" | "reranker" => Role::Reranker,
        "guardrail" | "apply_guardrail" => Role::Guardrail,
        "create_agent"
        | "create_thread"
        | "create_memory_store"
        | "search_memory"
        | "create_memory"
        | "update_memory"
        | "upsert_memory"
        | "delete_memory"
        | "delete_memory_store" => Role::Other,
        _ => return None,
    })
}

fn message_fields(slots: &Slots<'_, FIELDS>, attributes: &Map<String, Value>, reading: &mut Reading) {
    use Field as F;
    if let Some((key, value)) = slots.get(F::Input as usize) {
        match messages::read_as(value, Some("user")) {
            Some(read) => fill("input_messages", &mut reading.input_messages, &mut reading.sources, Some((key, read))),
            None => {
                fill("input", &mut reading.input, &mut reading.sources, words::question(value).map(|text| (key, text)));
            }
        }
    }
    if let Some((key, value)) = slots.get(F::Output as usize) {
        match messages::read_as(value, Some("assistant")) {
            Some(read) => {
                fill("output_messages", &mut reading.output_messages, &mut reading.sources, Some((key, read)));
            }
            None => {
                fill("output", &mut reading.output, &mut reading.sources, words::answer(value).map(|text| (key, text)));
            }
        }
    }
    if slots.get(F::Indexed as usize).is_some() {
        let prompt =
            attributes::indexed(attributes, key::PROMPT).and_then(|list| messages::read_as(&list, Some("user")));
        fill(
            "input_messages",
            &mut reading.input_messages,
            &mut reading.sources,
            prompt.map(|read| (key::PROMPT, read)),
        );
        let completion = attributes::indexed(attributes, key::COMPLETION);
        let completion = completion.and_then(|list| messages::read_as(&list, Some("assistant")));
        fill(
            "output_messages",
            &mut reading.output_messages,
            &mut reading.sources,
            completion.map(|read| (key::COMPLETION, read)),
        );
    }
    blobs(slots, reading);
    if let Some((_, value)) = slots.get(F::Instructions as usize)
        && reading.role == Some(Role::Llm)
        && let Some(instructions) = instructions(value)
        && let Some(read) = &mut reading.input_messages
        && read.first().is_none_or(|first| first.role != "system")
    {
        read.insert(0, instructions);
    }
}

/// The prompt and the completion as one JSON text each, as the first versions had them.
fn blobs(slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    let sources = &mut reading.sources;
    if let Some((key, value)) = slots.get(Field::Prompt as usize) {
        match messages::read_as(value, None) {
            Some(read) => fill("input_messages", &mut reading.input_messages, sources, Some((key, read))),
            None => fill("input", &mut reading.input, sources, words::question(value).map(|text| (key, text))),
        }
    }
    if let Some((key, value)) = slots.get(Field::Completion as usize) {
        match messages::read_as(value, None) {
            Some(read) => fill("output_messages", &mut reading.output_messages, sources, Some((key, read))),
            None => fill("output", &mut reading.output, sources, words::answer(value).map(|text| (key, text))),
        }
    }
}

/// The system's words as a message; they stand apart from the messages.
fn instructions(value: &Value) -> Option<Message> {
    let parts = salvage::unwrapped(value);
    let text = match &parts {
        Value::String(text) => text.clone(),
        Value::Array(_) => {
            let bare = serde_json::json!({ "role": "system", "parts": parts });
            messages::text_of(&messages::read(&bare)?.first()?.parts)?
        }
        _ => return None,
    };
    Some(Message { role: "system".to_owned(), parts: vec![Part::Text { text }] })
}

/// The agent's name in a span's name such as `invoke_agent Harbor Guide`, unless that is the model's.
fn name_after_operation(span_name: &str, reading: &Reading) -> Option<String> {
    let name = span_name.strip_prefix("invoke_agent ")?.trim();
    let is_model = [&reading.request_model, &reading.model].iter().any(|model| model.as_deref() == Some(name));
    (!name.is_empty() && !is_model).then(|| name.to_owned())
}
