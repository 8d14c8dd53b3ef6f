//! One value of a trace, in pieces that a reply can hold: `get_traces` with `part`.

use iris_core::contract::{Error, Part, PartEntry};
use iris_core::model::{Row, TraceId};
use serde_json::Value;

use super::bounds::Measure;
use super::trace_detail::{SPANS_BYTES_MAX, SPANS_MAX, span_value, trace_value};
use super::{App, Caller};
use crate::store::Bounds;

/// Bytes of a piece where no model reads it.
const PIECE_BYTES_MAX: usize = 1024 * 1024;

/// Characters of a name that stands beside an entry.
const NAME_CHARS_MAX: usize = 120;

/// What an entry takes beside its pointer and its name.
const ENTRY_BYTES: usize = 96;

/// The member of a trace that its spans stand under.
const SPANS: &str = "spans";

impl App {
    /// The value of a trace at `pointer`, from `offset` on.
    ///
    /// # Errors
    /// `IRIS_UNKNOWN_TRACE`, `IRIS_INVALID_ARGUMENT` where nothing stands, `IRIS_STORAGE_ERROR`.
    pub(super) async fn part(&self, id: TraceId, pointer: String, offset: u64, caller: &Caller) -> Result<Part, Error> {
        let trace = self.find(id, caller).await?;
        let mut root = trace_value(&trace).map_err(|error| self.unforeseen(&error))?;
        if pointer.is_empty() || first(&pointer) == SPANS {
            let bounds = Bounds { items: SPANS_MAX, bytes: SPANS_BYTES_MAX };
            let rows = self.backend()?.store.spans(&caller.tenant, id, bounds).await;
            let rows = rows.map_err(|error| self.failed(&error))?;
            root[SPANS] = rows.items.iter().filter_map(Row::span).map(span_value).collect();
        }
        // Half of a reply: the trace's own row and the marks take the rest.
        let bytes_max = caller.reply_bytes(PIECE_BYTES_MAX) / 2;
        let read = tokio::task::spawn_blocking(move || piece(&root, &pointer, offset, bytes_max));
        read.await.map_err(|error| self.unforeseen(&error))?.ok_or_else(|| {
            Error::invalid_argument("part", "nothing stands there; a shorter pointer shows what there is")
        })
    }
}

/// What of a part others wrote.
pub(super) fn marked(part: &Part) -> Vec<String> {
    let mut fields = vec!["part.text", "part.value", "part.entries[].name"];
    if part.kind == "object" {
        fields.push("part.entries[].pointer");
    }
    fields.into_iter().map(str::to_owned).collect()
}

fn first(pointer: &str) -> &str {
    pointer.split('/').nth(1).unwrap_or_default()
}

fn piece(root: &Value, pointer: &str, offset: u64, bytes_max: usize) -> Option<Part> {
    let value = root.pointer(pointer)?;
    let (kind, length) = shape(value);
    let mut part = Part { pointer: pointer.to_owned(), kind: kind.to_owned(), length, ..Part::default() };
    match value {
        Value::String(text) => {
            let from = usize::try_from(offset).unwrap_or(usize::MAX);
            let begins = text.char_indices().nth(from).map_or(text.len(), |(at, _)| at);
            let ends = text.floor_char_boundary(begins.saturating_add(bytes_max).min(text.len()));
            let shown = &text[begins..ends];
            part.offset = offset.min(length);
            part.next_offset = (ends < text.len()).then(|| part.offset + shown.chars().count() as u64);
            part.text = Some(shown.to_owned());
        }
        other if offset == 0 && Measure::whole(other) <= bytes_max => part.value = Some(other.clone()),
        other => entries(other, offset, bytes_max, &mut part),
    }
    Some(part)
}

/// The entries of a list or an object from `offset` on, as many as fit.
fn entries(value: &Value, offset: u64, bytes_max: usize, part: &mut Part) {
    let skip = usize::try_from(offset).unwrap_or(usize::MAX);
    let all: Box<dyn Iterator<Item = (String, &Value)>> = match value {
        Value::Array(items) => Box::new(items.iter().enumerate().map(|(at, item)| (at.to_string(), item))),
        Value::Object(fields) => Box::new(fields.iter().map(|(name, field)| (escaped(name), field))),
        _ => return,
    };
    let mut bytes = 0;
    part.offset = offset.min(part.length);
    for (name, inner) in all.skip(skip) {
        let entry = entry(format!("{}/{name}", part.pointer), inner);
        bytes += entry.pointer.len() + entry.name.as_ref().map_or(0, String::len) + ENTRY_BYTES;
        if bytes > bytes_max && !part.entries.is_empty() {
            part.next_offset = Some(part.offset + part.entries.len() as u64);
            return;
        }
        part.entries.push(entry);
    }
}

fn entry(pointer: String, value: &Value) -> PartEntry {
    let (kind, length) = shape(value);
    let name = value.get("tool_name").or_else(|| value.get("name")).and_then(Value::as_str);
    let failed = match value.get("status_code") {
        Some(status) => Some(status == "ERROR"),
        None => value.get("tool_name").map(|_| value.get("error").is_some_and(|error| !error.is_null())),
    };
    PartEntry {
        pointer,
        kind: kind.to_owned(),
        length,
        bytes: Measure::whole(value) as u64,
        name: name.map(|name| name.chars().take(NAME_CHARS_MAX).collect()),
        failed,
    }
}

/// A kind of value, and its characters or entries.
fn shape(value: &Value) -> (&'static str, u64) {
    match value {
        Value::String(text) => ("text", text.chars().count() as u64),
        Value::Array(items) => ("list", items.len() as u64),
        Value::Object(fields) => ("object", fields.len() as u64),
        Value::Number(_) => ("number", 0),
        Value::Bool(_) => ("boolean", 0),
        Value::Null => ("null", 0),
    }
}

/// A name as a JSON Pointer has it. Source: RFC 6901 section 3.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn root() -> Value {
        json!({
            "output": "é".repeat(1000), "cost_usd": 1.5, "framework": null,
            "metadata": { "a/b~c": "x".repeat(300), "n": [1, 2] },
            "tool_calls": (0..50).map(|n| json!({ "tool_name": format!("t{n}"), "output": "y".repeat(500), "error": (n == 3).then_some("no") })).collect::<Vec<_>>(),
        })
    }

    /// Scenario: a text read piece by piece.
    /// Guarantees: the pieces are the whole, none is longer than it may be, and the last says that it is.
    #[test]
    fn pieces_of_a_text_are_the_whole() {
        let (root, mut read, mut offset) = (root(), String::new(), 0);
        loop {
            let part = piece(&root, "/output", offset, 301).unwrap();
            let text = part.text.unwrap();
            assert!(text.len() <= 301 && part.length == 1000 && part.offset == offset, "{offset}");
            read.push_str(&text);
            let Some(next) = part.next_offset else { break };
            assert!(next > offset);
            offset = next;
        }
        assert_eq!(read, "é".repeat(1000));
        let beyond = piece(&root, "/output", 5000, 301).unwrap();
        assert_eq!((beyond.text.as_deref(), beyond.next_offset), (Some(""), None));
    }

    /// Guarantees: what is too long is told by its entries, each with a pointer that finds it.
    #[test]
    fn what_is_too_long_is_told_by_its_entries() {
        let (root, mut seen, mut offset) = (root(), Vec::new(), 0);
        loop {
            let part = piece(&root, "/tool_calls", offset, 1000).unwrap();
            assert!(part.value.is_none() && part.length == 50);
            for entry in part.entries {
                let one = piece(&root, &entry.pointer, 0, 10_000).unwrap().value.unwrap();
                assert_eq!(one["tool_name"].as_str(), entry.name.as_deref());
                assert_eq!(entry.failed, Some(!one["error"].is_null()));
                seen.push(entry.pointer);
            }
            let Some(next) = part.next_offset else { break };
            offset = next;
        }
        assert_eq!(seen.len(), 50);
        let metadata = piece(&root, "/metadata", 0, 100).unwrap();
        let pointers: Vec<&str> = metadata.entries.iter().map(|entry| entry.pointer.as_str()).collect();
        assert_eq!(pointers[0], "/metadata/a~1b~0c");
        assert_eq!(piece(&root, pointers[0], 0, 1000).unwrap().length, 300);
        assert_eq!(piece(&root, "/cost_usd", 0, 100).unwrap().value, Some(json!(1.5)));
        assert_eq!(piece(&root, "/framework", 0, 100).unwrap().kind, "null");
        assert!(piece(&root, "/nothing", 0, 100).is_none() && piece(&root, "/tool_calls/50", 0, 100).is_none());
    }
}
