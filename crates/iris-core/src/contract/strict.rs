//! Arguments are read strictly: an unknown name is refused with the valid ones, never ignored.

use serde_json::Value;

use super::plain::reason;
use super::{Error, schema_once};
use crate::model::ToolCall;
use crate::text::is_blank;

/// How deep arguments may be nested. What is stored is read back by a parser that stops at 128, inside a record of
/// its own levels.
const DEPTH_MAX: usize = 64;

/// What a tool takes, beyond its shape.
pub trait Arguments {
    /// Refuses values that cannot be meant.
    ///
    /// # Errors
    /// `IRIS_INVALID_ARGUMENT` that names the field.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// Reads a tool's arguments.
///
/// # Errors
/// `IRIS_INVALID_ARGUMENT` that names the unknown arguments and the valid ones, or the field that is missing,
/// malformed, of the wrong type or of a value that cannot be meant. Names are checked in every nested object whose
/// shape is fixed.
pub fn parse<A: serde::de::DeserializeOwned + schemars::JsonSchema + Arguments + 'static>(
    arguments: Value,
) -> Result<A, Error> {
    let arguments = if arguments.is_null() { Value::Object(serde_json::Map::new()) } else { arguments };
    if !arguments.is_object() {
        return Err(Error::invalid_argument("", "arguments must be a JSON object"));
    }
    if depth(&arguments) > DEPTH_MAX {
        return Err(Error::invalid_argument("", format!("arguments are nested deeper than {DEPTH_MAX} levels")));
    }
    check_names(&schema_once::<A>(), &arguments, "")?;
    let read: A = serde_path_to_error::deserialize(arguments).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { "" } else { path.as_str() };
        Error::invalid_argument(field, reason(&error.into_inner().to_string()))
    })?;
    read.check()?;
    Ok(read)
}

/// Refuses a number that cannot be meant.
pub(super) fn not_negative(field: &str, value: Option<f64>) -> Result<(), Error> {
    match value {
        Some(value) if !value.is_finite() || value < 0.0 => {
            Err(Error::invalid_argument(field, "a finite number, zero or more"))
        }
        _ => Ok(()),
    }
}

/// Refuses an amount that allows nothing.
pub(super) fn positive(field: &str, value: Option<f64>) -> Result<(), Error> {
    match value {
        Some(value) if !value.is_finite() || value <= 0.0 => {
            Err(Error::invalid_argument(field, "a finite number above zero"))
        }
        _ => Ok(()),
    }
}

/// Refuses a whole number outside its range; `most` at the top of the type means none.
pub(super) fn within(field: &str, value: Option<i64>, least: i64, most: i64) -> Result<(), Error> {
    match value {
        Some(value) if value < least || value > most => {
            let range = if most == i64::MAX { format!("from {least}") } else { format!("from {least} to {most}") };
            Err(Error::invalid_argument(field, format!("{value}; a whole number {range}")))
        }
        _ => Ok(()),
    }
}

/// Refuses a name that shows nothing: every lookup by it, and every rule that reads it, would be blind.
pub(super) fn not_blank(field: &str, name: &str) -> Result<(), Error> {
    if is_blank(name) { Err(Error::invalid_argument(field, "must not be blank")) } else { Ok(()) }
}

/// Refuses a tool call without a name or with a time that cannot be meant.
pub(super) fn tool_calls(calls: Option<&[ToolCall]>) -> Result<(), Error> {
    calls.unwrap_or_default().iter().enumerate().try_for_each(|(index, call)| {
        not_blank(&format!("tool_calls[{index}].tool_name"), &call.tool_name)?;
        not_negative(&format!("tool_calls[{index}].latency_ms"), call.latency_ms)
    })
}

/// Every unknown name in the first object that has any, outermost first.
fn check_names(schema: &Value, value: &Value, place: &str) -> Result<(), Error> {
    match value {
        Value::Object(fields) => {
            let Some(properties) = variants(schema).find_map(|one| one.get("properties")).and_then(Value::as_object)
            else {
                return Ok(());
            };
            let closed = variants(schema).any(|one| one.get("additionalProperties") == Some(&Value::Bool(false)));
            let unknown: Vec<String> =
                fields.keys().filter(|name| !properties.contains_key(*name)).map(|name| printable(name)).collect();
            if closed && !unknown.is_empty() {
                return Err(Error::unknown_argument(&unknown, place, properties.keys().cloned().collect()));
            }
            fields.iter().try_for_each(|(name, field)| match properties.get(name) {
                Some(inner) => check_names(inner, field, &join(place, name)),
                None => Ok(()),
            })
        }
        Value::Array(items) => {
            let Some(inner) = variants(schema).find_map(|one| one.get("items")) else { return Ok(()) };
            items
                .iter()
                .enumerate()
                .try_for_each(|(index, item)| check_names(inner, item, &format!("{place}[{index}]")))
        }
        _ => Ok(()),
    }
}

/// The schema itself and the alternatives of an optional one.
fn variants(schema: &Value) -> impl Iterator<Item = &Value> {
    std::iter::once(schema).chain(schema.get("anyOf").and_then(Value::as_array).into_iter().flatten())
}

/// Levels of objects and arrays; the parser that made the value has bounded them.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn join(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

/// A name as it may stand in a message: short and without control characters.
pub fn printable(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_control()).take(64).collect()
}
