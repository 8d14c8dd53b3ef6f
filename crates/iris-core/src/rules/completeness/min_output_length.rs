//! Is the answer long enough?
//!
//! *Checks* the length of the output, in characters, against a floor. *Matters* where a deployment knows how short an
//! answer can be; the shipped floor only moves the score. *Cannot see* whether a short answer is all there is to say.

use std::borrow::Cow;

use crate::rules::measure::number;
use crate::rules::{
    Bundle, Case, FailureClass, Finding, Kind, Knob, Knobs, Mechanism, Need, Outcome, Question, Rule, RuleMeta, count,
};

/// See the module.
pub struct MinOutputLength;

const MIN: Knob = Knob { name: "min_output_length", default: 50.0, lowest: 0.0, highest: 1e6 };

static META: RuleMeta = RuleMeta {
    name: Cow::Borrowed("min_output_length"),
    bundle: Bundle::Completeness,
    description: Cow::Borrowed("The output is at least min_output_length characters long (50 unless set)."),
    suggestion: Cow::Borrowed("Return a fuller answer, or lower min_output_length where short answers are right."),
    weight: 1.0,
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

impl Rule for MinOutputLength {
    fn meta(&self) -> &RuleMeta {
        &META
    }

    fn judge(&self, case: &Case<'_>, knobs: &Knobs) -> Outcome {
        let (min, source) = knobs.number(&MIN);
        let length = number(case.subject().output.unwrap_or_default().chars().count());
        let enough = length >= min;
        let score = if enough { 1.0 } else { (length / min).min(0.99) };
        let message = format!("{length} characters, at least {min} wanted");
        let evidence = vec![count("output_length", "characters", length, Some((min, source)))];
        let finding = Finding::new(score, message).with(evidence).measuring("output_length", "characters", length);
        if enough { Outcome::Pass(finding) } else { Outcome::Fail(finding) }
    }
}
