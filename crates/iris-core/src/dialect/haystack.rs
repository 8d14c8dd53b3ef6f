//! Haystack (`haystack.*`): the tracer is the application's own. Source: <https://docs.haystack.deepset.ai/docs/tracing>.

use serde_json::Value;

use super::attributes::Slots;
use super::guide::Guide;
use super::{Dialect, fill, messages, recorded, salvage};
use crate::model::{RawSpan, Reading, Role};

/// See the module.
pub struct Haystack;

const GUIDE: Guide = Guide {
    title: "Haystack",
    setup: "`HAYSTACK_CONTENT_TRACING_ENABLED=true`, `opentelemetry-haystack` or `tracing.enable_tracing(OpenTelemetryTracer(…))`, and an OTLP exporter.",
    reads: &[
        ("role", "the span's name; of `haystack.component.run` the kind of component (`haystack.component.type`)"),
        (
            "input, output",
            "`haystack.agent.*`, `haystack.agent.step.*`, `haystack.component.input`, `haystack.component.output`, `haystack.pipeline.input_data`, `haystack.pipeline.output_data`",
        ),
        ("tools", "`haystack.tool.name`, `haystack.tool.error`, the replies' tool calls"),
        ("model, tokens", "`meta` of the replies"),
    ],
    notes: "Embedders, retrievers and rankers are such, generators are model calls.",
    cases: &["haystack"],
};

impl Dialect for Haystack {
    fn name(&self) -> &'static str {
        "haystack"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.name.starts_with("haystack.") || span.attributes.keys().any(|name| name.starts_with("haystack."))
    }

    fn read(&self, span: &RawSpan) -> Reading {
        use Field as F;
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let mut reading = Reading::default();
        let component = slots.text(F::Component as usize).map(|(_, kind)| kind);
        reading.role = role(&span.name, component.as_deref());
        reading.sources.insert("role".into(), super::keys::SPAN_NAME.into());
        reading.framework = Some("haystack".to_owned());
        let sources = &mut reading.sources;
        fill("tool_name", &mut reading.tool_name, sources, slots.text(F::ToolName as usize));
        let (input, output) = (slots.get(F::Input as usize), slots.get(F::Output as usize));
        if reading.role == Some(Role::Llm) {
            reply_details(output, &mut reading);
        }
        recorded::read(&mut reading, input, output);
        if slots.get(F::ToolError as usize).is_some_and(|(_, value)| value == true || value == "true") {
            // The only sign of a failed tool; the status stays unset.
            let text = reading.tool_result.as_ref().map_or_else(|| "error".to_owned(), failure);
            fill("error", &mut reading.error, &mut reading.sources, Some(("haystack.tool.error", text)));
        }
        reading
    }
}

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    Input,
    Output,
    Component,
    ToolName,
    ToolError,
}

const FIELDS: usize = Field::ToolError as usize + 1;

fn place(name: &str) -> Option<(usize, u8)> {
    use Field as F;
    let (field, rank) = match name {
        "haystack.agent.step.llm.input" | "haystack.agent.step.tool.input" | "haystack.agent.input" => (F::Input, 0),
        "haystack.component.input" | "haystack.pipeline.input_data" => (F::Input, 1),
        "haystack.agent.step.llm.output" | "haystack.agent.step.tool.output" | "haystack.agent.output" => {
            (F::Output, 0)
        }
        "haystack.component.output" | "haystack.pipeline.output_data" => (F::Output, 1),
        "haystack.component.type" => (F::Component, 0),
        "haystack.tool.name" => (F::ToolName, 0),
        "haystack.tool.error" => (F::ToolError, 0),
        _ => return None,
    };
    Some((field as usize, rank))
}

fn role(span_name: &str, component: Option<&str>) -> Option<Role> {
    Some(match span_name {
        "haystack.agent.run" => Role::Agent,
        "haystack.agent.step.llm" => Role::Llm,
        "haystack.agent.step.tool" => Role::Tool,
        "haystack.agent.step" | "haystack.pipeline.run" | "haystack.async_pipeline.run" => Role::Chain,
        "haystack.component.run" => match component {
            Some("Agent") => Role::Chain,
            Some(kind) if kind.ends_with("Generator") => Role::Llm,
            Some(kind) if kind.ends_with("Retriever") => Role::Retriever,
            Some(kind) if kind.ends_with("Embedder") => Role::Embedding,
            Some(kind) if kind.ends_with("Ranker") => Role::Reranker,
            _ => Role::Other,
        },
        _ => return None,
    })
}

/// What only the metadata of the reply tells: tokens, model, why it stopped.
fn reply_details(output: recorded::Found<'_>, reading: &mut Reading) {
    let Some((key, value)) = output else { return };
    let opened = salvage::unwrapped(value);
    let replies = opened.get("replies");
    let meta = opened.pointer("/replies/0/meta").or_else(|| opened.pointer("/meta/0"));
    let sources = &mut reading.sources;
    if let Some(meta) = meta {
        let text = |name: &str| meta.get(name).and_then(Value::as_str).map(|text| (key, text.to_owned()));
        fill("model", &mut reading.model, sources, text("model"));
        reading.finish_reasons.extend(text("finish_reason").map(|(_, reason)| reason));
    }
    let answer = replies.and_then(messages::read).map(|read| (key, read));
    fill("output_messages", &mut reading.output_messages, sources, answer);
    recorded::usage(reading, meta.and_then(|meta| meta.get("usage")).map(|usage| (key, usage)));
}

fn failure(result: &Value) -> String {
    let text = result.get("error").unwrap_or(result);
    text.as_str().map_or_else(|| text.to_string(), str::to_owned)
}
