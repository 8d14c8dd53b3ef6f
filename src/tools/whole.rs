//! One trace with everything that a person looks at: its spans as they were read, and every evaluation.

use iris_core::contract::{Error, Scope};
use iris_core::dialect;
use iris_core::model::{Evaluation, Observation, RawSpan, Reading, Role, Row, RowKey, SpanId, Trace};

use super::trace_detail::{SPANS_BYTES_MAX, SPANS_MAX};
use super::{App, Caller, StoredText, trace_id};
use crate::store::Bounds;

/// Evaluations of one page.
const EVALUATIONS_MAX: usize = 100;

/// A trace as a page shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Whole {
    /// The trace.
    pub trace: Trace,
    /// Its spans by start, each with what was read from it; of most of them without their texts.
    pub spans: Vec<(RawSpan, Reading)>,
    /// How many spans there are, at most.
    pub spans_total: usize,
    /// Its evaluations, newest first; an open trace's provisional one before them.
    pub evaluations: Vec<Evaluation>,
    /// How many there are.
    pub evaluations_total: usize,
    /// Rows that cannot be read.
    pub unreadable: usize,
    /// Whether texts are left out, as `mcp.stored_text` asks for.
    pub is_omitted: bool,
}

impl App {
    /// One trace. The texts of the span `chosen` are read too, and those of the last model call.
    ///
    /// # Errors
    /// `IRIS_UNKNOWN_TRACE`, `IRIS_INVALID_ARGUMENT` for a malformed id, `IRIS_STORAGE_ERROR`.
    pub async fn whole(&self, id: &str, chosen: Option<SpanId>, caller: &Caller) -> Result<Whole, Error> {
        caller.check("traces", Scope::Read)?;
        let id = trace_id(id)?;
        let backend = self.backend()?;
        let key = RowKey { tenant: caller.tenant.clone(), trace_id: id };
        let open = backend.pipeline.open_trace(&key).await.map_err(|error| self.failed(&error))?;
        let (trace, mut evaluations) = match open {
            Some((trace, evaluation)) => (trace, vec![evaluation]),
            None => {
                let stored = backend.store.trace(&caller.tenant, id).await.map_err(|error| self.failed(&error))?;
                (stored.ok_or_else(|| Error::unknown_trace(&id))?, Vec::new())
            }
        };
        let bounds = Bounds { items: EVALUATIONS_MAX, bytes: u64::MAX };
        let stored = backend.store.evaluations(&caller.tenant, id, bounds).await;
        let stored = stored.map_err(|error| self.failed(&error))?;
        let bounds = Bounds { items: SPANS_MAX, bytes: SPANS_BYTES_MAX };
        let rows = backend.store.spans(&caller.tenant, id, bounds).await.map_err(|error| self.failed(&error))?;
        let evaluations_total = stored.total + evaluations.len();
        evaluations.extend(stored.items);
        let unreadable = stored.left_out + rows.left_out;
        // Log records are among the rows and are not shown.
        let logs = rows.items.iter().filter(|row| row.span().is_none()).count();
        let spans_total = rows.total.saturating_sub(logs + rows.left_out);
        let items = rows.items;
        let read = tokio::task::spawn_blocking(move || read(items, chosen));
        let spans = read.await.map_err(|error| self.unforeseen(&error))?;
        let is_omitted = self.facts.stored_text == StoredText::Omitted;
        let mut whole = Whole { trace, spans, spans_total, evaluations, evaluations_total, unreadable, is_omitted };
        if is_omitted {
            whole.omit();
        }
        Ok(whole)
    }
}

impl Whole {
    /// Leaves out what agents, users and tools wrote.
    fn omit(&mut self) {
        let trace = &mut self.trace;
        trace.input = None;
        trace.output = None;
        trace.runs.clear();
        trace.metadata.clear();
        for call in trace.tool_calls.iter_mut().flatten() {
            call.input = None;
            call.output = None;
            call.error = call.error.as_ref().map(|_| "failed".to_owned());
        }
        for (span, reading) in &mut self.spans {
            span.attributes.clear();
            span.events.clear();
            span.status_message.clear();
            let_go(reading);
        }
        self.evaluations.iter_mut().for_each(|evaluation| evaluation.output_text = None);
    }
}

/// Every span with what its dialects read.
fn read(rows: Vec<Row>, chosen: Option<SpanId>) -> Vec<(RawSpan, Reading)> {
    let mut spans: Vec<(RawSpan, Reading)> = rows
        .into_iter()
        .filter_map(|row| match row.observation {
            Observation::Span(span) => Some(span),
            Observation::Log(_) => None,
        })
        .map(|span| {
            let mut reading = dialect::read_span(&span);
            let speaks = reading.input_messages.is_some() || reading.output_messages.is_some();
            if Some(span.span_id) != chosen {
                let_go(&mut reading);
            }
            // Enough to find the last call that has messages.
            if speaks && reading.role == Some(Role::Llm) && reading.output_messages.is_none() {
                reading.output_messages = Some(Vec::new());
            }
            (span, reading)
        })
        .collect();
    let last = spans.iter().rposition(|(_, reading)| reading.output_messages.is_some());
    if let Some((span, reading)) = last.and_then(|at| spans.get_mut(at)) {
        *reading = dialect::read_span(span);
    }
    spans
}

/// Forgets the texts of a reading.
fn let_go(reading: &mut Reading) {
    reading.input = None;
    reading.output = None;
    reading.input_messages = None;
    reading.output_messages = None;
    reading.tool_arguments = None;
    reading.tool_result = None;
}
