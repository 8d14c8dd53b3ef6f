//! Did the model write far more than it read?
//!
//! *Checks* completion tokens against prompt tokens. *Matters* because a model that runs on costs money and buries the
//! answer. *Cannot see* whether a long text was asked for; it moves the score and decides nothing.

use std::borrow::Cow;

use crate::rules::{
    Bundle, Case, FailureClass, Finding, Kind, Knob, Knobs, Mechanism, Need, Outcome, Question, Rule, RuleMeta, count,
};

/// See the module.
pub struct VerbosityRatio;

const LIMIT: Knob = Knob { name: "max_token_ratio", default: 5.0, lowest: 0.0, highest: 1e9 };

static META: RuleMeta = RuleMeta {
    name: Cow::Borrowed("verbosity_ratio"),
    bundle: Bundle::Cost,
    description: Cow::Borrowed("The model writes at most so many tokens for each one it reads."),
    suggestion: Cow::Borrowed("Ask for a shorter answer or limit the completion tokens."),
    weight: 0.5,
    kind: Kind::Measurement,
    mechanism: Mechanism::Formula,
    needs: &[Need::Tokens],
    reads: &[],
    question: Question::WithinBudget,
    classes: &[FailureClass::OverBudget],
    version: 1,
    critical: false,
    stands: true,
    knobs: &[LIMIT],
};

impl Rule for VerbosityRatio {
    fn meta(&self) -> &RuleMeta {
        &META
    }

    fn judge(&self, case: &Case<'_>, knobs: &Knobs) -> Outcome {
        let usage = case.subject().token_usage.unwrap_or_default();
        let (Some(read), Some(written)) = (usage.prompt_tokens, usage.completion_tokens) else {
            return Outcome::not_applicable("tokens supplied without both prompt and completion counts");
        };
        if read == 0 {
            return Outcome::not_applicable("no prompt tokens to compare with");
        }
        #[expect(clippy::cast_precision_loss, reason = "a ratio of counts needs no 53 bits")]
        let ratio = written as f64 / read as f64;
        let (limit, source) = knobs.number(&LIMIT);
        let evidence = vec![count("token_ratio", "completion tokens per prompt token", ratio, Some((limit, source)))];
        let message = format!("{written} tokens written for {read} read");
        let passed = ratio <= limit;
        let score = if passed { 1.0 } else { limit / ratio };
        let finding = Finding::new(score, message).measuring("token_ratio", "ratio", ratio).with(evidence);
        if passed { Outcome::Pass(finding) } else { Outcome::Fail(finding) }
    }
}
