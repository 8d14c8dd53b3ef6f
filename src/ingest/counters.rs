//! What came in at the OTLP doors, counted: plain atomics that the telemetry room shows.

use std::sync::atomic::{AtomicU64, Ordering};

use iris_core::model::Lane;

use crate::journal::Door;

/// Spans, log records or metric points of one signal at one door, in the collector's words
/// (`receiver_accepted_spans`, `receiver_refused_spans`, `receiver_failed_spans` and so on).
#[derive(Debug, Default)]
pub struct LaneCounters {
    /// Acknowledged, resends and what is not kept included.
    pub accepted: AtomicU64,
    /// Well-formed, but not taken now: the journal is full or closing.
    pub refused: AtomicU64,
    /// Well-formed, but the journal's disk failed.
    pub failed: AtomicU64,
    /// Cut out of an accepted message and named in its `partial_success`.
    pub rejected: AtomicU64,
    /// Accepted without another record, because the same message had been accepted before.
    pub resent: AtomicU64,
    /// Accepted and not kept: nothing is forwarded and nothing here reads them.
    pub unkept: AtomicU64,
}

/// Requests that one door did not accept, by reason.
#[derive(Debug, Default)]
pub struct RequestCounters {
    /// Not OTLP: bad bytes, bad compression, nested too deep, not exactly one message.
    pub malformed: AtomicU64,
    /// More bytes or items than are allowed.
    pub too_large: AtomicU64,
    /// No memory for it now.
    pub busy: AtomicU64,
    /// The journal is full or closing.
    pub full: AtomicU64,
    /// The journal's disk failed.
    pub failed: AtomicU64,
    /// Not received whole in time.
    pub timed_out: AtomicU64,
    /// The sender went away before the body was whole.
    pub aborted: AtomicU64,
    /// No bearer token, or a wrong one.
    pub unauthenticated: AtomicU64,
    /// A `Host` or `Origin` that is not ours.
    pub foreign: AtomicU64,
    /// A path, method, media type, encoding or protocol that this door does not serve.
    pub misdirected: AtomicU64,
}

/// One door's counts.
#[derive(Debug, Default)]
pub struct DoorCounters {
    /// Spans.
    pub traces: LaneCounters,
    /// Log records.
    pub logs: LaneCounters,
    /// Metric points.
    pub metrics: LaneCounters,
    /// Requests that were not accepted.
    pub requests: RequestCounters,
    /// Connections taken.
    pub connections: AtomicU64,
    /// Idle connections closed to make room for a new one.
    pub evicted: AtomicU64,
}

impl DoorCounters {
    /// The counts of one signal.
    pub fn lane(&self, lane: Lane) -> &LaneCounters {
        match lane {
            Lane::Traces => &self.traces,
            Lane::Logs => &self.logs,
            Lane::Metrics => &self.metrics,
        }
    }
}

/// What came in at both OTLP doors since the start.
#[derive(Debug, Default)]
pub struct ReceiveCounters {
    /// OTLP/gRPC.
    pub grpc: DoorCounters,
    /// OTLP/HTTP.
    pub http: DoorCounters,
    /// Messages with a resource that named a tenant, sent with a key that may not.
    pub tenants_ignored: AtomicU64,
}

impl ReceiveCounters {
    /// The counts of the door that `door` names; what is not an OTLP door counts as OTLP/HTTP.
    pub fn door(&self, door: Door) -> &DoorCounters {
        if door == Door::Grpc { &self.grpc } else { &self.http }
    }
}

/// Adds `items` to `counter`.
pub(crate) fn add(counter: &AtomicU64, items: u64) {
    counter.fetch_add(items, Ordering::Relaxed);
}
