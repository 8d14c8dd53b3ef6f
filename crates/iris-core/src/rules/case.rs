//! A subject with the views of its texts, each made once for all rules.

use std::cell::OnceCell;

use super::sightings::Sightings;
use super::{Need, RuleMeta, STEPS_MAX, Subject, failure};
use crate::model::ToolCall;
use crate::text::{TEXT_BYTES_MAX, Term, View, Wanted, spoken, terms};

/// How much of an answer is its opening.
pub(super) const OPENING_BYTES: usize = 16 * 1024;

/// What a rule reads.
#[derive(Debug)]
pub struct Case<'a> {
    subject: &'a Subject<'a>,
    output: OnceCell<View<'a>>,
    input: OnceCell<View<'a>>,
    sightings: OnceCell<Sightings>,
    said: OnceCell<Option<String>>,
    opening_terms: OnceCell<Vec<Term>>,
    asked_terms: OnceCell<Vec<Term>>,
    wanted: OnceCell<Wanted>,
    overlap: OnceCell<(usize, usize)>,
    failures: OnceCell<Vec<Option<&'static str>>>,
    carried: OnceCell<[bool; Need::ALL.len()]>,
}

impl<'a> Case<'a> {
    /// A case over a subject.
    pub fn new(subject: &'a Subject<'a>) -> Self {
        Self {
            subject,
            output: OnceCell::new(),
            input: OnceCell::new(),
            sightings: OnceCell::new(),
            said: OnceCell::new(),
            opening_terms: OnceCell::new(),
            asked_terms: OnceCell::new(),
            wanted: OnceCell::new(),
            overlap: OnceCell::new(),
            failures: OnceCell::new(),
            carried: OnceCell::new(),
        }
    }

    /// The subject itself.
    pub const fn subject(&self) -> &'a Subject<'a> {
        self.subject
    }

    /// Whether the subject carries this input, as [`Subject::carries`] says.
    pub fn carries(&self, need: Need) -> bool {
        let carried = self.carried.get_or_init(|| {
            let mut carried = [false; Need::ALL.len()];
            carried.iter_mut().zip(Need::ALL).for_each(|(carried, need)| *carried = self.subject.carries(*need));
            carried
        });
        carried.get(need as usize).copied().unwrap_or(false)
    }

    /// The answer, folded; empty when none was supplied.
    pub fn output(&self) -> &View<'a> {
        self.output.get_or_init(|| View::folded(self.subject.output.unwrap_or_default()))
    }

    /// The ask, folded; empty when none was supplied.
    pub fn input(&self) -> &View<'a> {
        self.input.get_or_init(|| View::folded(self.subject.input.unwrap_or_default()))
    }

    /// Which words that rules look for stand in the answer, folded.
    pub(super) fn sightings(&self) -> &Sightings {
        self.sightings.get_or_init(|| Sightings::of(self.output().text()))
    }

    /// What the answer says: folded, and without the JSON when it is one JSON value.
    pub fn said(&self) -> &str {
        let spoken = self.said.get_or_init(|| {
            let spoken = spoken(self.subject.output.unwrap_or_default())?;
            Some(View::folded(&spoken).text().to_owned())
        });
        spoken.as_deref().unwrap_or_else(|| self.output().text())
    }

    /// The terms of the opening of what the answer says, in order: those that begin in its first [`OPENING_BYTES`].
    pub fn opening_terms(&self) -> &[Term] {
        let opens = |term: &Term| usize::try_from(term.start).is_ok_and(|start| start < OPENING_BYTES);
        self.opening_terms.get_or_init(|| terms(self.said()).take_while(opens).collect())
    }

    /// The terms of the ask, in order.
    pub fn asked_terms(&self) -> &[Term] {
        self.asked_terms.get_or_init(|| terms(self.input().text()).collect())
    }

    /// The terms of the ask, to be looked for.
    pub fn wanted(&self) -> &Wanted {
        self.wanted.get_or_init(|| Wanted::of(self.input().text(), self.asked_terms()))
    }

    /// How many distinct terms of the ask the answer uses, and how many there are.
    pub fn overlap(&self) -> (usize, usize) {
        *self.overlap.get_or_init(|| {
            let mut left = self.wanted().keys().clone();
            let total = left.len();
            for term in self.wanted().found(self.said()) {
                left.remove(&term.key);
                if left.is_empty() {
                    break;
                }
            }
            (total - left.len(), total)
        })
    }

    /// The steps that are looked at.
    pub fn steps(&self) -> &'a [ToolCall] {
        let steps = self.subject.tool_calls.unwrap_or_default();
        steps.get(..STEPS_MAX).unwrap_or(steps)
    }

    /// Why the step at `at` failed, as [`failure`] says; nothing when it did not.
    pub fn failure(&self, at: usize) -> Option<&'static str> {
        self.failures.get_or_init(|| self.steps().iter().map(failure).collect()).get(at).copied().flatten()
    }

    /// What a rule reads of this case that lies beyond a limit and is not looked at, in words. A rule that found nothing
    /// does not pass then: what it looks for may stand in the rest.
    pub fn cut(&self, meta: &RuleMeta) -> Option<String> {
        let reads = |need: Need| meta.needs.contains(&need) || meta.reads.contains(&need);
        let output = self.subject.output.map_or(0, str::len);
        if reads(Need::Output) && output > TEXT_BYTES_MAX {
            return Some(format!("only the first {TEXT_BYTES_MAX} of {output} bytes of the output were read"));
        }
        let steps = self.subject.tool_calls.map_or(0, <[ToolCall]>::len);
        let reads_steps = reads(Need::ToolCalls) || reads(Need::ToolOutputs);
        (reads_steps && steps > STEPS_MAX)
            .then(|| format!("only the first {STEPS_MAX} of {steps} tool calls were read"))
    }
}
