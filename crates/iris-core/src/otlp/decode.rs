//! A body that was accepted, as spans or log records.
//!
//! Reads the wire directly: what is kept is copied once, what is not kept is never owned. Every span of a
//! group shares its resource and scope. Fields may come in any order and more than once, as protobuf allows:
//! of a single value the last counts, messages merge.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::value::{any_value, attribute};
use super::wire::Reader;
use super::{Encoding, Refusal, Stop, json_to_protobuf};
use crate::model::{
    Attributes, Lane, RawEvent, RawLink, RawLog, RawSpan, Resource, Scope, SpanId, SpanKind, StatusCode, Timestamp,
    TraceId,
};

/// The spans of a trace request, in the order of the message. A span whose ids are unusable is left out:
/// [`walk`](super::walk) has cut those out of every body that was accepted.
///
/// # Errors
/// When the body is not a trace request or its values nest too deep.
pub fn decode_spans(encoding: Encoding, body: &[u8]) -> Result<Vec<RawSpan>, Refusal> {
    let body = protobuf(Lane::Traces, encoding, body)?;
    Ok(groups(&body, span)?)
}

/// The records of a logs request, in the order of the message.
///
/// # Errors
/// When the body is not a logs request or its values nest too deep.
pub fn decode_logs(encoding: Encoding, body: &[u8]) -> Result<Vec<RawLog>, Refusal> {
    let body = protobuf(Lane::Logs, encoding, body)?;
    Ok(groups(&body, record)?)
}

/// See [`super::of_resources`].
pub(super) fn of_resources(
    lane: Lane,
    encoding: Encoding,
    body: &[u8],
    key: &str,
) -> Result<Vec<Option<String>>, Refusal> {
    if memchr::memmem::find(body, key.as_bytes()).is_none() {
        return Ok(Vec::new());
    }
    let body = protobuf(lane, encoding, body)?;
    let mut found = Vec::new();
    each(Reader::new(&body), 1, &mut |group| {
        let mut resource = Resource::default();
        each(group, 1, &mut |fields| merge_resource(&mut resource, fields))?;
        found.push(resource.attributes.get(key).map(|value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }));
        Ok(())
    })?;
    Ok(found)
}

/// The body as protobuf.
pub(super) fn protobuf(lane: Lane, encoding: Encoding, body: &[u8]) -> Result<Cow<'_, [u8]>, Refusal> {
    match encoding {
        Encoding::Protobuf => Ok(Cow::Borrowed(body)),
        Encoding::Json => json_to_protobuf(lane, body).map(Cow::Owned),
    }
}

/// Who sent an item, and what wrote it.
struct Origin {
    resource: Arc<Resource>,
    scope: Arc<Scope>,
}

type Item<T> = fn(Reader<'_>, &Origin) -> Result<Option<T>, Stop>;

/// Reads the two envelopes that spans and log records share: groups by resource (field 1 of the request), in
/// them the resource (1) and groups by scope (2), in those the scope (1) and the items (2).
fn groups<T>(body: &[u8], item: Item<T>) -> Result<Vec<T>, Stop> {
    let mut items = Vec::new();
    each(Reader::new(body), 1, &mut |group| {
        let mut resource = Resource::default();
        each(group, 1, &mut |fields| merge_resource(&mut resource, fields))?;
        let resource = Arc::new(resource);
        each(group, 2, &mut |group| {
            let mut scope = Scope::default();
            each(group, 1, &mut |fields| merge_scope(&mut scope, fields))?;
            let origin = Origin { resource: Arc::clone(&resource), scope: Arc::new(scope) };
            each(group, 2, &mut |fields| {
                items.extend(item(fields, &origin)?);
                Ok(())
            })
        })
    })?;
    Ok(items)
}

/// Calls `with` for every message in field `wanted`.
pub(super) fn each<'a>(
    mut fields: Reader<'a>,
    wanted: u32,
    with: &mut dyn FnMut(Reader<'a>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    while let Some((number, value)) = fields.field()? {
        if number == wanted {
            with(value.message(fields.offset()))?;
        }
    }
    Ok(())
}

fn merge_resource(resource: &mut Resource, fields: Reader<'_>) -> Result<(), Stop> {
    each(fields, 1, &mut |fields| attribute(&mut resource.attributes, fields))
}

fn merge_scope(scope: &mut Scope, mut fields: Reader<'_>) -> Result<(), Stop> {
    while let Some((number, value)) = fields.field()? {
        let end = fields.offset();
        match number {
            1 => value.text(end)?.clone_into(&mut scope.name),
            2 => value.text(end)?.clone_into(&mut scope.version),
            3 => attribute(&mut scope.attributes, value.message(end))?,
            _ => {}
        }
    }
    Ok(())
}

/// The ids in fields `trace` and `span`; of several the last.
fn ids(mut fields: Reader<'_>, trace: u32, span: u32) -> Result<(Option<TraceId>, Option<SpanId>), Stop> {
    let mut ids = (None, None);
    while let Some((number, value)) = fields.field()? {
        if number == trace {
            ids.0 = TraceId::from_bytes(value.bytes());
        } else if number == span {
            ids.1 = SpanId::from_bytes(value.bytes());
        }
    }
    Ok(ids)
}

fn span(mut fields: Reader<'_>, origin: &Origin) -> Result<Option<RawSpan>, Stop> {
    let (Some(trace_id), Some(span_id)) = ids(fields, 1, 2)? else { return Ok(None) };
    let mut span = empty_span(trace_id, span_id, origin);
    let (mut attributes_dropped, mut events_dropped, mut links_dropped) = (0, 0, 0);
    while let Some((number, value)) = fields.field()? {
        let end = fields.offset();
        match number {
            3 => value.text(end)?.clone_into(&mut span.trace_state),
            4 => span.parent_span_id = SpanId::from_bytes(value.bytes()),
            5 => value.text(end)?.clone_into(&mut span.name),
            6 => span.kind = kind(value.varint()),
            7 => span.start = Timestamp::from_unix_nanos(value.fixed64()),
            8 => span.end = Timestamp::from_unix_nanos(value.fixed64()),
            9 => attribute(&mut span.attributes, value.message(end))?,
            10 => attributes_dropped = count(value.varint()),
            11 => span.events.push(event(value.message(end))?),
            12 => events_dropped = count(value.varint()),
            13 => span.links.extend(link(value.message(end))?),
            14 => links_dropped = count(value.varint()),
            15 => merge_status(&mut span, value.message(end))?,
            16 => span.flags = value.fixed32(),
            _ => {}
        }
    }
    span.dropped = attributes_dropped.saturating_add(events_dropped).saturating_add(links_dropped);
    Ok(Some(span))
}

fn empty_span(trace_id: TraceId, span_id: SpanId, origin: &Origin) -> RawSpan {
    RawSpan {
        trace_id,
        span_id,
        parent_span_id: None,
        flags: 0,
        trace_state: String::new(),
        name: String::new(),
        kind: SpanKind::Unspecified,
        start: Timestamp::default(),
        end: Timestamp::default(),
        status: StatusCode::Unset,
        status_message: String::new(),
        attributes: Attributes::new(),
        events: Vec::new(),
        links: Vec::new(),
        dropped: 0,
        resource: Arc::clone(&origin.resource),
        scope: Arc::clone(&origin.scope),
    }
}

/// A `uint32` from its varint: the low 32 bits.
fn count(varint: u64) -> u32 {
    (varint & u64::from(u32::MAX)) as u32
}

/// An enum's number from its varint: the low 32 bits, sign included.
fn number(varint: u64) -> i32 {
    count(varint).cast_signed()
}

fn kind(varint: u64) -> SpanKind {
    match number(varint) {
        1 => SpanKind::Internal,
        2 => SpanKind::Server,
        3 => SpanKind::Client,
        4 => SpanKind::Producer,
        5 => SpanKind::Consumer,
        _ => SpanKind::Unspecified,
    }
}

fn merge_status(span: &mut RawSpan, mut fields: Reader<'_>) -> Result<(), Stop> {
    while let Some((field, value)) = fields.field()? {
        match field {
            2 => value.text(fields.offset())?.clone_into(&mut span.status_message),
            3 => {
                span.status = match number(value.varint()) {
                    1 => StatusCode::Ok,
                    2 => StatusCode::Error,
                    _ => StatusCode::Unset,
                };
            }
            _ => {}
        }
    }
    Ok(())
}

fn event(mut fields: Reader<'_>) -> Result<RawEvent, Stop> {
    let mut event = RawEvent { time: Timestamp::default(), name: String::new(), attributes: Attributes::new() };
    while let Some((number, value)) = fields.field()? {
        let end = fields.offset();
        match number {
            1 => event.time = Timestamp::from_unix_nanos(value.fixed64()),
            2 => value.text(end)?.clone_into(&mut event.name),
            3 => attribute(&mut event.attributes, value.message(end))?,
            _ => {}
        }
    }
    Ok(event)
}

/// A link, unless it links to nothing: the specification lets an SDK record a link without valid ids.
fn link(mut fields: Reader<'_>) -> Result<Option<RawLink>, Stop> {
    let (Some(trace_id), Some(span_id)) = ids(fields, 1, 2)? else { return Ok(None) };
    let mut link = RawLink { trace_id, span_id, attributes: Attributes::new() };
    while let Some((number, value)) = fields.field()? {
        if number == 4 {
            attribute(&mut link.attributes, value.message(fields.offset()))?;
        }
    }
    Ok(Some(link))
}

fn record(mut fields: Reader<'_>, origin: &Origin) -> Result<Option<RawLog>, Stop> {
    let (trace_id, span_id) = ids(fields, 9, 10)?;
    let (mut time, mut observed, mut severity) = (0, 0, 0);
    let mut event_name = "";
    let mut body = Value::Null;
    let mut attributes = Attributes::new();
    while let Some((field, value)) = fields.field()? {
        let end = fields.offset();
        match field {
            1 => time = value.fixed64(),
            2 => severity = number(value.varint()),
            5 => any_value(&mut body, value.message(end))?,
            6 => attribute(&mut attributes, value.message(end))?,
            11 => observed = value.fixed64(),
            12 => event_name = value.text(end)?,
            _ => {}
        }
    }
    if !super::events::names_an_event(event_name) {
        let attribute = attributes.get("event.name").and_then(Value::as_str).filter(|name| !name.is_empty());
        event_name = attribute.unwrap_or(event_name);
    }
    Ok(Some(RawLog {
        trace_id,
        span_id,
        time: Timestamp::from_unix_nanos(if time == 0 { observed } else { time }),
        severity: u32::try_from(severity).unwrap_or_default(),
        event_name: event_name.to_owned(),
        body,
        attributes,
        resource: Arc::clone(&origin.resource),
        scope: Arc::clone(&origin.scope),
    }))
}
