//! The text of each rule in the rule file, so that an entry that cannot be read stays as it was written.

use serde::de::IgnoredAny;
use serde_json::Value;

/// The parts of a rule file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pieces<'a> {
    /// The entries of `rules`, as written.
    pub rules: Vec<&'a str>,
    /// Every other key with its value, as written, but `version`.
    pub rest: Vec<(String, &'a str)>,
    /// `version`; 1 when it is not there.
    pub version: u64,
}

/// Why a text is no rule file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoFile {
    /// It is not JSON.
    #[error("it is not JSON (line {line} column {column})")]
    NotJson {
        /// Where, from 1.
        line: usize,
        /// Where, from 1.
        column: usize,
    },
    /// It is JSON of another shape.
    #[error("it is not an object with a list rules")]
    NotRules,
    /// A later version wrote it.
    #[error("it is of version {0}, and this program reads version 1")]
    Newer(u64),
}

impl<'a> Pieces<'a> {
    pub fn of(text: &'a str) -> Result<Self, NoFile> {
        if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
            return Err(NoFile::NotJson { line: error.line(), column: error.column() });
        }
        let mut pieces = Self { version: 1, ..Self::default() };
        let mut cut = Cut { rest: text };
        if !cut.takes('{') {
            return Err(NoFile::NotRules);
        }
        let mut has_rules = false;
        while !cut.takes('}') {
            let name = cut.value().ok_or(NoFile::NotRules)?;
            let name: String = serde_json::from_str(name).map_err(|_| NoFile::NotRules)?;
            cut.takes(':');
            let value = cut.value().ok_or(NoFile::NotRules)?;
            match name.as_str() {
                "rules" => {
                    has_rules = true;
                    pieces.rules = list(value).ok_or(NoFile::NotRules)?;
                }
                "version" => {
                    let version: Value = serde_json::from_str(value).map_err(|_| NoFile::NotRules)?;
                    pieces.version = version.as_u64().ok_or(NoFile::NotRules)?;
                }
                _ => pieces.rest.push((name, value)),
            }
            cut.takes(',');
        }
        match pieces.version {
            1 if has_rules => Ok(pieces),
            1 => Err(NoFile::NotRules),
            version => Err(NoFile::Newer(version)),
        }
    }
}

/// The items of a list, as written; nothing when it is no list.
fn list(text: &str) -> Option<Vec<&str>> {
    let mut cut = Cut { rest: text };
    let mut items = Vec::new();
    if !cut.takes('[') {
        return None;
    }
    while !cut.takes(']') {
        items.push(cut.value()?);
        cut.takes(',');
    }
    Some(items)
}

/// What is left of a text that is known to be JSON.
struct Cut<'a> {
    rest: &'a str,
}

impl<'a> Cut<'a> {
    fn takes(&mut self, sign: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self) -> Option<&'a str> {
        self.rest = self.rest.trim_start();
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter::<IgnoredAny>();
        values.next()?.ok()?;
        let (value, rest) = self.rest.split_at_checked(values.byte_offset())?;
        self.rest = rest;
        Some(value.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_as_it_was_written() {
        let text =
            "{\"by\": \"hand\", \"version\" : 1,\n \"rules\": [ {\"a\": 1e400, \"a\": 2} , 17,[\"]\"], \"}\" ] }";
        let pieces = Pieces::of(text).unwrap();
        assert_eq!(pieces.rules, ["{\"a\": 1e400, \"a\": 2}", "17", "[\"]\"]", "\"}\""]);
        assert_eq!(pieces.rest, [("by".to_owned(), "\"hand\"")]);
        assert_eq!(Pieces::of("{\"rules\":[]}").unwrap().rules, [""; 0]);
    }

    #[test]
    fn what_is_no_rule_file_says_why() {
        for (text, words) in [
            ("", "not JSON (line 1 column 0)"),
            ("{\"rules\": [1,]}", "not JSON (line 1"),
            ("{\"rules\": []", "not JSON"),
            ("[]", "not an object"),
            ("{}", "not an object"),
            ("{\"rules\": {}}", "not an object"),
            ("{\"version\": 2, \"rules\": []}", "version 2"),
            ("{\"version\": \"1\", \"rules\": []}", "not an object"),
        ] {
            let why = Pieces::of(text).unwrap_err().to_string();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
