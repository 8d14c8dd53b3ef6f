//! Taking disguises off a text, one character at a time, while remembering where everything came from.
//!
//! Look-alikes: Unicode TR 39 <https://www.unicode.org/reports/tr39/>, applied only inside a token that also holds
//! ASCII letters, so that Cyrillic or Greek prose stays what it is.

use std::iter::once;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_security::confusable_detection::skeleton;

use super::view::Piece;

/// A character that normalises to more than this many stays as it is: one ligature becomes eighteen letters, and a
/// text of nothing else would grow elevenfold.
const EXPANSION_MAX: usize = 4;

/// The folded text and its pieces, or nothing when the text folds to itself.
pub(super) fn fold(raw: &str) -> Option<(String, Vec<Piece>)> {
    if raw.bytes().all(is_plain) {
        return None;
    }
    let mut out = Folder { text: String::with_capacity(raw.len()), pieces: Vec::new() };
    let mut token_end = 0;
    let mut mixed = false;
    let mut after_flag = false;
    let mut at = 0;
    while let Some(rest) = raw.get(at..).filter(|rest| !rest.is_empty()) {
        let Some(c) = rest.chars().next() else { break };
        if at >= token_end {
            (token_end, mixed) = token(rest, at);
            token_end = token_end.max(at + c.len_utf8());
        }
        let plain = rest.bytes().take(token_end - at).take_while(|byte| is_plain(*byte)).count();
        if plain > 0 {
            out.copy(at, rest.get(..plain).unwrap_or(rest));
            at += plain;
            after_flag = false;
            continue;
        }
        out.fold_char(c, at, mixed, after_flag);
        after_flag = c == '\u{1F3F4}' || (after_flag && is_tag(c));
        at += c.len_utf8();
    }
    Some((out.text, out.pieces))
}

struct Folder {
    text: String,
    pieces: Vec<Piece>,
}

impl Folder {
    fn fold_char(&mut self, c: char, at: usize, mixed: bool, after_flag: bool) {
        if is_tag(c) {
            // Tag characters spell ASCII invisibly; after a black flag they are a regional flag.
            let plain = char::from_u32(u32::from(c) - 0xE0000).filter(|plain| !after_flag && !plain.is_control());
            return plain.into_iter().for_each(|plain| self.replace(at, c, &[plain]));
        }
        if is_invisible(c) {
            return;
        }
        if c.is_whitespace() {
            let line = matches!(c, '\u{0B}' | '\u{0C}' | '\u{85}' | '\u{2028}' | '\u{2029}');
            return self.replace(at, c, &[if line { '\n' } else { ' ' }]);
        }
        if is_dash(c) {
            return self.replace(at, c, &['-']);
        }
        if let Some(digit) = digit(c) {
            return self.replace(at, c, &[digit]);
        }
        if mixed && is_lookalike(c) {
            let mut buffer = [0; 4];
            let mut prototype = skeleton(c.encode_utf8(&mut buffer));
            if let (Some(plain), None) = (prototype.next().filter(char::is_ascii), prototype.next()) {
                // The prototype of a capital I of any script is a small l.
                let plain = if plain == 'l' && c.is_uppercase() { 'I' } else { plain };
                return self.replace(at, c, &[plain]);
            }
        }
        if is_accent(c) && self.text.ends_with(|last: char| last.is_ascii_graphic()) {
            return;
        }
        if is_settled(c) {
            return self.replace(at, c, &[c]);
        }
        let mut plain: Vec<char> = once(c).nfkd().filter(|part| !is_accent(*part)).collect();
        let bare = plain.first().is_some_and(char::is_ascii) && plain.len() == 1;
        if !bare {
            plain = once(c).nfkc().take(EXPANSION_MAX + 1).collect();
        }
        if plain.is_empty() || plain.len() > EXPANSION_MAX {
            plain = vec![c];
        }
        for part in &mut plain {
            if is_dash(*part) {
                *part = '-';
            } else if part.is_whitespace() && *part != '\n' {
                *part = ' ';
            }
        }
        self.replace(at, c, &plain);
    }

    fn replace(&mut self, at: usize, was: char, now: &[char]) {
        let folded = self.text.len();
        self.text.extend(now);
        if now == [was] {
            return self.note(folded, at, was.len_utf8());
        }
        let folded_len = self.text.len() - folded;
        self.pieces.push(Piece { folded, folded_len, raw: at, raw_len: was.len_utf8(), same: false });
    }

    fn copy(&mut self, at: usize, run: &str) {
        let folded = self.text.len();
        self.text.push_str(run);
        self.note(folded, at, run.len());
    }

    /// Notes a stretch that is the same in both texts, lengthening the last piece when it follows on.
    fn note(&mut self, folded: usize, raw: usize, len: usize) {
        if let Some(last) = self.pieces.last_mut()
            && last.same
            && last.raw + last.raw_len == raw
        {
            last.raw_len += len;
            last.folded_len += len;
            return;
        }
        self.pieces.push(Piece { folded, folded_len: len, raw, raw_len: len, same: true });
    }
}

/// Where the token that begins `rest` ends, and whether it mixes ASCII letters with look-alikes of another script.
fn token(rest: &str, at: usize) -> (usize, bool) {
    let (mut latin, mut alike, mut end) = (false, false, at);
    for c in rest.chars() {
        if !is_token(c) {
            break;
        }
        latin |= is_latin(c);
        alike |= is_lookalike(c);
        end += c.len_utf8();
    }
    (end, latin && alike)
}

/// Letters that are or fold to ASCII ones.
const fn is_latin(c: char) -> bool {
    c.is_ascii_alphabetic()
        || matches!(c, '\u{C0}'..='\u{130}' | '\u{132}'..='\u{17F}' | '\u{1D400}'..='\u{1D6A3}' | '\u{1E00}'..='\u{1EFF}'
            | '\u{FF21}'..='\u{FF3A}' | '\u{FF41}'..='\u{FF5A}')
}

fn is_token(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '@' | '+' | '%') || is_invisible(c) || is_accent(c)
}

const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\t' | b'\r')
}

const fn is_tag(c: char) -> bool {
    matches!(c, '\u{E0020}'..='\u{E007F}')
}

/// Control characters, format characters that show nothing, and fillers: Unicode's Default_Ignorable_Code_Point and
/// what of category Cf is not drawn. Source: <https://www.unicode.org/reports/tr44/#Default_Ignorable_Code_Point>.
pub(super) const fn is_invisible(c: char) -> bool {
    matches!(c,
        '\0'..='\u{8}' | '\u{E}'..='\u{1F}' | '\u{7F}'..='\u{84}' | '\u{86}'..='\u{9F}' | '\u{AD}' | '\u{34F}'
        | '\u{61C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}' | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{3164}'
        | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}'
        | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

const fn is_dash(c: char) -> bool {
    matches!(c, '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{FE58}' | '\u{FE63}' | '\u{FF0D}')
}

fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36F}' | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}' | '\u{20D0}'..='\u{20FF}'
        | '\u{FE20}'..='\u{FE2F}')
        && is_combining_mark(c)
}

/// Scripts whose letters are drawn like Latin ones.
const fn is_lookalike(c: char) -> bool {
    matches!(c, '\u{131}' | '\u{180}'..='\u{2AF}' | '\u{370}'..='\u{52F}' | '\u{531}'..='\u{587}'
        | '\u{13A0}'..='\u{13FF}' | '\u{1C80}'..='\u{1C8F}' | '\u{2C80}'..='\u{2CFF}' | '\u{A4D0}'..='\u{A4FF}'
        | '\u{A640}'..='\u{A69F}')
}

/// Blocks in which every character normalises to itself and carries no Latin accent: most of the world's prose.
const fn is_settled(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{3096}' | '\u{30A1}'..='\u{30FA}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}'
        | '\u{410}'..='\u{44F}' | '\u{5D0}'..='\u{5EA}' | '\u{620}'..='\u{64A}' | '\u{1F300}'..='\u{1FAFF}'
        | '\u{2018}'..='\u{201F}' | '\u{3001}'..='\u{3002}')
}

/// Where the decimal digits of other scripts begin. Source: Unicode category Nd.
const ZEROS: [u32; 24] = [
    0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6, 0xE50, 0xED0, 0xF20,
    0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1B50, 0xFF10,
];

fn digit(c: char) -> Option<char> {
    let code = u32::from(c);
    if code < 0x660 {
        return None;
    }
    let zero = ZEROS.iter().find(|zero| (**zero..**zero + 10).contains(&code))?;
    char::from_digit(code - zero, 10)
}
