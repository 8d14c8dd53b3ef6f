//! `contains_keywords` and `excludes_keywords`: which of a list of words stand in the output, in either case.

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind, MatchKind};
use serde_json::{Map, Value};

use super::keys::{field, missing};
use super::{Check, Problem, RuleType, Type, beyond, defeated, output, problem};
use crate::model::Evidence;
use crate::rules::measure;
use crate::rules::{Case, EVIDENCE_MAX, Finding, Mechanism, Need, Outcome, ThresholdSource, count};
use crate::text::is_blank;

/// Words of one rule, and characters in all of them.
const KEYWORDS_MAX: usize = 500;
const CHARS_MAX: usize = 20_000;
/// Words that are met in one output; those that lie within each other are met at every place.
const SEEN_MAX: usize = 1 << 23;
/// How many words a message names by their place in the list.
const NAMED_MAX: usize = 10;

pub(super) const CONTAINS: Type = Type {
    rule_type: RuleType::ContainsKeywords,
    needs: &[Need::Output],
    mechanism: Mechanism::Pattern,
    question: None,
    classes: &[],
    stands: false,
    suggestion: "Have the answer say what the keywords stand for.",
    compile: |config| Ok(Box::new(Contains { words: Words::new(config)?, share: share(config)? })),
};

pub(super) const EXCLUDES: Type = Type {
    rule_type: RuleType::ExcludesKeywords,
    stands: true,
    suggestion: "Take out the keywords; the evidence says where they stand.",
    compile: |config| Ok(Box::new(Excludes(Words::new(config)?))),
    ..CONTAINS
};

/// Words to look for, in small letters.
struct Words {
    automaton: AhoCorasick,
    count: usize,
}

impl Words {
    fn new(config: &Map<String, Value>) -> Result<Self, Problem> {
        let what = format!("a list of 1 to {KEYWORDS_MAX} texts, none of them blank, {CHARS_MAX} characters together");
        let wrong = || problem(&field("keywords"), format!("must be {what}"));
        let given = config.get("keywords").ok_or_else(|| missing(&["keywords"], &what))?;
        let list = given.as_array().filter(|list| !list.is_empty() && list.len() <= KEYWORDS_MAX).ok_or_else(wrong)?;
        let words: Vec<String> = list
            .iter()
            .map(|word| word.as_str().filter(|word| !is_blank(word)).map(small))
            .collect::<Option<_>>()
            .ok_or_else(wrong)?;
        if words.iter().map(|word| word.chars().count()).sum::<usize>() > CHARS_MAX {
            return Err(wrong());
        }
        let automaton = AhoCorasickBuilder::new()
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&words)
            .map_err(|_| wrong())?;
        Ok(Self { automaton, count: words.len() })
    }

    /// The first place of each word in a text, by bytes of the text in small letters; and whether all of the text was
    /// looked at.
    fn places(&self, text: &str) -> (Vec<Option<(usize, usize)>>, bool) {
        let mut places = vec![None; self.count];
        let mut left = self.count;
        // Words may lie within each other, so every one that ends at a place is seen.
        for (seen, found) in self.automaton.find_overlapping_iter(text).enumerate() {
            if seen >= SEEN_MAX {
                return (places, false);
            }
            if let Some(place @ None) = places.get_mut(found.pattern().as_usize()) {
                *place = Some((found.start(), found.end()));
                left -= 1;
                if left == 0 {
                    break;
                }
            }
        }
        (places, true)
    }
}

struct Contains {
    words: Words,
    share: f64,
}

impl Check for Contains {
    fn judge(&self, case: &Case<'_>) -> Outcome {
        let (text, end) = output(case);
        let (places, all) = self.words.places(&small(text.get(..end).unwrap_or_default()));
        let absent: Vec<usize> = (0..places.len()).filter(|at| places.get(*at).is_some_and(Option::is_none)).collect();
        let found = places.len() - absent.len();
        let share = measure::number(found) / measure::number(places.len());
        let evidence = vec![count("keywords_found", "share", share, Some((self.share, ThresholdSource::Rule)))];
        let message = format!("{found} of {} keywords are in the output", places.len());
        let finding =
            |message: String| Finding::new(share, message).measuring("keywords_found", "share", share).with(evidence);
        if share >= self.share {
            return Outcome::Pass(Finding { score: 1.0, ..finding(message) });
        }
        if !all {
            return met_too_often();
        }
        if end < text.len() {
            return beyond(text);
        }
        Outcome::Fail(finding(format!("{message}; missing: {}", named(&absent))))
    }

    fn bytes(&self) -> usize {
        self.words.automaton.memory_usage()
    }
}

struct Excludes(Words);

impl Check for Excludes {
    fn judge(&self, case: &Case<'_>) -> Outcome {
        let (text, end) = output(case);
        let text_small = small(text.get(..end).unwrap_or_default());
        let (places, all) = self.0.places(&text_small);
        let mut found: Vec<(usize, usize, usize)> =
            places.iter().enumerate().filter_map(|(at, place)| place.map(|(start, end)| (start, end, at))).collect();
        if found.is_empty() {
            return match all {
                false => met_too_often(),
                true if end < text.len() => beyond(text),
                true => Outcome::Pass(Finding::new(1.0, format!("none of {} keywords is in the output", places.len()))),
            };
        }
        found.sort_unstable();
        let mut which: Vec<usize> = found.iter().map(|(_, _, at)| *at).collect();
        which.sort_unstable();
        let message = format!("{} of {} keywords are in the output: {}", found.len(), places.len(), named(&which));
        found.truncate(EVIDENCE_MAX);
        Outcome::Fail(Finding::new(0.0, message).with(evidence(text, &found)))
    }

    fn bytes(&self) -> usize {
        self.0.automaton.memory_usage()
    }
}

fn met_too_often() -> Outcome {
    defeated(format!("keywords that lie within each other were met {SEEN_MAX} times before the end of the output"))
}

/// Where the words stand in the raw text. `found` is in order of its starts, which are bytes of the text in small
/// letters.
fn evidence(text: &str, found: &[(usize, usize, usize)]) -> Vec<Evidence> {
    let mut marks: Vec<usize> = found.iter().flat_map(|(start, end, _)| [*start, *end]).collect();
    marks.sort_unstable();
    marks.dedup();
    let mut places = Vec::with_capacity(marks.len());
    let (mut bytes, mut at, mut letters) = (0, 0, text.chars());
    for mark in marks {
        while bytes < mark {
            let Some(letter) = letters.next() else { break };
            bytes += letter.to_lowercase().map(char::len_utf8).sum::<usize>();
            at += 1;
        }
        places.push((mark, at));
    }
    let place = |mark: usize| places.iter().find(|(one, _)| *one == mark).map_or(0, |(_, at)| *at);
    let span = |(start, end, at): &(usize, usize, usize)| Evidence::Span {
        source: "output".to_owned(),
        start: place(*start),
        end: place(*end),
        label: format!("keywords[{at}]"),
        class: None,
    };
    found.iter().map(span).collect()
}

/// Letter by letter in small ones, so that the way back is known.
fn small(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// Words by their place in the list: a message never repeats what may stand in an output.
fn named(words: &[usize]) -> String {
    let shown: Vec<String> = words.iter().take(NAMED_MAX).map(|at| format!("keywords[{at}]")).collect();
    match words.len().saturating_sub(NAMED_MAX) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn share(config: &Map<String, Value>) -> Result<f64, Problem> {
    match config.get("threshold").filter(|share| !share.is_null()) {
        None => Ok(1.0),
        Some(share) => share
            .as_f64()
            .filter(|share| (0.0..=1.0).contains(share))
            .ok_or_else(|| problem(&field("threshold"), "must be the share of the keywords to be found, from 0 to 1")),
    }
}
