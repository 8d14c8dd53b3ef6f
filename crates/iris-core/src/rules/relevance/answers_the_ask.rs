//! Does the answer speak to the ask at all?
//!
//! *Checks* three things: that the output is not a bare refusal, that it is not the ask said again, and that it shares at
//! least one term with the ask. With a threshold of keyword_overlap or topic_consistency set, it also fails where both
//! measures fail. *Matters* because an answer to another question reads as well as one to this. *Cannot see* a near
//! miss (the right words, the wrong question), and skips where words cannot tell: an ask that names no subject, a short
//! answer, two languages.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;

use super::measures::{CONSISTENCY_MIN, OVERLAP_MIN, WORDS_MIN, consistency};
use crate::model::Evidence;
use crate::rules::measure::number;
use crate::rules::{
    Bundle, Case, FailureClass, Finding, Kind, Knobs, Mechanism, Need, Outcome, Question, Rule, RuleMeta,
    ThresholdSource, count,
};
use crate::text::{head, language, terms, words};

/// See the module.
pub struct AnswersTheAsk;

static META: RuleMeta = RuleMeta {
    name: Cow::Borrowed("answers_the_ask"),
    bundle: Bundle::Relevance,
    description: Cow::Borrowed("The output speaks to the ask: no bare refusal, no echo, not another subject."),
    suggestion: Cow::Borrowed("Check that the output answers this ask, and that the right conversation was judged."),
    weight: 1.0,
    kind: Kind::Policy,
    mechanism: Mechanism::Formula,
    needs: &[Need::Output, Need::Input],
    reads: &[],
    question: Question::Relevant,
    classes: &[FailureClass::OffTask],
    version: 1,
    critical: false,
    stands: false,
    knobs: &[],
};

/// How many digits a number has at least for two texts to share it by more than chance.
const NUMBER_DIGITS_MIN: u32 = 3;
/// How many words a bare refusal has at most.
const REFUSAL_WORDS_MAX: usize = 25;
/// How much of the beginning of an answer is read for a refusal or an echo.
const OPENING_BYTES_MAX: usize = 4096;
/// How many terms of an answer are compared by their beginnings.
const TERMS_MAX: usize = 4000;
/// How many letters of two words are alike for them to be of one family.
const FAMILY_LETTERS: usize = 6;

static REFUSES: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the pattern is a constant, and a test compiles it")]
    Regex::new(
        r"(?ix)^\W{0,3}(?: (?:unfortunately|regrettably|as\ an\ ai[a-z\ ]{0,30}|(?:oh|hi|hello|well|sorry|apologies|my\ apologies))[,.!\ ]{1,3}(?:but\ )?)*
        (?: i(?:['’]m|\ am)\ (?:very\ |so\ |really\ |terribly\ )?(?:sorry|afraid|unable|not\ (?:able|allowed|permitted|authori[sz]ed|comfortable))
          | i\ (?:can(?:not|['’]t|\ not)|won['’]t|will\ not|do(?:\ not|n['’]t)|(?:am|was)\ unable\ to)\ (?:be\ able\ to\ )?(?:help|assist|answer|do|provide|share|discuss|comply|fulfil+|support|create|generate|write|give|engage|offer|disclose|accommodate|respond)
          | (?:i\ )?(?:must|have\ to|need\ to)\ (?:decline|refuse) | i\ (?:decline|refuse)
          | (?:sorry|apologies|my\ apologies)[,.!]?\ (?:but\ )?(?:i|no|this|that|we)(?-u:\b)
          | no[.!]?\s*$ | (?:unable|not\ able)\ to\ (?:help|assist|answer|comply|provide)
          | (?:es\ )?tut\ mir\ leid | (?:das|dabei)\ kann\ ich\ (?:leider\ )?nicht | leider\ kann\ ich
          | je\ (?:suis\ desole|ne\ peux\ pas) | desole[e]? | lo\ siento | no\ puedo\ (?:ayudar|responder|hacer)
          | mi\ dispiace | desculpe | не\ могу | извините | 抱歉 | 对不起 | 我无法 | 申し訳 | すみません | 죄송 )",
    )
    .expect("a constant pattern compiles")
});

/// Says what was asked instead of answering it.
static RESTATES: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the pattern is a constant, and a test compiles it")]
    Regex::new(
        r"(?i)^\W{0,3}(?:so,? |okay,? |ok,? )?(?:you(?:'re| are)? (?:want|would like|wish|ask(?:ed|ing)?|wonder(?:ed|ing)?|need)|you'd like|your (?:question|request|ask) (?:is|was)|the (?:question|request) is|i understand (?:that )?you)(?-u:\b)",
    )
    .expect("a constant pattern compiles")
});

/// What is wrong with an answer.
enum Wrong {
    Refusal,
    Echo,
    OffSubject,
    BothMeasures,
}

impl Rule for AnswersTheAsk {
    fn meta(&self) -> &RuleMeta {
        &META
    }

    fn judge(&self, case: &Case<'_>, knobs: &Knobs) -> Outcome {
        let asked = case.wanted().keys();
        if asked.is_empty() {
            return Outcome::not_applicable("the ask names no subject to look for");
        }
        let (used, total) = case.overlap();
        let (min, source) = threshold(knobs);
        let share = number(used) / number(total.max(1));
        let evidence = vec![count("keyword_overlap", "ratio", share, Some((min, source)))];
        let wrong = if share < min && is_refusal(case.said()) {
            Some(Wrong::Refusal)
        } else if is_echo(case) {
            Some(Wrong::Echo)
        } else {
            match off_subject(case, knobs, used, total, source) {
                Ok(wrong) => wrong,
                Err(why) => return Outcome::not_applicable(why),
            }
        };
        let Some(wrong) = wrong else {
            let message = format!("the output speaks to the ask: {used} of its {total} terms");
            return Outcome::Pass(Finding::new(1.0, message).with(evidence));
        };
        let (name, message) = match wrong {
            Wrong::Refusal => ("bare_refusal", "the output refuses and says nothing else".to_owned()),
            Wrong::Echo => ("echo", "the output says the ask again and nothing else".to_owned()),
            Wrong::OffSubject => ("off_subject", format!("the output uses none of the {total} terms of the ask")),
            Wrong::BothMeasures => (
                "low_relevance",
                format!("{used} of {total} terms of the ask, and few sentences hang together with it"),
            ),
        };
        let pattern = Evidence::Pattern { name: name.to_owned(), count: 1 };
        Outcome::Fail(Finding::new(0.0, message).with([vec![pattern], evidence].concat()))
    }
}

/// The threshold of the overlap, and who set it or that of the other measure.
fn threshold(knobs: &Knobs) -> (f64, ThresholdSource) {
    let (min, source) = knobs.number(&OVERLAP_MIN);
    let (_, other) = knobs.number(&CONSISTENCY_MIN);
    (min, if source == ThresholdSource::Default { other } else { source })
}

fn is_refusal(said: &str) -> bool {
    let opening = head(said, OPENING_BYTES_MAX);
    opening.len() == said.len()
        && opening.split_whitespace().nth(REFUSAL_WORDS_MAX).is_none()
        && REFUSES.is_match(opening)
}

/// The words of the ask again, in order and with little else; or a sentence that only says what was asked.
fn is_echo(case: &Case<'_>) -> bool {
    let (ask, said) = (case.input().text().trim(), case.said().trim());
    if said.len() > ask.len() + ask.len() / 5 + 60 || ask.len() > OPENING_BYTES_MAX {
        return false;
    }
    let keys = |text: &str| words(text).map(|word| word.key()).collect::<Vec<u64>>();
    let (asked, told) = (keys(ask), keys(said));
    let fifth = asked.len() / 5;
    if told.len() <= asked.len() + fifth.max(1) && told.windows(asked.len().max(1)).any(|part| part == asked) {
        return true;
    }
    let asked = case.wanted().keys();
    RESTATES.is_match(said) && terms(case.said()).all(|term| asked.contains(&term.key))
}

/// Whether the answer is about something else. An error says why words cannot tell.
fn off_subject(
    case: &Case<'_>,
    knobs: &Knobs,
    used: usize,
    total: usize,
    source: ThresholdSource,
) -> Result<Option<Wrong>, &'static str> {
    let telling = used > 0 && shares_more_than_chance(case);
    if telling && source == ThresholdSource::Default {
        return Ok(None);
    }
    let (connected, sentences) = consistency(case, knobs.number(&WORDS_MIN).0)?;
    let share = number(used) / number(total.max(1));
    let hangs = number(connected) / number(sentences.max(1));
    let both = share < knobs.number(&OVERLAP_MIN).0 && hangs < knobs.number(&CONSISTENCY_MIN).0;
    if both && source != ThresholdSource::Default {
        return Ok(Some(Wrong::BothMeasures));
    }
    if telling {
        return Ok(None);
    }
    let (ask, said) = (case.input().text(), head(case.said(), OPENING_BYTES_MAX));
    let spoken = |text: &str| language(words(text));
    let foreign = spoken(ask).zip(spoken(said)).is_some_and(|(one, other)| one != other);
    if foreign || is_dense(ask) != is_dense(said) {
        return Err("the ask and the output are in different languages");
    }
    Ok((!has_relative(case)).then_some(Wrong::OffSubject))
}

/// What models say of themselves in any answer, whatever was asked.
static OF_ITSELF: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the pattern is a constant, and a test compiles it")]
    Regex::new(r"(?i)(?-u:\b)(?:as )?an? (?:ai|artificial intelligence)(?: language)?(?: model| assistant)?(?-u:\b)|language model")
        .expect("a constant pattern compiles")
});

/// Whether a term that ask and answer share is more than a short number, such as that of a list item, or what a model
/// says of itself.
fn shares_more_than_chance(case: &Case<'_>) -> bool {
    let said = case.said();
    let aside = OnceCell::new();
    let is_aside = |start: usize| {
        let found = || OF_ITSELF.find_iter(said).map(|found| found.range()).collect::<Vec<_>>();
        may_be_aside(said, start) && aside.get_or_init(found).iter().any(|bytes| bytes.contains(&start))
    };
    case.wanted().found(said).any(|term| {
        let (Ok(start), Ok(end)) = (usize::try_from(term.start), usize::try_from(term.end)) else { return false };
        let short_number = term.end - term.start < NUMBER_DIGITS_MIN
            && said.get(start..end).is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        !short_number && !is_aside(start)
    })
}

/// Whether a word may belong to what a model says of itself: each of its words begins with one of these letters, and
/// another word begins inside one of them only.
fn may_be_aside(said: &str, start: usize) -> bool {
    let at = |at: usize| said.as_bytes().get(at).copied().unwrap_or(b' ').to_ascii_lowercase();
    matches!(at(start), b'a' | b'i' | b'l' | b'm')
        || start.checked_sub(1).is_some_and(|before| at(before).is_ascii_alphabetic())
}

/// Whether a text is mostly in letters beyond ASCII.
fn is_dense(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic()).take(400);
    let (mut all, mut beyond) = (0_u32, 0_u32);
    for c in letters {
        all += 1;
        beyond += u32::from(!c.is_ascii());
    }
    beyond * 2 > all
}

/// Whether any word of the answer begins as a term of the ask does: `benefit`, `beneficial`.
fn has_relative(case: &Case<'_>) -> bool {
    let family = |text: &str| -> Option<String> {
        let end = text.char_indices().nth(FAMILY_LETTERS).map(|(at, _)| at)?;
        Some(text.get(..end)?.to_lowercase())
    };
    let at = |text: &str, start: u32, end: u32| -> Option<String> {
        family(text.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)?)
    };
    let ask = case.input().text();
    let families: HashSet<String> =
        case.asked_terms().iter().filter_map(|term| at(ask, term.start, term.end)).collect();
    let said = case.said();
    terms(said).take(TERMS_MAX).filter_map(|term| at(said, term.start, term.end)).any(|start| families.contains(&start))
}
