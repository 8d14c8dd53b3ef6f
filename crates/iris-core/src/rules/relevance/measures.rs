//! The two measures of relevance, which a rule of their own and the rule over both read.

use crate::rules::measure::number;
use crate::rules::{Case, Knob};
use crate::text::{Term, TermSet, head, stretches};

/// The share of the ask's terms that the answer uses.
pub(super) const OVERLAP_MIN: Knob = Knob { name: "keyword_overlap", default: 0.35, lowest: 0.0, highest: 1.0 };
/// The share of the answer's sentences that hang together with the ask.
pub(super) const CONSISTENCY_MIN: Knob =
    Knob { name: "topic_consistency", default: 1.0 / 3.0, lowest: 0.0, highest: 1.0 };
/// How many long words an answer has at least for its sentences to be looked at.
pub(super) const WORDS_MIN: Knob =
    Knob { name: "topic_consistency_min_words", default: 6.0, lowest: 1.0, highest: 1000.0 };

/// How much of an answer is looked at for hanging together, from its beginning.
const READ_BYTES_MAX: usize = 16 * 1024;

/// Distinct terms of a list.
pub(super) fn distinct(terms: &[Term]) -> TermSet {
    terms.iter().map(|term| term.key).collect()
}

/// How many distinct terms of the ask the answer uses, and how many there are.
pub(super) fn overlap(case: &Case<'_>) -> (usize, usize) {
    let mut asked = distinct(case.asked_terms());
    let total = asked.len();
    for term in case.said_terms() {
        if asked.is_empty() {
            break;
        }
        asked.remove(&term.key);
    }
    (total - asked.len(), total)
}

/// The share of the answer's sentences that share a term with the ask or with a sentence that does; a list hangs on the
/// sentence that leads in. Nothing when there is nothing to compare, with the reason.
pub(super) fn consistency(case: &Case<'_>, words_min: f64) -> Result<(usize, usize), &'static str> {
    let mut seen = distinct(case.asked_terms());
    if seen.is_empty() {
        return Err("the ask names no subject");
    }
    let terms = case.said_terms();
    if terms.is_empty() {
        return Err("the output names no subject");
    }
    let long = terms.iter().filter(|term| term.end - term.start >= 4).count();
    if number(long) < words_min {
        return Err("the output is too short to have a subject of its own");
    }
    let (mut connected, mut sentences, mut next) = (0, 0, 0);
    let mut lead = false;
    for stretch in stretches(head(case.said(), READ_BYTES_MAX)) {
        let end = u32::try_from(stretch.bytes.end).unwrap_or(u32::MAX);
        let of_sentence = terms.get(next..).unwrap_or_default();
        let count = of_sentence.partition_point(|term| term.start < end);
        next += count;
        let of_sentence = of_sentence.get(..count).unwrap_or_default();
        if of_sentence.is_empty() {
            continue;
        }
        sentences += 1;
        let own = of_sentence.iter().any(|term| seen.contains(&term.key));
        let hangs = own || stretch.item && lead;
        if hangs {
            connected += 1;
            seen.extend(of_sentence.iter().map(|term| term.key));
        }
        if !stretch.item {
            lead = own;
        }
    }
    Ok((connected, sentences))
}
