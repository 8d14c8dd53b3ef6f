//! Laminar (`lmnr.*`): decorated functions around model calls in the GenAI conventions.
//! Source: <https://docs.lmnr.ai/tracing/otel>.

use super::attributes::Slots;
use super::guide::Guide;
use super::{Dialect, fill, keys, recorded};
use crate::model::{RawSpan, Reading, Role};

const TYPE: &str = "lmnr.span.type";

/// See the module.
pub struct Laminar;

const GUIDE: Guide = Guide {
    title: "Laminar",
    setup: "`Laminar.initialize(base_url=\"http://127.0.0.1\", http_port=4318, force_http=True, project_api_key=\"local\")`.",
    reads: &[
        ("role", "`lmnr.span.type`"),
        ("input, output", "`lmnr.span.input`, `lmnr.span.output`; of model calls the GenAI conventions first"),
        ("tools", "the span's name"),
        ("cost", "`gen_ai.usage.cost`"),
        ("session, user", "`lmnr.association.properties.session_id`, `.user_id`"),
    ],
    notes: "",
    cases: &[],
};

impl Dialect for Laminar {
    fn name(&self) -> &'static str {
        "laminar"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.attributes.contains_key(TYPE)
    }

    fn read(&self, span: &RawSpan) -> Reading {
        use Field as F;
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let mut reading = Reading::default();
        let sources = &mut reading.sources;
        let kind = slots.text(F::Type as usize).and_then(|(key, kind)| Some((key, role(&kind)?)));
        fill("role", &mut reading.role, sources, kind);
        fill("session_id", &mut reading.session_id, sources, slots.text(F::Session as usize));
        fill("user_id", &mut reading.user_id, sources, slots.text(F::User as usize));
        match reading.role {
            Some(Role::Tool) => {
                fill("tool_name", &mut reading.tool_name, sources, Some((keys::SPAN_NAME, span.name.clone())));
            }
            // The decorated function at the root is the application.
            Some(Role::Chain) if span.parent_span_id.is_none() => {
                fill("agent_name", &mut reading.agent_name, sources, Some((TYPE, span.name.clone())));
            }
            _ => {}
        }
        // What stands in the conventions' keys says more of a model call.
        let has_messages = slots.get(F::Messages as usize).is_some();
        if reading.role != Some(Role::Llm) || !has_messages {
            recorded::read(&mut reading, slots.get(F::Input as usize), slots.get(F::Output as usize));
        }
        reading
    }
}

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    Type,
    Input,
    Output,
    Session,
    User,
    Messages,
}

const FIELDS: usize = Field::Messages as usize + 1;

fn place(name: &str) -> Option<(usize, u8)> {
    use Field as F;
    let (field, rank) = match name {
        TYPE => (F::Type, 0),
        "lmnr.span.input" => (F::Input, 0),
        "lmnr.span.output" => (F::Output, 0),
        "lmnr.association.properties.session_id" => (F::Session, 0),
        "lmnr.association.properties.user_id" => (F::User, 0),
        keys::gen_ai::INPUT_MESSAGES
        | keys::gen_ai::OUTPUT_MESSAGES
        | "gen_ai.completion.0.role"
        | "gen_ai.prompt.0.role" => (F::Messages, 0),
        _ => return None,
    };
    Some((field as usize, rank))
}

fn role(kind: &str) -> Option<Role> {
    Some(match kind {
        "DEFAULT" | "PIPELINE" | "EXECUTOR" => Role::Chain,
        "LLM" | "CACHED" => Role::Llm,
        "TOOL" => Role::Tool,
        "EVALUATION" | "EVALUATOR" | "HUMAN_EVALUATOR" => Role::Evaluator,
        _ => return None,
    })
}
