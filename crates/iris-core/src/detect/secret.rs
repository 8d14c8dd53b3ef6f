//! Credentials: tokens of known providers by their shape, key blocks, connection strings, and values bound to names
//! that mean a secret.
//!
//! `secret.toml` holds the shapes, `provider.txt` the names of services. One pass of all words over the text decides
//! where which pattern is tried at all, and a pattern is tried there and nowhere else.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use regex_automata::meta::Regex;
use regex_automata::util::captures::Captures;
use regex_automata::{Anchored, Input};
use serde::Deserialize;

use super::bound::{self, Word};
use super::outline::Outline;
use super::{Apart, Exposes, Hit, Standing, reserved, web_token};
use crate::text::{Lexicon, View};

/// How far behind a word that stands inside a token the token may go on, in bytes.
const AHEAD_BYTES: usize = 512;
/// The longest key block that is shown as one.
const BLOCK_BYTES_MAX: usize = 16_384;

/// One row of `secret.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// Names the finding.
    pub id: String,
    /// Linear-time pattern; its group 1 is the secret itself when there is one.
    pub regex: String,
    /// Lower-case words; the pattern is tried where one stands.
    pub keywords: Vec<String>,
    /// How many bytes before the word the match may begin.
    #[serde(default)]
    pub back: usize,
    /// A lower-case word that stands within a thousand bytes behind the first word, without which nothing is tried.
    #[serde(default)]
    pub ahead: String,
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
    #[serde(skip)]
    outline: OnceLock<Outline>,
}

impl Entry {
    pub(super) fn pattern(&self) -> Option<&Regex> {
        self.compiled.get_or_init(|| Regex::new(&self.regex).ok()).as_ref()
    }

    /// Whether a token may begin with these bytes, when none begins before its word.
    fn may_begin(&self, bytes: &[u8]) -> bool {
        self.back > 0 || self.outline.get_or_init(|| Outline::of(&self.regex)).fits(bytes)
    }

    /// Whether the token begins with its word, and nothing that could be part of a name may stand before it.
    fn begins_a_word(&self) -> bool {
        self.back == 0 && self.regex.starts_with(r"(?-u:\b)")
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    secret: Vec<Entry>,
}

/// What a word in the text makes worth a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// A row of the table, and whether its token begins a word.
    Row(usize, bool),
    /// A name that means a secret.
    Word(Word),
    /// A service, and whether its name says so by itself, without being an ordinary word too.
    Provider(bool),
}

pub(super) struct Table {
    pub entries: Vec<Entry>,
    words: Vec<String>,
    lexicon: OnceLock<Option<Lexicon>>,
    owners: Vec<Owner>,
    /// The row of tokens in three parts joined by full stops, which begin with no word of their own.
    dotted: Option<usize>,
}

pub(super) static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let entries = toml::from_str::<File>(include_str!("secret.toml")).map_or_else(|_| Vec::new(), |file| file.secret);
    let (mut words, mut owners, mut dotted) = (Vec::new(), Vec::new(), None);
    let mut own = |word: &str, owner: Owner| {
        words.push(word.to_owned());
        owners.push(owner);
    };
    for (at, entry) in entries.iter().enumerate() {
        for word in &entry.keywords {
            if word == "." {
                dotted = Some(at);
            } else {
                own(word, Owner::Row(at, entry.begins_a_word()));
            }
        }
    }
    for (word, class) in bound::WORDS {
        own(word, Owner::Word(*class));
    }
    for name in include_str!("provider.txt").lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        match name.strip_prefix('~') {
            Some(ordinary) => own(ordinary, Owner::Provider(false)),
            None => own(name, Owner::Provider(true)),
        }
    }
    Table { entries, words, lexicon: OnceLock::new(), owners, dotted }
});

impl Table {
    fn lexicon(&self) -> Option<&Lexicon> {
        self.lexicon.get_or_init(|| Lexicon::of(self.words.iter().map(String::as_str))).as_ref()
    }
}

/// The places of a text that are worth a look.
#[derive(Debug, Default)]
pub struct Places {
    /// Row of the table, and where its word begins and ends.
    rows: Vec<(usize, usize, usize)>,
    words: Vec<(Word, Range<usize>)>,
    /// Where names of services begin and end, and whether each says so by itself.
    providers: Vec<(usize, usize, bool)>,
    /// Where marks of known tokens stand, by where they begin.
    tokens: Vec<Range<usize>>,
}

impl Places {
    /// The words of which one makes a place worth a look, each known by its place here.
    pub fn words() -> &'static [String] {
        &TABLE.words
    }

    /// Notes where a word stands; they are told in the order of their ends.
    pub fn note(&mut self, text: &str, word: usize, at: Range<usize>) {
        let bytes = text.as_bytes();
        match TABLE.owners.get(word) {
            Some(Owner::Row(row, begins)) if !begins || !follows_a_name(bytes, at.start) => {
                self.rows.push((*row, at.start, at.end));
                if *begins && is_mark(bytes.get(at.clone()).unwrap_or_default()) {
                    self.tokens.push(at);
                }
            }
            Some(Owner::Word(word)) => self.words.push((*word, at)),
            Some(Owner::Provider(by_itself)) if is_apart(bytes, at.start) => {
                self.providers.push((at.start, at.end, *by_itself));
            }
            Some(Owner::Row(..) | Owner::Provider(_)) | None => {}
        }
    }

    /// Adds the places that no word shows, when all words are noted.
    pub fn finish(&mut self, text: &str) {
        let bytes = text.as_bytes();
        if let Some(row) = TABLE.dotted {
            let dots = memchr::memchr_iter(b'.', bytes).filter(|at| bytes.get(at + 7) == Some(&b'.'));
            self.rows.extend(dots.map(|at| (row, at, at + 1)));
        }
        self.rows.sort_unstable();
        self.tokens.sort_unstable_by_key(|token| token.start);
    }

    /// The places of a text by themselves, where nothing else is looked for in it.
    pub fn of(text: &str) -> Self {
        let mut places = Self::default();
        if let Some(lexicon) = TABLE.lexicon() {
            lexicon.each(text, |word, bytes| places.note(text, word, bytes));
        }
        places.finish(text);
        places
    }
}

/// Whether a word is the mark of one kind of token: nothing else begins so.
fn is_mark(word: &[u8]) -> bool {
    word.len() >= 4 && word.iter().any(|byte| matches!(byte, b'_' | b'-' | b'.'))
}

/// Whether a name begins here and not in the middle of a word: `cameraKit` names no camera.
fn is_apart(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| bytes.get(before)).copied().unwrap_or(b' ');
    let first = bytes.get(at).copied().unwrap_or(b' ');
    !before.is_ascii_alphabetic() || before.is_ascii_lowercase() && first.is_ascii_uppercase()
}

fn follows_a_name(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| bytes.get(before));
    before.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// Finds credentials.
pub fn find(view: &View<'_>) -> Vec<Hit> {
    let text = view.text();
    find_at(text, &Places::of(text))
}

/// The same where the places are known.
pub fn find_at(text: &str, places: &Places) -> Vec<Hit> {
    let mut hits = Apart::default();
    for places in places.rows.chunk_by(|(a, ..), (b, ..)| a == b) {
        let Some(entry) = places.first().and_then(|(row, ..)| TABLE.entries.get(*row)) else { continue };
        try_row(entry, text, places.iter().map(|(_, from, to)| *from..*to), &mut hits);
    }
    // A name inside the mark of a token is no name.
    let mut reach = 0;
    let reaches: Vec<(usize, usize)> = places
        .tokens
        .iter()
        .map(|token| {
            reach = reach.max(token.end);
            (token.start, reach)
        })
        .collect();
    let is_name = |name: &Range<usize>| {
        let before = reaches.partition_point(|(start, _)| *start <= name.start);
        before.checked_sub(1).and_then(|at| reaches.get(at)).is_none_or(|(_, reach)| name.end > *reach)
    };
    let words = places.words.iter().filter(|(_, name)| is_name(name));
    bound::find(text, words, &places.providers, &places.tokens, &mut hits);
    hits.into_hits()
}

/// The names of all rows.
pub(super) fn labels() -> impl Iterator<Item = &'static str> {
    TABLE.entries.iter().map(|entry| entry.id.as_str())
}

/// Whether a word stands in the text without which nothing is found.
pub(super) fn has_word(text: &str) -> bool {
    TABLE.lexicon().is_none_or(|words| words.is_in(text)) || text.bytes().filter(|b| *b == b'.').count() > 1
}

/// Tries one pattern at its places.
fn try_row(entry: &'static Entry, text: &str, places: impl Iterator<Item = Range<usize>>, hits: &mut Apart) {
    let Some(pattern) = entry.pattern() else { return };
    let mut found = pattern.create_captures();
    let mut free_from = 0;
    // Of a token in parts the first ends with a full stop: where it does not, nothing more is read.
    let mut first_part = (entry.id == "json_web_token").then_some(0..0);
    let mut ahead = (!entry.ahead.is_empty()).then_some(Ahead { word: entry.ahead.as_bytes(), from: 0, found: None });
    for place in places.filter(|place| text.is_char_boundary(place.start)) {
        let begins = || entry.may_begin(text.as_bytes().get(place.start..).unwrap_or_default());
        if place.start < free_from
            || !begins()
            || first_part.as_mut().is_some_and(|part| !ends_in_point(text, place.start, part))
        {
            continue;
        }
        if ahead.as_mut().is_some_and(|ahead| !ahead.is_near(text, place.start)) {
            continue;
        }
        let input = if entry.back == 0 {
            Input::new(text).span(place.start..text.len()).anchored(Anchored::Yes)
        } else {
            let start = floor(text, place.start.saturating_sub(entry.back).max(free_from));
            Input::new(text).span(start..floor(text, place.end + AHEAD_BYTES))
        };
        pattern.search_captures(&input, &mut found);
        let Some(whole) = found.get_match() else { continue };
        free_from = whole.end().max(place.end);
        if let Some(hit) = judge(entry, text, &found) {
            hits.put(hit);
        }
    }
}

/// Whether the run of letters, digits, hyphens and underscores that holds `at` ends with a full stop. `known` is the run
/// that was looked at last.
fn ends_in_point(text: &str, at: usize, known: &mut Range<usize>) -> bool {
    let bytes = text.as_bytes();
    if !known.contains(&at) {
        let rest = bytes.get(at..).unwrap_or_default().iter();
        let run = rest.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')).count();
        *known = at..at + run;
    }
    bytes.get(known.end) == Some(&b'.')
}

/// How far ahead a word may stand that a pattern needs.
const WORD_AHEAD_BYTES: usize = 1000;

/// Where a word stands next, looked for once for all places before it.
struct Ahead<'a> {
    word: &'a [u8],
    /// From here on it was looked for.
    from: usize,
    /// Where it stands; nothing when it was not looked for yet or stands nowhere.
    found: Option<usize>,
}

impl Ahead<'_> {
    fn is_near(&mut self, text: &str, at: usize) -> bool {
        if self.from <= at && self.found.is_none_or(|found| found < at) {
            let rest = text.as_bytes().get(at..).unwrap_or_default().windows(self.word.len());
            self.found = rest.into_iter().position(|part| part.eq_ignore_ascii_case(self.word)).map(|found| at + found);
            // When it stands nowhere behind here, no later place has to look.
            self.from = if self.found.is_some() { at } else { usize::MAX };
        }
        self.found.is_some_and(|found| found <= at + WORD_AHEAD_BYTES)
    }
}

fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// What one match of a row counts for.
fn judge(entry: &'static Entry, text: &str, found: &Captures) -> Option<Hit> {
    let whole = found.get_match()?.range();
    let mut bytes = found.get_group(1).map_or(whole.clone(), |group| group.range());
    let secret = text.get(bytes.clone())?;
    if !entry.unless.is_empty() {
        let said = text.get(whole)?.to_ascii_lowercase();
        if entry.unless.iter().any(|word| said.contains(word.as_str())) {
            return None;
        }
    }
    let mixed =
        secret.bytes().any(|byte| byte.is_ascii_digit()) && secret.bytes().any(|byte| byte.is_ascii_alphabetic());
    if entry.mixed && !mixed || entry.entropy > 0.0 && entropy(secret) < entry.entropy {
        return None;
    }
    // Dollar signs and dashes belong to these two; in any other they are marks of a stand-in.
    let marked = matches!(entry.id.as_str(), "password_hash" | "private_key");
    let standing = if entry.id == "json_web_token" {
        web_token::standing(text, &bytes)?
    } else if !marked && reserved::is_stand_in(secret) {
        Standing::TestValue
    } else {
        Standing::Live
    };
    if entry.id == "private_key" {
        bytes.end = block_end(text, bytes.end);
    }
    Some(Hit { bytes, label: &entry.id, exposes: Exposes::Credential, standing })
}

/// Where a key block ends: behind its last line when that is near, else where its body is left.
fn block_end(text: &str, from: usize) -> usize {
    let rest = super::context::after(text, from, BLOCK_BYTES_MAX);
    let last = rest.find("-----END ").and_then(|at| {
        let close = rest.get(at + 9..)?.find("-----")?;
        Some(from + at + 9 + close + 5)
    });
    last.unwrap_or_else(|| from + rest.find(['-', '{', '}', '<', ';']).unwrap_or(0))
}

/// What one row finds where its words stand.
#[cfg(test)]
pub(super) fn find_one(entry: &'static Entry, text: &str) -> Vec<Hit> {
    let at = TABLE.entries.iter().position(|other| std::ptr::eq(other, entry));
    let places = Places::of(text);
    let mut hits = Apart::default();
    let own = places.rows.iter().filter(|(row, ..)| Some(*row) == at);
    try_row(entry, text, own.map(|(_, from, to)| *from..*to), &mut hits);
    hits.into_hits()
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
