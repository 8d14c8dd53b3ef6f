//! Spans and log records as they were sent, nothing interpreted.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{SpanId, Timestamp, TraceId};

/// Attributes in the order they were sent. An OTLP byte value is a base64 string; a number that JSON cannot
/// hold is its name (`"NaN"`, `"Infinity"`, `"-Infinity"`).
pub type Attributes = serde_json::Map<String, Value>;

/// Who sent a span: the OTLP resource.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Resource {
    /// `service.name` and its neighbours.
    pub attributes: Attributes,
}

/// Which instrumentation wrote a span: the OTLP scope.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Scope {
    /// Such as `opentelemetry.instrumentation.openai_v2`.
    pub name: String,
    /// The instrumentation's own version.
    pub version: String,
    /// Attributes of the scope.
    pub attributes: Attributes,
}

/// OTLP `SpanKind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum SpanKind {
    /// Not said.
    #[default]
    Unspecified,
    /// Inside one process.
    Internal,
    /// Answers a request.
    Server,
    /// Sends a request.
    Client,
    /// Sends a message.
    Producer,
    /// Receives a message.
    Consumer,
}

/// OTLP `Status.code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum StatusCode {
    /// Not said.
    #[default]
    Unset,
    /// Said to be fine.
    Ok,
    /// Said to have failed.
    Error,
}

/// One span as sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RawSpan {
    /// The trace it belongs to.
    pub trace_id: TraceId,
    /// Its own id.
    pub span_id: SpanId,
    /// Its parent, when it has one.
    pub parent_span_id: Option<SpanId>,
    /// W3C trace flags and the two OTLP bits that say whether the parent is remote (0x100 known, 0x200 remote).
    pub flags: u32,
    /// W3C `tracestate`.
    pub trace_state: String,
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: SpanKind,
    /// When it began.
    pub start: Timestamp,
    /// When it ended; zero when it has not.
    pub end: Timestamp,
    /// How it ended.
    pub status: StatusCode,
    /// What its status says, often the text of an error.
    pub status_message: String,
    /// Its attributes.
    pub attributes: Attributes,
    /// Its events, in the order sent.
    pub events: Vec<RawEvent>,
    /// Its links, in the order sent.
    pub links: Vec<RawLink>,
    /// Attributes, events and links that the SDK says it dropped, added up.
    pub dropped: u32,
    /// Who sent it.
    pub resource: Arc<Resource>,
    /// Which instrumentation wrote it.
    pub scope: Arc<Scope>,
}

/// OTLP `Span.flags`: bit 8 says that the sender knows whether the parent is remote, bit 9 that it is.
/// Source: <https://github.com/open-telemetry/opentelemetry-proto/blob/v1.5.0/opentelemetry/proto/trace/v1/trace.proto>.
const PARENT_IS_REMOTE: u32 = 0x300;

impl RawSpan {
    /// Whether it has no parent, or one in another process. One that names itself has none.
    pub fn is_local_root(&self) -> bool {
        self.flags & PARENT_IS_REMOTE == PARENT_IS_REMOTE
            || self.parent_span_id.is_none_or(|parent| parent == self.span_id)
    }
}

/// One event of a span.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RawEvent {
    /// When.
    pub time: Timestamp,
    /// Its name, such as `exception` or `gen_ai.choice`.
    pub name: String,
    /// Its attributes.
    pub attributes: Attributes,
}

/// One link of a span.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RawLink {
    /// The trace linked to.
    pub trace_id: TraceId,
    /// The span linked to.
    pub span_id: SpanId,
    /// Its attributes.
    pub attributes: Attributes,
}

/// One log record as sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RawLog {
    /// The trace it was written in, when it says.
    pub trace_id: Option<TraceId>,
    /// The span it was written in, when it says.
    pub span_id: Option<SpanId>,
    /// When it happened; when it was seen if it does not say.
    pub time: Timestamp,
    /// OTLP severity number, 1 to 24, 0 when unset.
    pub severity: u32,
    /// The event's name: OTLP `event_name`, else the attribute `event.name`, else empty.
    pub event_name: String,
    /// Its body.
    pub body: Value,
    /// Its attributes.
    pub attributes: Attributes,
    /// Who sent it.
    pub resource: Arc<Resource>,
    /// Which instrumentation wrote it.
    pub scope: Arc<Scope>,
}
