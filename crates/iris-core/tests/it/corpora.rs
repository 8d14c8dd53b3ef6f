//! Measuring the rules on labelled texts that are not part of this repository. By hand only.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use iris_core::evaluate::{Identity, Ruleset, Settings, Subject, evaluate};
use iris_core::model::{EvalType, Evaluation, Evidence, RuleResult, Tenant, Timestamp, ToolCall};
use serde_json::Value;

/// How an evaluation says that a measure fired; nothing when no rule for it judged.
fn fired(measure: &str, evaluation: &Evaluation) -> Option<bool> {
    match measure {
        "pii_structured" => has_class(evaluation, "pii_leak"),
        "no_leaked_secrets" => has_class(evaluation, "credential_leak"),
        "injection_text" => failed(evaluation, &["no_injection_patterns"]),
        "complied" => failed(evaluation, &["no_injection_compliance"]),
        "refusal" => labelled(evaluation, &["refusal", "hedg"]),
        "hallucination" => failed(evaluation, &["no_hallucination_markers", "grounded_in_reads"]),
        "fabricated_citation" => labelled(evaluation, &["citation"]),
        "off_topic" => failed(evaluation, &["answers_the_ask"]),
        "verdict_fail" => Some(evaluation.state.as_str() == "fail"),
        "truncated" => failed(evaluation, &["not_truncated"]),
        "loop" | "stuck_until_turn_limit" | "agent_said_in_loop" => failed(evaluation, &["no_tool_loop"]),
        _ => None,
    }
}

const MEASURES: &[&str] = &[
    "pii_structured",
    "no_leaked_secrets",
    "injection_text",
    "complied",
    "refusal",
    "hallucination",
    "fabricated_citation",
    "off_topic",
    "verdict_fail",
    "truncated",
    "loop",
    "stuck_until_turn_limit",
    "agent_said_in_loop",
];

fn judged<'a>(evaluation: &'a Evaluation, rule: &str) -> Option<&'a RuleResult> {
    evaluation.rule_results.iter().find(|result| result.rule_name == rule && !result.skipped)
}

fn failed(evaluation: &Evaluation, rules: &[&str]) -> Option<bool> {
    let judged: Vec<_> = rules.iter().filter_map(|rule| judged(evaluation, rule)).collect();
    (!judged.is_empty()).then(|| judged.iter().any(|result| !result.passed))
}

fn has_class(evaluation: &Evaluation, class: &str) -> Option<bool> {
    let result = judged(evaluation, "no_pii")?;
    let has = |one: &Evidence| matches!(one, Evidence::Span { class: Some(said), .. } if said == class);
    Some(!result.passed && result.evidence.iter().any(has))
}

fn labelled(evaluation: &Evaluation, words: &[&str]) -> Option<bool> {
    let result = judged(evaluation, "no_hallucination_markers")?;
    let has = |one: &Evidence| match one {
        Evidence::Span { label, .. } | Evidence::ToolCall { label, .. } => {
            words.iter().any(|word| label.contains(word))
        }
        Evidence::Pattern { .. } | Evidence::Count { .. } => false,
    };
    Some(!result.passed && result.evidence.iter().any(has))
}

/// The measures of a row and what each should say.
fn measures(row: &Value) -> Vec<(String, bool)> {
    let labels = &row["labels"];
    let mut wanted: BTreeMap<String, bool> = BTreeMap::new();
    let given = labels["measures"].as_object().into_iter().flatten();
    wanted.extend(given.filter_map(|(name, want)| Some((name.clone(), want.as_bool()?))));
    if let Some(complied) = labels["complied"].as_bool() {
        wanted.insert("complied".to_owned(), complied);
    }
    let quiet = |name: &str| wanted.get(name) == Some(&false);
    let unsaid = labels["measures"].get("hallucination").is_none_or(Value::is_null);
    if quiet("off_topic")
        && (quiet("hallucination") || unsaid)
        && row["input"].as_str().is_some_and(|ask| !ask.is_empty())
    {
        wanted.insert("verdict_fail".to_owned(), false);
    }
    wanted.into_iter().filter(|(name, _)| MEASURES.contains(&name.as_str())).collect()
}

fn calls(row: &Value) -> Option<Vec<ToolCall>> {
    let listed = row["tool_calls"].as_array().filter(|calls| !calls.is_empty())?;
    let either = |call: &Value, names: [&str; 2]| {
        names.iter().find_map(|name| call.get(*name).filter(|value| !value.is_null()).cloned())
    };
    let read = |call: &Value| ToolCall {
        tool_name: either(call, ["tool_name", "name"])
            .and_then(|name| Some(name.as_str()?.to_owned()))
            .unwrap_or_default(),
        input: either(call, ["input", "arguments"]),
        output: either(call, ["output", "result"]),
        error: match &call["error"] {
            Value::String(error) => Some(error.clone()),
            Value::Bool(true) => Some("failed".to_owned()),
            _ => None,
        },
        ..ToolCall::default()
    };
    Some(listed.iter().map(read).collect())
}

fn judge(ruleset: &Ruleset, row: &Value) -> Evaluation {
    let calls = calls(row);
    let text = |name: &str| row[name].as_str().filter(|text| !text.is_empty());
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

/// The lines of a file, packed or not.
fn rows(path: &Path) -> Vec<Value> {
    let bytes = if path.extension().is_some_and(|ending| ending == "gz") {
        Command::new("gzip").arg("-dc").arg(path).output().expect("gzip unpacks").stdout
    } else {
        std::fs::read(path).unwrap()
    };
    String::from_utf8(bytes)
        .unwrap()
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn sets(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut sets: Vec<(String, PathBuf)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| {
            let (name, _) = path.file_name()?.to_str()?.split_once(".jsonl")?;
            Some((name.to_owned(), path.clone()))
        })
        .collect();
    sets.sort();
    sets
}

/// Right and wrong, as counts: fired and should, fired and should not, quiet and should not, quiet and should.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    tp: u32,
    fp: u32,
    missed: u32,
    tn: u32,
    skipped: u32,
}

impl Counts {
    fn add(&mut self, want: bool, got: Option<bool>) {
        self.skipped += u32::from(got.is_none());
        *match (want, got.unwrap_or(false)) {
            (true, true) => &mut self.tp,
            (false, true) => &mut self.fp,
            (true, false) => &mut self.missed,
            (false, false) => &mut self.tn,
        } += 1;
    }

    fn precision(self) -> f64 {
        f64::from(self.tp) / f64::from(self.tp + self.fp)
    }

    fn recall(self) -> f64 {
        f64::from(self.tp) / f64::from(self.tp + self.missed)
    }

    fn false_rate(self) -> f64 {
        f64::from(self.fp) / f64::from(self.fp + self.tn)
    }
}

/// Scenario: `IRIS_CORPORA=folder cargo test -p iris-core -- --ignored rules_on_the_corpora --nocapture` measures every
/// labelled set in it; `IRIS_SET=name` those with the name in theirs; `IRIS_MISSES=file` keeps what came out wrong. Rows
/// with `labels.subset` or `suite` are shown by it too.
#[test]
#[ignore = "needs corpora that are not part of this repository"]
fn rules_on_the_corpora() {
    let folder = PathBuf::from(std::env::var("IRIS_CORPORA").expect("IRIS_CORPORA names the folder"));
    let only = std::env::var("IRIS_SET").unwrap_or_default();
    let mut misses = std::env::var("IRIS_MISSES").ok().map(|path| std::fs::File::create(path).unwrap());
    let ruleset = Ruleset::built_in();
    let mut table: BTreeMap<(String, String), Counts> = BTreeMap::new();
    for (name, path) in sets(&folder).into_iter().filter(|(name, _)| name.contains(&only)) {
        for row in rows(&path) {
            let measures = measures(&row);
            if measures.is_empty() {
                continue;
            }
            let evaluation = judge(&ruleset, &row);
            for (measure, want) in measures {
                let got = fired(&measure, &evaluation);
                table.entry((name.clone(), measure.clone())).or_default().add(want, got);
                let part = row["labels"]["subset"].as_str().or_else(|| row["suite"].as_str());
                if let Some(part) = part {
                    table.entry((format!("{name} / {part}"), measure.clone())).or_default().add(want, got);
                }
                if let Some(file) = misses.as_mut().filter(|_| got != Some(want)) {
                    let said: Vec<_> = evaluation
                        .rule_results
                        .iter()
                        .filter(|result| result.state == "fail")
                        .map(|result| (&result.rule_name, &result.message, &result.evidence))
                        .collect();
                    let miss = serde_json::json!({"set": name, "measure": measure, "want": want, "got": got, "said": said, "row": row});
                    writeln!(file, "{miss}").unwrap();
                }
            }
        }
    }
    assert!(!table.is_empty(), "no labelled rows");
    let mut out = std::io::stderr().lock();
    for ((set, measure), counts) in table {
        writeln!(
            out,
            "{set:56} {measure:24} tp {:4} fp {:4} fn {:4} tn {:4} skip {:4}  P {:.3} R {:.3} FPR {:.3}",
            counts.tp,
            counts.fp,
            counts.missed,
            counts.tn,
            counts.skipped,
            counts.precision(),
            counts.recall(),
            counts.false_rate()
        )
        .unwrap();
    }
}
