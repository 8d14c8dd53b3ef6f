//! The words of a text that say what it is about, brought to a common form, each as a number to compare.
//!
//! English endings are taken off; other words written in letters are compared by their beginning, which does for most
//! inflecting languages what a stemmer does. Numbers count from two digits on. Nothing is looked up in a dictionary.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::LazyLock;

use super::stop::is_stop;
use super::words::{WORD_BYTES_MAX, Word, WordKind, key, words};

/// Letters of a stem that are compared.
const STEM_BYTES_MAX: usize = 8;

/// One term and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// Equal for words of one stem.
    pub key: u64,
    /// Its first byte in the text.
    pub start: u32,
    /// One past its last byte.
    pub end: u32,
}

/// A set of terms.
pub type TermSet = HashSet<u64, Spread>;

/// Spreads term keys over a table by a random odd factor, drawn once: quick, and nobody who writes a text knows which
/// words would meet in one place. Source: Dietzfelbinger and others 1997, doi:10.1006/jagm.1997.0873.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spread;

/// See [`Spread`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Spreader(u64);

static FACTOR: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0_u8) | 1);

impl BuildHasher for Spread {
    type Hasher = Spreader;

    fn build_hasher(&self) -> Spreader {
        Spreader(0)
    }
}

impl Hasher for Spreader {
    fn finish(&self) -> u64 {
        // The high bits are the good ones; tables read the low ones too.
        self.0.wrapping_mul(*FACTOR).rotate_left(32)
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 ^= key(bytes);
    }

    fn write_u64(&mut self, term: u64) {
        self.0 ^= term;
    }
}

/// The terms of a text, in order, with repetitions.
pub fn terms(text: &str) -> impl Iterator<Item = Term> {
    words(text).filter_map(|word| placed(&word))
}

/// The term of a word, with where it stands.
fn placed(word: &Word<'_>) -> Option<Term> {
    let key = term(word)?;
    let start = u32::try_from(word.start).ok()?;
    Some(Term { key, start, end: start.saturating_add(u32::try_from(word.text.len()).ok()?) })
}

/// Terms that are looked for in other texts. A word that begins with other letters is passed over unread.
#[derive(Debug, Clone)]
pub struct Wanted {
    keys: TermSet,
    /// The two bytes with which the words of the terms begin, without case: a bit of the second for each first.
    beginnings: [u32; 32],
}

impl Wanted {
    /// The terms of a text.
    pub fn of(text: &str, terms: &[Term]) -> Self {
        let mut beginnings = [0; 32];
        for term in terms {
            let word = usize::try_from(term.start).ok().and_then(|start| text.as_bytes().get(start..));
            match word.and_then(beginning) {
                Some((first, bit)) => beginnings.iter_mut().skip(first).take(1).for_each(|own| *own |= bit),
                // Case beyond ASCII changes the bytes: every word may be it.
                None => beginnings = [u32::MAX; 32],
            }
        }
        Self { keys: terms.iter().map(|term| term.key).collect(), beginnings }
    }

    /// Each of them once.
    pub const fn keys(&self) -> &TermSet {
        &self.keys
    }

    /// Those of them that a text holds, in its order, with repetitions.
    pub fn found<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Term> + 't {
        let text = if self.keys.is_empty() { "" } else { text };
        let may = |word: &Word<'_>| {
            beginning(word.text.as_bytes())
                .is_none_or(|(first, bit)| self.beginnings.get(first).is_some_and(|own| own & bit != 0))
        };
        words(text).filter(may).filter_map(|word| placed(&word)).filter(|term| self.keys.contains(&term.key))
    }
}

/// The first byte of a word and a bit for the second, the same in either case; nothing for a word that begins beyond ASCII.
/// What is cut off a word to make its term leaves these two.
fn beginning(word: &[u8]) -> Option<(usize, u32)> {
    match word {
        [first, second, ..] if first.is_ascii() && second.is_ascii() => {
            Some((usize::from(first & 31), 1 << (second & 31)))
        }
        _ => None,
    }
}

/// What a word counts as; nothing for a word that says nothing.
pub fn term(word: &Word<'_>) -> Option<u64> {
    let mut buffer = [0; WORD_BYTES_MAX];
    match word.kind {
        WordKind::Pair => {
            // Japanese endings and particles are written in hiragana.
            let says = word.text.chars().any(|c| !matches!(c, '\u{3041}'..='\u{309F}' | 'ー'));
            says.then(|| key(word.text.as_bytes()))
        }
        WordKind::Number => (word.text.len() >= 2).then(|| key(word.text.as_bytes())),
        WordKind::Letters => {
            let acronym = word.text.len() == 2 && word.text.bytes().all(|byte| byte.is_ascii_uppercase());
            let lower = word.lower(&mut buffer);
            let bare = lower.strip_suffix(b"'s").unwrap_or(lower);
            if bare.is_ascii() {
                if !acronym && (bare.len() < 3 || is_stop(lower) || bare.len() < lower.len() && is_stop(bare)) {
                    return None;
                }
                return Some(key(stem(bare)));
            }
            (!is_stop(bare)).then_some(())?;
            foreign(std::str::from_utf8(bare).unwrap_or_default())
        }
    }
}

/// The beginning of a word in letters beyond ASCII.
fn foreign(word: &str) -> Option<u64> {
    let keep = match word.chars().count() {
        0..3 => return None,
        short @ 3..5 => short,
        5 => 4,
        _ => 5,
    };
    let end = word.char_indices().nth(keep).map_or(word.len(), |(at, _)| at);
    word.get(..end).map(|start| key(start.as_bytes()))
}

/// Endings of English words: the ending, the letters a word must have more than, the letters that go.
const ENDINGS: [(&[u8], usize, usize); 9] = [
    (b"ies", 4, 3),
    (b"ing", 5, 3),
    (b"ed", 4, 2),
    (b"ly", 4, 2),
    (b"ation", 6, 5),
    (b"ator", 5, 4),
    (b"ate", 5, 3),
    (b"ion", 5, 3),
    (b"y", 3, 1),
];

/// An English word in lower case without its endings, as far as it is compared.
fn stem(word: &[u8]) -> &[u8] {
    let mut word = word;
    let cut = |letters: usize, word: &mut &[u8]| *word = word.get(..word.len() - letters).unwrap_or_default();
    if word.len() > 3 {
        let plural = word.ends_with(b"s") && ![b"ss", b"us", b"is"].iter().any(|ending| word.ends_with(*ending));
        if word.ends_with(b"sses") {
            cut(2, &mut word);
        } else if plural && !word.ends_with(b"ies") {
            cut(1, &mut word);
        }
        let ending = ENDINGS.iter().find(|(ending, over, _)| word.len() > *over && word.ends_with(ending));
        if let Some((_, _, letters)) = ending {
            cut(*letters, &mut word);
        }
        if word.len() > 3 && word.ends_with(b"e") {
            cut(1, &mut word);
        }
        if let [.., before, last] = word
            && word.len() > 3
            && before == last
            && !matches!(last, b'l' | b's' | b'z')
        {
            cut(1, &mut word);
        }
    }
    word.get(..STEM_BYTES_MAX).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::{Term, Wanted, terms};
    use crate::text::{language, words};

    fn keys(text: &str) -> BTreeSet<u64> {
        terms(text).map(|term| term.key).collect()
    }

    #[test]
    fn words_of_one_stem_are_one_term() {
        for (one, other) in [
            ("ferry", "ferries"),
            ("cities", "city"),
            ("running", "runs"),
            ("cancelled", "cancelling"),
            ("translate", "translation"),
            ("Mara's", "mara"),
            ("harbourMaster", "harbour master"),
            ("harbour_master", "Harbour-Master"),
            ("билеты", "билетов"),
            ("0.15.0", "v 0.15.0"),
        ] {
            assert_eq!(keys(one), keys(other), "{one} {other}");
        }
        for (one, other) in [("ferry", "fern"), ("1904", "1905"), ("最終便", "始発便"), ("паром", "поезд")]
        {
            assert_ne!(keys(one), keys(other), "{one} {other}");
        }
    }

    #[test]
    fn words_that_say_nothing_are_no_terms() {
        for text in
            ["What is it?", "Please help me with this", "der die das", "et le la", "и в на", "がのを", "7", "?!"]
        {
            assert!(keys(text).is_empty(), "{text}");
        }
        assert!(!keys("EU").is_empty() && !keys("最終").is_empty());
    }

    #[test]
    fn the_language_shows_in_the_small_words() {
        let of = |text: &str| language(words(text));
        let english = of("The ferry leaves at ten and the bus waits for it").unwrap();
        let german = of("Die Fähre fährt um zehn und der Bus wartet nicht auf sie").unwrap();
        let russian = of("Паром уходит в десять, и автобус не ждет").unwrap();
        assert!(english != german && german != russian);
        assert_eq!(of("Where does the train stop, and how do I get to it?"), Some(english));
        assert_eq!(of("ferry"), None);
    }

    fn texts() -> impl Strategy<Value = String> {
        let words = vec![
            "Ferry",
            "ferries",
            "FERRY",
            "fern",
            "EU",
            "eu",
            "12",
            "1.5",
            "Städte",
            "städte",
            "STÄDTE",
            "Ähre",
            "ähre",
            "ÄHRE",
            "\u{212A}elvin",
            "kelvin",
            "d’accord",
            "D'accord",
            "Mara's",
            "mara",
            "ses",
            "最終便",
            "Паром",
            "паром",
            "harbourMaster",
            "is",
            "ate",
            "ing",
            "used",
            "uses",
            "dying",
            "х",
        ];
        prop::collection::vec(prop::sample::select(words), 0..12).prop_map(|words| words.join(" "))
    }

    proptest! {
        /// Passing over words by how they begin finds what looking at every word finds.
        #[test]
        fn no_wanted_term_is_passed_over(asked in texts(), said in texts()) {
            let own: Vec<Term> = terms(&asked).collect();
            let wanted = Wanted::of(&asked, &own);
            let all: Vec<Term> = terms(&said).filter(|term| wanted.keys().contains(&term.key)).collect();
            prop_assert_eq!(wanted.found(&said).collect::<Vec<_>>(), all);
        }

        #[test]
        fn words_lie_in_the_text_in_order(text in any::<String>()) {
            let mut last = 0;
            for word in words(&text) {
                prop_assert_eq!(text.get(word.start..word.start + word.text.len()), Some(word.text));
                prop_assert!(!word.text.is_empty() && word.start >= last);
                last = word.start;
            }
        }
    }
}
