//! Did the run cost more than it may?
//!
//! *Checks* the stated cost against a limit in USD. *Matters* because one run that goes astray can cost what a thousand
//! do. *Cannot see* a cost that nobody stated: that is missing evidence, not a cheap run. At the shipped limit it only
//! advises; a limit that the deployment sets decides.

use std::borrow::Cow;

use crate::rules::{
    Bundle, Case, FailureClass, Finding, Kind, Knob, Knobs, Mechanism, Need, Outcome, Question, Rule, RuleMeta, count,
};

/// See the module.
pub struct CostUnderThreshold;

const LIMIT: Knob = Knob { name: "cost_threshold", default: 0.10, lowest: 0.0, highest: 1e9 };

static META: RuleMeta = RuleMeta {
    name: Cow::Borrowed("cost_under_threshold"),
    bundle: Bundle::Cost,
    description: Cow::Borrowed("The run costs no more than the limit, in USD."),
    suggestion: Cow::Borrowed("Look at the dearest calls of the trace; use a smaller model or fewer steps for them."),
    weight: 1.0,
    kind: Kind::Policy,
    mechanism: Mechanism::Formula,
    needs: &[Need::Cost],
    reads: &[],
    question: Question::WithinBudget,
    classes: &[FailureClass::OverBudget],
    version: 1,
    critical: false,
    stands: true,
    knobs: &[LIMIT],
};

impl Rule for CostUnderThreshold {
    fn meta(&self) -> &RuleMeta {
        &META
    }

    fn judge(&self, case: &Case<'_>, knobs: &Knobs) -> Outcome {
        let cost = case.subject().cost_usd.unwrap_or_default();
        let (limit, source) = knobs.number(&LIMIT);
        let evidence = vec![count("cost", "USD", cost, Some((limit, source)))];
        if cost <= limit {
            let message = format!("cost {cost} USD, at most {limit}");
            return Outcome::Pass(Finding::new(1.0, message).measuring("cost", "USD", cost).with(evidence));
        }
        let over = if limit > 0.0 { (cost - limit) / limit } else { 1.0 };
        let message = format!("cost {cost} USD, more than {limit}");
        Outcome::Fail(Finding::new((1.0 - over).max(0.0), message).measuring("cost", "USD", cost).with(evidence))
    }
}
