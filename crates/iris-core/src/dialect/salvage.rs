//! Reads what libraries put into text: JSON, JSON in JSON, JSON cut by a length limit, Python literals. Whatever
//! cannot be read stays the text it was.

use serde_json::{Map, Value};

/// How deep Python literals may nest.
const DEPTH_MAX: usize = 32;
/// How many levels of objects and lists JSON in a text may nest to be read as a value; deeper, it stays the text it was.
/// Such values are stored within others and read back by a parser that stops at 128 levels.
pub const JSON_DEPTH_MAX: usize = 64;
/// The longest cut JSON that is worth mending, in bytes.
const MEND_BYTES_MAX: usize = 4 << 20;

/// Whether the text is nothing, or a placeholder that an instrumentation wrote in place of content.
pub fn is_missing(text: &str) -> bool {
    let text = text.trim();
    text.is_empty()
        || matches!(text, "__REDACTED__" | "<elided>" | "[REDACTED]" | "<redacted>" | "<REDACTED>" | "REDACTED")
        || (text.starts_with("[Scrubbed due to ") && text.ends_with(']') && !text.contains('\n'))
}

/// The JSON value that a text holds, when it holds an object, a list or a quoted text. What a length limit cut off is
/// closed where it broke off.
pub fn json(text: &str) -> Option<Value> {
    let trimmed = text.trim_start();
    if !trimmed.starts_with(['{', '[', '"']) {
        return None;
    }
    let value = match serde_json::from_str(trimmed) {
        Ok(value) => Some(value),
        Err(error) if error.is_eof() && !trimmed.starts_with('"') => mend(trimmed),
        Err(_) => None,
    };
    value.filter(|value| nests_within(value, JSON_DEPTH_MAX))
}

/// Whether no more than `levels` objects and lists stand in each other. The parser has bounded them before.
fn nests_within(value: &Value, levels: usize) -> bool {
    let inside = |inner: &Value| levels > 0 && nests_within(inner, levels - 1);
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(inside),
        Value::Object(map) => levels > 0 && map.values().all(inside),
        _ => true,
    }
}

/// The value itself, or what its text holds: JSON, JSON in JSON, or a Python literal. Looks two levels deep.
pub fn unwrap(value: &Value) -> Option<Value> {
    let inner = json(value.as_str()?).or_else(|| python(value.as_str()?))?;
    match &inner {
        Value::String(text) => json(text).or(Some(inner)),
        _ => Some(inner),
    }
}

/// Like [`unwrap`], but gives back the value where there is nothing to unwrap.
pub fn unwrapped(value: &Value) -> Value {
    unwrap(value).unwrap_or_else(|| value.clone())
}

/// Closes JSON that was cut: drops the last incomplete member and closes what is open.
fn mend(text: &str) -> Option<Value> {
    if text.len() > MEND_BYTES_MAX {
        return None;
    }
    let cut = Cut::scan(text)?;
    let close = |body: &str, open: &[u8]| {
        let mut mended = String::with_capacity(body.len() + open.len() + 1);
        mended.push_str(body);
        mended.extend(open.iter().rev().map(|byte| char::from(*byte)));
        serde_json::from_str::<Value>(&mended).ok()
    };
    if cut.in_string {
        // The text that broke off is worth keeping: close it, unless it was a key.
        let body = without_cut_escape(text);
        let mut open = cut.open.clone();
        open.push(b'"');
        if let Some(value) = close(body, &open) {
            return Some(value);
        }
    }
    let (end, depth) = cut.last_complete?;
    close(text.get(..end)?, cut.open_at_last.get(..depth)?)
}

/// A text without the escape that was cut off at its end: `\` or `\u00e`. Whole ones stay.
fn without_cut_escape(text: &str) -> &str {
    // A whole `\u00e9` is longer than the tail that is looked at.
    let tail = text.len().saturating_sub(5);
    let Some(at) = text.as_bytes().get(tail..).and_then(|tail| tail.iter().rposition(|byte| *byte == b'\\')) else {
        return text;
    };
    let at = tail + at;
    let slashes =
        text.as_bytes().get(..=at).unwrap_or_default().iter().rev().take_while(|byte| **byte == b'\\').count();
    let rest = text.get(at + 1..).unwrap_or_default();
    let is_cut = slashes % 2 == 1 && (rest.is_empty() || rest.starts_with('u'));
    if is_cut { text.get(..at).unwrap_or(text) } else { text }
}

/// Where cut JSON stands at its end.
struct Cut {
    /// The closing brackets still owed, outermost first.
    open: Vec<u8>,
    in_string: bool,
    /// The end of the last complete member and how many brackets were open there.
    last_complete: Option<(usize, usize)>,
    open_at_last: Vec<u8>,
}

impl Cut {
    fn scan(text: &str) -> Option<Self> {
        let mut cut = Self { open: Vec::new(), in_string: false, last_complete: None, open_at_last: Vec::new() };
        let mut escaped = false;
        for (at, byte) in text.bytes().enumerate() {
            if cut.in_string {
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' => escaped = true,
                    b'"' => cut.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => cut.in_string = true,
                b'{' | b'[' => {
                    cut.open.push(if byte == b'{' { b'}' } else { b']' });
                    cut.complete(at + 1);
                }
                b'}' | b']' => {
                    if cut.open.pop() != Some(byte) {
                        return None;
                    }
                    cut.complete(at + 1);
                }
                b',' => cut.complete(at),
                _ => {}
            }
        }
        Some(cut)
    }

    fn complete(&mut self, end: usize) {
        self.last_complete = Some((end, self.open.len()));
        self.open_at_last.clone_from(&self.open);
    }
}

/// The value of a Python literal that is a dict, list or tuple: `{'city': 'Porto Vell', 'days': None}`.
pub fn python(text: &str) -> Option<Value> {
    let text = text.trim();
    if !text.starts_with(['{', '[', '(']) {
        return None;
    }
    let mut reader = Literal { rest: text };
    let value = reader.value(0)?;
    reader.rest.trim_start().is_empty().then_some(value)
}

struct Literal<'a> {
    rest: &'a str,
}

impl Literal<'_> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        self.rest = self.rest.trim_start();
        match self.rest.chars().next()? {
            _ if depth > DEPTH_MAX => None,
            '{' => self.dict(depth),
            '[' => self.items(']', depth),
            '(' => self.items(')', depth),
            '\'' | '"' => self.text().map(Value::String),
            _ => self.word(),
        }
    }

    fn take(&mut self, expected: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(expected) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn dict(&mut self, depth: usize) -> Option<Value> {
        let mut map = Map::new();
        self.take('{');
        while !self.take('}') {
            let key = match self.value(depth + 1)? {
                Value::String(key) => key,
                Value::Number(key) => key.to_string(),
                _ => return None,
            };
            if !self.take(':') {
                return None;
            }
            map.insert(key, self.value(depth + 1)?);
            if !self.take(',') {
                return self.take('}').then_some(Value::Object(map));
            }
        }
        Some(Value::Object(map))
    }

    fn items(&mut self, close: char, depth: usize) -> Option<Value> {
        let mut items = Vec::new();
        self.rest = self.rest.get(1..)?;
        while !self.take(close) {
            items.push(self.value(depth + 1)?);
            if !self.take(',') {
                return self.take(close).then_some(Value::Array(items));
            }
        }
        Some(Value::Array(items))
    }

    fn text(&mut self) -> Option<String> {
        let mut chars = self.rest.char_indices();
        let (_, quote) = chars.next()?;
        let mut text = String::new();
        while let Some((at, char)) = chars.next() {
            match char {
                '\\' => match chars.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    escaped @ ('\\' | '\'' | '"') => text.push(escaped),
                    other => text.extend(['\\', other]),
                },
                _ if char == quote => {
                    self.rest = self.rest.get(at + 1..)?;
                    return Some(text);
                }
                _ => text.push(char),
            }
        }
        None
    }

    fn word(&mut self) -> Option<Value> {
        let end = self.rest.find([',', '}', ']', ')', ':']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        match word.trim() {
            "None" => Some(Value::Null),
            "True" => Some(Value::Bool(true)),
            "False" => Some(Value::Bool(false)),
            number => serde_json::from_str::<serde_json::Number>(number).ok().map(Value::Number),
        }
    }
}

/// Whether a text is how Python prints an object, such as `AgentInput(input=[...])` or `<Context object at 0x7f>`.
pub fn is_repr(text: &str) -> bool {
    let text = text.trim();
    if text.starts_with('<') {
        return text.contains(" object at 0x") && text.ends_with('>');
    }
    let name = text.find(['(', ' ', '\n']).unwrap_or(0);
    let Some((name, rest)) = text.split_at_checked(name) else { return false };
    let Some(body) = rest.strip_prefix('(') else { return false };
    let Some((field, _)) = body.split_once('=') else { return false };
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
        && !field.is_empty()
        && field.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The text of `field='...'` in the way Python prints an object.
pub fn repr_field<'a>(text: &'a str, field: &str) -> Option<&'a str> {
    let start = text.match_indices(field).find_map(|(at, _)| {
        let rest = text.get(at + field.len()..)?;
        rest.strip_prefix("='")
    })?;
    let (value, _) = start.split_once('\'')?;
    (!value.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{json, unwrapped};
    use crate::model::ToolCall;

    #[test]
    fn cut_json_is_closed_where_it_broke_off() {
        let whole =
            r#"[{"role":"user","content":"Caf\u00e9 \\ \"x\" and more"},{"role":"assistant","content":"Done."}]"#;
        let said = |text: &str| Some(json(text)?.get(0)?.get("content")?.as_str()?.to_owned());
        let full = said(whole).unwrap();
        assert_eq!(full, "Café \\ \"x\" and more");
        for end in whole.find("Caf").unwrap()..whole.find("\"},{").unwrap() {
            let part = said(&whole[..end]).unwrap_or_else(|| panic!("{}", &whole[..end]));
            assert!(full.starts_with(&part), "{part:?} of {full:?}");
            assert!(part.len() + 8 >= end - whole.find("Caf").unwrap(), "{part:?} keeps what came: {}", &whole[..end]);
        }
        assert_eq!(json(r#"{"a":1,"b":tru"#), Some(serde_json::json!({"a": 1})));
        assert_eq!(json(r#"{"a":1,"b":"x","c"#), Some(serde_json::json!({"a": 1, "b": "x"})));
    }

    #[test]
    fn what_cannot_be_mended_costs_little() {
        // Nothing here may take long: a cut text is as long as its sender likes.
        for text in [
            "[1,".repeat(1 << 20),
            "{\"a\":[".repeat(100_000),
            "[\"".repeat(200_000),
            format!("[{}", "1,".repeat(1 << 20)),
        ] {
            json(&text);
            unwrapped(&Value::String(text));
        }
    }

    #[test]
    fn json_that_nests_too_deep_stays_text() {
        for (levels, is_value) in
            [(1, true), (63, true), (64, true), (65, false), (126, false), (127, false), (200, false)]
        {
            let lists = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
            let inner = if levels == 1 { "1".to_owned() } else { lists[1..2 * levels - 1].to_owned() };
            let object = format!("{{\"x\":{inner}}}");
            for text in [lists, object, "[".repeat(levels)] {
                let read = unwrapped(&Value::String(text.clone()));
                assert_eq!(!read.is_string(), is_value, "{levels}: {text}");
                assert_eq!(json(&text).is_some(), is_value, "{levels}: {text}");
                // What was read is readable again once it is stored, within a row within a page.
                let step = ToolCall { input: Some(read), ..ToolCall::default() };
                let stored = serde_json::json!({ "rows": [{ "trace": { "runs": [{ "tool_calls": [step] }] } }] });
                assert!(serde_json::from_str::<Value>(&stored.to_string()).is_ok(), "{levels}");
            }
        }
    }
}
