//! Telephone numbers: international ones by country code and length, national ones by their printed shape, and
//! anything long enough that the text itself calls a phone number.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::Regex;

use super::shape::Shape;
use super::{Apart, Hit, Standing, context, digits, pattern, person, reserved};
use crate::text::View;

static INTERNATIONAL: Shape =
    Shape::new(r"(?:\+|(?-u:\b)00 ?)[1-9](?:[ .\-()/]{0,3}[0-9]){6,14}(?:[ ]?(?:x|ext\.?)[ ]?[0-9]{1,6})?");
static NORTH_AMERICAN: Shape = Shape::new(
    r"(?:1[ .\-])?(?:\([2-9][0-9]{2}\)[ .\-]?|[2-9][0-9]{2}[ .\-])[0-9]{3}[ .\-]\n?[0-9]{4}(?:[ ]?(?:x|ext\.?)[ ]?[0-9]{1,6})?",
);
static NATIONAL: Shape = Shape::new(
    r"\(?0(?:[1-9](?:[ .\-][0-9]{2}){4}|7[0-9]{3}[ -][0-9]{3}[ -]?[0-9]{3}|20[ )-]{1,2}[0-9]{4}[ -][0-9]{4}|1[0-9]{2,3}\)?[ -][0-9]{3}[ -][0-9]{3,4}|4[0-9]{2} [0-9]{3} [0-9]{3}|[23478]\) [0-9]{4} [0-9]{4}|[0-9]{2} [0-9]{3} [0-9]{2} [0-9]{2}|[0-9]-[0-9]{4}-[0-9]{4}|[0-9]{2}-[0-9]{3,4}-[0-9]{4})",
);
static CALLED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?:(?-u:\b)(?:tel|phones?|telephone|mobile|cell(?:phone)?|fax|call(?:ed|ing)?|dial|ring|whats ?app|sms|texts?|reach(?:ed)?|hotline|pager|answering(?: at| on)?|registered(?: number)?|my number|handy|telefono?|t[ée]l[ée]phone|telefoon|numero|phone_?(?:no|number)|contact)(?-u:\b)|電話|电话|手机|전화|телефон|тел\.?)[^0-9+(\n]{0,40}(\(?\+?[0-9](?:[ .\-()/]{0,3}[0-9]){6,14})",
    )
});
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(\(?\+?[0-9](?:[ .\-()/]{0,2}[0-9]){6,14}(?:x[0-9]{1,6})?)[ ,]{0,2}\(?(?:office|fax|mobile|cell|home|work|tel)(?-u:\b)",
    )
});
static OTHER_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?:order|track(?:ing)?|invoice|ticket|part|isbn|issn|serial|version|build|release|chmod|mode|lat(?:itude)?|lon(?:gitude)?|ref(?:erence)?|sku|model|range|case|doi|ssn|nhs|sin|routing|iban|account|card|epoch|timestamp|(?:^|[^a-z])id)[^a-z0-9]{0,3}(?:no\.?|number|num|code|#|is|was|:|=)*[^a-z0-9]{0,4}$",
    )
});

/// Words of which one stands before a number that is called one, and behind it, in a text of ASCII.
static BEFORE: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    words(&[
        "tel",
        "phone",
        "mobile",
        "cell",
        "fax",
        "call",
        "dial",
        "ring",
        "whats",
        "sms",
        "text",
        "reach",
        "hotline",
        "pager",
        "registered",
        "number",
        "handy",
        "numero",
        "contact",
    ])
});
static BEHIND: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| words(&["office", "fax", "mobile", "cell", "home", "work", "tel"]));

fn words(list: &[&str]) -> Option<AhoCorasick> {
    AhoCorasick::builder().ascii_case_insensitive(true).kind(Some(AhoCorasickKind::DFA)).build(list).ok()
}

/// Finds telephone numbers.
pub fn find(view: &View<'_>) -> Vec<Hit> {
    let text = view.text();
    let mut hits = Apart::default();
    // What a shape or a word is needed for is looked for where there is one.
    let when = |is_there: bool| if is_there { text } else { "" };
    let is_ascii = text.is_ascii();
    let says =
        |words: &LazyLock<Option<AhoCorasick>>| !is_ascii || words.as_ref().is_none_or(|words| words.is_match(text));
    let (called, named) = (says(&BEFORE), says(&BEHIND));
    let shaped = INTERNATIONAL
        .within(text)
        .find_iter(when(text.contains('+') || text.contains("00")))
        .map(|found| (found.range(), Kind::International));
    let american = NORTH_AMERICAN.within(text).find_iter(text).map(|found| (found.range(), Kind::NorthAmerican));
    let national =
        NATIONAL.within(text).find_iter(when(text.contains('0'))).map(|found| (found.range(), Kind::National));
    let called = CALLED.captures_iter(when(called)).filter_map(|found| Some((found.get(1)?.range(), Kind::Called)));
    let named = NAMED.captures_iter(when(named)).filter_map(|found| Some((found.get(1)?.range(), Kind::Named)));
    for (bytes, kind) in shaped.chain(american).chain(national).chain(called).chain(named) {
        if hits.is_free(&bytes)
            && let Some(standing) = judge(text, &bytes, kind)
        {
            hits.put(person(bytes, "phone", standing));
        }
    }
    hits.into_hits()
}

/// The numbers of a text as the last nine digits of each, to see what its author already knew.
pub fn numbers(view: &View<'_>) -> BTreeSet<String> {
    let text = view.text();
    find(view).into_iter().map(|hit| key(text.get(hit.bytes).unwrap_or(""))).collect()
}

/// One spelling of a number: its last nine digits, because country and trunk prefixes come and go.
pub fn key(number: &str) -> String {
    let digits = digits::of(number);
    digits.get(digits.len().saturating_sub(9)..).unwrap_or("").to_owned()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    International,
    NorthAmerican,
    National,
    /// A word before it says so.
    Called,
    /// A word after it says so.
    Named,
}

fn judge(text: &str, bytes: &Range<usize>, kind: Kind) -> Option<Standing> {
    let whole = text.get(bytes.clone())?;
    let number = digits::of(whole.split(['x', 'e']).next().unwrap_or(whole));
    if !stands_alone(text, bytes) {
        return None;
    }
    if whole.starts_with("00") && follows_a_group(text, bytes.start) {
        return None;
    }
    if kind != Kind::International && OTHER_WORDS.is_match(context::before(text, bytes.start, 24)) {
        return None;
    }
    let real = match kind {
        Kind::International => is_international(number.strip_prefix("00").unwrap_or(&number)),
        Kind::NorthAmerican => is_north_american(&number),
        Kind::National => true,
        Kind::Called | Kind::Named => (7..=15).contains(&number.len()) && !is_date_or_range(whole),
    };
    if reserved::is_test_phone(&number) {
        return Some(Standing::TestValue);
    }
    if reserved::is_toll_free(&number) {
        return Some(Standing::Public);
    }
    real.then_some(Standing::Live)
}

/// Whether digits stand before it, a blank away: it is then the rest of a longer number.
fn follows_a_group(text: &str, start: usize) -> bool {
    let mut back = context::before(text, start, 8).chars().rev();
    back.next() == Some(' ') && back.next().is_some_and(|c| c.is_ascii_digit())
}

/// Stricter than a lone number before it, laxer after it: a sentence may end there.
fn stands_alone(text: &str, bytes: &Range<usize>) -> bool {
    let mut back = context::before(text, bytes.start, 8).chars().rev();
    let joined = match back.next() {
        Some('.' | '-' | '/' | ',' | '=') => back.next().is_some_and(|c| c.is_ascii_digit()),
        Some(c) => c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '$' | '€' | '#'),
        None => false,
    };
    let mut front = context::after(text, bytes.end, 8).chars();
    let runs_on = match front.next() {
        Some('.' | ',' | '-' | '/' | ':') => front.next().is_some_and(|c| c.is_ascii_alphanumeric()),
        Some(c) => c.is_ascii_alphanumeric() || c == '_',
        None => false,
    };
    !joined && !runs_on
}

/// Whether a number of the plan of North America: no area or exchange begins with 0 or 1, none is N11.
/// Source: <https://www.nanpa.com/numbering>.
fn is_north_american(number: &str) -> bool {
    let local = number.strip_prefix('1').filter(|_| number.len() == 11).unwrap_or(number);
    let part = |from: usize| local.get(from..from + 3).unwrap_or("");
    let valid = |code: &str| code.starts_with(|c: char| ('2'..='9').contains(&c)) && !code.ends_with("11");
    local.len() == 10 && valid(part(0)) && part(0).as_bytes().get(1) != Some(&b'9') && valid(part(3))
}

/// Whether the digits begin with a country code in use and are as long as numbers there.
/// Source: ITU-T E.164 and its list of assigned country codes.
fn is_international(number: &str) -> bool {
    let prefix = |len: usize| number.get(..len).and_then(|head| head.parse::<u32>().ok()).unwrap_or(0);
    let length = number.len();
    match prefix(2) {
        10..=19 => is_north_american(number),
        33 | 34 | 61 => length == 11 || number.get(2..3) == Some("0") && length == 12,
        44 => (11..=13).contains(&length),
        91 => (12..=13).contains(&length),
        20
        | 27
        | 30..=32
        | 36
        | 39..=41
        | 43
        | 45..=49
        | 51..=58
        | 60
        | 62..=66
        | 70..=79
        | 81
        | 82
        | 84
        | 86
        | 90
        | 92..=95
        | 98 => (9..=15).contains(&length),
        21..=26 | 29 | 35 | 37 | 38 | 42 | 50 | 59 | 67..=69 | 80 | 85 | 87 | 88 | 96 | 97 | 99 => {
            (9..=15).contains(&length)
        }
        _ => false,
    }
}

/// `2024-11-20`, `2019-2020` and the like.
fn is_date_or_range(number: &str) -> bool {
    let parts: Vec<&str> = number.split(['-', '/', '.']).collect();
    let is_year = |part: &&str| part.len() == 4 && (part.starts_with("19") || part.starts_with("20"));
    parts.len() >= 2
        && (parts.first().is_some_and(is_year)
            || parts.last().is_some_and(is_year)
                && parts.len() == 3
                && parts.iter().take(2).all(|part| part.len() <= 2))
}
