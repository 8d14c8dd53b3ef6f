//! The question and the answer in what a library records as the input and output of a step: plain words, a state with
//! messages, a call's arguments, a model's raw reply.

use serde_json::{Map, Value};

use super::{messages, salvage};

/// How deep wrappers are opened.
const DEPTH_MAX: usize = 6;
/// The most documents of one search that are read.
const DOCUMENTS_MAX: usize = 64;
/// Keys under which libraries put the words of a document.
const DOCUMENT_KEYS: [&str; 5] = ["content", "text", "page_content", "pageContent", "snippet"];
/// Keys under which libraries put what was asked, most telling first.
const QUESTION_KEYS: [&str; 18] = [
    "new_message",
    "input",
    "question",
    "query",
    "prompt",
    "task",
    "user_input",
    "user_prompt",
    "user_message",
    "user_msg",
    "message",
    "inputs",
    "kwargs",
    "query_str",
    "request",
    "content",
    "text",
    "value",
];
/// Keys under which libraries put what was answered, most telling first.
const ANSWER_KEYS: [&str; 20] = [
    "raw",
    "final_output",
    "final_answer",
    "answer",
    "output",
    "outputs",
    "response",
    "result",
    "generations",
    "update",
    "output_text",
    "completion",
    "reply",
    "message",
    "content",
    "text",
    "raw_output",
    "replies",
    "last_message",
    "value",
];

/// What a step was asked, in words; none when the input holds no words that stand out.
pub fn question(input: &Value) -> Option<String> {
    match input {
        Value::String(text) => match salvage::json(text) {
            Some(Value::String(inner)) => plain(&inner),
            Some(value) => question_in(&value, 0),
            None => plain(text),
        },
        other => question_in(other, 0),
    }
}

/// What a step answered, in words; none when the output holds no words that stand out.
pub fn answer(output: &Value) -> Option<String> {
    match output {
        Value::String(text) => match salvage::json(text) {
            Some(Value::String(inner)) => plain(&inner),
            Some(value) => answer_in(&value, 0),
            None => plain(text),
        },
        other => answer_in(other, 0),
    }
}

/// The words of what a search found, one document a line: texts, or objects that hold one.
pub fn documents(value: &Value) -> Option<String> {
    let found = salvage::unwrapped(value);
    let items = found.as_array().map_or(std::slice::from_ref(&found), Vec::as_slice);
    let words: Vec<&str> = items.iter().take(DOCUMENTS_MAX).filter_map(document).collect();
    (!words.is_empty()).then(|| words.join("\n"))
}

fn document(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text.as_str()).filter(|text| !salvage::is_missing(text)),
        Value::Object(map) => {
            let inner = map.get("document").or_else(|| map.get("node")).unwrap_or(value);
            DOCUMENT_KEYS.iter().find_map(|key| inner.get(*key)?.as_str()).filter(|text| !salvage::is_missing(text))
        }
        _ => None,
    }
}

/// Words as they stand: no placeholder, no printed object.
fn plain(text: &str) -> Option<String> {
    (!salvage::is_missing(text) && !salvage::is_repr(text)).then(|| text.to_owned())
}

fn question_in(value: &Value, depth: usize) -> Option<String> {
    if depth > DEPTH_MAX {
        return None;
    }
    match value {
        Value::String(text) if depth > 0 && text.starts_with(['{', '[']) => question(value),
        Value::String(text) => plain(text),
        Value::Array(items) => match messages::read(value) {
            Some(read) => messages::question(&read),
            None => only(items).and_then(|item| question_in(item, depth + 1)),
        },
        Value::Object(map) => messages::read_as(value, None)
            .and_then(|read| messages::question(&read))
            .or_else(|| content_parts(map))
            .or_else(|| QUESTION_KEYS.iter().find_map(|key| question_in(map.get(*key)?, depth + 1)))
            .or_else(|| map.get("args").and_then(|args| question_in(args, depth + 1)))
            .or_else(|| sole(map).and_then(|value| question_in(value, depth + 1))),
        _ => None,
    }
}

fn answer_in(value: &Value, depth: usize) -> Option<String> {
    if depth > DEPTH_MAX {
        return None;
    }
    match value {
        Value::String(text) if depth > 0 && text.starts_with(['{', '[']) => answer(value),
        Value::String(text) => plain(text),
        Value::Array(items) => match messages::read(value) {
            Some(read) => messages::answer(&read),
            None => items.iter().rev().filter(|_| !asks_for_tools(items)).find_map(|item| answer_in(item, depth + 1)),
        },
        Value::Object(map) => match messages::read_as(value, None) {
            Some(read) => messages::answer(&read),
            None => content_parts(map)
                .or_else(|| ANSWER_KEYS.iter().find_map(|key| answer_in(map.get(*key)?, depth + 1)))
                .or_else(|| sole(map).and_then(|value| answer_in(value, depth + 1))),
        },
        _ => None,
    }
}

/// The words of content blocks that stand without a role: `{"parts": [{"text": ...}]}`.
fn content_parts(map: &Map<String, Value>) -> Option<String> {
    let held = map.get("parts").or_else(|| map.get("content").filter(|content| content.is_array()))?;
    let bare = Value::Object(Map::from_iter([("parts".to_owned(), held.clone())]));
    messages::answer(&messages::read_as(&bare, Some("assistant"))?)
}

/// The one element of a list, or its one text.
fn only(items: &[Value]) -> Option<&Value> {
    if let [item] = items {
        return Some(item);
    }
    let mut texts = items.iter().filter(|item| item.as_str().is_some_and(|text| plain(text).is_some()));
    let text = texts.next()?;
    texts.next().is_none().then_some(text)
}

/// The one text of an object with one member, such as a signature's only field.
fn sole(map: &Map<String, Value>) -> Option<&Value> {
    let mut values = map.values().filter(|value| !value.is_null());
    let value = values.next()?;
    (values.next().is_none() && (value.is_string() || value.is_object() || value.is_array())).then_some(value)
}

/// Whether a list is the calls that a model asks for.
fn asks_for_tools(items: &[Value]) -> bool {
    let is_call = |item: &Value| {
        let has = |key: &str| item.get(key).is_some();
        (has("name") || has("toolName") || has("function"))
            && (has("arguments") || has("args") || has("input") || has("function"))
    };
    !items.is_empty() && items.iter().all(is_call)
}
