//! The file: YAML (JSON is YAML), with `${env:NAME}`, `${env:NAME:-default}` and `${file:path}` expanded once.

use std::io::{self, Read};

use serde_json::Value;

use super::shape::{Shape, join};
use super::yaml;

/// The longest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Reads a configuration file's text.
///
/// # Errors
/// One line: where the text is no YAML, or which reference cannot be resolved.
pub fn read(text: &str, env: &[(String, String)], defaults: &Value) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let shape = Shape::of(defaults);
    let tree = yaml::read(text, shape).map_err(|error| format!("cannot be read: {error}"))?;
    if tree.is_null() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    if !tree.is_object() {
        return Err("not a mapping of keys".to_owned());
    }
    expand(tree, env, shape, "")
}

fn expand(tree: Value, env: &[(String, String)], shape: Shape<'_>, path: &str) -> Result<Value, String> {
    Ok(match tree {
        Value::String(text) => resolve(text, env, shape)?,
        Value::Array(items) => {
            let shape = shape.item();
            Value::Array(items.into_iter().map(|item| expand(item, env, shape, path)).collect::<Result<_, _>>()?)
        }
        Value::Object(fields) => {
            let expand_field = |(name, value): (String, Value)| {
                let (_, inner) = shape.field(path, &name);
                let value = expand(value, env, inner, &join(path, &name)).map_err(|why| format!("{name}: {why}"))?;
                Ok((name, value))
            };
            Value::Object(fields.into_iter().map(expand_field).collect::<Result<_, String>>()?)
        }
        other => other,
    })
}

/// A text that is one reference becomes what the reference holds, typed by its place; references inside a longer text
/// are replaced in place. `$$` is a dollar sign.
fn resolve(text: String, env: &[(String, String)], shape: Shape<'_>) -> Result<Value, String> {
    if !text.contains('$') {
        return Ok(Value::String(text));
    }
    if let Some(reference) = whole(&text) {
        return lookup(reference, env).map(|value| shape.typed(&value));
    }
    let mut expanded = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find('$') {
        expanded.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            expanded.push('$');
            rest = after;
        } else if let Some(inner) = rest.strip_prefix('{') {
            let end = inner.find('}').ok_or("`${` without `}`")?;
            expanded.push_str(&lookup(&inner[..end], env)?);
            rest = &inner[end + 1..];
        } else {
            expanded.push('$');
        }
    }
    expanded.push_str(rest);
    Ok(Value::String(expanded))
}

fn whole(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("${")?.strip_suffix('}')?;
    (!inner.contains('}')).then_some(inner)
}

fn lookup(reference: &str, env: &[(String, String)]) -> Result<String, String> {
    if let Some(name) = reference.strip_prefix("env:") {
        let (name, default) = name.split_once(":-").map_or((name, None), |(name, default)| (name, Some(default)));
        let found = env.iter().find(|(one, _)| one == name).map(|(_, value)| value.clone());
        return match (found, default) {
            (Some(value), None) => Ok(value),
            (Some(value), Some(_)) if !value.is_empty() => Ok(value),
            (_, Some(default)) => Ok(default.to_owned()),
            (None, None) => {
                Err(format!("the variable {name} is not set; write ${{env:{name}:-default}} to allow that"))
            }
        };
    }
    if let Some(path) = reference.strip_prefix("file:") {
        let text = read_file(path).map_err(|error| format!("{path}: {error}"))?;
        return Ok(text.trim_end_matches(['\n', '\r']).to_owned());
    }
    Err(format!("`${{{reference}}}` is no reference; valid: ${{env:NAME}}, ${{env:NAME:-default}}, ${{file:path}}"))
}

/// The text of a file of bounded length, a device or a pipe too.
///
/// # Errors
/// The system's, and when it is longer than 1 MiB.
pub fn read_file(path: impl AsRef<std::path::Path>) -> io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("longer than {FILE_BYTES_MAX} bytes, the most that is read")));
    }
    Ok(text)
}
