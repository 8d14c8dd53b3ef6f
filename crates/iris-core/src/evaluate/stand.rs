//! What a later span cannot take back.

use super::engine::finish;
use crate::model::Evaluation;

/// The new judging of a trace that was judged before: a failure that came from something seen stands, one that came
/// from something missing is as the new judging says. A rule that fails anew keeps its new evidence. Both must be of
/// one trace; otherwise nothing is carried over.
pub fn stand(previous: &Evaluation, mut next: Evaluation) -> Evaluation {
    let same = previous.trace_id.is_some() && previous.trace_id == next.trace_id && previous.tenant == next.tenant;
    if !same {
        return next;
    }
    for old in previous.rule_results.iter().filter(|old| old.stands && old.state == "fail") {
        let mut old = old.clone();
        old.seen_in_version = old.seen_in_version.or(previous.trace_version);
        match next.rule_results.iter_mut().find(|new| new.rule_name == old.rule_name && new.rule_id == old.rule_id) {
            Some(new) if new.state == "fail" => {}
            Some(new) => *new = old.clone(),
            None => next.rule_results.push(old.clone()),
        }
        for suggestion in previous.suggestions.iter().filter(|text| text.starts_with(&format!("{}:", old.rule_name))) {
            if !next.suggestions.contains(suggestion) {
                next.suggestions.push(suggestion.clone());
            }
        }
    }
    finish(&mut next);
    next
}
