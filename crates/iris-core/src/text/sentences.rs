//! Cutting prose into sentences and clauses, roughly, in any script.

/// The sentences of a text, as slices of it: cut after `.`, `!`, `?` before white space or the end, after their
/// full-width kin anywhere, and at line ends. A full stop between digits or after a single capital does not cut.
pub fn sentences(text: &str) -> Sentences<'_> {
    Sentences { rest: text }
}

/// See [`sentences`].
#[derive(Debug, Clone)]
pub struct Sentences<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Sentences<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            let end = end_of_first(self.rest);
            let (sentence, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
            self.rest = rest;
            if sentence.chars().any(char::is_alphanumeric) {
                return Some(sentence.trim());
            }
        }
    }
}

fn end_of_first(text: &str) -> usize {
    let mut before = [' ', ' '];
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();
        let next = chars.peek().map(|(_, c)| *c);
        let cuts = match c {
            '\n' | '。' | '！' | '？' | '．' => true,
            '!' | '?' => next.is_none_or(char::is_whitespace),
            '.' => {
                let initial = before[1].is_uppercase() && !before[0].is_alphanumeric();
                next.is_none_or(char::is_whitespace) && !initial
            }
            _ => false,
        };
        if cuts {
            return end;
        }
        before = [before[1], c];
    }
    text.len()
}
