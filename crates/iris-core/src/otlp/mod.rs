//! OTLP bytes in, spans and log records out.
//!
//! Owns what the wire means: which bytes are a request, which of its items are acceptable, how values become
//! JSON, and how OTLP/JSON becomes protobuf. [`walk`] judges a body before it is acknowledged and owns nothing
//! of it; [`decode_spans`] and [`decode_logs`] read a body that was accepted; [`json_to_protobuf`] serves a
//! downstream that speaks gRPC only.
//!
//! Never interprets an attribute (that is `dialect`), never answers a client (that is `receive`), never trusts
//! a byte: no input makes anything here panic, recurse without a limit or allocate more than a small multiple
//! of what it was given.
//!
//! The messages are tables in `schema`, checked by a test against the `.proto` files in `proto/`; both
//! encodings are read by them. Data enters as a body without content encoding and leaves as model types.

mod decode;
mod hash;
mod value;
mod wire;

pub use decode::{decode_logs, decode_spans};
pub use hash::{content_hash_log, content_hash_span};

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// `application/x-protobuf`, and every gRPC message.
    Protobuf,
    /// `application/json`, by the rules of <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>.
    Json,
}

/// What a single body may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Repeated items of every kind, added up: groups, spans, events, links, records, points, attributes and
    /// elements of array values.
    pub items_max: usize,
    /// How deep array and map values may nest; an attribute's own value is at depth 1.
    pub depth_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { items_max: 262_144, depth_max: DEPTH_MAX }
    }
}

/// The depth of values that [`decode_spans`] and its neighbours read.
const DEPTH_MAX: usize = 32;

/// Why a whole body is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is not a request of its signal.
    #[error("malformed at byte {offset}: {why}")]
    Malformed {
        /// Where reading stopped, in bytes from the start of the body.
        offset: usize,
        /// What was wrong there, in our words only.
        why: String,
    },
    /// It holds more items than [`Limits::items_max`].
    #[error("too many items: at least {items}, at most {max} are taken")]
    TooMany {
        /// How many were counted when reading stopped.
        items: usize,
        /// How many are taken.
        max: usize,
    },
    /// A value nests deeper than [`Limits::depth_max`].
    #[error("values nest deeper than {max}")]
    TooDeep {
        /// How deep they may.
        max: usize,
    },
}

/// Why reading stopped; grows into a [`Refusal`] at the door, stays small and free of allocation on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Malformed { offset: usize, why: &'static str },
    TooDeep { max: usize },
}

impl From<Stop> for Refusal {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Malformed { offset, why } => Self::Malformed { offset, why: why.to_owned() },
            Stop::TooDeep { max } => Self::TooDeep { max },
        }
    }
}

#[cfg(test)]
mod tests;
