//! Many words looked for in one pass over a text, ASCII letters in either case.
//!
//! The words stand in one automaton, and a text is read at four places at once: each step of an automaton waits for the
//! one before it, so that four side by side take hardly longer than one. Words beyond ASCII stand in an automaton of
//! their own, which a text of ASCII never sees.

use std::ops::Range;

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::dfa::DFA;
use aho_corasick::{Anchored, MatchKind, StartKind};

/// Places that are read at once.
const LANES: usize = 4;
/// The fewest bytes of one for which that is worth it.
const LANE_BYTES_MIN: usize = 64;
/// How much of a text is read before what was found there is told.
const BLOCK_BYTES: usize = 1 << 14;

/// Words to look for.
#[derive(Debug)]
pub struct Lexicon {
    plain: Words,
    beyond: Option<Words>,
}

/// A word that stands in a text; in order of where they end, the longest of those that end together first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Stand {
    end: usize,
    start: usize,
    word: usize,
}

#[derive(Debug)]
struct Words {
    automaton: DFA,
    start: StateID,
    /// The number by which the automaton knows a byte: either case is one, and all bytes of no word are 0.
    codes: [u8; 256],
    /// The place of each word in the list.
    places: Vec<usize>,
    longest: usize,
}

impl Lexicon {
    /// Nothing when the words are more than an automaton holds.
    pub fn of<'a>(words: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let placed = words.into_iter().enumerate();
        let (plain, beyond): (Vec<_>, Vec<_>) = placed.partition(|(_, word)| word.is_ascii());
        let beyond = if beyond.is_empty() { None } else { Some(Words::of(&beyond)?) };
        Some(Self { plain: Words::of(&plain)?, beyond })
    }

    /// Tells every place where a word stands, overlapping ones too: the word by its place in the list, and its bytes.
    pub fn each(&self, text: &str, mut tell: impl FnMut(usize, Range<usize>)) {
        let bytes = text.as_bytes();
        let beyond = self.beyond.as_ref().filter(|_| !text.is_ascii());
        let mut stands = Vec::new();
        let mut from = 0;
        while from < bytes.len() {
            let part = from..bytes.len().min(from + BLOCK_BYTES);
            from = part.end;
            self.plain.read(bytes, &part, &mut stands);
            if let Some(beyond) = beyond {
                beyond.read(bytes, &part, &mut stands);
                stands.sort_unstable();
            }
            for one in stands.drain(..) {
                tell(one.word, one.start..one.end);
            }
        }
    }

    /// Whether any word stands in a text.
    pub fn is_in(&self, text: &str) -> bool {
        let beyond = self.beyond.as_ref().filter(|_| !text.is_ascii());
        self.plain.is_in(text) || beyond.is_some_and(|words| words.is_in(text))
    }
}

impl Words {
    fn of(placed: &[(usize, &str)]) -> Option<Self> {
        let mut codes = [0; 256];
        let mut next = 0;
        for byte in placed.iter().flat_map(|(_, word)| word.bytes()) {
            let (lower, upper) = (byte.to_ascii_lowercase(), byte.to_ascii_uppercase());
            if codes.get(usize::from(lower)) == Some(&0) {
                next += 1;
                for one in [lower, upper] {
                    *codes.get_mut(usize::from(one))? = next;
                }
            }
        }
        let code = |byte: u8| codes.get(usize::from(byte)).copied().unwrap_or(0);
        let coded = placed.iter().map(|(_, word)| word.bytes().map(code).collect::<Vec<u8>>());
        let automaton = DFA::builder()
            .match_kind(MatchKind::Standard)
            .start_kind(StartKind::Unanchored)
            .prefilter(false)
            .build(coded)
            .ok()?;
        let start = automaton.start_state(Anchored::No).ok()?;
        let longest = placed.iter().map(|(_, word)| word.len()).max().unwrap_or(0).max(1);
        Some(Self { automaton, start, codes, places: placed.iter().map(|(place, _)| *place).collect(), longest })
    }

    #[inline]
    fn next(&self, state: StateID, byte: u8) -> StateID {
        self.automaton.next_state(Anchored::No, state, self.codes.get(usize::from(byte)).copied().unwrap_or(0))
    }

    fn is_in(&self, text: &str) -> bool {
        let mut state = self.start;
        text.bytes().any(|byte| {
            state = self.next(state, byte);
            self.automaton.is_match(state)
        })
    }

    /// Adds what ends in a part of a text.
    fn read(&self, bytes: &[u8], part: &Range<usize>, stands: &mut Vec<Stand>) {
        // A word that ends in a lane begins no further before it.
        let lead = self.longest - 1;
        let from = part.start.saturating_sub(lead);
        let length = (part.end - from).saturating_sub(lead) / LANES;
        let lane = |at: usize| bytes.get(from + at * length..from + (at + 1) * length + lead);
        let mut states = [self.start; LANES];
        let (mut read_to, mut last) = (from, self.start);
        if length >= LANE_BYTES_MIN
            && let [Some(one), Some(two), Some(three), Some(four)] = [lane(0), lane(1), lane(2), lane(3)]
        {
            let mut met: [Vec<(usize, StateID)>; LANES] = Default::default();
            for (at, (((one, two), three), four)) in one.iter().zip(two).zip(three).zip(four).enumerate() {
                for ((state, byte), met) in states.iter_mut().zip([one, two, three, four]).zip(&mut met) {
                    *state = self.next(*state, *byte);
                    if self.automaton.is_special(*state) {
                        met.push((at + 1, *state));
                    }
                }
            }
            for (at, met) in met.into_iter().enumerate() {
                let own = met.into_iter().filter(|(end, _)| at == 0 || *end > lead);
                own.for_each(|(end, state)| self.add(from + at * length + end, state, part, stands));
            }
            (read_to, last) = (from + LANES * length + lead, states.last().copied().unwrap_or(self.start));
        }
        for (at, byte) in bytes.get(read_to..part.end).unwrap_or_default().iter().enumerate() {
            last = self.next(last, *byte);
            if self.automaton.is_special(last) {
                self.add(read_to + at + 1, last, part, stands);
            }
        }
    }

    /// Adds the words that end where an automaton came to a state.
    fn add(&self, end: usize, state: StateID, part: &Range<usize>, stands: &mut Vec<Stand>) {
        if end <= part.start || !self.automaton.is_match(state) {
            return;
        }
        for at in 0..self.automaton.match_len(state) {
            let word = self.automaton.match_pattern(state, at);
            let start = end - self.automaton.pattern_len(word);
            let word = self.places.get(word.as_usize()).copied().unwrap_or_default();
            stands.push(Stand { end, start, word });
        }
    }
}

#[cfg(test)]
mod tests {
    use aho_corasick::AhoCorasick;
    use proptest::prelude::*;

    use super::Lexicon;

    const WORDS: [&str; 9] = ["key", "api key", "KEY=", "é", "clé", "a", "密码", "y", "a longer word to look back for"];

    proptest! {
        /// Four lanes, blocks and two automata find what one automaton finds that reads byte by byte.
        #[test]
        fn every_word_is_found_in_order(parts in prop::collection::vec(
            prop::sample::select(vec!["Key", "api ", "=", "É", "é", "clé", " ", "密码", "x", "A longer", " word to look back for"]),
            0..60,
        ), times in 1_usize..90) {
            let text = parts.concat().repeat(times);
            let lexicon = Lexicon::of(WORDS).unwrap();
            let mut told = Vec::new();
            lexicon.each(&text, |word, bytes| told.push((word, bytes)));
            let plain = AhoCorasick::builder().ascii_case_insensitive(true).build(WORDS).unwrap();
            let found = plain.find_overlapping_iter(&text).map(|one| (one.pattern().as_usize(), one.range()));
            prop_assert_eq!(&told, &found.collect::<Vec<_>>());
            prop_assert_eq!(lexicon.is_in(&text), !told.is_empty());
        }
    }
}
