//! Globs: `?` is one character and `*` any number of them within a segment, `**` any number across segments.

use std::cell::Cell;

/// Steps that one judging may take over all its globs.
pub(super) const STEPS_MAX: usize = 20_000_000;

/// The work of one judging.
pub(super) struct Work(Cell<usize>);

/// More work than a rule may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooMuch;

impl Work {
    pub const fn new() -> Self {
        Self(Cell::new(0))
    }

    pub fn take(&self, steps: usize) -> Result<(), TooMuch> {
        self.0.set(self.0.get().saturating_add(steps));
        if self.0.get() > STEPS_MAX { Err(TooMuch) } else { Ok(()) }
    }
}

/// One part of a glob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Letter(char),
    /// One character that is no separator.
    One,
    /// Any number of characters that are no separators.
    Within,
    /// Any number of characters.
    Across,
}

/// A glob ready to be held against texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glob(Vec<Token>);

impl Glob {
    /// A glob whose segments end at `/`.
    pub fn of_path(text: &str) -> Self {
        Self::new(text, false)
    }

    /// A glob over a name, which has no segments: `*` is any text.
    pub fn of_name(text: &str) -> Self {
        Self::new(text, true)
    }

    fn new(text: &str, is_name: bool) -> Self {
        let mut tokens: Vec<Token> = Vec::new();
        for letter in text.chars() {
            let token = match letter {
                '*' if is_name => Token::Across,
                '*' => Token::Within,
                '?' => Token::One,
                letter => Token::Letter(letter),
            };
            match (tokens.last(), token) {
                (Some(Token::Within | Token::Across), Token::Within) => {
                    tokens.pop();
                    tokens.push(Token::Across);
                }
                (Some(Token::Across), Token::Across) => {}
                _ => tokens.push(token),
            }
        }
        Self(tokens)
    }

    /// Whether the whole text fits.
    pub fn fits(&self, text: &[char], work: &Work) -> Result<bool, TooMuch> {
        let (mut token, mut letter) = (0, 0);
        // Where to go on when what follows a star does not fit: the star and the first letter it does not take.
        let mut within: Option<(usize, usize)> = None;
        let mut across: Option<(usize, usize)> = None;
        loop {
            work.take(1)?;
            match (self.0.get(token), text.get(letter)) {
                (None, None) => return Ok(true),
                (Some(Token::Across), _) => {
                    (across, within) = (Some((token, letter)), None);
                    token += 1;
                    continue;
                }
                (Some(Token::Within), _) => {
                    within = Some((token, letter));
                    token += 1;
                    continue;
                }
                (Some(Token::One), Some(there)) if *there != '/' => {
                    (token, letter) = (token + 1, letter + 1);
                    continue;
                }
                (Some(Token::Letter(wanted)), Some(there)) if wanted == there => {
                    (token, letter) = (token + 1, letter + 1);
                    continue;
                }
                _ => {}
            }
            // The nearer star takes one letter more; when it cannot, the farther one does.
            if let Some((star, taken)) = within
                && text.get(taken).is_some_and(|there| *there != '/')
            {
                within = Some((star, taken + 1));
                (token, letter) = (star + 1, taken + 1);
                continue;
            }
            match across {
                Some((star, taken)) if taken < text.len() => {
                    (across, within) = (Some((star, taken + 1)), None);
                    (token, letter) = (star + 1, taken + 1);
                }
                _ => return Ok(false),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fits(glob: &str, text: &str) -> bool {
        Glob::of_path(glob).fits(&text.chars().collect::<Vec<_>>(), &Work::new()).unwrap()
    }

    /// The same by trying everything.
    fn slowly(glob: &[Token], text: &[char]) -> bool {
        match (glob.first(), text.first()) {
            (None, rest) => rest.is_none(),
            (Some(Token::Across), _) => (0..=text.len()).any(|taken| slowly(&glob[1..], &text[taken..])),
            (Some(Token::Within), _) => {
                let most = text.iter().position(|letter| *letter == '/').unwrap_or(text.len());
                (0..=most).any(|taken| slowly(&glob[1..], &text[taken..]))
            }
            (Some(Token::One), Some(letter)) => *letter != '/' && slowly(&glob[1..], &text[1..]),
            (Some(Token::Letter(wanted)), Some(letter)) => wanted == letter && slowly(&glob[1..], &text[1..]),
            (Some(_), None) => false,
        }
    }

    #[test]
    fn stars_stay_within_segments_and_double_stars_do_not() {
        assert!(fits("/data/*.txt", "/data/a.txt") && !fits("/data/*.txt", "/data/x/a.txt"));
        assert!(fits("/data/**", "/data/x/a.txt") && fits("/data/**/a.txt", "/data/x/y/a.txt"));
        assert!(fits("a?c", "abc") && !fits("a?c", "a/c") && !fits("a?c", "ac"));
        assert!(fits("*", "") && fits("**", "a/b") && !fits("*", "a/b") && !fits("", "a"));
        assert!(fits("**b*d", "a/b/bxd") && !fits("**b*d", "a/b/x/d"));
        let name = Glob::of_name("fs_*");
        assert!(name.fits(&"fs_a/b".chars().collect::<Vec<_>>(), &Work::new()).unwrap());
    }

    #[test]
    fn work_ends() {
        let glob = Glob::of_path(&"**a".repeat(200));
        let text: Vec<char> = "a".repeat(4000).chars().chain(['b']).collect();
        let work = Work::new();
        let judged = (0..100_000).try_for_each(|_| glob.fits(&text, &work).map(drop));
        assert_eq!(judged, Err(TooMuch));
    }

    proptest! {
        #[test]
        fn says_the_same_as_trying_everything(glob in "[ab/*?]{0,7}", text in "[ab/]{0,8}") {
            let compiled = Glob::of_path(&glob);
            let letters: Vec<char> = text.chars().collect();
            prop_assert_eq!(compiled.fits(&letters, &Work::new()).unwrap(), slowly(&compiled.0, &letters), "{} {}", glob, text);
        }
    }
}
