//! Compares traces with the truth, field by field.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use iris_core::evaluate::{Ruleset, Settings, compose, judge_trace};
use iris_core::model::{Timestamp, Trace};
use serde_json::{Value, json};

use super::capture::{Capture, find};

/// How many characters of a text must be found in the bytes for a field to count as sent.
const PROBE_CHARS: usize = 60;

/// Scenarios in which nothing is wrong.
const CLEAN: [&str; 5] = ["qa", "tool_ok", "parallel", "stream", "long_conv"];

/// What a dialect does not send, or counts in another way than the truth does. Counted as missed, and left out of what
/// must hold.
fn excuse(dialect: &str, field: &str) -> Option<&'static str> {
    let of_tokens = matches!(field, "input_tokens" | "output_tokens");
    match dialect {
        "openinference-dspy" | "otel-genai-openai-agents" if of_tokens => Some("no count is sent"),
        "autogen" if of_tokens || matches!(field, "input" | "output") => {
            Some("only traces of messages, not the agent's, have content and counts")
        }
        "google-adk" | "google-adk_content" | "openinference-google-adk" if field == "output_tokens" => {
            Some("what is sent includes reasoning, the truth leaves it out")
        }
        _ => None,
    }
}

/// Right answers and all answers, per field and per dialect, and what was missed.
#[derive(Default)]
pub struct Board {
    fields: BTreeMap<String, (u32, u32)>,
    dialects: BTreeMap<String, (u32, u32)>,
    /// The same without what is excused.
    must: [BTreeMap<String, (u32, u32)>; 2],
    misses: Vec<String>,
}

impl Board {
    pub fn of(captures: &[Capture]) -> Self {
        let mut board = Self::default();
        for capture in captures {
            board.score(capture);
        }
        board
    }

    pub fn scored(&self) -> u32 {
        self.fields.values().map(|(_, all)| all).sum()
    }

    /// The fields whose share of right answers is below `share`.
    pub fn below(&self, share: f64) -> Vec<String> {
        below(&self.must[0], share)
    }

    /// The dialects whose share of right answers is below `share`.
    pub fn dialects_below(&self, share: f64) -> Vec<String> {
        below(&self.must[1], share)
    }

    /// The share of right answers.
    pub fn share(&self) -> f64 {
        let right: u32 = self.fields.values().map(|(right, _)| right).sum();
        f64::from(right) / f64::from(self.scored().max(1))
    }

    fn mark(&mut self, capture: &Capture, field: &str, right: bool, want: &Value, got: &Value) {
        let excuse = excuse(&capture.dialect, field).filter(|_| !right);
        let [fields, dialects] = &mut self.must;
        for (table, name, counts) in [
            (&mut self.fields, field, true),
            (&mut self.dialects, capture.dialect.as_str(), true),
            (fields, field, excuse.is_none()),
            (dialects, capture.dialect.as_str(), excuse.is_none()),
        ] {
            let (right_so_far, all) = table.entry(name.to_owned()).or_default();
            *right_so_far += u32::from(right);
            *all += u32::from(counts);
        }
        if !right {
            let cut = |value: &Value| value.to_string().chars().take(240).collect::<String>();
            let why = excuse.map(|why| format!(" ({why})")).unwrap_or_default();
            self.misses.push(format!("{} {field}: want {} got {}{why}", capture.name(), cut(want), cut(got)));
        }
    }

    fn score(&mut self, capture: &Capture) {
        let truth = &capture.truth;
        let traces = capture.traces(|rows| rows);
        let has_calls = truth["llm_calls"].as_array().is_some_and(|calls| !calls.is_empty());
        if truth["framework"].is_null() && !has_calls {
            self.mark(capture, "not_an_agent_trace", traces.is_empty(), &json!(0), &json!(traces.len()));
            return;
        }
        self.mark(capture, "accepted", capture.accepted, &json!(true), &json!(capture.accepted));
        self.mark(capture, "stored_and_judged", !traces.is_empty(), &json!("a trace"), &json!(traces.len()));
        let (Some(first), Some(last)) = (traces.first(), traces.last()) else { return };
        if let Value::Array(names) = &truth["agent_name"] {
            let right = names.contains(&json!(first.agent_name));
            self.mark(capture, "agent_name", right, &truth["agent_name"], &json!(first.agent_name));
            return;
        }
        for (field, got) in [("input", &first.input), ("output", &last.output)] {
            let want = &truth[field];
            if carried(want, &capture.bytes) {
                let right = squash(want.as_str()) == squash(got.as_deref());
                self.mark(capture, field, right, want, &json!(got));
            } else if want.as_str().is_some_and(|text| !text.is_empty()) && got.is_some() {
                self.mark(capture, &format!("{field}_not_invented"), false, &Value::Null, &json!(got));
            }
        }
        if carried(&truth["agent_name"], &capture.bytes) {
            let right = truth["agent_name"] == json!(first.agent_name);
            self.mark(capture, "agent_name", right, &truth["agent_name"], &json!(first.agent_name));
        }
        self.tokens(capture, &traces);
        if capture.trace_ids.len() == 1 {
            self.tools(capture, first);
        }
        if carried(&truth["model"], &capture.bytes) {
            let right = [&truth["model"], &truth["response_model"]].contains(&&json!(first.model));
            self.mark(capture, "model", right, &truth["model"], &json!(first.model));
        }
    }

    /// Verdicts of single traces: what is fine passes, what leaks fails by `no_pii`, and what carries no answer is unknown
    /// unless a rule saw something in the rest; it never passes. `live` holds the leaks, with values that count.
    pub fn judge(&mut self, captures: &[Capture], live: &[Capture]) {
        let (rules, settings) = (Ruleset::built_in(), Settings::default());
        for capture in captures.iter().filter(|capture| capture.scenario != "pii").chain(live) {
            let traces = capture.traces(|rows| rows);
            let [trace] = traces.as_slice() else { continue };
            if capture.trace_ids.len() != 1 || capture.truth["agent_name"].is_array() {
                continue;
            }
            let verdict = compose(&judge_trace(&rules, trace, &settings, Timestamp::default()));
            let verdict = serde_json::to_value(verdict).unwrap();
            let is = |state: &str| verdict["state"] == json!(state);
            if !carried(&capture.truth["output"], &capture.bytes) {
                if capture.truth["output"].as_str().is_some_and(|text| !text.is_empty()) {
                    let right = is("unknown") || is("fail") && verdict["by"] != json!(["non_empty_output"]);
                    self.mark(capture, "verdict_content_off", right, &json!("unknown"), &verdict);
                }
            } else if capture.scenario == "pii" {
                let right = is("fail") && verdict.to_string().contains("no_pii");
                self.mark(capture, "verdict_leak", right, &json!("fail by no_pii"), &verdict);
            } else if CLEAN.contains(&capture.scenario.as_str()) {
                self.mark(capture, "verdict_clean", is("pass"), &json!("pass"), &verdict);
            }
        }
    }

    fn tokens(&mut self, capture: &Capture, traces: &[Trace]) {
        let truth = &capture.truth;
        let streams =
            truth["llm_calls"].as_array().is_some_and(|calls| calls.iter().any(|call| call["stream"] == json!(true)));
        if streams {
            return;
        }
        let sum = |of: fn(&Trace) -> Option<u64>| traces.iter().filter_map(of).reduce(|one, two| one + two);
        let input = sum(|trace| trace.token_usage.and_then(|usage| usage.prompt_tokens));
        let output = sum(|trace| trace.token_usage.and_then(|usage| usage.completion_tokens));
        for (field, got) in [("input_tokens", input), ("output_tokens", output)] {
            let want = &truth[field];
            if want.as_u64().unwrap_or(0) == 0 {
                continue;
            }
            let with_cache = if field == "input_tokens" { &truth["input_tokens_with_cache"] } else { want };
            let right = got.is_some() && [want, with_cache].contains(&&json!(got));
            self.mark(capture, field, right, want, &json!(got));
        }
    }

    fn tools(&mut self, capture: &Capture, trace: &Trace) {
        let none = Vec::new();
        let want = capture.truth["tool_calls"].as_array().unwrap_or(&none);
        if !want.iter().all(|call| carried(&call["name"], &capture.bytes)) {
            return;
        }
        let got = trace.tool_calls.clone().unwrap_or_default();
        let names = |calls: Vec<&str>| json!(calls);
        let want_names = names(want.iter().filter_map(|call| call["name"].as_str()).collect());
        let got_names = names(got.iter().map(|call| call.tool_name.as_str()).collect());
        self.mark(capture, "tool_names", want_names == got_names, &want_names, &got_names);
        if want.is_empty() || want_names != got_names {
            return;
        }
        let plain = |value: &Value| json!(value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        let sent = want.iter().flat_map(|call| call["arguments"].as_object().into_iter().flat_map(|map| map.values()));
        if sent.map(plain).all(|value| carried(&value, &capture.bytes)) {
            let arguments =
                |value: Option<&Value>| as_json(value.filter(|value| !value.is_null()).unwrap_or(&json!({})));
            let want_arguments: Vec<Value> = want.iter().map(|call| arguments(call.get("arguments"))).collect();
            let got_arguments: Vec<Value> = got.iter().map(|call| arguments(call.input.as_ref())).collect();
            let right = want_arguments == got_arguments;
            self.mark(capture, "tool_arguments", right, &json!(want_arguments), &json!(got_arguments));
        }
        let failed = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
        let want_errors: Vec<bool> = want.iter().map(|call| failed(&call["error"])).collect();
        let got_errors: Vec<bool> = got.iter().map(|call| call.error.is_some()).collect();
        self.mark(capture, "tool_errors", want_errors == got_errors, &json!(want_errors), &json!(got_errors));
    }
}

impl fmt::Display for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (title, table) in [("fields", &self.fields), ("dialects", &self.dialects)] {
            writeln!(f, "{title}")?;
            for (name, (right, all)) in table {
                writeln!(f, "  {name:36} {right}/{all} {:.3}", f64::from(*right) / f64::from(*all))?;
            }
        }
        self.misses.iter().try_for_each(|miss| writeln!(f, "MISS {miss}"))
    }
}

fn below(table: &BTreeMap<String, (u32, u32)>, share: f64) -> Vec<String> {
    let weak = table.iter().filter(|(_, (right, all))| f64::from(*right) < share * f64::from(*all));
    weak.map(|(name, (right, all))| format!("{name} {right}/{all}")).collect()
}

fn squash(text: Option<&str>) -> Option<String> {
    text.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Whether a text occurs in the bytes, plain or JSON-escaped once or twice.
fn carried(value: &Value, bytes: &[u8]) -> bool {
    let Some(text) = value.as_str().filter(|text| !text.is_empty()) else { return false };
    let mut forms: BTreeSet<String> = BTreeSet::from([text.chars().take(PROBE_CHARS).collect()]);
    for _ in 0..2 {
        let escaped: Vec<String> = forms.iter().flat_map(|form| [escaped(form), ascii(&escaped(form))]).collect();
        forms.extend(escaped);
    }
    forms.iter().any(|form| find(bytes, form.as_bytes()).is_some())
}

/// As it stands inside a JSON text.
fn escaped(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    quoted[1..quoted.len() - 1].to_owned()
}

/// The same in ASCII, as Python writes it.
fn ascii(escaped: &str) -> String {
    let mut out = String::new();
    for letter in escaped.chars() {
        if letter.is_ascii() {
            out.push(letter);
        } else {
            out.extend(letter.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    out
}

/// Texts that hold JSON are read, at any depth.
fn as_json(value: &Value) -> Value {
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner) => as_json(&inner),
            Err(_) => json!(squash(Some(text))),
        },
        Value::Array(items) => items.iter().map(as_json).collect(),
        Value::Object(map) => {
            map.iter().map(|(key, value)| (key.clone(), as_json(value))).collect::<serde_json::Map<_, _>>().into()
        }
        other => other.clone(),
    }
}
