//! A text as a rule reads it, and the way back to the text as written.

use std::borrow::Cow;
use std::ops::Range;

use super::TextSpan;
use super::fold::fold;
use super::span::head;

/// How many bytes of one text are looked at. What lies beyond is not judged, and a rule that found nothing before it
/// does not pass but says so: see `rules`.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// One piece of a folded text and the raw bytes it came from. What was removed lies between two pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub folded: usize,
    pub folded_len: usize,
    pub raw: usize,
    pub raw_len: usize,
    /// Byte for byte the same, so an offset inside it maps to an offset; otherwise the piece maps as a whole.
    pub same: bool,
}

/// A text to read, with a map back to the raw one.
#[derive(Debug, Clone)]
pub struct View<'a> {
    raw: &'a str,
    text: Cow<'a, str>,
    /// Empty when `text` is `raw` unchanged.
    pieces: Vec<Piece>,
    cut: bool,
}

impl<'a> View<'a> {
    /// The text as written.
    pub fn raw(text: &'a str) -> Self {
        let raw = head(text, TEXT_BYTES_MAX);
        Self { raw, text: Cow::Borrowed(raw), pieces: Vec::new(), cut: raw.len() < text.len() }
    }

    /// The text without its disguises: full-width and styled letters and foreign digits become ASCII, invisible and
    /// bidirectional characters vanish, look-alike letters inside a token that mixes scripts become Latin, accents
    /// fall off Latin letters, typographic dashes become hyphens and every kind of space a plain one.
    pub fn folded(text: &'a str) -> Self {
        let raw = head(text, TEXT_BYTES_MAX);
        let cut = raw.len() < text.len();
        match fold(raw) {
            Some((folded, pieces)) => Self { raw, text: Cow::Owned(folded), pieces, cut },
            None => Self { raw, text: Cow::Borrowed(raw), pieces: Vec::new(), cut },
        }
    }

    /// What to read. Byte offsets into it go to [`View::span`].
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the text was longer than [`TEXT_BYTES_MAX`] and only its beginning is seen.
    pub const fn is_cut(&self) -> bool {
        self.cut
    }

    /// Where in the raw text stands what was read at these bytes. Widens to whole characters, never narrows.
    pub fn span(&self, bytes: Range<usize>) -> TextSpan {
        TextSpan::of(self.raw, self.raw_bytes(bytes))
    }

    /// The same in bytes of the raw text.
    pub fn raw_bytes(&self, bytes: Range<usize>) -> Range<usize> {
        if self.pieces.is_empty() {
            return bytes;
        }
        let start = self.piece_at(bytes.start).map_or(self.raw.len(), |piece| {
            if piece.same { piece.raw + bytes.start.saturating_sub(piece.folded) } else { piece.raw }
        });
        if bytes.end <= bytes.start {
            return start..start;
        }
        let end = self.piece_at(bytes.end - 1).map_or(self.raw.len(), |piece| {
            if piece.same { piece.raw + (bytes.end - piece.folded) } else { piece.raw + piece.raw_len }
        });
        start..end.max(start)
    }

    fn piece_at(&self, offset: usize) -> Option<&Piece> {
        let next = self.pieces.partition_point(|piece| piece.folded + piece.folded_len <= offset);
        self.pieces.get(next)
    }
}
