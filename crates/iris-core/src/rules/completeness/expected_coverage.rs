//! How much of the expected answer does the answer say?
//!
//! *Checks* which share of the distinct words of the expectation the output uses: at least half. *Matters* as the
//! simplest comparison with a known right answer. *Cannot see* meaning: a paraphrase in other words covers little, and a
//! contradiction in the same words covers all.

use std::borrow::Cow;

use crate::rules::measure::number;
use crate::rules::{
    Bundle, Case, FailureClass, Finding, Kind, Knobs, Mechanism, Need, Outcome, Question, Rule, RuleMeta,
    ThresholdSource, count,
};
use crate::text::{TermSet, View, Word, WordKind, words};

/// See the module.
pub struct ExpectedCoverage;

/// The share that has to be there; it cannot be set.
const SHARE_MIN: f64 = 0.5;

static META: RuleMeta = RuleMeta {
    name: Cow::Borrowed("expected_coverage"),
    bundle: Bundle::Completeness,
    description: Cow::Borrowed("The output uses at least half of the distinct words of the expected answer."),
    suggestion: Cow::Borrowed("Compare the output with the expected answer and add what is missing."),
    weight: 1.5,
    kind: Kind::Measurement,
    mechanism: Mechanism::Formula,
    needs: &[Need::Output, Need::Expected],
    reads: &[],
    question: Question::Complete,
    classes: &[FailureClass::IncompleteAsk],
    version: 1,
    critical: false,
    stands: false,
    knobs: &[],
};

impl Rule for ExpectedCoverage {
    fn meta(&self) -> &RuleMeta {
        &META
    }

    fn judge(&self, case: &Case<'_>, _: &Knobs) -> Outcome {
        let expected = View::folded(case.subject().expected.unwrap_or_default());
        let mut wanted: TermSet = words(expected.text()).filter(counts).map(|word| word.key()).collect();
        if wanted.is_empty() {
            // Nothing but short words, such as `no`: then those count.
            wanted = words(expected.text()).map(|word| word.key()).collect();
        }
        let total = wanted.len();
        if total > 0 {
            words(case.said()).for_each(|word| {
                wanted.remove(&word.key());
            });
        }
        let covered = total - wanted.len();
        let share = if total == 0 { 1.0 } else { number(covered) / number(total) };
        let message = format!("{covered} of {total} distinct words of the expected answer");
        let evidence = vec![count("expected_coverage", "ratio", share, Some((SHARE_MIN, ThresholdSource::Rule)))];
        let finding = Finding::new(share, message).with(evidence).measuring("expected_coverage", "ratio", share);
        if share >= SHARE_MIN { Outcome::Pass(finding) } else { Outcome::Fail(finding) }
    }
}

/// Words that count: numbers, and words of three letters or more.
fn counts(word: &Word<'_>) -> bool {
    word.kind != WordKind::Letters || word.text.chars().nth(2).is_some()
}
