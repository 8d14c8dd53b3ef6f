//! The repository's own cases: one file a rule, one case a line.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::evaluate::OwnCounts;
use crate::model::{Evidence, TokenUsage, ToolCall};
use crate::rules::{Case, Knobs, Outcome, RULES, Rule, SkipClass, Subject, ThresholdSource, run};

/// The files by the name of their rule.
const FILES: &[(&str, &str)] = &[
    ("answers_the_ask", include_str!("../../../../tests/cases/rule/answers_the_ask.jsonl")),
    ("ask_coverage", include_str!("../../../../tests/cases/rule/ask_coverage.jsonl")),
    ("cost_anomaly", include_str!("../../../../tests/cases/rule/cost_anomaly.jsonl")),
    ("cost_under_threshold", include_str!("../../../../tests/cases/rule/cost_under_threshold.jsonl")),
    ("expected_coverage", include_str!("../../../../tests/cases/rule/expected_coverage.jsonl")),
    ("grounded_in_reads", include_str!("../../../../tests/cases/rule/grounded_in_reads.jsonl")),
    ("keyword_overlap", include_str!("../../../../tests/cases/rule/keyword_overlap.jsonl")),
    ("max_steps", include_str!("../../../../tests/cases/rule/max_steps.jsonl")),
    ("min_output_length", include_str!("../../../../tests/cases/rule/min_output_length.jsonl")),
    ("no_blocklist_words", include_str!("../../../../tests/cases/rule/no_blocklist_words.jsonl")),
    ("no_hallucination_markers", include_str!("../../../../tests/cases/rule/no_hallucination_markers.jsonl")),
    ("no_injection_compliance", include_str!("../../../../tests/cases/rule/no_injection_compliance.jsonl")),
    ("no_injection_patterns", include_str!("../../../../tests/cases/rule/no_injection_patterns.jsonl")),
    ("no_pii", include_str!("../../../../tests/cases/rule/no_pii.jsonl")),
    ("no_silent_tool_failure", include_str!("../../../../tests/cases/rule/no_silent_tool_failure.jsonl")),
    ("no_stub_output", include_str!("../../../../tests/cases/rule/no_stub_output.jsonl")),
    ("no_tool_loop", include_str!("../../../../tests/cases/rule/no_tool_loop.jsonl")),
    ("non_empty_output", include_str!("../../../../tests/cases/rule/non_empty_output.jsonl")),
    ("not_truncated", include_str!("../../../../tests/cases/rule/not_truncated.jsonl")),
    ("says_something", include_str!("../../../../tests/cases/rule/says_something.jsonl")),
    ("sentence_count", include_str!("../../../../tests/cases/rule/sentence_count.jsonl")),
    ("step_budget", include_str!("../../../../tests/cases/rule/step_budget.jsonl")),
    ("tool_choice", include_str!("../../../../tests/cases/rule/tool_choice.jsonl")),
    ("tool_sequence", include_str!("../../../../tests/cases/rule/tool_sequence.jsonl")),
    ("topic_consistency", include_str!("../../../../tests/cases/rule/topic_consistency.jsonl")),
    ("valid_tool_arguments", include_str!("../../../../tests/cases/rule/valid_tool_arguments.jsonl")),
    ("verbosity_ratio", include_str!("../../../../tests/cases/rule/verbosity_ratio.jsonl")),
];

/// What a rule has to say of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Label {
    /// Nothing is wrong.
    Pass,
    /// Something is.
    Fail,
    /// The rule has nothing to judge here.
    Skip,
}

/// One case. `tests/cases/rule/README.md` says what each field is.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleCase {
    /// Unique within the file.
    pub id: String,
    /// What the rule has to say.
    pub label: Label,
    /// Why.
    pub note: String,
    /// The case of the other label that differs in one thing.
    pub twin: Option<String>,
    /// Written without having seen how the rule works.
    #[serde(default)]
    pub blind: bool,
    /// The rule gets it wrong, and why that stands.
    pub known_miss: Option<String>,
    /// Labels of the evidence, in order, when they are compared.
    pub labels: Option<Vec<String>>,
    /// Indices of the calls that the evidence names, when they are compared.
    pub calls: Option<Vec<usize>>,
    input: Option<String>,
    output: Option<String>,
    expected: Option<String>,
    tool_calls: Option<Vec<ToolCall>>,
    tools: Option<Value>,
    expected_trajectory: Option<Value>,
    cost_usd: Option<f64>,
    cost_history: Option<Vec<f64>>,
    token_usage: Option<TokenUsage>,
    #[serde(default)]
    finish_reasons: Vec<String>,
    #[serde(default)]
    thresholds: BTreeMap<String, f64>,
    #[serde(default)]
    lists: BTreeMap<String, Vec<String>>,
}

impl RuleCase {
    /// What may be looked at.
    pub fn subject(&self) -> Subject<'_> {
        Subject {
            output: self.output.as_deref(),
            input: self.input.as_deref(),
            expected: self.expected.as_deref(),
            tool_calls: self.tool_calls.as_deref(),
            tools_catalogue: self.tools.as_ref(),
            expected_trajectory: self.expected_trajectory.as_ref(),
            cost_usd: self.cost_usd,
            cost_parts: None,
            cost_history: self.cost_history.as_deref().unwrap_or_default(),
            token_usage: self.token_usage,
            finish_reasons: &self.finish_reasons,
        }
    }

    /// What a rule says of it, alone.
    pub fn judge(&self, rule: &dyn Rule) -> Outcome {
        let set = |(name, value): (&String, &f64)| (name.clone(), (*value, ThresholdSource::Config));
        let knobs = Knobs { numbers: self.thresholds.iter().map(set).collect(), lists: self.lists.clone() };
        run(rule, &Case::new(&self.subject()), &knobs)
    }

    /// What is wrong with what the rule said, in words.
    pub fn wrong(&self, outcome: &Outcome) -> Option<String> {
        let (said, why) = match outcome {
            Outcome::Pass(finding) => (Some(Label::Pass), &finding.message),
            Outcome::Fail(finding) => (Some(Label::Fail), &finding.message),
            Outcome::Skip { class: SkipClass::NotApplicable, why } => (Some(Label::Skip), why),
            Outcome::Skip { why, .. } => (None, why),
        };
        if said != Some(self.label) {
            return Some(format!("want {:?}, got {said:?}: {why}", self.label));
        }
        let evidence = match outcome {
            Outcome::Pass(finding) | Outcome::Fail(finding) => finding.evidence.as_slice(),
            Outcome::Skip { .. } => &[],
        };
        let labels: Vec<&str> = evidence.iter().filter_map(label).collect();
        let calls: Vec<usize> = evidence.iter().filter_map(call).collect();
        if self.labels.as_ref().is_some_and(|want| *want != labels) {
            return Some(format!("labels: want {:?}, got {labels:?}", self.labels));
        }
        let other = self.calls.as_ref().is_some_and(|want| *want != calls);
        other.then(|| format!("calls: want {:?}, got {calls:?}", self.calls))
    }
}

fn label(evidence: &Evidence) -> Option<&str> {
    match evidence {
        Evidence::Span { label, .. } | Evidence::ToolCall { label, .. } => Some(label),
        Evidence::Pattern { name, .. } => Some(name),
        Evidence::Count { .. } => None,
    }
}

fn call(evidence: &Evidence) -> Option<usize> {
    if let Evidence::ToolCall { index, .. } = evidence { Some(*index) } else { None }
}

/// The names of the rules that have a file.
pub fn files() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// The cases of a rule, or the line of its file that is none; nothing when it has no file.
///
/// # Errors
/// What a line is wrong about.
pub fn cases(rule: &str) -> Option<Result<Vec<RuleCase>, String>> {
    let (name, text) = FILES.iter().find(|(name, _)| *name == rule)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty());
    let read =
        |(at, line): (usize, &str)| serde_json::from_str(line).map_err(|why| format!("{name}.jsonl:{}: {why}", at + 1));
    Some(lines.map(read).collect())
}

/// How often a rule is right on these cases. What it should not judge is counted apart.
pub fn counts(rule: &dyn Rule, cases: &[RuleCase]) -> OwnCounts {
    let mut counted = OwnCounts { version: rule.meta().version, ..OwnCounts::default() };
    for case in cases {
        let outcome = case.judge(rule);
        if case.label == Label::Skip {
            counted.skips += 1;
            counted.skips_judged += u32::from(!matches!(outcome, Outcome::Skip { .. }));
            continue;
        }
        let (want, got) = (case.label == Label::Fail, matches!(outcome, Outcome::Fail(_)));
        counted.counts.add(want, got);
        if case.blind {
            counted.blind.add(want, got);
        }
    }
    counted
}

/// Every rule that has cases on its own cases, as they come out now.
///
/// # Errors
/// When a line of a file is no case.
pub fn own() -> Result<BTreeMap<String, OwnCounts>, String> {
    let mut measured = BTreeMap::new();
    for rule in RULES {
        let name = rule.meta().name.to_string();
        if let Some(cases) = cases(&name) {
            measured.insert(name, counts(*rule, &cases?));
        }
    }
    Ok(measured)
}
