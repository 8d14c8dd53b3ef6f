//! Was there an answer at all?
//!
//! *Checks* that an output that was sent shows something: not only white space, invisible characters or fillers.
//! *Matters* because an empty answer passes every rule that looks for something bad. *Cannot see* an output that was
//! never sent (content capture off): that is missing evidence, not a blank answer.

use std::borrow::Cow;

use serde_json::json;

use crate::model::Evidence;
use crate::rules::{
    Bundle, Case, FailureClass, Finding, Kind, Knobs, Mechanism, Need, Outcome, Question, Rule, RuleMeta,
};
use crate::text::is_blank;

/// See the module.
pub struct NonEmptyOutput;

static META: RuleMeta = RuleMeta {
    name: Cow::Borrowed("non_empty_output"),
    bundle: Bundle::Completeness,
    description: Cow::Borrowed("The output shows something: not only white space or invisible characters."),
    suggestion: Cow::Borrowed(
        "Find out why the agent ended without an answer and return one, or an error that says so.",
    ),
    weight: 2.0,
    kind: Kind::Policy,
    mechanism: Mechanism::Formula,
    needs: &[Need::Output],
    reads: &[],
    question: Question::Complete,
    classes: &[FailureClass::Format],
    version: 2,
    critical: false,
    stands: false,
    knobs: &[],
};

impl Rule for NonEmptyOutput {
    fn meta(&self) -> &RuleMeta {
        &META
    }

    fn judge(&self, case: &Case<'_>, _: &Knobs) -> Outcome {
        let output = case.subject().output.unwrap_or_default();
        if !is_blank(output) && !is_blank_value(output) {
            return Outcome::Pass(Finding::new(1.0, "the output shows something"));
        }
        let sent = output.chars().count();
        let message = match sent {
            0 => "the output is empty".to_owned(),
            _ => format!("the output shows nothing: {sent} characters, none of them visible"),
        };
        let count = Evidence::Count {
            stat: "visible_characters".to_owned(),
            unit: "characters".to_owned(),
            value: 0.0,
            threshold: None,
            threshold_source: None,
        };
        let value = json!({"stat": "visible_characters", "unit": "characters", "value": 0});
        Outcome::Fail(Finding { value: Some(value), ..Finding::new(0.0, message).with(vec![count]) })
    }
}

/// A JSON text that is nothing but a blank string, or an object or a list of nothing but blank strings.
fn is_blank_value(output: &str) -> bool {
    let trimmed = output.trim();
    if trimmed.len() > 4096 || !trimmed.starts_with(['"', '{', '[']) {
        return false;
    }
    match serde_json::from_str(trimmed) {
        Ok(serde_json::Value::String(text)) => is_blank(&text),
        Ok(serde_json::Value::Array(items)) => {
            !items.is_empty() && items.iter().all(|item| item.as_str().is_some_and(is_blank))
        }
        Ok(serde_json::Value::Object(fields)) => {
            !fields.is_empty() && fields.values().all(|value| value.as_str().is_some_and(is_blank))
        }
        _ => false,
    }
}
