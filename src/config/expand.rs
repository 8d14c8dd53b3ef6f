//! The file: YAML (JSON is YAML), with `${env:NAME}`, `${env:NAME:-default}` and `${file:path}` expanded once.

use serde_json::Value;

/// The longest file that `${file:path}` reads, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Reads a configuration file's text.
///
/// # Errors
/// One line: where the text is no YAML, or which reference cannot be resolved.
pub fn read(text: &str, env: &[(String, String)]) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let tree: Value = serde_saphyr::from_str(text).map_err(|error| format!("not YAML: {error}"))?;
    if tree.is_null() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    if !tree.is_object() {
        return Err("not a mapping of keys".to_owned());
    }
    expand(tree, env)
}

fn expand(tree: Value, env: &[(String, String)]) -> Result<Value, String> {
    Ok(match tree {
        Value::String(text) => resolve(text, env)?,
        Value::Array(items) => Value::Array(items.into_iter().map(|item| expand(item, env)).collect::<Result<_, _>>()?),
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(name, value)| Ok((name.clone(), expand(value, env).map_err(|why| format!("{name}: {why}"))?)))
                .collect::<Result<_, String>>()?,
        ),
        other => other,
    })
}

/// A text that is one reference becomes what the reference holds, read as a scalar; references inside a longer text
/// are replaced in place. `$$` is a dollar sign.
fn resolve(text: String, env: &[(String, String)]) -> Result<Value, String> {
    if !text.contains('$') {
        return Ok(Value::String(text));
    }
    if let Some(reference) = whole(&text) {
        let value = lookup(reference, env)?;
        // Only what JSON reads as a number or a truth value becomes one: a key of digits with a leading zero stays text.
        return Ok(match serde_json::from_str(&value) {
            Ok(scalar @ (Value::Number(_) | Value::Bool(_))) => scalar,
            _ => Value::String(value),
        });
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
        let size = std::fs::metadata(path).map_err(|error| format!("{path}: {error}"))?.len();
        if size > FILE_BYTES_MAX {
            return Err(format!("{path}: {size} bytes, at most {FILE_BYTES_MAX} are read"));
        }
        let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        return Ok(text.trim_end_matches(['\n', '\r']).to_owned());
    }
    Err(format!("`${{{reference}}}` is no reference; valid: ${{env:NAME}}, ${{env:NAME:-default}}, ${{file:path}}"))
}
