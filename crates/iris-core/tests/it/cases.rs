//! The rules on the cases of `tests/cases/rule`: each comes out right or is listed there as a known miss.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use iris_core::evaluate::Subject;
use iris_core::model::{Evidence, TokenUsage, ToolCall};
use iris_core::rules::{Case, Knobs, Outcome, RULES, Rule, SkipClass, ThresholdSource, run};
use serde::Deserialize;
use serde_json::Value;

/// Cases that a file holds at least, and those of them that have a twin.
const CASES_MIN: usize = 60;
const TWINS_MIN: usize = 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleCase {
    id: String,
    label: String,
    note: String,
    twin: Option<String>,
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
    labels: Option<Vec<String>>,
    calls: Option<Vec<usize>>,
    known_miss: Option<String>,
}

impl RuleCase {
    fn judge(&self, rule: &dyn Rule) -> Outcome {
        let subject = Subject {
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
        };
        let set = |(name, value): (&String, &f64)| (name.clone(), (*value, ThresholdSource::Config));
        let knobs = Knobs { numbers: self.thresholds.iter().map(set).collect(), lists: self.lists.clone() };
        run(rule, &Case::new(&subject), &knobs)
    }

    /// What is wrong with what the rule said.
    fn wrong(&self, outcome: &Outcome) -> Option<String> {
        let (said, finding) = match outcome {
            Outcome::Pass(finding) => ("pass", Some(finding)),
            Outcome::Fail(finding) => ("fail", Some(finding)),
            Outcome::Skip { class: SkipClass::NotApplicable, .. } => ("skip", None),
            Outcome::Skip { .. } => ("defeated", None),
        };
        if said != self.label {
            let why = match outcome {
                Outcome::Skip { why, .. } => why,
                Outcome::Pass(finding) | Outcome::Fail(finding) => &finding.message,
            };
            return Some(format!("want {}, got {said}: {why}", self.label));
        }
        let evidence = finding.map(|finding| finding.evidence.as_slice()).unwrap_or_default();
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

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/rule")
}

/// Every file: the rule it is named after and its cases.
fn files() -> Vec<(&'static dyn Rule, Vec<RuleCase>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "jsonl") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let rule = RULES.iter().find(|rule| rule.meta().name == name);
        let rule = rule.unwrap_or_else(|| panic!("{}: no rule is called {name}", path.display()));
        let text = std::fs::read_to_string(&path).unwrap();
        let read = |(at, line): (usize, &str)| {
            serde_json::from_str(line).unwrap_or_else(|why| panic!("{}:{}: {why}", path.display(), at + 1))
        };
        files.push((*rule, text.lines().enumerate().filter(|(_, line)| !line.is_empty()).map(read).collect()));
    }
    files
}

/// Scenario: `IRIS_RULE=name` looks at the cases of one rule only.
#[test]
fn every_rule_case_comes_out_right() {
    let only = std::env::var("IRIS_RULE").ok();
    let mut broken = String::new();
    for (rule, cases) in files() {
        let name = &rule.meta().name;
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        for case in cases {
            let wrong = case.wrong(&case.judge(rule));
            let _ = match (&case.known_miss, wrong) {
                (None, Some(wrong)) => writeln!(broken, "{name}/{} ({}): {wrong}", case.id, case.note),
                (Some(_), None) => writeln!(broken, "{name}/{}: is right now; it is no known miss any more", case.id),
                _ => Ok(()),
            };
        }
    }
    assert!(broken.is_empty(), "{broken}");
}

#[test]
fn the_cases_are_many_and_come_in_pairs() {
    for (rule, cases) in files() {
        let name = &rule.meta().name;
        let by_id: BTreeMap<&str, &RuleCase> = cases.iter().map(|case| (case.id.as_str(), case)).collect();
        assert_eq!(by_id.len(), cases.len(), "{name}: two cases have one id");
        assert!(cases.len() >= CASES_MIN, "{name}: {} cases, at least {CASES_MIN}", cases.len());
        let labels: BTreeSet<&str> = cases.iter().map(|case| case.label.as_str()).collect();
        assert!(labels.is_subset(&BTreeSet::from(["pass", "fail", "skip"])), "{name}: {labels:?}");
        let twins: Vec<&RuleCase> = cases.iter().filter(|case| case.twin.is_some()).collect();
        assert!(twins.len() >= TWINS_MIN, "{name}: {} cases have a twin, at least {TWINS_MIN}", twins.len());
        for case in twins {
            let twin = case.twin.as_deref().and_then(|twin| by_id.get(twin));
            let twin = twin.unwrap_or_else(|| panic!("{name}/{}: its twin is no case", case.id));
            assert_ne!(twin.label, case.label, "{name}/{}: a twin has the other label", case.id);
        }
    }
}
