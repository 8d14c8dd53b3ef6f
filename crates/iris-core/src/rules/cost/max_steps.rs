//! Did the agent take more steps than it may?
//!
//! *Checks* the number of tool calls against a limit. *Matters* because an agent that does not stop spends until it is
//! stopped. *Cannot see* whether the steps were needed. At the shipped limit it only advises; a limit that the
//! deployment sets decides.

use std::borrow::Cow;

use crate::rules::{
    Bundle, Case, FailureClass, Finding, Kind, Knob, Knobs, Mechanism, Need, Outcome, Question, Rule, RuleMeta, count,
};

/// See the module.
pub struct MaxSteps;

const LIMIT: Knob = Knob { name: "max_steps", default: 50.0, lowest: 1.0, highest: 1e6 };

static META: RuleMeta = RuleMeta {
    name: Cow::Borrowed("max_steps"),
    bundle: Bundle::Cost,
    description: Cow::Borrowed("The agent makes no more tool calls than the limit."),
    suggestion: Cow::Borrowed("Give the agent a step limit of its own, and look at what it did after the first ones."),
    weight: 1.0,
    kind: Kind::Policy,
    mechanism: Mechanism::Formula,
    needs: &[Need::ToolCalls],
    reads: &[],
    question: Question::WithinBudget,
    classes: &[FailureClass::OverBudget],
    version: 1,
    critical: false,
    stands: true,
    knobs: &[LIMIT],
};

impl Rule for MaxSteps {
    fn meta(&self) -> &RuleMeta {
        &META
    }

    fn judge(&self, case: &Case<'_>, knobs: &Knobs) -> Outcome {
        let steps = case.subject().tool_calls.unwrap_or_default().len();
        let (limit, source) = knobs.number(&LIMIT);
        #[expect(clippy::cast_precision_loss, reason = "a list of calls is never that long")]
        let taken = steps as f64;
        let evidence = vec![count("steps", "tool calls", taken, Some((limit.floor(), source)))];
        let message = format!("{steps} tool calls, at most {}", limit.floor());
        let passed = taken <= limit.floor();
        let score = if passed { 1.0 } else { limit.floor() / taken };
        let finding = Finding::new(score, message).measuring("steps", "tool calls", taken).with(evidence);
        if passed { Outcome::Pass(finding) } else { Outcome::Fail(finding) }
    }
}
