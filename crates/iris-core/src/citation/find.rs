//! The citations in a text: numbered references, author and year, addresses, DOIs.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::text::{TEXT_BYTES_MAX, TextSpan, head};

/// Citations of which more is kept than that they are there: as many as one call may verify.
pub const CITATIONS_MAX: usize = 50;

/// Code points around a citation that say what is claimed, on each side.
const CONTEXT_CHARS: usize = 200;

/// Bytes of an author that are read.
const AUTHOR_CHARS_MAX: usize = 50;

/// The longest address or DOI, in bytes; what is longer is no citation anyone made.
const IDENTIFIER_BYTES_MAX: usize = 2048;

/// What kind of citation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `[7]`.
    Numbered,
    /// `(Smith, 2019)`.
    AuthorYear,
    /// An address.
    Url,
    /// `10.1000/182`.
    Doi,
}

impl Kind {
    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Numbered => "numbered",
            Self::AuthorYear => "author_year",
            Self::Url => "url",
            Self::Doi => "doi",
        }
    }

    /// Whether its source has an address.
    pub const fn is_fetchable(self) -> bool {
        matches!(self, Self::Url | Self::Doi)
    }
}

/// One citation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation {
    /// What kind.
    pub kind: Kind,
    /// As it stands.
    pub raw: String,
    /// What it points to: the number, `author, year`, the address, the DOI.
    pub identifier: String,
    /// Where it stands.
    pub span: TextSpan,
    /// The text around it.
    pub context: String,
}

/// The citations of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// The first ones, in the order of the text.
    pub citations: Vec<Citation>,
    /// How many there are.
    pub total: usize,
    /// The text is longer than is searched.
    pub is_cut: bool,
}

static NUMBERED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\[([0-9]{1,3})\]").ok());
static AUTHOR_YEAR: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\(([^()\n]{1,60}?),\s{0,3}((?:18|19|20)[0-9]{2})[a-z]?\)").ok());
/// An address goes on through balanced parentheses, as encyclopaedias have them, and ends before one that nothing opened.
static ADDRESS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?i)https?://(?:\[[0-9a-f:.%]+\]|[^\s()\[\]<>"`])(?:[^\s()\[\]<>"`]|\([^\s()\[\]<>"`]*\))*"#).ok()
});
static DOI: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"\b10\.[0-9]{4,9}/(?:[^\s()<>"`\[\]]|\([^\s()<>"`]*\))+"#).ok());

/// Every citation of a text, the first [`CITATIONS_MAX`] in full.
pub fn find(text: &str) -> Found {
    let searched = head(text, TEXT_BYTES_MAX);
    let mut hits: Vec<(Range<usize>, Kind)> = Vec::new();
    let patterns =
        [(Kind::Url, &ADDRESS), (Kind::Doi, &DOI), (Kind::AuthorYear, &AUTHOR_YEAR), (Kind::Numbered, &NUMBERED)];
    for (kind, pattern) in patterns {
        let Some(pattern) = pattern.as_ref() else { continue };
        let before = hits.len();
        for hit in pattern.find_iter(searched) {
            let bytes = hit.start()..hit.start() + trimmed(hit.as_str(), kind).len();
            let is_free = !stands_in(&hits, before, &bytes);
            if is_free && bytes.len() <= IDENTIFIER_BYTES_MAX && is_one(searched, &bytes, kind) {
                hits.push((bytes, kind));
            }
        }
        hits.sort_by_key(|(bytes, _)| bytes.start);
    }
    let total = hits.len();
    let citations = hits.into_iter().take(CITATIONS_MAX).map(|(bytes, kind)| citation(searched, bytes, kind)).collect();
    Found { citations, total, is_cut: searched.len() < text.len() }
}

/// Whether these bytes stand in one of the first `known` hits, which are in the order of the text and do not overlap.
fn stands_in(hits: &[(Range<usize>, Kind)], known: usize, bytes: &Range<usize>) -> bool {
    let known = hits.get(..known).unwrap_or_default();
    let next = known.partition_point(|(one, _)| one.end <= bytes.start);
    known.get(next).is_some_and(|(one, _)| one.start < bytes.end)
}

/// Without the punctuation of the sentence it stands in.
fn trimmed(raw: &str, kind: Kind) -> &str {
    if !kind.is_fetchable() {
        return raw;
    }
    let mut raw = raw;
    loop {
        let bare = raw.trim_end_matches([
            '.', ',', ';', ':', '!', '?', '"', '\'', '>', '*', '_', '|', '»', '”', '’', '。', '，', '）',
        ]);
        // A closing parenthesis belongs to the address when one opened in it.
        let bare = match bare.strip_suffix(')') {
            Some(without) if bare.matches('(').count() < bare.matches(')').count() => without,
            _ => bare,
        };
        if bare.len() == raw.len() {
            return bare;
        }
        raw = bare;
    }
}

fn is_one(text: &str, bytes: &Range<usize>, kind: Kind) -> bool {
    let raw = text.get(bytes.clone()).unwrap_or_default();
    match kind {
        Kind::Url => raw.split_once("://").is_some_and(|(_, rest)| rest.chars().any(char::is_alphanumeric)),
        Kind::Doi => raw.split_once('/').is_some_and(|(_, suffix)| !suffix.is_empty()),
        Kind::AuthorYear => {
            let author = raw.trim_start_matches('(').rsplit_once(',').map_or("", |(author, _)| author);
            let count = author.chars().count();
            (1..=AUTHOR_CHARS_MAX).contains(&count) && author.chars().next().is_some_and(char::is_uppercase)
        }
        // A link's text is cited by its address, and an index into a name is code.
        Kind::Numbered => {
            let before = text.get(..bytes.start).and_then(|head| head.chars().next_back());
            let after = text.get(bytes.end..).and_then(|tail| tail.chars().next());
            !before.is_some_and(|letter| letter == '_' || letter.is_ascii_digit()) && after != Some('(')
        }
    }
}

fn citation(text: &str, bytes: Range<usize>, kind: Kind) -> Citation {
    let raw = text.get(bytes.clone()).unwrap_or_default();
    let identifier = match kind {
        Kind::Numbered => raw.trim_matches(['[', ']']).to_owned(),
        Kind::AuthorYear => raw.trim_matches(['(', ')']).to_owned(),
        Kind::Url | Kind::Doi => raw.to_owned(),
    };
    Citation {
        kind,
        raw: raw.to_owned(),
        identifier,
        span: TextSpan::of(text, bytes.clone()),
        context: context(text, &bytes),
    }
}

/// The text around, with an ellipsis where there is more.
fn context(text: &str, bytes: &Range<usize>) -> String {
    let before = text.get(..bytes.start).unwrap_or_default();
    let after = text.get(bytes.end..).unwrap_or_default();
    let start = before.char_indices().rev().take(CONTEXT_CHARS).last().map_or(before.len(), |(at, _)| at);
    let end = after.char_indices().nth(CONTEXT_CHARS).map_or(after.len(), |(at, _)| at);
    let (lead, trail) = (if start > 0 { "…" } else { "" }, if end < after.len() { "…" } else { "" });
    format!("{lead}{}{trail}", text.get(start..bytes.end + end).unwrap_or_default())
}
