//! What stands around a hit.

use std::ops::Range;

/// The text of at most `window` bytes before `at`, cut to whole characters.
pub fn before(text: &str, at: usize, window: usize) -> &str {
    let mut start = at.saturating_sub(window);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.get(start..at).unwrap_or("")
}

/// The text of at most `window` bytes from `at` on, cut to whole characters.
pub fn after(text: &str, at: usize, window: usize) -> &str {
    let mut end = at.saturating_add(window).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(at..end).unwrap_or("")
}

/// The character right before `at`.
pub fn last(text: &str, at: usize) -> Option<char> {
    before(text, at, 4).chars().next_back()
}

/// The character at `at`.
pub fn next(text: &str, at: usize) -> Option<char> {
    after(text, at, 4).chars().next()
}

/// Whether a number at these bytes stands by itself: not inside a longer number, an identifier, a decimal fraction or
/// a power of ten. Letters of other scripts may touch it, and so may a word before it.
pub fn is_number_alone(text: &str, bytes: &Range<usize>) -> bool {
    let head = before(text, bytes.start, 8);
    let tail = after(text, bytes.end, 8);
    let mut back = head.chars().rev();
    let joined_before = match back.next() {
        Some('.' | ',' | '-' | '/' | '+' | ':') => back.next().is_some_and(|c| c.is_ascii_digit()),
        Some(c) => c.is_ascii_digit() || c == '_',
        None => false,
    };
    let mut front = tail.chars();
    let joined_after = match front.next() {
        Some('.' | ',' | ':') => front.next().is_some_and(|c| c.is_ascii_digit()),
        Some('-' | '/') => front.next().is_some_and(|c| c.is_ascii_alphanumeric()),
        Some(c) => c.is_ascii_alphanumeric() || c == '_',
        None => false,
    };
    !joined_before && !joined_after
}
