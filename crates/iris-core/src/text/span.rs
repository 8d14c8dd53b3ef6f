//! The unit of evidence.

use std::ops::Range;

/// A stretch of a raw text, counted in Unicode code points: `start` is the first, `end` one past the last.
///
/// The only way to make one is to point at bytes of a text, so offsets in other units cannot slip in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextSpan {
    start: usize,
    end: usize,
}

impl TextSpan {
    /// Counts the code points before and inside `bytes` of `text`. Offsets inside a character are moved down to its
    /// start, offsets past the end to the end.
    pub fn of(text: &str, bytes: Range<usize>) -> Self {
        let start = floor(text, bytes.start);
        let end = floor(text, bytes.end).max(start);
        let before = text.get(..start).map_or(0, |head| head.chars().count());
        let inside = text.get(start..end).map_or(0, |body| body.chars().count());
        Self { start: before, end: before + inside }
    }

    /// The first code point.
    pub const fn start(self) -> usize {
        self.start
    }

    /// One past the last code point.
    pub const fn end(self) -> usize {
        self.end
    }
}

/// The nearest character boundary at or before `offset`.
pub(super) fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// At most the first `bytes` bytes of a text, cut to whole characters.
pub fn head(text: &str, bytes: usize) -> &str {
    text.get(..floor(text, bytes)).unwrap_or(text)
}

/// At most the last `bytes` bytes of a text, cut to whole characters.
pub fn tail(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.get(start..).unwrap_or(text)
}
