//! `regex_match` and `regex_no_match`: whether a pattern stands in the output.

use serde_json::{Map, Value};

use super::doubt::is_catastrophic;
use super::keys::{Names, field, text};
use super::{Check, Problem, RuleType, Type, beyond, defeated, output, problem};
use crate::model::Evidence;
use crate::rules::pattern::{Flags, Pattern};
use crate::rules::{Case, EVIDENCE_MAX, Finding, Mechanism, Need, Outcome};
use crate::text::TextSpan;

const PATTERN: Names = &["pattern"];

pub(super) const MATCH: Type = Type {
    rule_type: RuleType::RegexMatch,
    needs: &[Need::Output],
    mechanism: Mechanism::Pattern,
    question: None,
    classes: &[],
    stands: false,
    suggestion: "Have the answer contain what the pattern asks for.",
    compile: |config| Ok(Box::new(Match(compile(config)?))),
};

pub(super) const NO_MATCH: Type = Type {
    rule_type: RuleType::RegexNoMatch,
    stands: true,
    suggestion: "Take out what the pattern forbids; the evidence says where it stands.",
    compile: |config| Ok(Box::new(NoMatch(compile(config)?))),
    ..MATCH
};

struct Match(Pattern);

impl Check for Match {
    fn judge(&self, case: &Case<'_>) -> Outcome {
        let (text, end) = output(case);
        match self.0.search().is_in(text, 0..end) {
            Ok(true) => Outcome::Pass(Finding::new(1.0, "the output matches the pattern")),
            Ok(false) if end < text.len() => beyond(text),
            Ok(false) => Outcome::Fail(Finding::new(0.0, "the output does not match the pattern")),
            Err(_) => gave_up(),
        }
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

struct NoMatch(Pattern);

impl Check for NoMatch {
    fn judge(&self, case: &Case<'_>) -> Outcome {
        let (text, end) = output(case);
        let (mut search, mut from, mut found) = (self.0.search(), 0, Vec::new());
        while from <= end && found.len() < EVIDENCE_MAX {
            match search.find(text, from..end) {
                Ok(Some(place)) => {
                    // After an empty match the search goes on one character further.
                    let step = text.get(place.end..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
                    from = if place.is_empty() { place.end + step } else { place.end };
                    found.push(place);
                }
                Ok(None) => break,
                Err(_) if found.is_empty() => return gave_up(),
                Err(_) => break,
            }
        }
        if found.is_empty() {
            return if end < text.len() {
                beyond(text)
            } else {
                Outcome::Pass(Finding::new(1.0, "the output matches the pattern nowhere"))
            };
        }
        let more = if found.len() == EVIDENCE_MAX { "at least " } else { "" };
        let message = format!("the output matches the pattern at {more}{} places", found.len());
        Outcome::Fail(Finding::new(0.0, message).with(places(text, found.into_iter(), "pattern")))
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

fn gave_up() -> Outcome {
    defeated("the pattern took more work on this output than a rule may")
}

/// Byte ranges, in order, as evidence.
fn places(text: &str, found: impl Iterator<Item = std::ops::Range<usize>>, label: &str) -> Vec<Evidence> {
    let span = |place| {
        let span = TextSpan::of(text, place);
        Evidence::Span {
            source: "output".to_owned(),
            start: span.start(),
            end: span.end(),
            label: label.to_owned(),
            class: None,
        }
    };
    found.map(span).collect()
}

fn compile(config: &Map<String, Value>) -> Result<Pattern, Problem> {
    let pattern = text(config, PATTERN, "a regular expression of at most 1000 characters")?;
    let flags = flags(config)?;
    let pattern = Pattern::new(pattern, flags).map_err(|why| problem(&field("pattern"), why))?;
    if is_catastrophic(pattern.syntax()) {
        return Err(problem(
            &field("pattern"),
            "fails the check against catastrophic backtracking (ReDoS): a repetition can read the same text in several \
             ways, as in (a+)+; repeat what is inside only once, or keep its repetitions apart by something that must stand \
             between them",
        ));
    }
    Ok(pattern)
}

fn flags(config: &Map<String, Value>) -> Result<Flags, Problem> {
    let mut flags = Flags::default();
    let Some(given) = config.get("flags").filter(|flags| !flags.is_null()) else { return Ok(flags) };
    let what = "must be letters of i (either case), m (^ and $ at lines), s (. is also the end of a line), u and g \
                (change nothing)";
    let letters = given.as_str().ok_or_else(|| problem(&field("flags"), what))?;
    for letter in letters.chars() {
        match letter {
            'i' => flags.any_case = true,
            'm' => flags.lines = true,
            's' => flags.dot_all = true,
            'u' | 'g' => {}
            _ => return Err(problem(&field("flags"), what)),
        }
    }
    Ok(flags)
}
