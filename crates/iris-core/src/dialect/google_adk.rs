//! Google's Agent Development Kit: what its spans carry beside the GenAI conventions, in version 1 the requests and
//! replies as JSON. Source: <https://google.github.io/adk-docs/observability/>.

use serde_json::Value;

use super::attributes::Slots;
use super::guide::Guide;
use super::{Dialect, fill, keys, recorded, salvage};
use crate::model::{RawSpan, Reading, Role};

/// See the module.
pub struct GoogleAdk;

const GUIDE: Guide = Guide {
    title: "Google ADK",
    setup: "Set `OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318` and `OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf`, or port 4317 and `grpc`; content in version 2 with `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true`, in version 1 with `ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true`.",
    reads: &[
        (
            "role",
            "`gen_ai.operation.name`; version 1 also the names `invocation`, `call_llm`, `agent_run […]`, `execute_tool …`",
        ),
        (
            "content",
            "`gen_ai.input.messages`, `gen_ai.output.messages`; version 1 `gcp.vertex.agent.llm_request`, `gcp.vertex.agent.llm_response`",
        ),
        ("tools", "`gen_ai.tool.*`; version 1 `gcp.vertex.agent.tool_call_args`, `gcp.vertex.agent.tool_response`"),
        ("tokens", "`gen_ai.usage.*`; version 1 also `usage_metadata` of the reply"),
        ("session", "`gen_ai.conversation.id`, `gcp.vertex.agent.session_id`"),
    ],
    notes: "`call_llm` and the `generate_content` below it are one call. Agents' spans carry no content: it is taken from their model calls.",
    cases: &["google-adk", "google-adk_content"],
};

impl Dialect for GoogleAdk {
    fn name(&self) -> &'static str {
        "google_adk"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.scope.name == "gcp.vertex.agent"
            || span.attributes.keys().any(|name| name.starts_with("gcp.vertex.agent."))
    }

    fn read(&self, span: &RawSpan) -> Reading {
        use Field as F;
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let mut reading = Reading::default();
        let sources = &mut reading.sources;
        let role = match span.name.as_str() {
            "invocation" => Some(Role::Chain),
            "call_llm" => Some(Role::Llm),
            name if name.starts_with("agent_run") => Some(Role::Agent),
            name if name.starts_with("execute_tool") => Some(Role::Tool),
            _ => None,
        };
        fill("role", &mut reading.role, sources, role.map(|role| (keys::SPAN_NAME, role)));
        fill("session_id", &mut reading.session_id, sources, slots.text(F::Session as usize));
        let full = |field: F| slots.get(field as usize).filter(|(_, value)| !is_blank(value));
        if let (Some(Role::Llm), Some((key, value))) = (reading.role, full(F::Reply)) {
            let reply = salvage::unwrapped(value);
            recorded::usage(&mut reading, reply.get("usage_metadata").map(|usage| (key, usage)));
        }
        let (input, output) = match reading.role {
            Some(Role::Tool) => (full(F::ToolArguments), full(F::ToolResponse)),
            _ => (full(F::Request), full(F::Reply)),
        };
        recorded::read(&mut reading, input, output);
        reading
    }
}

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    Session,
    Request,
    Reply,
    ToolArguments,
    ToolResponse,
}

const FIELDS: usize = Field::ToolResponse as usize + 1;

fn place(name: &str) -> Option<(usize, u8)> {
    use Field as F;
    let field = match name.strip_prefix("gcp.vertex.agent.")? {
        "session_id" => F::Session,
        "llm_request" => F::Request,
        "llm_response" => F::Reply,
        "tool_call_args" => F::ToolArguments,
        "tool_response" => F::ToolResponse,
        _ => return None,
    };
    Some((field as usize, 0))
}

/// What stands where content is off, or where the key does not apply.
fn is_blank(value: &Value) -> bool {
    value.as_str().is_some_and(|text| matches!(text.trim(), "{}" | "N/A" | "null" | "<not serializable>"))
}
