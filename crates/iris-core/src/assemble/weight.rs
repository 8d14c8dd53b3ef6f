//! How much memory a row takes, near enough for a budget.

use serde_json::Value;

use crate::model::{Attributes, Message, Observation, Part, Reading, Row};

/// What a row takes besides its text: the structs, the shared resource's share, map nodes.
const ROW_BYTES: usize = 1536;
/// What one JSON value takes besides its text.
const VALUE_BYTES: usize = 48;
/// What a part of a message takes besides its text.
const PART_BYTES: usize = 160;

/// Bytes a row takes in memory: what it still has of what was sent, twice, because that stands written down beside it
/// until it is stored, and what was read from it.
pub fn row_bytes(row: &Row) -> usize {
    let sent = match &row.observation {
        Observation::Span(span) => {
            let events: usize = span.events.iter().map(|event| event.name.len() + map_bytes(&event.attributes)).sum();
            let links: usize = span.links.iter().map(|link| VALUE_BYTES + map_bytes(&link.attributes)).sum();
            span.name.len() + span.status_message.len() + map_bytes(&span.attributes) + events + links
        }
        Observation::Log(log) => log.event_name.len() + value_bytes(&log.body) + map_bytes(&log.attributes),
    };
    ROW_BYTES + sent.saturating_mul(2) + reading_bytes(&row.reading)
}

fn reading_bytes(reading: &Reading) -> usize {
    let texts = [&reading.input, &reading.output, &reading.error];
    let texts: usize = texts.into_iter().flatten().map(String::len).sum();
    let messages = [&reading.input_messages, &reading.output_messages];
    let messages: usize = messages.into_iter().flatten().flatten().map(message_bytes).sum();
    let values: usize = [&reading.tool_arguments, &reading.tool_result].into_iter().flatten().map(value_bytes).sum();
    let sources: usize = reading.sources.iter().map(|(field, from)| VALUE_BYTES + field.len() + from.len()).sum();
    texts + messages + values + sources
}

fn message_bytes(message: &Message) -> usize {
    let part = |part: &Part| match part {
        Part::Text { text } | Part::Reasoning { text } => text.len(),
        Part::ToolCall { arguments, .. } => value_bytes(arguments),
        Part::ToolResult { result, .. } => value_bytes(result),
        Part::Other { what } => what.len(),
    };
    VALUE_BYTES + message.parts.iter().map(|one| PART_BYTES + part(one)).sum::<usize>()
}

fn map_bytes(map: &Attributes) -> usize {
    map.iter().map(|(key, value)| key.len() + value_bytes(value)).sum()
}

/// Nesting is limited where requests are decoded.
fn value_bytes(value: &Value) -> usize {
    VALUE_BYTES
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(value_bytes).sum(),
            Value::Object(map) => map_bytes(map),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}
