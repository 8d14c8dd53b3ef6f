//! Were the tools called that were expected?
//!
//! *Checks* the calls against the expected ones, by name and, where the expectation has arguments, by arguments, in one
//! of five ways. *Matters* where a deployment knows the steps of a task. *Cannot see* whether other steps would do.

use std::borrow::Cow;

use serde_json::Value;

use crate::model::{Evidence, ToolCall};
use crate::rules::measure::number;
use crate::rules::schema::equal;
use crate::rules::{
    Bundle, Case, FailureClass, Finding, Kind, Knobs, Mechanism, Need, Outcome, Question, Rule, RuleMeta, STEPS_MAX,
    ThresholdSource, count,
};

/// See the module.
pub struct ToolSequence;

static META: RuleMeta = RuleMeta {
    name: Cow::Borrowed("tool_sequence"),
    bundle: Bundle::Completeness,
    description: Cow::Borrowed("The tools were called as expected_trajectory says, in the way its mode says."),
    suggestion: Cow::Borrowed("Compare the calls with the expected ones; correct the agent, or the expectation."),
    weight: 1.0,
    kind: Kind::Policy,
    mechanism: Mechanism::Formula,
    // An explicit empty list of calls is judged, so calls are read and not needed: see `judge`.
    needs: &[Need::ExpectedTrajectory],
    reads: &[Need::ToolCalls],
    question: Question::Complete,
    classes: &[FailureClass::WrongTrajectory],
    version: 1,
    critical: false,
    stands: false,
    knobs: &[],
};

/// What the score loses when there are calls that nothing expects.
const UNEXPECTED_COST: f64 = 0.25;

/// How calls are compared with expectations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The same calls in the same order and no others.
    Strict,
    /// The same calls in any order and no others.
    Unordered,
    /// No call but expected ones.
    Subset,
    /// Every expected call, in any order.
    Superset,
    /// Every expected call, in order; others may lie between.
    OrderedSubset,
}

impl Mode {
    fn read(name: &str) -> Option<Self> {
        Some(match name {
            "strict" => Self::Strict,
            "unordered" => Self::Unordered,
            "subset" => Self::Subset,
            "superset" => Self::Superset,
            "ordered_subset" => Self::OrderedSubset,
            _ => return None,
        })
    }
}

/// One expected call.
struct Expected<'a> {
    name: &'a str,
    input: Option<&'a Value>,
}

impl Expected<'_> {
    fn fits(&self, call: &ToolCall, exact: bool) -> bool {
        if self.name != call.tool_name {
            return false;
        }
        let Some(wanted) = self.input else { return true };
        let given = parsed(call.input.as_ref().unwrap_or(&Value::Null));
        if exact { equal(&spaced(wanted), &spaced(&given)) } else { holds(&given, wanted, 0) }
    }
}

impl Rule for ToolSequence {
    fn meta(&self) -> &RuleMeta {
        &META
    }

    fn judge(&self, case: &Case<'_>, _: &Knobs) -> Outcome {
        let Some(trajectory) = case.subject().expected_trajectory else {
            return Outcome::not_applicable("expected_trajectory not supplied");
        };
        let expected = match expected(trajectory) {
            Ok(expected) => expected,
            Err(why) => return Outcome::not_applicable(why),
        };
        if case.subject().tool_calls.is_none() {
            return Outcome::not_applicable("tool_calls not supplied");
        }
        let text = |key: &str| trajectory.get(key).and_then(Value::as_str);
        let Some(mode) = Mode::read(text("mode").unwrap_or("ordered_subset")) else {
            return Outcome::not_applicable("expected_trajectory.mode is none of the five modes");
        };
        let exact = text("args") == Some("exact");
        finding(mode, &compare(mode, &expected, case.steps(), exact), case.steps())
    }
}

fn expected(trajectory: &Value) -> Result<Vec<Expected<'_>>, &'static str> {
    let list = match trajectory {
        Value::Array(list) => Some(list),
        Value::Object(fields) => fields.get("tool_calls").and_then(Value::as_array),
        _ => None,
    };
    let list = list.filter(|list| !list.is_empty()).ok_or("expected_trajectory lists no tool calls")?;
    let read = |value: &'_ Value| -> Option<()> { value.get("tool_name").or(value.get("name"))?.as_str().map(drop) };
    if list.len() > STEPS_MAX || list.iter().any(|value| !value.is_string() && read(value).is_none()) {
        return Err("expected_trajectory.tool_calls cannot be read");
    }
    let expected = list.iter().map(|value| match value {
        Value::String(name) => Expected { name, input: None },
        _ => Expected {
            name: value.get("tool_name").or(value.get("name")).and_then(Value::as_str).unwrap_or_default(),
            input: value.get("input").filter(|input| !input.is_null()),
        },
    });
    Ok(expected.collect())
}

/// Which expectations and which calls found each other.
struct Compared {
    expected: Vec<bool>,
    calls: Vec<bool>,
}

fn compare(mode: Mode, expected: &[Expected<'_>], calls: &[ToolCall], exact: bool) -> Compared {
    let mut met = Compared { expected: vec![false; expected.len()], calls: vec![false; calls.len()] };
    match mode {
        Mode::Strict => {
            for (at, (wanted, call)) in expected.iter().zip(calls).enumerate() {
                if wanted.fits(call, exact) {
                    met.meet(at, at);
                }
            }
        }
        Mode::OrderedSubset => {
            let mut from = 0;
            for (at, wanted) in expected.iter().enumerate() {
                let found = calls.iter().enumerate().skip(from).find(|(_, call)| wanted.fits(call, exact));
                if let Some((call, _)) = found {
                    met.meet(at, call);
                    from = call + 1;
                }
            }
        }
        Mode::Unordered => {
            // Those with arguments choose first: those without take what is left.
            let (particular, any): (Vec<_>, Vec<_>) =
                (0..expected.len()).partition(|at| expected.get(*at).is_some_and(|one| one.input.is_some()));
            for at in particular.into_iter().chain(any) {
                let Some(wanted) = expected.get(at) else { continue };
                let free = |(call, step): &(usize, &ToolCall)| {
                    !met.calls.get(*call).copied().unwrap_or(true) && wanted.fits(step, exact)
                };
                if let Some((call, _)) = calls.iter().enumerate().find(free) {
                    met.meet(at, call);
                }
            }
        }
        Mode::Subset | Mode::Superset => {
            for (at, wanted) in expected.iter().enumerate() {
                for (call, _) in calls.iter().enumerate().filter(|(_, step)| wanted.fits(step, exact)) {
                    met.meet(at, call);
                }
            }
        }
    }
    met
}

impl Compared {
    fn meet(&mut self, expected: usize, call: usize) {
        for (list, at) in [(&mut self.expected, expected), (&mut self.calls, call)] {
            if let Some(there) = list.get_mut(at) {
                *there = true;
            }
        }
    }
}

fn finding(mode: Mode, met: &Compared, calls: &[ToolCall]) -> Outcome {
    let matched = met.expected.iter().filter(|met| **met).count();
    let total = met.expected.len();
    let missing = total - matched;
    let unexpected = met.calls.iter().filter(|met| !**met).count();
    let (all, others) = match mode {
        Mode::Strict | Mode::Unordered => (true, false),
        Mode::Subset => (false, false),
        Mode::Superset | Mode::OrderedSubset => (true, true),
    };
    let passes = (!all || missing == 0) && (others || unexpected == 0);
    let mut evidence =
        vec![count("matched_calls", "calls", number(matched), Some((number(total), ThresholdSource::Call)))];
    if !others {
        evidence.push(count("unexpected_calls", "calls", number(unexpected), Some((0.0, ThresholdSource::Call))));
        let stray = calls.iter().zip(&met.calls).enumerate().filter(|(_, (_, met))| !**met);
        evidence.extend(stray.map(|(index, (call, _))| Evidence::ToolCall {
            index,
            tool_name: call.tool_name.clone(),
            label: "unexpected_call".to_owned(),
        }));
    }
    if passes {
        return Outcome::Pass(Finding::new(1.0, format!("{matched} of {total} expected calls")).with(evidence));
    }
    let penalty = if !others && unexpected > 0 { UNEXPECTED_COST } else { 0.0 };
    let share = if all { number(matched) / number(total) } else { 1.0 };
    let also = if others || unexpected == 0 { String::new() } else { format!(", {unexpected} that nothing expects") };
    let message = format!("{matched} of {total} expected calls{also}");
    Outcome::Fail(Finding::new((share - penalty).max(0.0), message).with(evidence))
}

/// Arguments that travel as text, as a value.
fn parsed(value: &Value) -> Value {
    match value {
        Value::String(text) if text.trim_start().starts_with(['{', '[']) => {
            serde_json::from_str(text).unwrap_or_else(|_| value.clone())
        }
        _ => value.clone(),
    }
}

/// White space within texts does not tell calls apart.
fn spaced(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.split_whitespace().collect::<Vec<_>>().join(" ")),
        Value::Array(items) => items.iter().map(spaced).collect(),
        Value::Object(fields) => fields.iter().map(|(name, field)| (name.clone(), spaced(field))).collect(),
        _ => value.clone(),
    }
}

/// Whether `given` holds all that is `wanted`: of an object its fields, of anything else the same. Values come from
/// parsers that bound their depth.
fn holds(given: &Value, wanted: &Value, depth: usize) -> bool {
    match (given, wanted) {
        (Value::Object(given), Value::Object(wanted)) if depth < 64 => {
            wanted.iter().all(|(name, value)| given.get(name).is_some_and(|there| holds(there, value, depth + 1)))
        }
        _ => equal(given, wanted),
    }
}
