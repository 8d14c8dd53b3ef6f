//! OpenLIT: the GenAI conventions, and what it adds to them. Source: <https://docs.openlit.io>.

use serde_json::Value;

use super::attributes::Slots;
use super::guide::Guide;
use super::{Dialect, calls, fill, keys, messages, recorded, salvage};
use crate::model::{Message, Part, RawSpan, Reading, Role};

/// See the module.
pub struct OpenLit;

const GUIDE: Guide = Guide {
    title: "OpenLIT",
    setup: "`openlit.init(otlp_endpoint=\"http://127.0.0.1:4318\")`.",
    reads: &[
        ("role", "`gen_ai.operation.name`; a span with `function.args` is a decorated step"),
        ("steps", "`function.args`, `gen_ai.workflow.input`, `gen_ai.workflow.output`, `gen_ai.workflow.name`"),
        ("content, model, tokens", "the GenAI conventions"),
        ("cost", "`gen_ai.usage.cost`"),
        ("tools", "`gen_ai.tool.name`, `gen_ai.tool.args`, `gen_ai.tool.call.*`"),
    ],
    notes: "`invoke_agent` spans of LangGraph are nodes, not agents. A tool named on a model's span was asked for, not run.",
    cases: &["openlit", "openlit_nocontent"],
};

impl Dialect for OpenLit {
    fn name(&self) -> &'static str {
        "openlit"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.scope.name.starts_with("openlit")
    }

    fn read(&self, span: &RawSpan) -> Reading {
        use Field as F;
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let mut reading = Reading::default();
        let operation = slots.text(F::Operation as usize).map(|(_, operation)| operation);
        let sources = &mut reading.sources;
        match operation.as_deref() {
            // A decorated function; the arguments are what it was asked.
            None if slots.get(F::Arguments as usize).is_some() => {
                fill("role", &mut reading.role, sources, Some(("function.args", Role::Chain)));
                let arguments = slots.get(F::Arguments as usize).map(|(key, value)| (key, salvage::unwrapped(value)));
                let input = arguments.as_ref().map(|(key, value)| (*key, value));
                recorded::step(&mut reading, input, slots.get(F::Output as usize));
            }
            None if slots.get(F::Workflow as usize).is_some() => {
                fill("role", &mut reading.role, sources, Some((keys::gen_ai::WORKFLOW_NAME, Role::Chain)));
                let name = slots.text(F::Workflow as usize);
                fill("agent_name", &mut reading.agent_name, sources, name);
            }
            Some("invoke_agent") if span.scope.name.ends_with("langgraph") => {
                // A node of the graph, not an agent.
                fill("role", &mut reading.role, sources, Some((keys::SCOPE, Role::Chain)));
            }
            Some("invoke_agent" | "invoke_workflow") => {
                reading.role =
                    Some(if operation.as_deref() == Some("invoke_agent") { Role::Agent } else { Role::Chain });
                recorded::step(
                    &mut reading,
                    slots.get(F::WorkflowInput as usize),
                    slots.get(F::WorkflowOutput as usize),
                );
                reading.role = None;
            }
            Some("chat") => requested(&slots, &mut reading),
            Some("execute_tool") => printed_result(&slots, &mut reading),
            _ => {}
        }
        reading
    }
}

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    Operation,
    Arguments,
    Output,
    Workflow,
    WorkflowInput,
    WorkflowOutput,
    ToolName,
    ToolId,
    ToolArguments,
    ToolResult,
}

const FIELDS: usize = Field::ToolResult as usize + 1;

fn place(name: &str) -> Option<(usize, u8)> {
    use Field as F;
    let (field, rank) = match name {
        keys::gen_ai::OPERATION => (F::Operation, 0),
        "function.args" => (F::Arguments, 0),
        keys::gen_ai::OUTPUT_MESSAGES => (F::Output, 0),
        keys::gen_ai::WORKFLOW_NAME => (F::Workflow, 0),
        "gen_ai.workflow.input" => (F::WorkflowInput, 0),
        "gen_ai.workflow.output" => (F::WorkflowOutput, 0),
        keys::gen_ai::TOOL_NAME => (F::ToolName, 0),
        keys::gen_ai::TOOL_CALL_ID => (F::ToolId, 0),
        keys::gen_ai::TOOL_ARGUMENTS => (F::ToolArguments, 0),
        "gen_ai.tool.args" => (F::ToolArguments, 1),
        keys::gen_ai::TOOL_RESULT => (F::ToolResult, 0),
        _ => return None,
    };
    Some((field as usize, rank))
}

/// The call that a model asks for stands on its span even where messages are off; several stand in one text.
fn requested(slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    use Field as F;
    let Some((key, name)) = slots.text(F::ToolName as usize) else { return };
    if slots.get(F::Output as usize).is_some_and(|(_, value)| messages::read(value).is_some()) {
        return;
    }
    let id = slots.text(F::ToolId as usize).map(|(_, id)| id).unwrap_or_default();
    let arguments = slots.get(F::ToolArguments as usize).map(|(_, value)| calls::arguments(value)).unwrap_or_default();
    let names: Vec<&str> = name.split(", ").collect();
    let ids: Vec<&str> = id.split(", ").collect();
    let call = |(at, name): (usize, &&str)| Part::ToolCall {
        id: ids.get(at).filter(|id| !id.is_empty() && ids.len() == names.len()).map(|id| (*id).to_owned()),
        name: (*name).to_owned(),
        arguments: match &arguments {
            Value::Array(each) if each.len() == names.len() => each.get(at).map(calls::arguments).unwrap_or_default(),
            whole if names.len() == 1 => whole.clone(),
            _ => Value::Null,
        },
    };
    let parts = names.iter().enumerate().map(call).collect();
    let asked = vec![Message { role: "assistant".to_owned(), parts }];
    fill("output_messages", &mut reading.output_messages, &mut reading.sources, Some((key, asked)));
}

/// A result printed as `content='...' name='...' tool_call_id='...'`.
fn printed_result(slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    let Some((key, text)) = slots.text(Field::ToolResult as usize) else { return };
    if !text.starts_with("content='") {
        return;
    }
    let content = salvage::repr_field(&text, "content").map(|content| (key, Value::String(content.to_owned())));
    fill("tool_result", &mut reading.tool_result, &mut reading.sources, content);
    let id = salvage::repr_field(&text, "tool_call_id").map(|id| (key, id.to_owned()));
    fill("tool_call_id", &mut reading.tool_call_id, &mut reading.sources, id);
}
