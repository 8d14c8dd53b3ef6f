//! Did the run cost far more than this agent's runs usually do?
//!
//! *Checks* the cost against the last 200 known ones by the modified z-score, which a few dear runs do not move.
//! *Matters* because a limit wide enough for every run does not see the one that went astray. *Cannot see* anything
//! before 20 runs are known, or a rise that came so slowly that it is usual by now. It moves the score and decides
//! nothing. Source: Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993.

use std::borrow::Cow;

use crate::rules::{
    Bundle, Case, FailureClass, Finding, Kind, Knobs, Mechanism, Need, Outcome, Question, Rule, RuleMeta,
    ThresholdSource, count,
};

/// See the module.
pub struct CostAnomaly;

/// Known costs without which nothing is usual, and how many of the newest are looked at.
const KNOWN_MIN: usize = 20;
const KNOWN_MAX: usize = 200;
/// The score above which a cost is an outlier.
const SCORE_MAX: f64 = 3.5;
/// Makes the median deviation comparable with a standard deviation.
const SCALE: f64 = 0.6745;
/// Where all known costs are alike: how far above the dearest is still usual.
const RISE_MAX: f64 = 1.10;

static META: RuleMeta = RuleMeta {
    name: Cow::Borrowed("cost_anomaly"),
    bundle: Bundle::Cost,
    description: Cow::Borrowed("The run costs about what this agent's runs usually cost."),
    suggestion: Cow::Borrowed("Compare the calls of this trace with those of a usual one."),
    weight: 1.0,
    kind: Kind::Measurement,
    mechanism: Mechanism::Formula,
    needs: &[Need::Cost],
    reads: &[],
    question: Question::WithinBudget,
    classes: &[FailureClass::OverBudget],
    version: 1,
    critical: false,
    stands: true,
    knobs: &[],
};

impl Rule for CostAnomaly {
    fn meta(&self) -> &RuleMeta {
        &META
    }

    fn judge(&self, case: &Case<'_>, _: &Knobs) -> Outcome {
        let cost = case.subject().cost_usd.unwrap_or_default();
        let usable = case.subject().cost_history.iter().copied().filter(|cost| cost.is_finite() && *cost >= 0.0);
        let mut known: Vec<f64> = usable.rev().take(KNOWN_MAX).collect();
        if known.len() < KNOWN_MIN {
            let why = format!("insufficient_history: {} earlier costs known, {KNOWN_MIN} needed", known.len());
            return Outcome::not_applicable(why);
        }
        known.sort_by(f64::total_cmp);
        let usual = median(&known);
        let mut apart: Vec<f64> = known.iter().map(|one| (one - usual).abs()).collect();
        apart.sort_by(f64::total_cmp);
        let deviation = median(&apart);
        let dearest = known.last().copied().unwrap_or_default();
        let (stat, value, limit, fires) = if deviation > 0.0 {
            let score = SCALE * (cost - usual) / deviation;
            ("modified_z", score, SCORE_MAX, score > SCORE_MAX)
        } else {
            ("cost", cost, RISE_MAX * dearest, cost > RISE_MAX * dearest)
        };
        let evidence = vec![
            count(
                stat,
                if deviation > 0.0 { "deviations" } else { "USD" },
                value,
                Some((limit, ThresholdSource::Rule)),
            ),
            count("usual_cost", "USD", usual, None),
        ];
        let message = format!("cost {cost} USD where {usual} is usual in {} runs", known.len());
        if !fires {
            return Outcome::Pass(Finding::new(1.0, message).measuring(stat, "score", value).with(evidence));
        }
        let score = if deviation > 0.0 { 1.0 - (value - SCORE_MAX) / SCORE_MAX } else { 0.0 };
        Outcome::Fail(Finding::new(score.max(0.0), message).measuring(stat, "score", value).with(evidence))
    }
}

/// The middle of sorted numbers.
fn median(sorted: &[f64]) -> f64 {
    let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
    let half = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) { f64::midpoint(at(half.saturating_sub(1)), at(half)) } else { at(half) }
}
