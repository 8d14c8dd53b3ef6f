//! The nouns every room shares: identifiers, times, spans as sent and as understood, traces, subjects.
//!
//! Data only. A type lives here when two rooms speak of it; what is done with it lives in those rooms.

mod cost;
mod evaluation;
mod id;
mod reading;
mod row;
mod span;
mod time;
mod trace;

pub use cost::{CostPart, CostParts, Notes, UNPRICED_MAX};
pub use evaluation::{EvalType, Evaluation, Evidence, Name, RuleResult, VerdictState};
pub use id::{InvalidId, SpanId, Tenant, TraceId};
pub use reading::{Message, Part, Reading, Role, Usage};
pub use row::{Lane, Observation, Position, Row, RowKey};
pub use span::{Attributes, RawEvent, RawLink, RawLog, RawSpan, Resource, Scope, SpanKind, StatusCode};
pub use time::Timestamp;
pub use trace::{CostSource, EVERY_SPAN, Run, TokenUsage, ToolCall, Trace, TraceSource, UNMAPPED};
