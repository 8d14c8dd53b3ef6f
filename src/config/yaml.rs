//! YAML (JSON is YAML) as a tree, read by the shapes of the defaults: names get their one spelling, and what belongs
//! to a text stays as it is written, so that a key of digits keeps its zeros.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::shape::{Shape, join};

/// Events (values, beginnings and ends) that all aliases of a text stand for together: six lines that repeat each other would
/// otherwise be read as a million.
const ALIASED_MAX: usize = 10_000;

/// Reads `text` as `shape` says.
///
/// # Errors
/// Where the text is no YAML, or its aliases stand for more than 10,000 values. Never a line of it, which may hold a secret.
pub fn read(text: &str, shape: Shape<'_>) -> Result<Value, String> {
    let mut options = serde_saphyr::Options::default();
    options.alias_limits.max_total_replayed_events = ALIASED_MAX;
    let place = Place { shape, path: String::new() };
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |reader| place.deserialize(reader))
        .map_err(|error| error.without_snippet().to_string())
}

struct Place<'a> {
    shape: Shape<'a>,
    path: String,
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        match self.shape {
            Shape::Keys(_) | Shape::Texts | Shape::List | Shape::Entries | Shape::Entry => reader.deserialize_any(self),
            Shape::Text => reader.deserialize_option(Text),
            Shape::Any => Value::deserialize(reader),
        }
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if matches!(self.shape, Shape::List) { "a list" } else { "a mapping of keys" })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            let (name, shape) = self.shape.field(&self.path, &name);
            let value = entries.next_value_seed(Place { shape, path: join(&self.path, &name) })?;
            if fields.insert(name.clone(), value).is_some() {
                return Err(A::Error::custom(format_args!("`{}` is written twice", join(&self.path, &name))));
            }
        }
        Ok(Value::Object(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        let shape = self.shape.item();
        while let Some(item) = items.next_element_seed(Place { shape, path: self.path.clone() })? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
}

/// A scalar as it is written, or nothing.
struct Text;

impl<'de> Visitor<'de> for Text {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("text")
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_str(self)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
}
