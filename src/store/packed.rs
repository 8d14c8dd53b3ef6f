//! A span or log record that waits for its group: what its row will hold, and nothing else.
//!
//! A row in memory is a tree of attributes and what a dialect read from it, several times the bytes that were sent. A
//! group waits for thousands of rows, so each is written down where it is decoded.

use std::borrow::Cow;
use std::sync::Arc;

use duckdb::{Appender, params};
use iris_core::model::{Observation, Position, Resource, Row, RowKey, Scope, SpanId, Tenant, Timestamp, TraceId};
use serde::Serialize;

use super::Error;
use super::beside::Beside;
use super::long::{self, Wide};
use super::spans::{Event, Link, Rest, Source, kind_name, micros, nanos_of, role_name, status_name};
use super::track::lane_number;

/// The columns whose text is the row's own, in the order in which [`Texts`] has them.
const TEXTS: usize = 8;

/// Texts of one row, one after the other.
#[derive(Debug, Clone)]
struct Texts {
    all: Box<str>,
    /// Where each ends; `None` for one that is absent.
    ends: [Option<u32>; TEXTS],
}

impl Texts {
    /// In order.
    fn each(&self) -> [Option<&str>; TEXTS] {
        let mut start = 0;
        self.ends.map(|end| {
            let end = end? as usize;
            let text = self.all.get(start..end);
            start = end;
            text
        })
    }
}

/// What a row of `spans` will hold.
#[derive(Debug, Clone)]
pub struct Packed {
    tenant: Tenant,
    trace_id: TraceId,
    span_id: SpanId,
    parent: Option<SpanId>,
    source: Source,
    position: Position,
    received: Timestamp,
    start: Timestamp,
    end: Timestamp,
    kind: Option<&'static str>,
    status: Option<&'static str>,
    role: Option<&'static str>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cost_usd: Option<f64>,
    content_hash: u64,
    resource: Arc<Resource>,
    scope: Arc<Scope>,
    texts: Texts,
}

impl Packed {
    /// Of a row. `buffer` is room that is used again.
    ///
    /// # Errors
    /// [`Error::Engine`], for a row that no table could hold.
    pub fn of(row: &Row, buffer: &mut Vec<u8>) -> Result<Self, Error> {
        let (name, resource, scope, attributes, source) = match &row.observation {
            Observation::Span(span) => (&span.name, &span.resource, &span.scope, &span.attributes, Source::Span),
            Observation::Log(log) => (&log.event_name, &log.resource, &log.scope, &log.attributes, Source::Log),
        };
        let (kind, status, start, end, parent) = match &row.observation {
            Observation::Span(span) => {
                let names = (Some(kind_name(span.kind)), Some(status_name(span.status)));
                (names.0, names.1, span.start, span.end, span.parent_span_id)
            }
            Observation::Log(log) => (None, None, log.time, Timestamp::default(), None),
        };
        let reading = &row.reading;
        let names = [&reading.agent_name, &reading.model, &reading.provider, &reading.tool_name, &reading.session_id];
        buffer.clear();
        let mut ends = [None; TEXTS];
        let mut texts = ends.iter_mut();
        let mut done = |end: usize, present: bool| {
            let end = u32::try_from(end).map_err(|_| Error::Engine("a row of more than 4 GiB".to_owned()))?;
            if let Some(slot) = texts.next() {
                *slot = present.then_some(end);
            }
            Ok::<_, Error>(())
        };
        buffer.extend_from_slice(name.as_bytes());
        done(buffer.len(), true)?;
        for name in names {
            buffer.extend_from_slice(name.as_deref().map_or("", long::name).as_bytes());
            done(buffer.len(), name.is_some())?;
        }
        write_json(buffer, attributes)?;
        done(buffer.len(), true)?;
        write_json(buffer, &rest_of(&row.observation))?;
        done(buffer.len(), true)?;
        Ok(Self {
            tenant: row.tenant.clone(),
            trace_id: row.trace_id,
            span_id: row.span_id,
            parent,
            source,
            position: row.position,
            received: row.received,
            start,
            end,
            kind,
            status,
            role: reading.role.map(role_name),
            input_tokens: reading.usage.input,
            output_tokens: reading.usage.output,
            cost_usd: reading.cost_usd,
            content_hash: row.content_hash,
            resource: Arc::clone(resource),
            scope: Arc::clone(scope),
            texts: Texts { all: utf8(buffer)?.into(), ends },
        })
    }

    /// As a span that was given to `log_trace`.
    pub(super) const fn by_tool(mut self) -> Self {
        self.source = Source::Tool;
        self
    }

    /// The trace it belongs to, with its tenant.
    pub fn key(&self) -> RowKey {
        RowKey { tenant: self.tenant.clone(), trace_id: self.trace_id }
    }

    /// Where it stands in the journal.
    pub const fn position(&self) -> Position {
        self.position
    }

    /// Bytes it takes in memory, without what it shares with others.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.texts.all.len()
    }

    /// Appends it. An error leaves the appender unusable.
    pub(super) fn append(&self, appender: &mut Appender<'_>, scratch: &mut Scratch) -> Result<(), Error> {
        shared(&mut scratch.resource, &self.resource)?;
        shared(&mut scratch.scope, &self.scope)?;
        let [name, agent_name, model, provider, tool_name, session_id, attributes, rest] = self.texts.each();
        let kept = scratch.beside.pieces.shorten(&[
            Wide::text("name", name),
            Wide::document("resource", Some(scratch.resource.as_ref().map_or("{}", |(_, text)| text.as_str()))),
            Wide::document("scope", Some(scratch.scope.as_ref().map_or("{}", |(_, text)| text.as_str()))),
            Wide::document("attributes", attributes),
            Wide::document("rest", rest),
        ])?;
        let [name, resource, scope, attributes, rest] = kept.values;
        appender
            .append_row(params![
                self.tenant.as_str(),
                self.trace_id.as_bytes().as_slice(),
                self.span_id.as_bytes().as_slice(),
                self.parent.as_ref().map(|id| id.as_bytes().as_slice()),
                self.source.as_str(),
                lane_number(self.position.lane),
                self.position.seq,
                self.position.ordinal,
                micros(self.received),
                name,
                self.kind,
                micros(self.start),
                (self.end != Timestamp::default()).then(|| micros(self.end)),
                nanos_of(self.start) | nanos_of(self.end) << 10 | nanos_of(self.received) << 20,
                self.status,
                self.role,
                agent_name,
                model,
                provider,
                tool_name,
                self.input_tokens,
                self.output_tokens,
                self.cost_usd,
                session_id,
                self.content_hash,
                resource,
                scope,
                attributes,
                rest,
                kept.long_id,
                kept.long,
            ])
            .map_err(Error::engine)
    }
}

/// What outlives a group, so that a million rows do not allocate a million times. Resource and scope are shared by the
/// rows of one request and written as JSON once for all of them.
#[derive(Default)]
pub(super) struct Scratch {
    /// What the rows appended so far leave for other tables.
    pub beside: Beside,
    /// Room for [`Packed::of`].
    pub buffer: Vec<u8>,
    resource: Option<(Arc<Resource>, String)>,
    scope: Option<(Arc<Scope>, String)>,
}

impl Scratch {
    pub fn new(beside: Beside) -> Self {
        Self { beside, ..Self::default() }
    }
}

fn rest_of(observation: &Observation) -> Rest<'_> {
    match observation {
        Observation::Span(span) => Rest {
            flags: span.flags,
            trace_state: Cow::Borrowed(&span.trace_state),
            status_message: Cow::Borrowed(&span.status_message),
            events: span
                .events
                .iter()
                .map(|event| Event {
                    time: event.time.as_unix_nanos(),
                    name: Cow::Borrowed(&event.name),
                    attributes: Cow::Borrowed(&event.attributes),
                })
                .collect(),
            links: span
                .links
                .iter()
                .map(|link| Link {
                    trace_id: link.trace_id,
                    span_id: link.span_id,
                    attributes: Cow::Borrowed(&link.attributes),
                })
                .collect(),
            dropped: span.dropped,
            ..Rest::default()
        },
        Observation::Log(log) => {
            Rest { severity: log.severity, body: Some(Cow::Borrowed(&log.body)), ..Rest::default() }
        }
    }
}

fn shared<T: Serialize>(slot: &mut Option<(Arc<T>, String)>, value: &Arc<T>) -> Result<(), Error> {
    if !slot.as_ref().is_some_and(|(known, _)| Arc::ptr_eq(known, value)) {
        let mut buffer = Vec::new();
        write_json(&mut buffer, value.as_ref())?;
        *slot = Some((Arc::clone(value), utf8(&buffer)?.to_owned()));
    }
    Ok(())
}

fn write_json<T: Serialize + ?Sized>(buffer: &mut Vec<u8>, value: &T) -> Result<(), Error> {
    serde_json::to_writer(buffer, value).map_err(|error| Error::Engine(format!("a value has no JSON form: {error}")))
}

fn utf8(bytes: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(|error| Error::Engine(format!("JSON that is not UTF-8: {error}")))
}
