//! Does the answer have enough sentences?
//!
//! *Checks* the number of sentences, list items counted as such, in any script, against a floor. *Matters* where a
//! deployment wants whole answers; the shipped floor only moves the score. *Cannot see* whether one sentence is enough.

use std::borrow::Cow;

use crate::rules::measure::number;
use crate::rules::{
    Bundle, Case, FailureClass, Finding, Kind, Knob, Knobs, Mechanism, Need, Outcome, Question, Rule, RuleMeta, count,
};
use crate::text::stretches;

/// See the module.
pub struct SentenceCount;

const MIN: Knob = Knob { name: "min_sentences", default: 2.0, lowest: 0.0, highest: 1e4 };

static META: RuleMeta = RuleMeta {
    name: Cow::Borrowed("sentence_count"),
    bundle: Bundle::Completeness,
    description: Cow::Borrowed("The output has at least min_sentences sentences or list items (2 unless set)."),
    suggestion: Cow::Borrowed("Return a fuller answer, or lower min_sentences where one sentence is right."),
    weight: 0.5,
    kind: Kind::Measurement,
    mechanism: Mechanism::Formula,
    needs: &[Need::Output],
    reads: &[],
    question: Question::Complete,
    classes: &[FailureClass::Format],
    version: 1,
    critical: false,
    stands: false,
    knobs: &[MIN],
};

impl Rule for SentenceCount {
    fn meta(&self) -> &RuleMeta {
        &META
    }

    fn judge(&self, case: &Case<'_>, knobs: &Knobs) -> Outcome {
        let (min, source) = knobs.number(&MIN);
        let found = stretches(case.said()).count();
        let sentences = number(found);
        let enough = sentences >= min;
        let score = if enough { 1.0 } else { (sentences / min).min(0.99) };
        let message = format!("{sentences} sentence{}, at least {min} wanted", if found == 1 { "" } else { "s" });
        let evidence = vec![count("sentences", "sentences", sentences, Some((min, source)))];
        let finding = Finding::new(score, message).with(evidence).measuring("sentences", "sentences", sentences);
        if enough { Outcome::Pass(finding) } else { Outcome::Fail(finding) }
    }
}
