//! AutoGen and AG2. AutoGen's core writes agents and tools in the GenAI conventions without content, and its runtime
//! writes messaging spans, which are no steps of an agent; AG2 writes spans of its own types.
//! Source: <https://microsoft.github.io/autogen/stable/user-guide/core-user-guide/framework/telemetry.html>.

use serde_json::Value;

use super::attributes::Slots;
use super::guide::Guide;
use super::{Dialect, fill, keys, recorded};
use crate::model::{RawSpan, Reading, Role};

/// See the module.
pub struct AutoGen;

const GUIDE: Guide = Guide {
    title: "AutoGen and AG2",
    setup: "Pass a `TracerProvider` with an OTLP exporter to the runtime. AutoGen does not trace model calls: add an \
            instrumentation of the client, such as `opentelemetry-instrumentation-openai-v2`, for models, tokens and content.",
    reads: &[
        ("role", "`gen_ai.operation.name`; in AG2 `ag2.span.type`"),
        ("tools", "`gen_ai.tool.name`, `gen_ai.tool.call.id`; AutoGen sends no arguments and no results"),
        ("AG2's content", "`ag2.input`, `ag2.output`, `ag2.chat.summary`"),
    ],
    notes: "`create_agent` spans and `autogen publish`, `process` and `ack` make no trace. What members of a team say to each \
            other stands in `autogen process` spans of traces of their own, more than once and without an id that the agents' \
            spans carry: it is not read, and nothing is counted twice.",
    cases: &["autogen"],
};

const TYPE: &str = "ag2.span.type";

impl Dialect for AutoGen {
    fn name(&self) -> &'static str {
        "autogen"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.scope.name.starts_with("autogen") || span.attributes.contains_key(TYPE)
    }

    fn read(&self, span: &RawSpan) -> Reading {
        use Field as F;
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let mut reading = Reading { framework: Some("autogen".to_owned()), ..Reading::default() };
        let kind = slots.text(F::Type as usize).and_then(|(key, kind)| Some((key, role(&kind)?)));
        fill("role", &mut reading.role, &mut reading.sources, kind);
        let (input, output): (Option<(&str, &Value)>, _) =
            (slots.get(F::Input as usize), slots.get(F::Output as usize));
        recorded::read(&mut reading, input, output);
        reading
    }
}

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    Type,
    Input,
    Output,
}

const FIELDS: usize = Field::Output as usize + 1;

fn place(name: &str) -> Option<(usize, u8)> {
    use Field as F;
    let (field, rank) = match name {
        TYPE => (F::Type, 0),
        "ag2.input" => (F::Input, 0),
        keys::gen_ai::INPUT_MESSAGES => (F::Input, 1),
        "ag2.output" => (F::Output, 0),
        keys::gen_ai::OUTPUT_MESSAGES => (F::Output, 1),
        "ag2.chat.summary" => (F::Output, 2),
        _ => return None,
    };
    Some((field as usize, rank))
}

fn role(kind: &str) -> Option<Role> {
    Some(match kind {
        "conversation" | "multi_conversation" | "speaker_selection" => Role::Chain,
        "agent" => Role::Agent,
        "llm" => Role::Llm,
        "tool" | "code_execution" => Role::Tool,
        "human_input" | "agent_creation" => Role::Other,
        _ => return None,
    })
}
