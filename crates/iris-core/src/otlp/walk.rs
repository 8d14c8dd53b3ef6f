//! The walk over protobuf: everything that must be true before a body is acknowledged, owning nothing of it.
//!
//! Framing, wire types, UTF-8, ids, counts and nesting. What it accepts, every protobuf library decodes. A
//! rejected unit is cut out by its bytes: its field goes with its key, and the lengths around it are written
//! anew; all else stays as it was sent.

use super::schema::{Field, Id, Kind, Message, request};
use super::tally::Tally;
use super::wire::{LEN, Reader, varint_len};
use super::{Limits, Stop, Walked};
use crate::model::{Lane, TraceId};

/// Walks a protobuf request.
pub(super) fn walk(lane: Lane, body: &[u8], limits: &Limits) -> Result<Walked, Stop> {
    walk_with(lane, body, Tally::new(*limits))
}

/// The same with a tally of one's own.
pub(super) fn walk_with(lane: Lane, body: &[u8], tally: Tally<'_>) -> Result<Walked, Stop> {
    let mut walk = Walk { tally };
    let seen = walk.fields(request(lane), Reader::new(body), 0)?.seen;
    if seen == 0 && !body.is_empty() {
        return Err(Stop::Malformed { offset: 0, why: "it has no field of a request of its signal" });
    }
    Ok(walk.tally.finish(body))
}

struct Walk<'a> {
    tally: Tally<'a>,
}

/// What a message came to.
struct Fields {
    /// Bits of the known fields that it has.
    seen: u32,
    /// How many bytes shorter its payload becomes.
    shrink: usize,
}

impl Walk<'_> {
    fn fields(&mut self, message: &'static Message, mut reader: Reader<'_>, depth: usize) -> Result<Fields, Stop> {
        let mut fields = Fields { seen: 0, shrink: 0 };
        while !reader.is_empty() {
            let start = reader.offset();
            let (number, wire) = reader.key()?;
            let Some(field) = message.field(number) else {
                reader.value(number, wire)?;
                continue;
            };
            fields.seen |= field.bit();
            if wire != field.wire {
                packed(field, wire, start, &mut reader)?;
                continue;
            }
            match field.kind {
                Kind::Message(inner) => fields.shrink += self.message(field, inner, start, &mut reader, depth)?,
                Kind::Text => self.text(field, &mut reader)?,
                Kind::Id(rule) => self.id(field, rule, &mut reader)?,
                _ => {
                    reader.value(number, wire)?;
                }
            }
        }
        if fields.seen & message.required != message.required {
            self.missing(message, fields.seen, reader.offset())?;
        }
        Ok(fields)
    }

    /// Walks the message in `field`, whose key begins at `start`. Returns how many bytes the field loses.
    #[inline]
    fn message(
        &mut self,
        field: &'static Field,
        inner: &'static Message,
        start: usize,
        reader: &mut Reader<'_>,
        depth: usize,
    ) -> Result<usize, Stop> {
        let len_at = reader.offset();
        let bytes = reader.len()?;
        let end = reader.offset();
        if field.is_list {
            self.tally.count()?;
        }
        let depth = if inner.is_value { self.tally.deeper(depth)? } else { depth };
        let within = Reader::within(bytes, end);
        let shrink = match inner.unit {
            None => self.fields(inner, within, depth)?.shrink,
            Some(unit) => {
                let opened = self.tally.open(unit);
                let shrink = self.fields(inner, within, depth)?.shrink;
                if self.tally.close(&opened) {
                    self.tally.cut(start, end);
                    return Ok(end - start);
                }
                shrink
            }
        };
        if shrink == 0 {
            return Ok(0);
        }
        let payload_at = end - bytes.len();
        let length = bytes.len() - shrink;
        self.tally.relength(len_at, payload_at, length);
        Ok(shrink + (payload_at - len_at) - varint_len(length as u64))
    }

    #[inline]
    fn text(&mut self, field: &Field, reader: &mut Reader<'_>) -> Result<(), Stop> {
        let bytes = reader.len()?;
        if field.is_list {
            self.tally.count()?;
        }
        // Most text is ASCII, and short: asking that first is twice as fast.
        if bytes.is_ascii() || std::str::from_utf8(bytes).is_ok() {
            return Ok(());
        }
        self.tally.fault(reader.offset() - bytes.len(), format_args!("{} is not UTF-8", field.name))
    }

    #[inline]
    fn id(&mut self, field: &Field, rule: Id, reader: &mut Reader<'_>) -> Result<(), Stop> {
        let bytes = reader.len()?;
        let offset = reader.offset() - bytes.len();
        if bytes.len() != rule.len {
            if bytes.is_empty() && !rule.is_required {
                return Ok(());
            }
            let (name, len, was) = (field.name, rule.len, bytes.len());
            return self.tally.fault(offset, format_args!("{name} must be {len} bytes, was {was}"));
        }
        if rule.is_required && bytes.iter().all(|byte| *byte == 0) {
            return self.tally.fault(offset, format_args!("{} must not be all zero", field.name));
        }
        if rule.is_own_trace {
            self.tally.of_trace(|| TraceId::from_bytes(bytes));
        }
        Ok(())
    }

    #[cold]
    fn missing(&mut self, message: &'static Message, seen: u32, offset: usize) -> Result<(), Stop> {
        let absent = |field: &&Field| message.required & !seen & field.bit() != 0;
        match message.fields.iter().find(absent) {
            Some(field) => self.tally.fault(offset, format_args!("{} is missing", field.name)),
            None => Ok(()),
        }
    }
}

/// A list of numbers may also come as one run of bytes; any other form is wrong.
#[cold]
fn packed(field: &Field, wire: u8, start: usize, reader: &mut Reader<'_>) -> Result<(), Stop> {
    if wire != LEN || !field.is_list || field.wire == LEN {
        return Err(Stop::Malformed { offset: start, why: "a field has the wrong wire type" });
    }
    let bytes = reader.len()?;
    let mut values = Reader::within(bytes, reader.offset());
    while !values.is_empty() {
        values.value(u32::from(field.number), field.wire)?;
    }
    Ok(())
}
