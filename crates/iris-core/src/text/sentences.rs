//! Cutting prose into sentences and clauses, roughly, in any script.

use super::scan::position;

/// The sentences of a text, as slices of it: cut after `.`, `!`, `?` before white space or the end, after their
/// full-width kin anywhere, and at line ends. A full stop between digits or after a single capital does not cut.
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    placed_sentences(text).map(|(_, sentence)| sentence)
}

/// The [`sentences`] of a text, each with the byte at which it begins.
pub fn placed_sentences(text: &str) -> Sentences<'_> {
    Sentences { rest: text, at: 0 }
}

/// See [`placed_sentences`].
#[derive(Debug, Clone)]
pub struct Sentences<'a> {
    rest: &'a str,
    at: usize,
}

impl<'a> Iterator for Sentences<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<(usize, &'a str)> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            let end = end_of_first(self.rest);
            let (sentence, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
            let start = self.at;
            self.rest = rest;
            self.at += sentence.len();
            if sentence.chars().any(char::is_alphanumeric) {
                let begun = sentence.trim_start();
                return Some((start + sentence.len() - begun.len(), begun.trim_end()));
            }
        }
    }
}

fn end_of_first(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut next = 0;
    while let Some(found) = bytes.get(next..).and_then(|rest| position(rest, may_end)) {
        let at = next + found;
        next = at + 1;
        let blank_follows = || text.get(at + 1..).and_then(|rest| rest.chars().next()).is_none_or(char::is_whitespace);
        match bytes.get(at).copied().unwrap_or(b' ') {
            b'\n' => return at + 1,
            b'!' | b'?' if blank_follows() => return at + 1,
            b'.' if blank_follows() && !ends_in_initial(text.get(..at).unwrap_or("")) => return at + 1,
            0xE3 | 0xEF if text.get(at..).is_some_and(|rest| rest.starts_with(['。', '！', '？', '．'])) => {
                return at + 3;
            }
            _ => {}
        }
    }
    text.len()
}

/// Whether a sentence may end at a character that begins with this byte.
const fn may_end(byte: u8) -> bool {
    (byte == b'\n') | (byte == b'.') | (byte == b'!') | (byte == b'?') | (byte == 0xE3) | (byte == 0xEF)
}

/// Whether a single capital stands at the end.
fn ends_in_initial(text: &str) -> bool {
    let mut last = text.chars().rev();
    last.next().is_some_and(char::is_uppercase) && !last.next().is_some_and(char::is_alphanumeric)
}
