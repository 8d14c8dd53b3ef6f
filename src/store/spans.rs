//! The `spans` table: a [`Row`] becomes columns and comes back exactly as it was.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use duckdb::types::{TimeUnit, Value};
use iris_core::model::{
    Attributes, Observation, Position, RawEvent, RawLink, RawLog, RawSpan, Reading, Resource, Role, Row, Scope, SpanId,
    SpanKind, StatusCode, Tenant, Timestamp, TraceId,
};
use serde::{Deserialize, Serialize};

use super::Error;
use super::long::{Long, Values};
use super::track::lane_of;

/// The columns that [`read`] takes, in its order.
pub(super) const COLUMNS: &str = "tenant, trace_id, span_id, parent_span_id, source, lane, seq, ordinal, \
     epoch_us(received), name, kind, epoch_us(start_time), epoch_us(end_time), nanos, status, content_hash, \
     resource, scope, attributes, rest, long_id, long";

const NANOS: u64 = 1000;

/// What has no column of its own. Times are nanoseconds since the Unix epoch; what is absent is the default.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Rest<'a> {
    #[serde(skip_serializing_if = "is_default")]
    pub flags: u32,
    #[serde(skip_serializing_if = "is_default")]
    pub trace_state: Cow<'a, str>,
    #[serde(skip_serializing_if = "is_default")]
    pub status_message: Cow<'a, str>,
    #[serde(skip_serializing_if = "is_default")]
    pub events: Vec<Event<'a>>,
    #[serde(skip_serializing_if = "is_default")]
    pub links: Vec<Link<'a>>,
    #[serde(skip_serializing_if = "is_default")]
    pub dropped: u32,
    #[serde(skip_serializing_if = "is_default")]
    pub severity: u32,
    /// Present for log records only; `null` is a body too.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub body: Option<Cow<'a, serde_json::Value>>,
}

fn present<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Cow<'static, serde_json::Value>>, D::Error> {
    serde_json::Value::deserialize(deserializer).map(Cow::Owned).map(Some)
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Event<'a> {
    pub time: u64,
    pub name: Cow<'a, str>,
    pub attributes: Cow<'a, Attributes>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Link<'a> {
    pub trace_id: TraceId,
    pub span_id: SpanId,
    pub attributes: Cow<'a, Attributes>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Where a stored observation came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// An OTLP span.
    Span,
    /// A log record.
    Log,
    /// A span given to `log_trace`.
    Tool,
}

impl Source {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Span => "span",
            Self::Log => "log",
            Self::Tool => "tool",
        }
    }
}

/// Resources and scopes read so far, so that the rows of one request share them again.
#[derive(Default)]
pub(super) struct Shared {
    resources: HashMap<String, Arc<Resource>>,
    scopes: HashMap<String, Arc<Scope>>,
}

fn unreadable(why: String) -> Error {
    Error::Unreadable { table: "spans", why }
}

/// A row that was selected as [`COLUMNS`].
pub(super) struct Stored {
    tenant: String,
    trace_id: Vec<u8>,
    span_id: Vec<u8>,
    parent: Option<Vec<u8>>,
    source: String,
    lane: u8,
    seq: u64,
    ordinal: u32,
    received_us: i64,
    name: String,
    kind: Option<String>,
    start_us: i64,
    end_us: Option<i64>,
    nanos: u32,
    status: Option<String>,
    content_hash: u64,
    resource: String,
    scope: String,
    attributes: String,
    rest: String,
    pub long: Option<Long>,
}

impl Stored {
    pub fn read(row: &duckdb::Row<'_>) -> Result<Self, Error> {
        Self::columns(row).map_err(|error| unreadable(error.to_string()))
    }

    /// The row that was stored, with its long values. Its reading is empty: whoever needs one reads it again.
    pub fn whole(mut self, values: &mut Values, shared: &mut Shared) -> Result<Row, Error> {
        let long = self.long.take();
        for (field, value) in [
            ("name", &mut self.name),
            ("resource", &mut self.resource),
            ("scope", &mut self.scope),
            ("attributes", &mut self.attributes),
            ("rest", &mut self.rest),
        ] {
            values.put(long.as_ref(), field, value).map_err(unreadable)?;
        }
        self.row(shared).map_err(unreadable)
    }

    fn columns(row: &duckdb::Row<'_>) -> duckdb::Result<Self> {
        Ok(Self {
            tenant: row.get(0)?,
            trace_id: row.get(1)?,
            span_id: row.get(2)?,
            parent: row.get(3)?,
            source: row.get(4)?,
            lane: row.get(5)?,
            seq: row.get(6)?,
            ordinal: row.get(7)?,
            received_us: row.get(8)?,
            name: row.get(9)?,
            kind: row.get(10)?,
            start_us: row.get(11)?,
            end_us: row.get(12)?,
            nanos: row.get(13)?,
            status: row.get(14)?,
            content_hash: row.get(15)?,
            resource: row.get(16)?,
            scope: row.get(17)?,
            attributes: row.get(18)?,
            rest: row.get(19)?,
            long: Long::read(row, 20)?,
        })
    }

    fn row(self, shared: &mut Shared) -> Result<Row, String> {
        let trace_id = trace_id(&self.trace_id)?;
        let span_id = span_id(&self.span_id)?;
        let lane = lane_of(self.lane).ok_or_else(|| format!("lane {} is unknown", self.lane))?;
        Ok(Row {
            tenant: Tenant::new(&self.tenant),
            position: Position { lane, seq: self.seq, ordinal: self.ordinal },
            received: timestamp(self.received_us, self.nanos >> 20),
            trace_id,
            span_id,
            content_hash: self.content_hash,
            reading: Reading::default(),
            observation: self.observation(trace_id, span_id, shared)?,
        })
    }

    fn observation(self, trace_id: TraceId, own_id: SpanId, shared: &mut Shared) -> Result<Observation, String> {
        let rest: Rest<'_> = parse(&self.rest)?;
        let attributes = parse(&self.attributes)?;
        let resource = cached(&mut shared.resources, self.resource)?;
        let scope = cached(&mut shared.scopes, self.scope)?;
        let start = timestamp(self.start_us, self.nanos & 0x3ff);
        if self.source == Source::Log.as_str() {
            return Ok(Observation::Log(RawLog {
                trace_id: Some(trace_id),
                span_id: Some(own_id),
                time: start,
                severity: rest.severity,
                event_name: self.name,
                body: rest.body.map(Cow::into_owned).unwrap_or_default(),
                attributes,
                resource,
                scope,
            }));
        }
        let event = |event: Event<'_>| RawEvent {
            time: Timestamp::from_unix_nanos(event.time),
            name: event.name.into_owned(),
            attributes: event.attributes.into_owned(),
        };
        let link = |link: Link<'_>| RawLink {
            trace_id: link.trace_id,
            span_id: link.span_id,
            attributes: link.attributes.into_owned(),
        };
        Ok(Observation::Span(RawSpan {
            trace_id,
            span_id: own_id,
            parent_span_id: self.parent.as_deref().map(span_id).transpose()?,
            flags: rest.flags,
            trace_state: rest.trace_state.into_owned(),
            name: self.name,
            kind: kind_of(self.kind.as_deref()),
            start,
            end: self.end_us.map(|end| timestamp(end, self.nanos >> 10 & 0x3ff)).unwrap_or_default(),
            status: status_of(self.status.as_deref()),
            status_message: rest.status_message.into_owned(),
            attributes,
            events: rest.events.into_iter().map(event).collect(),
            links: rest.links.into_iter().map(link).collect(),
            dropped: rest.dropped,
            resource,
            scope,
        }))
    }
}

fn cached<T: for<'de> Deserialize<'de>>(known: &mut HashMap<String, Arc<T>>, text: String) -> Result<Arc<T>, String> {
    if let Some(value) = known.get(&text) {
        return Ok(Arc::clone(value));
    }
    let value = Arc::new(parse::<T>(&text)?);
    known.insert(text, Arc::clone(&value));
    Ok(value)
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("its JSON does not parse at column {}", error.column()))
}

pub(super) fn trace_id(bytes: &[u8]) -> Result<TraceId, String> {
    TraceId::from_bytes(bytes).ok_or_else(|| format!("a trace id of {} bytes", bytes.len()))
}

fn span_id(bytes: &[u8]) -> Result<SpanId, String> {
    SpanId::from_bytes(bytes).ok_or_else(|| format!("a span id of {} bytes", bytes.len()))
}

/// A time as the engine's `TIMESTAMP`, microseconds since the Unix epoch.
pub(super) fn micros(time: Timestamp) -> Value {
    // At most u64::MAX / 1000, which fits.
    Value::Timestamp(TimeUnit::Microsecond, i64::try_from(time.as_unix_nanos() / NANOS).unwrap_or(i64::MAX))
}

/// The nanoseconds that [`micros`] cuts off, 0 to 999.
pub(super) fn nanos_of(time: Timestamp) -> u32 {
    u32::try_from(time.as_unix_nanos() % NANOS).unwrap_or_default()
}

/// The time of which [`micros`] and [`nanos_of`] are the parts.
pub(super) fn timestamp(micros: i64, nanos: u32) -> Timestamp {
    let micros = u64::try_from(micros).unwrap_or_default();
    Timestamp::from_unix_nanos(micros.saturating_mul(NANOS).saturating_add(u64::from(nanos)))
}

pub(super) const fn kind_name(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Unspecified => "UNSPECIFIED",
        SpanKind::Internal => "INTERNAL",
        SpanKind::Server => "SERVER",
        SpanKind::Client => "CLIENT",
        SpanKind::Producer => "PRODUCER",
        SpanKind::Consumer => "CONSUMER",
    }
}

fn kind_of(name: Option<&str>) -> SpanKind {
    const KINDS: [SpanKind; 6] = [
        SpanKind::Unspecified,
        SpanKind::Internal,
        SpanKind::Server,
        SpanKind::Client,
        SpanKind::Producer,
        SpanKind::Consumer,
    ];
    KINDS.into_iter().find(|kind| Some(kind_name(*kind)) == name).unwrap_or_default()
}

pub(super) const fn status_name(status: StatusCode) -> &'static str {
    match status {
        StatusCode::Unset => "UNSET",
        StatusCode::Ok => "OK",
        StatusCode::Error => "ERROR",
    }
}

fn status_of(name: Option<&str>) -> StatusCode {
    const CODES: [StatusCode; 3] = [StatusCode::Unset, StatusCode::Ok, StatusCode::Error];
    CODES.into_iter().find(|code| Some(status_name(*code)) == name).unwrap_or_default()
}

pub(super) const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Agent => "AGENT",
        Role::Chain => "CHAIN",
        Role::Llm => "LLM",
        Role::Tool => "TOOL",
        Role::Embedding => "EMBEDDING",
        Role::Retriever => "RETRIEVER",
        Role::Reranker => "RERANKER",
        Role::Guardrail => "GUARDRAIL",
        Role::Evaluator => "EVALUATOR",
        Role::Prompt => "PROMPT",
        Role::Other => "OTHER",
    }
}
