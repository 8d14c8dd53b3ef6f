//! Was the tool called that fits the ask?
//!
//! *Checks* which tools of the catalogue speak of what was asked (name, description, arguments), and whether one that was
//! not called fits the ask much better than all that were. *Matters* because a wrong tool gives a fluent wrong answer.
//! *Cannot see* what a tool really does, and skips when no tool speaks of the ask.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::model::Evidence;
use crate::rules::catalogue::{Offer, offers};
use crate::rules::measure::number;
use crate::rules::{
    Bundle, Case, FailureClass, Finding, Kind, Knob, Knobs, Mechanism, Need, Outcome, Question, Rule, RuleMeta, count,
};
use crate::text::{TermSet, View, head, term, words};

/// See the module.
pub struct ToolChoice;

const MARGIN: Knob = Knob { name: "tool_choice_margin", default: 0.34, lowest: 0.0, highest: 1.0 };
const FIT_MIN: Knob = Knob { name: "tool_choice_min_fit", default: 0.5, lowest: 0.0, highest: 1.0 };

static META: RuleMeta = RuleMeta {
    name: Cow::Borrowed("tool_choice"),
    bundle: Bundle::Relevance,
    description: Cow::Borrowed("No tool that was not called fits the ask much better than those that were."),
    suggestion: Cow::Borrowed("Tell the tools apart in their descriptions, or offer fewer of them."),
    weight: 1.0,
    kind: Kind::Detection,
    mechanism: Mechanism::Heuristic,
    needs: &[Need::Input, Need::ToolCalls, Need::ToolsCatalogue],
    reads: &[],
    question: Question::Relevant,
    classes: &[FailureClass::WrongTool],
    version: 1,
    critical: false,
    stands: false,
    knobs: &[MARGIN, FIT_MIN],
};

/// How many distinct terms an ask has at least to be compared.
const ASK_TERMS_MIN: usize = 2;
/// How much of one description is read.
const DESCRIPTION_BYTES_MAX: usize = 2000;

impl Rule for ToolChoice {
    fn meta(&self) -> &RuleMeta {
        &META
    }

    fn judge(&self, case: &Case<'_>, knobs: &Knobs) -> Outcome {
        let Some(catalogue) = case.subject().tools_catalogue else {
            return Outcome::not_applicable("tools_catalogue not supplied");
        };
        let asked: TermSet = case.asked_terms().iter().map(|term| term.key).collect();
        if asked.len() < ASK_TERMS_MIN {
            return Outcome::not_applicable("the ask names no subject to look for");
        }
        let offers = offers(catalogue);
        let said: Vec<TermSet> = offers.iter().map(|offer| speaks_of(offer, &asked)).collect();
        let actionable: TermSet = said.iter().flatten().copied().collect();
        if actionable.is_empty() {
            return Outcome::not_applicable("no tool of the catalogue speaks of the ask");
        }
        let called: HashSet<&str> = case.steps().iter().map(|step| step.tool_name.as_str()).collect();
        let is_called = |offer: &&Offer<'_>| called.contains(offer.name);
        let total = number(actionable.len());
        let union: TermSet = offers
            .iter()
            .zip(&said)
            .filter(|(offer, _)| is_called(offer))
            .flat_map(|(_, said)| said)
            .copied()
            .collect();
        let fit_called = number(union.len()) / total;
        let uncalled = offers.iter().zip(&said).filter(|(offer, _)| !is_called(offer));
        let best = uncalled
            .map(|(offer, said)| (said.len(), offer.name))
            .max_by(|(one, a), (other, b)| one.cmp(other).then(b.cmp(a)));
        let fit_best = best.map_or(0.0, |(count, _)| number(count) / total);
        let (margin, margin_source) = knobs.number(&MARGIN);
        let (fit_min, fit_source) = knobs.number(&FIT_MIN);
        let gap = (fit_best - fit_called).max(0.0);
        let fires = fit_best >= fit_min && gap >= margin;
        let evidence = vec![
            count("tool_choice_gap", "ratio", gap, Some((margin, margin_source))),
            count("best_uncalled_fit", "ratio", fit_best, Some((fit_min, fit_source))),
        ];
        if !fires {
            let message = "no tool that was left out fits the ask much better";
            return Outcome::Pass(Finding::new(1.0, message).with(evidence));
        }
        let chosen = case.steps().iter().enumerate().map(|(index, step)| Evidence::ToolCall {
            index,
            tool_name: step.tool_name.clone(),
            label: "fits_the_ask_less".to_owned(),
        });
        let evidence = evidence.into_iter().chain(chosen).collect();
        Outcome::Fail(Finding::new(1.0 - gap, "a tool that was not called fits the ask much better").with(evidence))
    }
}

/// Which terms of the ask a tool speaks of.
fn speaks_of(offer: &Offer<'_>, asked: &TermSet) -> TermSet {
    let name: String = offer.name.chars().map(|c| if matches!(c, '_' | '-' | '.' | '/') { ' ' } else { c }).collect();
    let arguments: Vec<&str> = offer.arguments().take(64).collect();
    let arguments = arguments.join(" ").replace(['_', '-'], " ");
    let description = View::folded(head(offer.description, DESCRIPTION_BYTES_MAX));
    let all = format!("{name}\n{}\n{arguments}", description.text());
    words(&all).filter_map(|word| term(&word)).filter(|term| asked.contains(term)).collect()
}
