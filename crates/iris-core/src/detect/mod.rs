//! Finding things in a text: one kind of thing per file, each `find(&View) -> Vec<Hit>`.
//!
//! A detector says what stands where and whether it is a published stand-in; it never decides what that means for a
//! verdict, never keeps what it found, and is linear in the text. A [`View`] enters, [`Hit`]s leave.
//!
//! Hits are not counted off: a view is never longer than [`crate::text::TEXT_BYTES_MAX`], so neither is their list, and
//! a limit on it would let many harmless values hide a live one behind them.

mod birth_date;
mod bound;
mod card;
mod check_digits;
mod context;
mod digits;
mod email;
mod encoded;
mod iban;
mod ip;
mod medical_record;
mod national_id;
mod outline;
mod passport;
mod phone;
mod placeholder;
pub mod reserved;
mod secret;
mod shape;
mod ssn;
mod web_token;

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use regex::Regex;

use crate::text::{View, position};

pub use email::{address, addresses};
pub use phone::{key as number, numbers};
pub use placeholder::{Placeholder, UNREAD, placeholder, placeholders};
pub use secret::Places;

/// Whether a finding is one only because of the name beside it: elsewhere the same value is not found.
pub fn is_known_by_name(label: &str) -> bool {
    matches!(label, bound::SECRET_ASSIGNMENT | bound::PASSWORD_ASSIGNMENT)
}

/// What a hit exposes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exposes {
    /// Something about a person.
    Person,
    /// Something that opens a door.
    Credential,
}

/// How much weight a hit carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// The thing itself.
    Live,
    /// A value reserved or published for tests and documentation.
    TestValue,
    /// A public address or line of an organisation, not of a person.
    Public,
}

/// One thing found, at byte offsets of the view's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Where in [`View::text`].
    pub bytes: Range<usize>,
    /// What kind of thing, such as `phone` or `github_token`.
    pub label: &'static str,
    /// Whom it exposes.
    pub exposes: Exposes,
    /// Whether it counts.
    pub standing: Standing,
}

/// One detector.
pub type Find = fn(&View<'_>) -> Vec<Hit>;

/// The detectors that only read where numbers stand.
const AT_NUMBERS: &[Find] = &[
    card::find,
    ssn::find,
    iban::find,
    ip::find,
    passport::find,
    medical_record::find,
    birth_date::find,
    national_id::find,
    phone::find,
];

/// How many digits closely together make a number worth a look, and how many groups of them.
const NUMBER_DIGITS_MIN: usize = 5;
const NUMBER_GROUPS_MIN: usize = 4;
/// How many bytes may part the digits of one number.
const NUMBER_GAP_MAX: usize = 8;
/// How much of the text around a number is read with it: what says what it is.
const NUMBER_AROUND: usize = 96;

/// What stands in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// In the order of the text, no two overlapping.
    pub hits: Vec<Hit>,
    /// More stands encoded in the text than was decoded, or a part of it was withheld: that there is no live hit says
    /// nothing then.
    pub is_cut: bool,
}

/// Everything the detectors find; of two that find the same stretch, the earlier one names it. `places` are those that are
/// worth a look for credentials.
pub fn find_all(view: &View<'_>, places: &Places) -> Findings {
    let text = view.text();
    let mut kept = Apart::default();
    let mut is_unread = false;
    for placeholder in placeholders(text) {
        is_unread |= placeholder.label == UNREAD;
        placeholder.hit().into_iter().for_each(|hit| kept.put(hit));
    }
    for hit in secret::find_at(text, places).into_iter().chain(email::find(view)) {
        kept.put(hit);
    }
    for stretch in numbers_of(text) {
        let part = View::raw(text.get(stretch.clone()).unwrap_or(""));
        for find in AT_NUMBERS {
            for hit in find(&part) {
                let bytes = hit.bytes.start + stretch.start..hit.bytes.end + stretch.start;
                kept.put(Hit { bytes, ..hit });
            }
        }
    }
    let behind = encoded::find(view);
    for hit in behind.hits {
        kept.put(hit);
    }
    Findings { hits: kept.into_hits(), is_cut: behind.is_cut || is_unread }
}

/// The stretches of a text in which numbers stand, with what is around them, none overlapping.
fn numbers_of(text: &str) -> Vec<Range<usize>> {
    let mut stretches: Vec<Range<usize>> = Vec::new();
    let (mut start, mut end, mut count, mut groups) = (0, 0, 0, 0);
    let mut close = |start: usize, end: usize, count: usize, groups: usize| {
        if count < NUMBER_DIGITS_MIN && groups < NUMBER_GROUPS_MIN {
            return;
        }
        let from = end_of_char(text, start.saturating_sub(NUMBER_AROUND));
        let to = end_of_char(text, end + NUMBER_AROUND);
        match stretches.last_mut().filter(|last| from <= last.end) {
            Some(last) => last.end = to,
            None => stretches.push(from..to),
        }
    };
    let bytes = text.as_bytes();
    let mut next = 0;
    while let Some(found) = bytes.get(next..).and_then(|rest| position(rest, |byte| byte.wrapping_sub(b'0') < 10)) {
        let at = next + found;
        next = at + 1;
        if count > 0 && at - end > NUMBER_GAP_MAX {
            close(start, end, count, groups);
            count = 0;
        }
        if count == 0 {
            (start, groups) = (at, 1);
        } else if at > end {
            groups += 1;
        }
        count += 1;
        end = at + 1;
    }
    if count > 0 {
        close(start, end, count, groups);
    }
    stretches
}

/// The nearest character boundary at or after `at`.
fn end_of_char(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// Hits of which no two overlap; of two that would, the one put first stays.
#[derive(Default)]
struct Apart(BTreeMap<usize, Hit>);

impl Apart {
    /// Whether no hit stands on these bytes. Of those that begin before their end the last one reaches furthest.
    fn is_free(&self, bytes: &Range<usize>) -> bool {
        self.0.range(..bytes.end).next_back().is_none_or(|(_, other)| other.bytes.end <= bytes.start)
    }

    fn put(&mut self, hit: Hit) {
        if self.is_free(&hit.bytes) {
            self.0.insert(hit.bytes.start, hit);
        }
    }

    /// In the order of the text.
    fn into_hits(self) -> Vec<Hit> {
        self.0.into_values().collect()
    }
}

fn person(bytes: Range<usize>, label: &'static str, standing: Standing) -> Hit {
    Hit { bytes, label, exposes: Exposes::Person, standing }
}

/// Compiles a pattern of this program's own.
fn pattern(source: &'static str) -> Regex {
    #[expect(clippy::expect_used, reason = "every pattern is a constant, and a test compiles each")]
    Regex::new(source).expect("a constant pattern compiles")
}
