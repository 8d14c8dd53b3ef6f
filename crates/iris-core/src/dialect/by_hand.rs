//! Spans of programs that set a few widely known keys by hand and say no role: `input.value`, `output.value` and their
//! like. They also fill what a span with a role lacks.

use serde_json::Value;

use super::attributes::Slots;
use super::guide::Guide;
use super::{Dialect, fill, keys, recorded};
use crate::model::{RawSpan, Reading, Role};

/// See the module.
pub struct ByHand;

const GUIDE: Guide = Guide {
    title: "Content without a role",
    setup: "Nothing to set up: a span that carries one of these keys and does not say what it is counts as the run of an agent.",
    reads: &[
        ("input", "`input.value`, `traceloop.entity.input`, `ai.prompt`; on a span with a role also `input`"),
        (
            "output",
            "`output.value`, `traceloop.entity.output`, `ai.response.text`; on a span with a role also `output`",
        ),
        ("tools", "`tool.name`, `tool_name`: a span with one of them is a tool's"),
    ],
    notes: "Asked last: only what no other dialect found is read. Beside runs that say what they are, such a span is no run of its own.",
    cases: &[],
};

impl Dialect for ByHand {
    fn name(&self) -> &'static str {
        "by_hand"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        let has = |key: &&str| span.attributes.contains_key(*key);
        !span.attributes.contains_key(keys::openinference::KIND) && INPUTS.iter().chain(&OUTPUTS).any(has)
    }

    fn read(&self, span: &RawSpan) -> Reading {
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let mut reading = Reading::default();
        let known = |field: Field| slots.get(field as usize).filter(|(key, _)| !matches!(*key, "input" | "output"));
        let role = match (slots.get(Field::ToolName as usize), known(Field::Input).or_else(|| known(Field::Output))) {
            (Some((key, _)), Some(_)) => Some((key, Role::Tool)),
            (None, Some(_)) => Some((keys::CONTENT, Role::Agent)),
            (_, None) => None,
        };
        fill("role", &mut reading.role, &mut reading.sources, role);
        if reading.role == Some(Role::Tool) {
            fill("tool_name", &mut reading.tool_name, &mut reading.sources, slots.text(Field::ToolName as usize));
        }
        reading
    }
}

/// Reads the content by the role that was found, whichever dialect found it.
pub fn content(reading: &mut Reading, span: &RawSpan) {
    let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
    let (input, output): (Option<(&str, &Value)>, _) =
        (slots.get(Field::Input as usize), slots.get(Field::Output as usize));
    recorded::read(reading, input, output);
}

/// Most telling first.
const INPUTS: [&str; 4] = [keys::openinference::INPUT, keys::openllmetry::ENTITY_INPUT, "ai.prompt", "input"];
const OUTPUTS: [&str; 4] =
    [keys::openinference::OUTPUT, keys::openllmetry::ENTITY_OUTPUT, "ai.response.text", "output"];

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    Input,
    Output,
    ToolName,
}

const FIELDS: usize = Field::ToolName as usize + 1;

fn place(name: &str) -> Option<(usize, u8)> {
    let rank = |names: &[&str]| names.iter().position(|known| *known == name).and_then(|at| u8::try_from(at).ok());
    if let Some(rank) = rank(&INPUTS) {
        return Some((Field::Input as usize, rank));
    }
    if let Some(rank) = rank(&OUTPUTS) {
        return Some((Field::Output as usize, rank));
    }
    match name {
        keys::openinference::TOOL_NAME => Some((Field::ToolName as usize, 0)),
        "tool_name" => Some((Field::ToolName as usize, 1)),
        _ => None,
    }
}
