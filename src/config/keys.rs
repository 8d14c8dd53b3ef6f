//! Names of settings: which exist, which is meant, how they are spelled.

use serde_json::{Map, Value};

/// Every key of `given` that `valid` does not have, with the nearest one that it has.
pub fn unknown(valid: &Value, given: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    walk(valid, given, "", &mut problems);
    problems
}

fn walk(valid: &Value, given: &Value, place: &str, problems: &mut Vec<String>) {
    let (Value::Object(valid), Value::Object(given)) = (valid, given) else { return };
    if valid.is_empty() {
        return;
    }
    for (name, value) in given {
        let path = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
        match valid.get(name) {
            Some(inner) => walk(inner, value, &path, problems),
            None => problems.push(refusal(&path, name, place, valid)),
        }
    }
}

fn refusal(path: &str, name: &str, place: &str, valid: &Map<String, Value>) -> String {
    match nearest(name, valid.keys().map(String::as_str)) {
        Some(near) => {
            let near = if place.is_empty() { near.to_owned() } else { format!("{place}.{near}") };
            format!("unknown key `{path}`; did you mean `{near}`?")
        }
        None => {
            let names: Vec<&str> = valid.keys().map(String::as_str).collect();
            format!("unknown key `{path}`; valid: {}", names.join(", "))
        }
    }
}

/// Takes out of `given` what [`unknown`] names.
pub fn prune(valid: &Value, given: &mut Value) {
    let (Value::Object(valid), Value::Object(given)) = (valid, given) else { return };
    if valid.is_empty() {
        return;
    }
    given.retain(|name, value| {
        let Some(inner) = valid.get(name) else { return false };
        prune(inner, value);
        true
    });
}

/// Takes out what stands at `path`, or the list that it is part of. False when nothing stands there.
pub fn remove(tree: &mut Value, path: &[String]) -> bool {
    let Some((first, rest)) = path.split_first() else { return false };
    let Value::Object(fields) = tree else { return false };
    let goes_on = fields.get(first).is_some_and(Value::is_object) && !rest.is_empty();
    match fields.get_mut(first) {
        Some(inner) if goes_on => remove(inner, rest),
        Some(_) => fields.remove(first).is_some(),
        None => false,
    }
}

/// The valid name closest to `name`, when one is close enough to have been meant.
pub fn nearest<'a>(name: &str, valid: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    valid.map(|one| (distance(name, one), one)).filter(|(far, _)| *far <= limit).min().map(|(_, one)| one)
}

/// Levenshtein distance in characters.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, one) in left.chars().enumerate() {
        let mut before = index;
        row[0] = index + 1;
        for (at, other) in right.iter().enumerate() {
            let cost = (before + usize::from(one != *other)).min(row[at] + 1).min(row[at + 1] + 1);
            before = row[at + 1];
            row[at + 1] = cost;
        }
    }
    row[right.len()]
}

/// A camel-case name in snake case: both spellings of a key are the same key.
pub fn to_snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// Puts `value` at the dotted `key`.
pub fn set(tree: &mut Value, key: &str, value: Value) {
    let mut place = tree;
    let mut names = key.split('.').peekable();
    while let Some(name) = names.next() {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let Value::Object(fields) = place else { return };
        if names.peek().is_none() {
            fields.insert(name.to_owned(), value);
            return;
        }
        place = fields.entry(name).or_insert_with(|| Value::Object(Map::new()));
    }
}
