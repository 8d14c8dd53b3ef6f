//! Was every part of the ask dealt with?
//!
//! *Checks* only asks that declare their parts (a list, `(1) … (2)`, first … second): every part that can be measured is
//! spoken of in the output or in what the tools did, or is answered by a value of the kind it asks for, or the output has
//! a part of the same number. *Matters* because the part left out is the one that nobody notices. *Cannot see* whether a
//! part is answered well, nor parts that the ask does not tell apart.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;

use super::parts::{Part, parts};
use crate::model::{Evidence, ToolCall};
use crate::rules::ask::{AskKind, kind};
use crate::rules::measure::number;
use crate::rules::{
    Bundle, Case, FailureClass, Finding, Kind, Knobs, Mechanism, Need, Outcome, Question, Rule, RuleMeta,
    ThresholdSource, count,
};
use crate::text::{TermSet, View, head, is_blank, is_item, term, terms, words};

/// See the module.
pub struct AskCoverage;

static META: RuleMeta = RuleMeta {
    name: Cow::Borrowed("ask_coverage"),
    bundle: Bundle::Completeness,
    description: Cow::Borrowed("Every part of an ask that lists its parts is dealt with."),
    suggestion: Cow::Borrowed("Answer the parts of the ask one by one, and say of each that is left out why."),
    weight: 1.5,
    kind: Kind::Inference,
    mechanism: Mechanism::Heuristic,
    needs: &[Need::Output, Need::Input],
    reads: &[Need::ToolCalls],
    question: Question::TaskCompleted,
    classes: &[FailureClass::IncompleteAsk],
    version: 1,
    critical: false,
    stands: false,
    knobs: &[],
};

/// How long an ask is to be taken for one with parts, in characters.
const ASK_CHARS_MAX: usize = 1500;
/// How many words a text that was to be produced has at least.
const PRODUCED_WORDS_MIN: usize = 25;
/// How much of what the tools did, and of the answer beyond its terms, is read.
const STEPS_BYTES_MAX: usize = 64 * 1024;
/// How many letters of two words are alike for them to be of one family.
const FAMILY_LETTERS: usize = 4;

impl Rule for AskCoverage {
    fn meta(&self) -> &RuleMeta {
        &META
    }

    fn judge(&self, case: &Case<'_>, _: &Knobs) -> Outcome {
        let ask = case.input().text();
        if ask.chars().nth(ASK_CHARS_MAX).is_some() {
            return Outcome::not_applicable("the ask is too long to tell its parts");
        }
        if is_blank(case.said()) {
            return Outcome::not_applicable("the output is blank");
        }
        let parts: Vec<Part> = parts(ask).into_iter().filter(|part| part.is_measurable(ask)).collect();
        if parts.len() < 2 {
            return Outcome::not_applicable("the ask does not list parts that can be measured");
        }
        let answer = Answer::of(case);
        let done = answer.parts();
        let open: Vec<&Part> = parts.iter().filter(|part| !answer.covers(ask, part)).collect();
        // As many parts in the answer as in the ask: each stands for one, whatever its words.
        let open = if done >= parts.len() && open.len() < parts.len() { Vec::new() } else { open };
        let covered = parts.len() - open.len();
        let total = number(parts.len());
        let message = format!("{covered} of {} parts of the ask are dealt with", parts.len());
        let mut evidence = vec![count("parts_covered", "parts", number(covered), Some((total, ThresholdSource::Rule)))];
        evidence.extend(open.iter().map(|part| {
            let span = case.input().span(part.bytes.clone());
            Evidence::Span {
                source: "input".to_owned(),
                start: span.start(),
                end: span.end(),
                label: "part_not_covered".to_owned(),
                class: Some(FailureClass::IncompleteAsk.as_str().to_owned()),
            }
        }));
        let finding = Finding::new(number(covered) / total, message).with(evidence);
        if open.is_empty() { Outcome::Pass(finding) } else { Outcome::Fail(finding) }
    }
}

/// What an answer is looked through for.
struct Answer<'a> {
    said: &'a str,
    lower: String,
    terms: TermSet,
    families: HashSet<String>,
    steps: TermSet,
}

impl<'a> Answer<'a> {
    fn of(case: &'a Case<'_>) -> Self {
        let said = case.said();
        let families = words(head(said, STEPS_BYTES_MAX))
            .filter(|word| term(word).is_some())
            .filter_map(|word| family(word.text))
            .collect();
        let steps = terms(&told(case.steps())).map(|term| term.key).collect();
        let terms = terms(said).map(|term| term.key).collect();
        Self { said, lower: head(said, STEPS_BYTES_MAX).to_lowercase(), terms, families, steps }
    }

    /// How many numbered or listed parts the answer has itself, or how many paragraphs of prose.
    fn parts(&self) -> usize {
        self.said.lines().filter(|line| is_item(line) || line.trim_start().starts_with('#')).count()
    }

    fn covers(&self, ask: &str, part: &Part) -> bool {
        let text = part.text(ask);
        let wanted: Vec<_> = terms(text).collect();
        let distinct: TermSet = wanted.iter().map(|term| term.key).collect();
        let required = distinct.len().div_ceil(2).clamp(1, 2);
        let word = |start: u32, end: u32| text.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?);
        let mut hits = HashSet::new();
        for term in &wanted {
            let relative =
                || word(term.start, term.end).and_then(family).is_some_and(|family| self.families.contains(&family));
            if self.terms.contains(&term.key) || relative() {
                hits.insert(term.key);
            }
        }
        if hits.len() >= required || distinct.intersection(&self.steps).count() >= required {
            return true;
        }
        let produced =
            kind(text) == AskKind::Produce && self.said.split_whitespace().nth(PRODUCED_WORDS_MIN - 1).is_some();
        produced || self.has_mark(part.mark) || self.has_value(text)
    }

    /// Whether the answer has a part under the same number or letter.
    fn has_mark(&self, mark: Option<usize>) -> bool {
        let Some(at) = mark else { return false };
        let letter = u32::try_from(at).ok().and_then(|at| char::from_u32(0x60 + at)).unwrap_or('?');
        let number = at.to_string();
        self.lower.lines().any(|line| {
            let line = line.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '#' | '('));
            let rest = line.strip_prefix(number.as_str()).or_else(|| line.strip_prefix(letter));
            rest.is_some_and(|rest| rest.starts_with(['.', ')', ':']))
        }) || self.lower.contains(&format!("({number})"))
            || self.lower.contains(&format!("({letter})"))
    }

    /// Whether the answer holds a value of the kind that the part asks for and that the ask does not hold.
    fn has_value(&self, text: &str) -> bool {
        let lower = text.to_lowercase();
        let asks = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let digit = || self.lower.bytes().any(|byte| byte.is_ascii_digit());
        let numeric = asks(&[
            "how many",
            "how much",
            "how long",
            "how old",
            "how far",
            "what year",
            "what time",
            "when ",
            "which year",
            "version",
            "price",
            "cost",
            "number of",
            "percentage",
            "date",
            "port ",
            "total",
            "average",
            "population",
        ]);
        let link = asks(&["link", "url", "website", "where can i find"]) && self.lower.contains("://");
        let code = asks(&["code", "command", "snippet", "query", "function"])
            && (self.said.contains('`') || self.said.contains("();"));
        let money = asks(&["price", "cost", "fee", "budget"]) && self.said.contains(['$', '€', '£', '¥']);
        numeric && digit() || link || code || money
    }
}

fn family(word: &str) -> Option<String> {
    let end = word
        .char_indices()
        .nth(FAMILY_LETTERS)
        .map_or_else(|| (word.chars().count() == FAMILY_LETTERS).then_some(word.len()), |(at, _)| Some(at))?;
    Some(word.get(..end)?.to_lowercase())
}

/// What the tools were called with and what they returned, as far as it is read.
fn told(steps: &[ToolCall]) -> String {
    let mut told = String::new();
    for step in steps {
        if told.len() > STEPS_BYTES_MAX {
            break;
        }
        told.push_str(&step.tool_name.replace(['_', '-', '.'], " "));
        for value in [&step.input, &step.output].into_iter().flatten() {
            told.push(' ');
            match value {
                Value::String(text) => told.push_str(head(text, STEPS_BYTES_MAX)),
                other => told.push_str(head(&other.to_string(), STEPS_BYTES_MAX)),
            }
        }
        told.push('\n');
    }
    View::folded(head(&told, STEPS_BYTES_MAX)).text().to_owned()
}
