//! Microsoft Agent Framework in Python and .NET, and the .NET AI extensions below it: the GenAI conventions, and
//! workflows with spans of their own. Source: <https://learn.microsoft.com/agent-framework/user-guide/observability>.

use super::attributes::Slots;
use super::guide::Guide;
use super::{Dialect, fill, keys};
use crate::model::{RawSpan, Reading, Role};

/// See the module.
pub struct AgentFramework;

const GUIDE: Guide = Guide {
    title: "Microsoft Agent Framework",
    setup: "Python: `configure_otel_providers()` of `agent_framework.observability` with `ENABLE_SENSITIVE_DATA=true`; older versions \
            `ENABLE_OTEL=true`, `ENABLE_SENSITIVE_DATA=true`, `OTLP_ENDPOINT=…`. .NET: `.UseOpenTelemetry()` on the client and the \
            agent with `EnableSensitiveData`, and an OTLP exporter for the sources `Experimental.Microsoft.Agents.AI` and \
            `Experimental.Microsoft.Extensions.AI`.",
    reads: &[
        ("role", "`gen_ai.operation.name`; `workflow.run`, `executor.process` and `edge_group.process` are steps"),
        ("workflow", "`workflow.name`, `workflow.id`, `executor.id`"),
        (
            "content, tools, tokens",
            "the GenAI conventions, see [OpenTelemetry GenAI](#opentelemetry-genai-conventions)",
        ),
    ],
    notes: "Without sensitive data only names, models, tokens and errors are sent. The agent's span repeats the tokens of its \
            model calls; they count once.",
    cases: &["agent-framework", "agent-framework_nocontent"],
};

impl Dialect for AgentFramework {
    fn name(&self) -> &'static str {
        "agent_framework"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.scope.name.starts_with("agent_framework") || span.scope.name.starts_with("Experimental.Microsoft.")
    }

    fn read(&self, span: &RawSpan) -> Reading {
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let mut reading = Reading { framework: Some("agent-framework".to_owned()), ..Reading::default() };
        let step = match span.name.split_once(' ').map_or(span.name.as_str(), |(first, _)| first) {
            "workflow.run" | "workflow_invoke" | "executor.process" | "edge_group.process" => Some(Role::Chain),
            "workflow.build" | "message.send" => Some(Role::Other),
            _ => None,
        };
        let sources = &mut reading.sources;
        fill("role", &mut reading.role, sources, step.map(|role| (keys::SPAN_NAME, role)));
        if reading.role == Some(Role::Chain) && span.name.starts_with("workflow") {
            fill("agent_name", &mut reading.agent_name, sources, slots.text(Field::Workflow as usize));
        }
        reading
    }
}

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    Workflow,
}

const FIELDS: usize = Field::Workflow as usize + 1;

fn place(name: &str) -> Option<(usize, u8)> {
    let rank = match name {
        "workflow.name" => 0,
        "workflow.id" => 1,
        _ => return None,
    };
    Some((Field::Workflow as usize, rank))
}
