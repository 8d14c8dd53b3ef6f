//! The same evaluation, bundle by bundle.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::compose::{Basis, Verdict, decide};
use super::score::score;
use crate::model::{Evaluation, RuleResult, VerdictState};
use crate::rules::Bundle;

/// One bundle's row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Category {
    /// The score of its rules; null when none ran.
    pub score: Option<f64>,
    /// False when the verdict rests on one of its rules, true when its rules ran and it does not, null when none ran.
    pub passed: Option<bool>,
    /// How many ran.
    pub rules_evaluated: usize,
    /// How many did not.
    pub rules_skipped: usize,
    /// None ran.
    pub insufficient_data: bool,
    /// Its critical rules that failed.
    pub critical_failures: Vec<String>,
    /// Its critical rules that did not run.
    pub critical_skipped: Vec<String>,
}

/// Every bundle that has rules here, by name. A row follows the one verdict and is never composed on its own, so no
/// row can pass what the verdict fails by one of its rules.
pub fn categories(evaluation: &Evaluation) -> BTreeMap<String, Category> {
    let verdict = decide(evaluation);
    let rows = Bundle::ALL.iter().filter_map(|bundle| {
        let results: Vec<&RuleResult> =
            evaluation.rule_results.iter().filter(|result| result.category == bundle.as_str()).collect();
        (!results.is_empty()).then(|| (bundle.as_str().to_owned(), row(&results, &verdict)))
    });
    rows.collect()
}

fn row(results: &[&RuleResult], verdict: &Verdict) -> Category {
    let evaluated = results.iter().filter(|result| !result.skipped).count();
    let critical = |keep: fn(&RuleResult) -> bool| {
        results
            .iter()
            .filter(|result| result.critical && keep(result))
            .map(|result| result.rule_name.to_string())
            .collect()
    };
    Category {
        score: score(results.iter().copied()),
        passed: (evaluated > 0).then(|| !is_blamed(results, verdict)),
        rules_evaluated: evaluated,
        rules_skipped: results.len() - evaluated,
        insufficient_data: evaluated == 0,
        critical_failures: critical(|result| !result.skipped && !result.passed),
        critical_skipped: critical(|result| result.skipped),
    }
}

fn is_blamed(results: &[&RuleResult], verdict: &Verdict) -> bool {
    let own = [(verdict.basis, verdict.state, &verdict.by)];
    let also = verdict.also.iter().map(|layer| (layer.basis, layer.state, &layer.by));
    own.into_iter().chain(also).filter(|(_, state, _)| *state != VerdictState::Pass).any(|(basis, _, by)| match basis {
        Basis::RiskOverLoss => results
            .iter()
            .any(|result| !result.skipped && !result.passed && matches!(&*result.kind, "detection" | "inference")),
        Basis::RequiredEvidenceMissing => false,
        _ => results.iter().any(|result| by.iter().any(|name| *name == result.rule_name)),
    })
}
