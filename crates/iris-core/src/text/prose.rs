//! Cutting written text into what a reader counts as sentences: prose sentences, list items, lines of verse.
//!
//! Unlike [`super::sentences`], which cuts at every line end, a line that is merely wrapped does not end a sentence here.

use std::ops::Range;

use super::scan::position;

/// A sentence and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// Its bytes.
    pub bytes: Range<usize>,
    /// It ends with a sign that ends sentences.
    pub ended: bool,
    /// It begins a list item.
    pub item: bool,
}

/// How far back from a full stop its word is looked for.
const WORD_BYTES_MAX: usize = 24;

/// Abbreviations after which a full stop does not end a sentence.
const ABBREVIATIONS: &[&str] = &[
    "dr", "mr", "mrs", "ms", "prof", "sr", "jr", "st", "mt", "e.g", "i.e", "vs", "al", "cf", "approx", "est", "dept",
    "univ", "a.m", "p.m", "u.s", "u.k", "z.b", "d.h", "bzw", "sog", "p.ex", "ca",
];
/// Those after which it does not when a number follows.
const BEFORE_NUMBERS: &[&str] = &[
    "no", "nr", "fig", "eq", "ch", "vol", "pp", "etc", "inc", "ltd", "co", "corp", "sec", "art", "jan", "feb", "mar",
    "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec",
];

/// The sentences of a text. Cut after `.`, `!`, `?` and their kin in other scripts where a new sentence can begin, at
/// blank lines, and before list items. What holds no letter or digit is left out. Linear.
pub fn stretches(text: &str) -> impl Iterator<Item = Stretch> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < text.len() {
            let start = at;
            let (end, ended) = end_of_first(text, start);
            at = end.max(start + 1);
            let body = text.get(start..end).unwrap_or_default();
            if body.chars().any(char::is_alphanumeric) {
                let lead = body.len() - body.trim_start().len();
                let item = is_item(body.trim_start());
                return Some(Stretch { bytes: start + lead..start + body.trim_end().len(), ended, item });
            }
        }
        None
    })
}

/// Whether a line begins like a list item: a bullet, a number, or a letter with a point or bracket.
pub fn is_item(line: &str) -> bool {
    marker(line.trim_start()).is_some()
}

/// How many bytes the marker of a list item takes, its spaces included.
pub(super) fn marker(line: &str) -> Option<usize> {
    let mut chars = line.char_indices();
    let (_, first) = chars.next()?;
    let after = if matches!(first, '-' | '*' | '+' | '•' | '·' | '◦' | '▪' | '–' | '—') {
        first.len_utf8()
    } else {
        let open = usize::from(first == '(');
        let body = line.get(open..)?;
        let digits = body.bytes().take(4).take_while(u8::is_ascii_digit).count();
        let letters = body.bytes().take(2).take_while(u8::is_ascii_alphabetic).count();
        let len = match (digits, letters) {
            (1..=3, _) => digits,
            (0, 1) => 1,
            _ => return None,
        };
        let close = body.get(len..)?.chars().next().filter(|c| matches!(c, '.' | ')' | '、' | '．'))?;
        open + len + close.len_utf8()
    };
    let rest = line.get(after..)?;
    let spaces = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    (spaces > 0).then_some(after + spaces)
}

/// Where the sentence that begins at `start` ends, and whether by a sign.
fn end_of_first(text: &str, start: usize) -> (usize, bool) {
    let rest = text.get(start..).unwrap_or_default();
    // The marker of a list item is part of its sentence: `1.` ends none.
    let lead = rest.len() - rest.trim_start().len();
    let skip = lead + rest.get(lead..).and_then(marker).unwrap_or(0);
    let mut at = start + skip;
    let bytes = text.as_bytes();
    while let Some(rest) = bytes.get(at..) {
        at += position(rest, may_end).unwrap_or(rest.len());
        let Some(byte) = bytes.get(at).copied() else { break };
        match byte {
            b'\n' if ends_block(text, at) => return (at + 1, false),
            b'.' | b'!' | b'?' => {
                let end = closed(text, at);
                if ends_sentence(text, start, at, end) {
                    return (end, true);
                }
                at = end;
            }
            _ if byte.is_ascii() => at += 1,
            _ => {
                let c = text.get(at..).and_then(|rest| rest.chars().next()).unwrap_or('\u{FFFD}');
                at += c.len_utf8();
                if is_foreign_stop(c) {
                    return (closed(text, at - c.len_utf8()), true);
                }
            }
        }
    }
    (text.len(), false)
}

/// Whether a sentence may end at a character that begins with this byte.
const fn may_end(byte: u8) -> bool {
    (byte == b'\n') | (byte == b'.') | (byte == b'!') | (byte == b'?') | (byte >= 0x80)
}

/// Full stops of scripts that need no space after them.
pub(super) const fn is_foreign_stop(c: char) -> bool {
    matches!(c, '。' | '！' | '？' | '．' | '｡' | '।' | '॥' | '؟' | '۔' | '።' | '՝' | '։' | '‽')
}

/// One past the signs that end a sentence at `at` and the quotes and brackets that close behind them.
fn closed(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let signs: usize =
        rest.chars().take_while(|c| matches!(c, '.' | '!' | '?') || is_foreign_stop(*c)).map(char::len_utf8).sum();
    let close = rest.get(signs..).unwrap_or_default().chars();
    let closers: usize = close.take_while(|c| is_closer(*c)).map(char::len_utf8).sum();
    at + signs + closers
}

/// Quotes, brackets and marks of emphasis that close.
pub(super) const fn is_closer(c: char) -> bool {
    matches!(c, '"' | '\'' | '”' | '’' | '»' | '›' | '）' | '」' | '』' | ')' | ']' | '}' | '*' | '_' | '`')
}

/// Whether the line end at `at` ends what stands before it: a blank line or a list item follows.
fn ends_block(text: &str, at: usize) -> bool {
    let rest = text.get(at + 1..).unwrap_or_default();
    let line = super::head(rest, 64).split('\n').next().unwrap_or_default().trim();
    line.is_empty() || is_item(line) || line.starts_with(['#', '|', '>']) || line.starts_with("```")
}

fn ends_sentence(text: &str, start: usize, at: usize, end: usize) -> bool {
    let after = super::head(text.get(end..).unwrap_or_default(), 64);
    let Some(next) = after.chars().next() else { return true };
    // No further back than an abbreviation is long, or a text without spaces would take the square of its length.
    let before = super::tail(text.get(start..at).unwrap_or_default(), WORD_BYTES_MAX);
    let word = || {
        let mut parts = before.rsplit(|c: char| c.is_whitespace() || matches!(c, '(' | '"' | '\''));
        parts.next().unwrap_or_default().to_lowercase()
    };
    if !next.is_whitespace() {
        // A missing space: only before a capital that follows a word.
        let follows = |word: String| {
            word.len() > 1 && !word.contains('.') && text.as_bytes().get(at) != Some(&b'.')
                || word.len() > 3 && word.chars().all(char::is_lowercase)
        };
        return next.is_uppercase() && follows(word());
    }
    let opens = after.trim_start().chars().next();
    let Some(opens) = opens else { return true };
    let can_open = opens.is_uppercase()
        || opens.is_numeric()
        || matches!(
            opens,
            '"' | '‘' | '’' | '“' | '”' | '\'' | '(' | '[' | '{' | '*' | '_' | '#' | '-' | '—' | '«' | '¿' | '¡'
        )
        || opens.is_alphabetic() && !opens.is_lowercase();
    if !can_open && opens.is_alphabetic() {
        return false;
    }
    if text.as_bytes().get(at) == Some(&b'.') {
        let word = word();
        let initial = word.chars().count() == 1 && before.ends_with(char::is_uppercase);
        let number = opens.is_numeric() && BEFORE_NUMBERS.contains(&word.as_str());
        if initial || number || ABBREVIATIONS.contains(&word.as_str()) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{is_item, stretches};

    #[test]
    fn a_marker_needs_a_space() {
        for item in ["- a", "* a", "1. a", "12) a", "(3) a", "a) b", "• a"] {
            assert!(is_item(item), "{item}");
        }
        for other in ["-a", "1.5 m", "a. ", "I. e", "1994 was", "", "(a b"] {
            assert_eq!(is_item(other), matches!(other, "a. " | "I. e"), "{other}");
        }
    }

    /// Were any of these read again from its beginning for every sign, this test would take minutes.
    #[test]
    fn hostile_texts_are_read_once() {
        for seed in ["1.1.", "a.", "....", "\n\n", "- ", "(.)", ". ", "。", "\n1. ", "?\"", "A.b"] {
            let text = seed.repeat((256 << 10) / seed.len());
            assert!(stretches(&text).all(|stretch| stretch.bytes.end <= text.len()), "{seed}");
        }
    }

    proptest! {
        #[test]
        fn sentences_lie_in_the_text_in_order(text in prop_oneof![any::<String>(), "[a-zA-Z0-9.!? \n()\"。-]{0,80}"]) {
            let mut last = 0;
            for stretch in stretches(&text) {
                prop_assert!(text.get(stretch.bytes.clone()).is_some_and(|body| !body.is_empty()));
                prop_assert!(stretch.bytes.start >= last);
                last = stretch.bytes.end;
            }
        }
    }
}
