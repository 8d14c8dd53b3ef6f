//! One journal record read: its rows, or the tool write it is.

use std::sync::Arc;

use iris_core::model::{Lane, Observation, Position, Row, Timestamp};
use iris_core::otlp::{self, content_hash_log, content_hash_span};

use super::Mind;
use crate::journal::{Encoding, Entry, Kind};
use crate::store::{Packed, ToolWrite};

/// A record as the owner takes it.
pub(super) struct Decoded {
    pub lane: Lane,
    pub seq: u64,
    pub arrived: Timestamp,
    pub content: Content,
}

pub(super) enum Content {
    /// Observations to assemble, each with what the store will have of it.
    Rows(Vec<(Arc<Row>, Packed)>),
    /// What a tool wrote.
    Tool(Box<ToolWrite>),
    /// Nothing that is stored.
    Nothing,
    /// It cannot be read.
    Unreadable(String),
}

/// Reads a record. Slow, and on unknown ground: run on a worker.
pub(super) fn decode(entry: &Entry, lane: Lane, mind: &Mind) -> Decoded {
    let record = &entry.record;
    let content = match (record.kind, lane) {
        (Kind::Otlp, Lane::Traces) => spans(entry, mind),
        (Kind::Otlp, Lane::Logs) => logs(entry, mind),
        (Kind::ToolTrace | Kind::ToolEvaluation | Kind::Tombstone, _) => tool(entry, lane),
        (Kind::Otlp, Lane::Metrics) | (Kind::Verdict | Kind::Erased, _) => Ok(Content::Nothing),
    };
    let content = content.unwrap_or_else(Content::Unreadable);
    Decoded { lane, seq: entry.seq, arrived: record.arrived, content }
}

const fn encoding(encoding: Encoding) -> otlp::Encoding {
    match encoding {
        Encoding::Protobuf => otlp::Encoding::Protobuf,
        Encoding::Json => otlp::Encoding::Json,
    }
}

fn spans(entry: &Entry, mind: &Mind) -> Result<Content, String> {
    let record = &entry.record;
    let spans = otlp::decode_spans(encoding(record.encoding), &record.body).map_err(|refusal| refusal.to_string())?;
    let mut buffer = Vec::new();
    let rows = spans.into_iter().zip(0..).filter_map(|(span, ordinal)| {
        let row = Row {
            tenant: record.tenant.clone(),
            position: Position { lane: Lane::Traces, seq: entry.seq, ordinal },
            received: record.arrived,
            trace_id: span.trace_id,
            span_id: span.span_id,
            content_hash: content_hash_span(&span),
            reading: (mind.read_span)(&span),
            observation: Observation::Span(span),
        };
        written(row, &mut buffer)
    });
    Ok(Content::Rows(rows.collect()))
}

/// Log records that are a step by themselves become the spans they stand for. Others that belong to no span, or that no
/// dialect reads, are no rows.
fn logs(entry: &Entry, mind: &Mind) -> Result<Content, String> {
    let record = &entry.record;
    let logs = otlp::decode_logs(encoding(record.encoding), &record.body).map_err(|refusal| refusal.to_string())?;
    let mut buffer = Vec::new();
    let rows = logs.into_iter().zip(0..).filter_map(|(log, ordinal)| {
        let (trace_id, span_id, content_hash, reading, observation) = match (mind.step_of)(&log) {
            Some(span) => {
                let (reading, hash) = ((mind.read_span)(&span), content_hash_span(&span));
                (span.trace_id, span.span_id, hash, reading, Observation::Span(span))
            }
            None => {
                let (trace_id, span_id) = (log.trace_id?, log.span_id?);
                let (reading, hash) = ((mind.read_log)(&log)?, content_hash_log(&log));
                (trace_id, span_id, hash, reading, Observation::Log(log))
            }
        };
        let row = Row {
            tenant: record.tenant.clone(),
            position: Position { lane: Lane::Logs, seq: entry.seq, ordinal },
            received: record.arrived,
            trace_id,
            span_id,
            content_hash,
            reading,
            observation,
        };
        written(row, &mut buffer)
    });
    Ok(Content::Rows(rows.collect()))
}

/// The row with what the store will have of it. A row in memory is several times the text that was sent: one that is on
/// its way to the store at once lets go of it here. One that may wait undecided keeps it, so that the budget for those
/// counts what they hold.
fn written(mut row: Row, buffer: &mut Vec<u8>) -> Option<(Arc<Row>, Packed)> {
    match Packed::of(&row, buffer) {
        Ok(packed) => {
            if row.reading.is_agentic() {
                row.let_go_of_text();
            }
            Some((Arc::new(row), packed))
        }
        Err(error) => {
            tracing::error!(%error, seq = row.position.seq, ordinal = row.position.ordinal, "a row is set aside");
            None
        }
    }
}

fn tool(entry: &Entry, lane: Lane) -> Result<Content, String> {
    let read = serde_json::from_slice::<ToolWrite>(&entry.record.body);
    // The text of the error may quote the record.
    let mut write = read.map_err(|error| format!("not a tool's record: {:?} error", error.classify()))?;
    write.place(Position { lane, seq: entry.seq, ordinal: 0 });
    Ok(Content::Tool(Box::new(write)))
}

/// Reads the dialects of rows that come back from the store without readings.
pub(super) fn read_again(rows: Vec<Row>, mind: &Mind) -> Vec<Arc<Row>> {
    let read = |mut row: Row| {
        row.reading = match &row.observation {
            Observation::Span(span) => (mind.read_span)(span),
            Observation::Log(log) => (mind.read_log)(log).unwrap_or_default(),
        };
        row.let_go_of_text();
        Arc::new(row)
    };
    rows.into_iter().map(read).collect()
}
