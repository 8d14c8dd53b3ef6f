//! `cost_threshold`: what the run may cost.

use super::keys::{Names, field, number};
use super::{Check, RuleType, Type, problem};
use crate::rules::{Case, FailureClass, Finding, Mechanism, Need, Outcome, Question, ThresholdSource, count};

const MOST: Names = &["max_cost", "max_usd"];

pub(super) const TYPE: Type = Type {
    rule_type: RuleType::CostThreshold,
    needs: &[Need::Cost],
    mechanism: Mechanism::Formula,
    question: Some(Question::WithinBudget),
    classes: &[FailureClass::OverBudget],
    stands: true,
    suggestion: "Make fewer or cheaper model calls.",
    compile: |config| {
        let what = "a number of US dollars, 0 or more";
        let most = number(config, MOST, what)?;
        if most < 0.0 {
            return Err(problem(&field("max_cost"), format!("must be {what}")));
        }
        Ok(Box::new(Cost(most)))
    },
};

struct Cost(f64);

impl Check for Cost {
    fn judge(&self, case: &Case<'_>) -> Outcome {
        let cost = case.subject().cost_usd.unwrap_or_default();
        let message = format!("cost {cost} USD where at most {} is allowed", self.0);
        let evidence = vec![count("cost", "USD", cost, Some((self.0, ThresholdSource::Rule)))];
        let finding = |score| Finding::new(score, message).measuring("cost", "USD", cost).with(evidence);
        if cost <= self.0 { Outcome::Pass(finding(1.0)) } else { Outcome::Fail(finding(0.0)) }
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
}
