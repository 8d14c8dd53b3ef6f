//! Dates of birth, known only by the word before them.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder};
use regex::Regex;

use super::{Hit, Standing, pattern, person};
use crate::text::View;

static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?ix)(?: (?-u:\b)(?:dob|d\.o\.b\.?|birth[\ _-]?da(?:te|y)|date[\ _-]of[\ _-]birth|born(?:\ on)?[:=]|geburtsdatum|geboren|date\ de\ naissance|fecha\ de\ nacimiento)
          | 生年月日 | 出生日期 )
          ["'\ ]{0,3}(?:is|was|:|=|-|am|le|el)?["'\ ]{0,3}
          ( [0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}
          | [0-9]{1,2}[-/.][0-9]{1,2}[-/.](?:[0-9]{4}|[0-9]{2})
          | [0-9]{1,2}\.?\ (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6},?\ [0-9]{4}
          | (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\ [0-9]{1,2}(?:st|nd|rd|th)?,?\ [0-9]{4}
          | [0-9]{4}年[0-9]{1,2}月[0-9]{1,2}日 )"#,
    )
});

/// Words without which nothing is found.
static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let words = ["dob", "d.o.b", "birth", "born", "gebur", "gebor", "naiss", "nacimiento", "生年月日", "出生日期"];
    AhoCorasickBuilder::new().ascii_case_insensitive(true).build(words).ok()
});

/// Finds dates of birth.
pub fn find(view: &View<'_>) -> Vec<Hit> {
    let text = view.text();
    if !WORDS.as_ref().is_none_or(|words| words.is_match(text)) {
        return Vec::new();
    }
    NAMED
        .captures_iter(text)
        .filter_map(|found| found.get(1))
        .map(|date| person(date.range(), "birth_date", Standing::Live))
        .collect()
}
