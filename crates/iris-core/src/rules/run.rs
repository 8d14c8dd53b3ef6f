//! Running one rule so that nothing it does can be mistaken for a pass.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Case, Knobs, Outcome, Rule, SkipClass};

/// Judges `case` by `rule`. A need that the subject does not carry, a panic and a text cut before anything was found
/// are skips; a score that is not a number from 0 to 1 is 0.
pub fn run(rule: &dyn Rule, case: &Case<'_>, knobs: &Knobs) -> Outcome {
    let meta = rule.meta();
    let lacking: Vec<String> =
        meta.needs.iter().filter(|need| !case.carries(**need)).map(|need| case.subject().lack(*need)).collect();
    if !lacking.is_empty() {
        return Outcome::Skip { class: SkipClass::NotApplicable, why: lacking.join(", ") };
    }
    let judged = catch_unwind(AssertUnwindSafe(|| rule.judge(case, knobs)));
    let Ok(mut outcome) = judged else {
        return Outcome::Skip { class: SkipClass::Defeated, why: "the rule failed on this input".to_owned() };
    };
    if let (Outcome::Pass(_), Some(why)) = (&outcome, case.cut(meta)) {
        return Outcome::Skip { class: SkipClass::Defeated, why };
    }
    if let Outcome::Pass(finding) | Outcome::Fail(finding) = &mut outcome {
        finding.score = if finding.score.is_finite() { finding.score.clamp(0.0, 1.0) } else { 0.0 };
    }
    outcome
}
