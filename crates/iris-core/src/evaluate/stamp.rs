//! The receipt on each result: what the rule was, what it saw, and how sure one can be.

use std::borrow::Cow;
use std::sync::Arc;

use super::prepared::Prepared;
use super::ruleset::Picked;
use crate::model::RuleResult;
use crate::rules::{Case, Finding, Outcome};

/// Turns what a rule said into its stored result; nothing for a rule that is not among those prepared. The role is
/// filled in when the verdict is composed.
pub(super) fn stamp(picked: Picked<'_>, prepared: &Prepared, case: &Case<'_>, outcome: Outcome) -> Option<RuleResult> {
    let meta = picked.rule.meta();
    let receipt = prepared.receipt(picked.at)?;
    let carried = meta.needs.iter().chain(meta.reads).filter(|need| case.carries(**need));
    let mut saw = Vec::with_capacity(meta.needs.len() + meta.reads.len());
    saw.extend(carried.map(|need| Cow::Borrowed(need.as_str())));
    let mut result = RuleResult {
        rule_name: meta.name.clone(),
        rule_id: picked.custom.and_then(|custom| custom.id.clone()),
        category: picked.bundle.as_str().into(),
        critical: receipt.critical,
        critical_source: receipt.critical_source.into(),
        state: "not_checked".into(),
        passed: false,
        score: 0.0,
        message: String::new(),
        skipped: false,
        skip_reason: None,
        skip_class: None,
        kind: meta.kind.as_str().into(),
        role: None,
        question: meta.question.as_str().into(),
        classes: receipt.classes.clone(),
        rule_version: meta.version,
        origin: picked.custom.map(|_| "custom".into()),
        saw,
        uncertainty: None,
        evidence: Vec::new(),
        value: None,
        weight: meta.weight,
        stands: false,
        seen_in_version: None,
    };
    match outcome {
        Outcome::Pass(finding) => {
            fill(&mut result, finding, true);
            result.uncertainty = Some(Arc::clone(&receipt.passed));
        }
        Outcome::Fail(finding) => {
            fill(&mut result, finding, false);
            result.stands = meta.stands;
            result.uncertainty = Some(Arc::clone(&receipt.failed));
        }
        Outcome::Skip { class, why } => {
            result.skipped = true;
            result.skip_class = Some(class.as_str().into());
            result.message = ["not checked: ", &why].concat();
            result.skip_reason = Some(why);
        }
    }
    Some(result)
}

fn fill(result: &mut RuleResult, finding: Finding, passed: bool) {
    result.state = if passed { "pass" } else { "fail" }.into();
    result.passed = passed;
    result.score = finding.score;
    result.message = finding.message;
    result.evidence = finding.evidence;
    result.value = finding.value;
}
