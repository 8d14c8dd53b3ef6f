//! What stands behind encodings: base64, hex, percent signs, character references, `\u` and `\x` escapes and quoted
//! printable, and behind one of them inside another.
//!
//! Work is bounded: a run longer than a few kilobytes is data, not a disguise, and only so many bytes of what may hold
//! something are searched. What is left then is reported as unread, never as clean.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::{Hit, Standing, card, context, email, iban, pattern, placeholders, secret, ssn};
use crate::text::View;

/// How many bytes of decoded runs are searched.
const OPENED_BYTES_MAX: usize = 1 << 19;
/// What the search of a run costs beside its length, in bytes: short runs are not free.
const RUN_COST_BYTES: usize = 64;
/// The fewest digits that a card, social security or account number has.
const DIGITS_MIN: usize = 9;

static ESCAPE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"%u?[0-9A-Fa-f]{2}|&#[xX]?[0-9A-Fa-f]{2,6};|&(?:commat|period|hyphen|dash|colon|equals|num|sol|lowbar|nbsp);|\\u\{?[0-9A-Fa-f]{2,6}|\\x[0-9A-Fa-f]{2}|=[2-7][0-9A-F]",
    )
});
/// The shortest and the longest run that is taken apart.
const RUN_BYTES: Range<usize> = 16..4097;
/// A line of a wrapped run is at least this long. Source: RFC 2045, 6.8, and RFC 7468, 2.
const LINE_BYTES_MIN: usize = 60;

/// How many bytes around an escape belong to its run.
const AROUND_BYTES: usize = 120;

/// What stands behind the runs of a text.
#[derive(Debug, Default)]
pub struct Behind {
    /// Live ones only; each covers its whole encoded run.
    pub hits: Vec<Hit>,
    /// The budget ran out with runs left.
    pub is_cut: bool,
}

/// Finds personal data and credentials in what is encoded.
pub fn find(view: &View<'_>) -> Behind {
    let mut behind = Behind::default();
    let mut left = OPENED_BYTES_MAX;
    let text = view.text();
    for (run, is_dense) in runs(text) {
        let Some(decoded) = opened(text, &run, is_dense) else { continue };
        if !spend(&mut left, &decoded) {
            behind.is_cut = true;
            break;
        }
        let hit = live(&decoded).or_else(|| {
            let inner = runs(&decoded).filter_map(|(run, is_dense)| opened(&decoded, &run, is_dense));
            inner.take_while(|inner| spend(&mut left, inner)).find_map(|inner| live(&inner))
        });
        behind.hits.extend(hit.map(|hit| Hit { bytes: run, ..hit }));
    }
    behind
}

fn spend(left: &mut usize, decoded: &str) -> bool {
    match left.checked_sub(decoded.len() + RUN_COST_BYTES) {
        Some(rest) => *left = rest,
        None => return false,
    }
    true
}

/// What a run says, when it says something in which something may be found.
fn opened(text: &str, run: &Range<usize>, is_dense: bool) -> Option<String> {
    let run = text.get(run.clone())?;
    let decoded = if is_dense { hex(run).or_else(|| base64(run)) } else { Some(unescape(run)) };
    decoded.filter(|decoded| may_hold(decoded))
}

/// Every run that may be encoded, and whether it is dense.
fn runs(text: &str) -> impl Iterator<Item = (Range<usize>, bool)> {
    dense(text).into_iter().map(|run| (run, true)).chain(escaped(text).map(|run| (run, false)))
}

const fn is_dense_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'_' | b'-')
}

/// Runs that may be base64 or hex, lines of one length taken together.
fn dense(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut runs = Vec::new();
    let (mut start, mut line, mut next) = (0, 0, 0);
    loop {
        // What begins before a byte that belongs to no run is too short when that one stands this near.
        if next == start
            && let Some(near) = bytes.get(next..next + RUN_BYTES.start)
            && let Some(last) = near.iter().rposition(|byte| !is_dense_byte(*byte) && *byte != b'\n')
        {
            next += last + 1;
            (start, line) = (next, next);
            continue;
        }
        let at = next;
        if at > bytes.len() {
            break;
        }
        next += 1;
        let byte = bytes.get(at).copied();
        if byte.is_some_and(is_dense_byte) {
            continue;
        }
        let wrapped =
            byte == Some(b'\n') && at - line >= LINE_BYTES_MIN && bytes.get(at + 1).copied().is_some_and(is_dense_byte);
        if wrapped {
            line = at + 1;
            continue;
        }
        let padded = at + bytes.get(at..).unwrap_or_default().iter().take(2).take_while(|byte| **byte == b'=').count();
        if RUN_BYTES.contains(&(at - start)) && is_dense(text.get(start..at).unwrap_or("")) {
            runs.push(start..padded);
        }
        (start, line) = (at + 1, at + 1);
    }
    runs
}

/// Whether a search is worth its cost. Never false for a text in which something would be found.
fn may_hold(decoded: &str) -> bool {
    !decoded.is_ascii()
        || decoded.contains('@')
        || decoded.bytes().filter(u8::is_ascii_digit).count() >= DIGITS_MIN
        || decoded.contains(['(', '[', '{'])
            && (decoded.to_ascii_lowercase().contains("at") || decoded.contains("[REDACTED:"))
        || secret::has_word(decoded)
        || !dense(decoded).is_empty()
        || may_escape(decoded) && ESCAPE.is_match(decoded)
}

/// Whether a text holds a sign with which an escape begins.
fn may_escape(text: &str) -> bool {
    memchr::memchr3(b'%', b'&', b'\\', text.as_bytes()).is_some() || memchr::memchr(b'=', text.as_bytes()).is_some()
}

/// Runs of visible ASCII around escapes, none overlapping.
fn escaped(text: &str) -> impl Iterator<Item = Range<usize>> {
    let text = if may_escape(text) { text } else { "" };
    let mut free_from = 0;
    std::iter::from_fn(move || {
        let escape = (free_from <= text.len()).then(|| ESCAPE.find_at(text, free_from)).flatten()?;
        let head = context::before(text, escape.start(), AROUND_BYTES.min(escape.start() - free_from));
        let tail = context::after(text, escape.end(), 2 * AROUND_BYTES);
        let start = escape.start() - head.bytes().rev().take_while(u8::is_ascii_graphic).count();
        free_from = escape.end() + tail.bytes().take_while(u8::is_ascii_graphic).count();
        Some(start..free_from)
    })
}

fn live(decoded: &str) -> Option<Hit> {
    if let Some(hit) = placeholders(decoded).find_map(|placeholder| placeholder.hit()) {
        return Some(hit);
    }
    let view = View::folded(decoded);
    [secret::find, card::find, ssn::find, iban::find, email::find]
        .iter()
        .flat_map(|find| find(&view))
        .find(|hit| hit.standing == Standing::Live)
}

/// Hex, or a mixture that words are not.
fn is_dense(run: &str) -> bool {
    let has = |class: fn(&u8) -> bool| run.bytes().any(|byte| class(&byte));
    has(u8::is_ascii_digit)
        && (has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase)
            || run.bytes().all(|b| b.is_ascii_hexdigit() || b == b'\n'))
}

fn base64(run: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(run.len() * 3 / 4);
    let (mut held, mut bits) = (0_u32, 0_u32);
    for byte in run.bytes().filter(|byte| !matches!(byte, b'=' | b'\n' | b'\r')) {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            _ => 63,
        };
        held = (held << 6 | u32::from(value)) & 0xFFFF;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits & 0xFF) as u8);
        }
    }
    text(bytes)
}

fn hex(run: &str) -> Option<String> {
    let digits: Option<Vec<u8>> = run
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    text(digits?.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect())
}

/// The bytes as text, when they are plain text.
fn text(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    let plain = text.chars().all(|c| !c.is_control() || matches!(c, '\t' | '\n' | '\r'));
    (plain && text.chars().filter(|c| !c.is_whitespace()).count() >= 9).then_some(text)
}

fn unescape(run: &str) -> String {
    let mut out: Vec<u8> = Vec::with_capacity(run.len());
    let mut rest = run;
    while let Some(c) = rest.chars().next() {
        let (value, len) = escape(rest).unwrap_or((None, c.len_utf8()));
        match value {
            Some(Unit::Byte(byte)) => out.push(byte),
            Some(Unit::Char(c)) => out.extend(c.encode_utf8(&mut [0; 4]).bytes()),
            None => out.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
        rest = rest.get(len..).unwrap_or("");
    }
    String::from_utf8_lossy(&out).into_owned()
}

enum Unit {
    Byte(u8),
    Char(char),
}

/// The escape at the head of `rest`, if there is one, and its length.
fn escape(rest: &str) -> Option<(Option<Unit>, usize)> {
    let unit = |code: u32| Some(Unit::Char(char::from_u32(code)?));
    if let Some(tail) = rest.strip_prefix("%u") {
        return Some((unit(u32::from_str_radix(tail.get(..4)?, 16).ok()?), 6));
    }
    if let Some(tail) = rest.strip_prefix('%').or_else(|| rest.strip_prefix('=')) {
        return Some((Some(Unit::Byte(u8::from_str_radix(tail.get(..2)?, 16).ok()?)), 3));
    }
    if let Some(tail) = rest.strip_prefix("\\u{") {
        let (digits, _) = tail.get(..tail.len().min(7))?.split_once('}')?;
        return Some((unit(u32::from_str_radix(digits, 16).ok()?), digits.len() + 4));
    }
    if let Some(tail) = rest.strip_prefix("\\u") {
        return Some((unit(u32::from_str_radix(tail.get(..4)?, 16).ok()?), 6));
    }
    if let Some(tail) = rest.strip_prefix("\\x") {
        return Some((Some(Unit::Byte(u8::from_str_radix(tail.get(..2)?, 16).ok()?)), 4));
    }
    let tail = rest.strip_prefix('&')?;
    if let Some((name, _, c)) =
        NAMED.iter().find_map(|(name, c)| Some((*name, tail.strip_prefix(*name)?.strip_prefix(';')?, *c)))
    {
        return Some((Some(Unit::Char(c)), name.len() + 2));
    }
    let tail = tail.strip_prefix('#')?;
    let (number, _) = tail.get(..tail.len().min(9))?.split_once(';')?;
    let value = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => number.parse().ok()?,
    };
    Some((unit(value), 2 + number.len() + 1))
}

/// Character references that hide what joins the parts of an address or a number.
/// Source: <https://html.spec.whatwg.org/multipage/named-characters.html>.
const NAMED: [(&str, char); 10] = [
    ("commat", '@'),
    ("period", '.'),
    ("hyphen", '-'),
    ("dash", '-'),
    ("colon", ':'),
    ("equals", '='),
    ("num", '#'),
    ("sol", '/'),
    ("lowbar", '_'),
    ("nbsp", ' '),
];
