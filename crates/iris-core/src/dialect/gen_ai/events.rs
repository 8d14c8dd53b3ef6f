//! Content in span events and log records: one per message until 1.36, one for everything about a call since.

use serde_json::{Map, Value};

use super::super::keys::{gen_ai as key, general};
use super::super::{calls, fill, merge, messages, salvage};
use crate::model::{Message, Part, RawLog, RawSpan, Reading, Role};

/// The source noted for messages that stood in events.
pub const SOURCE: &str = "event";

const SYSTEM: &str = "gen_ai.system.message";
const USER: &str = "gen_ai.user.message";
const ASSISTANT: &str = "gen_ai.assistant.message";
const TOOL: &str = "gen_ai.tool.message";
const CHOICE: &str = "gen_ai.choice";
/// Until 1.27: the whole prompt in one event, and the whole completion.
const CONTENT_PROMPT: &str = "gen_ai.content.prompt";
const CONTENT_COMPLETION: &str = "gen_ai.content.completion";
/// The body of a message event as one JSON text.
const EVENT_CONTENT: &str = "gen_ai.event.content";
/// An exception in a model call, as a log record.
const EXCEPTION: &str = "gen_ai.client.operation.exception";

/// Log records that say something about the span in which they were written.
/// Source: <https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-events/>.
pub const LOG_EVENTS: &[&str] = &[key::DETAILS_EVENT, SYSTEM, USER, ASSISTANT, TOOL, CHOICE, EXCEPTION];

/// Adds what the events of a span say to what its attributes said.
pub fn read_span_events(span: &RawSpan, reading: &mut Reading) {
    let mut asked = Vec::new();
    let mut answered = Vec::new();
    for event in span.events.iter().filter(|event| event.name.starts_with(key::PREFIX)) {
        let attributes = &event.attributes;
        match event.name.as_str() {
            key::DETAILS_EVENT => {
                let mut details = super::read(attributes, None);
                details.role = None;
                tool_details(attributes, reading);
                merge(reading, details);
            }
            CONTENT_PROMPT => asked.extend(attributes.get(key::PROMPT).and_then(messages::read).unwrap_or_default()),
            CONTENT_COMPLETION => {
                answered.extend(attributes.get(key::COMPLETION).and_then(messages::read).unwrap_or_default());
            }
            TOOL if reading.role == Some(Role::Tool) => {
                let arguments = attributes.get("content").map(|content| (TOOL, calls::arguments(content)));
                fill("tool_arguments", &mut reading.tool_arguments, &mut reading.sources, arguments);
            }
            CHOICE if reading.role == Some(Role::Tool) => tool_choice(attributes, reading),
            name => match message(name, attributes) {
                Some((true, message)) => answered.push(message),
                Some((false, message)) => asked.push(message),
                None => {}
            },
        }
    }
    if reading.role == Some(Role::Agent) && answered.is_empty() {
        // On an agent's span the assistant's words at the end are its answer.
        let is_answer = |message: &Message| message.role == "assistant";
        answered.extend(asked.pop_if(|last: &mut Message| is_answer(last)));
    }
    let found = (!asked.is_empty()).then_some((SOURCE, asked));
    fill("input_messages", &mut reading.input_messages, &mut reading.sources, found);
    let found = (!answered.is_empty()).then_some((SOURCE, answered));
    fill("output_messages", &mut reading.output_messages, &mut reading.sources, found);
}

/// A details event on a tool's span carries the call.
fn tool_details(attributes: &Map<String, Value>, reading: &mut Reading) {
    if reading.role != Some(Role::Tool) {
        return;
    }
    let arguments = attributes.get(key::TOOL_ARGUMENTS).map(|value| (key::TOOL_ARGUMENTS, calls::arguments(value)));
    fill("tool_arguments", &mut reading.tool_arguments, &mut reading.sources, arguments);
    if let Some(value) = attributes.get(key::TOOL_RESULT) {
        result(value, key::TOOL_RESULT, reading);
    }
    // Strands puts the call and its answer into messages.
    for (name, value) in
        attributes.iter().filter(|(name, _)| *name == key::INPUT_MESSAGES || *name == key::OUTPUT_MESSAGES)
    {
        for part in messages::read(value).into_iter().flatten().flat_map(|message| message.parts) {
            match part {
                Part::ToolCall { arguments, .. } => {
                    let found = (name.as_str(), calls::arguments(&arguments));
                    fill("tool_arguments", &mut reading.tool_arguments, &mut reading.sources, Some(found));
                }
                Part::ToolResult { result: answer, .. } => result(&answer, name, reading),
                _ => {}
            }
        }
    }
}

/// A choice on a tool's span is the tool's answer.
fn tool_choice(attributes: &Map<String, Value>, reading: &mut Reading) {
    if let Some(value) = attributes.get("message") {
        let value = salvage::unwrapped(value);
        let words = value.as_array().is_some_and(|blocks| blocks.iter().all(|block| block.get("text").is_some()));
        let bare = serde_json::json!({ "role": "assistant", "parts": value });
        let words = words.then(|| messages::read(&bare)).flatten().and_then(|read| messages::answer(&read));
        match words {
            Some(words) => result(&Value::String(words), CHOICE, reading),
            None => result(&value, CHOICE, reading),
        }
    }
}

fn result(value: &Value, source: &str, reading: &mut Reading) {
    let answered = calls::answered(value);
    fill("tool_result", &mut reading.tool_result, &mut reading.sources, Some((source, answered.result)));
    fill("error", &mut reading.error, &mut reading.sources, answered.error.map(|error| (source, error)));
}

/// What a log record says.
pub fn read_log(log: &RawLog) -> Option<Reading> {
    let body = match &log.body {
        Value::String(text) => salvage::json(text).unwrap_or_else(|| log.body.clone()),
        other => other.clone(),
    };
    match log.event_name.as_str() {
        key::DETAILS_EVENT => {
            let mut reading = super::read(&log.attributes, None);
            if let Value::Object(map) = &body {
                merge(&mut reading, super::read(map, None));
            }
            Some(reading)
        }
        EXCEPTION => {
            let mut reading = Reading::default();
            let error = [general::EXCEPTION_MESSAGE, general::EXCEPTION_TYPE]
                .iter()
                .find_map(|key| Some((*key, super::attributes::text(log.attributes.get(*key)?)?)));
            fill("error", &mut reading.error, &mut reading.sources, error);
            reading.error.is_some().then_some(reading)
        }
        name => {
            let wrapped;
            let map = match &body {
                Value::Object(map) => map,
                Value::String(_) => {
                    wrapped = Map::from_iter([("content".to_owned(), body.clone())]);
                    &wrapped
                }
                _ => &log.attributes,
            };
            let (is_answer, message) = message(name, map)?;
            let mut reading = Reading::default();
            let into = if is_answer { &mut reading.output_messages } else { &mut reading.input_messages };
            *into = Some(vec![message]);
            let field = if is_answer { "output_messages" } else { "input_messages" };
            reading.sources.insert(field.into(), name.to_owned().into());
            Some(reading)
        }
    }
}

/// The message in an event, and whether it is the model's answer; none when content is off.
fn message(event: &str, body: &Map<String, Value>) -> Option<(bool, Message)> {
    // Azure's SDKs and .NET keep the body as one JSON text.
    let whole = body.get(EVENT_CONTENT).map(salvage::unwrapped);
    let body = match &whole {
        Some(Value::Object(inner)) => inner,
        _ => body,
    };
    let role = match event {
        SYSTEM => "system",
        USER => "user",
        ASSISTANT | CHOICE => "assistant",
        TOOL => "tool",
        _ => return None,
    };
    // A span event can hold the message as a text only.
    let whole = body.get("message").filter(|_| event == CHOICE).map(salvage::unwrapped);
    let whole = whole.filter(|whole| ["content", "tool_calls", "role"].iter().any(|key| whole.get(*key).is_some()));
    let message = match (event, whole.as_ref().or_else(|| body.get("message"))) {
        (CHOICE, Some(Value::Object(inner))) => read_one(inner, role),
        (CHOICE, Some(content)) => {
            let mut inner = Map::from_iter([("content".to_owned(), content.clone())]);
            if let Some(calls) = body.get("tool_calls").or_else(|| body.get("tool.calls")) {
                inner.insert("tool_calls".to_owned(), salvage::unwrapped(calls));
            }
            read_one(&inner, role)
        }
        _ => read_one(body, role),
    }?;
    (!message.parts.is_empty()).then_some((event == CHOICE, message))
}

fn read_one(body: &Map<String, Value>, role: &str) -> Option<Message> {
    let mut body = body.clone();
    body.entry("content").or_insert(Value::Null);
    // The event's name says who speaks; a role that says otherwise is the provider's own word for it.
    body.insert("role".to_owned(), Value::String(role.to_owned()));
    if let Some(text) = body.get("content").and_then(Value::as_str)
        && let Some(opened @ Value::Array(_)) = salvage::json(text)
    {
        body.insert("content".to_owned(), opened);
    }
    messages::read(&Value::Object(body))?.into_iter().next()
}
