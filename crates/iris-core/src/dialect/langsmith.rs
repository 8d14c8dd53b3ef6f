//! LangSmith's OpenTelemetry export: every run of a trace is a span, its inputs and outputs are JSON under the GenAI
//! conventions' first names. Source: <https://docs.langchain.com/langsmith/trace-with-opentelemetry>.

use super::attributes::Slots;
use super::guide::Guide;
use super::{Dialect, fill, keys, recorded};
use crate::model::{RawSpan, Reading, Role};

const KIND: &str = "langsmith.span.kind";

/// See the module.
pub struct LangSmith;

const GUIDE: Guide = Guide {
    title: "LangSmith",
    setup: "`LANGSMITH_TRACING=true`, `LANGSMITH_OTEL_ENABLED=true`, `LANGSMITH_OTEL_ONLY=true` and `OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318`.",
    reads: &[
        ("role", "`langsmith.span.kind`"),
        (
            "input, output",
            "`gen_ai.prompt`, `gen_ai.completion` as JSON, as attributes or in the events `gen_ai.content.prompt` and `gen_ai.content.completion`",
        ),
        ("agent's name", "`langsmith.metadata.lc_agent_name`, the name of a traced root function"),
        (
            "model, tokens",
            "`gen_ai.request.model`, `langsmith.metadata.ls_model_name`, `gen_ai.usage.*`, `langsmith.usage_metadata`",
        ),
        ("session, user", "`langsmith.metadata.session_id`, `.conversation_id`, `.thread_id`, `.user_id`"),
    ],
    notes: "",
    cases: &["langsmith-otel"],
};

impl Dialect for LangSmith {
    fn name(&self) -> &'static str {
        "langsmith"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.scope.name == "langsmith" || span.attributes.contains_key(KIND)
    }

    fn read(&self, span: &RawSpan) -> Reading {
        use Field as F;
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let mut reading = Reading::default();
        let sources = &mut reading.sources;
        let kind = slots.text(F::Kind as usize).and_then(|(key, kind)| Some((key, role(&kind)?)));
        fill("role", &mut reading.role, sources, kind);
        reading.framework = Some("langsmith".to_owned());
        fill("session_id", &mut reading.session_id, sources, slots.text(F::Session as usize));
        fill("user_id", &mut reading.user_id, sources, slots.text(F::User as usize));
        fill("agent_name", &mut reading.agent_name, sources, slots.text(F::Agent as usize));
        if span.parent_span_id.is_none() && reading.role == Some(Role::Chain) {
            // A traced function names the application; a bare chain's name is its class.
            let name =
                slots.text(F::Name as usize).filter(|(_, name)| !name.starts_with("Runnable") && name != "LangGraph");
            fill("agent_name", &mut reading.agent_name, sources, name);
        }
        if reading.role == Some(Role::Tool) {
            let name = slots.text(F::Name as usize).unwrap_or((keys::SPAN_NAME, span.name.clone()));
            fill("tool_name", &mut reading.tool_name, sources, Some(name));
        }
        let of_event = |event: &str, key: &'static str| {
            let event = span.events.iter().find(|sent| sent.name == event)?;
            Some((key, event.attributes.get(key)?))
        };
        let asked = slots.get(F::Prompt as usize).or_else(|| of_event("gen_ai.content.prompt", keys::gen_ai::PROMPT));
        let answered = slots
            .get(F::Completion as usize)
            .or_else(|| of_event("gen_ai.content.completion", keys::gen_ai::COMPLETION));
        recorded::read(&mut reading, asked, answered);
        if reading.role == Some(Role::Llm) {
            fill("request_model", &mut reading.request_model, &mut reading.sources, slots.text(F::Model as usize));
            recorded::usage(&mut reading, slots.get(F::Usage as usize));
        }
        reading
    }
}

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    Kind,
    Name,
    Prompt,
    Completion,
    Session,
    User,
    Agent,
    Model,
    Usage,
}

const FIELDS: usize = Field::Usage as usize + 1;

fn place(name: &str) -> Option<(usize, u8)> {
    use Field as F;
    let (field, rank) = match name {
        KIND => (F::Kind, 0),
        "langsmith.trace.name" => (F::Name, 0),
        keys::gen_ai::PROMPT => (F::Prompt, 0),
        keys::gen_ai::COMPLETION => (F::Completion, 0),
        "langsmith.metadata.session_id" => (F::Session, 0),
        "langsmith.metadata.conversation_id" => (F::Session, 1),
        "langsmith.metadata.thread_id" => (F::Session, 2),
        "langsmith.metadata.user_id" => (F::User, 0),
        "langsmith.metadata.lc_agent_name" => (F::Agent, 0),
        keys::gen_ai::REQUEST_MODEL => (F::Model, 0),
        "langsmith.metadata.ls_model_name" => (F::Model, 1),
        "langsmith.usage_metadata" => (F::Usage, 0),
        "langsmith.metadata.usage_metadata" => (F::Usage, 1),
        _ => return None,
    };
    Some((field as usize, rank))
}

fn role(kind: &str) -> Option<Role> {
    Some(match kind {
        "chain" | "parser" => Role::Chain,
        "llm" => Role::Llm,
        "tool" => Role::Tool,
        "prompt" => Role::Prompt,
        "embedding" => Role::Embedding,
        "retriever" => Role::Retriever,
        _ => return None,
    })
}
