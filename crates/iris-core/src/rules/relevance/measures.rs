//! The two measures of relevance, which a rule of their own and the rule over both read.

use crate::rules::case::OPENING_BYTES;
use crate::rules::measure::number;
use crate::rules::{Case, Knob};
use crate::text::{head, stretches, terms};

/// The share of the ask's terms that the answer uses.
pub(super) const OVERLAP_MIN: Knob = Knob { name: "keyword_overlap", default: 0.35, lowest: 0.0, highest: 1.0 };
/// The share of the answer's sentences that hang together with the ask.
pub(super) const CONSISTENCY_MIN: Knob =
    Knob { name: "topic_consistency", default: 1.0 / 3.0, lowest: 0.0, highest: 1.0 };
/// How many long words an answer has at least for its sentences to be looked at.
pub(super) const WORDS_MIN: Knob =
    Knob { name: "topic_consistency_min_words", default: 6.0, lowest: 1.0, highest: 1000.0 };

/// The share of the answer's sentences that share a term with the ask or with a sentence that does; a list hangs on the
/// sentence that leads in. Nothing when there is nothing to compare, with the reason.
pub(super) fn consistency(case: &Case<'_>, words_min: f64) -> Result<(usize, usize), &'static str> {
    let mut seen = case.wanted().keys().clone();
    if seen.is_empty() {
        return Err("the ask names no subject");
    }
    let said = case.said();
    if terms(said).next().is_none() {
        return Err("the output names no subject");
    }
    // No more of them are counted than are wanted.
    let mut long = terms(said).filter(|term| term.end - term.start >= 4).zip(1..).map(|(_, count)| number(count));
    if !long.any(|count| count >= words_min) {
        return Err("the output is too short to have a subject of its own");
    }
    let (mut connected, mut sentences, mut next) = (0, 0, 0);
    let mut lead = false;
    let terms = case.opening_terms();
    for stretch in stretches(head(said, OPENING_BYTES)) {
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
