//! What every rule says of many texts, kept in a file: two builds that must judge alike give the same file. By hand only.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use iris_core::evaluate::{Ruleset, Settings, judge_trace};
use iris_core::model::{Timestamp, ToolCall};
use iris_core::rules::{Case, Knobs, RULES, Subject, ThresholdSource, run};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::load::{Draw, trace};

/// The rows of every `.jsonl` and `.jsonl.gz` file of a folder.
fn rows(folder: &Path) -> Vec<(String, Value)> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut rows = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let bytes = match path.extension().and_then(|ending| ending.to_str()) {
            Some("gz") => Command::new("gzip").arg("-dc").arg(&path).output().unwrap().stdout,
            Some("jsonl") => std::fs::read(&path).unwrap(),
            _ => continue,
        };
        let text = String::from_utf8(bytes).unwrap();
        let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty());
        rows.extend(lines.map(|(at, line)| (format!("{name}:{}", at + 1), serde_json::from_str(line).unwrap())));
    }
    rows
}

fn calls(row: &Value) -> Option<Vec<ToolCall>> {
    let either = |call: &Value, names: [&str; 2]| {
        names.iter().find_map(|name| call.get(*name).filter(|value| !value.is_null()).cloned())
    };
    let read = |call: &Value| ToolCall {
        tool_name: either(call, ["tool_name", "name"]).and_then(|it| Some(it.as_str()?.to_owned())).unwrap_or_default(),
        input: either(call, ["input", "arguments"]),
        output: either(call, ["output", "result"]),
        error: call["error"].as_str().map(str::to_owned),
        ..ToolCall::default()
    };
    row["tool_calls"].as_array().map(|calls| calls.iter().map(read).collect())
}

/// Writes a line for each rule: what it said, or its hash when it is long.
fn record(out: &mut impl std::io::Write, name: &str, subject: &Subject<'_>, knobs: &Knobs) {
    let case = Case::new(subject);
    for rule in RULES {
        let said = format!("{:?}", run(*rule, &case, knobs));
        writeln!(out, "{name} {} {} {:016x}", rule.meta().name, &said[..4], xxh3_64(said.as_bytes())).unwrap();
    }
}

/// A text made of pieces of two others, with characters that fold, wrap or break in between.
fn spliced(draw: &mut Draw, one: &str, other: &str) -> String {
    const BETWEEN: [&str; 16] = [
        "\u{200B}",
        "ä",
        "\u{430}",
        "\n",
        "\t",
        "  ",
        "\"",
        "'",
        "：",
        "=",
        "%40",
        "\u{2019}",
        "…",
        "\u{1F600}",
        "",
        "-",
    ];
    let mut text = String::new();
    for _ in 0..4 {
        for from in [one, other] {
            let chars: Vec<char> = from.chars().collect();
            let at = |draw: &mut Draw| usize::try_from(draw.next() % (chars.len() as u64 + 1)).unwrap();
            let (a, b) = (at(draw), at(draw));
            text.extend(&chars[a.min(b)..a.max(b).min(a.min(b) + 400)]);
            text.push_str(BETWEEN[usize::try_from(draw.next() % 16).unwrap()]);
        }
    }
    text
}

/// Scenario: `IRIS_RECORD=file cargo test -p iris-core --release --test it what_every_rule_says -- --ignored`, with
/// `IRIS_CORPORA=folder` for more texts: the cases of the rules with their settings, the rows of the corpora, ordinary
/// traces, and texts spliced out of all of them.
#[test]
#[ignore = "writes a file to compare"]
fn what_every_rule_says() {
    let mut out = BufWriter::new(std::fs::File::create(std::env::var("IRIS_RECORD").unwrap()).unwrap());
    let mut all = rows(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/rule"));
    if let Ok(folder) = std::env::var("IRIS_CORPORA") {
        all.extend(rows(Path::new(&folder)));
    }
    let mut texts = Vec::new();
    for (name, row) in &all {
        let calls = calls(row);
        let text = |name: &str| row[name].as_str();
        let reasons: Vec<String> = serde_json::from_value(row["finish_reasons"].clone()).unwrap_or_default();
        let history: Vec<f64> = serde_json::from_value(row["cost_history"].clone()).unwrap_or_default();
        let subject = Subject {
            output: text("output").or_else(|| text("text")),
            input: text("input"),
            expected: text("expected"),
            tool_calls: calls.as_deref(),
            tools_catalogue: row.get("tools"),
            expected_trajectory: row.get("expected_trajectory"),
            cost_usd: row["cost_usd"].as_f64(),
            cost_history: &history,
            cost_parts: None,
            token_usage: serde_json::from_value(row["token_usage"].clone()).ok(),
            finish_reasons: &reasons,
        };
        let set: BTreeMap<String, f64> = serde_json::from_value(row["thresholds"].clone()).unwrap_or_default();
        let numbers = set.into_iter().map(|(name, value)| (name, (value, ThresholdSource::Config))).collect();
        let lists = serde_json::from_value(row["lists"].clone()).unwrap_or_default();
        record(&mut out, name, &subject, &Knobs { numbers, lists });
        texts.extend(text("output").or_else(|| text("text")).filter(|text| !text.is_empty()));
    }
    let mut draw = Draw::new(20_261_201);
    let knobs = Knobs::default();
    for at in 0..texts.len() {
        let mut any = || texts[usize::try_from(draw.next() % texts.len() as u64).unwrap()];
        let (one, other, ask) = (any(), any(), any());
        let output = spliced(&mut draw, one, other);
        let result = spliced(&mut draw, other, ask);
        let calls = [ToolCall {
            tool_name: "send_mail".to_owned(),
            input: Some(serde_json::json!({"query": ask.chars().take(90).collect::<String>()})),
            output: Some(Value::String(result)),
            ..ToolCall::default()
        }];
        let subject =
            Subject { output: Some(&output), input: Some(ask), tool_calls: Some(&calls), ..Subject::default() };
        record(&mut out, &format!("spliced:{at}"), &subject, &knobs);
    }
    for seed in 0..200 {
        let judged = judge_trace(&Ruleset::built_in(), &trace(seed), &Settings::default(), Timestamp::default());
        writeln!(out, "trace:{seed} {:016x}", xxh3_64(serde_json::to_string(&judged).unwrap().as_bytes())).unwrap();
    }
    assert!(texts.len() > 1000);
    out.flush().unwrap();
}
