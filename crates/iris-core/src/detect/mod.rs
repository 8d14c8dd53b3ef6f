//! Finding things in a text: one kind of thing per file, each `find(&View) -> Vec<Hit>`.
//!
//! A detector says what stands where and whether it is a published stand-in; it never decides what that means for a
//! verdict, never keeps what it found, and is linear in the text. A [`View`] enters, [`Hit`]s leave.

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

use std::ops::Range;

use regex::Regex;

use crate::text::View;

pub use email::{address, addresses};
pub use phone::{key as number, numbers};

/// How many hits one detector reports from one text; a text of nothing but addresses needs no longer a list.
pub const HITS_MAX: usize = 200;

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
    encoded::find,
];

/// Those of them that can find something in a text without a digit.
const WITHOUT_DIGITS: &[Find] = &[secret::find, email::find];

/// Everything the detectors find, in the order of the text, no two overlapping.
pub fn find_all(view: &View<'_>) -> Vec<Hit> {
    let mut kept: Vec<Hit> = Vec::new();
    let has_digits = view.text().bytes().any(|byte| byte.is_ascii_digit());
    for find in if has_digits { DETECTORS } else { WITHOUT_DIGITS } {
        for hit in find(view) {
            let at = kept.partition_point(|other| other.bytes.start < hit.bytes.start);
            let clear_before =
                at.checked_sub(1).and_then(|i| kept.get(i)).is_none_or(|o| o.bytes.end <= hit.bytes.start);
            let clear_after = kept.get(at).is_none_or(|other| hit.bytes.end <= other.bytes.start);
            if clear_before && clear_after {
                kept.insert(at, hit);
            }
        }
    }
    kept
}

fn person(bytes: Range<usize>, label: &'static str, standing: Standing) -> Hit {
    Hit { bytes, label, exposes: Exposes::Person, standing }
}

/// Compiles a pattern of this program's own.
fn pattern(source: &'static str) -> Regex {
    #[expect(clippy::expect_used, reason = "every pattern is a constant, and a test compiles each")]
    Regex::new(source).expect("a constant pattern compiles")
}
