//! OpenLLMetry (`traceloop.*`): workflows, agents, tasks and tools around model calls in the GenAI conventions, whose
//! older indexed form [`super::gen_ai`] reads too.
//! Source: <https://github.com/traceloop/openllmetry/blob/main/packages/opentelemetry-semantic-conventions-ai>.

use super::attributes::{self, Slots};
use super::guide::Guide;
use super::keys::openllmetry as key;
use super::{Dialect, fill, messages, recorded};
use crate::model::{RawSpan, Reading, Role};

/// See the module.
pub struct OpenLlmetry;

const GUIDE: Guide = Guide {
    title: "OpenLLMetry (Traceloop)",
    setup: "`Traceloop.init(app_name=…, api_endpoint=\"http://127.0.0.1:4318\")`, or `TRACELOOP_BASE_URL=http://127.0.0.1:4318`.",
    reads: &[
        ("role", "`traceloop.span.kind`, `llm.request.type`, `gen_ai.operation.name`"),
        ("input, output of steps", "`traceloop.entity.input`, `traceloop.entity.output`"),
        (
            "messages",
            "`gen_ai.input.messages`, `gen_ai.output.messages`; until 0.40 `gen_ai.prompt.N.*`, `gen_ai.completion.N.*`; before that `llm.prompts.N.*`, `llm.completions.N.*`",
        ),
        ("agent's name", "`traceloop.entity.name` of an agent, `gen_ai.agent.name`"),
        ("tools", "`traceloop.entity.name`, `traceloop.entity.input`, `traceloop.entity.output` of a tool"),
        ("model, tokens", "`gen_ai.*`, older `llm.request.model`, `llm.response.model`, `llm.usage.*`"),
        ("session, user", "`traceloop.association.properties.session_id`, `.chat_id`, `.user_id` and their like"),
    ],
    notes: "`TRACELOOP_TRACE_CONTENT=false` turns content off.",
    cases: &["openllmetry", "openllmetry_nocontent", "openllmetry_old"],
};

impl Dialect for OpenLlmetry {
    fn name(&self) -> &'static str {
        "openllmetry"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.attributes.keys().any(|name| {
            name.starts_with("traceloop.") || name == key::REQUEST_TYPE || name.starts_with(key::FIRST_COMPLETIONS)
        })
    }

    fn read(&self, span: &RawSpan) -> Reading {
        use Field as F;
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let mut reading = Reading::default();
        let sources = &mut reading.sources;
        let role = slots.text(F::Kind as usize).and_then(|(key, kind)| Some((key, step_role(&kind)?)));
        let role =
            role.or_else(|| slots.text(F::RequestType as usize).and_then(|(key, kind)| Some((key, call_role(&kind)?))));
        // A workflow that the conventions call the run of an agent is that run.
        let is_agent = span.attributes.get("gen_ai.operation.name").is_some_and(|name| name == "invoke_agent");
        let role = role.map(|(key, role)| (key, if is_agent && role == Role::Chain { Role::Agent } else { role }));
        fill("role", &mut reading.role, sources, role);
        fill("session_id", &mut reading.session_id, sources, slots.text(F::Session as usize));
        fill("user_id", &mut reading.user_id, sources, slots.text(F::User as usize));
        match reading.role {
            Some(Role::Tool) => tool(&slots, &mut reading),
            Some(Role::Agent | Role::Chain) => step(&slots, &mut reading, is_agent),
            Some(Role::Llm) => first_names(span, &slots, &mut reading),
            _ => {}
        }
        reading
    }
}

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    Kind,
    Name,
    Input,
    Output,
    RequestType,
    Session,
    User,
    AgentProperty,
    RequestModel,
    Model,
    PromptTokens,
    CompletionTokens,
    Vendor,
}

const FIELDS: usize = Field::Vendor as usize + 1;

fn place(name: &str) -> Option<(usize, u8)> {
    use Field as F;
    let (field, rank) = match name {
        key::KIND => (F::Kind, 0),
        key::ENTITY_NAME => (F::Name, 0),
        key::ENTITY_INPUT => (F::Input, 0),
        key::ENTITY_OUTPUT => (F::Output, 0),
        key::REQUEST_TYPE => (F::RequestType, 0),
        "llm.request.model" => (F::RequestModel, 0),
        "llm.response.model" => (F::Model, 0),
        "llm.usage.prompt_tokens" => (F::PromptTokens, 0),
        "llm.usage.completion_tokens" => (F::CompletionTokens, 0),
        "llm.vendor" => (F::Vendor, 0),
        _ => match name.strip_prefix(key::PROPERTIES)? {
            "session_id" => (F::Session, 0),
            "sessionId" => (F::Session, 1),
            "conversation_id" => (F::Session, 2),
            "thread_id" => (F::Session, 3),
            "chat_id" => (F::Session, 4),
            "user_id" => (F::User, 0),
            "userId" => (F::User, 1),
            "lc_agent_name" => (F::AgentProperty, 0),
            _ => return None,
        },
    };
    Some((field as usize, rank))
}

fn step_role(kind: &str) -> Option<Role> {
    match kind {
        "agent" => Some(Role::Agent),
        "workflow" | "task" => Some(Role::Chain),
        "tool" => Some(Role::Tool),
        _ => None,
    }
}

fn call_role(kind: &str) -> Option<Role> {
    match kind {
        "chat" | "completion" => Some(Role::Llm),
        "embedding" => Some(Role::Embedding),
        "rerank" => Some(Role::Reranker),
        _ => None,
    }
}

/// The names of the first versions, before they were the conventions'.
fn first_names(span: &RawSpan, slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    use Field as F;
    let sources = &mut reading.sources;
    fill("request_model", &mut reading.request_model, sources, slots.text(F::RequestModel as usize));
    fill("model", &mut reading.model, sources, slots.text(F::Model as usize));
    fill("provider", &mut reading.provider, sources, slots.text(F::Vendor as usize));
    fill("usage.input", &mut reading.usage.input, sources, slots.count(F::PromptTokens as usize));
    fill("usage.output", &mut reading.usage.output, sources, slots.count(F::CompletionTokens as usize));
    let list = |prefix: &'static str, role: &str| {
        let list = attributes::indexed(&span.attributes, prefix)?;
        Some((prefix, messages::read_as(&list, Some(role))?))
    };
    fill("input_messages", &mut reading.input_messages, sources, list("llm.prompts", "user"));
    fill("output_messages", &mut reading.output_messages, sources, list(key::FIRST_COMPLETIONS, "assistant"));
}

fn tool(slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    use Field as F;
    let sources = &mut reading.sources;
    fill("tool_name", &mut reading.tool_name, sources, slots.text(F::Name as usize));
    recorded::tool(reading, slots.get(F::Input as usize), slots.get(F::Output as usize));
}

fn step(slots: &Slots<'_, FIELDS>, reading: &mut Reading, is_agent: bool) {
    use Field as F;
    let sources = &mut reading.sources;
    if reading.role == Some(Role::Agent) && !is_agent {
        fill("agent_name", &mut reading.agent_name, sources, slots.text(F::Name as usize));
    }
    fill("agent_name", &mut reading.agent_name, sources, slots.text(F::AgentProperty as usize));
    recorded::step(reading, slots.get(F::Input as usize), slots.get(F::Output as usize));
}
