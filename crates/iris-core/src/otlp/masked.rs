//! A body written anew, every text in it asked about.
//!
//! Which fields hold text is read off the tables of [`schema`](super::schema), so there is no place that could be
//! forgotten: strings, bytes, numbers inside values, keys. What the tables do not know is left out, because nobody can
//! say what stands there. JSON comes out as protobuf.

use serde_json::Value;

use super::schema::{Field, Kind, Message, Unit, is_attribute, request};
use super::value::{any_value, attribute};
use super::wire::{FIXED64, LEN, Reader, VARINT};
use super::writer::Writer;
use super::{Encoding, Refusal, Stop, decode};
use crate::model::{Attributes, Lane};

/// What is asked of the texts of a body.
pub struct Texts<'a> {
    /// What is to stand in place of a text; none when it may stay.
    pub text: &'a dyn Fn(&str) -> Option<String>,
    /// What is to stand in place of the value of a named attribute, of which every text was asked about by itself; none
    /// when it may stay. A log record's body has no name.
    pub value: &'a dyn Fn(&str, &Value) -> Option<Value>,
    /// Whether an attribute of a span, of its events and links, or of a log record may be kept at all.
    pub keeps: &'a dyn Fn(&str) -> bool,
    /// What stands in place of bytes that are no text.
    pub unread: &'a str,
}

/// The name under which [`Texts::keeps`] is asked about a log record's body.
pub const BODY: &str = "body";

/// A body that was accepted, as protobuf, with what `texts` say in it.
///
/// # Errors
/// When the body is not a request of that lane.
pub fn masked(lane: Lane, encoding: Encoding, body: &[u8], texts: &Texts<'_>) -> Result<Vec<u8>, Refusal> {
    let body = decode::protobuf(lane, encoding, body)?;
    let mut masking = Masking { texts, out: Writer::default() };
    masking.fields(request(lane), Reader::new(&body), Place::default())?;
    Ok(masking.out.into_bytes())
}

/// Where a message stands.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// In a span or a log record, whose attributes may be unwanted.
    in_item: bool,
    /// In a value of an attribute or a log record's body.
    in_value: bool,
}

struct Masking<'a> {
    texts: &'a Texts<'a>,
    out: Writer,
}

impl Masking<'_> {
    fn fields(&mut self, message: &'static Message, mut reader: Reader<'_>, place: Place) -> Result<(), Stop> {
        while !reader.is_empty() {
            let (number, wire) = reader.key()?;
            let Some(field) = message.field(number) else {
                reader.value(number, wire)?;
                continue;
            };
            match field.kind {
                Kind::Message(inner) if wire == LEN => {
                    let bytes = reader.len()?;
                    self.message(field, inner, Reader::within(bytes, reader.offset()), place)?;
                }
                Kind::Text if wire == LEN => {
                    let bytes = reader.len()?;
                    let offset = reader.offset() - bytes.len();
                    let text = std::str::from_utf8(bytes)
                        .map_err(|_| Stop::Malformed { offset, why: "a string is not UTF-8" })?;
                    let masked = (self.texts.text)(text);
                    self.run(field, masked.as_deref().unwrap_or(text).as_bytes());
                }
                Kind::Bytes if wire == LEN => {
                    let bytes = reader.len()?;
                    let masked = match std::str::from_utf8(bytes) {
                        Ok(text) => (self.texts.text)(text),
                        Err(_) => Some(self.texts.unread.to_owned()),
                    };
                    self.run(field, masked.as_deref().map_or(bytes, str::as_bytes));
                }
                Kind::Id(_) if wire == LEN => {
                    let bytes = reader.len()?;
                    self.run(field, bytes);
                }
                Kind::Int64 | Kind::Double if message.is_value && wire == field.wire => {
                    let value = reader.value(number, wire)?;
                    let bits = if wire == VARINT { value.varint() } else { value.fixed64() };
                    self.number(message, field, bits);
                }
                _ => self.copy(number, wire, &mut reader)?,
            }
        }
        Ok(())
    }

    fn message(
        &mut self,
        field: &'static Field,
        inner: &'static Message,
        within: Reader<'_>,
        place: Place,
    ) -> Result<(), Stop> {
        if !place.in_value && is_attribute(inner) {
            return self.attribute(field, inner, within, place);
        }
        if !place.in_value && inner.is_value {
            return self.body(field, inner, within);
        }
        let in_item = place.in_item || matches!(inner.unit, Some(Unit::Span | Unit::Record));
        self.key(field, LEN);
        let begun = self.out.begin();
        self.fields(inner, within, Place { in_item, ..place })?;
        self.out.finish(begun);
        Ok(())
    }

    /// A named attribute: its texts one by one, then the value as a whole, because what a number is often stands in the
    /// name of the field or beside it.
    fn attribute(
        &mut self,
        field: &'static Field,
        inner: &'static Message,
        within: Reader<'_>,
        place: Place,
    ) -> Result<(), Stop> {
        let mut sent = Attributes::new();
        attribute(&mut sent, within)?;
        if place.in_item && sent.keys().next().is_some_and(|key| !(self.texts.keeps)(key)) {
            return Ok(());
        }
        let bytes = self.apart(inner, within)?;
        let mut read = Attributes::new();
        attribute(&mut read, Reader::new(&bytes))?;
        let replaced = read.into_iter().next().and_then(|(key, value)| {
            let value = (self.texts.value)(&key, &value)?;
            Some((key, value))
        });
        self.key(field, LEN);
        let begun = self.out.begin();
        match replaced {
            Some((key, value)) => self.pair(&key, &value),
            None => self.out.bytes(&bytes),
        }
        self.out.finish(begun);
        Ok(())
    }

    /// The body of a log record.
    fn body(&mut self, field: &'static Field, inner: &'static Message, within: Reader<'_>) -> Result<(), Stop> {
        if !(self.texts.keeps)(BODY) {
            return Ok(());
        }
        let bytes = self.apart(inner, within)?;
        let mut read = Value::Null;
        any_value(&mut read, Reader::new(&bytes))?;
        let replaced = (self.texts.value)("", &read);
        self.key(field, LEN);
        let begun = self.out.begin();
        match replaced {
            Some(value) => self.any(&value),
            None => self.out.bytes(&bytes),
        }
        self.out.finish(begun);
        Ok(())
    }

    /// A value with its texts asked about, by itself.
    fn apart(&self, message: &'static Message, within: Reader<'_>) -> Result<Vec<u8>, Stop> {
        let mut inner = Masking { texts: self.texts, out: Writer::default() };
        inner.fields(message, within, Place { in_value: true, in_item: false })?;
        Ok(inner.out.into_bytes())
    }

    /// A number of a value: as it is, or as the text that takes its place.
    fn number(&mut self, value: &'static Message, field: &'static Field, bits: u64) {
        let written = match field.kind {
            Kind::Double => f64::from_bits(bits).to_string(),
            _ => bits.cast_signed().to_string(),
        };
        let masked = (self.texts.text)(&written);
        match (masked, value.field(STRING)) {
            (Some(masked), Some(string)) => self.run(string, masked.as_bytes()),
            _ if field.wire == VARINT => {
                self.key(field, VARINT);
                self.out.varint(bits);
            }
            _ => {
                self.key(field, FIXED64);
                self.out.bytes(&bits.to_le_bytes());
            }
        }
    }

    fn copy(&mut self, number: u32, wire: u8, reader: &mut Reader<'_>) -> Result<(), Stop> {
        let value = reader.value(number, wire)?;
        self.out.varint(u64::from(number) << 3 | u64::from(wire));
        match wire {
            VARINT => self.out.varint(value.varint()),
            FIXED64 => self.out.bytes(&value.fixed64().to_le_bytes()),
            LEN => {
                self.out.varint(value.bytes().len() as u64);
                self.out.bytes(value.bytes());
            }
            _ => self.out.bytes(&value.fixed32().to_le_bytes()),
        }
        Ok(())
    }

    fn key(&mut self, field: &Field, wire: u8) {
        self.out.varint(u64::from(field.number) << 3 | u64::from(wire));
    }

    fn run(&mut self, field: &Field, bytes: &[u8]) {
        self.key(field, LEN);
        self.out.varint(bytes.len() as u64);
        self.out.bytes(bytes);
    }

    /// The fields of a `KeyValue`.
    fn pair(&mut self, key: &str, value: &Value) {
        self.text(1, key);
        self.within(2, |masking| masking.any(value));
    }

    /// The fields of an `AnyValue`.
    fn any(&mut self, value: &Value) {
        match value {
            Value::Null => {}
            Value::Bool(value) => {
                self.out.varint(2 << 3);
                self.out.varint(u64::from(*value));
            }
            Value::Number(number) => match number.as_i64() {
                Some(integer) => {
                    self.out.varint(3 << 3);
                    self.out.varint(integer.cast_unsigned());
                }
                None => {
                    self.out.varint(4 << 3 | u64::from(FIXED64));
                    self.out.bytes(&number.as_f64().unwrap_or_default().to_le_bytes());
                }
            },
            Value::String(text) => self.text(STRING, text),
            Value::Array(values) => self.within(5, |masking| {
                for value in values {
                    masking.within(1, |masking| masking.any(value));
                }
            }),
            Value::Object(values) => self.within(6, |masking| {
                for (key, value) in values {
                    masking.within(1, |masking| masking.pair(key, value));
                }
            }),
        }
    }

    fn text(&mut self, number: u32, text: &str) {
        self.out.varint(u64::from(number << 3) | u64::from(LEN));
        self.out.varint(text.len() as u64);
        self.out.bytes(text.as_bytes());
    }

    fn within(&mut self, number: u32, write: impl FnOnce(&mut Self)) {
        self.out.varint(u64::from(number << 3) | u64::from(LEN));
        let begun = self.out.begin();
        write(self);
        self.out.finish(begun);
    }
}

/// The field of an `AnyValue` that holds a string.
const STRING: u32 = 1;
