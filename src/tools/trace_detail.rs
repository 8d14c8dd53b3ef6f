//! One trace whole: `GET /api/v1/traces/{trace_id}`.

use iris_core::contract::Error;
use iris_core::model::{Evaluation, RawSpan, Row, RowKey, Trace};
use serde_json::{Map, Value, json};

use super::bounds::{Cuts, Measure};
use super::{App, Caller, evaluate_output, trace_id, untrusted};
use crate::store::{Bounds, Part};

/// Spans of one reply.
const SPANS_MAX: usize = 2000;

/// Evaluations of one reply.
const EVALS_MAX: usize = 100;

/// The text of one reply, in bytes; what the evaluations take comes on top.
const REPLY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The text of spans that is read for one reply, in bytes: cut as far as it goes, many times the reply fit.
const SPANS_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The fields that hold text that others wrote.
const UNTRUSTED: &[&str] = &[
    "trace.agent_name",
    "trace.framework",
    "trace.input",
    "trace.output",
    "trace.tool_calls",
    "trace.metadata",
    "trace.session_id",
    "trace.user_id",
    "trace.model",
    "trace.provider",
    "trace.environment",
    "trace.service_version",
    "trace.runs",
    "spans[].name",
    "spans[].status_message",
    "spans[].attributes",
    "spans[].events",
    "spans[].scope",
];

impl App {
    /// The trace with its spans and every evaluation, newest first; an open trace carries its provisional one.
    /// What was cut so that the reply stays bounded is named in `truncated`.
    ///
    /// # Errors
    /// `IRIS_UNKNOWN_TRACE`, `IRIS_INVALID_ARGUMENT` for a malformed id, `IRIS_STORAGE_ERROR`.
    pub async fn trace_detail(&self, id: &str, caller: &Caller) -> Result<Value, Error> {
        let id = trace_id(id)?;
        let backend = self.backend()?;
        let key = RowKey { tenant: caller.tenant.clone(), trace_id: id };
        let open = backend.pipeline.open_trace(&key).await.map_err(|error| self.failed(&error))?;
        let (trace, provisional) = match open {
            Some((trace, evaluation)) => (trace, vec![evaluation]),
            None => {
                let stored = backend.store.trace(&caller.tenant, id).await.map_err(|error| self.failed(&error))?;
                (stored.ok_or_else(|| Error::unknown_trace(&id))?, Vec::new())
            }
        };
        let bounds = Bounds { items: EVALS_MAX, bytes: u64::MAX };
        let stored =
            backend.store.evaluations(&caller.tenant, id, bounds).await.map_err(|error| self.failed(&error))?;
        let bounds = Bounds { items: SPANS_MAX, bytes: SPANS_BYTES_MAX };
        let rows = backend.store.spans(&caller.tenant, id, bounds).await.map_err(|error| self.failed(&error))?;
        // Composing and weighing megabytes is no work for the threads that sockets wait on.
        let written = tokio::task::spawn_blocking(move || detail(&trace, &rows, provisional, stored));
        written.await.map_err(|error| self.unforeseen(&error))?.map_err(|error| self.unforeseen(&error))
    }
}

fn detail(
    trace: &Trace,
    rows: &Part<Row>,
    mut provisional: Vec<Evaluation>,
    stored: Part<Evaluation>,
) -> Result<Value, serde_json::Error> {
    let mut cuts = Cuts::default();
    let mut trace = trace_value(trace)?;
    let mut spans: Vec<Value> = rows.items.iter().filter_map(Row::span).map(span_value).collect();
    // Log records are among the rows and are not shown; of rows that were not read it is not known which they are.
    let spans_total = rows.total.saturating_sub(rows.items.len() - spans.len() + rows.left_out);
    let everything: Vec<&Value> = std::iter::once(&trace).chain(&spans).collect();
    let measure = Measure::fitting(&everything, REPLY_BYTES_MAX, None);
    let mut bytes = measure.size(&trace);
    measure.cut(&mut trace, "trace", &mut cuts);
    let mut kept = 0;
    for (index, span) in spans.iter_mut().enumerate() {
        bytes += measure.size(span);
        if bytes > REPLY_BYTES_MAX {
            break;
        }
        measure.cut(span, &format!("spans[{index}]"), &mut cuts);
        kept = index + 1;
    }
    spans.truncate(kept);
    if kept < spans_total {
        cuts.push(format!("spans[{kept}..{spans_total}]"));
    }
    let evals_total = provisional.len() + stored.total - stored.left_out;
    provisional.extend(stored.items);
    let evals = provisional.iter().take(EVALS_MAX).map(evaluation_value).collect::<Result<Vec<_>, _>>()?;
    if evals.len() < evals_total {
        cuts.push(format!("evals[{}..{evals_total}]", evals.len()));
    }
    for (what, left_out) in [("spans", rows.left_out), ("evals", stored.left_out)] {
        if left_out > 0 {
            cuts.push(format!("{what}: {left_out} left out, their stored rows cannot be read"));
        }
    }
    let mut reply = json!({ "untrusted": untrusted(UNTRUSTED), "trace": trace, "spans": spans, "evals": evals });
    let truncated = cuts.into_names();
    if !truncated.is_empty() {
        reply["truncated"] = json!(truncated);
    }
    Ok(reply)
}

fn evaluation_value(evaluation: &Evaluation) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::to_value(evaluate_output::reply(evaluation))?;
    value["created_at"] = json!(evaluation.created_at);
    Ok(value)
}

fn trace_value(trace: &Trace) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::to_value(trace)?;
    if let Some(fields) = value.as_object_mut() {
        // Whose it is and how far the journal was read are the sidecar's own affairs.
        fields.shift_remove("tenant");
        fields.shift_remove("seen_through");
    }
    Ok(value)
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
