//! One trace whole: `GET /api/v1/traces/{trace_id}`.

use iris_core::contract::Error;
use iris_core::model::{Evaluation, RawSpan, Row, RowKey, Trace};
use serde_json::{Map, Value, json};

use super::{App, Caller, evaluate_output, get_traces, to_value, trace_id};

impl App {
    /// The trace with its spans and every evaluation, newest first; an open trace carries its provisional one.
    ///
    /// # Errors
    /// `IRIS_UNKNOWN_TRACE`, `IRIS_INVALID_ARGUMENT` for a malformed id, `IRIS_STORAGE_ERROR`.
    pub async fn trace_detail(&self, id: &str, caller: &Caller) -> Result<Value, Error> {
        let id = trace_id(id)?;
        let backend = self.backend()?;
        let key = RowKey { tenant: caller.tenant.clone(), trace_id: id };
        let open = backend.pipeline.open_trace(&key).await;
        let (trace, mut evaluations) = match open {
            Some((trace, evaluation)) => (trace, vec![evaluation]),
            None => {
                let stored = backend.store.trace(&caller.tenant, id).await.map_err(|error| self.failed(&error))?;
                (stored.ok_or_else(|| Error::unknown_trace(&id))?, Vec::new())
            }
        };
        evaluations.extend(backend.store.evaluations(&caller.tenant, id).await.map_err(|error| self.failed(&error))?);
        let spans = backend.store.spans(&caller.tenant, id).await.map_err(|error| self.failed(&error))?;
        let evals = evaluations.iter().map(|one| self.evaluation_value(one)).collect::<Result<Vec<_>, _>>()?;
        let spans: Vec<Value> = spans.iter().filter_map(Row::span).map(span_value).collect();
        Ok(
            json!({ "untrusted": get_traces::untrusted(), "trace": self.trace_value(&trace)?, "spans": spans, "evals": evals }),
        )
    }

    fn evaluation_value(&self, evaluation: &Evaluation) -> Result<Value, Error> {
        let mut value = to_value(self, &evaluate_output::reply(evaluation))?;
        value["created_at"] = json!(evaluation.created_at);
        Ok(value)
    }

    fn trace_value(&self, trace: &Trace) -> Result<Value, Error> {
        let mut value = to_value(self, trace)?;
        if let Some(fields) = value.as_object_mut() {
            // Whose it is and how far the journal was read are the sidecar's own affairs.
            fields.shift_remove("tenant");
            fields.shift_remove("seen_through");
        }
        Ok(value)
    }
}

fn span_value(span: &RawSpan) -> Value {
    let mut value = Map::new();
    value.insert("span_id".to_owned(), json!(span.span_id));
    value.insert("parent_span_id".to_owned(), json!(span.parent_span_id));
    value.insert("name".to_owned(), json!(span.name));
    value.insert("kind".to_owned(), json!(span.kind));
    value.insert("status_code".to_owned(), json!(span.status));
    value.insert("status_message".to_owned(), json!(span.status_message));
    value.insert("start_time".to_owned(), json!(span.start));
    value.insert("end_time".to_owned(), if span.end.as_unix_nanos() == 0 { Value::Null } else { json!(span.end) });
    value.insert("attributes".to_owned(), Value::Object(span.attributes.clone()));
    value.insert("events".to_owned(), json!(span.events));
    value.insert("scope".to_owned(), json!(span.scope.name));
    Value::Object(value)
}
