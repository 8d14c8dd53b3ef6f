//! What a later span cannot take back.

use super::Provenance;
use super::engine::finish;
use crate::model::{Evaluation, RuleResult};

/// The new judging of a trace that was judged before: a failure that came from something seen stands, one that came
/// from something missing is as the new judging says. What stands names the version it was seen in. A rule that fails anew keeps its new evidence. Both must be of
/// one trace; otherwise nothing is carried over.
pub fn stand(previous: &Evaluation, mut next: Evaluation) -> Evaluation {
    let same = previous.trace_id.is_some() && previous.trace_id == next.trace_id && previous.tenant == next.tenant;
    if !same {
        return next;
    }
    for old in previous.rule_results.iter().filter(|old| old.stands && old.state == "fail") {
        let same = |new: &&mut RuleResult| {
            new.rule_name == old.rule_name && new.rule_id == old.rule_id && new.origin == old.origin
        };
        // A rule taken out of force since then judges nothing any more.
        let Some(new) = next.rule_results.iter_mut().find(same).filter(|new| new.state != "fail") else { continue };
        *new = RuleResult { seen_in_version: old.seen_in_version.or(previous.trace_version), ..old.clone() };
        let advice = format!("{}:", old.rule_name);
        let missing = previous.suggestions.iter().filter(|text| text.starts_with(&advice));
        let missing: Vec<String> = missing.filter(|text| !next.suggestions.contains(text)).cloned().collect();
        next.suggestions.extend(missing);
    }
    if let Some(provenance) = Provenance::read(&next) {
        finish(&mut next, &provenance.composer);
    }
    next
}
