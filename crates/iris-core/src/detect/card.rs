//! Payment card numbers: issuer and length, Luhn, and the way cards are printed.
//!
//! Source of issuer ranges: ISO/IEC 7812 issuer identification numbers as the schemes publish them.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::digits::{Group, groups, luhn};
use super::{Hit, Standing, context, digits, pattern, person, reserved};
use crate::text::View;

/// How many bytes around a number may say what it is.
const NEAR_BYTES: usize = 48;

static CARD_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?-u:\b)(?:cards?|credit|debit|visa|master ?card|amex|american express|discover|diners|jcb|union ?pay|maestro|payment|pan|cc|cvv|cvc|exp(?:ir(?:y|es|ation))?)(?-u:\b)|card_?(?:no|num)|karte|tarjeta|carte|カード|卡号|карт",
    )
});
static CARD_NUMBER_WORDS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?i)(?:card|cc)[ _-]?(?:number|num|no\.?|#)?(?:[ ]is)?[ :="']{1,4}$"#));
static ID_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?:order|track|transaction|invoice|shipment|parcel|fedex|ups|dhl|reference|(?-u:\b)ref|ticket|isbn|(?-u:\b)ean(?-u:\b)|gtin|imei|serial|epoch|timestamp|time_?ms|millis|seed|job|build|batch|request|trace|span|session|message|event|uuid|sku|barcode|(?:^|[^a-z])id|_id)",
    )
});

/// Finds card numbers.
pub fn find(view: &View<'_>) -> Vec<Hit> {
    let text = view.text();
    let groups = groups(text);
    let mut hits = Vec::new();
    let mut next = 0;
    while let Some(window) = groups.get(next..) {
        // No card begins with a group of another length.
        let Some(skipped) = window.iter().position(|group| matches!(group.len(), 4 | 6 | 12..=19)) else { break };
        next += skipped;
        let window = window.get(skipped..).unwrap_or(window);
        match printed(text, window) {
            Some((count, bytes, solid)) => {
                let number = digits::of(text.get(bytes.clone()).unwrap_or(""));
                next += count;
                if reserved::is_test_card(&number) {
                    hits.push(person(bytes, "credit_card", Standing::TestValue));
                } else if !solid || is_spoken_of(text, &bytes, number.len()) {
                    hits.push(person(bytes, "credit_card", Standing::Live));
                }
            }
            None => next += 1,
        }
    }
    hits
}

/// How cards are grouped in print, longest first.
const SHAPES: [&[usize]; 12] = [
    &[4, 4, 4, 4, 3],
    &[4, 4, 4, 4],
    &[4, 6, 5],
    &[4, 6, 4],
    &[6, 4, 4, 4],
    &[4, 5, 4],
    &[12],
    &[19],
    &[16],
    &[15],
    &[14],
    &[13],
];

/// A card number at the head of `window`: how many groups, where, and whether it is one unbroken run.
fn printed(text: &str, window: &[Group]) -> Option<(usize, Range<usize>, bool)> {
    for shape in SHAPES {
        let Some(groups) = window.get(..shape.len()) else { continue };
        let fits = groups.iter().zip(shape).all(|(group, digits)| group.len() == *digits)
            && groups.windows(2).all(|pair| matches!(pair, [a, b] if is_separator(text, a.end, b.start)));
        let (Some(first), Some(last)) = (groups.first(), groups.last()) else { continue };
        let bytes = first.start..last.end;
        if fits && context::is_number_alone(text, &bytes) {
            let number = digits::of(text.get(bytes.clone()).unwrap_or(""));
            let called = || CARD_NUMBER_WORDS.is_match(context::before(text, bytes.start, NEAR_BYTES));
            if luhn(&number) && (is_issued(&number) || number.starts_with(['3', '4', '5', '6']) && called()) {
                return Some((shape.len(), bytes, shape.len() == 1));
            }
        }
    }
    None
}

fn is_separator(text: &str, from: usize, to: usize) -> bool {
    matches!(text.get(from..to), Some(" " | "-" | "\n" | "." | " - " | "- " | "-\n" | " \n" | "  "))
}

/// Whether an unbroken run is said to be a card, or at least not to be something else: one number in ten passes Luhn.
fn is_spoken_of(text: &str, bytes: &Range<usize>, length: usize) -> bool {
    let head = context::before(text, bytes.start, NEAR_BYTES);
    let tail = context::after(text, bytes.end, NEAR_BYTES / 2);
    if CARD_WORDS.is_match(head) || CARD_WORDS.is_match(tail) {
        return true;
    }
    length >= 15 && !ID_WORDS.is_match(head)
}

/// Whether some scheme issues numbers that begin so and are this long.
fn is_issued(number: &str) -> bool {
    let prefix = |digits: usize| number.get(..digits).and_then(|head| head.parse::<u32>().ok()).unwrap_or(0);
    let (two, three, four) = (prefix(2), prefix(3), prefix(4));
    match number.len() {
        13 => two / 10 == 4,
        14 => matches!(three, 300..=305 | 309) || matches!(two, 36 | 38 | 39),
        15 => matches!(two, 34 | 37) || matches!(four, 1800 | 2131),
        16 => {
            matches!(two, 40..=49 | 51..=55 | 60 | 62 | 64 | 65 | 81)
                || matches!(four, 2200..=2204 | 2221..=2720 | 3528..=3589 | 5018 | 5020 | 5038 | 5893 | 6304 | 6759..=6763)
        }
        19 => {
            two / 10 == 4
                || matches!(two, 60 | 62 | 63 | 64 | 65 | 67)
                || matches!(four, 3528..=3589 | 5018 | 5020 | 5038)
        }
        _ => false,
    }
}
