//! The weighted mean of what ran. Never consulted for a verdict.

use super::accuracy::round;
use crate::model::RuleResult;

/// The score of the rules that ran, 0 to 1 with three decimals; nothing when none did.
pub(super) fn score<'a>(results: impl Iterator<Item = &'a RuleResult>) -> Option<f64> {
    let (mut sum, mut weight) = (0.0, 0.0);
    for result in results.filter(|result| !result.skipped) {
        if result.score.is_finite() {
            sum += result.score * result.weight;
        }
        weight += result.weight;
    }
    (weight > 0.0).then(|| round(sum / weight, 3))
}
