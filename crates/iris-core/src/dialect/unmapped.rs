//! What a span carries and nobody could read: without it a new spelling of a key looks like content that was not sent.

use serde_json::Value;

use super::{attributes, salvage};
use crate::model::{RawSpan, Reading, Role};

/// The most keys named for one span.
const KEYS_MAX: usize = 16;
/// The longest key named, in bytes; a longer one is no library's.
const KEY_BYTES_MAX: usize = 128;
/// Words in the keys of what was asked.
const ASKED: &[&str] = &["input", "prompt", "question", "query", "request", "arguments", "args", "parameters"];
/// Words in the keys of what was answered.
const ANSWERED: &[&str] = &["output", "completion", "response", "result", "answer", "reply", "content", "choices"];
/// Words in the keys of either.
const EITHER: &[&str] = &["message", "messages", "transcript", "conversation"];
/// Last words of keys whose values are about content and are none.
const ABOUT: &[&str] = &[
    "id",
    "ids",
    "name",
    "names",
    "type",
    "types",
    "mime_type",
    "model",
    "format",
    "length",
    "size",
    "count",
    "tokens",
    "index",
    "reason",
    "reasons",
    "finish_reason",
    "finish_reasons",
    "finishReason",
    "status",
    "status_code",
    "code",
    "url",
    "timestamp",
    "time",
    "version",
    "tools",
    "schema",
    "template",
    "hash",
    "path",
    "api",
    "tier",
    "service_tier",
    "fingerprint",
    "system_fingerprint",
    "encoding",
    "encoding_formats",
    "modalities",
    "definitions",
    "description",
    "role",
    "headers",
    "parameters_schema",
    "json_schema",
    "keys",
    "metadata",
    "settings",
    "method",
    "duration",
    "providerMetadata",
];
/// Keys of the network and of requests that are no model's.
const OTHERS: &[&str] = &[
    "http.",
    "url.",
    "server.",
    "client.",
    "network.",
    "net.",
    "rpc.",
    "db.",
    "messaging.",
    "code.",
    "thread.",
    "otel.",
];

/// The attributes that seem to hold what the reading lacks, sorted; none when it lacks nothing or nothing seems to.
pub fn keys(reading: &Reading, span: &RawSpan) -> Vec<String> {
    let (lacks_question, lacks_answer) = match reading.role {
        Some(Role::Llm) => (
            reading.input.is_none() && reading.input_messages.is_none(),
            reading.output.is_none() && reading.output_messages.is_none() && reading.error.is_none(),
        ),
        // An agent's content usually stands on the calls below it; only what it was given is looked at.
        Some(Role::Agent) => {
            (false, reading.output.is_none() && reading.output_messages.is_none() && reading.error.is_none())
        }
        Some(Role::Tool) => {
            (reading.tool_arguments.is_none(), reading.tool_result.is_none() && reading.error.is_none())
        }
        _ => return Vec::new(),
    };
    if !lacks_question && !lacks_answer {
        return Vec::new();
    }
    let mut found: Vec<String> = Vec::new();
    for (key, value) in &span.attributes {
        if found.len() >= KEYS_MAX {
            break;
        }
        let seems = key.len() <= KEY_BYTES_MAX
            && (lacks_question && speaks_of(key, ASKED)
                || lacks_answer && speaks_of(key, ANSWERED)
                || speaks_of(key, EITHER))
            && holds_words(value)
            && !OTHERS.iter().any(|prefix| key.starts_with(prefix))
            && !reading.sources.values().any(|source| source == key);
        if seems {
            found.push(key.clone());
        }
    }
    found.sort_unstable();
    found
}

/// Whether a key has one of the words in it and is not about something else in the end.
fn speaks_of(key: &str, words: &[&str]) -> bool {
    let mut parts = key.split(['.', '_', '-', '/', ':']).filter(|part| !part.is_empty());
    let is_about = key
        .rsplit('.')
        .next()
        .is_some_and(|last| ABOUT.contains(&last) || last.rsplit('_').next().is_some_and(|end| ABOUT.contains(&end)));
    !is_about && parts.any(|part| words.contains(&part) || words.iter().any(|word| camel(part, word)))
}

/// Whether a word stands at the end of a name like `toolResult` or at the start of one like `outputText`.
fn camel(part: &str, word: &str) -> bool {
    let Some(rest) = part.strip_prefix(word) else {
        return part.len() > word.len()
            && part.is_char_boundary(part.len() - word.len())
            && part.split_at(part.len() - word.len()).1.eq_ignore_ascii_case(word)
            && part.as_bytes().get(part.len() - word.len()).is_some_and(u8::is_ascii_uppercase);
    };
    rest.starts_with(|first: char| first.is_ascii_uppercase())
}

/// Whether a value may hold words: a text of more than one, or data.
fn holds_words(value: &Value) -> bool {
    match value {
        Value::String(text) => !salvage::is_missing(text) && !matches!(text.trim(), "{}" | "[]" | "null"),
        Value::Array(_) | Value::Object(_) => attributes::text(value).is_some(),
        _ => false,
    }
}
