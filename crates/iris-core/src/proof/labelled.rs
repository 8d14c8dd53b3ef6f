//! Labelled sets of others: what a row says should come out, and what does.
//!
//! A row is one JSON object: `text`, or `output` with `input`, `expected` and `tool_calls`, and
//! `labels.measures.{measure}`, true when it should fire, false when it should not, null to leave the row out.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::evaluate::{Identity, Matrix, Ruleset, SetCounts, Settings, evaluate};
use crate::model::{EvalType, Evaluation, Evidence, RuleResult, Tenant, Timestamp, ToolCall};
use crate::rules::{RULES, Subject};

/// How it shows that a measure fired.
#[derive(Debug, Clone, Copy)]
enum Shows {
    /// The rule failed.
    Failed,
    /// The rule failed, and a piece of evidence is of this class.
    Class(&'static str),
    /// The rule failed, and the label of a piece of evidence contains one of these words.
    Labelled(&'static [&'static str]),
    /// The rule failed, and the label of a piece of evidence contains none of these words.
    Beyond(&'static [&'static str]),
    /// The verdict is a fail.
    Verdict,
}

/// One thing that sets label.
#[derive(Debug, Clone, Copy)]
pub struct Measure {
    /// Its name in the sets.
    pub name: &'static str,
    /// The rule that speaks to it; empty: the verdict does.
    pub rule: &'static str,
    /// Why it says nothing about how often the rule is right; empty: it does.
    pub apart: &'static str,
    shows: Shows,
}

const fn measure(name: &'static str, rule: &'static str, apart: &'static str, shows: Shows) -> Measure {
    Measure { name, rule, apart, shows }
}

/// How evidence is labelled that shows an answer refused or hedged.
const REFUSED: &[&str] = &["refusal", "hedg"];

/// Every measure that some rule, or the verdict, speaks to.
pub const MEASURES: &[Measure] = &[
    measure("pii_structured", "no_pii", "", Shows::Class("pii_leak")),
    measure("no_leaked_secrets", "no_pii", "", Shows::Class("credential_leak")),
    measure("injection_text", "no_injection_patterns", "", Shows::Failed),
    measure("complied", "no_injection_compliance", "", Shows::Failed),
    // The rule also names answers that are refused or hedged: they hold nothing made up, and are a measure of their own.
    measure("hallucination", "no_hallucination_markers", "", Shows::Beyond(REFUSED)),
    measure("refusal", "no_hallucination_markers", "a refusal is not a fabrication", Shows::Labelled(REFUSED)),
    measure(
        "fabricated_citation",
        "no_hallucination_markers",
        "single references, not answers",
        Shows::Labelled(&["citation"]),
    ),
    measure("off_topic", "answers_the_ask", "", Shows::Failed),
    measure("truncated", "not_truncated", "", Shows::Failed),
    measure("loop", "no_tool_loop", "", Shows::Failed),
    measure("stuck_until_turn_limit", "no_tool_loop", "", Shows::Failed),
    measure("agent_said_in_loop", "no_tool_loop", "what a model said of itself", Shows::Failed),
    measure("verdict_fail", "", "", Shows::Verdict),
];

/// Sets that are shown and not reckoned with, and why.
const APART: &[(&str, &str)] = &[("secrets_credsweeper_lines", "labelled by another detector, not by people")];

/// What a row says should come out, by measure. A row that is on topic and not known to be made up should pass.
pub fn wants(row: &Value) -> Vec<(&'static Measure, bool)> {
    let Some(labels) = row.get("labels") else { return Vec::new() };
    let said = |measure: &str| labels.get("measures").and_then(|measures| measures.get(measure)?.as_bool());
    let quiet = |measure: &str| said(measure) == Some(false);
    let is_asked = row.get("input").and_then(Value::as_str).is_some_and(|ask| !ask.is_empty());
    let made_up = labels.get("measures").and_then(|measures| measures.get("hallucination"));
    let fine = quiet("off_topic") && is_asked && (quiet("hallucination") || made_up.is_none_or(Value::is_null));
    let want = |measure: &Measure| match measure.name {
        "complied" => labels.get("complied").and_then(Value::as_bool).or_else(|| said("complied")),
        "verdict_fail" => said("verdict_fail").or(fine.then_some(false)),
        name => said(name),
    };
    MEASURES.iter().filter_map(|measure| Some((measure, want(measure)?))).collect()
}

fn calls(row: &Value) -> Option<Vec<ToolCall>> {
    let listed = row.get("tool_calls")?.as_array().filter(|calls| !calls.is_empty())?;
    let either = |call: &Value, names: [&str; 2]| {
        names.iter().find_map(|name| call.get(*name).filter(|value| !value.is_null()).cloned())
    };
    let read = |call: &Value| ToolCall {
        tool_name: either(call, ["tool_name", "name"])
            .and_then(|name| Some(name.as_str()?.to_owned()))
            .unwrap_or_default(),
        input: either(call, ["input", "arguments"]),
        output: either(call, ["output", "result"]),
        error: match call.get("error") {
            Some(Value::String(error)) => Some(error.clone()),
            Some(Value::Bool(true)) => Some("failed".to_owned()),
            _ => None,
        },
        ..ToolCall::default()
    };
    Some(listed.iter().map(read).collect())
}

/// The evaluation of a row by all rules at their shipped settings.
fn judge(ruleset: &Ruleset, row: &Value) -> Evaluation {
    let calls = calls(row);
    let text = |name: &str| row.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let subject = Subject {
        output: Some(text("text").or_else(|| text("output")).unwrap_or_default()),
        input: text("input"),
        expected: text("expected"),
        tool_calls: calls.as_deref(),
        ..Subject::default()
    };
    let identity = Identity {
        id: String::new(),
        tenant: Tenant::local(),
        trace_id: None,
        trace_version: None,
        seen_through: 0,
        position: None,
        inline: false,
    };
    evaluate(ruleset, &subject, &Settings::default(), EvalType::All, identity, Timestamp::default())
}

impl Measure {
    /// Whether it fired; nothing when its rule did not judge.
    fn fired(&self, evaluation: &Evaluation) -> Option<bool> {
        let judged = || evaluation.rule_results.iter().find(|result| result.rule_name == self.rule && !result.skipped);
        let shows =
            |result: &RuleResult, has: &dyn Fn(&Evidence) -> bool| !result.passed && result.evidence.iter().any(has);
        match self.shows {
            Shows::Verdict => Some(evaluation.state.as_str() == "fail"),
            Shows::Failed => judged().map(|result| !result.passed),
            Shows::Class(class) => judged().map(|result| {
                shows(result, &|one| matches!(one, Evidence::Span { class: Some(said), .. } if said == class))
            }),
            Shows::Labelled(words) => {
                judged().map(|result| shows(result, &|one| labelled(one, &|label| names(label, words))))
            }
            Shows::Beyond(words) => {
                judged().map(|result| shows(result, &|one| labelled(one, &|label| !names(label, words))))
            }
        }
    }
}

fn labelled(evidence: &Evidence, is: &dyn Fn(&str) -> bool) -> bool {
    match evidence {
        Evidence::Span { label, .. } | Evidence::ToolCall { label, .. } => is(label),
        Evidence::Pattern { .. } | Evidence::Count { .. } => false,
    }
}

fn names(label: &str, words: &[&str]) -> bool {
    words.iter().any(|word| label.contains(word))
}

/// Counts of one measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measured {
    /// A skip is no fail.
    pub counts: Matrix,
    /// Rows that the rule did not judge.
    pub skipped: u32,
}

/// A measure of a row by name, what it should say, and what it did; nothing when its rule did not judge.
pub type Said = (&'static str, bool, Option<bool>);

/// A measuring that rows are given to, one by one.
#[derive(Debug)]
pub struct Labelled {
    ruleset: Ruleset,
    table: BTreeMap<(String, &'static str), Measured>,
}

impl Labelled {
    /// Nothing measured yet, by these rules.
    pub fn new(ruleset: Ruleset) -> Self {
        Self { ruleset, table: BTreeMap::new() }
    }

    /// Judges a row of a set; returns the evaluation with what each measure should and did say, for who wants to look,
    /// or nothing when the row labels nothing that a rule speaks to.
    pub fn add(&mut self, set: &str, row: &Value) -> Option<(Evaluation, Vec<Said>)> {
        let wants = wants(row);
        if wants.is_empty() {
            return None;
        }
        let evaluation = judge(&self.ruleset, row);
        let said: Vec<_> =
            wants.into_iter().map(|(measure, want)| (measure.name, want, measure.fired(&evaluation))).collect();
        for (measure, want, got) in &said {
            let measured = self.table.entry((set.to_owned(), measure)).or_default();
            measured.counts.add(*want, got.unwrap_or(false));
            measured.skipped += u32::from(got.is_none());
        }
        Some((evaluation, said))
    }

    /// What came out so far, by set and measure.
    pub fn sets(&self) -> Vec<SetCounts> {
        let set = |((file, name), measured): (&(String, &'static str), &Measured)| {
            let measure = MEASURES.iter().find(|measure| measure.name == *name)?;
            let version = RULES.iter().find(|rule| rule.meta().name == measure.rule).map(|rule| rule.meta().version);
            let of_set = APART.iter().find(|(apart, _)| apart == file).map(|(_, why)| *why);
            let apart = of_set.or((!measure.apart.is_empty()).then_some(measure.apart));
            Some(SetCounts {
                file: file.clone(),
                measure: (*name).to_owned(),
                rule: (!measure.rule.is_empty()).then(|| measure.rule.to_owned()),
                version: version.unwrap_or_default(),
                apart: apart.map(str::to_owned),
                counts: measured.counts,
                skipped: measured.skipped,
            })
        };
        self.table.iter().filter_map(set).collect()
    }
}
