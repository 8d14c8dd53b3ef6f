//! Reading what a type asks for. Keys that it does not know are left alone: the contract keeps `config` free.

use serde_json::{Map, Value};

use super::{Problem, problem};

/// A key and the other names it goes by.
pub(super) type Names = &'static [&'static str];

/// The first finite number under one of the names.
pub(super) fn number(config: &Map<String, Value>, names: Names, what: &str) -> Result<f64, Problem> {
    let given = || names.iter().filter_map(|name| Some((*name, config.get(*name)?)));
    if let Some(number) = given().find_map(|(_, value)| value.as_f64().filter(|number| number.is_finite())) {
        return Ok(number);
    }
    match given().next() {
        Some((name, _)) => Err(problem(&field(name), format!("must be {what}"))),
        None => Err(missing(names, what)),
    }
}

/// The text under the first of the names that is there.
pub(super) fn text<'a>(config: &'a Map<String, Value>, names: Names, what: &str) -> Result<&'a str, Problem> {
    match names.iter().find_map(|name| Some((*name, config.get(*name)?))) {
        Some((_, Value::String(text))) => Ok(text),
        Some((name, _)) => Err(problem(&field(name), format!("must be {what}"))),
        None => Err(missing(names, what)),
    }
}

/// A key that must be there and is not.
pub(super) fn missing(names: Names, what: &str) -> Problem {
    let name = names.first().copied().unwrap_or_default();
    let others = match names {
        [_, others @ ..] if !others.is_empty() => format!(" (also read: {})", others.join(", ")),
        _ => String::new(),
    };
    let valid = names.iter().map(|name| (*name).to_owned()).collect();
    Problem { valid, ..problem(&field(name), format!("is missing; it must be {what}{others}")) }
}

/// The path of a key.
pub(super) fn field(name: &str) -> String {
    format!("config.{name}")
}
