//! What callers send of agents' texts, and what models answered about them, without what redaction takes out.

use std::sync::Arc;

use iris_core::contract::Error;
use iris_core::evaluate::Judged;
use iris_core::redact::Redactor;
use serde_json::{Map, Value};

use super::App;

/// The tools whose arguments hold what agents said. Rules, filters and statements are the operator's own words.
pub(super) const TEXTS: [&str; 4] = ["log_trace", "evaluate_output", "evaluate_with_llm_judge", "verify_citations"];

/// Fields of arguments that hold an operator's own words, or an id.
const NOT_TEXTS: [&str; 2] = ["trace_id", "custom_rules"];

/// What `log_trace` takes of the content of a run, each kept only when it is named where only some attributes are.
const CONTENT: [&str; 5] = ["input", "output", "tool_calls", "metadata", "tools"];

impl App {
    /// The arguments as they are looked at and kept.
    pub(super) async fn redacted(&self, tool: &str, arguments: Value) -> Result<Value, Error> {
        let Some(redactor) = self.facts.redactor.clone().filter(|_| TEXTS.contains(&tool)) else {
            return Ok(arguments);
        };
        let is_logged = tool == "log_trace";
        self.beside(move || without(&redactor, arguments, is_logged)).await
    }

    /// A judgement as it is kept: a model may repeat what it was asked about, and another process asked it.
    pub(super) async fn redacted_judgement(&self, mut judged: Judged) -> Result<Judged, Error> {
        let Some(redactor) = self.facts.redactor.clone() else { return Ok(judged) };
        self.beside(move || {
            if let Some(masked) = redactor.text(&judged.message) {
                judged.message = masked;
            }
            if let Value::Object(fields) = &mut judged.answered {
                redactor.fields(fields);
            }
            judged
        })
        .await
    }

    /// Beside the sockets: a text may be long.
    async fn beside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
        tokio::task::spawn_blocking(work).await.map_err(|error| self.unforeseen(&error))
    }
}

fn without(redactor: &Arc<Redactor>, mut arguments: Value, is_logged: bool) -> Value {
    let Value::Object(fields) = &mut arguments else { return arguments };
    if is_logged {
        keep(redactor, fields);
    }
    let whole: Vec<(String, Value)> = NOT_TEXTS.iter().filter_map(|name| fields.remove_entry(*name)).collect();
    redactor.fields(fields);
    fields.extend(whole);
    arguments
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
