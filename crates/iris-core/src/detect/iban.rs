//! International bank account numbers: country, length, structure and check digits.

use iban::Iban;

use super::shape::Shape;
use super::{Apart, Hit, Standing, context, person};
use crate::text::View;

static CANDIDATE: Shape = Shape::new(r"[A-Za-z]{2}[0-9]{2}(?:[ -]?[A-Za-z0-9]{1,4}){3,9}");
static SOLID: Shape = Shape::new(r"[A-Za-z]{2}[0-9]{2}[A-Za-z0-9]{10,30}");

/// Finds account numbers.
pub fn find(view: &View<'_>) -> Vec<Hit> {
    let text = view.text();
    let mut hits = Apart::default();
    for found in SOLID.within(text).find_iter(text).chain(CANDIDATE.within(text).find_iter(text)) {
        if context::last(text, found.start()).is_some_and(|c| c.is_ascii_alphanumeric()) {
            continue;
        }
        let Some(len) = text.get(found.range()).and_then(valid_len) else { continue };
        let bytes = found.start()..found.start() + len;
        if context::next(text, bytes.end).is_some_and(|c| c.is_ascii_alphanumeric()) {
            continue;
        }
        hits.put(person(bytes, "iban", Standing::Live));
    }
    hits.into_hits()
}

/// The length in bytes of the longest head of `candidate` that is an account number; words may follow it.
fn valid_len(candidate: &str) -> Option<usize> {
    let mut head = candidate;
    loop {
        let solid: String = head.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase()).collect();
        if solid.parse::<Iban>().is_ok() {
            return Some(head.len());
        }
        head = head.rsplit_once([' ', '-'])?.0;
    }
}
