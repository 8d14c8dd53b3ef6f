//! Patterns that others wrote: linear in the text whatever they are, bounded in memory, and with an end to their work.
//!
//! A pattern is searched for by automata that are built while they read. One for which too many states would have to
//! be built gives up, which its caller must not take for "not there".

use std::ops::Range;

use regex_automata::hybrid::{dfa, regex};
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::syntax;
use regex_automata::{Input, MatchErrorKind, MatchKind};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;

/// Characters of a pattern.
pub(super) const PATTERN_CHARS_MAX: usize = 1000;
/// Bytes of a compiled pattern, for each direction.
const COMPILED_BYTES_MAX: usize = 1 << 20;
/// Bytes of states that are built for one search, twice at most.
const STATES_BYTES_MAX: usize = 1 << 20;
/// Groups within each other.
const NESTING_MAX: u32 = 50;
/// Steps, in states times bytes, for what the fast automata cannot do: a word boundary beside a letter that is not ASCII.
const SLOW_STEPS_MAX: usize = 1 << 25;

/// How a pattern is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Flags {
    /// Letters of either case are the same.
    pub any_case: bool,
    /// `^` and `$` stand at lines.
    pub lines: bool,
    /// `.` is also the end of a line.
    pub dot_all: bool,
}

/// A pattern ready to be searched for.
pub(super) struct Pattern {
    fast: regex::Regex,
    slow: PikeVM,
    syntax: Hir,
}

/// A search took more than it may; nothing is known of the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GaveUp;

/// What one judging keeps while it searches.
pub(super) struct Search<'p> {
    pattern: &'p Pattern,
    states: regex::Cache,
    slow_steps: usize,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// Why it is refused: in words, without the pattern.
    pub fn new(pattern: &str, flags: Flags) -> Result<Self, String> {
        if pattern.is_empty() {
            return Err("must not be empty".to_owned());
        }
        let chars = pattern.chars().count();
        if chars > PATTERN_CHARS_MAX {
            return Err(format!("has {chars} characters; at most {PATTERN_CHARS_MAX}"));
        }
        let mut parser = ParserBuilder::new();
        parser.case_insensitive(flags.any_case).multi_line(flags.lines).dot_matches_new_line(flags.dot_all);
        let syntax = parser.nest_limit(NESTING_MAX).build().parse(pattern).map_err(|error| unreadable(&error))?;
        let too_large =
            || format!("compiles to more than {} KiB; repeat less or use smaller classes", COMPILED_BYTES_MAX / 1024);
        let nfa = |reverse: bool| {
            let captures = if reverse { WhichCaptures::None } else { WhichCaptures::Implicit };
            let config = thompson::Config::new().nfa_size_limit(Some(COMPILED_BYTES_MAX)).which_captures(captures);
            NFA::compiler().configure(config.reverse(reverse).shrink(false)).build_from_hir(&syntax).ok()
        };
        let (forward, reverse) = nfa(false).zip(nfa(true)).ok_or_else(too_large)?;
        let config = dfa::Config::new()
            .unicode_word_boundary(true)
            .cache_capacity(STATES_BYTES_MAX)
            .minimum_cache_clear_count(Some(1));
        let automaton = |nfa: NFA, kind: MatchKind| {
            dfa::Builder::new().configure(config.clone().match_kind(kind)).build_from_nfa(nfa).ok()
        };
        let fast = automaton(forward.clone(), MatchKind::LeftmostFirst).zip(automaton(reverse, MatchKind::All)).map(
            |(forward, reverse)| regex::Builder::new().syntax(syntax::Config::new()).build_from_dfas(forward, reverse),
        );
        let slow = PikeVM::new_from_nfa(forward).ok();
        let (fast, slow) = fast.zip(slow).ok_or_else(too_large)?;
        Ok(Self { fast, slow, syntax })
    }

    /// The pattern as it was read.
    pub const fn syntax(&self) -> &Hir {
        &self.syntax
    }

    /// The memory it takes, in bytes.
    pub fn bytes(&self) -> usize {
        self.fast.forward().get_nfa().memory_usage() + self.fast.reverse().get_nfa().memory_usage()
    }

    /// Begins to search.
    pub fn search(&self) -> Search<'_> {
        Search { pattern: self, states: self.fast.create_cache(), slow_steps: 0 }
    }

    /// Whether it stands anywhere in a text.
    pub fn is_in(&self, text: &str) -> Result<bool, GaveUp> {
        self.search().is_in(text, 0..text.len())
    }
}

impl Search<'_> {
    /// Whether the pattern stands in these bytes of a text; what lies around them is seen by boundaries and anchors.
    pub fn is_in(&mut self, text: &str, bytes: Range<usize>) -> Result<bool, GaveUp> {
        let input = Input::new(text).range(bytes).earliest(true);
        let (forward, _) = self.states.as_parts_mut();
        match self.pattern.fast.forward().try_search_fwd(forward, &input) {
            Ok(found) => Ok(found.is_some()),
            Err(error) => self.slow(&input, error.kind()).map(|found| found.is_some()),
        }
    }

    /// The first place where it stands in these bytes of a text.
    pub fn find(&mut self, text: &str, bytes: Range<usize>) -> Result<Option<Range<usize>>, GaveUp> {
        let input = Input::new(text).range(bytes);
        match self.pattern.fast.try_search(&mut self.states, &input) {
            Ok(found) => Ok(found.map(|found| found.range())),
            Err(error) => self.slow(&input, error.kind()),
        }
    }

    fn slow(&mut self, input: &Input<'_>, why: &MatchErrorKind) -> Result<Option<Range<usize>>, GaveUp> {
        let slow = &self.pattern.slow;
        self.slow_steps =
            self.slow_steps.saturating_add(input.get_range().len().saturating_mul(slow.get_nfa().states().len()));
        if !matches!(why, MatchErrorKind::Quit { .. }) || self.slow_steps > SLOW_STEPS_MAX {
            return Err(GaveUp);
        }
        Ok(slow.find_iter(&mut slow.create_cache(), input.clone()).next().map(|found| found.range()))
    }
}

/// Why a pattern cannot be read, without the pattern.
fn unreadable(error: &regex_syntax::Error) -> String {
    let (why, at) = match error {
        regex_syntax::Error::Parse(error) => (error.kind().to_string(), error.span().start.offset),
        regex_syntax::Error::Translate(error) => (error.kind().to_string(), error.span().start.offset),
        _ => return "is no pattern".to_owned(),
    };
    let linear = if why.contains("look-around") || why.contains("backreferences") {
        "; patterns are searched for in linear time, which these do not allow"
    } else {
        ""
    };
    format!("is refused at byte {at}: {why}{linear}")
}
