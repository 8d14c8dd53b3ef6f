//! Signs, in a text itself, that it was cut off before its end.
//!
//! What is structured says so plainly: a fence that stays open, JSON that ends in the middle. Prose shows it by its last
//! words: a comma, an article, an open bracket, a sentence that does not end where the others do. A list, a verse, a
//! signature, a tweet, code and a bare value end without a full stop and are whole.

use std::ops::Range;

use super::prose::{is_closer, is_foreign_stop, is_item, marker};
use super::span::tail;

/// How a text seems to be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// A code fence stays open.
    OpenFence,
    /// A JSON value stays open.
    OpenJson,
    /// An HTML document stays open.
    OpenDocument,
    /// It ends with a sign after which something has to come.
    Hanging,
    /// A bracket or quotation of the last line stays open.
    OpenBracket,
    /// It ends with a word after which something has to come.
    OpenPhrase,
    /// The last sentence does not end, where those before it do.
    OpenSentence,
    /// It announces a list item or a part that is not there.
    EmptyItem,
}

impl Cut {
    /// Its name in evidence.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenFence => "open_code_fence",
            Self::OpenJson => "open_json",
            Self::OpenDocument => "open_document",
            Self::Hanging => "hanging_end",
            Self::OpenBracket => "open_bracket",
            Self::OpenPhrase => "open_phrase",
            Self::OpenSentence => "open_sentence",
            Self::EmptyItem => "empty_item",
        }
    }

    /// Whether the form of the text proves it, whatever else is known.
    pub const fn is_structural(self) -> bool {
        matches!(self, Self::OpenFence | Self::OpenJson | Self::OpenDocument)
    }
}

/// How much of the end of a text is read for signs in prose.
const TAIL_BYTES_MAX: usize = 8192;
/// How large a text may be to be read as JSON.
const JSON_BYTES_MAX: usize = 1 << 20;

/// How a text seems to be cut, and the bytes that show it; nothing when it seems whole.
pub fn cut(text: &str) -> Option<(Cut, Range<usize>)> {
    let end = text.trim_end().len();
    let whole = text.get(..end)?;
    if whole.is_empty() {
        return None;
    }
    if let Some(start) = open_fence(whole) {
        return Some((Cut::OpenFence, start..end));
    }
    if is_open_json(whole) {
        return Some((Cut::OpenJson, 0..end));
    }
    if is_open_document(whole) {
        return Some((Cut::OpenDocument, 0..end));
    }
    let last = tail(whole, TAIL_BYTES_MAX);
    let (sign, line) = Ending::of(last)?.sign()?;
    let start = end - last.len() + line;
    Some((sign, start..end))
}

/// Where a code fence begins that nothing closes. Source: <https://spec.commonmark.org/0.31.2/#fenced-code-blocks>.
fn open_fence(text: &str) -> Option<usize> {
    if !text.contains("```") && !text.contains("~~~") {
        return None;
    }
    let mut open: Option<(usize, char, usize)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        let sign = bare.chars().next().filter(|c| matches!(c, '`' | '~'));
        if let Some(sign) = sign {
            let run = bare.chars().take_while(|c| *c == sign).count();
            let rest = bare.get(run..).unwrap_or_default();
            match open {
                Some((_, opened, least)) if opened == sign && run >= least && rest.is_empty() => open = None,
                None if run >= 3 && !(sign == '`' && rest.contains('`')) => open = Some((at, sign, run)),
                _ => {}
            }
        }
        at += line.len();
    }
    open.map(|(start, _, _)| start)
}

fn is_open_json(text: &str) -> bool {
    let text = text.trim_start();
    let mut signs = text.chars().filter(|c| !c.is_whitespace());
    let looks = match (signs.next(), signs.next()) {
        (Some('{'), Some('"') | None) => true,
        (Some('['), second) => matches!(second, Some('{' | '[' | '"' | '0'..='9') | None) && !text.contains("]("),
        _ => false,
    };
    if !looks || text.len() > JSON_BYTES_MAX {
        return false;
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => false,
        Err(error) => error.is_eof(),
    }
}

fn is_open_document(text: &str) -> bool {
    let start = super::head(text.trim_start(), 64).to_ascii_lowercase();
    (start.starts_with("<!doctype html") || start.starts_with("<html"))
        && !tail(text, TAIL_BYTES_MAX).to_ascii_lowercase().contains("</html")
}

/// Words after which a phrase goes on, in English.
const OPENERS: &str = " a an the and or nor but of to at by for from with without into onto upon between among through during \
    against toward towards across behind beyond as than whose because although though unless until while whether since \
    if that which who whom is are was were has have had could may might must shall should will would can do does did i \
    he she we they my your his her its our their these those every each either neither not very more most also even how \
    what why when where be been being am it's i'm you're we're they're that's there's so about before after above below \
    within near on in over under this any such both some it you just only like including such ";
/// Those of them that may well end a title, an order or a question.
const LOOSE: &str = " in on over about under it you this so do does is are be can will how what why when where who i that more most \
    before after above below near within any both some each like not was not even have has had he she we they ";

/// What the end of a text looks like.
struct Ending<'a> {
    /// The lines that are not blank, the last of them last; at most [`LINES_MAX`] of them.
    lines: Vec<&'a str>,
    last: &'a str,
    /// Where the last line begins in the text.
    start: usize,
    /// The last line without the marker of a list item.
    body: &'a str,
    item: bool,
}

/// How many lines before the last are compared with it.
const LINES_MAX: usize = 40;

impl<'a> Ending<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let mut lines: Vec<&str> =
            text.lines().rev().map(str::trim).filter(|line| !line.is_empty()).take(LINES_MAX + 1).collect();
        lines.reverse();
        let last = lines.pop()?;
        let start = text.len() - text.trim_end().lines().next_back().unwrap_or_default().trim_start().len();
        let len = marker(last).unwrap_or(0);
        let body = last.get(len..).unwrap_or_default().trim_start_matches(['>', '#', ' ']);
        Some(Self { lines, last, start, body, item: len > 0 })
    }

    fn sign(&self) -> Option<(Cut, usize)> {
        self.find().map(|sign| (sign, self.start))
    }

    fn find(&self) -> Option<Cut> {
        let last = self.last;
        if last.starts_with("```") || last.starts_with("~~~") {
            return None;
        }
        if is_bare_marker(last) && self.lines.iter().any(|line| is_item(line)) {
            return Some(Cut::EmptyItem);
        }
        let words = self.body.split_whitespace().count();
        if is_code(last) || is_table(last) {
            return None;
        }
        if hangs(last) && !is_web(last) {
            return Some(Cut::Hanging);
        }
        let bare = last.trim_end_matches(|c: char| is_closer(c) || c == ' ');
        let sign = bare.chars().next_back()?;
        if matches!(sign, '.' | '!' | '?' | '…' | ';') || is_foreign_stop(sign) {
            return None;
        }
        if is_open(self.body) && words >= 2 {
            return Some(Cut::OpenBracket);
        }
        if ends_aside(bare) || self.is_signature() {
            return None;
        }
        if self.is_open_phrase(words) {
            return Some(Cut::OpenPhrase);
        }
        self.is_unlike_the_rest(bare, words).then_some(Cut::OpenSentence)
    }

    /// Ends with a word after which a phrase goes on. One that can end a title, an order or a question counts only in
    /// running prose.
    fn is_open_phrase(&self, words: usize) -> bool {
        if words < 2 || !self.body.ends_with(char::is_alphabetic) {
            return false;
        }
        let word = self.body.split_whitespace().next_back().unwrap_or_default();
        if word.len() > 12 || word.len() > 1 && word.chars().all(char::is_uppercase) {
            return false;
        }
        let word = format!(" {} ", word.to_lowercase().replace('’', "'"));
        if !OPENERS.contains(&word) {
            return false;
        }
        !LOOSE.contains(&word) || words > 7 || inner_end(self.body).is_some() || self.others_end(4) >= 0.5
    }

    /// The share of the lines like the last one (items with items, prose with prose) that end as sentences do.
    fn others_end(&self, words_min: usize) -> f64 {
        let like = |line: &&&str| {
            is_item(line) == self.item
                && !is_code(line)
                && !is_table(line)
                && line.split_whitespace().nth(words_min - 1).is_some()
        };
        let (mut ended, mut all) = (0_u32, 0_u32);
        for line in self.lines.iter().filter(like) {
            let bare = line.trim_end_matches(|c: char| is_closer(c) || c == ' ');
            let sign = bare.chars().next_back().unwrap_or(' ');
            ended += u32::from(matches!(sign, '.' | '!' | '?' | '…' | ':') || is_foreign_stop(sign));
            all += 1;
        }
        if all == 0 { 0.0 } else { f64::from(ended) / f64::from(all) }
    }

    fn is_unlike_the_rest(&self, bare: &str, words: usize) -> bool {
        if is_value(bare) {
            return false;
        }
        let dense = self.body.chars().filter(|c| !c.is_ascii() && c.is_alphabetic()).count() > self.body.len() / 6;
        let least = |words_min: usize, letters_min: usize| {
            words >= words_min || dense && self.body.chars().count() >= letters_min
        };
        if let Some(after) = inner_end(self.body) {
            // `Sure!` before a short remark is not yet prose.
            let told = self.body.get(..after).is_some_and(|before| before.split_whitespace().nth(2).is_some());
            let rest = self.body.get(after..).unwrap_or_default();
            let goes_on = rest.split_whitespace().nth(1).is_some() || rest.len() >= 4 && !is_farewell(rest);
            return told && goes_on || dense && rest.chars().count() >= 3;
        }
        if self.item {
            let items = self.lines.iter().filter(|line| is_item(line)).count();
            return match items {
                0 => least(8, 14),
                _ => self.others_end(1) >= 0.5,
            };
        }
        if self.lines.is_empty() {
            return least(12, 24);
        }
        let ended = self.others_end(4);
        let plain = self.body.chars().next().is_some_and(char::is_lowercase);
        if ended >= 0.6 {
            return least(4, 8) || plain && least(2, 4);
        }
        let prose =
            self.lines.iter().any(|line| !is_item(line) && !is_table(line) && line.split_whitespace().nth(3).is_some());
        !prose && least(12, 24)
    }

    /// The name under a letter, or a greeting before it.
    fn is_signature(&self) -> bool {
        let Some(before) = self.lines.last() else { return false };
        let names = |line: &str| {
            line.split_whitespace().count() <= 7
                && line
                    .split([' ', ','])
                    .filter(|word| word.len() > 3)
                    .all(|word| word.starts_with(|c: char| c.is_uppercase() || !c.is_alphanumeric()))
        };
        let greets = before.ends_with(',') && before.split_whitespace().count() <= 5;
        let bracketed = self.body.starts_with('[') && self.body.ends_with(']');
        names(self.body)
            && (greets || bracketed || self.lines.iter().rev().take(3).any(|line| line.ends_with(',') && names(line)))
    }
}

/// A marker of a list item with nothing behind it.
fn is_bare_marker(line: &str) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = line.get(digits..).unwrap_or_default();
    matches!(line, "-" | "*" | "•") || (1..=3).contains(&digits) && matches!(rest, "." | ")")
}

/// Ends with a sign after which something has to come.
fn hangs(line: &str) -> bool {
    let sign = line.chars().next_back().unwrap_or(' ');
    matches!(sign, ',' | '(' | '[' | '{' | '“' | '‘' | '«' | '=' | '&' | '—' | '–' | ':' | '、' | '，' | '：' | '；')
        || line.ends_with(" -")
        || line.ends_with(" +")
        || line.ends_with(" /")
}

fn is_web(line: &str) -> bool {
    let word = line.split_whitespace().next_back().unwrap_or_default();
    word.contains("://") || word.starts_with(['#', '@', '/', '~']) || word.contains('@') || word.starts_with("www.")
}

/// A bracket or quotation that the line opens and does not close.
fn is_open(line: &str) -> bool {
    let (mut round, mut square, mut curly, mut straight) = (0_i32, 0_i32, 0_i32, 0_u32);
    let mut before = ' ';
    for c in line.chars() {
        match c {
            '(' if !matches!(before, ':' | ';') => round += 1,
            // `1)` and `a)` number, and `:)` smiles.
            ')' if round > 0 => round -= 1,
            '[' => square += 1,
            ']' => square -= 1,
            '“' => curly += 1,
            '”' => curly -= 1,
            // Inches and seconds.
            '"' if !before.is_ascii_digit() || straight % 2 == 1 => straight += 1,
            _ => {}
        }
        before = c;
    }
    round > 0 || square > 0 || curly > 0 || straight % 2 == 1 && !line.starts_with('"')
}

/// Ends with a hashtag, a mention, an address, a picture sign, a name behind a dash: what follows a finished sentence.
fn ends_aside(bare: &str) -> bool {
    let sign = bare.chars().next_back().unwrap_or(' ');
    let picture = !sign.is_alphanumeric() && !sign.is_ascii() && !matches!(sign, '”' | '’' | '»');
    let attribution = [" - ", " – ", " — ", "—"].iter().any(|dash| {
        bare.rsplit_once(dash).is_some_and(|(said, name)| {
            let said = said.trim_end_matches(is_closer);
            said.ends_with(['.', '!', '?', '…']) && name.split_whitespace().count() <= 6
        })
    });
    picture || attribution || is_web(bare)
}

/// A word that ends a message without a full stop.
fn is_farewell(rest: &str) -> bool {
    let word = rest.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    [
        "thanks",
        "cheers",
        "regards",
        "bye",
        "goodbye",
        "sincerely",
        "best",
        "love",
        "amen",
        "done",
        "enjoy",
        "danke",
        "merci",
        "gracias",
    ]
    .contains(&word.as_str())
}

/// Ends with a number, a path, a name of code or an amount: a value, which needs no full stop.
fn is_value(bare: &str) -> bool {
    let word = bare.split_whitespace().next_back().unwrap_or_default();
    let word = word.trim_matches(|c: char| is_closer(c) || c == '(');
    word.chars().any(|c| c.is_numeric() || matches!(c, '_' | '/' | '\\' | '=' | '%' | '°' | '€' | '$'))
        || word.contains("::")
        || word.contains('.')
}

/// Where, inside a line, a finished sentence is followed by another: the byte at which that one begins.
fn inner_end(line: &str) -> Option<usize> {
    let mut from = 0;
    let mut found = None;
    for stretch in super::stretches(line) {
        if stretch.bytes.start > from && found.is_none() && from > 0 {
            found = Some(stretch.bytes.start);
        }
        if !stretch.ended {
            return (from > 0).then_some(stretch.bytes.start);
        }
        from = stretch.bytes.end;
    }
    None
}

fn is_table(line: &str) -> bool {
    line.starts_with('|') || line.matches('|').count() >= 2 || line.contains('\t')
}

/// Looks like a line of a program.
fn is_code(line: &str) -> bool {
    const STARTS: &[&str] = &[
        "def ",
        "class ",
        "return ",
        "import ",
        "from ",
        "let ",
        "const ",
        "var ",
        "fn ",
        "func ",
        "function ",
        "public ",
        "private ",
        "static ",
        "#include",
        "</",
        "//",
        "/*",
        "SELECT ",
        "INSERT ",
        "UPDATE ",
        "DELETE ",
        "FROM ",
        "WHERE ",
        "GROUP BY",
        "ORDER BY",
        "JOIN ",
        "END",
        "$ ",
        ">>> ",
        "print(",
        "console.",
        "elif ",
        "} ",
        "@",
    ];
    let ends = line.ends_with(['{', '}', ';'])
        || line.ends_with("*/")
        || line.ends_with("/>")
        || line.ends_with('>') && line.contains('<');
    let calls = line.ends_with(')')
        && line.find('(').is_some_and(|at| {
            line.get(..at).is_some_and(|head| {
                head.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_') && !head.contains(' ')
            })
        });
    let assigns = line.contains(" = ") || line.contains(" == ") || line.contains("();");
    ends || calls || assigns || STARTS.iter().any(|start| line.starts_with(start)) && !line.ends_with(',')
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn points_at_the_last_line() {
        let text = "All went well.\nThe next step is to call the";
        let (_, bytes) = cut(text).unwrap();
        assert_eq!(text.get(bytes), Some("The next step is to call the"));
    }
}
