//! Coding agents that tell what they do in log records and write no spans: Claude Code, Codex, Gemini CLI.
//!
//! A record without a span id becomes a span of its own ([`step`]): its trace id follows from the service, the session
//! and the prompt, its own id from its content, so that a resend is the same span and records of one prompt meet in one
//! trace whatever order they come in. The record that begins the run is the parent of the others. A record that was
//! written inside a span only adds its words to that span.

mod claude_code;
mod codex;
mod gemini_cli;

use serde_json::Value;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::{attributes, fill, keys};
use crate::model::{Message, Part, RawLog, RawSpan, Reading, SpanId, SpanKind, StatusCode, Timestamp, TraceId};
use crate::otlp::content_hash_log;

pub use claude_code::ClaudeCode;
pub use codex::Codex;
pub use gemini_cli::GeminiCli;

/// What a record is besides what it says.
struct Step<'a> {
    /// The event's full name, such as `codex.tool_result`; the span gets it.
    event: &'a str,
    /// The session.
    session: &'a str,
    /// The prompt within the session; empty where the agent numbers none.
    prompt: &'a str,
    /// It begins the run that the other records of the same trace belong to.
    begins: bool,
    /// The words of its failure.
    error: Option<String>,
}

/// The span that a record would have been; none when no session says where it belongs.
fn step(log: &RawLog, step: Step<'_>) -> Option<RawSpan> {
    if step.session.is_empty() {
        return None;
    }
    let trace_id = log.trace_id.or_else(|| trace_id(log, &step))?;
    let first = span_id(trace_id, b"run")?;
    let own = if step.begins { first } else { span_id(trace_id, &content_hash_log(log).to_le_bytes())? };
    let end = match log.time.as_unix_nanos() {
        0 => text(log, "event.timestamp").and_then(|time| Timestamp::parse(&time)).unwrap_or_default(),
        _ => log.time,
    };
    let took = number(log, &["duration_ms", "duration"]).unwrap_or(0).saturating_mul(1_000_000);
    let start = Timestamp::from_unix_nanos(end.as_unix_nanos().saturating_sub(took));
    Some(RawSpan {
        trace_id,
        span_id: own,
        parent_span_id: (own != first).then_some(first),
        flags: 0,
        trace_state: String::new(),
        name: step.event.to_owned(),
        kind: SpanKind::Internal,
        start,
        end,
        status: if step.error.is_some() { StatusCode::Error } else { StatusCode::Unset },
        status_message: step.error.unwrap_or_default(),
        attributes: log.attributes.clone(),
        events: Vec::new(),
        links: Vec::new(),
        dropped: 0,
        resource: log.resource.clone(),
        scope: log.scope.clone(),
    })
}

/// The same for every record of one prompt of one session of one service.
fn trace_id(log: &RawLog, step: &Step<'_>) -> Option<TraceId> {
    let service = log.resource.attributes.get("service.name").and_then(Value::as_str).unwrap_or_default();
    let family = step.event.split_once('.').map_or(step.event, |(family, _)| family);
    let mut bytes = Vec::new();
    for part in [family, service, step.session, step.prompt] {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    TraceId::from_bytes(&xxh3_128(&bytes).max(1).to_be_bytes())
}

fn span_id(trace_id: TraceId, what: &[u8]) -> Option<SpanId> {
    SpanId::from_bytes(&xxh3_64(&[trace_id.as_bytes().as_slice(), what].concat()).max(1).to_be_bytes())
}

/// The event's full name: agents write it as the event's name, as the attribute `event.name`, with or without their own
/// name in front, or only as the body.
fn event<'a>(log: &'a RawLog, family: &str, events: &'static [&'static str]) -> Option<&'static str> {
    let named = |name: &'a str| {
        events.iter().copied().find(|event| {
            *event == name || event.strip_prefix(family).and_then(|rest| rest.strip_prefix('.')) == Some(name)
        })
    };
    let from_body = || log.body.as_str().filter(|body| body.starts_with(family));
    let written =
        [from_body(), log.attributes.get("event.name").and_then(Value::as_str), Some(log.event_name.as_str())];
    written.into_iter().flatten().find_map(named)
}

/// The text of the first of some attributes that has one.
fn first(attributes: &crate::model::Attributes, names: &[&'static str]) -> Option<(&'static str, String)> {
    names.iter().find_map(|name| Some((*name, attributes::text(attributes.get(*name)?)?)))
}

fn text(log: &RawLog, name: &'static str) -> Option<String> {
    first(&log.attributes, &[name]).map(|(_, text)| text)
}

fn number(log: &RawLog, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| attributes::count(log.attributes.get(*name)?))
}

/// Whether an attribute says that something did not succeed, as a bool or as a word.
fn is_false(log: &RawLog, name: &str) -> bool {
    match log.attributes.get(name) {
        Some(Value::Bool(value)) => !value,
        Some(Value::String(word)) => word.eq_ignore_ascii_case("false"),
        _ => false,
    }
}

/// What the assistant said, as the only message.
fn said(reading: &mut Reading, found: Option<(&'static str, String)>) {
    let message = |text: String| vec![Message { role: "assistant".to_owned(), parts: vec![Part::Text { text }] }];
    let found = found.map(|(key, text)| (key, message(text)));
    fill("output_messages", &mut reading.output_messages, &mut reading.sources, found);
}

/// The counts of one call under an agent's own names: input without the cache, or with it.
struct Counts<'a> {
    input: &'a [&'static str],
    output: &'a [&'static str],
    cache_read: &'a [&'static str],
    cache_write: &'a [&'static str],
    reasoning: &'a [&'static str],
    /// The input leaves out what came from the cache and went into it.
    beside_cache: bool,
    /// The output leaves out what was spent on reasoning.
    beside_reasoning: bool,
}

fn usage(span: &RawSpan, counts: &Counts<'_>, reading: &mut Reading) {
    let of = |names: &[&'static str]| {
        names.iter().find_map(|name| Some((*name, attributes::count(span.attributes.get(*name)?)?)))
    };
    let (read, write, thought) = (of(counts.cache_read), of(counts.cache_write), of(counts.reasoning));
    let number = |found: Option<(&str, u64)>| found.map_or(0, |(_, count)| count);
    let beside = if counts.beside_cache { number(read).saturating_add(number(write)) } else { 0 };
    let unsaid = if counts.beside_reasoning { number(thought) } else { 0 };
    let input = of(counts.input).map(|(key, count)| (key, count.saturating_add(beside)));
    let output = of(counts.output).map(|(key, count)| (key, count.saturating_add(unsaid)));
    let (usage, sources) = (&mut reading.usage, &mut reading.sources);
    fill("usage.input", &mut usage.input, sources, input);
    fill("usage.output", &mut usage.output, sources, output);
    fill("usage.cache_read", &mut usage.cache_read, sources, read);
    fill("usage.cache_write", &mut usage.cache_write, sources, write);
    fill("usage.reasoning", &mut usage.reasoning, sources, thought);
}

/// What a record adds to the span in which it was written: words only, no part to play.
fn words(log: &RawLog, asked: Option<&'static str>, answered: Option<&'static str>) -> Option<Reading> {
    let mut reading = Reading::default();
    let input = asked.and_then(|key| first(&log.attributes, &[key]));
    fill("input", &mut reading.input, &mut reading.sources, input);
    said(&mut reading, answered.and_then(|key| first(&log.attributes, &[key])));
    (reading.input.is_some() || reading.output_messages.is_some()).then_some(reading)
}

/// The session that any record names.
fn session(log: &RawLog) -> String {
    first(&log.attributes, &[keys::general::SESSION, "conversation.id", "conversation_id"])
        .map(|(_, id)| id)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
