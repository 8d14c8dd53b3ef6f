//! `min_length` and `max_length`: how many characters the output has.

use serde_json::{Map, Value};

use super::keys::{Names, field, number};
use super::{Check, Problem, RuleType, Type, problem};
use crate::rules::measure;
use crate::rules::{Case, Finding, Mechanism, Need, Outcome, ThresholdSource, count};

const LEAST: Names = &["min_length", "length", "min"];
const MOST: Names = &["max_length", "length", "max"];

pub(super) const MIN: Type = Type {
    rule_type: RuleType::MinLength,
    needs: &[Need::Output],
    mechanism: Mechanism::Formula,
    question: None,
    classes: &[],
    stands: false,
    suggestion: "Say more.",
    compile: |config| Ok(Box::new(Length { limit: limit(config, LEAST)?, is_least: true })),
};

pub(super) const MAX: Type = Type {
    rule_type: RuleType::MaxLength,
    stands: false,
    suggestion: "Say less.",
    compile: |config| Ok(Box::new(Length { limit: limit(config, MOST)?, is_least: false })),
    ..MIN
};

struct Length {
    limit: f64,
    is_least: bool,
}

impl Check for Length {
    fn judge(&self, case: &Case<'_>) -> Outcome {
        let length = measure::number(case.subject().output.unwrap_or_default().chars().count());
        let (holds, word, share) = if self.is_least {
            (length >= self.limit, "least", length / self.limit)
        } else {
            (length <= self.limit, "most", self.limit / length.max(1.0))
        };
        let message = format!("{length} characters where at {word} {} are asked for", self.limit);
        let evidence = vec![count("length", "characters", length, Some((self.limit, ThresholdSource::Rule)))];
        let finding = |score| Finding::new(score, message).measuring("length", "characters", length).with(evidence);
        if holds { Outcome::Pass(finding(1.0)) } else { Outcome::Fail(finding(share)) }
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
}

fn limit(config: &Map<String, Value>, names: Names) -> Result<f64, Problem> {
    let what = "a number of characters above 0";
    let limit = number(config, names, what)?;
    if limit > 0.0 {
        Ok(limit)
    } else {
        Err(problem(&field(names.first().copied().unwrap_or_default()), format!("must be {what}")))
    }
}
