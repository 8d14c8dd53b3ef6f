//! Does the answer stay with what was asked?
//!
//! *Checks* which share of the output's sentences shares a term with the ask or with a sentence that does. *Matters*
//! because an answer can begin on the subject and wander off. *Cannot see* meaning, and skips short answers.

use std::borrow::Cow;

use super::measures::{CONSISTENCY_MIN, WORDS_MIN, consistency};
use crate::rules::measure::number;
use crate::rules::{
    Bundle, Case, FailureClass, Finding, Kind, Knobs, Mechanism, Need, Outcome, Question, Rule, RuleMeta, count,
};

/// See the module.
pub struct TopicConsistency;

static META: RuleMeta = RuleMeta {
    name: Cow::Borrowed("topic_consistency"),
    bundle: Bundle::Relevance,
    description: Cow::Borrowed(
        "At least this share of the output's sentences hangs together with the ask (topic_consistency, 0.33 unless set).",
    ),
    suggestion: Cow::Borrowed("Cut what does not belong to the ask, or say how it does."),
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
    knobs: &[CONSISTENCY_MIN, WORDS_MIN],
};

impl Rule for TopicConsistency {
    fn meta(&self) -> &RuleMeta {
        &META
    }

    fn judge(&self, case: &Case<'_>, knobs: &Knobs) -> Outcome {
        let (min, source) = knobs.number(&CONSISTENCY_MIN);
        let (connected, sentences) = match consistency(case, knobs.number(&WORDS_MIN).0) {
            Ok(counts) => counts,
            Err(why) => return Outcome::not_applicable(why),
        };
        let share = number(connected) / number(sentences.max(1));
        let message = format!("{connected} of {sentences} sentences hang together with the ask");
        let finding = Finding::new((1.5 * share).min(1.0), message)
            .with(vec![count("topic_consistency", "ratio", share, Some((min, source)))])
            .measuring("topic_consistency", "ratio", share);
        if share >= min { Outcome::Pass(finding) } else { Outcome::Fail(finding) }
    }
}
