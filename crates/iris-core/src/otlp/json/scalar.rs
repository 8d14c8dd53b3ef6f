//! Single values of OTLP/JSON: what each form may look like, and its bytes on the wire.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::super::Stop;
use super::super::schema::{Field, Id, Kind};
use super::super::wire::put_varint;
use super::Json;
use super::number;

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
        let digits: Option<Vec<u8>> =
            text.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
        let Some(digits) = digits else {
            return self.tally.fault(offset, format_args!("{} is not hex", field.name));
        };
        let wanted = rule.len * 2;
        if digits.len() != wanted {
            let (name, was) = (field.name, digits.len());
            return self.tally.fault(offset, format_args!("{name} must be {wanted} hex digits, was {was}"));
        }
        if rule.is_required && digits.iter().all(|digit| *digit == 0) {
            return self.tally.fault(offset, format_args!("{} must not be all zero", field.name));
        }
        let bytes: Vec<u8> =
            digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
        self.run(&bytes);
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
            put_varint(out, value);
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if let Some(out) = &mut self.out {
            out.extend_from_slice(bytes);
        }
    }

    /// Bytes with their length in front.
    fn run(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64);
        self.bytes(bytes);
    }

    /// Begins a run whose length is not known yet.
    pub(super) fn begin(&self) -> usize {
        self.out.as_ref().map_or(0, Vec::len)
    }

    /// Puts the length in front of a run that began at `start`.
    pub(super) fn finish(&mut self, start: usize) {
        let Some(out) = &mut self.out else { return };
        let mut length = Vec::with_capacity(10);
        put_varint(&mut length, (out.len() - start) as u64);
        out.splice(start..start, length);
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
