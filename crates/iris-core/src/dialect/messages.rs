//! Message lists in every shape that libraries write: OpenTelemetry parts, OpenAI chat and responses, Anthropic blocks,
//! LangChain dumps, Gemini contents, Bedrock blocks, AI SDK parts, and OpenInference's wrapped records.

use serde_json::{Map, Value};

use super::{media, salvage};
use crate::model::{Message, Part};

/// The most messages read from one list; the first and the last of them matter most.
const MESSAGES_MAX: usize = 2048;
/// The most parts read from one message.
const PARTS_MAX: usize = 1024;
/// How many wrappers around a message are opened.
const WRAPPERS_MAX: usize = 6;
/// Text longer than this is not searched for embedded media.
const DATA_URL_HEAD: usize = 128;

/// The messages of a value, or nothing when it holds none. A text is read as JSON.
pub fn read(value: &Value) -> Option<Vec<Message>> {
    read_as(value, None)
}

/// Like [`read`], with the role of messages that do not say theirs.
pub fn read_as(value: &Value, role: Option<&str>) -> Option<Vec<Message>> {
    if value.is_string() {
        return list(&salvage::unwrap(value)?, role, 0);
    }
    list(value, role, 0)
}

fn list(value: &Value, role: Option<&str>, depth: usize) -> Option<Vec<Message>> {
    match value {
        Value::Array(items) => {
            // A batch of one conversation: [[...]].
            if let [Value::Array(_)] = items.as_slice() {
                return (depth < WRAPPERS_MAX).then(|| list(items.first()?, role, depth + 1)).flatten();
            }
            let skip = items.len().saturating_sub(MESSAGES_MAX);
            let messages: Vec<Message> =
                items.iter().skip(skip).filter_map(|item| one(&opened(item), role, 0)).collect();
            (!messages.is_empty()).then_some(messages)
        }
        Value::Object(map) => {
            for key in ["messages", "choices", "contents", "replies", "input_messages", "output_messages"] {
                if let Some(inner @ Value::Array(_)) = map.get(key)
                    && depth < WRAPPERS_MAX
                    && let Some(messages) = list(inner, role, depth + 1)
                {
                    return Some(messages);
                }
            }
            one(value, role, 0).map(|message| vec![message])
        }
        _ => None,
    }
}

/// A list element that is a JSON text, opened.
fn opened(item: &Value) -> std::borrow::Cow<'_, Value> {
    match item {
        Value::String(text) if text.starts_with('{') => match salvage::json(text) {
            Some(value) => std::borrow::Cow::Owned(value),
            None => std::borrow::Cow::Borrowed(item),
        },
        _ => std::borrow::Cow::Borrowed(item),
    }
}

/// One message, out of whatever it is wrapped in.
fn one(value: &Value, role: Option<&str>, depth: usize) -> Option<Message> {
    let map = value.as_object()?;
    if map.keys().any(|key| key.starts_with("message.")) {
        return (depth < WRAPPERS_MAX).then(|| one(&undotted(value, 0), role, depth + 1)).flatten();
    }
    if depth < WRAPPERS_MAX {
        if let Some(inner @ Value::Object(_)) = map.get("message") {
            return one(inner, map.get("role").and_then(Value::as_str).or(role), depth + 1);
        }
        if let Some(body) = map.get("kwargs").filter(|_| map.contains_key("lc")) {
            let class = map.get("id").and_then(Value::as_array).and_then(|path| path.last()).and_then(Value::as_str);
            return one(body, class.or(role), depth + 1);
        }
        if let (Some(kind), Some(body @ Value::Object(_))) = (text_at(map, "type"), map.get("data"))
            && normal_role(kind).is_some()
        {
            return one(body, Some(kind), depth + 1);
        }
    }
    if let Some(message) = response_item(map) {
        return Some(message);
    }
    let said = text_at(map, "role").or_else(|| text_at(map, "type").filter(|kind| normal_role(kind).is_some()));
    let speaks = ["content", "parts", "contents", "tool_calls", "toolCalls"].iter().any(|key| map.contains_key(*key));
    let role = match (said.or(role), speaks) {
        (Some(role), _) => normal_role(role)?,
        (None, true) if map.contains_key("parts") || map.contains_key("tool_calls") => "assistant",
        _ => return None,
    };
    let mut parts = Vec::new();
    content(map, role, &mut parts);
    tool_calls(map, &mut parts);
    if role == "assistant" && parts.iter().all(|part| matches!(part, Part::Reasoning { .. })) {
        // An answer that was sent and shows nothing is not an answer that was not kept.
        parts.extend(blank_words(map).map(|text| Part::Text { text: text.to_owned() }));
    }
    Some(Message { role: role.to_owned(), parts })
}

/// A message whose keys are paths, as OpenInference's specification writes it: `{"message.role": "user"}`.
fn undotted(value: &Value, depth: usize) -> Value {
    match value {
        Value::Object(map) if depth < WRAPPERS_MAX => {
            let mut tree = Map::new();
            for (key, value) in map {
                let mut at = &mut tree;
                let mut path = key.split('.').take(WRAPPERS_MAX).peekable();
                while let Some(name) = path.next() {
                    if path.peek().is_none() {
                        at.insert(name.to_owned(), undotted(value, depth + 1));
                        break;
                    }
                    let inner = at.entry(name).or_insert_with(|| Value::Object(Map::new()));
                    let Value::Object(inner) = inner else { break };
                    at = inner;
                }
            }
            Value::Object(tree)
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| undotted(item, depth)).collect()),
        other => other.clone(),
    }
}

/// The four roles, whatever a library calls them; none for what is no role.
pub fn normal_role(role: &str) -> Option<&'static str> {
    let role = role.rsplit('.').next().unwrap_or(role);
    let known = |names: &[&str]| names.iter().any(|name| role.eq_ignore_ascii_case(name));
    if known(&["user", "human", "HumanMessage", "HumanMessageChunk"]) {
        Some("user")
    } else if known(&["assistant", "ai", "model", "AIMessage", "AIMessageChunk", "bot", "agent", "tool-call"]) {
        Some("assistant")
    } else if known(&["system", "developer", "SystemMessage", "SystemMessageChunk"]) {
        Some("system")
    } else if known(&["tool", "function", "ToolMessage", "FunctionMessage", "ToolMessageChunk", "tool-response"]) {
        Some("tool")
    } else {
        None
    }
}

/// The items of OpenAI's responses API that are no messages there.
fn response_item(map: &Map<String, Value>) -> Option<Message> {
    let id = || text_at(map, "call_id").map(str::to_owned);
    let (role, part) = match text_at(map, "type")? {
        "function_call" | "custom_tool_call" => {
            let arguments = map.get("arguments").or_else(|| map.get("input")).map(salvage::unwrapped);
            let name = text_at(map, "name")?.to_owned();
            ("assistant", Part::ToolCall { id: id(), name, arguments: arguments.unwrap_or_default() })
        }
        "function_call_output" | "custom_tool_call_output" => {
            let result = map.get("output").cloned().unwrap_or_default();
            ("tool", Part::ToolResult { id: id(), name: None, result })
        }
        "reasoning" if map.contains_key("summary") => {
            let text = joined(map.get("summary")?);
            ("assistant", Part::Reasoning { text })
        }
        _ => return None,
    };
    Some(Message { role: role.to_owned(), parts: vec![part] })
}

/// What a message says, whichever key holds it.
fn content(map: &Map<String, Value>, role: &str, parts: &mut Vec<Part>) {
    let many = ["parts", "contents"].iter().find_map(|key| map.get(*key).filter(|value| value.is_array()));
    let plain = map.get("content");
    let held = match (many, plain) {
        // OpenInference repeats the one text in both forms.
        (Some(many), _) => many,
        (None, Some(plain)) => plain,
        (None, None) => return,
    };
    if role == "tool" {
        tool_content(map, held, parts);
        return;
    }
    match held {
        Value::String(text) => match text.starts_with("[{").then(|| salvage::json(text)).flatten() {
            Some(Value::Array(blocks)) if blocks.iter().all(is_block) => part_list(&blocks, parts),
            _ => push_text(text, parts),
        },
        Value::Array(blocks) => part_list(blocks, parts),
        Value::Object(block) => match block.get("parts") {
            // Gemini's content inside another's message.
            Some(Value::Array(blocks)) => part_list(blocks, parts),
            _ => part(block, parts),
        },
        _ => {}
    }
}

/// The words of a message that has words and nothing in them; none for one that stopped to call a tool.
fn blank_words(map: &Map<String, Value>) -> Option<&str> {
    let stopped = ["finish_reason", "stop_reason", "finishReason"].iter().find_map(|key| text_at(map, key));
    if stopped.is_some_and(|reason| reason.contains("tool") || reason.contains("function")) {
        return None;
    }
    let of_block = |block: &'_ Value| -> bool { text_of_block(block).is_some_and(is_unseen) };
    match ["parts", "contents", "content"].iter().find_map(|key| map.get(*key).filter(|held| !held.is_null()))? {
        Value::String(text) => Some(text.as_str()).filter(|text| is_unseen(text)),
        Value::Array(blocks) if blocks.iter().all(of_block) => text_of_block(blocks.first()?),
        block @ Value::Object(_) => text_of_block(block).filter(|text| is_unseen(text)),
        _ => None,
    }
}

/// The words of a block that is nothing but words.
fn text_of_block(block: &Value) -> Option<&str> {
    match unwrapped_block(block) {
        Value::String(text) => Some(text),
        Value::Object(map) => match text_at(map, "type").unwrap_or_default() {
            "" | "text" | "input_text" | "output_text" => words(map),
            _ => None,
        },
        _ => None,
    }
}

/// White space, or nothing.
fn is_unseen(text: &str) -> bool {
    text.trim().is_empty()
}

/// Whether a value is a content block and not data that happens to be a list.
fn is_block(value: &Value) -> bool {
    let Some(map) = value.as_object() else { return false };
    map.get("type").is_some_and(Value::is_string)
        || map.contains_key("toolUse")
        || map.contains_key("toolResult")
        || (map.len() == 1 && map.contains_key("text"))
}

/// The content of a message in the role of a tool: a result, unless its parts say so themselves.
fn tool_content(map: &Map<String, Value>, held: &Value, parts: &mut Vec<Part>) {
    if let Value::Array(blocks) = held {
        let before = parts.len();
        let mut read = Vec::new();
        part_list(blocks, &mut read);
        if read.iter().any(|part| matches!(part, Part::ToolResult { .. })) {
            parts.append(&mut read);
            return;
        }
        debug_assert_eq!(before, parts.len());
    }
    let id = ["tool_call_id", "toolCallId", "id"].iter().find_map(|key| text_at(map, key)).map(str::to_owned);
    let name = text_at(map, "name").or_else(|| text_at(map, "tool_name")).map(str::to_owned);
    let result = match held {
        Value::Array(blocks) if blocks.iter().all(|block| block.is_string() || is_block(unwrapped_block(block))) => {
            Value::String(joined(held))
        }
        Value::String(text) if salvage::is_missing(text) => return,
        other => other.clone(),
    };
    parts.push(Part::ToolResult { id, name, result });
}

/// OpenInference's wrapper around a block.
fn unwrapped_block(block: &Value) -> &Value {
    block.get("message_content").unwrap_or(block)
}

fn part_list(blocks: &[Value], parts: &mut Vec<Part>) {
    for block in blocks.iter().take(PARTS_MAX) {
        match unwrapped_block(block) {
            Value::String(text) => push_text(text, parts),
            Value::Object(map) => part(map, parts),
            _ => {}
        }
    }
}

/// One content block.
fn part(map: &Map<String, Value>, parts: &mut Vec<Part>) {
    let kind = text_at(map, "type").unwrap_or_default();
    if kind != "text"
        && let Some(part) = nested_call(map)
    {
        parts.push(part);
        return;
    }
    match kind {
        "text" | "input_text" | "output_text" | "" if words(map).is_some() => {
            push_text(words(map).unwrap_or_default(), parts);
        }
        "" | "text" | "input_text" | "output_text" => named(map, parts),
        "reasoning" | "thinking" | "redacted_thinking" => {
            let text = text_at(map, "thinking").or_else(|| words(map)).unwrap_or_default();
            if !salvage::is_missing(text) {
                parts.push(Part::Reasoning { text: text.to_owned() });
            }
        }
        "tool_call" | "tool_use" | "tool-call" | "function_call" | "server_tool_call" | "server_tool_use" => {
            parts.extend(call(map));
        }
        "tool_call_response"
        | "tool_result"
        | "tool-result"
        | "function_call_output"
        | "server_tool_call_response"
        | "tool-error" => parts.push(result(map)),
        "refusal" => push_text(text_at(map, "refusal").unwrap_or_default(), parts),
        _ => named(map, parts),
    }
}

/// Calls and results that stand under a key of their own: Bedrock and Gemini.
fn nested_call(map: &Map<String, Value>) -> Option<Part> {
    for key in ["toolUse", "function_call", "functionCall", "tool_call"] {
        if let Some(Value::Object(inner)) = map.get(key) {
            return call(inner);
        }
    }
    for key in ["toolResult", "function_response", "functionResponse", "tool_call_result"] {
        if let Some(Value::Object(inner)) = map.get(key) {
            return Some(result(inner));
        }
    }
    None
}

/// The calls a message asks for beside its content.
fn tool_calls(map: &Map<String, Value>, parts: &mut Vec<Part>) {
    let extra = map.get("additional_kwargs").and_then(|extra| extra.get("tool_calls"));
    let held = ["tool_calls", "toolCalls"].iter().find_map(|key| map.get(*key).filter(|value| !value.is_null()));
    let known = parts.iter().any(|part| matches!(part, Part::ToolCall { .. }));
    let Some(Value::Array(calls)) =
        held.filter(|held| held.as_array().is_some_and(|calls| !calls.is_empty())).or(extra)
    else {
        if let Some(Value::Object(single)) = map.get("function_call") {
            parts.extend(call(single));
        } else if let Some(name) = text_at(map, "function_call_name") {
            let arguments = map.get("function_call_arguments_json").map(salvage::unwrapped).unwrap_or_default();
            parts.push(Part::ToolCall { id: None, name: name.to_owned(), arguments });
        }
        return;
    };
    // A message of content blocks may list the same calls a second time.
    if !known {
        parts.extend(calls.iter().take(PARTS_MAX).filter_map(|item| call(item.as_object()?)));
    }
}

/// One call that a model asks for.
fn call(map: &Map<String, Value>) -> Option<Part> {
    if let Some(Value::Object(inner)) = map.get("tool_call") {
        return call(inner);
    }
    let function = map.get("function").and_then(Value::as_object).unwrap_or(map);
    let name = ["name", "toolName", "tool_name"].iter().find_map(|key| text_at(function, key))?;
    let arguments = ["arguments", "args", "input", "parameters"].iter().find_map(|key| function.get(*key));
    Some(Part::ToolCall {
        id: call_id(map),
        name: name.to_owned(),
        arguments: arguments.map(salvage::unwrapped).unwrap_or_default(),
    })
}

/// What a tool answered.
fn result(map: &Map<String, Value>) -> Part {
    let held = ["response", "result", "output", "content", "error"].iter().find_map(|key| map.get(*key));
    let is_true = |key: &str| map.get(key).and_then(Value::as_bool) == Some(true);
    let failed = is_true("is_error")
        || is_true("error")
        || text_at(map, "status").is_some_and(|status| status.eq_ignore_ascii_case("error"));
    let result = match held {
        Some(Value::Array(blocks)) if blocks.iter().all(is_block) => {
            Value::String(joined(&Value::Array(blocks.clone())))
        }
        // The AI SDK says what kind of value it is.
        Some(Value::Object(typed)) if typed.len() == 2 && typed.contains_key("type") && typed.contains_key("value") => {
            typed.get("value").cloned().unwrap_or_default()
        }
        Some(Value::String(text)) if salvage::is_missing(text) => Value::Null,
        Some(other) => other.clone(),
        None => Value::Null,
    };
    let result = match result {
        Value::String(text) if failed => serde_json::json!({ "error": text }),
        other => other,
    };
    let name = ["name", "toolName", "tool_name"].iter().find_map(|key| text_at(map, key)).map(str::to_owned);
    let origin = map.get("origin").and_then(Value::as_object).and_then(call_id);
    Part::ToolResult { id: call_id(map).or(origin), name, result }
}

fn call_id(map: &Map<String, Value>) -> Option<String> {
    let keys = ["tool_call_id", "toolCallId", "toolUseId", "tool_use_id", "call_id", "id"];
    keys.iter().find_map(|key| text_at(map, key)).filter(|id| !id.is_empty()).map(str::to_owned)
}

/// Media and everything else: named, never copied. Words under a name that is not known are words.
fn named(map: &Map<String, Value>, parts: &mut Vec<Part>) {
    let inner = [
        "source",
        "image_url",
        "input_audio",
        "file",
        "image",
        "audio",
        "inline_data",
        "inlineData",
        "file_data",
        "fileData",
        "blob",
        "document",
        "video",
    ];
    let inner = inner.iter().find_map(|key| map.get(*key));
    let holder = inner.and_then(Value::as_object).unwrap_or(map);
    // OpenInference's image in an image.
    let holder = holder.get("image").and_then(Value::as_object).unwrap_or(holder);
    let data = ["data", "content", "url", "uri", "bytes", "file_data", "file_uri", "fileUri", "image", "value"];
    let data = inner.and_then(Value::as_str).or_else(|| data.iter().find_map(|key| text_at(holder, key)));
    let kind = ["media_type", "mime_type", "mediaType", "mimeType", "modality", "format"];
    let kind = kind.iter().find_map(|key| text_at(holder, key)).or_else(|| text_at(map, "mime_type"));
    let kind = kind.or_else(|| data.and_then(data_url_type)).or_else(|| text_at(map, "type")).unwrap_or("content");
    if let Some(words) = data.filter(|data| is_words(data)) {
        push_text(words, parts);
        return;
    }
    let what = match data {
        Some(data) if data.starts_with("http") || data.starts_with("file:") || data.is_empty() => kind.to_owned(),
        Some(data) => media::placeholder(kind, data.split_once(";base64,").map_or(data, |(_, data)| data)),
        None => kind.to_owned(),
    };
    parts.push(Part::Other { what });
}

/// Whether data can be read as it stands: it is no address and no base64, or says that it is text.
fn is_words(data: &str) -> bool {
    let is_base64 =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=' | b'\r' | b'\n');
    let is_address = data.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme.len() <= 8
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && !data.contains(' ')
    });
    data.starts_with("data:text/") || (!is_address && !data.bytes().all(is_base64))
}

/// `image/png` of `data:image/png;base64,...`.
fn data_url_type(data: &str) -> Option<&str> {
    let kind = data.strip_prefix("data:")?;
    let end = kind.bytes().take(DATA_URL_HEAD).position(|byte| matches!(byte, b';' | b','))?;
    kind.get(..end).filter(|kind| !kind.is_empty())
}

fn push_text(text: &str, parts: &mut Vec<Part>) {
    if salvage::is_missing(text) || parts.len() >= PARTS_MAX {
        return;
    }
    parts.push(Part::Text { text: text.to_owned() });
}

/// The words of a block.
fn words(map: &Map<String, Value>) -> Option<&str> {
    // OpenAI's assistants put the words one level deeper, beside what they cite.
    let deeper = || map.get("text")?.get("value")?.as_str();
    text_at(map, "text").or_else(|| text_at(map, "content")).or_else(deeper)
}

/// All words of a value that is a text or a list of blocks.
fn joined(value: &Value) -> String {
    let mut parts = Vec::new();
    match value {
        Value::String(text) => return text.clone(),
        Value::Array(blocks) => part_list(blocks, &mut parts),
        other => return other.to_string(),
    }
    text_of(&parts).unwrap_or_default()
}

fn text_at<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    map.get(key).and_then(Value::as_str)
}

/// The words of some parts, one line each.
pub fn text_of(parts: &[Part]) -> Option<String> {
    let mut words: Option<String> = None;
    for part in parts {
        let Part::Text { text } = part else { continue };
        match &mut words {
            None => words = Some(text.clone()),
            Some(words) => {
                words.push('\n');
                words.push_str(text);
            }
        }
    }
    words
}

/// The last words of the user.
pub fn question(messages: &[Message]) -> Option<String> {
    messages.iter().rev().filter(|message| message.role == "user").find_map(|message| text_of(&message.parts))
}

/// The last words of the assistant: what it said after its last call, else nothing to see when that is how it ended, else
/// what a message without calls said, else whatever it said last.
pub fn answer(messages: &[Message]) -> Option<String> {
    let assistant = || messages.iter().rev().filter(|message| message.role == "assistant");
    let shown = |message: &Message| text_of(after_calls(&message.parts)).filter(|text| !is_unseen(text));
    let unseen = || text_of(after_calls(&assistant().next()?.parts)).filter(|text| is_unseen(text));
    assistant().find_map(shown).or_else(unseen).or_else(|| {
        let message =
            assistant().find(|message| text_of(&message.parts).is_some() || final_answer(&message.parts).is_some())?;
        final_answer(&message.parts).or_else(|| text_of(&message.parts))
    })
}

/// The parts that follow the last call.
fn after_calls(parts: &[Part]) -> &[Part] {
    let last = parts.iter().rposition(|part| matches!(part, Part::ToolCall { .. }));
    parts.get(last.map_or(0, |last| last + 1)..).unwrap_or_default()
}

/// The answer that smolagents gives by calling a tool.
fn final_answer(parts: &[Part]) -> Option<String> {
    parts.iter().rev().find_map(|part| match part {
        Part::ToolCall { name, arguments, .. } if name == "final_answer" => {
            match arguments.get("answer").unwrap_or(arguments) {
                Value::String(text) if !salvage::is_missing(text) => Some(text.clone()),
                _ => None,
            }
        }
        _ => None,
    })
}

/// Whether the last message of the assistant only asks for tools.
pub fn is_pending(messages: &[Message]) -> bool {
    messages.iter().rev().find(|message| message.role == "assistant").is_some_and(|message| {
        message.parts.iter().any(|part| matches!(part, Part::ToolCall { .. }))
            && text_of(after_calls(&message.parts)).is_none()
    })
}
