//! OpenInference: `openinference.span.kind`, indexed messages, `input.value` and `output.value`, whatever library they
//! describe. Source: <https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md>.

use serde_json::Value;

use super::attributes::{self, Slots};
use super::guide::Guide;
use super::keys::{self, openinference as key};
use super::{Dialect, fill, messages, recorded, salvage, words};
use crate::model::{RawSpan, Reading, Role};

/// See the module.
pub struct OpenInference;

const GUIDE: Guide = Guide {
    title: "OpenInference",
    setup: "Set `OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318` and `OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf`, or port 4317 and `grpc`, and install the instrumentation of your library, such as `openinference-instrumentation-langchain`.",
    reads: &[
        ("role", "`openinference.span.kind`"),
        (
            "messages",
            "`llm.input_messages.N.message.*`, `llm.output_messages.N.message.*` with contents, tool calls and the older `function_call_name`; `llm.prompts.N.*`, `llm.choices.N.*`; any of them as one structured value",
        ),
        ("input, output", "`input.value`, `output.value`; the declared media type is not trusted"),
        (
            "tools",
            "`tool.name`, `tool_call.function.name`, `tool_call.id`, `tool.id`; arguments from `input.value` (`tool.parameters` mostly is a schema)",
        ),
        (
            "model",
            "`llm.response.model_name`, `llm.model_name`, `llm.request.model_name`, `embedding.model_name`, `reranker.model_name`",
        ),
        ("tokens, cost", "`llm.token_count.*`, `llm.cost.total`, else `llm.cost.prompt` and `llm.cost.completion`"),
        (
            "retrieval",
            "`retrieval.documents.N.document.*`, `reranker.query`, `reranker.output_documents.N.document.*`, `embedding.embeddings.N.embedding.text`",
        ),
        ("session, user", "`session.id`, `user.id`, or `session_id`, `thread_id`, `user_id` in `metadata`"),
    ],
    notes: "`__REDACTED__` is read as not sent. A span that also carries `gen_ai.*` or `ai.*` is read by both, OpenInference first.",
    cases: &[
        "openinference-agents",
        "openinference-anthropic",
        "openinference-dspy",
        "openinference-google-adk",
        "openinference-langchain",
        "openinference-llamaindex",
        "openinference-openai",
        "openinference-openai-js",
        "openinference-pydantic-ai",
        "openinference-smolagents",
        "openinference-vercel",
        "edge-cases",
        "edge-cases_simple",
    ],
};

impl Dialect for OpenInference {
    fn name(&self) -> &'static str {
        "openinference"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.attributes.contains_key(key::KIND)
            || span
                .attributes
                .keys()
                .any(|name| name.starts_with(key::INPUT_MESSAGES) || name.starts_with(key::OUTPUT_MESSAGES))
    }

    fn read(&self, span: &RawSpan) -> Reading {
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let mut reading = Reading::default();
        let kind = slots.text(Field::Kind as usize).and_then(|(_, kind)| role(&kind));
        fill("role", &mut reading.role, &mut reading.sources, kind.map(|role| (key::KIND, role)));
        if !span.attributes.contains_key(key::KIND) && !span.attributes.contains_key(keys::gen_ai::OPERATION) {
            // Messages without a kind are a model's.
            fill("role", &mut reading.role, &mut reading.sources, Some((key::OUTPUT_MESSAGES, Role::Llm)));
        }
        plain_fields(&slots, &mut reading);
        agent_name(span, &slots, &mut reading);
        metadata(&slots, &mut reading);
        match reading.role {
            Some(Role::Llm) => llm(span, &slots, &mut reading),
            Some(Role::Tool) => tool(span, &slots, &mut reading),
            Some(Role::Agent | Role::Chain) => step(span, &slots, &mut reading),
            Some(Role::Embedding) => embedding(span, &slots, &mut reading),
            Some(Role::Retriever | Role::Reranker) => search(span, &slots, &mut reading),
            Some(Role::Guardrail | Role::Evaluator) => {
                recorded::step(&mut reading, slots.get(Field::Input as usize), slots.get(Field::Output as usize));
            }
            None => llm(span, &slots, &mut reading),
            _ => {}
        }
        reading
    }
}

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    Kind,
    Input,
    Output,
    Model,
    RequestModel,
    Provider,
    FinishReason,
    PromptTokens,
    CompletionTokens,
    TotalTokens,
    CacheRead,
    CacheWrite,
    Reasoning,
    Cost,
    PromptCost,
    CompletionCost,
    ToolName,
    ToolId,
    ToolArguments,
    ToolParameters,
    Agent,
    Node,
    Metadata,
    Session,
    User,
    Query,
    Messages,
}

const FIELDS: usize = Field::Messages as usize + 1;

/// Other indexed lists, each with where the words of an item stand.
const PROMPTS: (&str, &str) = ("llm.prompts", "/prompt/text");
const CHOICES: (&str, &str) = ("llm.choices", "/completion/text");
const RETRIEVED: &str = "retrieval.documents";
const RANKED: &str = "reranker.output_documents";

fn place(name: &str) -> Option<(usize, u8)> {
    use Field as F;
    let (field, rank) = match name {
        key::KIND => (F::Kind, 0),
        key::INPUT => (F::Input, 0),
        key::OUTPUT => (F::Output, 0),
        key::RESPONSE_MODEL => (F::Model, 0),
        key::MODEL => (F::Model, 1),
        key::EMBEDDING_MODEL => (F::Model, 2),
        "reranker.model_name" => (F::Model, 3),
        "reranker.query" => (F::Query, 0),
        key::REQUEST_MODEL => (F::RequestModel, 0),
        key::PROVIDER => (F::Provider, 0),
        key::SYSTEM => (F::Provider, 1),
        key::FINISH_REASON => (F::FinishReason, 0),
        key::PROMPT_TOKENS => (F::PromptTokens, 0),
        key::COMPLETION_TOKENS => (F::CompletionTokens, 0),
        key::TOTAL_TOKENS => (F::TotalTokens, 0),
        key::CACHE_READ => (F::CacheRead, 0),
        key::CACHE_WRITE => (F::CacheWrite, 0),
        key::REASONING => (F::Reasoning, 0),
        key::COST => (F::Cost, 0),
        key::COST_OLD => (F::Cost, 1),
        "llm.cost.prompt" => (F::PromptCost, 0),
        "llm.cost.completion" => (F::CompletionCost, 0),
        key::TOOL_NAME => (F::ToolName, 0),
        key::TOOL_CALL_NAME => (F::ToolName, 1),
        key::TOOL_CALL_ID => (F::ToolId, 0),
        key::TOOL_ID => (F::ToolId, 1),
        key::TOOL_CALL_ARGUMENTS => (F::ToolArguments, 0),
        "tool.parameters" => (F::ToolParameters, 0),
        key::AGENT_NAME => (F::Agent, 0),
        key::NODE_ID => (F::Node, 0),
        key::METADATA => (F::Metadata, 0),
        keys::general::SESSION => (F::Session, 0),
        keys::general::USER => (F::User, 0),
        _ if name.starts_with(key::INPUT_MESSAGES) || name.starts_with(key::OUTPUT_MESSAGES) => (F::Messages, 0),
        _ => return None,
    };
    Some((field as usize, rank))
}

pub fn role(kind: &str) -> Option<Role> {
    Some(match kind.to_ascii_uppercase().as_str() {
        "AGENT" => Role::Agent,
        "CHAIN" | "WORKFLOW" => Role::Chain,
        "LLM" => Role::Llm,
        "TOOL" => Role::Tool,
        "EMBEDDING" => Role::Embedding,
        "RETRIEVER" => Role::Retriever,
        "RERANKER" => Role::Reranker,
        "GUARDRAIL" => Role::Guardrail,
        "EVALUATOR" => Role::Evaluator,
        "PROMPT" => Role::Prompt,
        _ => Role::Other,
    })
}

fn plain_fields(slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    use Field as F;
    let sources = &mut reading.sources;
    fill("model", &mut reading.model, sources, slots.text(F::Model as usize));
    fill("request_model", &mut reading.request_model, sources, slots.text(F::RequestModel as usize));
    fill("provider", &mut reading.provider, sources, slots.text(F::Provider as usize));
    fill("usage.input", &mut reading.usage.input, sources, slots.count(F::PromptTokens as usize));
    fill("usage.output", &mut reading.usage.output, sources, slots.count(F::CompletionTokens as usize));
    fill("usage.total", &mut reading.usage.total, sources, slots.count(F::TotalTokens as usize));
    fill("usage.cache_read", &mut reading.usage.cache_read, sources, slots.count(F::CacheRead as usize));
    fill("usage.cache_write", &mut reading.usage.cache_write, sources, slots.count(F::CacheWrite as usize));
    fill("usage.reasoning", &mut reading.usage.reasoning, sources, slots.count(F::Reasoning as usize));
    // A price table that does not know the model writes 0.
    let cost = slots.amount(F::Cost as usize).or_else(|| {
        let (asked, answered) = (slots.amount(F::PromptCost as usize), slots.amount(F::CompletionCost as usize));
        let sum = asked.map_or(0.0, |(_, usd)| usd) + answered.map_or(0.0, |(_, usd)| usd);
        asked.or(answered).map(|(key, _)| (key, sum))
    });
    let cost = cost.filter(|(_, cost)| *cost > 0.0);
    fill("cost_usd", &mut reading.cost_usd, sources, cost);
    fill("session_id", &mut reading.session_id, sources, slots.text(F::Session as usize));
    fill("user_id", &mut reading.user_id, sources, slots.text(F::User as usize));
    reading.finish_reasons.extend(slots.text(F::FinishReason as usize).map(|(_, reason)| reason));
}

/// Who runs: the attribute, else the node of an agent, else how the framework prints it, else the span's name.
fn agent_name(span: &RawSpan, slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    use Field as F;
    let sources = &mut reading.sources;
    fill("agent_name", &mut reading.agent_name, sources, slots.text(F::Agent as usize));
    if reading.role == Some(Role::Agent) {
        fill("agent_name", &mut reading.agent_name, sources, slots.text(F::Node as usize));
    }
    if span.scope.name.ends_with("llama_index") {
        for field in [F::Input, F::Output] {
            let printed = slots.get(field as usize).and_then(|(key, value)| {
                Some((key, salvage::repr_field(value.as_str()?, "current_agent_name")?.to_owned()))
            });
            fill("agent_name", &mut reading.agent_name, sources, printed.filter(|(_, name)| !name.ends_with("...")));
        }
    }
    if reading.role == Some(Role::Agent) {
        let name = span.name.as_str();
        let name = name.strip_suffix(".run").or_else(|| name.strip_suffix("._execute_core")).unwrap_or(name);
        let name = name.strip_prefix("invoke_agent ").unwrap_or(name);
        let name = name.strip_prefix("agent_run [").and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let name = (!name.is_empty()).then(|| (keys::SPAN_NAME, name.to_owned()));
        fill("agent_name", &mut reading.agent_name, sources, name);
    }
}

/// What the free metadata of a span names: LangChain's agent and thread.
fn metadata(slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    let Some((key, value)) = slots.get(Field::Metadata as usize) else { return };
    let parsed = salvage::unwrapped(value);
    let of = |name: &str| parsed.get(name).and_then(attributes::text).map(|text| (key, text));
    let sources = &mut reading.sources;
    let guessed = sources.get("agent_name").is_none_or(|source| source == keys::SPAN_NAME);
    if guessed && let Some((key, name)) = of("lc_agent_name") {
        reading.agent_name = Some(name);
        sources.insert("agent_name".into(), key.to_owned().into());
    }
    if parsed.get("langgraph_step").is_some() || parsed.get("lc_agent_name").is_some() {
        fill("framework", &mut reading.framework, sources, Some((key, "langgraph".to_owned())));
    }
    for name in ["session_id", "thread_id", "conversation_id"] {
        fill("session_id", &mut reading.session_id, sources, of(name));
    }
    fill("user_id", &mut reading.user_id, sources, of("user_id"));
}

/// One model call: its messages, else what its raw request and reply hold.
fn llm(span: &RawSpan, slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    if slots.get(Field::Messages as usize).is_some() {
        for (prefix, field) in [(key::INPUT_MESSAGES, "input_messages"), (key::OUTPUT_MESSAGES, "output_messages")] {
            let is_input = field == "input_messages";
            let role = if is_input { "user" } else { "assistant" };
            let read =
                attributes::indexed(&span.attributes, prefix).and_then(|list| messages::read_as(&list, Some(role)));
            let read = read.map(without_empty).filter(|read| !read.is_empty());
            let into = if is_input { &mut reading.input_messages } else { &mut reading.output_messages };
            fill(field, into, &mut reading.sources, read.map(|read| (prefix, read)));
        }
    }
    recorded::llm(reading, slots.get(Field::Input as usize), slots.get(Field::Output as usize));
    completion(span, reading);
}

/// The prompts and choices of a completion that is no chat.
fn completion(span: &RawSpan, reading: &mut Reading) {
    let words = |(prefix, path): (&'static str, &str)| {
        let list = attributes::indexed(&span.attributes, prefix)?;
        let texts: Vec<&str> = list
            .as_array()?
            .iter()
            .filter_map(|item| item.pointer(path).unwrap_or(item).as_str())
            .filter(|text| !salvage::is_missing(text))
            .collect();
        (!texts.is_empty()).then(|| (prefix, texts.join("\n")))
    };
    if reading.input_messages.is_none() {
        fill("input", &mut reading.input, &mut reading.sources, words(PROMPTS));
    }
    if reading.output_messages.is_none() {
        fill("output", &mut reading.output, &mut reading.sources, words(CHOICES));
    }
}

/// What was looked for and what was found or ranked first.
fn search(span: &RawSpan, slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    let sources = &mut reading.sources;
    fill("input", &mut reading.input, sources, slots.text(Field::Query as usize));
    let asked = slots.get(Field::Input as usize).and_then(|(key, value)| Some((key, words::question(value)?)));
    fill("input", &mut reading.input, sources, asked);
    let found = [RETRIEVED, RANKED].into_iter().find_map(|prefix| {
        let list = attributes::indexed(&span.attributes, prefix)?;
        Some((prefix, words::documents(&list)?))
    });
    let found = found.or_else(|| {
        let (key, value) = slots.get(Field::Output as usize)?;
        Some((key, words::documents(value).or_else(|| words::answer(value))?))
    });
    fill("output", &mut reading.output, sources, found);
}

/// Messages of which nothing was kept say nothing.
fn without_empty(mut read: Vec<crate::model::Message>) -> Vec<crate::model::Message> {
    read.retain(|message| !message.parts.is_empty());
    read
}

/// One execution of a tool. `tool.parameters` is its schema in most libraries; what is no schema and stands alone is the
/// arguments.
fn tool(span: &RawSpan, slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    use Field as F;
    let sources = &mut reading.sources;
    fill("tool_name", &mut reading.tool_name, sources, slots.text(F::ToolName as usize));
    fill("tool_call_id", &mut reading.tool_call_id, sources, slots.text(F::ToolId as usize));
    let asked = || slots.get(F::ToolArguments as usize);
    let given = || slots.get(F::ToolParameters as usize).filter(|(_, value)| !is_schema(value));
    let input = slots.get(F::Input as usize).or_else(asked).or_else(given);
    recorded::tool(reading, input, slots.get(F::Output as usize));
    let sources = &mut reading.sources;
    let name = span.name.strip_prefix("tool.").unwrap_or(&span.name);
    let name = name.strip_suffix(".run").or_else(|| name.strip_suffix(".__call__")).unwrap_or(name);
    fill("tool_name", &mut reading.tool_name, sources, Some((keys::SPAN_NAME, name.to_owned())));
}

/// Whether a value describes parameters rather than being some: a JSON schema, or descriptions by name.
fn is_schema(value: &Value) -> bool {
    match salvage::unwrapped(value) {
        Value::Object(map) => {
            map.contains_key("properties")
                || map.get("type").is_some_and(|kind| kind == "object")
                || !map.is_empty() && map.values().all(|one| one.get("type").is_some())
        }
        _ => true,
    }
}

/// The texts that were embedded, in their order; never the vectors.
fn embedding(span: &RawSpan, slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    let numbered = |(name, text): (&String, &Value)| {
        let number = name.strip_prefix(key::EMBEDDINGS)?.strip_suffix(key::EMBEDDING_TEXT)?;
        Some((number.parse::<u32>().ok()?, attributes::text(text)?))
    };
    let mut texts: Vec<(u32, String)> = span.attributes.iter().filter_map(numbered).collect();
    texts.sort();
    let texts: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
    let found = (!texts.is_empty()).then(|| (key::EMBEDDINGS, texts.join("\n")));
    let asked = || slots.get(Field::Input as usize).and_then(|(key, value)| Some((key, words::question(value)?)));
    fill("input", &mut reading.input, &mut reading.sources, found.or_else(asked));
}

/// An agent or a step: what it was asked and what it answered.
fn step(span: &RawSpan, slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    use Field as F;
    recorded::step(reading, slots.get(F::Input as usize), slots.get(F::Output as usize));
    let is_data = reading.input.as_deref().is_none_or(|input| input.starts_with(['{', '[']));
    if is_data && slots.get(F::Messages as usize).is_some() {
        let read = attributes::indexed(&span.attributes, key::INPUT_MESSAGES).and_then(|list| messages::read(&list));
        if let Some(text) = read.and_then(|read| messages::question(&read)) {
            reading.input = Some(text);
            reading.sources.insert("input".into(), key::INPUT_MESSAGES.into());
        }
    }
}
