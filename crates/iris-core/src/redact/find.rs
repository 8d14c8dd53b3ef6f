//! What is to go of one plain text, and the number of each value.

use std::ops::Range;

use sha2::{Digest, Sha256};

use super::{Pass, Redactor};
use crate::detect::{self, Exposes, Hit, Places, Standing, UNREAD, placeholder};
use crate::text::View;

/// How much of a text is searched at once; a longer one in parts, each with what is around it.
const PART_BYTES: usize = 1 << 18;
/// What is around a part: longer than anything that is found, context included.
const AROUND_BYTES: usize = 20 << 10;
/// A part this short of which more is encoded than is decoded is withheld.
const PART_BYTES_MIN: usize = 1 << 12;
/// Values that only a name gives away and that are looked for elsewhere: the shortest, and how many.
const NAMED_BYTES_MIN: usize = 6;
const NAMED_MAX: usize = 256;
/// Numbers of placeholders are below.
const NUMBERS: u64 = 1_000_000_000;

/// What is to stand in place of a stretch of the text.
pub(super) type Mask = (Range<usize>, String);

impl Pass<'_> {
    /// What is to go, in order, no two overlapping.
    pub(super) fn masks(&self, text: &str) -> Vec<Mask> {
        let mut masks = Vec::new();
        let mut start = 0;
        while start < text.len() {
            let end = ceil(text, start + PART_BYTES);
            self.part(text, start..end, &mut masks);
            start = end;
        }
        self.own(text, &mut masks);
        masks.sort_by_key(|(bytes, _)| (bytes.start, std::cmp::Reverse(bytes.end)));
        let mut free_from = 0;
        masks.retain(|(bytes, _)| {
            let is_free = bytes.start >= free_from;
            free_from = if is_free { bytes.end } else { free_from };
            is_free
        });
        masks
    }

    /// What detectors find that begins in a part.
    fn part(&self, text: &str, part: Range<usize>, masks: &mut Vec<Mask>) {
        let (from, to) = (ceil(text, part.start.saturating_sub(AROUND_BYTES)), ceil(text, part.end + AROUND_BYTES));
        let (from, around) = if part.start == 0 { (0, text.get(..to)) } else { (from, text.get(from..to)) };
        let view = View::folded(around.unwrap_or_default());
        let found = detect::find_all(&view, &Places::of(view.text()));
        let is_withheld =
            detect::placeholders(text.get(part.clone()).unwrap_or_default()).any(|one| one.label == UNREAD);
        if found.is_cut && !is_withheld {
            if part.len() <= PART_BYTES_MIN {
                return masks.push((part, placeholder(UNREAD, 0)));
            }
            let middle = ceil(text, part.start + part.len() / 2).min(part.end);
            self.part(text, part.start..middle, masks);
            return self.part(text, middle..part.end, masks);
        }
        for hit in found.hits.iter().filter(|hit| hit.standing == Standing::Live) {
            let value = view.text().get(hit.bytes.clone()).unwrap_or_default();
            let raw = view.raw_bytes(hit.bytes.clone());
            let bytes = raw.start + from..raw.end + from;
            if part.contains(&bytes.start) && !is_placeholder(value) {
                let mask = placeholder(hit.label, self.of.number_of(hit, value));
                self.note(hit.label, text.get(bytes.clone()).unwrap_or_default(), &mask);
                masks.push((bytes, mask));
            }
        }
    }

    /// What the operator's own patterns match.
    fn own(&self, text: &str, masks: &mut Vec<Mask>) {
        for pattern in &self.of.patterns {
            let found = pattern.find_iter(text).filter(|found| !found.is_empty());
            masks.extend(
                found
                    .filter(|found| !is_placeholder(found.as_str()))
                    .map(|found| (found.range(), placeholder("pattern", self.of.number("pattern", found.as_str())))),
            );
        }
    }

    /// Remembers a value that only its name gave away.
    fn note(&self, label: &str, value: &str, mask: &str) {
        let mut named = self.named.borrow_mut();
        if detect::is_known_by_name(label) && value.len() >= NAMED_BYTES_MIN && named.len() < NAMED_MAX {
            named.insert(value.to_owned(), mask.to_owned());
        }
    }
}

impl Redactor {
    /// The number of a finding: of one value the same in every spelling. An address behind an encoding has none, because
    /// rules do not take it for one that was told before.
    fn number_of(&self, hit: &Hit, value: &str) -> u64 {
        match hit.label {
            "email" => detect::address(value).map_or(0, |address| self.number(hit.label, &address)),
            "phone" => self.number(hit.label, &detect::number(value)),
            _ if hit.exposes == Exposes::Person => {
                let plain: String = value.chars().filter(|c| c.is_alphanumeric()).collect();
                self.number(hit.label, &plain.to_lowercase())
            }
            _ => self.number(hit.label, value),
        }
    }

    /// 1 to 999,999,999, drawn by the key.
    pub(super) fn number(&self, label: &str, value: &str) -> u64 {
        let mut hash = Sha256::new();
        // Two keys around what is hashed: nobody can go on from a hash that is seen.
        hash.update(self.key);
        hash.update((label.len() as u64).to_le_bytes());
        hash.update(label);
        hash.update(value);
        hash.update(self.key);
        let drawn = hash.finalize().first_chunk::<8>().copied().unwrap_or_default();
        u64::from_le_bytes(drawn) % (NUMBERS - 1) + 1
    }
}

/// A text with the masks in it; none when there are none.
pub(super) fn put(text: &str, masks: &[Mask]) -> Option<String> {
    if masks.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (bytes, mask) in masks {
        out.push_str(text.get(at..bytes.start).unwrap_or_default());
        out.push_str(mask);
        at = bytes.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    Some(out)
}

/// Whether a text is one placeholder and nothing else.
pub(super) fn is_placeholder(text: &str) -> bool {
    detect::placeholders(text).next().is_some_and(|one| one.bytes == (0..text.len()))
}

/// The nearest character boundary at or after `at`.
fn ceil(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}
