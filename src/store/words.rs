//! The words of a trace, kept with its row, so that a search need not read its texts.
//!
//! A word is a stretch of letters and digits, folded as the engine folds a text that is searched. Column `words` has all those of
//! a trace, each once: a word, or a part of one, stands in a text exactly if it stands there. Where it is null the row says nothing
//! of its words, and its texts are read.

use std::collections::HashSet;

use iris_core::model::Trace;
use unicode_normalization::char::{decompose_canonical, is_combining_mark};

/// Most bytes of the words that a row keeps, and of the texts that are looked through for them.
const WORDS_BYTES_MAX: usize = 4 * 1024;
const TEXTS_BYTES_MAX: usize = 64 * 1024;

/// What becomes of a letter when a text is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Folded {
    /// It is this part of a word.
    Part(char),
    /// It goes, and what stands beside it moves together.
    Gone,
    /// It is no part of a word.
    Between,
}

/// What the engine's `strip_accents(lower(..))` makes of a letter; `None` where that depends on its neighbours, or is not known
/// for sure.
fn folded(letter: char) -> Option<Folded> {
    if letter.is_ascii() {
        return Some(if letter.is_ascii_alphanumeric() {
            Folded::Part(letter.to_ascii_lowercase())
        } else {
            Folded::Between
        });
    }
    // Scripts for which a test compares each letter with the engine.
    let is_known = matches!(u32::from(letter),
        0x80..=0x24F | 0x300..=0x52F | 0x5D0..=0x5EA | 0x600..=0x6FF | 0x900..=0x97F | 0xE00..=0xE7F | 0x1E00..=0x1EFF
        | 0x2000..=0x206F | 0x20A0..=0x20CF | 0x2100..=0x214F | 0x2190..=0x2BFF | 0x3000..=0x30FF | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF | 0xAC00..=0xD7A3 | 0xFE00..=0xFE0F | 0xFF00..=0xFFEF | 0x1F000..=0x1FAFF);
    if !is_known {
        return None;
    }
    if is_combining_mark(letter) {
        return Some(Folded::Gone);
    }
    let mut lower = letter.to_lowercase();
    let (Some(lower), None) = (lower.next(), lower.next()) else { return None };
    let (mut first, mut more) = (None, false);
    if !matches!(u32::from(lower), 0xAC00..=0xD7A3) {
        decompose_canonical(lower, |part| {
            if !is_combining_mark(part) {
                more |= first.is_some();
                first.get_or_insert(part);
            }
        });
    }
    let part = first.unwrap_or(lower);
    (!more).then_some(if part.is_alphanumeric() { Folded::Part(part) } else { Folded::Between })
}

/// Appends a text's words, each followed by a space; `None` where one is not known for sure.
fn fold(text: &str, into: &mut String) -> Option<()> {
    let mut between = true;
    for letter in text.chars() {
        match folded(letter)? {
            Folded::Part(part) => {
                into.push(part);
                between = false;
            }
            Folded::Gone => {}
            Folded::Between if between => {}
            Folded::Between => {
                into.push(' ');
                between = true;
            }
        }
    }
    if !between {
        into.push(' ');
    }
    Some(())
}

/// What is sought, as words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sought {
    /// Each is in a word of every text in which this stands.
    pub parts: Vec<String>,
    /// It is one word or a part of one: where that is in a word of the text, this stands in the text.
    pub is_whole: bool,
}

/// What is sought as words; `None` where only the texts can tell.
pub(super) fn sought(text: &str) -> Option<Sought> {
    let mut words = String::new();
    fold(text, &mut words)?;
    let parts: Vec<String> = words.split(' ').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    let is_word = |letter| !matches!(folded(letter), Some(Folded::Between));
    let is_whole = parts.len() == 1 && text.chars().all(is_word);
    (!parts.is_empty()).then_some(Sought { parts, is_whole })
}

/// Every word of a trace with these documents, each once with a space behind it; `None` where they are too many, or one is not known
/// for sure.
pub(super) fn of_row(trace: &Trace, documents: &[Option<&str>]) -> Option<String> {
    let texts = [trace.input.as_deref(), trace.output.as_deref()];
    of_texts(&texts.iter().chain(documents).copied().collect::<Vec<_>>())
}

fn of_texts(texts: &[Option<&str>]) -> Option<String> {
    let bytes: usize = texts.iter().flatten().map(|text| text.len()).sum();
    if bytes > TEXTS_BYTES_MAX {
        return None;
    }
    let mut words = String::with_capacity(bytes + texts.len());
    for text in texts.iter().flatten() {
        fold(text, &mut words)?;
    }
    let mut seen = HashSet::with_capacity(words.len() / 8);
    let mut kept = String::new();
    for word in words.split(' ').filter(|word| !word.is_empty()) {
        if seen.insert(word) {
            kept.push_str(word);
            kept.push(' ');
        }
    }
    (kept.len() <= WORDS_BYTES_MAX).then_some(kept)
}

#[cfg(test)]
mod tests {
    use duckdb::Connection;

    use super::*;

    fn connection() -> Connection {
        Connection::open_in_memory().unwrap()
    }

    /// Scenario: every letter that is told apart, alone and between others.
    /// Guarantees: it is folded as the engine does it, so that what a text has is never missed and never made up.
    #[test]
    fn every_letter_is_folded_as_the_engine_folds_it() {
        let connection = connection();
        let letters: Vec<char> = ('\u{1}'..=char::MAX).filter(|letter| folded(*letter).is_some()).collect();
        assert!(letters.len() > 40_000);
        for some in letters.chunks(4096) {
            let list = some.iter().map(|letter| format!("chr({})", u32::from(*letter))).collect::<Vec<_>>().join(", ");
            let sql = format!("SELECT strip_accents(lower('x' || unnest([{list}]) || 'y'))");
            let mut statement = connection.prepare(&sql).unwrap();
            let mut rows = statement.query([]).unwrap();
            for letter in some {
                let engine: String = rows.next().unwrap().unwrap().get(0).unwrap();
                let inner = engine.strip_prefix('x').and_then(|rest| rest.strip_suffix('y')).unwrap().to_owned();
                match folded(*letter).unwrap() {
                    Folded::Part(part) => assert_eq!(inner, part.to_string(), "{letter:?}"),
                    Folded::Gone => assert_eq!(inner, "", "{letter:?}"),
                    Folded::Between => {
                        assert!(!inner.is_empty() && !inner.chars().any(char::is_alphanumeric), "{letter:?} {inner:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_sought_falls_into_words() {
        let of = |text: &str| sought(text).map(|sought| (sought.parts.join("|"), sought.is_whole));
        assert_eq!(of("Café"), Some(("cafe".to_owned(), true)));
        assert_eq!(of("cafe\u{301}s"), Some(("cafes".to_owned(), true)));
        assert_eq!(of("e-mail"), Some(("e|mail".to_owned(), false)));
        assert_eq!(of("mail."), Some(("mail".to_owned(), false)));
        assert_eq!(of("天気"), Some(("天気".to_owned(), true)));
        assert_eq!(of("..."), None);
        assert_eq!(of("\u{1100}"), None, "its neighbours decide what becomes of it");
    }

    #[test]
    fn a_row_keeps_each_word_once() {
        let row = |text: &str| of_texts(&[Some(text), None, Some("Of the DAY")]);
        assert_eq!(row("the weather, the Caf\u{e9}").as_deref(), Some("the weather cafe of day "));
        assert_eq!(row("odd \u{1100}"), None);
        assert_eq!(row(&"x1 y2 ".repeat(1000)).as_deref(), Some("x1 y2 of the day "));
        assert_eq!(row(&"x1 y2 ".repeat(20_000)), None, "too long to be looked through");
        let many: String = (0..2000).map(|n| format!("{n} ")).collect();
        assert_eq!(row(&many), None, "too many");
    }
}
