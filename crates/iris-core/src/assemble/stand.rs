//! What a later judging of the same trace may not take back.

use serde_json::{Value, json};

use crate::model::{Evaluation, Evidence, RuleResult};

/// Carries into `next` every failed result of `previous` that came from something seen and that `next` does not
/// fail any more: a leak, an obeyed injection or a loop stands for the trace, while a failure that came from
/// something absent may be healed by a later span. Returns whether anything was carried; then state, score and
/// `passed` of `next` have to be composed again. `next.provenance.stands` names what was carried and from which
/// evaluation.
pub fn stand(previous: &Evaluation, next: &mut Evaluation) -> bool {
    let mut carried: Vec<Value> = Vec::new();
    for old in previous.rule_results.iter().filter(|result| is_seen(result)) {
        let same = |new: &&mut RuleResult| new.rule_name == old.rule_name && new.rule_id == old.rule_id;
        match next.rule_results.iter_mut().find(same) {
            Some(new) if new.state == "fail" => continue,
            Some(new) => *new = old.clone(),
            // A rule taken out of force since then judges nothing any more.
            None => continue,
        }
        carried.push(json!({ "rule": old.rule_name, "evaluation_id": origin(previous, &old.rule_name) }));
    }
    if carried.is_empty() {
        return false;
    }
    if let Value::Object(provenance) = &mut next.provenance {
        provenance.insert("stands".to_owned(), Value::Array(carried));
    }
    true
}

/// Whether a result failed because of something that is there. Counts speak of too much or too little; only
/// those above their threshold are of something seen.
fn is_seen(result: &RuleResult) -> bool {
    let decides = matches!(result.role.as_deref(), Some("veto" | "risk" | "gate"));
    result.state == "fail"
        && decides
        && result.evidence.iter().any(|evidence| match evidence {
            Evidence::Span { .. } | Evidence::Pattern { .. } | Evidence::ToolCall { .. } => true,
            Evidence::Count { value, threshold, .. } => threshold.is_some_and(|threshold| *value > threshold),
        })
}

/// The evaluation in which a standing result was first seen.
fn origin(previous: &Evaluation, rule: &str) -> String {
    let stands = previous.provenance.get("stands").and_then(Value::as_array);
    let first = stands.and_then(|stands| stands.iter().find(|entry| entry.get("rule").is_some_and(|r| r == rule)));
    first
        .and_then(|entry| entry.get("evaluation_id"))
        .and_then(Value::as_str)
        .map_or_else(|| previous.id.clone(), str::to_owned)
}
