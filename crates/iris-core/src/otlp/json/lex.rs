//! JSON's tokens, with their places in the body. Strict in form: what this takes, every JSON parser takes.
//! Source: <https://www.rfc-editor.org/rfc/rfc8259>.

use std::borrow::Cow;

use super::super::{DEPTH_MAX, Stop};

/// Reads tokens one after the other.
#[derive(Clone, Copy)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

/// A string as it stands in the body, quotes left out.
#[derive(Clone, Copy)]
pub(super) struct Quoted<'a> {
    raw: &'a str,
    is_escaped: bool,
}

impl<'a> Quoted<'a> {
    /// The string itself. Half a surrogate pair, which JavaScript writes when it cuts a string, becomes U+FFFD.
    pub(super) fn text(self) -> Cow<'a, str> {
        if self.is_escaped { Cow::Owned(unescape(self.raw)) } else { Cow::Borrowed(self.raw) }
    }
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Where it stands, in bytes.
    pub(super) fn offset(&self) -> usize {
        self.at
    }

    pub(super) fn stop(&self, why: &'static str) -> Stop {
        Stop::Malformed { offset: self.at, why }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The first byte of the next token, which is not taken; none at the end.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.byte() {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    /// Takes one punctuation mark if it is next.
    pub(super) fn take(&mut self, mark: u8) -> bool {
        let is_next = self.peek() == Some(mark);
        self.at += usize::from(is_next);
        is_next
    }

    /// Nothing but white space may be left.
    pub(super) fn end(&mut self) -> Result<(), Stop> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.stop("something follows the request")),
        }
    }

    /// After `{` (`first`) or a member's value: the next member's key with its colon, none at `}`.
    pub(super) fn key(&mut self, first: bool) -> Result<Option<Quoted<'a>>, Stop> {
        if self.take(b'}') {
            return Ok(None);
        }
        if !first && !self.take(b',') {
            return Err(self.stop("an object goes on without a comma"));
        }
        if self.peek() != Some(b'"') {
            return Err(self.stop("an object's key is not a string"));
        }
        let key = self.string()?;
        if !self.take(b':') {
            return Err(self.stop("a key has no colon"));
        }
        Ok(Some(key))
    }

    /// After `[` (`first`) or an element: whether another element follows; the place of the comma before it.
    pub(super) fn element(&mut self, first: bool) -> Result<Option<usize>, Stop> {
        if self.take(b']') {
            return Ok(None);
        }
        let comma = self.at;
        if !first && !self.take(b',') {
            return Err(self.stop("an array goes on without a comma"));
        }
        Ok(Some(comma))
    }

    /// A string, its opening quote next.
    pub(super) fn string(&mut self) -> Result<Quoted<'a>, Stop> {
        let start = self.at + 1;
        let mut at = start;
        let mut is_escaped = false;
        loop {
            let rest = self.text.as_bytes().get(at..).unwrap_or_default();
            let Some(plain) = memchr::memchr2(b'"', b'\\', rest) else {
                return Err(self.stop("a string does not end"));
            };
            self.no_control(at, rest.get(..plain).unwrap_or_default())?;
            at += plain;
            if rest.get(plain) == Some(&b'"') {
                break;
            }
            is_escaped = true;
            at = self.escape(at)?;
        }
        self.at = at + 1;
        let raw = self.text.get(start..at).unwrap_or_default();
        Ok(Quoted { raw, is_escaped })
    }

    /// None of these bytes, which begin at `at`, may be a control character.
    fn no_control(&mut self, at: usize, bytes: &[u8]) -> Result<(), Stop> {
        // Without an early end the compiler looks at many bytes at once.
        if !bytes.iter().fold(false, |found, byte| found | (*byte < 0x20)) {
            return Ok(());
        }
        self.at = at + bytes.iter().position(|byte| *byte < 0x20).unwrap_or_default();
        Err(self.stop("a string holds a control character"))
    }

    /// The place behind the escape that begins at `at`.
    fn escape(&mut self, at: usize) -> Result<usize, Stop> {
        let bytes = self.text.as_bytes();
        let is_hex = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
        match bytes.get(at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
            Some(b'u') if bytes.get(at + 2..at + 6).is_some_and(is_hex) => Ok(at + 6),
            _ => {
                self.at = at;
                Err(self.stop("an escape does not exist"))
            }
        }
    }

    /// A number, its first byte next.
    pub(super) fn number(&mut self) -> Result<&'a str, Stop> {
        let start = self.at;
        self.at += usize::from(self.byte() == Some(b'-'));
        let whole = self.digits();
        let leading_zero = self.text.as_bytes().get(self.at - whole) == Some(&b'0');
        let mut is_valid = whole == 1 || (whole > 1 && !leading_zero);
        if self.byte() == Some(b'.') {
            self.at += 1;
            is_valid &= self.digits() > 0;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.byte(), Some(b'+' | b'-')));
            is_valid &= self.digits() > 0;
        }
        if !is_valid {
            self.at = start;
            return Err(self.stop("a value is not JSON"));
        }
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    /// `true`, `false` or `null`.
    pub(super) fn word(&mut self, word: &'static str) -> Result<(), Stop> {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(self.stop("a value is not JSON"));
        }
        self.at += word.len();
        Ok(())
    }

    /// Passes over any value.
    pub(super) fn skip(&mut self) -> Result<(), Stop> {
        self.skip_at(0)
    }

    fn skip_at(&mut self, depth: usize) -> Result<(), Stop> {
        match self.peek() {
            Some(b'"') => self.string().map(|_| ()),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            Some(b'[' | b'{') if depth >= DEPTH_MAX => Err(Stop::TooDeep { max: DEPTH_MAX }),
            Some(b'[') => {
                self.at += 1;
                let mut first = true;
                while self.element(first)?.is_some() {
                    self.skip_at(depth + 1)?;
                    first = false;
                }
                Ok(())
            }
            Some(b'{') => {
                self.at += 1;
                let mut first = true;
                while self.key(first)?.is_some() {
                    self.skip_at(depth + 1)?;
                    first = false;
                }
                Ok(())
            }
            Some(_) => self.number().map(|_| ()),
            None => Err(self.stop("the request is cut off")),
        }
    }
}

/// Resolves the escapes of a string whose escapes are well formed.
fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((plain, escape)) = rest.split_once('\\') {
        out.push_str(plain);
        let mut chars = escape.chars();
        match chars.next() {
            Some('u') => {
                let (character, len) = unicode(escape);
                out.push(character);
                rest = escape.get(len..).unwrap_or_default();
                continue;
            }
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some(other) => out.push(other),
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out
}

/// The character of an escape that begins with `u`, and how many bytes it takes: two escapes may make one.
fn unicode(escape: &str) -> (char, usize) {
    let unit = |from: usize| {
        let digits = escape.get(from..from + 4)?;
        u32::from_str_radix(digits, 16).ok()
    };
    let Some(high) = unit(1) else { return (char::REPLACEMENT_CHARACTER, 1) };
    if let Some(character) = char::from_u32(high) {
        return (character, 5);
    }
    let low = escape.get(5..7).filter(|next| *next == "\\u").and_then(|_| unit(7));
    if let (0xd800..0xdc00, Some(low @ 0xdc00..0xe000)) = (high, low) {
        let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        return (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 11);
    }
    (char::REPLACEMENT_CHARACTER, 5)
}
