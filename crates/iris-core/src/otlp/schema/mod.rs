//! The messages of OTLP as tables, one source for both encodings.
//!
//! A table says of each field its number, its two names, its form, and of each message whether it is something
//! that can be rejected alone. The test beside compares every line with
//! the `.proto` files in `proto/`.
//! Source: <https://github.com/open-telemetry/opentelemetry-proto/tree/v1.10.0/opentelemetry/proto>.

mod common;
mod logs;
mod metrics;
mod traces;

use super::wire;
use crate::model::Lane;

/// One more than the highest field number of any message here.
const SLOTS: usize = 17;

/// A message type.
pub(super) struct Message {
    /// Its fields.
    pub fields: &'static [Field],
    /// Whether it can be rejected alone.
    pub unit: Option<Unit>,
    /// Whether it is an `AnyValue`, which may hold itself.
    pub is_value: bool,
    /// Bits of the fields it cannot be without.
    pub required: u32,
    slots: [Option<&'static Field>; SLOTS],
}

/// Something that is cut out of a request when it cannot be read, all else kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Resource,
    Scope,
    Metric,
    Span,
    Record,
    Point,
}

impl Unit {
    /// How many there are.
    pub(super) const COUNT: usize = 6;

    /// What it is called in a message to the client.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Resource => "resource",
            Self::Scope => "scope",
            Self::Metric => "metric",
            Self::Span => "span",
            Self::Record => "log record",
            Self::Point => "data point",
        }
    }

    /// Whether OTLP counts it: a span, log record or data point.
    pub(super) const fn is_item(self) -> bool {
        matches!(self, Self::Span | Self::Record | Self::Point)
    }
}

/// A field of a message.
pub(super) struct Field {
    /// Its number, 1 to 16.
    pub number: u8,
    /// Its name in the `.proto` file.
    pub name: &'static str,
    /// Its name in JSON.
    pub json: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether it is a list.
    pub is_list: bool,
    /// The wire type of one value.
    pub wire: u8,
}

impl Field {
    /// Its bit in [`Message::required`].
    pub(super) const fn bit(&self) -> u32 {
        1 << self.number
    }
}

/// What a field holds.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Bool,
    Int64,
    Uint32,
    Uint64,
    Sint32,
    Int32,
    Fixed32,
    Fixed64,
    Sfixed64,
    Double,
    Enum(&'static [(&'static str, i32)]),
    Text,
    Bytes,
    Id(Id),
    Message(&'static Message),
}

impl Kind {
    const fn wire(self) -> u8 {
        match self {
            Self::Bool | Self::Int32 | Self::Int64 | Self::Uint32 | Self::Uint64 | Self::Sint32 | Self::Enum(_) => {
                wire::VARINT
            }
            Self::Fixed64 | Self::Sfixed64 | Self::Double => wire::FIXED64,
            Self::Fixed32 => wire::FIXED32,
            Self::Text | Self::Bytes | Self::Id(_) | Self::Message(_) => wire::LEN,
        }
    }
}

/// The rule for a trace or span id.
#[derive(Clone, Copy)]
pub(super) struct Id {
    /// Its length in bytes.
    pub len: usize,
    /// Whether it must be there and not all zero.
    pub is_required: bool,
    /// Whether it says of which trace its own unit is, and not a link's or an exemplar's other one.
    pub is_own_trace: bool,
}

const TRACE_ID: Id = Id { len: 16, is_required: true, is_own_trace: true };
const RECORD_TRACE_ID: Id = Id { len: 16, is_required: false, is_own_trace: true };
const SPAN_ID: Id = Id { len: 8, is_required: true, is_own_trace: false };
const TRACE_ID_OR_NONE: Id = Id { len: 16, is_required: false, is_own_trace: false };
const SPAN_ID_OR_NONE: Id = Id { len: 8, is_required: false, is_own_trace: false };

impl Message {
    /// The field with a number, none when OTLP does not define it.
    #[inline]
    pub(super) fn field(&self, number: u32) -> Option<&'static Field> {
        self.slots.get(number as usize).copied().flatten()
    }

    /// The field with a JSON name.
    pub(super) fn named(&self, json: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.json == json)
    }

    const fn new(fields: &'static [Field]) -> Self {
        let mut slots = [None; SLOTS];
        let mut required = 0;
        let mut rest = fields;
        while let [field, tail @ ..] = rest {
            #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler only")]
            {
                slots[field.number as usize] = Some(field);
            }
            if let Kind::Id(Id { is_required: true, .. }) = field.kind {
                required |= field.bit();
            }
            rest = tail;
        }
        Self { fields, unit: None, is_value: false, required, slots }
    }

    const fn unit(fields: &'static [Field], unit: Unit) -> Self {
        let mut message = Self::new(fields);
        message.unit = Some(unit);
        message
    }
}

const fn one(number: u8, name: &'static str, json: &'static str, kind: Kind) -> Field {
    Field { number, name, json, kind, is_list: false, wire: kind.wire() }
}

const fn many(number: u8, name: &'static str, json: &'static str, kind: Kind) -> Field {
    Field { number, name, json, kind, is_list: true, wire: kind.wire() }
}

/// Whether a message is a `KeyValue`.
pub(super) fn is_attribute(message: &'static Message) -> bool {
    std::ptr::eq(message, &common::ATTRIBUTE)
}

/// The request message of a lane.
pub(super) fn request(lane: Lane) -> &'static Message {
    match lane {
        Lane::Traces => &traces::REQUEST,
        Lane::Logs => &logs::REQUEST,
        Lane::Metrics => &metrics::REQUEST,
    }
}

#[cfg(test)]
mod tests;
