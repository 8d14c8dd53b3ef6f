//! Whether a backtracking engine could take exponential time over a pattern. Ours cannot; but such a pattern is a mistake
//! of its writer, and it stalls whatever other program it is copied into, so it is refused.
//!
//! Exact up to four things: repetitions are counted to [`COPIES_MAX`], assertions are taken to hold, branches of single
//! characters are one class by the time they come here (`(a|a)*` is let through), and so is a pattern of which the question
//! would cost too much. The automaton of the pattern has a state for each character
//! position. Time is exponential when, on a way from a state back to itself, the same text can be read in two ways:
//! over the same pair of states by two repetitions, or over different states. Source: Weber and Seidl, On the degree of
//! ambiguity of finite automata, 1991.

use std::collections::{HashMap, HashSet};

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Repetition};

/// Copies of a repeated part that are looked at; more of them add no ways of reading.
const COPIES_MAX: u32 = 3;
/// Character positions, ways from one to the next, and pairs of them that are looked at.
const POSITIONS_MAX: usize = 4000;
const LINKS_MAX: usize = 200_000;
const WORK_MAX: usize = 2_000_000;

/// The question would cost too much.
struct Beyond;

/// Whether the time of a backtracking engine could grow exponentially with the text.
pub(super) fn is_catastrophic(pattern: &Hir) -> bool {
    let mut automaton = Automaton::default();
    match automaton.build(pattern) {
        Ok(_) => automaton.is_doubtful().unwrap_or(false),
        Err(Beyond) => false,
    }
}

/// A part of a pattern: the positions at which it can begin and end, and whether it can be empty.
#[derive(Clone, Default)]
struct Part {
    first: Vec<usize>,
    last: Vec<usize>,
    is_nullable: bool,
}

#[derive(Default)]
struct Automaton {
    /// What each position reads, by its number in `sets`.
    reads: Vec<usize>,
    sets: Vec<ClassUnicode>,
    numbers: HashMap<Ranges, usize>,
    /// Where each position can go on.
    follow: Vec<HashSet<usize>>,
    links: usize,
    /// Ways on that two repetitions give.
    doubled: Vec<(usize, usize)>,
}

/// The ranges of a class, to be looked up by.
type Ranges = Vec<(char, char)>;

impl Automaton {
    fn build(&mut self, hir: &Hir) -> Result<Part, Beyond> {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => Ok(Part { is_nullable: true, ..Part::default() }),
            HirKind::Literal(literal) => {
                let text = String::from_utf8_lossy(&literal.0).into_owned();
                let mut whole = Part { is_nullable: true, ..Part::default() };
                for letter in text.chars() {
                    let next = self.position(ClassUnicode::new([ClassUnicodeRange::new(letter, letter)]))?;
                    whole = self.join(whole, next)?;
                }
                Ok(whole)
            }
            HirKind::Class(Class::Unicode(class)) => self.position(class.clone()),
            HirKind::Class(Class::Bytes(class)) => {
                let ranges = class.ranges().iter();
                let ranges = ranges.map(|range| ClassUnicodeRange::new(range.start().into(), range.end().into()));
                self.position(ClassUnicode::new(ranges))
            }
            HirKind::Capture(capture) => self.build(&capture.sub),
            HirKind::Repetition(repetition) => self.repeat(repetition),
            HirKind::Concat(parts) => {
                let mut whole = Part { is_nullable: true, ..Part::default() };
                for part in parts {
                    let next = self.build(part)?;
                    whole = self.join(whole, next)?;
                }
                Ok(whole)
            }
            HirKind::Alternation(branches) => {
                let mut whole = Part::default();
                for branch in branches {
                    let branch = self.build(branch)?;
                    whole.first.extend(branch.first);
                    whole.last.extend(branch.last);
                    whole.is_nullable |= branch.is_nullable;
                }
                Ok(whole)
            }
        }
    }

    fn position(&mut self, class: ClassUnicode) -> Result<Part, Beyond> {
        if self.reads.len() >= POSITIONS_MAX {
            return Err(Beyond);
        }
        let ranges: Ranges = class.ranges().iter().map(|range| (range.start(), range.end())).collect();
        let number = *self.numbers.entry(ranges).or_insert_with(|| {
            self.sets.push(class);
            self.sets.len() - 1
        });
        let at = self.reads.len();
        self.reads.push(number);
        self.follow.push(HashSet::new());
        Ok(Part { first: vec![at], last: vec![at], is_nullable: false })
    }

    fn repeat(&mut self, repetition: &Repetition) -> Result<Part, Beyond> {
        let least = repetition.min.min(COPIES_MAX);
        let copies = repetition.max.map_or(least.max(1), |most| most.min(COPIES_MAX));
        let mut whole = Part { is_nullable: true, ..Part::default() };
        for copy in 1..=copies {
            let mut next = self.build(&repetition.sub)?;
            if copy == copies && repetition.max.is_none() {
                self.link(&next.last.clone(), &next.first.clone())?;
            }
            next.is_nullable |= copy > least;
            whole = self.join(whole, next)?;
        }
        Ok(whole)
    }

    fn join(&mut self, before: Part, after: Part) -> Result<Part, Beyond> {
        self.link(&before.last, &after.first)?;
        let mut first = before.first;
        if before.is_nullable {
            first.extend(&after.first);
        }
        let mut last = after.last;
        if after.is_nullable {
            last.extend(&before.last);
        }
        Ok(Part { first, last, is_nullable: before.is_nullable && after.is_nullable })
    }

    fn link(&mut self, from: &[usize], to: &[usize]) -> Result<(), Beyond> {
        self.links += from.len() * to.len();
        if self.links > LINKS_MAX {
            return Err(Beyond);
        }
        for start in from {
            let Some(follow) = self.follow.get_mut(*start) else { continue };
            let again = to.iter().filter(|end| !follow.insert(**end));
            self.doubled.extend(again.map(|end| (*start, *end)));
        }
        Ok(())
    }

    fn is_doubtful(&self) -> Result<bool, Beyond> {
        let circle = self.circles();
        let together = |one: usize, other: usize| match (circle.get(one), circle.get(other)) {
            (Some(one), Some(other)) => one == other && *one > 0,
            _ => false,
        };
        if self.doubled.iter().any(|(from, to)| together(*from, *to)) {
            return Ok(true);
        }
        let mut meets: HashMap<(usize, usize), bool> = HashMap::new();
        let mut seen: HashSet<(usize, usize)> = HashSet::new();
        let mut open: Vec<(usize, usize)> = (0..self.reads.len()).map(|at| (at, at)).collect();
        let mut work = 0;
        while let Some((one, other)) = open.pop() {
            let (Some(ways), Some(others)) = (self.follow.get(one), self.follow.get(other)) else { continue };
            for way in ways.iter().filter(|way| together(one, **way)) {
                // Back on one way from two: the same text was read twice differently.
                if one != other && others.contains(way) {
                    return Ok(true);
                }
                for next in others.iter().filter(|next| *next != way && together(other, **next)) {
                    work += 1;
                    if work > WORK_MAX {
                        return Err(Beyond);
                    }
                    let pair = (*way.min(next), *way.max(next));
                    if self.meet(pair, &mut meets) && seen.insert(pair) {
                        open.push(pair);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Whether some character can be read at both positions.
    fn meet(&self, (one, other): (usize, usize), known: &mut HashMap<(usize, usize), bool>) -> bool {
        let (Some(one), Some(other)) = (self.reads.get(one), self.reads.get(other)) else { return false };
        let pair = (*one.min(other), *one.max(other));
        *known.entry(pair).or_insert_with(|| match (self.sets.get(pair.0), self.sets.get(pair.1)) {
            (Some(one), Some(other)) => {
                let mut both = one.clone();
                both.intersect(other);
                !both.ranges().is_empty()
            }
            _ => false,
        })
    }

    /// For each position the number of the circle it lies on; 0 for none. Two passes over the graph, after Kosaraju.
    fn circles(&self) -> Vec<usize> {
        let count = self.reads.len();
        let mut back: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (from, ways) in self.follow.iter().enumerate() {
            for to in ways {
                if let Some(back) = back.get_mut(*to) {
                    back.push(from);
                }
            }
        }
        let forward: Vec<Vec<usize>> = self.follow.iter().map(|ways| ways.iter().copied().collect()).collect();
        let mut order = Vec::with_capacity(count);
        let mut seen = vec![false; count];
        for start in 0..count {
            walk(start, &forward, &mut seen, &mut |at| order.push(at));
        }
        let mut circle = vec![0; count];
        let mut seen = vec![false; count];
        for (number, start) in order.into_iter().rev().enumerate() {
            let mut members = Vec::new();
            walk(start, &back, &mut seen, &mut |at| members.push(at));
            let loops = |at: usize| self.follow.get(at).is_some_and(|ways| ways.contains(&at));
            if members.len() > 1 || members.iter().any(|at| loops(*at)) {
                for member in members {
                    if let Some(circle) = circle.get_mut(member) {
                        *circle = number + 1;
                    }
                }
            }
        }
        circle
    }
}

/// Every position that can be reached and was not seen, each after all it leads to.
fn walk(start: usize, ways: &[Vec<usize>], seen: &mut [bool], leave: &mut dyn FnMut(usize)) {
    let mut enter = |at: usize| seen.get_mut(at).is_some_and(|seen| !std::mem::replace(seen, true));
    if !enter(start) {
        return;
    }
    let mut path = vec![(start, 0)];
    while let Some((at, next)) = path.last_mut() {
        match ways.get(*at).and_then(|ways| ways.get(*next)) {
            Some(to) => {
                *next += 1;
                if enter(*to) {
                    path.push((*to, 0));
                }
            }
            None => {
                leave(*at);
                path.pop();
            }
        }
    }
}
