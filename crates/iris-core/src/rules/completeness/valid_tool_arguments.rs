//! Were the tools called with arguments that they take?
//!
//! *Checks* every call against the catalogue of tools: the tool is in it, and its arguments fit its schema. A call that
//! the same tool received right later on was put right. *Matters* because an invented tool or argument does nothing and
//! looks like work. *Cannot see* arguments that fit and are wrong, and what is not in the catalogue's schemas.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::model::{Evidence, ToolCall};
use crate::rules::catalogue::{Offer, offers};
use crate::rules::measure::number;
use crate::rules::schema::check;
use crate::rules::{
    Bundle, Case, FailureClass, Finding, Kind, Knob, Knobs, Mechanism, Need, Outcome, Question, Rule, RuleMeta,
    ThresholdSource, count,
};

/// See the module.
pub struct ValidToolArguments;

/// 0 turns the rule off: it skips.
const ON: Knob = Knob { name: "validate_tool_arguments", default: 1.0, lowest: 0.0, highest: 1.0 };

static META: RuleMeta = RuleMeta {
    name: Cow::Borrowed("valid_tool_arguments"),
    bundle: Bundle::Completeness,
    description: Cow::Borrowed(
        "Every tool call names a tool of the catalogue and fits its schema, or is put right later.",
    ),
    suggestion: Cow::Borrowed(
        "Show the model the schema of the tool, and return what was wrong so that it can try again.",
    ),
    weight: 1.0,
    kind: Kind::Detection,
    mechanism: Mechanism::Formula,
    needs: &[Need::ToolCalls, Need::ToolsCatalogue],
    reads: &[],
    question: Question::ToolUseCorrect,
    classes: &[FailureClass::InvalidToolCall],
    version: 1,
    critical: false,
    stands: false,
    knobs: &[ON],
};

/// How large arguments may be to be checked, counted in values.
const VALUES_MAX: usize = 5_000;
/// How much of a name of a fault's place is shown.
const POINTER_BYTES_MAX: usize = 120;

/// What was found of one call.
enum Call {
    Valid,
    Unknown,
    Invalid(String),
    Unchecked,
}

impl Rule for ValidToolArguments {
    fn meta(&self) -> &RuleMeta {
        &META
    }

    fn judge(&self, case: &Case<'_>, knobs: &Knobs) -> Outcome {
        if knobs.number(&ON).0 == 0.0 {
            return Outcome::not_applicable("validate_tool_arguments is off");
        }
        let Some(catalogue) = case.subject().tools_catalogue else {
            return Outcome::not_applicable("tools_catalogue not supplied");
        };
        let offers = offers(catalogue);
        if offers.is_empty() {
            return Outcome::not_applicable("the catalogue holds no tool that can be read");
        }
        let offered: HashMap<&str, Offer<'_>> = offers.iter().rev().map(|offer| (offer.name, *offer)).collect();
        let calls: Vec<Call> = case.steps().iter().map(|step| look(step, &offered)).collect();
        let unchecked = calls.iter().filter(|call| matches!(call, Call::Unchecked)).count();
        if unchecked == calls.len() {
            return Outcome::not_applicable("no call has a schema to be checked against");
        }
        finding(case.steps(), &calls, unchecked)
    }
}

fn finding(steps: &[ToolCall], calls: &[Call], unchecked: usize) -> Outcome {
    let mut last_valid: HashMap<&str, usize> = HashMap::new();
    for (at, (step, call)) in steps.iter().zip(calls).enumerate() {
        if matches!(call, Call::Valid) {
            last_valid.insert(&step.tool_name, at);
        }
    }
    let mut evidence = Vec::new();
    let (mut broken, mut retried) = (0, 0);
    for (at, (step, call)) in steps.iter().zip(calls).enumerate() {
        let label = match call {
            Call::Unknown => "not_in_catalogue".to_owned(),
            Call::Invalid(label) => label.clone(),
            Call::Valid | Call::Unchecked => continue,
        };
        let recovered = matches!(call, Call::Invalid(_))
            && last_valid.get(step.tool_name.as_str()).is_some_and(|later| *later > at);
        if recovered {
            retried += 1;
            continue;
        }
        broken += 1;
        evidence.push(Evidence::ToolCall { index: at, tool_name: step.tool_name.clone(), label });
    }
    let mut counts = vec![
        count("unrecovered_invalid_calls", "calls", number(broken), Some((0.0, ThresholdSource::Rule))),
        count("calls_checked", "calls", number(calls.len() - unchecked), None),
    ];
    if unchecked > 0 {
        counts.push(count("calls_unchecked", "calls", number(unchecked), None));
    }
    if retried > 0 {
        counts.push(count("retries_after_invalid_call", "calls", number(retried), None));
    }
    let evidence = [counts, evidence].concat();
    if broken == 0 {
        let message = format!("{} calls fit the catalogue", calls.len() - unchecked);
        return Outcome::Pass(Finding::new(1.0, message).with(evidence));
    }
    let score = (1.0 - number(broken) / number(calls.len())).max(0.0);
    let message = format!("{broken} of {} calls do not fit the catalogue", calls.len());
    Outcome::Fail(Finding::new(score, message).with(evidence))
}

fn look(step: &ToolCall, offered: &HashMap<&str, Offer<'_>>) -> Call {
    let Some(offer) = offered.get(step.tool_name.as_str()) else { return Call::Unknown };
    let Some(schema) = offer.schema else { return Call::Unchecked };
    let parsed;
    let arguments = match &step.input {
        None | Some(Value::Null) => &Value::Object(Map::new()),
        // Arguments travel as text in some APIs.
        Some(Value::String(text)) if text.trim_start().starts_with('{') => {
            parsed = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()));
            &parsed
        }
        Some(value) => value,
    };
    let mut left = VALUES_MAX;
    if !is_small(arguments, &mut left) {
        return Call::Unchecked;
    }
    match check(schema, arguments) {
        Ok(None) => Call::Valid,
        Ok(Some(fault)) => {
            let pointer = crate::text::head(&fault.pointer, POINTER_BYTES_MAX);
            Call::Invalid(format!("{}{pointer} {}", if pointer.is_empty() { "/" } else { "" }, fault.keyword))
        }
        Err(_) => Call::Unchecked,
    }
}

fn is_small(value: &Value, left: &mut usize) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter().all(|item| is_small(item, left)),
        Value::Object(fields) => fields.values().all(|field| is_small(field, left)),
        _ => true,
    }
}
