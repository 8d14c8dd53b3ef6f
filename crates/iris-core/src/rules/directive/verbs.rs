//! Which words ask for an action, and of which family.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use serde::Deserialize;

use crate::text::Spread;

/// Families of actions, as bits; empty for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Families(u16);

impl Families {
    /// Both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What both have.
    pub const fn shared(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Without what the other has.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

#[derive(Deserialize)]
struct Listed {
    families: HashMap<String, Vec<String>>,
    reading: Words,
    web: Words,
    addresses: Words,
}

#[derive(Deserialize)]
struct Words {
    words: HashSet<String>,
}

struct Table {
    families: HashMap<String, Families, Spread>,
    reading: HashSet<String, Spread>,
    web: HashSet<String>,
    addresses: HashSet<String>,
    visit: Families,
    /// Of the words with families, and of those that can begin an instruction.
    acts: Lengths,
    commands: Lengths,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the table is a constant, and a test reads it")]
    let listed: Listed = toml::from_str(include_str!("verbs.toml")).expect("the table of verbs is well formed");
    let mut names: Vec<&String> = listed.families.keys().collect();
    names.sort_unstable();
    let bit = |name: &str| Families(1 << names.iter().position(|one| *one == name).unwrap_or_default());
    let visit = bit("visit");
    let mut families: HashMap<String, Families, Spread> = HashMap::default();
    for (name, words) in &listed.families {
        for word in words {
            let entry = families.entry(word.clone()).or_default();
            *entry = entry.and(bit(name));
        }
    }
    let reading: HashSet<String, Spread> = listed.reading.words.into_iter().collect();
    let (acts, commands) = (Lengths::of(families.keys()), Lengths::of(families.keys().chain(&reading)));
    Table { families, reading, web: listed.web.words, addresses: listed.addresses.words, visit, acts, commands }
});

/// The family of going to an address.
pub fn visit() -> Families {
    TABLE.visit
}

/// The families of a word in any inflection.
pub fn of_word(word: &str) -> Families {
    // An ending takes at most four letters off, and never one of the first two.
    let near = TABLE.acts.at(word)
        & (length(word) | length(word) >> 1 | length(word) >> 2 | length(word) >> 3 | length(word) >> 4);
    if near == 0 {
        return Families::default();
    }
    let lower = lower(word);
    let own = TABLE.families.get(&*lower).copied().unwrap_or_default();
    if !["s", "ed", "ing"].iter().any(|ending| lower.ends_with(ending)) {
        return own;
    }
    own.and(of_base(&lower).unwrap_or_default())
}

fn lower(word: &str) -> Cow<'_, str> {
    let is_lower = !word.bytes().any(|byte| byte.is_ascii_uppercase());
    if is_lower { Cow::Borrowed(word) } else { Cow::Owned(word.to_ascii_lowercase()) }
}

/// The words of a text that have families, by where they begin.
pub fn placed(text: &str) -> Vec<(usize, Families)> {
    words(text).map(|(at, word)| (at, of_word(word))).filter(|(_, families)| !families.is_empty()).collect()
}

/// Whether a word, as it stands, can begin an instruction.
pub fn commands(word: &str) -> bool {
    if TABLE.commands.at(word) & length(word) == 0 {
        return false;
    }
    let lower = lower(word);
    TABLE.families.contains_key(&*lower) || TABLE.reading.contains(&*lower)
}

/// The lengths, as bits, of the words of a list, by the two letters with which they begin: a look that spares most words
/// of a text the search in the list.
struct Lengths(Vec<u64>);

impl Lengths {
    fn of<'a>(words: impl Iterator<Item = &'a String>) -> Self {
        let mut lengths = vec![0; 32 * 32];
        for word in words {
            if let Some(own) = initial(word).and_then(|first| lengths.get_mut(first)) {
                *own |= length(word);
            }
        }
        Self(lengths)
    }

    fn at(&self, word: &str) -> u64 {
        initial(word).and_then(|first| self.0.get(first)).copied().unwrap_or(0)
    }
}

/// The length of a word as a bit, none for one that is too long to be in a list.
fn length(word: &str) -> u64 {
    u32::try_from(word.len()).ok().and_then(|bytes| 1_u64.checked_shl(bytes)).unwrap_or(0)
}

/// The number of the two letters with which a word begins, in either case; nothing when it begins with none.
fn initial(word: &str) -> Option<usize> {
    let letter = |at: usize| word.as_bytes().get(at).filter(|byte| byte.is_ascii_alphabetic());
    Some(usize::from(letter(0)? & 31) * 32 + letter(1).map_or(0, |byte| usize::from(byte & 31)))
}

/// Whether a word stands for something behind an address.
pub fn is_address_word(word: &str) -> bool {
    TABLE.addresses.contains(&word.to_ascii_lowercase())
}

/// What a tool does, by its name; empty when it only reads what is at home.
pub fn of_tool(name: &str) -> Families {
    let parts: Vec<String> = name_parts(name);
    let web = if parts.iter().any(|part| TABLE.web.contains(part)) { TABLE.visit } else { Families::default() };
    if parts.first().is_some_and(|first| TABLE.reading.contains(first)) {
        return web;
    }
    parts.iter().map(|part| of_word(part)).fold(Families::default(), Families::and).without(TABLE.visit).and(web)
}

/// The words of a name in snake, kebab or camel case, in lower case.
pub fn name_parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut last_lower = false;
    for c in name.chars().take(200) {
        if !c.is_ascii_alphabetic() || last_lower && c.is_ascii_uppercase() {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| c.is_ascii_alphabetic()) {
            part.push(c.to_ascii_lowercase());
        }
        last_lower = c.is_ascii_lowercase();
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The words of a text with where they begin, in ASCII letters, hyphens and apostrophes.
pub fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_inner = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'\'' | b'-');
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + text.as_bytes().get(at..)?.iter().position(u8::is_ascii_alphabetic)?;
        let tail = text.as_bytes().get(start..)?;
        at = start + tail.iter().position(|byte| !is_inner(byte)).unwrap_or(tail.len());
        Some((start, text.get(start..at)?))
    })
}

/// The families of what an inflected word, in lower case, is an inflection of.
fn of_base(word: &str) -> Option<Families> {
    const ENDINGS: [(&str, &str); 7] =
        [("ying", "y"), ("ing", ""), ("ied", "y"), ("ies", "y"), ("ed", ""), ("es", ""), ("s", "")];
    let of = |base: &str| TABLE.families.get(base).copied();
    let mut stem = String::with_capacity(word.len() + 2);
    ENDINGS.iter().find_map(|(ending, put)| {
        let bare = word.strip_suffix(ending).filter(|bare| bare.len() + put.len() >= 3)?;
        stem.clear();
        stem.push_str(bare);
        stem.push_str(put);
        let undoubled = stem.split_at_checked(stem.len() - 1).map(|(before, _)| before);
        let undoubled =
            undoubled.filter(|before| before.len() > 2 && before.as_bytes().last() == stem.as_bytes().last());
        let found = of(&stem).or_else(|| of(undoubled?));
        if found.is_some() {
            return found;
        }
        stem.push('e');
        of(&stem)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_a_verb_in_every_inflection_and_a_tool_by_its_name() {
        for (one, other) in [
            ("sending", "send"),
            ("copied", "copy"),
            ("booked", "book"),
            ("deletes", "delete"),
            ("dropped", "drop"),
            ("sharing", "share"),
        ] {
            assert_eq!(of_word(one), of_word(other), "{one}");
            assert!(!of_word(one).is_empty(), "{one}");
        }
        assert!(of_word("ferry").is_empty());
        assert!(of_tool("get_balance").is_empty());
        assert!(of_tool("searchFiles").is_empty());
        assert_eq!(of_tool("get_webpage"), visit());
        assert!(!of_tool("sendEmail").shared(of_word("email")).is_empty());
        assert!(!of_tool("reserve_table").shared(of_word("reservation")).is_empty());
    }
}
