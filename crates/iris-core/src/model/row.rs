//! A span or log record on its way to the store: as sent, as understood, and where it stands in the journal.

use serde::{Deserialize, Serialize};

use super::{Attributes, RawLog, RawSpan, Reading, SpanId, Tenant, Timestamp, TraceId};

/// One of the three journals; no signal blocks another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lane {
    /// Spans, and the records of tools.
    Traces,
    /// Log records.
    Logs,
    /// Metric points.
    Metrics,
}

impl Lane {
    /// All lanes, in a fixed order.
    pub const ALL: [Self; 3] = [Self::Traces, Self::Logs, Self::Metrics];

    /// The lane's name, as in paths and labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Logs => "logs",
            Self::Metrics => "metrics",
        }
    }
}

/// Where a row came from: which journal record, and which item in it. Unique for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// The record's lane.
    pub lane: Lane,
    /// The record's sequence number, from one counter for all lanes.
    pub seq: u64,
    /// The item's place in the record, counting from 0 over every span (or log record) of the message.
    pub ordinal: u32,
}

/// A trace, unique within its tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowKey {
    /// Whose.
    pub tenant: Tenant,
    /// Which.
    pub trace_id: TraceId,
}

/// What was observed.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// A span.
    Span(RawSpan),
    /// A log record that a dialect reads as part of a span; both ids are present.
    Log(RawLog),
}

/// One observation with its reading.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Whose.
    pub tenant: Tenant,
    /// Where it stands in the journal.
    pub position: Position,
    /// When the request that carried it arrived.
    pub received: Timestamp,
    /// As sent.
    pub observation: Observation,
    /// The trace it belongs to.
    pub trace_id: TraceId,
    /// The span it is or speaks of.
    pub span_id: SpanId,
    /// xxh3-64 of its content: equal for a resend, different for a conflicting span.
    pub content_hash: u64,
    /// As understood.
    pub reading: Reading,
}

impl Row {
    /// The trace it belongs to, with its tenant.
    pub fn key(&self) -> RowKey {
        RowKey { tenant: self.tenant.clone(), trace_id: self.trace_id }
    }

    /// Lets go of what was sent beyond what assembling and judging look at: attributes, events, links and the body. To
    /// be called once the dialects have read it and it is written down elsewhere.
    pub fn let_go_of_text(&mut self) {
        match &mut self.observation {
            Observation::Span(span) => {
                span.attributes = Attributes::new();
                span.events = Vec::new();
                span.links = Vec::new();
            }
            Observation::Log(log) => {
                log.attributes = Attributes::new();
                log.body = serde_json::Value::Null;
            }
        }
    }

    /// The span, unless it is a log record.
    pub fn span(&self) -> Option<&RawSpan> {
        match &self.observation {
            Observation::Span(span) => Some(span),
            Observation::Log(_) => None,
        }
    }
}
