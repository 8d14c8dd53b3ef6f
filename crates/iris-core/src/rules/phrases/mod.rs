//! Tables of patterns behind one look at the text.
//!
//! A table is data: patterns with the words ("anchors") without which none of them can match. One pass looks for all
//! anchors at once; a pattern is tried only around its own, and compiled when its own first stands somewhere: a compiled
//! pattern takes about 100 KiB, and most texts hold few anchors. Nothing here decides what a match means. Everything is
//! linear in the text.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

use regex::Regex;
use serde::Deserialize;

use crate::text::{Lexicon, head, tail};

/// How much of the text around an anchor a pattern may cover.
const BEFORE_BYTES: usize = 300;
const AFTER_BYTES: usize = 700;
/// Matches of one pattern that are looked at.
const MATCHES_MAX: usize = 64;

/// How much a match needs beside itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Counts unless it is quoted, denied or reported.
    #[default]
    Phrase,
    /// Counts wherever it stands.
    Structure,
    /// Counts together with others.
    Sign,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    #[serde(default)]
    tier: Tier,
    anchors: Vec<String>,
    pattern: String,
    needs: Option<String>,
    needs_not: Option<String>,
    /// Case matters.
    #[serde(default)]
    exact: bool,
}

#[derive(Deserialize)]
struct Listed {
    pattern: Vec<Entry>,
}

/// One pattern.
#[derive(Debug)]
pub struct Pattern {
    /// What it is called in evidence.
    pub name: String,
    /// How much a match needs beside itself.
    pub tier: Tier,
    shape: Shape,
    needs: Option<Shape>,
    needs_not: Option<Shape>,
}

/// An expression that is compiled when it is first needed.
#[derive(Debug)]
struct Shape {
    source: String,
    compiled: OnceLock<Regex>,
}

impl Shape {
    fn of(entry: &Entry, shape: &str) -> Self {
        let case = if entry.exact { "" } else { "(?i)" };
        Self { source: format!("{case}{}", spaced(shape)), compiled: OnceLock::new() }
    }

    fn get(&self) -> &Regex {
        #[expect(clippy::expect_used, reason = "every table is a constant, and a test compiles each of its patterns")]
        self.compiled.get_or_init(|| Regex::new(&self.source).expect("a constant pattern is well formed"))
    }
}

/// Patterns behind their anchors.
#[derive(Debug)]
pub struct Table {
    patterns: Vec<Pattern>,
    anchors: Vec<String>,
    /// The pattern of each anchor.
    owners: Vec<usize>,
    lexicon: OnceLock<Option<Lexicon>>,
}

/// The stretches of a text in which the patterns of a table are tried, by pattern.
#[derive(Debug, Default)]
pub struct Windows(BTreeMap<usize, Vec<Range<usize>>>);

/// A match.
#[derive(Debug, Clone)]
pub struct Found<'t> {
    /// Of which pattern.
    pub pattern: &'t Pattern,
    /// Where, in bytes.
    pub bytes: Range<usize>,
}

impl Table {
    /// Reads a table of this program's own.
    pub fn read(source: &'static str) -> Self {
        #[expect(clippy::expect_used, reason = "every table is a constant, and a test reads each")]
        Self::parse(source).expect("a constant table is well formed")
    }

    fn parse(source: &str) -> Result<Self, toml::de::Error> {
        let listed: Listed = toml::from_str(source)?;
        let mut patterns = Vec::new();
        let (mut anchors, mut owners) = (Vec::new(), Vec::new());
        for entry in listed.pattern {
            owners.extend(std::iter::repeat_n(patterns.len(), entry.anchors.len()));
            anchors.extend(entry.anchors.iter().cloned());
            patterns.push(Pattern {
                shape: Shape::of(&entry, &entry.pattern),
                needs: entry.needs.as_deref().map(|shape| Shape::of(&entry, shape)),
                needs_not: entry.needs_not.as_deref().map(|shape| Shape::of(&entry, shape)),
                tier: entry.tier,
                name: entry.name,
            });
        }
        Ok(Self { patterns, anchors, owners, lexicon: OnceLock::new() })
    }

    /// The words without which nothing matches, each known by its place here.
    pub fn anchors(&self) -> &[String] {
        &self.anchors
    }

    /// Notes that an anchor stands somewhere; they are told in the order of their ends.
    pub fn note(&self, windows: &mut Windows, anchor: usize, bytes: &Range<usize>) {
        let Some(owner) = self.owners.get(anchor) else { return };
        let (start, end) = (bytes.start.saturating_sub(BEFORE_BYTES), bytes.end.saturating_add(AFTER_BYTES));
        let own = windows.0.entry(*owner).or_default();
        match own.last_mut().filter(|last| last.end >= start) {
            Some(last) => last.end = last.end.max(end),
            None => own.push(start..end),
        }
    }

    /// Every match, pattern by pattern.
    pub fn find(&self, text: &str) -> Vec<Found<'_>> {
        let mut windows = Windows::default();
        let lexicon = self.lexicon.get_or_init(|| Lexicon::of(self.anchors.iter().map(String::as_str)));
        if let Some(lexicon) = lexicon {
            lexicon.each(text, |anchor, bytes| self.note(&mut windows, anchor, &bytes));
        }
        self.find_in(text, &windows)
    }

    /// The same where the anchors were found already.
    pub fn find_in(&self, text: &str, windows: &Windows) -> Vec<Found<'_>> {
        let mut found = Vec::new();
        for (owner, windows) in &windows.0 {
            let Some(pattern) = self.patterns.get(*owner) else { continue };
            for window in windows {
                pattern.find(text, window, &mut found);
            }
        }
        found
    }
}

impl Pattern {
    fn find<'t>(&'t self, text: &str, window: &Range<usize>, found: &mut Vec<Found<'t>>) {
        let text = head(text, window.end);
        let mut from = text.len() - tail(text, text.len().saturating_sub(window.start)).len();
        for _ in 0..MATCHES_MAX {
            // Not a slice: what stands before the window shows where words and lines begin.
            let Some(one) = (from <= text.len()).then(|| self.shape.get().find_at(text, from)).flatten() else {
                return;
            };
            let inside = one.as_str();
            let kept = self.needs.as_ref().is_none_or(|needs| needs.get().is_match(inside))
                && self.needs_not.as_ref().is_none_or(|not| !not.get().is_match(inside));
            if kept {
                found.push(Found { pattern: self, bytes: one.range() });
            }
            from = if one.is_empty() { text.len() + 1 } else { one.end() };
        }
    }
}

/// A pattern in which a blank outside a class stands for any run of white space.
fn spaced(shape: &str) -> String {
    let mut out = String::with_capacity(shape.len() * 2);
    let (mut in_class, mut escaped) = (false, false);
    for c in shape.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            ' ' if !in_class => {
                out.push_str(r"\s{1,8}");
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out.replace(r"\s{1,8}?", r"\s{0,8}").replace(r"\s{1,8}{", r"\s{")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_is_any_white_space_outside_classes_only() {
        assert_eq!(spaced("a b[c d]e ?f"), r"a\s{1,8}b[c d]e\s{0,8}f");
    }

    #[test]
    fn every_pattern_of_every_table_compiles() {
        for source in [include_str!("refusal.toml"), include_str!("stub.toml"), include_str!("injection.toml")] {
            let table = Table::read(source);
            assert!(!table.patterns.is_empty());
            for pattern in &table.patterns {
                let shapes = [Some(&pattern.shape), pattern.needs.as_ref(), pattern.needs_not.as_ref()];
                for shape in shapes.into_iter().flatten() {
                    assert!(Regex::new(&shape.source).is_ok(), "{}: {}", pattern.name, shape.source);
                }
            }
        }
    }

    #[test]
    fn a_pattern_is_compiled_when_its_anchor_first_stands_somewhere() {
        let entry =
            |word: &str| format!("[[pattern]]\nname = \"{word}\"\nanchors = [\"{word}\"]\npattern = '{word}'\n");
        let table = Table::parse(&(entry("quay") + &entry("wharf"))).unwrap();
        let compiled = || table.patterns.iter().map(|one| one.shape.compiled.get().is_some()).collect::<Vec<_>>();
        assert_eq!((table.find("no ship").len(), compiled()), (0, vec![false, false]));
        assert_eq!((table.find("at the wharf").len(), compiled()), (1, vec![false, true]));
    }

    #[test]
    fn a_pattern_is_tried_around_its_anchor_only_and_sees_where_lines_begin() {
        let table =
            Table::parse("[[pattern]]\nname = \"x\"\nanchors = [\"quay\"]\npattern = '(?m:^)quay [0-9]+'").unwrap();
        let text = format!("{}a quay 4\nquay  7 and quay 9", "word ".repeat(200));
        let found: Vec<_> = table.find(&text).into_iter().map(|one| text.get(one.bytes).unwrap().to_owned()).collect();
        assert_eq!(found, ["quay  7"]);
        assert!(table.find("nothing here").is_empty());
    }
}
