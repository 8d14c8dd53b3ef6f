//! Which events a logs request speaks of, found without decoding it.

use super::decode::{each, protobuf};
use super::wire::Reader;
use super::{Encoding, Refusal, Stop};
use crate::model::Lane;

/// Whether any record of a logs request that was accepted is an event that `wants` names: tells apart the
/// requests that are worth keeping when nobody but the dialects would read them. Asks once a record, with the
/// name that [`decode_logs`](super::decode_logs) would give it, until the answer is yes.
///
/// # Errors
/// When the body is not a logs request.
pub fn has_log_event(encoding: Encoding, body: &[u8], wants: &mut dyn FnMut(&str) -> bool) -> Result<bool, Refusal> {
    let body = protobuf(Lane::Logs, encoding, body)?;
    let mut found = false;
    each(Reader::new(&body), 1, &mut |resource| {
        each(resource, 2, &mut |scope| {
            each(scope, 2, &mut |record| {
                found = found || wants(event_name(record)?);
                Ok(())
            })
        })
    })?;
    Ok(found)
}

/// A record's `event_name` when it names an event, else its attribute `event.name`, else nothing.
fn event_name(mut record: Reader<'_>) -> Result<&str, Stop> {
    let (mut name, mut attribute) = ("", "");
    while let Some((number, value)) = record.field()? {
        let end = record.offset();
        match number {
            6 => attribute = event_attribute(value.message(end))?.unwrap_or(attribute),
            12 => name = value.text(end)?,
            _ => {}
        }
    }
    Ok(if names_an_event(name) || attribute.is_empty() { name } else { attribute })
}

/// Whether a record's `event_name` names an event. Rust's `tracing` puts the place in the source there, as
/// `event src/lib.rs:12`, and the event into the attribute.
pub fn names_an_event(event_name: &str) -> bool {
    !event_name.is_empty() && !event_name.starts_with("event ")
}

/// The text of an attribute whose key is `event.name`; empty when it is no text.
fn event_attribute(mut fields: Reader<'_>) -> Result<Option<&str>, Stop> {
    let (mut is_event, mut name) = (false, "");
    while let Some((number, value)) = fields.field()? {
        let end = fields.offset();
        match number {
            1 => is_event = value.bytes() == b"event.name",
            2 => name = last_text(value.message(end), name)?,
            _ => {}
        }
    }
    Ok(is_event.then_some(name))
}

/// The text of a value, `before` when the value has none at all.
fn last_text<'a>(mut fields: Reader<'a>, before: &'a str) -> Result<&'a str, Stop> {
    let mut text = before;
    while let Some((number, value)) = fields.field()? {
        match number {
            1 => text = value.text(fields.offset())?,
            2..=8 => text = "",
            _ => {}
        }
    }
    Ok(text)
}
