//! How much memory a row takes, near enough for a budget.

use serde_json::Value;

use crate::model::{Attributes, Observation, Row};

/// What a row takes besides its text: the structs, the shared resource's share, map nodes.
const ROW_BYTES: usize = 1024;
/// What one JSON value takes besides its text.
const VALUE_BYTES: usize = 48;

/// Bytes a row takes in memory, its reading included: dialects mostly copy text out of the attributes, so it
/// counts as much as they do again.
pub fn row_bytes(row: &Row) -> usize {
    let text = match &row.observation {
        Observation::Span(span) => {
            let events: usize = span.events.iter().map(|event| event.name.len() + map_bytes(&event.attributes)).sum();
            let links: usize = span.links.iter().map(|link| VALUE_BYTES + map_bytes(&link.attributes)).sum();
            span.name.len() + span.status_message.len() + map_bytes(&span.attributes) + events + links
        }
        Observation::Log(log) => log.event_name.len() + value_bytes(&log.body) + map_bytes(&log.attributes),
    };
    ROW_BYTES + text.saturating_mul(2)
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
