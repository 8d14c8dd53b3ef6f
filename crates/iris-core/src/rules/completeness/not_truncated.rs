//! Was the answer cut off?
//!
//! *Checks* the reason for which the model stopped, where it is known, and the end of the output itself: a code fence or
//! JSON that stays open, a last line that ends with a comma, an article, an open bracket, or no full stop where the
//! others have one. *Matters* because a cut answer reads well until its end, and a program that reads it does not.
//! *Cannot see* a cut after a full stop, or inside a list, a verse or a program whose lines have no ends.

use std::borrow::Cow;

use crate::model::Evidence;
use crate::rules::{
    Bundle, Case, FailureClass, Finding, Kind, Knobs, Mechanism, Need, Outcome, Question, Rule, RuleMeta,
};
use crate::text::{Cut, cut};

/// See the module.
pub struct NotTruncated;

static META: RuleMeta = RuleMeta {
    name: Cow::Borrowed("not_truncated"),
    bundle: Bundle::Completeness,
    description: Cow::Borrowed("The output was not cut off: not by the model's limit, and not by its own look."),
    suggestion: Cow::Borrowed("Raise the limit of output tokens, or ask for the rest and join the parts."),
    weight: 1.0,
    kind: Kind::Detection,
    mechanism: Mechanism::Heuristic,
    needs: &[Need::Output],
    reads: &[],
    question: Question::Complete,
    classes: &[FailureClass::IncompleteAsk],
    version: 1,
    critical: false,
    stands: false,
    knobs: &[],
};

/// What providers call the end of the room for an answer, without case and punctuation. Sources: the API references of
/// OpenAI, Anthropic, Google Gemini, Amazon Bedrock, Cohere and Mistral.
const LIMITS: &[&str] = &[
    "length",
    "maxtokens",
    "maxoutputtokens",
    "modellength",
    "modelcontextwindowexceeded",
    "contextlength",
    "tokenlimit",
    "errorlimit",
    "incomplete",
    "truncated",
];
/// What they call an end of the model's own choice.
const ENDS: &[&str] = &["stop", "endturn", "stopsequence", "complete", "completed", "eos", "eostoken", "finish"];

impl Rule for NotTruncated {
    fn meta(&self) -> &RuleMeta {
        &META
    }

    fn judge(&self, case: &Case<'_>, _: &Knobs) -> Outcome {
        let view = case.output();
        if crate::text::is_blank(view.text()) {
            return Outcome::not_applicable("the output is blank");
        }
        let reason = case.subject().finish_reasons.last().map(|reason| plain(reason));
        let among = |names: &[&str]| reason.as_deref().is_some_and(|reason| names.contains(&reason));
        let limit = among(LIMITS);
        // The end of a text that was not read to its end says nothing.
        let sign = if view.is_cut() { None } else { cut(view.text()) };
        let sign = sign.filter(|(sign, _)| sign.is_structural() || limit || !among(ENDS));
        if !limit && sign.is_none() {
            return Outcome::Pass(Finding::new(1.0, "the output ends as a whole one does"));
        }
        let mut evidence = Vec::new();
        if limit {
            evidence.push(Evidence::Pattern { name: "finish_reason_limit".to_owned(), count: 1 });
        }
        if let Some((sign, bytes)) = &sign {
            let span = view.span(bytes.clone());
            evidence.push(Evidence::Span {
                source: "output".to_owned(),
                start: span.start(),
                end: span.end(),
                label: sign.as_str().to_owned(),
                class: Some(FailureClass::IncompleteAsk.as_str().to_owned()),
            });
        }
        let message = match (limit, sign.as_ref().map(|(sign, _)| *sign)) {
            (true, _) => "the model stopped because its room for the answer was used up",
            (_, Some(Cut::OpenFence)) => "a code block is opened and never closed",
            (_, Some(Cut::OpenJson | Cut::OpenDocument)) => "the output is structured and ends in the middle",
            (_, Some(Cut::EmptyItem)) => "the last item of a list is empty",
            _ => "the output ends in the middle of a sentence",
        };
        Outcome::Fail(Finding::new(0.0, message).with(evidence))
    }
}

/// Letters only, in lower case.
fn plain(reason: &str) -> String {
    crate::text::head(reason, 64).chars().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_lowercase()).collect()
}
