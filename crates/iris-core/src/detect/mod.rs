//! Finding things in a text: one kind of thing per file, each `find(&View) -> Vec<Hit>`.
//!
//! A detector says what stands where and whether it is a published stand-in; it never decides what that means for a
//! verdict, never keeps what it found, and is linear in the text. A [`View`] enters, [`Hit`]s leave.
//!
//! Hits are not counted off: a view is never longer than [`crate::text::TEXT_BYTES_MAX`], so neither is their list, and
//! a limit on it would let many harmless values hide a live one behind them.

mod birth_date;
mod card;
mod context;
mod digits;
mod email;
mod encoded;
mod iban;
mod ip;
mod medical_record;
mod national_id;
mod passport;
mod phone;
pub mod reserved;
mod secret;
mod ssn;

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use regex::Regex;

use crate::text::View;

pub use email::{address, addresses};
pub use phone::{key as number, numbers};

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

/// Every detector of personal data and credentials. Where two find the same stretch, the earlier one names it.
const DETECTORS: &[Find] = &[
    secret::find,
    card::find,
    ssn::find,
    iban::find,
    email::find,
    ip::find,
    passport::find,
    medical_record::find,
    birth_date::find,
    national_id::find,
    phone::find,
];

/// Those of them that can find something in a text without a digit.
const WITHOUT_DIGITS: &[Find] = &[secret::find, email::find];

/// What stands in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// In the order of the text, no two overlapping.
    pub hits: Vec<Hit>,
    /// More stands encoded in the text than was decoded: that there is no live hit says nothing then.
    pub is_cut: bool,
}

/// Everything the detectors find.
pub fn find_all(view: &View<'_>) -> Findings {
    let mut kept = Apart::default();
    let has_digits = view.text().bytes().any(|byte| byte.is_ascii_digit());
    for find in if has_digits { DETECTORS } else { WITHOUT_DIGITS } {
        for hit in find(view) {
            kept.put(hit);
        }
    }
    // Every escape of a letter, and every run that is dense, has a digit.
    let behind = if has_digits { encoded::find(view) } else { encoded::Behind::default() };
    for hit in behind.hits {
        kept.put(hit);
    }
    Findings { hits: kept.into_hits(), is_cut: behind.is_cut }
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
