//! What was said in a trace and what the rules saw in it: texts with the evidence marked in place, tool calls, messages.

use iris_core::evaluate;
use iris_core::model::{Evaluation, Evidence, Message, Part, RuleResult, Trace};
use serde_json::Value;

use super::format::{millis_of, plain};
use super::text::{Marked, Spot, Words};

/// Texts, tool calls and messages of one page.
const ITEMS_MAX: usize = 100;

/// Characters of an argument, a result or a message.
pub(super) const VALUE_CHARS: usize = 8000;

/// A text with what evidence points at.
pub(super) struct Block {
    /// Unique on its page.
    pub id: String,
    pub title: String,
    pub marked: Marked,
}

/// Something that evidence points at, explained.
pub(super) struct Note {
    pub number: usize,
    pub label: Words,
    /// Where it stands.
    pub place: String,
    /// Whether it is marked on this page.
    pub is_marked: bool,
}

/// What one rule said.
pub(super) struct Said {
    pub name: Words,
    pub category: Words,
    pub message: Words,
    pub role: Words,
    pub notes: Vec<Note>,
    /// What else it saw.
    pub also: Vec<Words>,
}

/// A tool call.
pub(super) struct Call {
    pub number: usize,
    pub name: Words,
    pub took: String,
    pub input: Option<Words>,
    pub output: Option<Words>,
    pub error: Option<Words>,
    /// What rules say of it.
    pub said: Vec<Words>,
}

/// A message.
pub(super) struct Turn {
    pub role: Words,
    /// What a part is, and its text.
    pub parts: Vec<(&'static str, Words)>,
}

/// The texts of a trace, and the rules that failed it.
pub(super) struct Story {
    pub blocks: Vec<Block>,
    pub failed: Vec<Said>,
    /// Those that passed although they saw something, such as a value that is published for tests.
    pub noted: Vec<Said>,
    pub passed: Vec<Said>,
    pub skipped: Vec<Said>,
    /// Why nothing is marked although there is evidence.
    pub unmarked: Option<&'static str>,
}

/// A text of a trace under the name that evidence has for it.
struct Source<'a> {
    name: String,
    title: String,
    text: &'a str,
}

fn sources<'a>(trace: &'a Trace, evaluation: Option<&'a Evaluation>) -> Vec<Source<'a>> {
    let source =
        |name: &str, title: &str, text: &'a str| Source { name: name.to_owned(), title: title.to_owned(), text };
    let mut all = Vec::new();
    all.extend(trace.input.as_deref().map(|text| source("input", "Input", text)));
    let judged = evaluation.and_then(|evaluation| evaluation.output_text.as_deref()).filter(|text| !text.is_empty());
    let own = trace.output.as_deref();
    match judged.filter(|judged| Some(*judged) != own) {
        Some(judged) => {
            all.extend(own.map(|text| source("", "Output", text)));
            all.push(source("output", "Text that was judged", judged));
        }
        None => all.extend(own.map(|text| source("output", "Output", text))),
    }
    // One run says what the trace says.
    if trace.runs.len() > 1 {
        for (at, run) in trace.runs.iter().enumerate().take(ITEMS_MAX) {
            let who = run.agent_name.as_deref().unwrap_or("agent");
            let texts = [("input", run.input.as_deref()), ("output", run.output.as_deref())];
            for (field, text) in texts.into_iter().filter_map(|(field, text)| Some((field, text?))) {
                let title = format!("Run {}, {}: {field}", at + 1, Words::brief(who, 60));
                all.push(Source { name: format!("runs[{at}].{field}"), title, text });
            }
        }
    }
    all
}

/// Whether the offsets of a result count in the texts of this trace.
fn is_of(trace: &Trace, evaluation: &Evaluation, result: &RuleResult) -> bool {
    let is_given = evaluation.output_text.as_ref().is_some_and(|text| !text.is_empty());
    let seen = result.seen_in_version.or(evaluation.trace_version);
    is_given || trace.in_progress || seen.is_none_or(|version| version == trace.version)
}

/// Tells the story of a trace with what one of its evaluations says.
pub(super) fn story(trace: &Trace, evaluation: Option<&Evaluation>) -> Story {
    let sources = sources(trace, evaluation);
    let mut spots: Vec<Vec<Spot>> = sources.iter().map(|_| Vec::new()).collect();
    let mut story = Story {
        blocks: Vec::new(),
        failed: Vec::new(),
        noted: Vec::new(),
        passed: Vec::new(),
        skipped: Vec::new(),
        unmarked: None,
    };
    let mut number = 0;
    for (evaluation, result) in
        evaluation.iter().flat_map(|one| one.rule_results.iter().map(move |result| (one, result)))
    {
        let has_failed = !result.passed && !result.skipped;
        let counts = is_of(trace, evaluation, result);
        let mut said = said(result);
        if !has_failed {
            // It says what a failure does.
            said.role = Words::default();
        }
        for evidence in result.evidence.iter().filter(|_| has_failed) {
            let Evidence::Span { source, start, end, label, .. } = evidence else { continue };
            number += 1;
            let at = sources.iter().position(|one| one.name == *source).filter(|_| counts && start < end);
            if let Some(spots) = at.and_then(|at| spots.get_mut(at)) {
                spots.push(Spot { number, start: *start, end: *end });
            } else if !counts {
                story.unmarked = Some(
                    "An earlier version of this trace was judged; what it saw cannot be marked in the newer text.",
                );
            }
            said.notes.push(Note {
                number,
                label: Words::brief(label, 120),
                place: format!("{} {start}–{end}", Words::brief(source, 60)),
                is_marked: at.is_some(),
            });
        }
        match (has_failed, result.skipped) {
            (true, _) => story.failed.push(said),
            (_, true) => story.skipped.push(said),
            _ if has_spans(result) => story.noted.push(said),
            _ => story.passed.push(said),
        }
    }
    let blocks = sources.into_iter().zip(spots).enumerate();
    story.blocks = blocks
        .map(|(at, (source, spots))| Block {
            id: format!("text-{at}"),
            title: source.title,
            marked: Marked::of(source.text, &spots),
        })
        .collect();
    story
}

fn has_spans(result: &RuleResult) -> bool {
    result.evidence.iter().any(|evidence| matches!(evidence, Evidence::Span { .. }))
}

fn said(result: &RuleResult) -> Said {
    let also = result.evidence.iter().filter_map(|evidence| match evidence {
        Evidence::Span { .. } => None,
        Evidence::Pattern { name, count } => Some(format!("{name}: {count} ×")),
        Evidence::ToolCall { index, tool_name, label } => {
            Some(format!("tool call {} ({tool_name}): {label}", index + 1))
        }
        Evidence::Count { stat, unit, value, threshold, .. } => {
            let threshold =
                threshold.map(|threshold| format!(", threshold {}", plain(threshold, 4))).unwrap_or_default();
            Some(format!("{stat}: {} {unit}{threshold}", plain(*value, 4)))
        }
    });
    Said {
        name: Words::of(&result.rule_name),
        category: Words::of(&result.category),
        message: Words::of(result.skip_reason.as_deref().unwrap_or(&result.message)),
        role: Words::of(result.role.as_deref().map(role).unwrap_or_default()),
        notes: Vec::new(),
        also: also.map(|text| Words::brief(&text, 200)).collect(),
    }
}

/// What a failure of the rule does here, in words.
fn role(role: &str) -> &str {
    match role {
        "gate" => "decides",
        "veto" => "vetoes",
        "risk" => "adds to the risk",
        "advisory" => "advises only",
        other => other,
    }
}

/// The tool calls of a trace with what an evaluation says of each; and how many more there are.
pub(super) fn calls(trace: &Trace, evaluation: Option<&Evaluation>) -> (Vec<Call>, usize) {
    let all = trace.tool_calls.as_deref().unwrap_or_default();
    let results = evaluation.map(|evaluation| evaluation.rule_results.as_slice()).unwrap_or_default();
    let said = |at: usize| {
        let failed = results.iter().filter(|result| !result.passed && !result.skipped);
        let labels = failed.flat_map(|result| {
            result.evidence.iter().filter_map(move |evidence| match evidence {
                Evidence::ToolCall { index, label, .. } if *index == at => Some((result, label)),
                _ => None,
            })
        });
        labels.map(|(result, label)| Words::brief(&format!("{}: {label}", result.rule_name), 200)).collect()
    };
    let shown = all.iter().enumerate().take(ITEMS_MAX).map(|(at, call)| Call {
        number: at + 1,
        name: Words::brief(&call.tool_name, 120),
        took: millis_of(call.latency_ms),
        input: call.input.as_ref().map(value),
        output: call.output.as_ref().map(value),
        error: call.error.as_deref().map(|error| Words::brief(error, VALUE_CHARS)),
        said: said(at),
    });
    (shown.collect(), all.len().saturating_sub(ITEMS_MAX))
}

/// A value as people read it: a text as it is, everything else as JSON.
pub(super) fn value(value: &Value) -> Words {
    match value {
        Value::String(text) => Words::brief(text, VALUE_CHARS),
        other => Words::brief(&serde_json::to_string_pretty(other).unwrap_or_default(), VALUE_CHARS),
    }
}

/// Messages, the newest [`ITEMS_MAX`] of them.
pub(super) fn turns(messages: &[Message]) -> Vec<Turn> {
    let skipped = messages.len().saturating_sub(ITEMS_MAX);
    let turn = |message: &Message| Turn {
        role: Words::brief(&message.role, 40),
        parts: message.parts.iter().take(ITEMS_MAX).map(part).collect(),
    };
    messages.iter().skip(skipped).map(turn).collect()
}

fn part(part: &Part) -> (&'static str, Words) {
    match part {
        Part::Text { text } => ("", Words::brief(text, VALUE_CHARS)),
        Part::Reasoning { text } => ("thinks", Words::brief(text, VALUE_CHARS)),
        Part::ToolCall { name, arguments, .. } => {
            ("calls", Words::brief(&format!("{name}({})", value(arguments)), VALUE_CHARS))
        }
        Part::ToolResult { name, result, .. } => {
            let name = name.as_deref().map(|name| format!("{name}: ")).unwrap_or_default();
            ("result", Words::brief(&format!("{name}{}", value(result)), VALUE_CHARS))
        }
        Part::Other { what } => ("holds", Words::brief(what, 200)),
    }
}

/// How a verdict came about, in a sentence.
pub(super) fn why(verdict: &evaluate::Verdict) -> String {
    let by = verdict.by.iter().map(|name| Words::brief(name, 80).to_string()).collect::<Vec<_>>().join(", ");
    let (name, words) = (verdict.basis.as_str(), verdict.basis.in_words());
    let words = words.get(..1).map(str::to_uppercase).unwrap_or_default() + words.get(1..).unwrap_or_default();
    if by.is_empty() { format!("{words} ({name}).") } else { format!("{words}: {by} ({name}).") }
}
