//! What may stand at a place of the tree, as its default shows: how names are spelled there, and whether what is
//! written is text.

use serde_json::{Map, Value};

use super::keys;

/// Maps whose names a person chooses and whose values are text; in every other such map what reads as a number is one.
const TEXT_MAPS: &[&str] = &["forward.headers"];

/// Lists whose items are maps of their own; every other list is of texts.
const MAP_LISTS: &[&str] = &["cost.prices"];

/// Lists whose items are maps of texts and, under a plural name, lists of texts.
const ENTRY_LISTS: &[&str] = &["keys"];

/// The units that stand last in names: a key that is not set by default still shows that it is a number.
const UNITS: [&str; 9] = ["_max", "_min", "_ms", "_bytes", "_days", "_usd", "_usd_call", "_usd_day", "_usd_day_tenant"];

/// What may stand at one place.
#[derive(Debug, Clone, Copy)]
pub enum Shape<'a> {
    /// A map with these keys and no other.
    Keys(&'a Map<String, Value>),
    /// A map with names that a person chooses and values that are text.
    Texts,
    /// A list of texts.
    List,
    /// A list of entries.
    Entries,
    /// A map of texts and, under a plural name, lists of texts.
    Entry,
    /// Text, whatever it looks like: a key of digits is no number.
    Text,
    /// What it looks like.
    Any,
}

impl<'a> Shape<'a> {
    /// The shape of the whole tree.
    pub fn of(defaults: &'a Value) -> Self {
        Self::new(defaults, "")
    }

    fn new(default: &'a Value, path: &str) -> Self {
        match default {
            Value::Object(_) if TEXT_MAPS.contains(&path) => Self::Texts,
            Value::Object(fields) if fields.is_empty() => Self::Any,
            Value::Object(fields) => Self::Keys(fields),
            Value::Array(_) if MAP_LISTS.contains(&path) => Self::Any,
            Value::Array(_) if ENTRY_LISTS.contains(&path) => Self::Entries,
            Value::Array(_) => Self::List,
            Value::Null if UNITS.iter().any(|unit| path.ends_with(unit)) => Self::Any,
            Value::Null | Value::String(_) => Self::Text,
            Value::Number(_) | Value::Bool(_) => Self::Any,
        }
    }

    /// The name as it is spelled here, and what stands under it. `path` is the dotted path of this place.
    pub fn field(self, path: &str, name: &str) -> (String, Self) {
        match self {
            Self::Keys(fields) => {
                let name = if fields.contains_key(name) { name.to_owned() } else { keys::to_snake(name) };
                let shape = fields.get(&name).map_or(Self::Any, |inner| Self::new(inner, &join(path, &name)));
                (name, shape)
            }
            Self::Texts => (name.to_owned(), Self::Text),
            Self::Entry => {
                let name = keys::to_snake(name);
                let shape = if name.ends_with('s') { Self::List } else { Self::Text };
                (name, shape)
            }
            Self::List | Self::Entries | Self::Text | Self::Any => (name.to_owned(), Self::Any),
        }
    }

    /// What an item of the list at this place is.
    pub const fn item(self) -> Self {
        match self {
            Self::List => Self::Text,
            Self::Entries => Self::Entry,
            _ => Self::Any,
        }
    }

    /// The dotted key as it is spelled, and what stands there.
    pub fn at(self, key: &str) -> (String, Self) {
        key.split('.').fold((String::new(), self), |(path, shape), name| {
            let (name, inner) = shape.field(&path, name);
            (join(&path, &name), inner)
        })
    }

    /// Text from a variable, a flag or a file as the value that belongs here.
    pub fn typed(self, text: &str) -> Value {
        let as_text = || Value::String(text.to_owned());
        match self {
            Self::Text => as_text(),
            Self::List => serde_json::from_str(text)
                .ok()
                .filter(Value::is_array)
                .unwrap_or_else(|| text.split(',').map(|one| Value::String(one.trim().to_owned())).collect()),
            Self::Any | Self::Keys(_) | Self::Texts | Self::Entries | Self::Entry => {
                serde_json::from_str(text).unwrap_or_else(|_| as_text())
            }
        }
    }
}

/// The dotted path of `name` under `path`.
pub fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
