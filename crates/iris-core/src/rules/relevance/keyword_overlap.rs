//! How many of the ask's words does the answer use?
//!
//! *Checks* which share of the ask's distinct terms, brought to their stems, the output uses. *Matters* as the plainest
//! sign that the answer is about the ask. *Cannot see* synonyms: a right answer in other words has little overlap, so this
//! only moves the score.

use std::borrow::Cow;

use super::measures::OVERLAP_MIN;
use crate::rules::measure::number;
use crate::rules::{
    Bundle, Case, FailureClass, Finding, Kind, Knobs, Mechanism, Need, Outcome, Question, Rule, RuleMeta, count,
};

/// See the module.
pub struct KeywordOverlap;

static META: RuleMeta = RuleMeta {
    name: Cow::Borrowed("keyword_overlap"),
    bundle: Bundle::Relevance,
    description: Cow::Borrowed(
        "The output uses at least this share of the ask's terms (keyword_overlap, 0.35 unless set).",
    ),
    suggestion: Cow::Borrowed("Check that the output speaks of what was asked, in the words of the ask."),
    weight: 1.0,
    kind: Kind::Measurement,
    mechanism: Mechanism::Formula,
    needs: &[Need::Output, Need::Input],
    reads: &[],
    question: Question::Relevant,
    classes: &[FailureClass::OffTask],
    version: 1,
    critical: false,
    stands: false,
    knobs: &[OVERLAP_MIN],
};

impl Rule for KeywordOverlap {
    fn meta(&self) -> &RuleMeta {
        &META
    }

    fn judge(&self, case: &Case<'_>, knobs: &Knobs) -> Outcome {
        let (min, source) = knobs.number(&OVERLAP_MIN);
        let (used, total) = case.overlap();
        let share = if total == 0 { 1.0 } else { number(used) / number(total) };
        let message = match total {
            0 => "the ask names no subject to look for".to_owned(),
            _ => format!("{used} of {total} terms of the ask are in the output"),
        };
        let finding = Finding::new((2.0 * share).min(1.0), message)
            .with(vec![count("keyword_overlap", "ratio", share, Some((min, source)))])
            .measuring("keyword_overlap", "ratio", share);
        if share >= min { Outcome::Pass(finding) } else { Outcome::Fail(finding) }
    }
}
