//! The arguments and results of tools, out of the wrappers that libraries put around them.

use serde_json::{Map, Value};

use super::salvage;

/// How deep wrappers are opened.
const DEPTH_MAX: usize = 4;

/// What a tool was called with: an object where one can be found, else what was sent.
pub fn arguments(value: &Value) -> Value {
    let value = salvage::unwrapped(value);
    match &value {
        Value::Object(map) => call_of(map).unwrap_or(value),
        _ => value,
    }
}

/// The arguments in how a function call was recorded: `{"args": [], "kwargs": {...}}`, `{"input_str": "..."}`.
fn call_of(map: &Map<String, Value>) -> Option<Value> {
    if let Some(text @ Value::String(_)) = map.get("input_str") {
        return Some(salvage::unwrapped(text));
    }
    // A call of an MCP tool, as OpenLLMetry keeps it.
    if let (2, Some(Value::String(_)), Some(arguments)) = (map.len(), map.get("tool_name"), map.get("arguments")) {
        return Some(salvage::unwrapped(arguments));
    }
    if let Some(kwargs @ Value::Object(inner)) = map.get("kwargs") {
        let bare = map.keys().all(|key| matches!(key.as_str(), "args" | "kwargs" | "sanitize_inputs_outputs"));
        let args = map.get("args").and_then(Value::as_array).filter(|args| !args.is_empty());
        return match args {
            Some(args) if inner.is_empty() && bare => Some(match args.as_slice() {
                [single] => single.clone(),
                _ => Value::Array(args.clone()),
            }),
            _ if bare => Some(kwargs.clone()),
            _ => None,
        };
    }
    None
}

/// What a tool answered, and whether it says that it failed.
pub struct Answered {
    /// The answer without its wrappers.
    pub result: Value,
    /// The id of the call, when the answer carries it.
    pub call_id: Option<String>,
    /// The words of a failure that the answer itself declares.
    pub error: Option<String>,
}

/// Opens the wrappers around a tool's answer.
pub fn answered(value: &Value) -> Answered {
    let mut answered = Answered { result: salvage::unwrapped(value), call_id: None, error: None };
    let mut failed = false;
    for _ in 0..DEPTH_MAX {
        let Some((inner, id)) = answered.result.as_object().and_then(|map| opened(map, &mut failed)) else { break };
        answered.result = inner;
        answered.call_id = answered.call_id.or(id);
    }
    if failed {
        answered.error = Some(text(&answered.result));
    }
    answered
}

/// What is inside a wrapper, and the call's id.
fn opened(map: &Map<String, Value>, failed: &mut bool) -> Option<(Value, Option<String>)> {
    let text_at = |key: &str| map.get(key).and_then(Value::as_str);
    *failed |= map.get("is_error").or_else(|| map.get("isError")).and_then(Value::as_bool) == Some(true);
    // LangChain's tool message, as a constructor, as type and data, or bare.
    if map.contains_key("lc") {
        return map.get("kwargs").cloned().map(|inner| (inner, None));
    }
    if text_at("type") == Some("tool")
        && let Some(inner @ Value::Object(_)) = map.get("data")
    {
        return Some((inner.clone(), None));
    }
    let id = || ["tool_call_id", "toolUseId", "id"].iter().find_map(|key| text_at(key)).map(str::to_owned);
    if map.contains_key("tool_call_id")
        && let Some(content) = map.get("content")
    {
        *failed |= text_at("status") == Some("error");
        return Some((content.clone(), id()));
    }
    if let (Some(content), Some(status)) = (map.get("content"), text_at("status"))
        && matches!(status, "success" | "error")
    {
        *failed |= status == "error";
        return Some((content.clone(), id()));
    }
    // The result of an MCP tool.
    if let Some(Value::Array(blocks)) = map.get("content")
        && (["isError", "is_error", "structuredContent", "structured_content", "_meta"]
            .iter()
            .any(|key| map.contains_key(*key))
            || map.len() == 1 && !blocks.is_empty() && blocks.iter().all(|block| block.get("type").is_some()))
    {
        let words: Option<Vec<&str>> = blocks.iter().map(|block| block.get("text")?.as_str()).collect();
        let inner = words.map_or_else(|| Value::Array(blocks.clone()), |words| Value::String(words.join("\n")));
        return Some((inner, None));
    }
    // LlamaIndex' tool output.
    if let Some(raw) = map.get("raw_output").filter(|_| map.contains_key("tool_name")) {
        return Some((raw.clone(), None));
    }
    // Gemini's function response.
    if let Some(response) = map.get("response").filter(|_| map.contains_key("name") && map.contains_key("id")) {
        return Some((response.clone(), id()));
    }
    match map.get("output") {
        Some(inner @ Value::Object(held)) if map.len() == 1 && held.contains_key("content") => {
            Some((inner.clone(), None))
        }
        Some(inner @ Value::Object(held)) if map.len() == 1 && held.contains_key("lc") => Some((inner.clone(), None)),
        _ => None,
    }
}

/// A value as words.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The failure that a result announces in its own words, for libraries that mark none: `Error: ...`, `ValueError: ...`,
/// a traceback, `{"error": ...}`.
pub fn announced_error(result: &Value) -> Option<String> {
    match result {
        Value::String(words) => announces(words).then(|| words.clone()),
        Value::Object(map) => {
            let error = map.get("error").filter(|error| match error {
                Value::Null | Value::Bool(false) => false,
                Value::String(text) => !text.is_empty(),
                _ => true,
            });
            let flagged = map.get("is_error").or_else(|| map.get("isError")).and_then(Value::as_bool) == Some(true);
            error.map(text).or_else(|| flagged.then(|| result.to_string()))
        }
        _ => None,
    }
}

fn announces(words: &str) -> bool {
    let words = words.trim_start();
    let head = words.get(..5).unwrap_or_default();
    if head.eq_ignore_ascii_case("error") {
        return words.as_bytes().get(5).is_none_or(|next| matches!(next, b':' | b' ' | b'\n' | b'('));
    }
    if words.starts_with("Traceback (most recent call last)") {
        return true;
    }
    let Some((kind, _)) = words.split_once(':') else { return false };
    (kind.ends_with("Error") || kind.ends_with("Exception"))
        && kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
}
