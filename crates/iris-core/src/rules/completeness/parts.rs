//! The parts that an ask lists: lines of a list, `(1) … (2)` in a sentence, first … second.

use std::ops::Range;

use crate::text::{is_item, term, terms, words};

/// How many parts are told apart.
const PARTS_MAX: usize = 12;

/// One part of an ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// Where it stands in the ask.
    pub bytes: Range<usize>,
    /// Its number, when the ask numbers it.
    pub mark: Option<usize>,
}

/// How a part says in which manner, not what, to answer.
const MANNERS: &[&str] = &[
    "answer from",
    "answer using",
    "answer in",
    "answer with",
    "base it on",
    "base your",
    "use only",
    "only use",
    "do not use",
    "don't use",
    "keep it",
    "keep the",
    "be brief",
    "be concise",
    "be specific",
    "in plain",
    "at most",
    "no more than",
    "briefly",
    "without",
    "avoid",
    "cite your",
    "show your work",
    "show your reasoning",
    "think step",
    "do not",
    "don't",
    "use a ",
    "use an ",
    "make sure",
    "ensure",
    "limit ",
    "format ",
    "return only",
    "respond in",
    "write in",
    "follow ",
];
/// Words that a part of manner is made of besides.
const GENERIC: &str =
    "cite source link spec reference point example quote mention provide include tone style length limit concise brief";

impl Part {
    /// Its words in the ask.
    pub fn text<'a>(&self, ask: &'a str) -> &'a str {
        ask.get(self.bytes.clone()).unwrap_or_default()
    }

    /// Whether it can be told from an answer that it was dealt with.
    pub fn is_measurable(&self, ask: &str) -> bool {
        let text = self.text(ask);
        let lower = text.trim_start_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        if MANNERS.iter().any(|manner| lower.starts_with(manner)) {
            return false;
        }
        let generic: Vec<u64> = words(GENERIC).filter_map(|word| term(&word)).collect();
        let mut distinct: Vec<u64> = terms(text).map(|term| term.key).collect();
        distinct.sort_unstable();
        distinct.dedup();
        distinct.len() >= 2 && distinct.iter().any(|term| !generic.contains(term))
    }
}

/// The parts of an ask; fewer than two when it lists none.
pub(super) fn parts(ask: &str) -> Vec<Part> {
    let found = [listed(ask), enumerated(ask), ordinal(ask)].into_iter().find(|parts| parts.len() >= 2);
    found.unwrap_or_default().into_iter().take(PARTS_MAX).map(|part| trimmed(ask, &part)).collect()
}

/// Without what joins it to the next: `and`, `then`, brackets, commas.
fn trimmed(ask: &str, part: &Part) -> Part {
    let text = part.text(ask);
    let mut end = text.trim_end().len();
    loop {
        let body = text.get(..end).unwrap_or_default();
        let bare = body.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | '[' | '.'));
        let bare = ["and", "or", "then"]
            .iter()
            .find_map(|joiner| bare.strip_suffix(joiner).filter(|rest| rest.ends_with(char::is_whitespace)))
            .unwrap_or(bare);
        if bare.len() == end {
            break;
        }
        end = bare.len();
    }
    Part { bytes: part.bytes.start..part.bytes.start + end, mark: part.mark }
}

/// Lines of a list, code left out.
fn listed(ask: &str) -> Vec<Part> {
    let (mut parts, mut at, mut fenced) = (Vec::new(), 0, false);
    for line in ask.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let body = line.trim();
        if body.starts_with("```") {
            fenced = !fenced;
        }
        let letter = body.starts_with(|c: char| c.is_ascii_alphabetic());
        if fenced || !is_item(body) || letter {
            continue;
        }
        let lead = line.len() - line.trim_start().len();
        let digits: String = body.chars().skip_while(|c| *c == '(').take_while(char::is_ascii_digit).collect();
        let sign = body.find(|c: char| c.is_whitespace()).unwrap_or(0);
        parts.push(Part { bytes: start + lead + sign..start + lead + body.len(), mark: digits.parse().ok() });
    }
    parts
}

/// `(1) … (2)`, `a) … b)`, `1. … 2.` within a text, rising by one from the first.
fn enumerated(ask: &str) -> Vec<Part> {
    let marks = |at: usize, form: usize| -> Vec<String> {
        let number = at.to_string();
        let letter = u32::try_from(at).ok().and_then(|at| char::from_u32(0x60 + at)).unwrap_or('?');
        let roman = ["i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii"]
            .get(at - 1)
            .copied()
            .unwrap_or("?");
        let sign = match form {
            0 => number,
            1 => letter.to_string(),
            _ => roman.to_owned(),
        };
        vec![format!("({sign})"), format!("{sign})")]
    };
    if !ask.contains(')') {
        return Vec::new();
    }
    for form in 0..3 {
        let mut starts: Vec<(usize, usize)> = Vec::new();
        let mut from = 0;
        for at in 1..=PARTS_MAX {
            let found = marks(at, form).iter().filter_map(|mark| find_mark(ask, mark, from)).min();
            let Some((start, end)) = found else { break };
            starts.push((start, end));
            from = end;
        }
        if starts.len() >= 2 {
            return between(ask, &starts, |at| Some(at + 1));
        }
    }
    Vec::new()
}

/// Where a mark begins a word, from a byte on: its first byte and one past its last.
fn find_mark(ask: &str, mark: &str, from: usize) -> Option<(usize, usize)> {
    let rest = ask.get(from..)?;
    rest.match_indices(mark)
        .map(|(at, _)| from + at)
        .find(|at| ask.get(..*at).is_some_and(|before| !before.ends_with(|c: char| c.is_alphanumeric() || c == '(')))
        .map(|at| (at, at + mark.len()))
}

/// `First, … Second, … Finally …`, rising.
fn ordinal(ask: &str) -> Vec<Part> {
    const ORDINALS: &[(&str, usize)] = &[
        ("first", 1),
        ("firstly", 1),
        ("second", 2),
        ("secondly", 2),
        ("third", 3),
        ("thirdly", 3),
        ("fourth", 4),
        ("fifth", 5),
        ("finally", 99),
        ("lastly", 99),
    ];
    let mut starts: Vec<(usize, usize)> = Vec::new();
    let mut last = 0;
    let mut before = "";
    for word in words(ask) {
        let rank = ORDINALS.iter().find(|(name, _)| word.text.eq_ignore_ascii_case(name)).map(|(_, rank)| *rank);
        let Some(rank) = rank else {
            before = word.text;
            continue;
        };
        let end = word.start + word.text.len();
        let after = ask.get(end..).unwrap_or_default();
        // `the first`, `a second` name things; `First, ` names a part.
        let names = ["the", "a", "an", "at", "my", "your", "its", "his", "her", "their", "this", "every", "each"]
            .iter()
            .any(|word| before.eq_ignore_ascii_case(word));
        before = word.text;
        if names || !after.starts_with([',', ' ', ':']) || rank <= last || starts.is_empty() && rank > 2 {
            continue;
        }
        last = rank;
        starts.push((word.start, end));
    }
    if starts.len() < 2 { Vec::new() } else { between(ask, &starts, |_| None) }
}

fn between(ask: &str, starts: &[(usize, usize)], mark: impl Fn(usize) -> Option<usize>) -> Vec<Part> {
    let ends = starts.iter().skip(1).map(|(start, _)| *start).chain([ask.len()]);
    starts
        .iter()
        .zip(ends)
        .enumerate()
        .map(|(at, ((_, start), end))| Part { bytes: *start..end, mark: mark(at) })
        .collect()
}
