//! Strands Agents: the GenAI conventions with content in span events; before version 1 keys and span names of its own. A
//! failed tool is marked by an attribute while the status stays as it is.
//! Source: <https://strandsagents.com/latest/documentation/docs/user-guide/observability-evaluation/traces/>.

use serde_json::Value;

use super::attributes::Slots;
use super::guide::Guide;
use super::{Dialect, calls, fill, keys, recorded};
use crate::model::{RawSpan, Reading, Role};

/// See the module.
pub struct Strands;

const GUIDE: Guide = Guide {
    title: "Strands Agents",
    setup: "`StrandsTelemetry().setup_otlp_exporter()` with `OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318`.",
    reads: &[
        ("role", "`gen_ai.operation.name`; before version 1 the span's name (`Cycle …`, `Model invoke`, `Tool: …`)"),
        ("content", "span events `gen_ai.*.message`, `gen_ai.choice`, `gen_ai.client.inference.operation.details`"),
        ("failed tools", "`gen_ai.tool.status`, `tool.status`"),
        (
            "before version 1",
            "`agent.name`, `tool.name`, `tool.id`, `tool.parameters`, `tool.result`, `gen_ai.prompt`, `gen_ai.completion`",
        ),
        ("session and user", "the trace attributes `session.id` and `user.id` that the application sets"),
    ],
    notes: "Content is on by default.",
    cases: &["strands", "strands_latest"],
};

impl Dialect for Strands {
    fn name(&self) -> &'static str {
        "strands"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        matches!(span.scope.name.as_str(), "strands.telemetry.tracer" | "strands-agents")
    }

    fn read(&self, span: &RawSpan) -> Reading {
        use Field as F;
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let mut reading = Reading::default();
        if !span.attributes.contains_key(keys::gen_ai::OPERATION) {
            before_operations(span, &slots, &mut reading);
        }
        let failed = slots.text(F::ToolStatus as usize).filter(|(_, status)| status.eq_ignore_ascii_case("error"));
        let failed = failed.map(|(key, _)| (key, super::provenance::error(span)));
        fill("error", &mut reading.error, &mut reading.sources, failed);
        reading
    }
}

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    ToolStatus,
    Agent,
    ToolName,
    ToolId,
    ToolArguments,
    ToolResult,
    Prompt,
    Completion,
    Model,
}

const FIELDS: usize = Field::Model as usize + 1;

fn place(name: &str) -> Option<(usize, u8)> {
    use Field as F;
    let (field, rank) = match name {
        "gen_ai.tool.status" => (F::ToolStatus, 0),
        "tool.status" => (F::ToolStatus, 1),
        "agent.name" => (F::Agent, 0),
        "tool.name" => (F::ToolName, 0),
        "tool.id" => (F::ToolId, 0),
        "tool.parameters" => (F::ToolArguments, 0),
        "tool.result" => (F::ToolResult, 0),
        keys::gen_ai::PROMPT => (F::Prompt, 0),
        keys::gen_ai::COMPLETION => (F::Completion, 0),
        "model_id" => (F::Model, 0),
        _ => return None,
    };
    Some((field as usize, rank))
}

/// Spans of the versions that named no operation: their names tell what they are.
fn before_operations(span: &RawSpan, slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    use Field as F;
    let name = span.name.as_str();
    let tool = name.strip_prefix("Tool: ").or_else(|| name.strip_prefix("execute_tool "));
    let role = if tool.is_some() {
        Role::Tool
    } else if name.starts_with("Cycle") || name.starts_with("execute_event_loop_cycle") {
        Role::Chain
    } else if name == "Model invoke" || name.starts_with("chat") {
        Role::Llm
    } else if slots.get(F::Agent as usize).is_some() || name.starts_with("invoke_agent") {
        Role::Agent
    } else {
        return;
    };
    let sources = &mut reading.sources;
    fill("role", &mut reading.role, sources, Some((keys::SPAN_NAME, role)));
    match role {
        Role::Tool => {
            fill("tool_name", &mut reading.tool_name, sources, slots.text(F::ToolName as usize));
            fill("tool_name", &mut reading.tool_name, sources, tool.map(|tool| (keys::SPAN_NAME, tool.to_owned())));
            fill("tool_call_id", &mut reading.tool_call_id, sources, slots.text(F::ToolId as usize));
            let arguments = slots.get(F::ToolArguments as usize).map(|(key, value)| (key, calls::arguments(value)));
            fill("tool_arguments", &mut reading.tool_arguments, sources, arguments);
            let result: Option<(&str, &Value)> = slots.get(F::ToolResult as usize);
            recorded::tool(reading, None, result);
        }
        _ => {
            fill("agent_name", &mut reading.agent_name, sources, slots.text(F::Agent as usize));
            fill("request_model", &mut reading.request_model, sources, slots.text(F::Model as usize));
            recorded::read(reading, slots.get(F::Prompt as usize), slots.get(F::Completion as usize));
        }
    }
}
