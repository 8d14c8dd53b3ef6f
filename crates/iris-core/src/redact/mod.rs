//! Personal data and credentials taken out of whatever arrives, before anything of it is kept or sent on.
//!
//! A [`Redactor`] finds what `no_pii` finds and puts `[REDACTED:<label>#<number>]` in its place. The number comes from
//! the value and a secret key: the same value has the same number in every text, request and trace of an installation,
//! so that rules can still see that an answer repeats what was asked, and nobody without the key can say what stood
//! there. Rules read a placeholder as the finding it replaced. Values published for tests and documentation, and
//! addresses of a role, stay. A text in which more is encoded than is decoded is withheld where it could not be read.
//!
//! Structured text is read as what it is: JSON in a string is taken apart, its strings unescaped, and put together
//! again, so that dialects read it as before. Owns neither key nor clock. Texts and bodies enter and leave.

mod find;
mod json;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::BTreeMap;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::detect::{UNREAD, placeholder};
use crate::model::Lane;
use crate::otlp::{self, Encoding, Refusal, Texts};

/// Patterns one installation may have, their length, and the memory one may take when compiled, bytes.
const PATTERNS_MAX: usize = 64;
const PATTERN_BYTES_MAX: usize = 1000;
const COMPILED_BYTES_MAX: usize = 1 << 18;
/// Names of fields and of attributes.
const NAMES_MAX: usize = 1000;

/// Personal data and credentials are taken out before anything is stored or forwarded. Off by default: then what is
/// forwarded is what was accepted, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Takes out what `no_pii` finds, in every text of every signal and tool: `[REDACTED:email#n]`. Rules read that as
    /// the finding it replaced.
    pub enabled: bool,
    /// Names of fields whose values go too, whatever they hold: of attributes, of objects in them, of JSON in their
    /// strings. Case does not matter, such as `given_name`.
    pub keys: Vec<String>,
    /// Patterns of texts that go too, at most 64, in the syntax of custom rules.
    pub patterns: Vec<String>,
    /// The attributes of spans, events, links and log records that are kept; empty keeps all. A `*` at the end stands
    /// for any ending, such as `gen_ai.usage.*`. `body` is a log record's body; `input`, `output`, `tool_calls` and
    /// `metadata` are what `log_trace` takes. What is not kept is not judged either.
    pub kept_attributes: Vec<String>,
}

impl Config {
    /// What could not work, a line a problem.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let is_used = !self.keys.is_empty() || !self.patterns.is_empty() || !self.kept_attributes.is_empty();
        if is_used && !self.enabled {
            problems.push("redact.enabled: set it to true, or leave keys, patterns and kept_attributes out".to_owned());
        }
        for (name, count) in [("keys", self.keys.len()), ("kept_attributes", self.kept_attributes.len())] {
            if count > NAMES_MAX {
                problems.push(format!("redact.{name}: {count} names; at most {NAMES_MAX}"));
            }
        }
        for (name, list) in [("keys", &self.keys), ("kept_attributes", &self.kept_attributes)] {
            if list.iter().any(|one| one.trim().is_empty()) {
                problems.push(format!("redact.{name}: a name is empty"));
            }
        }
        if self.patterns.len() > PATTERNS_MAX {
            problems.push(format!("redact.patterns: {}; at most {PATTERNS_MAX}", self.patterns.len()));
        }
        for (place, source) in self.patterns.iter().enumerate() {
            if let Err(why) = compiled(source) {
                problems.push(format!("redact.patterns[{place}]: {why}"));
            }
        }
        problems
    }
}

/// A pattern of the operator's: linear in the text, bounded in memory, matching at least one character.
fn compiled(source: &str) -> Result<Regex, &'static str> {
    if source.len() > PATTERN_BYTES_MAX {
        return Err("longer than 1000 bytes");
    }
    let regex = RegexBuilder::new(source).size_limit(COMPILED_BYTES_MAX).build();
    let regex =
        regex.map_err(|_| "no pattern, or too large a one; look-around and back-references do not exist here")?;
    if regex.is_match("") { Err("matches nothing at all, and so everywhere") } else { Ok(regex) }
}

/// Takes out what is to go.
#[derive(Debug)]
pub struct Redactor {
    key: [u8; 32],
    names: Vec<String>,
    patterns: Vec<Regex>,
    kept: Vec<String>,
}

impl Redactor {
    /// One for these settings; `key` keeps its numbers apart from those of other installations. What
    /// [`Config::problems`] names is left out.
    pub fn new(config: &Config, key: [u8; 32]) -> Self {
        Self {
            key,
            names: config.keys.iter().map(|name| name.to_lowercase()).collect(),
            patterns: config.patterns.iter().filter_map(|source| compiled(source).ok()).collect(),
            kept: config.kept_attributes.clone(),
        }
    }

    /// A request as protobuf, without what is to go.
    ///
    /// # Errors
    /// When the body is not a request of that lane.
    pub fn body(&self, lane: Lane, encoding: Encoding, body: &[u8]) -> Result<Vec<u8>, Refusal> {
        let pass = Pass::new(self);
        let unread = placeholder(UNREAD, 0);
        let keeps = |name: &str| lane == Lane::Metrics || self.keeps(name);
        let value = |name: &str, value: &Value| pass.value(name, value);
        let texts = Texts { text: &|text| pass.text(text), value: &value, keeps: &keeps, unread: &unread };
        let masked = otlp::masked(lane, encoding, body, &texts)?;
        let Some(again) = pass.again() else { return Ok(masked) };
        let texts = Texts { text: &|text| again.text(text), value: &|_, _| None, keeps: &|_| true, unread: &unread };
        otlp::masked(lane, Encoding::Protobuf, &masked, &texts)
    }

    /// The text without what is to go; none when it may stay as it is.
    pub fn text(&self, text: &str) -> Option<String> {
        let pass = Pass::new(self);
        let masked = pass.text(text);
        let again = pass.again().and_then(|again| again.text(masked.as_deref().unwrap_or(text)));
        again.or(masked)
    }

    /// Named values without what is to go.
    pub fn fields(&self, fields: &mut Map<String, Value>) {
        let pass = Pass::new(self);
        for (name, value) in fields.iter_mut() {
            texts_of(value, &|text| pass.text(text));
            if let Some(replaced) = pass.value(name, value) {
                *value = replaced;
            }
        }
        if let Some(again) = pass.again() {
            fields.values_mut().for_each(|value| texts_of(value, &|text| again.text(text)));
        }
    }

    /// Whether an attribute of that name may be kept.
    pub fn keeps(&self, name: &str) -> bool {
        let fits = |kept: &String| match kept.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == kept,
        };
        self.kept.is_empty() || self.kept.iter().any(fits)
    }

    /// Whether only some attributes are kept.
    pub fn is_choosy(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Whether the values under a name go, by the name itself or its last part.
    fn is_named(&self, name: &str) -> bool {
        if self.names.is_empty() {
            return false;
        }
        let name = name.to_lowercase();
        let last = name.rsplit('.').next().unwrap_or_default();
        self.names.iter().any(|one| *one == name || one == last)
    }
}

/// Every text of a value, names of fields included.
fn texts_of(value: &mut Value, mask: &dyn Fn(&str) -> Option<String>) {
    match value {
        Value::String(text) => {
            if let Some(masked) = mask(text) {
                *text = masked;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| texts_of(value, mask)),
        Value::Object(fields) => {
            let sent = std::mem::take(fields);
            *fields = sent
                .into_iter()
                .map(|(name, mut value)| {
                    texts_of(&mut value, mask);
                    (mask(&name).unwrap_or(name), value)
                })
                .collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// One message or text on its way through: what is found in it.
struct Pass<'a> {
    of: &'a Redactor,
    /// Values that only the name beside them gave away, with what stands in their place now.
    named: RefCell<BTreeMap<String, String>>,
}

impl<'a> Pass<'a> {
    const fn new(of: &'a Redactor) -> Self {
        Self { of, named: RefCell::new(BTreeMap::new()) }
    }

    fn text(&self, text: &str) -> Option<String> {
        self.text_within(text, 0)
    }

    /// A value of which every text was looked at by itself, looked at with its name and as a whole; none when it may
    /// stay.
    fn value(&self, name: &str, value: &Value) -> Option<Value> {
        if matches!(value, Value::Null | Value::Bool(_)) {
            return None;
        }
        if self.of.is_named(name) {
            return Some(Value::String(self.by_name(&value.to_string())));
        }
        let whole = Value::Object(Map::from_iter([(name.to_owned(), value.clone())]));
        let masked = self.json_text(&whole.to_string(), usize::MAX)?;
        match serde_json::from_str(&masked) {
            Ok(Value::Object(fields)) => fields.into_iter().next().map(|(_, value)| value),
            // It cannot be put together again, so nothing of it is kept.
            _ => Some(Value::String(placeholder(UNREAD, 0))),
        }
    }

    fn by_name(&self, value: &str) -> String {
        placeholder("named", self.of.number("named", value))
    }

    /// What was found by its name once, looked for everywhere else: a password in the call of a tool stands in the mail
    /// that asked for it too.
    fn again(self) -> Option<Again> {
        let (values, masks): (Vec<String>, Vec<String>) = self.named.into_inner().into_iter().unzip();
        if values.is_empty() {
            return None;
        }
        let values = AhoCorasickBuilder::new().match_kind(MatchKind::LeftmostLongest).build(values).ok()?;
        Some(Again { values, masks })
    }
}

/// Values looked for a second time.
struct Again {
    values: AhoCorasick,
    masks: Vec<String>,
}

impl Again {
    fn text(&self, text: &str) -> Option<String> {
        self.values.is_match(text).then(|| self.values.replace_all(text, &self.masks))
    }
}
