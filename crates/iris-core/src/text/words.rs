//! Cutting a text into words in any script, after Unicode's word boundaries (UAX 29), simplified.
//!
//! Letters and digits with their marks hang together; an apostrophe between letters and a point or comma between digits
//! do not cut. Scripts written without spaces (and Korean, whose words carry endings) come as overlapping pairs of
//! characters, which works for finding without a dictionary. A word cut in two by a capital (`camelCase`) is two.
//! Source: <https://www.unicode.org/reports/tr29/#Word_Boundaries>.

use unicode_normalization::char::is_combining_mark;

/// Bytes of a word that are looked at; longer ones are told apart by their beginning.
pub(super) const WORD_BYTES_MAX: usize = 40;

/// What a word is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordKind {
    /// Letters, perhaps with digits.
    Letters,
    /// Digits, perhaps with points and commas between them.
    Number,
    /// A pair of characters of a script without spaces.
    Pair,
}

/// A word of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word<'a> {
    /// As it stands there.
    pub text: &'a str,
    /// Its first byte in the text.
    pub start: usize,
    /// What it is made of.
    pub kind: WordKind,
}

impl Word<'_> {
    /// Equal for words that differ in case only.
    pub fn key(&self) -> u64 {
        key(self.lower(&mut [0; WORD_BYTES_MAX]))
    }

    /// The word in lower case, as bytes in `buffer`; what does not fit is left out.
    pub(super) fn lower<'b>(&self, buffer: &'b mut [u8; WORD_BYTES_MAX]) -> &'b [u8] {
        let mut len = 0;
        if self.text.is_ascii() {
            len = self.text.len().min(WORD_BYTES_MAX);
            if let (Some(to), Some(from)) = (buffer.get_mut(..len), self.text.as_bytes().get(..len)) {
                to.copy_from_slice(from);
                to.make_ascii_lowercase();
            }
        } else {
            for c in self.text.chars().flat_map(char::to_lowercase) {
                let c = if c == '’' { '\'' } else { c };
                let Some(room) = buffer.get_mut(len..len + c.len_utf8()) else { break };
                c.encode_utf8(room);
                len += c.len_utf8();
            }
        }
        buffer.get(..len).unwrap_or_default()
    }
}

/// A number that tells words apart, never 0: eight bytes at a time, each mixed in by a wide multiplication whose halves
/// are laid over each other. Tables use the high bits.
pub(super) fn key(word: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = |hash: u64, part: u64| {
        let wide = u128::from(hash ^ part) * u128::from(FACTOR);
        #[expect(clippy::cast_possible_truncation, reason = "the halves of the product")]
        let (low, high) = (wide as u64, (wide >> 64) as u64);
        low ^ high.rotate_left(32)
    };
    let (parts, rest) = word.as_chunks::<8>();
    let hash = parts
        .iter()
        .fold(word.len() as u64 ^ 0xcbf2_9ce4_8422_2325, |hash, part| mixed(hash, u64::from_le_bytes(*part)));
    let last = rest.iter().rev().fold(0, |last, byte| last << 8 | u64::from(*byte));
    mixed(mixed(hash, last), FACTOR) | 1
}

/// The words of a text, in order.
pub fn words(text: &str) -> Words<'_> {
    Words { text, at: 0, pairs_end: 0 }
}

/// See [`words`].
#[derive(Debug, Clone)]
pub struct Words<'a> {
    text: &'a str,
    at: usize,
    /// Up to here a stretch of a script without spaces is being read.
    pairs_end: usize,
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        if self.at < self.pairs_end
            && let Some(pair) = self.pair()
        {
            return Some(pair);
        }
        let bytes = self.text.as_bytes();
        loop {
            let byte = *bytes.get(self.at)?;
            if byte.is_ascii_alphanumeric() {
                return Some(self.run());
            }
            if byte.is_ascii() {
                self.at += 1;
                continue;
            }
            let c = self.char_at(self.at)?;
            if is_dense(c) {
                self.pairs_end = self.dense_end();
                if let Some(pair) = self.pair() {
                    return Some(pair);
                }
            } else if c.is_alphanumeric() {
                return Some(self.run());
            } else {
                self.at += c.len_utf8();
            }
        }
    }
}

impl<'a> Words<'a> {
    fn char_at(&self, at: usize) -> Option<char> {
        self.text.get(at..)?.chars().next()
    }

    fn dense_end(&self) -> usize {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let len: usize = rest.chars().take_while(|c| is_dense(*c) || is_combining_mark(*c)).map(char::len_utf8).sum();
        self.at + len
    }

    /// The next pair of the stretch; a stretch of one character is a pair of one.
    fn pair(&mut self) -> Option<Word<'a>> {
        let rest = self.text.get(self.at..self.pairs_end)?;
        let mut chars = rest.chars();
        let first = chars.next()?.len_utf8();
        let Some(second) = chars.next() else {
            let start = self.at;
            self.at = self.pairs_end;
            // The last character already was in a pair, unless it stands alone.
            let before = self.text.get(..start)?.chars().next_back();
            return match before {
                Some(c) if is_dense(c) => self.next(),
                _ => Some(Word { text: rest, start, kind: WordKind::Pair }),
            };
        };
        let start = self.at;
        self.at += first;
        let text = rest.get(..first + second.len_utf8())?;
        Some(Word { text, start, kind: WordKind::Pair })
    }

    /// The run of letters or digits that begins here.
    fn run(&mut self) -> Word<'a> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let is_number = bytes.get(start).is_some_and(u8::is_ascii_digit);
        let mut end = start;
        let mut was_lower = false;
        let mut letters = false;
        if bytes.get(start).is_some_and(u8::is_ascii_alphabetic) {
            // Most words are a letter of either case and small ones behind it.
            let small = bytes.get(start + 1..).unwrap_or_default().iter();
            end = start + 1 + small.take_while(|byte| byte.is_ascii_lowercase()).count();
            was_lower = bytes.get(end - 1).is_some_and(u8::is_ascii_lowercase);
            letters = true;
        }
        while let Some(byte) = bytes.get(end).copied() {
            if byte.is_ascii() {
                let joins = match byte {
                    b'\'' => letters && bytes.get(end + 1).is_some_and(u8::is_ascii_alphabetic),
                    b'.' | b',' => is_number && !letters && bytes.get(end + 1).is_some_and(u8::is_ascii_digit),
                    _ => false,
                };
                if !byte.is_ascii_alphanumeric() && !joins || was_lower && byte.is_ascii_uppercase() {
                    break;
                }
                was_lower = byte.is_ascii_lowercase();
                letters |= byte.is_ascii_alphabetic();
                end += 1;
                continue;
            }
            let Some(c) = self.char_at(end) else { break };
            let joins = c == '’' && letters && bytes.get(end + c.len_utf8()).is_some_and(u8::is_ascii_alphabetic);
            if !(c.is_alphanumeric() || is_combining_mark(c) || joins) || is_dense(c) {
                break;
            }
            was_lower = c.is_lowercase();
            letters |= c.is_alphabetic();
            end += c.len_utf8();
        }
        self.at = end;
        let kind = if letters { WordKind::Letters } else { WordKind::Number };
        Word { text: self.text.get(start..end).unwrap_or_default(), start, kind }
    }
}

/// Scripts whose words are not told apart by spaces, and Hangul.
const fn is_dense(c: char) -> bool {
    matches!(c,
        '\u{E00}'..='\u{EFF}' | '\u{1000}'..='\u{109F}' | '\u{1100}'..='\u{11FF}' | '\u{1780}'..='\u{17FF}'
        | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30FF}' | '\u{3130}'..='\u{318F}' | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{323AF}')
        && c != '\u{30FB}'
}
