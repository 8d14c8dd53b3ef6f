//! Credentials: tokens of known providers by their shape, key blocks, connection strings, and values assigned to
//! names that mean a secret.
//!
//! `secret.toml` holds the table. One pass of all keywords over the text decides which patterns run at all.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickBuilder};
use regex::Regex;
use serde::Deserialize;

use super::{Apart, Exposes, Hit, Standing, reserved};
use crate::text::View;

/// One row of `secret.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// Names the finding.
    pub id: String,
    /// Linear-time pattern; its group 1 is the secret itself when there is one.
    pub regex: String,
    /// Lower-case words of which one must stand in the text.
    pub keywords: Vec<String>,
    /// Bits of entropy a character that the secret must have.
    #[serde(default)]
    pub entropy: f64,
    /// The secret must hold a letter and a digit.
    #[serde(default)]
    pub mixed: bool,
    /// The match does not count when its text holds one of these lower-case words.
    #[serde(default)]
    pub unless: Vec<String>,
    /// Must be found; `{class:length}` stands for characters drawn by a fixed generator.
    #[cfg_attr(not(test), expect(dead_code, reason = "read by the tests that prove the table"))]
    pub examples: Vec<String>,
    /// Must not be found.
    #[serde(default)]
    #[cfg_attr(not(test), expect(dead_code, reason = "read by the tests that prove the table"))]
    pub non_examples: Vec<String>,
    /// Where the shape is published.
    #[expect(dead_code, reason = "kept for readers of the table")]
    pub source: String,
    #[serde(skip)]
    compiled: OnceLock<Option<Regex>>,
}

impl Entry {
    pub(super) fn pattern(&self) -> Option<&Regex> {
        self.compiled.get_or_init(|| Regex::new(&self.regex).ok()).as_ref()
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    secret: Vec<Entry>,
}

pub(super) struct Table {
    pub entries: Vec<Entry>,
    keywords: Option<AhoCorasick>,
    /// The entry that each keyword belongs to.
    owner: Vec<usize>,
}

pub(super) static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let entries = toml::from_str::<File>(include_str!("secret.toml")).map_or_else(|_| Vec::new(), |file| file.secret);
    let (mut words, mut owner) = (Vec::new(), Vec::new());
    for (at, entry) in entries.iter().enumerate() {
        for word in &entry.keywords {
            words.push(word.clone());
            owner.push(at);
        }
    }
    let keywords = AhoCorasickBuilder::new().ascii_case_insensitive(true).build(words).ok();
    Table { entries, keywords, owner }
});

/// Finds credentials.
pub fn find(view: &View<'_>) -> Vec<Hit> {
    let text = view.text();
    let table = &*TABLE;
    let mut wanted = vec![false; table.entries.len()];
    if let Some(keywords) = &table.keywords {
        for found in keywords.find_overlapping_iter(text) {
            if let Some(slot) = table.owner.get(found.pattern().as_usize()).and_then(|at| wanted.get_mut(*at)) {
                *slot = true;
            }
        }
    }
    let mut hits = Apart::default();
    for (entry, _) in table.entries.iter().zip(&wanted).filter(|(_, wanted)| **wanted) {
        for hit in find_one(entry, text) {
            hits.put(hit);
        }
    }
    hits.into_hits()
}

/// Whether a word stands in the text without which no row finds anything.
pub(super) fn has_keyword(text: &str) -> bool {
    TABLE.keywords.as_ref().is_none_or(|keywords| keywords.is_match(text))
}

/// What one row of the table finds, whether or not its keywords occur.
pub(super) fn find_one(entry: &'static Entry, text: &str) -> Vec<Hit> {
    let Some(pattern) = entry.pattern() else { return Vec::new() };
    let secrets = pattern.captures_iter(text).filter_map(|found| {
        let whole = found.get(0)?;
        let secret = found.get(1).unwrap_or(whole);
        let said = whole.as_str().to_ascii_lowercase();
        let other = entry.unless.iter().any(|word| said.contains(word.as_str()));
        (!other && counts(entry, secret.as_str())).then(|| (secret.range(), secret.as_str()))
    });
    secrets.map(|(bytes, secret)| hit(entry, bytes, secret)).collect()
}

fn hit(entry: &'static Entry, bytes: Range<usize>, secret: &str) -> Hit {
    let standing = if reserved::is_stand_in(secret) { Standing::TestValue } else { Standing::Live };
    Hit { bytes, label: &entry.id, exposes: Exposes::Credential, standing }
}

fn counts(entry: &Entry, secret: &str) -> bool {
    let mixed =
        secret.bytes().any(|byte| byte.is_ascii_digit()) && secret.bytes().any(|byte| byte.is_ascii_alphabetic());
    (!entry.mixed || mixed) && (entry.entropy <= 0.0 || entropy(secret) >= entry.entropy)
}

/// Shannon entropy in bits a byte.
pub(super) fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        if let Some(slot) = counts.get_mut(usize::from(byte)) {
            *slot += 1;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "lengths of secrets are far below 2^52")]
    let total = text.len() as f64;
    counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count) / total).map(|p| -p * p.log2()).sum()
}
