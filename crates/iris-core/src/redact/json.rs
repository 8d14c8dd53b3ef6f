//! JSON in a text: taken apart, looked at piece by piece and as a whole, and put together so that it is JSON again.

use std::ops::Range;

use serde::de::IgnoredAny;

use super::Pass;
use super::find::{Mask, is_placeholder, put};

/// How deep JSON in strings of JSON is taken apart; what lies deeper is read as text.
const DEPTH_MAX: usize = 8;

impl Pass<'_> {
    /// A text that may be JSON.
    pub(super) fn text_within(&self, text: &str, depth: usize) -> Option<String> {
        let is_structured = depth < DEPTH_MAX
            && matches!(text.trim_start().as_bytes().first(), Some(b'{' | b'[' | b'"'))
            && serde_json::from_str::<IgnoredAny>(text).is_ok();
        if is_structured { self.json_text(text, depth) } else { put(text, &self.masks(text)) }
    }

    /// A text that is JSON. At depth [`usize::MAX`] its strings are not taken apart: they have been.
    pub(super) fn json_text(&self, text: &str, depth: usize) -> Option<String> {
        let apart = put(text, &self.pieces(text, depth));
        let whole = apart.as_deref().unwrap_or(text);
        let found = self.masks(whole);
        if found.is_empty() {
            return apart;
        }
        let masks: Vec<Mask> = scalars(whole, &|_| false).iter().filter_map(|one| one.masked(whole, &found)).collect();
        put(whole, &masks).or(apart)
    }

    /// What is to go of single strings and numbers.
    fn pieces(&self, text: &str, depth: usize) -> Vec<Mask> {
        let mut masks = Vec::new();
        for scalar in scalars(text, &|name| self.of.is_named(name)) {
            let inside = text.get(scalar.bytes.clone()).unwrap_or_default();
            if scalar.is_named && !is_placeholder(inside) {
                masks.push(scalar.replaced(self.by_name(inside)));
                continue;
            }
            if depth == usize::MAX {
                continue;
            }
            let masked = match scalar.kind {
                Kind::Number => put(inside, &self.masks(inside)),
                Kind::Name | Kind::String => match unescaped(inside) {
                    Some(content) => self.text_within(&content, depth + 1).map(|text| escaped(&text)),
                    // Half of a surrogate pair: it is read as it stands.
                    None => put(inside, &self.masks(inside)),
                },
            };
            masks.extend(masked.map(|masked| scalar.replaced(masked)));
        }
        masks
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The name of a member.
    Name,
    String,
    Number,
}

/// A string, without its quotes, or a number.
#[derive(Debug, Clone)]
struct Scalar {
    bytes: Range<usize>,
    kind: Kind,
    /// It is, or lies in, the value of a member whose values go.
    is_named: bool,
}

impl Scalar {
    /// What stands in place of it. A number becomes a string.
    fn replaced(&self, by: String) -> Mask {
        let by = if self.kind == Kind::Number { format!("\"{by}\"") } else { by };
        (self.bytes.clone(), by)
    }

    /// What is to stand in place of it when some of what was found reaches into it.
    fn masked(&self, text: &str, found: &[Mask]) -> Option<Mask> {
        let first = found.partition_point(|(bytes, _)| bytes.end <= self.bytes.start);
        let own = found.get(first..).unwrap_or_default().iter().take_while(|(bytes, _)| bytes.start < self.bytes.end);
        let inside = text.get(self.bytes.clone())?;
        if self.kind == Kind::Number {
            return own.into_iter().next().map(|(_, mask)| self.replaced(mask.clone()));
        }
        let mut masks: Vec<Mask> = Vec::new();
        for (bytes, mask) in own {
            let start = bytes.start.saturating_sub(self.bytes.start);
            let end = bytes.end.min(self.bytes.end) - self.bytes.start;
            let bytes = whole_characters(inside, start..end);
            if masks.last().is_none_or(|(last, _)| last.end <= bytes.start) {
                masks.push((bytes, mask.clone()));
            }
        }
        Some((self.bytes.clone(), put(inside, &masks)?))
    }
}

/// The stretch of an escaped string, widened so that no escape is cut.
fn whole_characters(escaped: &str, bytes: Range<usize>) -> Range<usize> {
    let (mut at, mut start, mut end) = (0, 0, escaped.len());
    while let Some(c) = escaped.get(at..).and_then(|rest| rest.chars().next()) {
        let len = match (c, escaped.as_bytes().get(at + 1)) {
            ('\\', Some(b'u')) => 6,
            ('\\', _) => 2,
            _ => c.len_utf8(),
        };
        if at <= bytes.start {
            start = at;
        }
        at += len;
        if at >= bytes.end {
            end = at.min(escaped.len());
            break;
        }
    }
    start..end
}

/// The strings and numbers of a valid JSON text, in order.
fn scalars(text: &str, is_named: &dyn Fn(&str) -> bool) -> Vec<Scalar> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    // Of every bracket that is open: whether it lies in a value that goes.
    let mut open: Vec<bool> = Vec::new();
    // Whether the next value is one that goes.
    let mut is_next = false;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let within = open.last().copied().unwrap_or(false);
        match byte {
            b'"' => {
                let end = string_end(bytes, at + 1);
                let is_name = matches!(first_sign(bytes, end + 1), Some(b':'));
                let kind = if is_name { Kind::Name } else { Kind::String };
                let scalar = Scalar { bytes: at + 1..end, kind, is_named: !is_name && (within || is_next) };
                if is_name {
                    let name = text.get(scalar.bytes.clone()).unwrap_or_default();
                    is_next = is_named(&unescaped(name).unwrap_or_else(|| name.to_owned()));
                } else {
                    is_next = false;
                }
                found.push(scalar);
                at = end + 1;
            }
            b'-' | b'0'..=b'9' => {
                let rest = bytes.get(at..).unwrap_or_default();
                let len = rest
                    .iter()
                    .take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E'))
                    .count();
                found.push(Scalar { bytes: at..at + len, kind: Kind::Number, is_named: within || is_next });
                is_next = false;
                at += len;
            }
            b'{' | b'[' => {
                open.push(within || is_next);
                is_next = false;
                at += 1;
            }
            b'}' | b']' => {
                open.pop();
                at += 1;
            }
            b',' => {
                is_next = false;
                at += 1;
            }
            _ => at += 1,
        }
    }
    found
}

/// Where the string that begins at `from` ends: at its closing quote.
fn string_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    loop {
        match bytes.get(at) {
            Some(b'"') | None => return at.min(bytes.len()),
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
        }
    }
}

fn first_sign(bytes: &[u8], from: usize) -> Option<u8> {
    bytes.get(from..)?.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

/// The text of a JSON string; none when it is no text.
fn unescaped(inside: &str) -> Option<String> {
    if !inside.contains('\\') {
        return Some(inside.to_owned());
    }
    serde_json::from_str(&format!("\"{inside}\"")).ok()
}

/// A text as it stands between the quotes of a JSON string.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::String(text.to_owned()).to_string();
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned()
}
