//! What makes a resend equal and a conflicting span different.
//!
//! The hash covers everything the span or record itself says, in the order it says it, and nothing about who
//! sent it: a collector on the way that enriches the resource does not make a resend another span.

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::model::{Attributes, RawLog, RawSpan, SpanId, TraceId};

/// xxh3-64 of a span's content, its resource and scope left out.
pub fn content_hash_span(span: &RawSpan) -> u64 {
    let mut content = Content::default();
    content.trace(Some(span.trace_id));
    content.span(Some(span.span_id));
    content.span(span.parent_span_id);
    content.number(u64::from(span.flags));
    content.text(&span.trace_state);
    content.text(&span.name);
    content.number(span.kind as u64);
    content.number(span.start.as_unix_nanos());
    content.number(span.end.as_unix_nanos());
    content.number(span.status as u64);
    content.text(&span.status_message);
    content.attributes(&span.attributes);
    content.count(span.events.len());
    for event in &span.events {
        content.number(event.time.as_unix_nanos());
        content.text(&event.name);
        content.attributes(&event.attributes);
    }
    content.count(span.links.len());
    for link in &span.links {
        content.trace(Some(link.trace_id));
        content.span(Some(link.span_id));
        content.attributes(&link.attributes);
    }
    content.number(u64::from(span.dropped));
    content.hash()
}

/// xxh3-64 of a log record's content, its resource and scope left out.
pub fn content_hash_log(log: &RawLog) -> u64 {
    let mut content = Content::default();
    content.trace(log.trace_id);
    content.span(log.span_id);
    content.number(log.time.as_unix_nanos());
    content.number(u64::from(log.severity));
    content.text(&log.event_name);
    content.value(&log.body);
    content.attributes(&log.attributes);
    content.hash()
}

/// The content in one unambiguous run of bytes: every part has a fixed size or its length in front.
#[derive(Default)]
struct Content(Vec<u8>);

impl Content {
    fn hash(&self) -> u64 {
        xxh3_64(&self.0)
    }

    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn trace(&mut self, id: Option<TraceId>) {
        self.0.extend_from_slice(id.as_ref().map_or([0; 16].as_slice(), |id| id.as_bytes()));
    }

    fn span(&mut self, id: Option<SpanId>) {
        self.0.extend_from_slice(id.as_ref().map_or([0; 8].as_slice(), |id| id.as_bytes()));
    }

    fn attributes(&mut self, attributes: &Attributes) {
        self.count(attributes.len());
        for (key, value) in attributes {
            self.text(key);
            self.value(value);
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.0.push(b'n'),
            Value::Bool(value) => self.0.extend_from_slice(&[b'b', u8::from(*value)]),
            Value::Number(number) => self.json_number(number),
            Value::String(text) => {
                self.0.push(b's');
                self.text(text);
            }
            Value::Array(values) => {
                self.0.push(b'a');
                self.count(values.len());
                for value in values {
                    self.value(value);
                }
            }
            Value::Object(values) => {
                self.0.push(b'o');
                self.attributes(values);
            }
        }
    }

    fn json_number(&mut self, number: &serde_json::Number) {
        if let Some(integer) = number.as_i64() {
            self.0.push(b'i');
            self.number(integer.cast_unsigned());
        } else if let Some(integer) = number.as_u64() {
            self.0.push(b'u');
            self.number(integer);
        } else {
            self.0.push(b'd');
            self.number(number.as_f64().unwrap_or_default().to_bits());
        }
    }
}
