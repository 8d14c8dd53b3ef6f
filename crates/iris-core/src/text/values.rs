//! What an answer that is one JSON value says, without the JSON around it.

use std::fmt::Write as _;

use serde_json::Value;

use super::is_blank;

/// How large a text may be to be read as JSON.
const JSON_BYTES_MAX: usize = 512_000;

/// Every scalar of a text that is one JSON object or array, decoded, in order, a blank line between two; nothing when
/// the text is anything else or holds no scalar.
pub fn spoken(text: &str) -> Option<String> {
    let text = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\u{FEFF}');
    if text.len() > JSON_BYTES_MAX
        || !(text.starts_with('{') && text.ends_with('}') || text.starts_with('[') && text.ends_with(']'))
    {
        return None;
    }
    let value: Value = serde_json::from_str(text).ok()?;
    let mut said = String::new();
    collect(&value, &mut said);
    (!said.is_empty()).then_some(said)
}

/// The depth is bounded by the parser.
fn collect(value: &Value, said: &mut String) {
    let scalar: &dyn std::fmt::Display = match value {
        Value::Null => return,
        Value::Array(items) => return items.iter().for_each(|item| collect(item, said)),
        Value::Object(fields) => return fields.values().for_each(|field| collect(field, said)),
        Value::String(text) if is_blank(text) => return,
        Value::String(text) => text,
        Value::Bool(truth) => truth,
        Value::Number(number) => number,
    };
    let gap = if said.is_empty() { "" } else { "\n\n" };
    let _ = write!(said, "{gap}{scalar}");
}
