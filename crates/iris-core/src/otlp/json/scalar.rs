//! Single values of OTLP/JSON: what each form may look like, and its bytes on the wire.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::super::Stop;
use super::super::schema::{Field, Id, Kind};
use super::super::writer::{Begun, Writer};
use super::Json;
use super::number;
use crate::model::TraceId;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// An integer's form on the wire.
enum Integer {
    Varint(u64),
    Four(u32),
    Eight(u64),
}

impl Json<'_> {
    /// A value that is no message, without its key.
    pub(super) fn scalar(&mut self, field: &'static Field) -> Result<(), Stop> {
        let first = self.lexer.peek();
        let is_string = first == Some(b'"');
        match field.kind {
            Kind::Bool if matches!(first, Some(b't' | b'f')) => {
                let is_true = first == Some(b't');
                self.lexer.word(if is_true { "true" } else { "false" })?;
                self.varint(is_true.into());
                Ok(())
            }
            Kind::Bool => self.wrong(field, "true or false"),
            Kind::Text if is_string => {
                let text = self.lexer.string()?;
                if self.out.is_some() {
                    self.run(text.text().as_bytes());
                }
                Ok(())
            }
            Kind::Text => self.wrong(field, "a string"),
            Kind::Bytes if is_string => self.base64(field),
            Kind::Bytes => self.wrong(field, "base64"),
            Kind::Id(rule) if is_string => self.id(field, rule),
            Kind::Id(_) => self.wrong(field, "a string of hex digits"),
            Kind::Double => self.double(field),
            Kind::Message(_) => Ok(()),
            _ => self.integer(field),
        }
    }

    fn base64(&mut self, field: &'static Field) -> Result<(), Stop> {
        let offset = self.lexer.offset();
        let text = self.lexer.string()?.text();
        // The URL-safe alphabet differs in two characters.
        let standard = text.replace('-', "+").replace('_', "/");
        match BASE64.decode(standard) {
            Ok(bytes) => {
                self.run(&bytes);
                Ok(())
            }
            Err(_) => self.tally.fault(offset, format_args!("{} is not base64", field.name)),
        }
    }

    fn id(&mut self, field: &'static Field, rule: Id) -> Result<(), Stop> {
        let offset = self.lexer.offset();
        let text = self.lexer.string()?.text();
        if text.is_empty() && !rule.is_required {
            self.run(&[]);
            return Ok(());
        }
        if !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return self.tally.fault(offset, format_args!("{} is not hex", field.name));
        }
        let wanted = rule.len * 2;
        if text.len() != wanted {
            let (name, was) = (field.name, text.len());
            return self.tally.fault(offset, format_args!("{name} must be {wanted} hex digits, was {was}"));
        }
        if rule.is_required && text.bytes().all(|digit| digit == b'0') {
            return self.tally.fault(offset, format_args!("{} must not be all zero", field.name));
        }
        let digit = |digit: u8| char::from(digit).to_digit(16).unwrap_or_default() as u8;
        let id = text.as_bytes().chunks(2).map(|pair| pair.iter().fold(0, |byte, hex| byte << 4 | digit(*hex)));
        if rule.is_own_trace {
            // In capital letters too, in which no trace of ours is written.
            self.tally.of_trace(|| TraceId::from_bytes(&id.clone().collect::<Vec<u8>>()));
        }
        self.varint(rule.len as u64);
        if self.out.is_some() {
            for byte in id {
                self.bytes(&[byte]);
            }
        }
        Ok(())
    }

    fn double(&mut self, field: &'static Field) -> Result<(), Stop> {
        let offset = self.lexer.offset();
        let number = match self.lexer.peek() {
            Some(b'"') => number::double(&self.lexer.string()?.text()),
            Some(b'-' | b'0'..=b'9') => number::double(self.lexer.number()?),
            _ => return self.wrong(field, "a number"),
        };
        match number {
            Some(number) => {
                self.bytes(&number.to_le_bytes());
                Ok(())
            }
            None => self.tally.fault(offset, format_args!("{} is not a number", field.name)),
        }
    }

    fn integer(&mut self, field: &'static Field) -> Result<(), Stop> {
        let offset = self.lexer.offset();
        let integer = match self.lexer.peek() {
            Some(b'"') => {
                let text = self.lexer.string()?.text();
                named(field.kind, &text).or_else(|| number::integer(&text))
            }
            Some(b'-' | b'0'..=b'9') => number::integer(self.lexer.number()?),
            _ => return self.wrong(field, "an integer"),
        };
        match integer.and_then(|integer| on_wire(field.kind, integer)) {
            Some(Integer::Varint(value)) => self.varint(value),
            Some(Integer::Four(value)) => self.bytes(&value.to_le_bytes()),
            Some(Integer::Eight(value)) => self.bytes(&value.to_le_bytes()),
            None => {
                let what = format_args!("{} is not an integer of its range", field.name);
                return self.tally.fault(offset, what);
            }
        }
        Ok(())
    }

    /// A value of another form than its field's: passed over.
    pub(super) fn wrong(&mut self, field: &'static Field, expected: &str) -> Result<(), Stop> {
        self.tally.fault(self.lexer.offset(), format_args!("{} is not {expected}", field.name))?;
        self.lexer.skip()
    }

    pub(super) fn key(&mut self, field: &'static Field, wire: u8) {
        self.varint(u64::from(field.number) << 3 | u64::from(wire));
    }

    pub(super) fn varint(&mut self, value: u64) {
        if let Some(out) = &mut self.out {
            out.varint(value);
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if let Some(out) = &mut self.out {
            out.bytes(bytes);
        }
    }

    /// Bytes with their length in front.
    fn run(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64);
        self.bytes(bytes);
    }

    /// Begins a run whose length is not known yet.
    pub(super) fn begin(&self) -> Option<Begun> {
        self.out.as_ref().map(Writer::begin)
    }

    /// Puts the length in front of it.
    pub(super) fn finish(&mut self, begun: Option<Begun>) {
        if let (Some(out), Some(begun)) = (&mut self.out, begun) {
            out.finish(begun);
        }
    }
}

/// The number of an enum's name.
fn named(kind: Kind, text: &str) -> Option<i128> {
    let Kind::Enum(names) = kind else { return None };
    names.iter().find(|(name, _)| *name == text).map(|(_, number)| i128::from(*number))
}

/// An integer as its field's form, none when it does not fit.
fn on_wire(kind: Kind, integer: i128) -> Option<Integer> {
    Some(match kind {
        Kind::Int64 => Integer::Varint(i64::try_from(integer).ok()?.cast_unsigned()),
        Kind::Int32 | Kind::Enum(_) => Integer::Varint(i64::from(i32::try_from(integer).ok()?).cast_unsigned()),
        Kind::Uint32 => Integer::Varint(u32::try_from(integer).ok()?.into()),
        Kind::Uint64 => Integer::Varint(u64::try_from(integer).ok()?),
        Kind::Sint32 => {
            let value = i32::try_from(integer).ok()?;
            Integer::Varint((value << 1 ^ value >> 31).cast_unsigned().into())
        }
        Kind::Fixed32 => Integer::Four(u32::try_from(integer).ok()?),
        Kind::Fixed64 => Integer::Eight(u64::try_from(integer).ok()?),
        Kind::Sfixed64 => Integer::Eight(i64::try_from(integer).ok()?.cast_unsigned()),
        _ => return None,
    })
}
