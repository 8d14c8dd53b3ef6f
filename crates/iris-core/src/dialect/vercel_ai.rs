//! The AI SDK (`ai.*`), up to version 6 and the legacy integration since. Version 7 writes the GenAI conventions.
//! Source: <https://ai-sdk.dev/docs/ai-sdk-core/telemetry>.

use serde_json::{Map, Value};

use super::attributes::Slots;
use super::guide::Guide;
use super::keys::vercel_ai as key;
use super::{Dialect, calls, fill, messages, salvage, words};
use crate::model::{Message, Part, RawSpan, Reading, Role};

/// See the module.
pub struct VercelAi;

const GUIDE: Guide = Guide {
    title: "Vercel AI SDK",
    setup: "`experimental_telemetry: { isEnabled: true, functionId: 'my-agent' }` on every call (version 7: `@ai-sdk/otel`), with an OTLP exporter of `@opentelemetry/sdk-node` or `@vercel/otel`, protobuf or JSON.",
    reads: &[
        ("role", "`ai.operationId`; version 7 writes the GenAI conventions"),
        ("agent's name", "`ai.telemetry.functionId`"),
        ("input", "`ai.prompt.messages`, `ai.prompt`"),
        (
            "output",
            "`ai.response.text`, `ai.response.object`, `ai.response.reasoning`, `ai.response.toolCalls`; older `ai.result.*`",
        ),
        ("tools", "`ai.toolCall.name`, `.id`, `.args` or `.input`, `.result` or `.output`"),
        ("model, tokens", "`ai.response.model`, `ai.model.id`, `ai.usage.*`, `gen_ai.usage.*` of the inner calls"),
        ("embeddings and reranks", "`ai.value`, `ai.values`, `ai.usage.tokens`; `ai.rerank`"),
        ("session, user", "`ai.telemetry.metadata.sessionId`, `.threadId`, `.conversationId`, `.userId`"),
    ],
    notes: "The outer span of `generateText` states the tokens of its last step only, so they are taken from the inner calls.",
    cases: &["vercel-ai_v5", "vercel-ai_v7", "vercel-ai_v7_legacy"],
};

impl Dialect for VercelAi {
    fn name(&self) -> &'static str {
        "vercel_ai"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.attributes.contains_key(key::OPERATION)
    }

    fn read(&self, span: &RawSpan) -> Reading {
        use Field as F;
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let mut reading = Reading::default();
        let operation = slots.text(F::Operation as usize).map(|(_, operation)| operation).unwrap_or_default();
        reading.role = Some(role(&operation));
        reading.sources.insert("role".into(), key::OPERATION.into());
        reading.framework = Some("vercel-ai".to_owned());
        let sources = &mut reading.sources;
        fill("agent_name", &mut reading.agent_name, sources, slots.text(F::Function as usize));
        fill("request_model", &mut reading.request_model, sources, slots.text(F::RequestModel as usize));
        fill("model", &mut reading.model, sources, slots.text(F::Model as usize));
        fill("provider", &mut reading.provider, sources, slots.text(F::Provider as usize));
        fill("session_id", &mut reading.session_id, sources, slots.text(F::Session as usize));
        fill("user_id", &mut reading.user_id, sources, slots.text(F::User as usize));
        match reading.role {
            Some(Role::Llm) => model_call(&slots, &mut reading),
            Some(Role::Tool) => tool(&slots, &mut reading),
            Some(Role::Agent) => agent(&slots, &mut reading),
            Some(Role::Embedding) => embedding(&slots, &mut reading),
            _ => {}
        }
        reading
    }
}

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    Operation,
    Function,
    RequestModel,
    Model,
    Provider,
    ResponseId,
    FinishReason,
    Prompt,
    Messages,
    Text,
    Object,
    ToolCalls,
    InputTokens,
    OutputTokens,
    TotalTokens,
    CachedTokens,
    CacheWriteTokens,
    Thought,
    ReasoningTokens,
    ToolName,
    ToolId,
    ToolArguments,
    ToolResult,
    Embedded,
    Session,
    User,
}

const FIELDS: usize = Field::User as usize + 1;

fn place(name: &str) -> Option<(usize, u8)> {
    use Field as F;
    if !name.starts_with("ai.") {
        return None;
    }
    let (field, rank) = match name {
        key::OPERATION => (F::Operation, 0),
        key::FUNCTION => (F::Function, 0),
        "ai.model.id" => (F::RequestModel, 0),
        "ai.response.model" => (F::Model, 0),
        "ai.model.provider" => (F::Provider, 0),
        "ai.response.id" => (F::ResponseId, 0),
        "ai.response.finishReason" => (F::FinishReason, 0),
        "ai.finishReason" => (F::FinishReason, 1),
        "ai.prompt" => (F::Prompt, 0),
        "ai.prompt.messages" => (F::Messages, 0),
        "ai.response.text" => (F::Text, 0),
        "ai.result.text" => (F::Text, 1),
        "ai.response.object" => (F::Object, 0),
        "ai.result.object" => (F::Object, 1),
        "ai.response.toolCalls" => (F::ToolCalls, 0),
        "ai.result.toolCalls" => (F::ToolCalls, 1),
        "ai.usage.inputTokens" => (F::InputTokens, 0),
        "ai.usage.promptTokens" => (F::InputTokens, 1),
        "ai.usage.outputTokens" => (F::OutputTokens, 0),
        "ai.usage.completionTokens" => (F::OutputTokens, 1),
        "ai.usage.totalTokens" => (F::TotalTokens, 0),
        "ai.usage.cachedInputTokens" => (F::CachedTokens, 0),
        "ai.usage.inputTokenDetails.cacheReadTokens" => (F::CachedTokens, 1),
        "ai.usage.inputTokenDetails.cacheWriteTokens" => (F::CacheWriteTokens, 0),
        "ai.usage.reasoningTokens" => (F::ReasoningTokens, 0),
        "ai.usage.outputTokenDetails.reasoningTokens" => (F::ReasoningTokens, 1),
        "ai.response.reasoning" => (F::Thought, 0),
        "ai.toolCall.name" => (F::ToolName, 0),
        "ai.toolCall.id" => (F::ToolId, 0),
        "ai.toolCall.args" => (F::ToolArguments, 0),
        "ai.toolCall.input" => (F::ToolArguments, 1),
        "ai.toolCall.result" => (F::ToolResult, 0),
        "ai.toolCall.output" => (F::ToolResult, 1),
        "ai.usage.tokens" => (F::InputTokens, 2),
        "ai.value" => (F::Embedded, 0),
        "ai.values" => (F::Embedded, 1),
        "ai.telemetry.metadata.sessionId" => (F::Session, 0),
        "ai.telemetry.metadata.session_id" => (F::Session, 1),
        "ai.telemetry.metadata.threadId" => (F::Session, 2),
        "ai.telemetry.metadata.conversationId" => (F::Session, 3),
        "ai.telemetry.metadata.userId" => (F::User, 0),
        "ai.telemetry.metadata.user_id" => (F::User, 1),
        _ => return None,
    };
    Some((field as usize, rank))
}

/// The outer call is the run, the inner ones are the model's.
fn role(operation: &str) -> Role {
    match operation {
        "ai.toolCall" => Role::Tool,
        _ if operation.contains("mbed") => Role::Embedding,
        _ if operation.contains("rerank") => Role::Reranker,
        _ if operation.ends_with(".doGenerate") || operation.ends_with(".doStream") => Role::Llm,
        "ai.generateText" | "ai.streamText" | "ai.generateObject" | "ai.streamObject" | "ai.agent" => Role::Agent,
        _ => Role::Other,
    }
}

fn model_call(slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    use Field as F;
    let sources = &mut reading.sources;
    fill("response_id", &mut reading.response_id, sources, slots.text(F::ResponseId as usize));
    reading.finish_reasons.extend(slots.text(F::FinishReason as usize).map(|(_, reason)| reason));
    fill("usage.input", &mut reading.usage.input, sources, slots.count(F::InputTokens as usize));
    fill("usage.output", &mut reading.usage.output, sources, slots.count(F::OutputTokens as usize));
    fill("usage.total", &mut reading.usage.total, sources, slots.count(F::TotalTokens as usize));
    fill("usage.cache_read", &mut reading.usage.cache_read, sources, slots.count(F::CachedTokens as usize));
    fill("usage.cache_write", &mut reading.usage.cache_write, sources, slots.count(F::CacheWriteTokens as usize));
    fill("usage.reasoning", &mut reading.usage.reasoning, sources, slots.count(F::ReasoningTokens as usize));
    let asked = slots.get(F::Messages as usize).and_then(|(key, value)| Some((key, messages::read(value)?)));
    let asked =
        asked.or_else(|| slots.get(F::Prompt as usize).and_then(|(key, value)| Some((key, messages::read(value)?))));
    fill("input_messages", &mut reading.input_messages, sources, asked);
    let mut parts = Vec::new();
    let mut source = None;
    if let Some((key, text)) = slots.text(F::Thought as usize) {
        parts.push(Part::Reasoning { text });
        source = source.or(Some(key));
    }
    for field in [F::Text, F::Object] {
        if let Some((key, text)) = slots.text(field as usize) {
            parts.push(Part::Text { text });
            source = source.or(Some(key));
        }
    }
    if let Some((key, value)) = slots.get(F::ToolCalls as usize) {
        let bare = Map::from_iter([
            ("role".to_owned(), "assistant".into()),
            ("toolCalls".to_owned(), salvage::unwrapped(value)),
        ]);
        parts.extend(messages::read(&Value::Object(bare)).into_iter().flatten().flat_map(|message| message.parts));
        source = source.or(Some(key));
    }
    let answer = source.map(|key| (key, vec![Message { role: "assistant".to_owned(), parts }]));
    fill("output_messages", &mut reading.output_messages, sources, answer);
}

fn tool(slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    use Field as F;
    let sources = &mut reading.sources;
    fill("tool_name", &mut reading.tool_name, sources, slots.text(F::ToolName as usize));
    fill("tool_call_id", &mut reading.tool_call_id, sources, slots.text(F::ToolId as usize));
    let arguments = slots.get(F::ToolArguments as usize).map(|(key, value)| (key, calls::arguments(value)));
    fill("tool_arguments", &mut reading.tool_arguments, sources, arguments);
    if let Some((key, value)) = slots.get(F::ToolResult as usize) {
        fill("tool_result", &mut reading.tool_result, sources, Some((key, calls::answered(value).result)));
    }
}

/// The texts that were embedded, each a JSON text of its own.
fn embedding(slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    let sources = &mut reading.sources;
    fill("usage.input", &mut reading.usage.input, sources, slots.count(Field::InputTokens as usize));
    let texts = slots.get(Field::Embedded as usize).and_then(|(key, value)| {
        let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        let texts: Vec<String> =
            values.iter().filter_map(|value| Some(salvage::unwrapped(value).as_str()?.to_owned())).collect();
        (!texts.is_empty()).then(|| (key, texts.join("\n")))
    });
    fill("input", &mut reading.input, sources, texts);
}

/// The run. Its own tokens are those of its last step only, so they are left out.
fn agent(slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    use Field as F;
    let sources = &mut reading.sources;
    let asked = slots.get(F::Prompt as usize).and_then(|(key, value)| Some((key, words::question(value)?)));
    fill("input", &mut reading.input, sources, asked);
    fill(
        "output",
        &mut reading.output,
        sources,
        slots.text(F::Text as usize).or_else(|| slots.text(F::Object as usize)),
    );
}
