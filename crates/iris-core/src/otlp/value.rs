//! OTLP's `AnyValue` and `KeyValue` as JSON.
//!
//! Bytes become base64, numbers that JSON cannot hold become their names, 64-bit integers stay exact, map
//! values become objects. Of two equal keys the later value counts, at the place of the first.
//! Source: <https://github.com/open-telemetry/opentelemetry-proto/blob/v1.10.0/opentelemetry/proto/common/v1/common.proto>.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::wire::Reader;
use super::{DEPTH_MAX, Stop};
use crate::model::Attributes;

/// Reads one `KeyValue` into `attributes`.
pub(super) fn attribute(attributes: &mut Attributes, fields: Reader<'_>) -> Result<(), Stop> {
    key_value(attributes, fields, 1)
}

/// Merges one `AnyValue` at depth 1 into `value`, as protobuf merges a message that comes twice.
pub(super) fn any_value(value: &mut Value, fields: Reader<'_>) -> Result<(), Stop> {
    merge(value, fields, 1)
}

fn key_value(into: &mut Map<String, Value>, mut fields: Reader<'_>, depth: usize) -> Result<(), Stop> {
    let mut key = "";
    let mut value = Value::Null;
    while let Some((number, field)) = fields.field()? {
        match number {
            1 => key = field.text(fields.offset())?,
            2 => merge(&mut value, field.message(fields.offset()), depth)?,
            _ => {}
        }
    }
    into.insert(key.to_owned(), value);
    Ok(())
}

fn merge(value: &mut Value, mut fields: Reader<'_>, depth: usize) -> Result<(), Stop> {
    if depth > DEPTH_MAX {
        return Err(Stop::TooDeep { max: DEPTH_MAX });
    }
    while let Some((number, field)) = fields.field()? {
        let end = fields.offset();
        match number {
            1 => *value = Value::String(field.text(end)?.to_owned()),
            2 => *value = Value::Bool(field.varint() != 0),
            3 => *value = Value::from(field.varint().cast_signed()),
            4 => *value = double(f64::from_bits(field.fixed64())),
            5 => elements(value, field.message(end), depth)?,
            6 => members(value, field.message(end), depth)?,
            7 => *value = Value::String(STANDARD.encode(field.bytes())),
            // An index into a table that only profiles have: to be read as absent.
            8 => *value = Value::Null,
            _ => {}
        }
    }
    Ok(())
}

fn elements(value: &mut Value, mut fields: Reader<'_>, depth: usize) -> Result<(), Stop> {
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    let Value::Array(list) = value else { return Ok(()) };
    while let Some((number, field)) = fields.field()? {
        if number == 1 {
            let mut element = Value::Null;
            merge(&mut element, field.message(fields.offset()), depth + 1)?;
            list.push(element);
        }
    }
    Ok(())
}

fn members(value: &mut Value, mut fields: Reader<'_>, depth: usize) -> Result<(), Stop> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(map) = value else { return Ok(()) };
    while let Some((number, field)) = fields.field()? {
        if number == 1 {
            key_value(map, field.message(fields.offset()), depth + 1)?;
        }
    }
    Ok(())
}

fn double(number: f64) -> Value {
    match serde_json::Number::from_f64(number) {
        Some(number) => Value::Number(number),
        None if number.is_nan() => Value::from("NaN"),
        None if number > 0.0 => Value::from("Infinity"),
        None => Value::from("-Infinity"),
    }
}
