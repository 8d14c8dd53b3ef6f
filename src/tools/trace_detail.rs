//! One trace whole: `GET /api/v1/traces/{trace_id}`.

use std::sync::Arc;

use iris_core::assemble::{self, Conversation};
use iris_core::contract::{Error, Scope};
use iris_core::evaluate::{self, Given};
use iris_core::model::{Evaluation, RawSpan, Row, RowKey, Trace};
use serde_json::{Map, Value, json};

use super::bounds::{Cuts, Measure};
use super::{App, Caller, evaluation_value, mark_evaluations, trace_id, untrusted};
use crate::store::{Bounds, Budget, Part, TraceQuery};

/// Spans of one reply.
pub(super) const SPANS_MAX: usize = 2000;

/// Evaluations of one reply.
const EVALS_MAX: usize = 100;

/// The text of a conversation up to which every value is judged whole, in bytes; above, long values are cut.
const CONVERSATION_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The text of one reply, in bytes; what the evaluations take comes on top.
const REPLY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The text of spans that is read for one reply, in bytes: cut as far as it goes, many times the reply fit.
pub(super) const SPANS_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Names of cut values in a reply that a model reads.
const NAMED_MAX: usize = 60;

/// What is told of an evaluation that is shortened.
const SHORT: [&str; 9] =
    ["untrusted", "id", "trace_id", "verdict", "eval_type", "score", "passed", "erased_at", "created_at"];

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
    "trace.cost_parts",
    "trace.notes",
    "conversation.session_id",
    "conversation.input",
    "conversation.output",
    "conversation.tool_calls",
    "spans[].name",
    "spans[].status_message",
    "spans[].attributes",
    "spans[].events",
    "spans[].scope",
];

impl App {
    /// The trace with its spans and every evaluation, newest first; an open trace carries its provisional one. A model
    /// call without an agent around it carries its conversation too, put together and judged as one trajectory. What was cut so that the reply stays bounded is named in `truncated`.
    ///
    /// # Errors
    /// `IRIS_UNKNOWN_TRACE`, `IRIS_INVALID_ARGUMENT` for a malformed id, `IRIS_STORAGE_ERROR`.
    pub async fn trace_detail(&self, id: &str, caller: &Caller) -> Result<Value, Error> {
        self.detail_of(id, caller).await.map(|detail| self.shown(detail))
    }

    async fn detail_of(&self, id: &str, caller: &Caller) -> Result<Value, Error> {
        caller.check("traces", Scope::Read)?;
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
        let others = self.same_conversation(&trace, caller).await?;
        let ruleset = self.rulebook.snapshot(&caller.tenant);
        let (settings, now) = (Arc::clone(&self.settings), (self.world.now)());
        let bound = Bound { bytes: caller.reply_bytes(REPLY_BYTES_MAX), is_strict: caller.is_model() };
        // Composing and weighing megabytes is no work for the threads that sockets wait on.
        let written = tokio::task::spawn_blocking(move || {
            let told = assemble::conversation(&others).map(|told| {
                let evaluation = evaluate::conversation_within(&ruleset, &told.trace, &settings, &Given::at(now));
                (told, evaluation)
            });
            detail(&trace, &rows, provisional, stored, told.as_ref(), bound)
        });
        written.await.map_err(|error| self.unforeseen(&error))?.map_err(|error| self.unforeseen(&error))
    }

    /// The newest traces of the conversation that a bare model call belongs to, that call among them.
    async fn same_conversation(&self, trace: &Trace, caller: &Caller) -> Result<Vec<Trace>, Error> {
        let Some(session_id) = trace.session_id.clone().filter(|_| assemble::is_bare(trace)) else {
            return Ok(Vec::new());
        };
        let query = TraceQuery {
            session_id: Some(session_id),
            limit: u32::try_from(assemble::CONVERSATION_TRACES_MAX).unwrap_or(u32::MAX),
            ..TraceQuery::default()
        };
        let budget = Budget { bytes: CONVERSATION_BYTES_MAX, shrink: |document| Measure::CUT.cut_field(document) };
        let page = self.backend()?.store.traces(&caller.tenant, &query, budget).await;
        let page = page.map_err(|error| self.failed(&error))?;
        Ok(std::iter::once(trace.clone()).chain(page.rows.into_iter().map(|row| row.trace)).collect())
    }
}

fn detail(
    trace: &Trace,
    rows: &Part<Row>,
    mut provisional: Vec<Evaluation>,
    stored: Part<Evaluation>,
    told: Option<&(Conversation, Evaluation)>,
    bound: Bound,
) -> Result<Value, serde_json::Error> {
    let mut cuts = if bound.is_strict { Cuts::naming(NAMED_MAX) } else { Cuts::default() };
    let evals_total = provisional.len() + stored.total - stored.left_out;
    provisional.extend(stored.items);
    let mut evals = provisional.iter().take(EVALS_MAX).map(evaluation_value).collect::<Result<Vec<_>, _>>()?;
    let bytes_max =
        if bound.is_strict { bound.bytes - told_short(&mut evals, bound.bytes, &mut cuts) } else { bound.bytes };
    let mut trace = trace_value(trace)?;
    let mut spans: Vec<Value> = rows.items.iter().filter_map(Row::span).map(span_value).collect();
    // Log records are among the rows and are not shown; of rows that were not read it is not known which they are.
    let spans_total = rows.total.saturating_sub(rows.items.len() - spans.len() + rows.left_out);
    let mut conversation = told.map(|(told, _)| conversation_value(told));
    let everything: Vec<&Value> = std::iter::once(&trace).chain(&conversation).chain(&spans).collect();
    let measure = Measure::fitting(&everything, bytes_max, None);
    let is_large = everything.iter().map(|value| measure.size(value)).sum::<usize>() > bytes_max;
    if bound.is_strict && is_large && !spans.is_empty() {
        spans.iter_mut().for_each(skeleton);
        cuts.push("spans[].attributes, spans[].events: get_traces with part /spans/0 and so on reads them".to_owned());
    }
    let mut bytes = measure.size(&trace);
    measure.cut(&mut trace, "trace", &mut cuts);
    if let Some(conversation) = &mut conversation {
        bytes += measure.size(conversation);
        measure.cut(conversation, "conversation", &mut cuts);
    }
    let mut kept = 0;
    for (index, span) in spans.iter_mut().enumerate() {
        bytes += measure.size(span);
        if bytes > bytes_max {
            break;
        }
        measure.cut(span, &format!("spans[{index}]"), &mut cuts);
        kept = index + 1;
    }
    spans.truncate(kept);
    if kept < spans_total {
        cuts.push(format!("spans[{kept}..{spans_total}]"));
    }
    if evals.len() < evals_total {
        cuts.push(format!("evals[{}..{evals_total}]", evals.len()));
    }
    for (what, left_out) in [("spans", rows.left_out), ("evals", stored.left_out)] {
        if left_out > 0 {
            cuts.push(format!("{what}: {left_out} left out, their stored rows cannot be read"));
        }
    }
    let mut reply = json!({ "untrusted": untrusted(UNTRUSTED), "trace": trace, "spans": spans, "evals": evals });
    if let (Some(mut conversation), Some((_, evaluation))) = (conversation, told) {
        let mut told = vec![evaluation_value(evaluation)?];
        if bound.is_strict {
            told_short(&mut told, 0, &mut Cuts::default());
        }
        conversation["evaluation"] = told.pop().unwrap_or_default();
        reply["conversation"] = conversation;
        mark_evaluations(&mut reply, "conversation.evaluation");
    }
    mark_evaluations(&mut reply, "evals[]");
    let truncated = cuts.into_names();
    if !truncated.is_empty() {
        reply["truncated"] = json!(truncated);
    }
    Ok(reply)
}

/// How large a reply may be.
#[derive(Debug, Clone, Copy)]
struct Bound {
    bytes: usize,
    /// A model reads it: nothing comes on top.
    is_strict: bool,
}

/// Shortens evaluations to their verdicts, all but the newest when that takes less than half of the reply. The bytes
/// that they take.
fn told_short(evals: &mut [Value], bytes_max: usize, cuts: &mut Cuts) -> usize {
    let newest_fits = evals.first().is_some_and(|newest| Measure::whole(newest) <= bytes_max / 2);
    let kept = usize::from(newest_fits);
    for evaluation in evals.iter_mut().skip(kept) {
        if let Value::Object(fields) = evaluation {
            fields.retain(|name, _| SHORT.contains(&name.as_str()));
        }
    }
    if evals.len() > kept {
        cuts.push(format!("evals[{kept}..{}]: their results; iris://evaluations/{{id}} has them", evals.len()));
    }
    evals.iter().map(Measure::whole).sum::<usize>().min(bytes_max)
}

/// Leaves of a span what says which it is, how it ended and how much there is.
fn skeleton(span: &mut Value) {
    let bytes = Measure::whole(span);
    if let Value::Object(fields) = span {
        fields.retain(|name, _| !matches!(name.as_str(), "attributes" | "events" | "scope"));
        fields.insert("bytes".to_owned(), json!(bytes));
    }
}

/// What several bare model calls of one conversation tell together.
fn conversation_value(told: &Conversation) -> Value {
    let trace = &told.trace;
    json!({
        "session_id": told.session_id,
        "trace_ids": told.trace_ids,
        "input": trace.input,
        "output": trace.output,
        "tool_calls": trace.tool_calls,
        "latency_ms": trace.latency_ms,
        "token_usage": trace.token_usage,
        "cost_usd": trace.cost_usd,
        "cost_source": trace.cost_source,
    })
}

pub(super) fn trace_value(trace: &Trace) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::to_value(trace)?;
    if let Some(fields) = value.as_object_mut() {
        // Whose it is and how far the journal was read are the sidecar's own affairs.
        fields.shift_remove("tenant");
        fields.shift_remove("seen_through");
    }
    Ok(value)
}

pub(super) fn span_value(span: &RawSpan) -> Value {
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
