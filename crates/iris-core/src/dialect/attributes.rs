//! One pass over a span's attributes: for every field the key that ranks best, and how values are read.

use serde_json::{Map, Value};

use super::salvage;

/// The most elements an indexed attribute may list.
const ITEMS_MAX: usize = 4096;
/// The most segments of an indexed attribute's name.
const SEGMENTS_MAX: usize = 12;

/// For each of `N` fields the best key that was sent with a value.
pub struct Slots<'a, const N: usize> {
    found: [Option<(u8, &'a str, &'a Value)>; N],
}

impl<'a, const N: usize> Slots<'a, N> {
    /// Asks `place` for every key: which field it fills and how it ranks, 0 first. A key without a value is passed
    /// over, so that an older name may answer.
    pub fn collect(attributes: &'a Map<String, Value>, place: impl Fn(&str) -> Option<(usize, u8)>) -> Self {
        let mut found = [None; N];
        for (key, value) in attributes {
            let Some((field, rank)) = place(key) else { continue };
            let Some(slot) = found.get_mut(field) else { continue };
            let better = slot.is_none_or(|(held, _, _)| rank < held);
            if better && !is_empty(value) {
                *slot = Some((rank, key.as_str(), value));
            }
        }
        Self { found }
    }

    /// The key and value of a field.
    pub fn get(&self, field: usize) -> Option<(&'a str, &'a Value)> {
        self.found.get(field).copied().flatten().map(|(_, key, value)| (key, value))
    }

    /// The key and text of a field.
    pub fn text(&self, field: usize) -> Option<(&'a str, String)> {
        let (key, value) = self.get(field)?;
        Some((key, text(value)?))
    }

    /// The key and count of a field.
    pub fn count(&self, field: usize) -> Option<(&'a str, u64)> {
        let (key, value) = self.get(field)?;
        Some((key, count(value)?))
    }

    /// The key and amount of a field.
    pub fn amount(&self, field: usize) -> Option<(&'a str, f64)> {
        let (key, value) = self.get(field)?;
        Some((key, amount(value)?))
    }
}

/// Whether a value says nothing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => salvage::is_missing(text),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The text of a value: itself, or its JSON; none when there is nothing in it.
pub fn text(value: &Value) -> Option<String> {
    match value {
        _ if is_empty(value) => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// A whole number, zero or more, however it was sent.
pub fn count(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A finite amount, zero or more.
pub fn amount(value: &Value) -> Option<f64> {
    let amount = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    (amount.is_finite() && amount >= 0.0).then_some(amount)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be whole and below 2^53")]
fn whole(number: f64) -> Option<u64> {
    (number >= 0.0 && number.fract() == 0.0 && number < 9_007_199_254_740_992.0).then_some(number as u64)
}

/// The list or tree that was flattened into keys `prefix.0.message.role`, in any order and with holes, or that stands
/// whole under `prefix`.
pub fn indexed(attributes: &Map<String, Value>, prefix: &str) -> Option<Value> {
    let mut tree = Tree::default();
    let mut items = 0;
    for (key, value) in attributes {
        let Some(rest) = key.strip_prefix(prefix) else { continue };
        if rest.is_empty() {
            if !is_empty(value) {
                return Some(salvage::unwrapped(value));
            }
            continue;
        }
        let Some(path) = rest.strip_prefix('.') else { continue };
        if value.is_null() || items >= ITEMS_MAX || !path.starts_with(|first: char| first.is_ascii_digit()) {
            continue;
        }
        items += 1;
        tree.put(path, value);
    }
    (items > 0).then(|| tree.into_value())
}

/// A tree of keys in the making.
#[derive(Default)]
struct Tree<'a> {
    value: Option<&'a Value>,
    branches: Vec<(&'a str, Tree<'a>)>,
}

impl<'a> Tree<'a> {
    fn put(&mut self, path: &'a str, value: &'a Value) {
        let mut node = self;
        for segment in path.splitn(SEGMENTS_MAX, '.') {
            let at = node.branches.iter().rposition(|(name, _)| *name == segment).unwrap_or_else(|| {
                node.branches.push((segment, Self::default()));
                node.branches.len() - 1
            });
            let Some((_, next)) = node.branches.get_mut(at) else { return };
            node = next;
        }
        node.value = Some(value);
    }

    /// Branches that are all numbers become a list in their order; others an object.
    fn into_value(mut self) -> Value {
        if self.branches.is_empty() {
            return self.value.cloned().unwrap_or(Value::Null);
        }
        let numbers: Option<Vec<u64>> = self.branches.iter().map(|(name, _)| name.parse().ok()).collect();
        if let Some(numbers) = numbers {
            let mut numbered: Vec<_> = numbers.into_iter().zip(self.branches).collect();
            numbered.sort_by_key(|(number, _)| *number);
            return Value::Array(numbered.into_iter().map(|(_, (_, tree))| tree.into_value()).collect());
        }
        self.branches.sort_by_key(|(name, _)| *name);
        Value::Object(self.branches.into_iter().map(|(name, tree)| (name.to_owned(), tree.into_value())).collect())
    }
}
