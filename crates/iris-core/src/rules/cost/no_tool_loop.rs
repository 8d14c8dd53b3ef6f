//! Does the agent go round in circles?
//!
//! *Checks* for steps that brought nothing new: the same call with the same result, nearly the same call with the same
//! result, a failure right after a failure of the same tool, the same thing read again and again. *Matters* because an
//! agent in a loop spends until it is stopped and then answers from nothing. *Cannot see* a loop whose results differ
//! each time (that is progress as far as a trace shows), or who asked: two agents that each read one page look like one
//! that read it twice.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::model::{Evidence, ToolCall};
use crate::rules::steps::target;
use crate::rules::{
    Bundle, Case, FailureClass, Finding, Kind, Knob, Knobs, Mechanism, Need, Outcome, Question, Rule, RuleMeta, count,
};
use crate::text::{head, is_blank};

/// See the module.
pub struct NoToolLoop;

const REPEATS: Knob = Knob { name: "max_tool_repeats", default: 3.0, lowest: 1.0, highest: 1e4 };
const REREADS: Knob = Knob { name: "max_target_rereads", default: 3.0, lowest: 1.0, highest: 1e4 };

/// How much of a call's arguments and of its result makes its identity.
const INPUT_BYTES_MAX: usize = 4096;
const RESULT_BYTES_MAX: usize = 1 << 16;
/// Words of the arguments that are compared.
const WORDS_MAX: usize = 256;
/// Earlier calls with the same result that a call is compared with.
const COMPARED_MAX: usize = 16;
/// Share of the words of two calls that both hold, from which on they ask for nearly the same thing.
const ALIKE_MIN: f64 = 0.3;
/// The same where the result says nothing but that it was done.
const ALIKE_MIN_BARE: f64 = 0.7;

static META: RuleMeta = RuleMeta {
    name: Cow::Borrowed("no_tool_loop"),
    bundle: Bundle::Cost,
    description: Cow::Borrowed("The agent does not repeat tool calls that bring nothing new."),
    suggestion: Cow::Borrowed(
        "Show the agent what it has tried already, and let it stop or ask after a few attempts that brought nothing.",
    ),
    weight: 1.0,
    kind: Kind::Detection,
    mechanism: Mechanism::Formula,
    needs: &[Need::ToolCalls],
    reads: &[Need::ToolOutputs, Need::ToolsCatalogue],
    question: Question::ToolUseCorrect,
    classes: &[FailureClass::ToolLoop],
    version: 1,
    critical: false,
    stands: true,
    knobs: &[REPEATS, REREADS],
};

impl Rule for NoToolLoop {
    fn meta(&self) -> &RuleMeta {
        &META
    }

    fn judge(&self, case: &Case<'_>, knobs: &Knobs) -> Outcome {
        let steps = case.steps();
        let (repeats, source) = knobs.number(&REPEATS);
        let (rereads, rereads_source) = knobs.number(&REREADS);
        let (repeats, rereads) = (repeats.floor(), rereads.floor());
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for step in steps {
            *names.entry(step.tool_name.as_str()).or_default() += 1;
        }
        // A tool that was called once repeats nothing.
        let sign_of = |at: usize| match steps.get(at) {
            Some(step) if names.get(step.tool_name.as_str()) == Some(&1) => Some(Sign::of_only(step)),
            step => Some(Sign::of(step?, case.failure(at).is_some())),
        };
        let signs: Vec<Sign<'_>> = (0..steps.len()).filter_map(sign_of).collect();
        let polls = polls(steps, &signs);
        let stale = stale(&signs, &polls);
        let same = most_alike(&signs, &polls);
        let read = rereads_of(steps, case.subject().tools_catalogue);
        let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        let counts = vec![
            count("identical_calls", "tool calls", number(same), Some((repeats, source))),
            count("steps_without_news", "tool calls", number(stale.len()), Some((repeats, source))),
        ];
        let worst = number(same.max(stale.len()));
        if worst <= repeats && number(read.len()) <= rereads {
            let polled = if polls.is_empty() { "" } else { "; waiting for a state to change is no loop" };
            let message = format!("{} of {} tool calls brought nothing new{polled}", stale.len(), steps.len());
            return Outcome::Pass(Finding::new(1.0, message).measuring("steps_without_news", "tool calls", worst));
        }
        let message = match () {
            () if worst > repeats => format!("{} of {} tool calls brought nothing new", stale.len(), steps.len()),
            () => format!("one thing was read {} times without a change in between", read.len()),
        };
        let over = (worst - repeats).max(number(read.len()) - rereads);
        let mut evidence = counts;
        if number(read.len()) > rereads {
            evidence.push(count("rereads", "tool calls", number(read.len()), Some((rereads, rereads_source))));
        }
        let named = stale.iter().map(|(at, why)| (*at, *why)).chain(read.iter().map(|at| (*at, "read again")));
        let mut seen = BTreeSet::new();
        evidence.extend(named.filter(|(at, _)| seen.insert(*at)).filter_map(|(index, label)| {
            let tool_name = steps.get(index)?.tool_name.clone();
            Some(Evidence::ToolCall { index, tool_name, label: label.to_owned() })
        }));
        let score = (1.0 - 0.25 * over).max(0.0);
        Outcome::Fail(Finding::new(score, message).measuring("steps_without_news", "tool calls", worst).with(evidence))
    }
}

/// What makes two steps the same.
struct Sign<'a> {
    step: &'a ToolCall,
    tool: u64,
    input: u64,
    /// Nothing when the step has no result.
    result: Option<u64>,
    /// The result is empty or says only that it was done.
    bare: bool,
    failed: bool,
    /// Sorted hashes of the words of the arguments' values, made when two results are the same.
    words: OnceCell<Vec<u64>>,
}

static BARE: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the pattern is a constant, and a test compiles it")]
    Regex::new(
        r"(?i)^\W*(?:ok(?:ay)?|done|success(?:ful(?:ly)?)?|true|null|none|sent|saved|created|updated|deleted)?\W*$",
    )
    .expect("a constant pattern compiles")
});

impl<'a> Sign<'a> {
    /// Of a step whose tool was called once: there is nothing to compare it with.
    fn of_only(step: &'a ToolCall) -> Self {
        let tool = xxh3_64(step.tool_name.as_bytes());
        Self { step, tool, input: 0, result: None, bare: true, failed: false, words: OnceCell::from(Vec::new()) }
    }

    fn of(step: &'a ToolCall, failed: bool) -> Self {
        let mut input = String::new();
        if let Some(value) = &step.input {
            write_stable(value, &mut input, false, 0);
        }
        let result = match (&step.error, &step.output) {
            (Some(error), _) if !is_blank(error) => Some(Cow::Borrowed(error.as_str())),
            (_, Some(Value::String(text))) => Some(Cow::Borrowed(text.as_str())),
            (_, Some(value)) if !value.is_null() => Some(Cow::Owned(value.to_string())),
            _ => None,
        };
        Self {
            step,
            tool: xxh3_64(step.tool_name.as_bytes()),
            input: xxh3_64(squeezed(&input).as_bytes()),
            bare: result.as_deref().is_none_or(|text| text.len() <= 64 && !text.contains('[') && BARE.is_match(text)),
            result: result.map(|text| xxh3_64(squeezed(&text).as_bytes())),
            failed,
            words: OnceCell::new(),
        }
    }

    fn words(&self) -> &[u64] {
        self.words.get_or_init(|| {
            let mut values = String::new();
            if let Some(value) = &self.step.input {
                write_stable(value, &mut values, true, 0);
            }
            words(&values)
        })
    }

    fn is_same_call(&self, other: &Self) -> bool {
        self.tool == other.tool && self.input == other.input
    }

    /// Whether this step asked for nearly the same thing and got the same.
    fn repeats(&self, earlier: &Self) -> bool {
        if self.tool != earlier.tool || self.result != earlier.result {
            return false;
        }
        let least = if self.bare { ALIKE_MIN_BARE } else { ALIKE_MIN };
        self.input == earlier.input || self.result.is_some() && alike(self.words(), earlier.words()) >= least
    }
}

/// Argument names whose values differ from call to call by design.
fn is_volatile(key: &str) -> bool {
    const SHORTEST: usize = 3;
    const NAMES: [&str; 12] = [
        "requestid",
        "timestamp",
        "nonce",
        "traceid",
        "spanid",
        "callid",
        "toolcallid",
        "idempotencykey",
        "correlationid",
        "now",
        "currenttime",
        "sentat",
    ];
    if key.len() < SHORTEST {
        return false;
    }
    let plain: String = key.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    NAMES.contains(&plain.as_str())
}

/// A value with its keys in order and without what differs by design; with `bare`, its scalars only.
fn write_stable(value: &Value, out: &mut String, bare: bool, depth: usize) {
    if out.len() > INPUT_BYTES_MAX || depth > 32 {
        return;
    }
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().filter(|key| !is_volatile(key)).collect();
            names.sort_unstable();
            for name in names {
                if !bare {
                    out.push_str(name);
                    out.push('=');
                }
                if let Some(value) = fields.get(name) {
                    write_stable(value, out, bare, depth + 1);
                }
                out.push(if bare { ' ' } else { ';' });
            }
        }
        Value::Array(items) => {
            for item in items {
                write_stable(item, out, bare, depth + 1);
                out.push(if bare { ' ' } else { ',' });
            }
        }
        Value::String(text) => {
            for part in head(text, INPUT_BYTES_MAX).split_whitespace() {
                out.push_str(part);
                out.push(' ');
            }
        }
        other => out.push_str(&other.to_string()),
    }
}

fn squeezed(text: &str) -> String {
    let read = head(text, RESULT_BYTES_MAX);
    let mut out = String::with_capacity(read.len() + 8);
    let mut put = |part: &str| {
        if !part.is_empty() {
            out.push_str(part);
            out.push(' ');
        }
    };
    if read.is_ascii() {
        // White space of Unicode, as far as it is ASCII.
        read.split(|c| matches!(c, '\t'..='\r' | ' ')).for_each(&mut put);
    } else {
        read.split_whitespace().for_each(&mut put);
    }
    // Two long results with one beginning are not the same.
    out.push_str(&text.len().checked_div(RESULT_BYTES_MAX).unwrap_or_default().to_string());
    out
}

fn words(values: &str) -> Vec<u64> {
    let mut words: Vec<u64> = values
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(WORDS_MAX)
        .map(|word| xxh3_64(word.to_lowercase().as_bytes()))
        .collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// The share of the words of either that both hold.
fn alike(a: &[u64], b: &[u64]) -> f64 {
    let shared = a.iter().filter(|word| b.binary_search(word).is_ok()).count();
    let all = a.len() + b.len() - shared;
    if all == 0 {
        return 1.0;
    }
    f64::from(u32::try_from(shared).unwrap_or(0)) / f64::from(u32::try_from(all).unwrap_or(u32::MAX))
}

static POLLS: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the pattern is a constant, and a test compiles it")]
    Regex::new(r"(?i)(?:^|[^a-z])(?:status|poll|wait|progress|health|ping|heartbeat|ready|sleep)(?:$|[^a-z])")
        .expect("a constant pattern compiles")
});
static PENDING: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the pattern is a constant, and a test compiles it")]
    Regex::new(
        r"(?i)(?-u:\b)(?:running|pending|queued|in[ _-]?progress|processing|waiting|not[ _]ready|building|starting|scheduled|[0-9]{1,3} ?%)(?-u:\b|$)|[0-9] ?%",
    )
    .expect("a constant pattern compiles")
});

/// Calls that wait for a state to change: a tool of that name, or a call whose results say that something goes on.
fn polls(steps: &[ToolCall], signs: &[Sign<'_>]) -> BTreeSet<(u64, u64)> {
    let waits = |step: &ToolCall| {
        let named = step.tool_name.replace(|c: char| !c.is_ascii_alphanumeric(), " ");
        let said = || match &step.output {
            Some(Value::String(text)) => Cow::Borrowed(head(text, 400)),
            Some(value @ (Value::Object(_) | Value::Array(_))) => Cow::Owned(head(&value.to_string(), 400).to_owned()),
            _ => Cow::Borrowed(""),
        };
        POLLS.is_match(&named) && PENDING.is_match(&said())
    };
    steps.iter().zip(signs).filter(|(step, _)| waits(step)).map(|(_, sign)| (sign.tool, sign.input)).collect()
}

/// Steps that brought nothing new, each with how.
fn stale(signs: &[Sign<'_>], polls: &BTreeSet<(u64, u64)>) -> Vec<(usize, &'static str)> {
    let mut by_result: BTreeMap<(u64, Option<u64>), Vec<usize>> = BTreeMap::new();
    let mut found = Vec::new();
    let mut last_failed: Option<u64> = None;
    for (at, sign) in signs.iter().enumerate() {
        let group = by_result.entry((sign.tool, sign.result)).or_default();
        let same: Vec<&Sign<'_>> = group.iter().rev().take(COMPARED_MAX).filter_map(|at| signs.get(*at)).collect();
        let why = if polls.contains(&(sign.tool, sign.input)) {
            None
        } else if same.iter().any(|earlier| earlier.is_same_call(sign)) {
            Some("same call and result again")
        } else if same.iter().any(|earlier| sign.repeats(earlier)) {
            Some("same result again")
        } else if sign.failed && last_failed == Some(sign.tool) {
            Some("failed again")
        } else {
            None
        };
        group.push(at);
        last_failed = sign.failed.then_some(sign.tool);
        found.extend(why.map(|why| (at, why)));
    }
    found
}

/// How often the call that was made most often was made, with one result or with none known.
fn most_alike(signs: &[Sign<'_>], polls: &BTreeSet<(u64, u64)>) -> usize {
    let mut counts: BTreeMap<(u64, u64, Option<u64>), usize> = BTreeMap::new();
    for sign in signs.iter().filter(|sign| !polls.contains(&(sign.tool, sign.input))) {
        *counts.entry((sign.tool, sign.input, sign.result)).or_default() += 1;
    }
    counts.into_values().max().unwrap_or(0)
}

/// The reads of the thing that was read most often with nothing but reads in between, by tools that the catalogue says
/// only read.
fn rereads_of(steps: &[ToolCall], catalogue: Option<&Value>) -> Vec<usize> {
    let only_read: BTreeSet<&str> = catalogue
        .and_then(|catalogue| catalogue.as_array().or_else(|| catalogue.get("tools")?.as_array()))
        .into_iter()
        .flatten()
        .filter(|tool| tool.pointer("/annotations/readOnlyHint").and_then(Value::as_bool) == Some(true))
        .filter_map(|tool| tool.get("name")?.as_str())
        .collect();
    let mut reads: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut most: Vec<usize> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        if !only_read.contains(step.tool_name.as_str()) {
            reads.clear();
            continue;
        }
        let Some(target) = target(step).filter(|target| !target.is_empty()) else { continue };
        let same = reads.entry(target).or_default();
        same.push(at);
        if same.len() > most.len() {
            most.clone_from(same);
        }
    }
    most
}
