//! OTLP/JSON, read by the same tables as protobuf: walked before it is acknowledged, written as protobuf to be
//! decoded or to be forwarded over gRPC.
//!
//! Lenient in what OTLP lets senders do: unknown members are passed over at every level, `null` is absence,
//! ids are hex in any case, 64-bit integers are numbers or strings, enums are numbers or names, doubles may be
//! strings, bytes may be base64 of either alphabet. A member that comes twice is read twice, as in protobuf. A
//! member of the wrong form rejects its span or record, not the request.
//! Source: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>.

mod lex;
mod number;
mod scalar;

use self::lex::Lexer;
use super::schema::{Field, Kind, Message, request};
use super::tally::Tally;
use super::wire::LEN;
use super::writer::Writer;
use super::{Limits, Stop, Walked};
use crate::model::Lane;

/// Walks a JSON request.
pub(super) fn walk(lane: Lane, body: &[u8], limits: &Limits) -> Result<Walked, Stop> {
    walk_with(lane, body, Tally::new(*limits))
}

/// The same with a tally of one's own.
pub(super) fn walk_with<'a>(lane: Lane, body: &'a [u8], tally: Tally<'a>) -> Result<Walked, Stop> {
    let mut json = Json::new(body, tally, None)?;
    let seen = json.request(lane)?;
    if seen == 0 && body.len() > EMPTY_LEN_MAX {
        json.tally.warn(match lane {
            Lane::Traces => "the request has no resourceSpans, nothing was taken",
            Lane::Logs => "the request has no resourceLogs, nothing was taken",
            Lane::Metrics => "the request has no resourceMetrics, nothing was taken",
        });
    }
    Ok(json.tally.finish(body))
}

/// `{}` and some white space ask for nothing; more that asks for nothing is worth a warning.
const EMPTY_LEN_MAX: usize = 8;

/// Writes a JSON request as protobuf.
pub(super) fn to_protobuf(lane: Lane, body: &[u8]) -> Result<Vec<u8>, Stop> {
    let mut json = Json::new(body, Tally::strict(), Some(Writer::default()))?;
    json.request(lane)?;
    Ok(json.out.map(Writer::into_bytes).unwrap_or_default())
}

struct Json<'a> {
    lexer: Lexer<'a>,
    tally: Tally<'a>,
    /// Where protobuf is written; a walk writes none.
    out: Option<Writer>,
}

impl<'a> Json<'a> {
    fn new(body: &'a [u8], tally: Tally<'a>, out: Option<Writer>) -> Result<Self, Stop> {
        let text = std::str::from_utf8(body)
            .map_err(|error| Stop::Malformed { offset: error.valid_up_to(), why: "the request is not UTF-8" })?;
        Ok(Self { lexer: Lexer::new(text), tally, out })
    }

    fn request(&mut self, lane: Lane) -> Result<u32, Stop> {
        if self.lexer.peek() != Some(b'{') {
            return Err(self.lexer.stop("the request is not a JSON object"));
        }
        let seen = self.members(request(lane), 0)?;
        self.lexer.end()?;
        Ok(seen)
    }

    /// An object as a message, its brace next. Returns the bits of the fields it has.
    fn members(&mut self, message: &'static Message, depth: usize) -> Result<u32, Stop> {
        self.lexer.take(b'{');
        let (mut seen, mut first) = (0, true);
        while let Some(key) = self.lexer.key(first)? {
            first = false;
            match message.named(&key.text()) {
                None => self.lexer.skip()?,
                Some(_) if self.lexer.peek() == Some(b'n') => self.lexer.word("null")?,
                Some(field) => {
                    seen |= field.bit();
                    self.field(field, depth)?;
                }
            }
        }
        let missing = |field: &&Field| message.required & !seen & field.bit() != 0;
        if let Some(field) = message.fields.iter().find(missing) {
            self.tally.fault(self.lexer.offset(), format_args!("{} is missing", field.name))?;
        }
        Ok(seen)
    }

    fn field(&mut self, field: &'static Field, depth: usize) -> Result<(), Stop> {
        if !field.is_list {
            return self.value(field, depth);
        }
        if self.lexer.peek() != Some(b'[') {
            return self.wrong(field, "an array");
        }
        self.lexer.take(b'[');
        match field.kind {
            Kind::Message(inner) if inner.unit.is_some() => self.units(field, depth),
            Kind::Message(_) | Kind::Text => self.elements(field, depth),
            _ => self.packed(field),
        }
    }

    /// The elements of an array of units: those rejected go, each with one comma.
    fn units(&mut self, field: &'static Field, depth: usize) -> Result<(), Stop> {
        let (mut first, mut kept_before, mut cut_comma) = (true, false, false);
        while let Some(comma) = self.lexer.element(first)? {
            if cut_comma {
                self.tally.cut(comma, comma + 1);
            }
            cut_comma = false;
            let rejected = self.unit(field, depth)?;
            if let Some((start, end)) = rejected {
                if kept_before {
                    self.tally.cut(comma, comma + 1);
                } else {
                    cut_comma = true;
                }
                self.tally.cut(start, end);
            } else {
                kept_before = true;
            }
            first = false;
        }
        Ok(())
    }

    /// One unit; where it lies when it was rejected.
    fn unit(&mut self, field: &'static Field, depth: usize) -> Result<Option<(usize, usize)>, Stop> {
        let is_object = match self.lexer.peek() {
            Some(b'n') => return self.lexer.word("null").map(|()| None),
            first => first == Some(b'{'),
        };
        let start = self.lexer.offset();
        let Kind::Message(message) = field.kind else { return Ok(None) };
        let Some(unit) = message.unit else { return Ok(None) };
        self.tally.count()?;
        let opened = self.tally.open(unit);
        if is_object {
            self.value(field, depth)?;
        } else {
            self.tally.fault(start, format_args!("it is not an object"))?;
            self.lexer.skip()?;
        }
        let end = self.lexer.offset();
        Ok(self.tally.close(&opened).then_some((start, end)))
    }

    fn elements(&mut self, field: &'static Field, depth: usize) -> Result<(), Stop> {
        let holds_values = matches!(field.kind, Kind::Message(message) if message.is_value);
        let mut first = true;
        while self.lexer.element(first)?.is_some() {
            first = false;
            if self.lexer.peek() == Some(b'n') {
                self.lexer.word("null")?;
                if holds_values {
                    // An absent element of an array value keeps its place.
                    self.tally.count()?;
                    self.key(field, LEN);
                    self.varint(0);
                }
                continue;
            }
            self.tally.count()?;
            self.value(field, depth)?;
        }
        Ok(())
    }

    /// An array of numbers, written as one run of bytes.
    fn packed(&mut self, field: &'static Field) -> Result<(), Stop> {
        self.key(field, LEN);
        let begun = self.begin();
        let mut first = true;
        while self.lexer.element(first)?.is_some() {
            first = false;
            if self.lexer.peek() == Some(b'n') {
                self.lexer.word("null")?;
            } else {
                self.scalar(field)?;
            }
        }
        self.finish(begun);
        Ok(())
    }

    /// A single value with its key.
    fn value(&mut self, field: &'static Field, depth: usize) -> Result<(), Stop> {
        let Kind::Message(message) = field.kind else {
            self.key(field, field.wire);
            return self.scalar(field);
        };
        if self.lexer.peek() != Some(b'{') {
            return self.wrong(field, "an object");
        }
        let depth = if message.is_value { self.tally.deeper(depth)? } else { depth };
        self.key(field, LEN);
        let begun = self.begin();
        self.members(message, depth)?;
        self.finish(begun);
        Ok(())
    }
}
