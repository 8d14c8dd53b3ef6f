//! How much a judged trace deserves a look: what kind of failure it is, and how fresh.

use std::time::Duration;

use serde::Serialize;

use crate::model::{EvalType, Evaluation, VerdictState};

/// What one run may cost before the cost itself is what deserves a look, in US dollars.
const SPIKE_USD: f64 = 0.10;

/// The rules that speak of the cost of a run.
const COST_RULES: [&str; 2] = ["cost_anomaly", "cost_under_threshold"];

/// After this long a moment counts half.
const HALF_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Why a trace deserves a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MomentKind {
    /// A rule of the safety bundle failed, or one that vetoes.
    SafetyViolation,
    /// It cost much.
    CostSpike,
    /// An agent failed in a way in which it had not failed before.
    NovelPattern,
    /// Evaluations of several bundles failed it.
    RuleCollision,
    /// It failed.
    Fail,
    /// Some evaluations passed it and some did not.
    Partial,
    /// It could not be judged.
    Unjudged,
    /// It passed.
    Pass,
}

impl MomentKind {
    /// Its name as it stands in addresses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SafetyViolation => "safety-violation",
            Self::CostSpike => "cost-spike",
            Self::NovelPattern => "novel-pattern",
            Self::RuleCollision => "rule-collision",
            Self::Fail => "fail",
            Self::Partial => "partial",
            Self::Unjudged => "unjudged",
            Self::Pass => "pass",
        }
    }

    /// How much it weighs, 0 to 1.
    pub const fn score(self) -> f64 {
        match self {
            Self::SafetyViolation => 1.0,
            Self::CostSpike => 0.9,
            Self::NovelPattern => 0.75,
            Self::RuleCollision => 0.7,
            Self::Fail => 0.5,
            Self::Partial => 0.4,
            Self::Unjudged => 0.1,
            Self::Pass => 0.05,
        }
    }

    /// Why, in a sentence.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::SafetyViolation => "a safety rule failed, or one that vetoes on its own",
            Self::CostSpike => "it cost at least 0.10 USD, or a rule about cost failed",
            Self::NovelPattern => "this agent had not failed these rules together before",
            Self::RuleCollision => "evaluations of several bundles failed it",
            Self::Fail => "it failed",
            Self::Partial => "some evaluations passed it and others did not",
            Self::Unjudged => "too little was there to judge it",
            Self::Pass => "nothing that was judged is wrong",
        }
    }
}

/// What is known of a trace beside its latest evaluation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Around<'a> {
    /// What it cost, in US dollars.
    pub cost_usd: Option<f64>,
    /// What every evaluation of it said, each bundle and state once.
    pub said: &'a [(EvalType, VerdictState)],
    /// The agent has failed often enough to compare, and never in the same rules.
    pub is_new: bool,
}

/// What kind of moment a trace is: the weightiest that holds.
pub fn moment(evaluation: &Evaluation, around: Around<'_>) -> MomentKind {
    let failed = || evaluation.rule_results.iter().filter(|result| !result.passed && !result.skipped);
    let is_safety = failed().any(|result| result.category == "safety" || result.role.as_deref() == Some("veto"));
    let costs = around.cost_usd.is_some_and(|cost| cost >= SPIKE_USD)
        || failed().any(|result| COST_RULES.contains(&&*result.rule_name));
    let fails = |state: VerdictState| around.said.iter().filter(move |(_, said)| *said == state);
    let mut bundles: Vec<EvalType> = fails(VerdictState::Fail).map(|(bundle, _)| *bundle).collect();
    bundles.sort_unstable();
    bundles.dedup();
    if is_safety {
        return MomentKind::SafetyViolation;
    }
    if costs {
        return MomentKind::CostSpike;
    }
    if bundles.len() > 1 {
        return MomentKind::RuleCollision;
    }
    match evaluation.state {
        VerdictState::Fail if around.is_new => MomentKind::NovelPattern,
        VerdictState::Fail if fails(VerdictState::Pass).next().is_some() => MomentKind::Partial,
        VerdictState::Fail => MomentKind::Fail,
        _ if !bundles.is_empty() => MomentKind::Partial,
        VerdictState::Unknown => MomentKind::Unjudged,
        VerdictState::Pass => MomentKind::Pass,
    }
}

/// How much a moment of that kind and age deserves a look now.
pub fn rank(kind: MomentKind, age: Duration) -> f64 {
    kind.score() * 0.5_f64.powf(age.as_secs_f64() / HALF_AFTER.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::{Ruleset, Settings, judge_trace};
    use crate::model::{Timestamp, Trace};

    fn judged(output: &str) -> Evaluation {
        let trace: Trace = serde_json::from_value(serde_json::json!({
            "tenant": "local", "trace_id": "00000000000000000000000000000001", "version": 1, "source": "otlp",
            "agent_name": "a", "framework": null, "input": "Who is on call tonight?", "output": output,
            "tool_calls": [], "latency_ms": 1.0, "token_usage": null, "cost_usd": null, "cost_source": null,
            "metadata": {}, "timestamp": "2026-12-01T00:00:00Z", "session_id": null, "user_id": null,
            "model": null, "provider": null, "environment": null, "service_version": null, "runs": [],
            "partial": false, "in_progress": false, "conflicting_spans": false, "span_count": 1,
            "error_count": 0, "seen_through": 1,
        }))
        .unwrap();
        judge_trace(&Ruleset::built_in(), &trace, &Settings::default(), Timestamp::default())
    }

    #[test]
    fn the_weightiest_kind_that_holds_is_named() {
        let leak = judged("Write to maria.keller@sorbtal.dev or call her at home.");
        assert_eq!(moment(&leak, Around::default()), MomentKind::SafetyViolation);
        let mut fine = judged("Nobody is on call tonight, so the pager stays with the team until tomorrow morning.");
        fine.rule_results.retain(|result| result.passed);
        fine.state = VerdictState::Pass;
        assert_eq!(moment(&fine, Around::default()), MomentKind::Pass);
        let dear = Around { cost_usd: Some(0.11), ..Around::default() };
        assert_eq!(moment(&fine, dear), MomentKind::CostSpike);
        let said = [(EvalType::Relevance, VerdictState::Fail), (EvalType::Cost, VerdictState::Fail)];
        assert_eq!(moment(&fine, Around { said: &said, ..Around::default() }), MomentKind::RuleCollision);
        assert_eq!(moment(&fine, Around { said: &said[..1], ..Around::default() }), MomentKind::Partial);
        fine.state = VerdictState::Fail;
        assert_eq!(moment(&fine, Around::default()), MomentKind::Fail);
        assert_eq!(moment(&fine, Around { is_new: true, ..Around::default() }), MomentKind::NovelPattern);
        fine.state = VerdictState::Unknown;
        assert_eq!(moment(&fine, Around::default()), MomentKind::Unjudged);
    }

    #[test]
    fn what_is_older_ranks_lower() {
        let day = HALF_AFTER;
        assert!((rank(MomentKind::SafetyViolation, day) - 0.5).abs() < 1e-9);
        assert!(rank(MomentKind::Fail, Duration::ZERO) > rank(MomentKind::SafetyViolation, day * 2));
    }
}
