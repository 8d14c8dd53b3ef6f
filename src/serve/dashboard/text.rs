//! Text that others wrote, as a page may show it: what turns the line around or shows nothing is written out, and what
//! evidence points at is marked, counted in code points of the text as it was sent.

use std::collections::BTreeSet;
use std::fmt;

/// Characters of one text on a page; more is cut, and said to be.
pub(super) const CHARS_MAX: usize = 60_000;

/// Text that others wrote. Templates escape it as they do every value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Words(String);

impl Words {
    /// The text, with what shows nothing written out.
    pub fn of(text: &str) -> Self {
        Self(visible(text))
    }

    /// Its first characters.
    pub fn brief(text: &str, chars: usize) -> Self {
        let mut letters = text.chars();
        let mut kept: String = letters.by_ref().take(chars).collect();
        if letters.next().is_some() {
            kept.push('…');
        }
        Self(visible(&kept))
    }

    /// Whether nothing is there.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Characters that turn the line around or show nothing, written out; those of which emoji are made stay.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_hidden(letter) {
            shown.push_str(&format!("[U+{:04X}]", u32::from(letter)));
        } else {
            shown.push(letter);
        }
    }
    shown
}

fn is_hidden(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{feff}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}' => true,
        other => other.is_control(),
    }
}

/// Something that evidence points at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spot {
    /// The number under which it is explained.
    pub number: usize,
    /// First code point.
    pub start: usize,
    /// One past the last.
    pub end: usize,
}

/// A stretch of a text to which the same spots belong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    /// The stretch.
    pub text: Words,
    /// Whether evidence points at it.
    pub is_marked: bool,
    /// The spots that it is part of.
    pub within: Vec<usize>,
    /// The spots that end with it.
    pub ends: Vec<usize>,
}

impl Piece {
    /// The numbers of its spots, for one attribute.
    pub fn numbers(&self) -> String {
        self.within.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }
}

/// A text in pieces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Marked {
    /// In order.
    pub pieces: Vec<Piece>,
    /// Characters of the whole text, when not all of them are here.
    pub cut_from: Option<usize>,
}

impl Marked {
    /// The text with these spots marked.
    pub fn of(text: &str, spots: &[Spot]) -> Self {
        let chars = text.chars().count();
        let shown = chars.min(CHARS_MAX);
        let mut borders = BTreeSet::from([0, shown]);
        for spot in spots.iter().filter(|spot| spot.start < spot.end) {
            borders.extend([spot.start.min(shown), spot.end.min(shown)]);
        }
        let mut letters = text.chars();
        let borders: Vec<usize> = borders.into_iter().collect();
        let pieces = borders.iter().zip(borders.iter().skip(1)).map(|(from, to)| {
            let stretch: String = letters.by_ref().take(to - from).collect();
            let within = spots.iter().filter(|spot| spot.start <= *from && *to <= spot.end.min(shown));
            let within: Vec<&Spot> = within.filter(|spot| spot.start < spot.end).collect();
            Piece {
                text: Words::of(&stretch),
                is_marked: !within.is_empty(),
                ends: within.iter().filter(|spot| spot.end.min(shown) == *to).map(|spot| spot.number).collect(),
                within: within.iter().map(|spot| spot.number).collect(),
            }
        });
        Self { pieces: pieces.collect(), cut_from: (chars > shown).then_some(chars) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str, spots: &[(usize, usize)]) -> Vec<(String, Vec<usize>)> {
        let spots: Vec<Spot> = spots
            .iter()
            .enumerate()
            .map(|(at, (start, end))| Spot { number: at + 1, start: *start, end: *end })
            .collect();
        let pieces = Marked::of(text, &spots).pieces;
        pieces.into_iter().map(|piece| (piece.text.to_string(), piece.within)).collect()
    }

    fn only_marked(text: &str, spots: &[(usize, usize)]) -> Vec<String> {
        marked(text, spots).into_iter().filter(|(_, within)| !within.is_empty()).map(|(text, _)| text).collect()
    }

    /// Guarantees: offsets are code points, whatever their bytes, halves in UTF-16 or direction.
    #[test]
    fn marks_stand_at_the_code_points_they_name() {
        assert_eq!(only_marked("mail a@b.io now", &[(5, 11)]), ["a@b.io"]);
        assert_eq!(only_marked("👩‍👩‍👧 → a@b.io 🎉", &[(8, 14)]), ["a@b.io"]);
        assert_eq!(only_marked("שלחו אל a@b.io בבקשה", &[(8, 14)]), ["a@b.io"]);
        assert_eq!(only_marked("e\u{301}\u{301}x", &[(1, 3)]), ["\u{301}\u{301}"]);
    }

    #[test]
    fn spots_may_overlap_touch_and_lie_within_another() {
        let found = marked("abcdefgh", &[(1, 5), (3, 7), (3, 5)]);
        let expected: [(&str, &[usize]); 5] = [("a", &[]), ("bc", &[1]), ("de", &[1, 2, 3]), ("fg", &[2]), ("h", &[])];
        let expected: Vec<(String, Vec<usize>)> =
            expected.iter().map(|(text, within)| ((*text).to_owned(), within.to_vec())).collect();
        assert_eq!(found, expected);
        let spots = [Spot { number: 1, start: 1, end: 5 }, Spot { number: 2, start: 3, end: 7 }];
        let ends: Vec<Vec<usize>> = Marked::of("abcdefgh", &spots).pieces.into_iter().map(|one| one.ends).collect();
        assert_eq!(ends, [vec![], vec![], vec![1], vec![2], vec![]], "a number stands where its spot ends, once");
    }

    #[test]
    fn spots_beyond_the_text_and_empty_ones_mark_nothing() {
        assert_eq!(marked("abc", &[(2, 2), (7, 9)]), [("abc".to_owned(), vec![])]);
        assert_eq!(only_marked("abc", &[(2, 9)]), ["c"]);
        assert!(marked("", &[(0, 1)]).is_empty());
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let long = "é".repeat(CHARS_MAX + 5);
        let marked = Marked::of(&long, &[Spot { number: 1, start: CHARS_MAX - 1, end: CHARS_MAX + 3 }]);
        assert_eq!(marked.cut_from, Some(CHARS_MAX + 5));
        assert_eq!(
            marked.pieces.last().map(|piece| (piece.text.to_string(), piece.is_marked)),
            Some(("é".into(), true))
        );
    }

    #[test]
    fn what_turns_the_line_around_is_written_out_and_emoji_stay_whole() {
        assert_eq!(Words::of("a\u{202e}b\u{2066}\u{7}c\nd").to_string(), "a[U+202E]b[U+2066][U+0007]c\nd");
        assert_eq!(Words::of("👩‍👩‍👧 ❤️").to_string(), "👩‍👩‍👧 ❤️");
        assert_eq!(Words::of("x\u{e0041}").to_string(), "x[U+E0041]");
        assert_eq!(Words::brief("añb", 2).to_string(), "añ…");
        assert_eq!(Words::brief("añ", 2).to_string(), "añ");
    }
}
