//! Did the agent take more steps than the task was expected to need?
//!
//! *Checks* the number of tool calls against the expected trajectory: its `step_budget`, or as many calls as it lists,
//! times its `tolerance` (1.5 unless stated). *Matters* because the right answer by a long detour is a regression too.
//! *Cannot see* which of the steps were the detour.

use std::borrow::Cow;

use serde_json::Value;

use crate::rules::{
    Bundle, Case, FailureClass, Finding, Kind, Knobs, Mechanism, Need, Outcome, Question, Rule, RuleMeta,
    ThresholdSource, count,
};

/// See the module.
pub struct StepBudget;

/// How far above the budget is still within it, unless the expectation says otherwise.
const TOLERANCE: f64 = 1.5;

static META: RuleMeta = RuleMeta {
    name: Cow::Borrowed("step_budget"),
    bundle: Bundle::Cost,
    description: Cow::Borrowed("The agent makes no more tool calls than the expected trajectory allows."),
    suggestion: Cow::Borrowed("Compare the calls with the expected ones and remove the detour, or widen the budget."),
    weight: 1.0,
    kind: Kind::Policy,
    mechanism: Mechanism::Formula,
    needs: &[Need::ToolCalls, Need::ExpectedTrajectory],
    reads: &[],
    question: Question::WithinBudget,
    classes: &[FailureClass::OverBudget],
    version: 1,
    critical: false,
    stands: true,
    knobs: &[],
};

impl Rule for StepBudget {
    fn meta(&self) -> &RuleMeta {
        &META
    }

    fn judge(&self, case: &Case<'_>, _: &Knobs) -> Outcome {
        let expected = case.subject().expected_trajectory.unwrap_or(&Value::Null);
        let Some(budget) = budget(expected) else {
            return Outcome::not_applicable("the expected trajectory names neither a step budget nor calls");
        };
        let tolerance = expected.get("tolerance").and_then(Value::as_f64).filter(|factor| *factor >= 1.0);
        let ceiling = (budget * tolerance.unwrap_or(TOLERANCE)).floor();
        let steps = case.subject().tool_calls.unwrap_or_default().len();
        #[expect(clippy::cast_precision_loss, reason = "a list of calls is never that long")]
        let taken = steps as f64;
        let evidence = vec![count("steps", "tool calls", taken, Some((ceiling, ThresholdSource::Call)))];
        let message = format!("{steps} tool calls, {budget} expected, at most {ceiling}");
        let passed = taken <= ceiling;
        let score = if passed { 1.0 } else { ceiling / taken };
        let finding = Finding::new(score, message).measuring("steps", "tool calls", taken).with(evidence);
        if passed { Outcome::Pass(finding) } else { Outcome::Fail(finding) }
    }
}

/// The stated budget, or the number of calls that are expected.
fn budget(expected: &Value) -> Option<f64> {
    let stated = expected.get("step_budget").and_then(Value::as_f64).filter(|budget| *budget >= 1.0);
    let listed = expected.get("tool_calls").or(Some(expected)).and_then(Value::as_array);
    #[expect(clippy::cast_precision_loss, reason = "a list of calls is never that long")]
    stated.or_else(|| listed.map(|calls| calls.len() as f64).filter(|calls| *calls >= 1.0))
}
