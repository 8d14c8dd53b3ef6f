//! Statements of an answer held against the material in the ask.
//!
//! Owns the material ([`Material`]) and one sign a function. A sign fires only where the material speaks of the same
//! thing: an answer that introduces a value of its own (a proposal, a derivation, a state after a change) contradicts
//! nothing. Everything is bounded: so much material, so many numbers, so many signs.

mod calendar;
mod figures;
mod states;

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::LazyLock;

use jiff::civil::Date;
use regex::{Captures, Regex};

use crate::text::{head, placed_sentences};

pub use figures::{Figure, figures};

/// How much of the ask is material, how many sentences of the answer are compared, and how many signs are kept.
const MATERIAL_BYTES_MAX: usize = 1 << 16;
const SENTENCES_MAX: usize = 400;
const SIGNS_MAX: usize = 25;

fn pattern(source: &'static str) -> Regex {
    #[expect(clippy::expect_used, reason = "every pattern is a constant, and a test compiles each")]
    Regex::new(source).expect("a constant pattern compiles")
}

/// What a sign looks for in the material, found once for all sentences.
#[derive(Debug, Clone, Copy)]
enum Fact {
    Acronyms,
    Versions,
    Millis,
    Seconds,
    Plain,
    Sections,
    Nothing,
    Failures,
    Flags,
    Statuses,
    Errors,
    Forbidden,
    Lines,
}

/// What the ask holds beside the question.
#[derive(Debug)]
pub struct Material {
    text: String,
    lower: OnceCell<String>,
    figures: Vec<Figure>,
    facts: [OnceCell<Vec<String>>; Fact::Lines as usize + 1],
    settings: OnceCell<Vec<(String, bool)>>,
    allowed: OnceCell<Vec<(String, String)>>,
    dates: OnceCell<Vec<Date>>,
    days: OnceCell<Vec<(i8, i8)>>,
    trend: OnceCell<Option<(String, f64, f64)>>,
}

impl Material {
    /// The ask, as far as it is read.
    pub fn of(ask: &str) -> Self {
        let text = head(ask, MATERIAL_BYTES_MAX).to_owned();
        Self {
            lower: OnceCell::new(),
            figures: figures(&text),
            text,
            facts: std::array::from_fn(|_| OnceCell::new()),
            settings: OnceCell::new(),
            allowed: OnceCell::new(),
            dates: OnceCell::new(),
            days: OnceCell::new(),
            trend: OnceCell::new(),
        }
    }

    fn lower(&self) -> &str {
        self.lower.get_or_init(|| self.text.to_lowercase())
    }

    /// What `find` finds in the material, asked once.
    fn fact(&self, which: Fact, find: impl FnOnce(&str) -> Vec<String>) -> &[String] {
        self.facts.get(which as usize).map_or(&[][..], |cell| cell.get_or_init(|| find(&self.text)).as_slice())
    }

    /// Whether the material is as `is` says, asked once.
    fn has(&self, which: Fact, is: impl FnOnce(&str) -> bool) -> bool {
        !self.fact(which, |text| if is(text) { vec![String::new()] } else { Vec::new() }).is_empty()
    }

    /// The first group of every match of a pattern in the material, found once.
    fn named(&self, which: Fact, shape: &Regex) -> &[String] {
        self.fact(which, |text| {
            let groups = |found: Captures<'_>| {
                Some(found.iter().skip(1).flatten().next().unwrap_or(found.get(0)?).as_str().to_owned())
            };
            let mut found: Vec<String> = shape.captures_iter(text).filter_map(groups).collect();
            found.sort_unstable();
            found.dedup();
            found
        })
    }

    /// Whether there is enough to hold an answer against: more than a question.
    fn is_material(&self) -> bool {
        let numbers = self.text.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty()).take(4).count();
        self.figures.len() >= 2 || numbers >= 4 || self.text.len() >= 200 || self.text.lines().count() >= 3
    }
}

/// A sentence of the answer.
struct Said<'a> {
    text: &'a str,
    lower: OnceCell<String>,
    at: usize,
    figures: Vec<Figure>,
    proposes: OnceCell<bool>,
    attributes: OnceCell<bool>,
}

impl<'a> Said<'a> {
    fn of(at: usize, text: &'a str) -> Self {
        Self {
            text,
            lower: OnceCell::new(),
            at,
            figures: figures(text),
            proposes: OnceCell::new(),
            attributes: OnceCell::new(),
        }
    }

    fn lower(&self) -> &str {
        self.lower.get_or_init(|| self.text.to_lowercase())
    }

    /// Whether it says where it has something from.
    fn attributes(&self) -> bool {
        *self.attributes.get_or_init(|| figures::attributes(self.text))
    }

    fn whole(&self) -> Range<usize> {
        self.at..self.at + self.text.len()
    }
}

/// An answer that proposes something, or tells of a change, states no fact about the material.
static PROPOSES: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?-u:\b)(?:should|could|would|recommend(?:ed|s)?|suggest(?:ed|s)?|propose[sd]?|consider|try|let['’]s|upgrade(?:d)? to|bump(?:ed)? to|change(?:d)? (?:it |this )?to|increase(?:d)? (?:it )?to|raise(?:d)? (?:it )?to|reduce(?:d)? (?:it )?to|lower(?:ed)? (?:it )?to|set (?:it |this )?to|now|after (?:the|this|my) (?:fix|change|update)|instead|if you|for example|e\.g\.|e\.g|such as|schedule|plan(?:ned)? for|i(?:'| wi)ll|next step|rename|goal|target|aim)(?-u:\b)",
    )
});

fn proposes(said: &Said<'_>) -> bool {
    *said.proposes.get_or_init(|| PROPOSES.is_match(said.text))
}

/// Every sign in an answer, with where it stands.
pub fn signs(material: &Material, answer: &str) -> Vec<(Range<usize>, &'static str)> {
    let mut found = Vec::new();
    found.extend(figures::inconsistent_total(answer).map(|bytes| (bytes, "inconsistent total")));
    found.extend(states::citation_shape(answer).map(|bytes| (bytes, "citation shape")));
    if !material.is_material() {
        return found;
    }
    for (at, text) in placed_sentences(answer).take(SENTENCES_MAX) {
        let said = Said::of(at, text);
        let has_digit = text.bytes().any(|byte| byte.is_ascii_digit());
        for (sign, label, needs) in SIGNS {
            let lacks = match needs {
                Needs::Words => false,
                Needs::Digits => !has_digit,
                Needs::Figures => said.figures.is_empty(),
            };
            if lacks {
                continue;
            }
            if let Some(bytes) = sign(material, &said) {
                found.push((bytes, *label));
            }
        }
        if found.len() >= SIGNS_MAX {
            break;
        }
    }
    found
}

type Sign = fn(&Material, &Said<'_>) -> Option<Range<usize>>;

/// What a sentence must hold for a sign to be looked for.
#[derive(Debug, Clone, Copy)]
enum Needs {
    Words,
    Digits,
    Figures,
}

const SIGNS: &[(Sign, &str, Needs)] = &[
    (figures::attributed, "attributed figure", Needs::Figures),
    (figures::exact, "exact figure", Needs::Figures),
    (figures::counted, "count mismatch", Needs::Figures),
    (figures::acronym, "metric mismatch", Needs::Figures),
    (figures::version, "ungrounded version", Needs::Digits),
    (figures::unit, "unit misread", Needs::Digits),
    (figures::trend, "trend against the table", Needs::Words),
    (states::quoted, "attributed quotation", Needs::Words),
    (states::section, "section citation", Needs::Digits),
    (states::setting, "setting contradiction", Needs::Words),
    (states::emptiness, "empty result contradiction", Needs::Words),
    (states::success, "success against a failure", Needs::Words),
    (states::flag, "flag not listed", Needs::Words),
    (states::status, "status contradiction", Needs::Digits),
    (states::absence, "false absence", Needs::Words),
    (states::forbidden, "forbidden recommendation", Needs::Words),
    (states::modality, "may became will", Needs::Digits),
    (calendar::weekday, "weekday contradiction", Needs::Digits),
    (calendar::date, "ungrounded date", Needs::Digits),
    (calendar::schedule, "schedule contradiction", Needs::Words),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ask: &str, answer: &str) -> Vec<&'static str> {
        signs(&Material::of(ask), answer).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn each_sign_fires_on_its_kind_and_on_nothing_else() {
        let report = "Report: revenue 1,240,000 in Q2, up from 1,150,000. Visitors 5120. Churn 3.2%.";
        for (ask, answer, want) in [
            (report, "According to the report, there were 7700 visitors.", "attributed figure"),
            (report, "There were exactly 7701 visitors.", "exact figure"),
            ("The log has 12 warnings and 4 errors. List them.", "I see 9 warnings.", "count mismatch"),
            ("Results: MRR 4200, ARR 50400. Summarise.", "Your MRR is 4800.", "metric mismatch"),
            ("Versions: app 1.4.2, lib 2.0.1. Which?", "You run version 1.9.0.", "ungrounded version"),
            ("timeout: 300 ms, retries: 3. Explain the timeout.", "The timeout is 300 seconds.", "unit misread"),
            ("quarter,revenue\nQ1,1030000\nQ2,1000000", "Revenue grew this quarter.", "trend against the table"),
            ("Read:\nSection 2.1 Fees\nSection 2.2 Terms", "See section 4.7.", "section citation"),
            ("debug: false\nretries: 3\nhost: a", "Debug is enabled.", "setting contradiction"),
            ("$ tool --help\n--dry-run\n--output", "Use --purge-all for that.", "flag not listed"),
            (
                "$ curl -I https://a.test\nHTTP/1.1 301 Moved\nServer: x",
                "The server returned a 404.",
                "status contradiction",
            ),
            (
                "The deploy log: step 3 failed.\nexit code 2\nend",
                "The deployment was successful.",
                "success against a failure",
            ),
            (
                "Meeting notes, 2026-03-04: budget talk. Next: 2026-03-11.",
                "The talk was on Friday, March 4.",
                "weekday contradiction",
            ),
        ] {
            assert_eq!(labels(ask, answer), [want], "{answer}");
        }
        for (ask, answer) in [
            (report, "According to the report, revenue grew by 90,000."),
            (report, "According to the report, churn is 3.2% and revenue about 1.2 million."),
            (report, "Next quarter you should aim for 7700 visitors."),
            ("Is it dead?", "Yes, the server returned a 404."),
            ("150 minutes build, 20 minutes deploy. In hours?", "The build takes 2.5 hours."),
        ] {
            assert_eq!(labels(ask, answer), [""; 0], "{answer}");
        }
        assert_eq!(labels("", "Rent $100, food $50, fees $25: a total of $190."), ["inconsistent total"]);
        assert_eq!(labels("", "Rent $100, food $50, fees $25: a total of $175."), [""; 0]);
    }
}
