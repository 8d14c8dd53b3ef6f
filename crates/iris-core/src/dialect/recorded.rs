//! What a library records as the input and output of a span, read by the part the span plays. Most dialects record the
//! two under keys of their own and the same shapes in them.

use serde_json::Value;

use super::{attributes, calls, fill, messages, salvage, words};
use crate::model::{Message, Reading, Role};

pub use super::usage::stated as usage;

/// A key and its value, when it was sent.
pub type Found<'a> = Option<(&'a str, &'a Value)>;

/// Reads input and output as the reading's role has it.
pub fn read(reading: &mut Reading, input: Found<'_>, output: Found<'_>) {
    match reading.role {
        Some(Role::Llm) => llm(reading, input, output),
        Some(Role::Tool) => tool(reading, input, output),
        Some(Role::Agent | Role::Chain) => step(reading, input, output),
        _ => {}
    }
}

/// One model call: messages where there are any, else words.
pub fn llm(reading: &mut Reading, input: Found<'_>, output: Found<'_>) {
    let sources = &mut reading.sources;
    if let Some((key, value)) = input.filter(|_| reading.input_messages.is_none()) {
        match messages::read(value).filter(|read| messages::question(read).is_some()) {
            Some(read) => fill("input_messages", &mut reading.input_messages, sources, Some((key, read))),
            None => fill("input", &mut reading.input, sources, words::question(value).map(|text| (key, text))),
        }
    }
    if let Some((key, value)) = output.filter(|_| reading.output_messages.is_none()) {
        match answered(value) {
            Some(read) => fill("output_messages", &mut reading.output_messages, sources, Some((key, read))),
            None => {
                // LlamaIndex prints the role in front of the words.
                let text = words::answer(value).filter(|text| !text.starts_with("assistant: "));
                fill("output", &mut reading.output, sources, text.map(|text| (key, text)));
            }
        }
    }
}

/// The messages of a raw reply; one that kept nothing of them is none.
fn answered(value: &Value) -> Option<Vec<Message>> {
    let mut read = messages::read(&reply(value))?;
    read.retain(|message| message.role == "assistant" && !message.parts.is_empty());
    (!read.is_empty()).then_some(read)
}

/// The part of a raw reply that holds messages.
fn reply(value: &Value) -> Value {
    let opened = salvage::unwrapped(value);
    // The responses API lists them under `output`.
    if let Some(items @ Value::Array(_)) = opened.get("output") {
        return items.clone();
    }
    // Gemini's content has the role.
    if let Some(content @ Value::Object(inner)) = opened.get("content")
        && inner.contains_key("parts")
    {
        return content.clone();
    }
    // LangChain nests generations by prompt.
    if let Some(Value::Array(batches)) = opened.get("generations") {
        let generations = match batches.first() {
            Some(Value::Array(generations)) => generations,
            _ => batches,
        };
        return Value::Array(generations.clone());
    }
    opened
}

/// One execution of a tool.
pub fn tool(reading: &mut Reading, input: Found<'_>, output: Found<'_>) {
    let sources = &mut reading.sources;
    if let Some((key, value)) = input {
        fill("tool_arguments", &mut reading.tool_arguments, sources, Some((key, calls::arguments(value))));
    }
    if let Some((key, value)) = output {
        let answered = calls::answered(value);
        fill("tool_result", &mut reading.tool_result, sources, Some((key, answered.result)));
        fill("tool_call_id", &mut reading.tool_call_id, sources, answered.call_id.map(|id| (key, id)));
        fill("error", &mut reading.error, sources, answered.error.map(|error| (key, error)));
    }
}

/// An agent or a step: words where they stand out, else data as it stands; whoever reads that prefers the words of the
/// model calls below.
pub fn step(reading: &mut Reading, input: Found<'_>, output: Found<'_>) {
    let sources = &mut reading.sources;
    if let Some((key, value)) = input {
        let text = words::question(value).or_else(|| raw(value));
        fill("input", &mut reading.input, sources, text.map(|text| (key, text)));
    }
    if let Some((key, value)) = output {
        let text = words::answer(value).or_else(|| raw(value));
        fill("output", &mut reading.output, sources, text.map(|text| (key, text)));
    }
}

/// Data in which no words stand out, unless it holds messages, is empty or only asks for tools.
fn raw(value: &Value) -> Option<String> {
    let text = attributes::text(value)?;
    if salvage::is_repr(&text) || messages::read(value).is_some() {
        return None;
    }
    match salvage::json(&text)? {
        Value::Array(items) if items.iter().all(is_call) => None,
        Value::Object(map) if map.is_empty() => None,
        _ => Some(text),
    }
}

fn is_call(item: &Value) -> bool {
    let has = |name: &str| item.get(name).is_some();
    (has("name") || has("toolName")) && (has("arguments") || has("args") || has("input"))
}
