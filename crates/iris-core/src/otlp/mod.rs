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
mod events;
mod hash;
mod json;
mod masked;
mod schema;
mod tally;
mod value;
mod walk;
mod wire;
mod writer;

use crate::model::{Lane, RawLog, TraceId};

pub use decode::{decode_logs, decode_spans};
pub use events::has_log_event;
pub use hash::{content_hash_log, content_hash_span};
pub use masked::{BODY, Texts, masked};

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

/// What a walk found in a body that can be taken, whole or in part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Walked {
    /// Spans, log records or data points accepted.
    pub items: u64,
    /// Spans, log records or data points rejected.
    pub rejected: u64,
    /// Why, naming the first: fit for `partial_success.error_message`. May be present with nothing rejected, as
    /// a warning.
    pub message: Option<String>,
    /// The body without what was rejected; none when that is the body itself. A metric without a point that cannot be
    /// read goes too, and is named in `message`.
    pub rewritten: Option<Vec<u8>>,
}

/// Judges a body before it is acknowledged; an empty one is a request for nothing.
///
/// What is accepted decodes, here and in any OTLP library: frames, UTF-8, ids, counts and nesting are right. An
/// item that cannot be read is rejected alone and cut out of the body, every other byte unchanged: in protobuf
/// its field goes, key included, and the lengths around it are written anew; in JSON its element and one comma
/// beside it.
///
/// # Errors
/// When the body as a whole is not a request, or holds more than `limits` allow.
pub fn walk(lane: Lane, encoding: Encoding, body: &[u8], limits: &Limits) -> Result<Walked, Refusal> {
    if u32::try_from(body.len()).is_err() {
        return Err(Refusal::Malformed { offset: 0, why: "a body of 4 GiB or more is not read".to_owned() });
    }
    Ok(match encoding {
        Encoding::Protobuf => walk::walk(lane, body, limits)?,
        Encoding::Json => json::walk(lane, body, limits)?,
    })
}

/// A body that was accepted, without the spans and log records of the traces that are `unwanted`; `items` says how many
/// it still has, and `rewritten` is none when nothing went. Records that name no trace stay.
///
/// # Errors
/// When the body is not a request of that lane.
pub fn without(
    lane: Lane,
    encoding: Encoding,
    body: &[u8],
    unwanted: &mut dyn FnMut(TraceId) -> bool,
) -> Result<Walked, Refusal> {
    walk_without(lane, encoding, body, tally::Unwanted::Of(unwanted))
}

/// A logs request that was accepted, without the records that are `unwanted`, each asked about as it decodes; otherwise
/// as [`without`], for records whose trace is not an id in them.
///
/// # Errors
/// When the body is not a logs request.
pub fn without_records(
    encoding: Encoding,
    body: &[u8],
    unwanted: &mut dyn FnMut(&RawLog) -> bool,
) -> Result<Walked, Refusal> {
    let places: Vec<bool> = decode_logs(encoding, body)?.iter().map(unwanted).collect();
    walk_without(Lane::Logs, encoding, body, tally::Unwanted::At(&places))
}

/// What the resources of a body say under `key`, in their order: the text, or for a value of another type its JSON. None
/// for one that has no such attribute; nothing at all when the name stands nowhere in the body, which is quick to see.
///
/// # Errors
/// When the body is not a request of that lane.
pub fn of_resources(lane: Lane, encoding: Encoding, body: &[u8], key: &str) -> Result<Vec<Option<String>>, Refusal> {
    decode::of_resources(lane, encoding, body, key)
}

/// A body that was accepted, without the resources that are `unwanted`, by their places, and all that is in them;
/// otherwise as [`without`].
///
/// # Errors
/// When the body is not a request of that lane.
pub fn without_resources(lane: Lane, encoding: Encoding, body: &[u8], unwanted: &[bool]) -> Result<Walked, Refusal> {
    walk_without(lane, encoding, body, tally::Unwanted::Resources(unwanted))
}

fn walk_without<'a>(
    lane: Lane,
    encoding: Encoding,
    body: &'a [u8],
    unwanted: tally::Unwanted<'a>,
) -> Result<Walked, Refusal> {
    let tally = tally::Tally::without(unwanted);
    Ok(match encoding {
        Encoding::Protobuf => walk::walk_with(lane, body, tally)?,
        Encoding::Json => json::walk_with(lane, body, tally)?,
    })
}

/// An OTLP/JSON body that was accepted, as protobuf. Loses nothing that OTLP defines; unknown fields are left
/// behind.
///
/// # Errors
/// When the body is not OTLP/JSON of that lane, or anything in it would have been rejected.
pub fn json_to_protobuf(lane: Lane, body: &[u8]) -> Result<Vec<u8>, Refusal> {
    Ok(json::to_protobuf(lane, body)?)
}

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
    TooMany { items: usize, max: usize },
    TooDeep { max: usize },
}

impl From<Stop> for Refusal {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Malformed { offset, why } => Self::Malformed { offset, why: why.to_owned() },
            Stop::TooMany { items, max } => Self::TooMany { items, max },
            Stop::TooDeep { max } => Self::TooDeep { max },
        }
    }
}

#[cfg(test)]
mod tests;
