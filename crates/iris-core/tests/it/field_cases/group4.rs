//! Group 4: what rules fire on and what they must leave alone. Every case has both twins; where two rules could be at
//! fault, all rules are asked.

mod actions;
mod disguises;
mod leaks;
mod words;

use std::time::{Duration, Instant};

use iris_core::evaluate::{Identity, Ruleset, Settings, Subject, compose, evaluate};
use iris_core::model::{EvalType, Evaluation, Evidence, RuleResult, Tenant, Timestamp, ToolCall};
use serde_json::{Value, json};

/// Everything that all rules say of a subject.
struct Said(Evaluation);

fn judged(subject: &Subject<'_>) -> Said {
    let identity = Identity {
        id: String::new(),
        tenant: Tenant::local(),
        trace_id: None,
        trace_version: None,
        seen_through: 0,
        position: None,
        inline: false,
    };
    let (rules, settings) = (Ruleset::built_in(), Settings::default());
    Said(evaluate(&rules, subject, &settings, EvalType::All, identity, Timestamp::default()))
}

fn said(output: &str) -> Said {
    judged(&Subject { output: Some(output), ..Subject::default() })
}

fn answered(input: &str, output: &str) -> Said {
    judged(&Subject { output: Some(output), input: Some(input), ..Subject::default() })
}

fn acted(input: &str, output: &str, calls: &[ToolCall]) -> Said {
    judged(&Subject { output: Some(output), input: Some(input), tool_calls: Some(calls), ..Subject::default() })
}

/// Calls as they stand in JSON.
fn calls(plain: Value) -> Vec<ToolCall> {
    serde_json::from_value(plain).unwrap()
}

impl Said {
    fn of(&self, rule: &str) -> &RuleResult {
        self.0.rule_results.iter().find(|result| result.rule_name == rule).unwrap()
    }

    fn fails(&self, rule: &str) -> bool {
        self.of(rule).state == "fail"
    }

    fn skips(&self, rule: &str) -> bool {
        self.of(rule).skipped
    }

    /// Labels of the evidence of a rule, in order.
    fn labels(&self, rule: &str) -> Vec<String> {
        let label = |one: &Evidence| match one {
            Evidence::Span { label, .. } | Evidence::ToolCall { label, .. } => Some(label.clone()),
            Evidence::Pattern { name, .. } => Some(name.to_string()),
            Evidence::Count { .. } => None,
        };
        self.of(rule).evidence.iter().filter_map(label).collect()
    }

    /// What the spans of a rule's evidence cover in the text as it was sent.
    fn covered(&self, rule: &str, text: &str) -> Vec<String> {
        let text: Vec<char> = text.chars().collect();
        let span = |one: &Evidence| match one {
            Evidence::Span { start, end, .. } => Some(text[*start..*end].iter().collect()),
            _ => None,
        };
        self.of(rule).evidence.iter().filter_map(span).collect()
    }

    /// State and basis of the verdict.
    fn verdict(&self) -> (String, String) {
        let verdict = compose(&self.0);
        (verdict.state.as_str().to_owned(), verdict.basis.as_str().to_owned())
    }
}

/// None of these texts makes the rule fail; all that do are named.
fn all_pass(rule: &str, texts: &[&str]) {
    let failed: Vec<&&str> = texts.iter().filter(|text| said(text).fails(rule)).collect();
    assert!(failed.is_empty(), "{rule} fails {failed:#?}");
}

/// Each of these texts makes the rule fail; all that do not are named.
fn all_fail(rule: &str, texts: &[&str]) {
    let passed: Vec<&&str> = texts.iter().filter(|text| !said(text).fails(rule)).collect();
    assert!(passed.is_empty(), "{rule} does not fail {passed:#?}");
}

const LETTERS: &str = "q8ZtR4mVx2LkWb7nYc5sJd9fHg3pKe6vTu1aXo0iMrNzBwSlQyDhCjFkGmPxEvUtAoIqZrLnWsYbVcTdJfRgKhNpMe";

/// So many letters and digits in no order that means anything.
fn random(length: usize) -> String {
    LETTERS.chars().cycle().take(length).collect()
}

/// The same without digits.
fn letters(length: usize) -> String {
    LETTERS.chars().filter(char::is_ascii_alphabetic).cycle().take(length).collect()
}
