//! The Model Context Protocol: spans of clients and servers. Only `tools/call` runs a tool; the same call seen by the
//! client and by the server is one step, which [`crate::assemble`] finds by ancestry.
//! Source: <https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/>.

use super::attributes::Slots;
use super::guide::Guide;
use super::keys::{self, gen_ai, mcp as key};
use super::{Dialect, fill, recorded};
use crate::model::{RawSpan, Reading, Role};

/// See the module.
pub struct Mcp;

const GUIDE: Guide = Guide {
    title: "MCP clients and servers (fastmcp, MCP SDKs)",
    setup: "An OTLP exporter in the process of the client and of the server; trace context travels in `_meta`, so both share \
            the trace.",
    reads: &[
        (
            "role",
            "`mcp.method.name` (or `rpc.method` of an MCP span): `tools/call` is a tool, `prompts/get` a prompt, all others are neither",
        ),
        ("tool's name", "`gen_ai.tool.name`, `mcp.tool.name`, else the span's name after `tools/call`"),
        (
            "arguments and result",
            "`gen_ai.tool.call.arguments`, `gen_ai.tool.call.result`; Logfire's `request` and `response`",
        ),
        ("failure", "the status, `error.type=tool_error`, `is_error` in the result"),
        ("session", "`gen_ai.conversation.id`, else `mcp.session.id`"),
    ],
    notes: "`initialize`, `tools/list` and the like make no trace.",
    cases: &["fastmcp", "mcp-sdk"],
};

impl Dialect for Mcp {
    fn name(&self) -> &'static str {
        "mcp"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.attributes.contains_key(key::METHOD)
            || (span.attributes.contains_key(key::RPC_METHOD) && span.name.starts_with("MCP "))
    }

    fn read(&self, span: &RawSpan) -> Reading {
        use Field as F;
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let mut reading = Reading::default();
        let sources = &mut reading.sources;
        let role = slots.text(F::Method as usize).map(|(key, method)| (key, role(&method)));
        fill("role", &mut reading.role, sources, role);
        fill("session_id", &mut reading.session_id, sources, slots.text(F::Session as usize));
        if reading.role != Some(Role::Tool) {
            return reading;
        }
        let named = slots.text(F::ToolName as usize).or_else(|| {
            let (_, tool) = span.name.split_once("tools/call ")?;
            (!tool.is_empty()).then(|| (keys::SPAN_NAME, tool.to_owned()))
        });
        fill("tool_name", &mut reading.tool_name, sources, named);
        fill("tool_call_id", &mut reading.tool_call_id, sources, slots.text(F::CallId as usize));
        let (asked, answered) = (slots.get(F::Arguments as usize), slots.get(F::Result as usize));
        recorded::tool(&mut reading, asked, answered);
        raw(&slots, &mut reading);
        reading
    }
}

/// The whole request and reply, as Logfire keeps them.
fn raw(slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    if let Some((key, value)) = slots.get(Field::Request as usize) {
        let request = super::salvage::unwrapped(value);
        let asked = request.pointer("/params/arguments").map(|value| (key, value));
        let name = request.pointer("/params/name").and_then(|name| Some((key, name.as_str()?.to_owned())));
        fill("tool_name", &mut reading.tool_name, &mut reading.sources, name);
        recorded::tool(reading, asked, None);
    }
    if let Some((key, value)) = slots.get(Field::Reply as usize) {
        let reply = super::salvage::unwrapped(value);
        recorded::tool(reading, None, Some((key, reply.get("result").unwrap_or(&reply))));
    }
}

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    Method,
    Session,
    ToolName,
    CallId,
    Arguments,
    Result,
    Request,
    Reply,
}

const FIELDS: usize = Field::Reply as usize + 1;

fn place(name: &str) -> Option<(usize, u8)> {
    use Field as F;
    let (field, rank) = match name {
        key::METHOD => (F::Method, 0),
        key::RPC_METHOD => (F::Method, 1),
        gen_ai::CONVERSATION => (F::Session, 0),
        key::SESSION => (F::Session, 1),
        gen_ai::TOOL_NAME => (F::ToolName, 0),
        "mcp.tool.name" => (F::ToolName, 1),
        gen_ai::TOOL_CALL_ID => (F::CallId, 0),
        gen_ai::TOOL_ARGUMENTS => (F::Arguments, 0),
        "mcp.tool.arguments" => (F::Arguments, 1),
        gen_ai::TOOL_RESULT => (F::Result, 0),
        "mcp.tool.result" => (F::Result, 1),
        "request" => (F::Request, 0),
        "response" => (F::Reply, 0),
        _ => return None,
    };
    Some((field as usize, rank))
}

fn role(method: &str) -> Role {
    match method {
        key::TOOLS_CALL => Role::Tool,
        "prompts/get" => Role::Prompt,
        _ => Role::Other,
    }
}
