//! The product's own keys, for programs that write spans by hand and for traces that were logged and sent on as spans:
//! `iris.input`, `iris.output` and what belongs to them.

use super::attributes::Slots;
use super::guide::Guide;
use super::keys::{self, iris as key};
use super::{Dialect, fill, recorded};
use crate::model::{RawSpan, Reading, Role};

/// See the module.
pub struct Iris;

const GUIDE: Guide = Guide {
    title: "Spans written by hand: `iris.*`",
    setup: "Open a span around the agent with any OpenTelemetry SDK and set `iris.input` and `iris.output`; everything else \
            is optional.",
    reads: &[
        ("role", "`iris.span_kind` (`AGENT`, `CHAIN`, `LLM`, `TOOL` and the kinds of OpenInference), else an agent"),
        ("input, output", "`iris.input`, `iris.output`"),
        ("agent's name, framework", "`iris.agent_name`, also on the resource; `iris.framework`"),
        ("tools", "`tool.name`, `tool_name`, else the span's name; arguments and result as input and output"),
        ("tokens, cost", "`iris.prompt_tokens`, `iris.completion_tokens`, `iris.total_tokens`, `iris.cost_usd`"),
    ],
    notes: "On a span that other keys describe too, these come first.",
    cases: &[],
};

impl Dialect for Iris {
    fn name(&self) -> &'static str {
        "iris"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.attributes.keys().any(|name| name.starts_with(key::PREFIX))
    }

    fn read(&self, span: &RawSpan) -> Reading {
        use Field as F;
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let mut reading = Reading::default();
        let sources = &mut reading.sources;
        let kind = slots.text(F::Kind as usize).and_then(|(key, kind)| Some((key, role(&kind)?)));
        fill("role", &mut reading.role, sources, kind);
        // A run that says what it was asked or answered, or who it is, and not what it is.
        let run = [F::Input, F::Output, F::Agent].iter().find_map(|field| slots.get(*field as usize));
        fill("role", &mut reading.role, sources, run.map(|(key, _)| (key, Role::Agent)));
        fill("agent_name", &mut reading.agent_name, sources, slots.text(F::Agent as usize));
        fill("framework", &mut reading.framework, sources, slots.text(F::Framework as usize));
        fill("usage.input", &mut reading.usage.input, sources, slots.count(F::PromptTokens as usize));
        fill("usage.output", &mut reading.usage.output, sources, slots.count(F::CompletionTokens as usize));
        fill("usage.total", &mut reading.usage.total, sources, slots.count(F::TotalTokens as usize));
        fill("cost_usd", &mut reading.cost_usd, sources, slots.amount(F::Cost as usize));
        if reading.role == Some(Role::Tool) {
            fill("tool_name", &mut reading.tool_name, sources, slots.text(F::ToolName as usize));
            let name = span.name.strip_prefix("tool.").unwrap_or(&span.name);
            fill("tool_name", &mut reading.tool_name, sources, Some((keys::SPAN_NAME, name.to_owned())));
        }
        recorded::read(&mut reading, slots.get(F::Input as usize), slots.get(F::Output as usize));
        reading
    }
}

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    Kind,
    Input,
    Output,
    Agent,
    Framework,
    Cost,
    PromptTokens,
    CompletionTokens,
    TotalTokens,
    ToolName,
}

const FIELDS: usize = Field::ToolName as usize + 1;

fn place(name: &str) -> Option<(usize, u8)> {
    use Field as F;
    let (field, rank) = match name {
        key::KIND => (F::Kind, 0),
        key::INPUT => (F::Input, 0),
        key::OUTPUT => (F::Output, 0),
        key::AGENT_NAME => (F::Agent, 0),
        key::FRAMEWORK => (F::Framework, 0),
        key::COST => (F::Cost, 0),
        key::PROMPT_TOKENS => (F::PromptTokens, 0),
        key::COMPLETION_TOKENS => (F::CompletionTokens, 0),
        key::TOTAL_TOKENS => (F::TotalTokens, 0),
        keys::openinference::TOOL_NAME => (F::ToolName, 0),
        "tool_name" => (F::ToolName, 1),
        keys::gen_ai::TOOL_NAME => (F::ToolName, 2),
        _ => return None,
    };
    Some((field as usize, rank))
}

/// The kinds of OpenInference; what only says where a span stands in a network says no role.
fn role(kind: &str) -> Option<Role> {
    let kind = kind.to_ascii_uppercase();
    let network = matches!(kind.as_str(), "INTERNAL" | "SERVER" | "CLIENT" | "PRODUCER" | "CONSUMER");
    (!network).then(|| super::openinference::role(&kind)).flatten()
}
