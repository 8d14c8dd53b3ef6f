//! What callers send of agents' texts, without what redaction takes out.

use iris_core::redact::Redactor;
use serde_json::{Map, Value};

use super::App;

/// The tools whose arguments hold what agents said. Rules, filters and statements are the operator's own words.
const TEXTS: [&str; 4] = ["log_trace", "evaluate_output", "evaluate_with_llm_judge", "verify_citations"];

/// Fields of arguments that hold an operator's own words, or an id.
const NOT_TEXTS: [&str; 2] = ["trace_id", "custom_rules"];

/// What `log_trace` takes of the content of a run, each kept only when it is named where only some attributes are.
const CONTENT: [&str; 5] = ["input", "output", "tool_calls", "metadata", "tools"];

impl App {
    /// The arguments as they are looked at and kept.
    pub(super) fn redacted(&self, tool: &str, mut arguments: Value) -> Value {
        let (Some(redactor), Value::Object(fields)) = (&self.facts.redactor, &mut arguments) else { return arguments };
        if !TEXTS.contains(&tool) {
            return arguments;
        }
        if tool == "log_trace" {
            keep(redactor, fields);
        }
        let whole: Vec<(String, Value)> = NOT_TEXTS.iter().filter_map(|name| fields.remove_entry(*name)).collect();
        redactor.fields(fields);
        fields.extend(whole);
        arguments
    }
}

impl App {
    /// What a model answered, without what redaction takes out: it may repeat what a source says.
    pub(super) fn redact_answer(&self, answered: &mut Value) {
        let Some(redactor) = &self.facts.redactor else { return };
        let redact = |value: Option<&mut Value>| {
            if let Some(Value::String(text)) = value
                && let Some(masked) = redactor.text(text)
            {
                *text = masked;
            }
        };
        redact(answered.get_mut("rationale"));
        for citation in answered.get_mut("citations").and_then(Value::as_array_mut).into_iter().flatten() {
            for place in ["/judge/rationale", "/judge_error/message", "/source/url"] {
                redact(citation.pointer_mut(place));
            }
        }
    }
}

/// Leaves out what is not among the attributes to keep.
fn keep(redactor: &Redactor, fields: &mut Map<String, Value>) {
    if !redactor.is_choosy() {
        return;
    }
    fields.retain(|name, _| !CONTENT.contains(&name.as_str()) || redactor.keeps(name));
    let spans = fields.get_mut("spans").and_then(Value::as_array_mut);
    for span in spans.into_iter().flatten() {
        keep_attributes(redactor, span);
        let events = span.get_mut("events").and_then(Value::as_array_mut);
        events.into_iter().flatten().for_each(|event| keep_attributes(redactor, event));
    }
}

fn keep_attributes(redactor: &Redactor, of: &mut Value) {
    if let Some(attributes) = of.get_mut("attributes").and_then(Value::as_object_mut) {
        attributes.retain(|name, _| redactor.keeps(name));
    }
}
