//! A recorded scenario: requests and the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use iris_core::assemble::understand;
use iris_core::dialect;
use iris_core::model::{Lane, Observation, Position, RawLog, RawSpan, Row, RowKey, Tenant, Timestamp, Trace, TraceId};
use iris_core::otlp::{self, Encoding};
use proptest::prelude::Rng as _;
use proptest::test_runner::{RngAlgorithm, TestRng};
use serde_json::Value;

/// One scenario.
#[derive(Clone)]
pub struct Capture {
    pub dialect: String,
    pub scenario: String,
    pub truth: Value,
    /// Everything that was sent, one after the other.
    pub bytes: Vec<u8>,
    rows: Vec<Row>,
    /// Trace ids in the order they appeared.
    pub trace_ids: Vec<TraceId>,
}

/// Every scenario below a folder, in the order of their names.
pub fn all(folder: &Path) -> Vec<Capture> {
    let mut found = Vec::new();
    for dialect in folders(folder) {
        found.extend(folders(&dialect).iter().filter_map(|scenario| read(scenario)));
    }
    found
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

fn read(scenario: &Path) -> Option<Capture> {
    let truth: Value = serde_json::from_slice(&std::fs::read(scenario.join("expected.json")).ok()?).unwrap();
    if truth["spans_exported"] == Value::Bool(false) {
        return None;
    }
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut capture = Capture {
        dialect: name(scenario.parent()?),
        scenario: name(scenario),
        truth,
        bytes: Vec::new(),
        rows: Vec::new(),
        trace_ids: Vec::new(),
    };
    let mut files: Vec<PathBuf> = std::fs::read_dir(scenario).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| name(path).starts_with(|first: char| first.is_ascii_digit()));
    files.sort();
    for (seq, path) in files.iter().enumerate() {
        let body = std::fs::read(path).unwrap();
        let encoding = if name(path).ends_with(".json") { Encoding::Json } else { Encoding::Protobuf };
        capture.bytes.extend(&body);
        if name(path).contains(".metrics") {
            continue;
        }
        let seq = u64::try_from(seq).unwrap() + 1;
        if name(path).contains(".logs") {
            capture.take_logs(seq, otlp::decode_logs(encoding, &body).unwrap());
        } else {
            capture.take_spans(seq, otlp::decode_spans(encoding, &body).unwrap());
        }
    }
    Some(capture)
}

impl Capture {
    pub fn name(&self) -> String {
        format!("{}/{}", self.dialect, self.scenario)
    }

    fn take_spans(&mut self, seq: u64, spans: Vec<RawSpan>) {
        for (ordinal, span) in spans.into_iter().enumerate() {
            if !self.trace_ids.contains(&span.trace_id) {
                self.trace_ids.push(span.trace_id);
            }
            self.rows.push(Row {
                tenant: Tenant::local(),
                position: Position { lane: Lane::Traces, seq, ordinal: u32::try_from(ordinal).unwrap() },
                received: Timestamp::default(),
                trace_id: span.trace_id,
                span_id: span.span_id,
                content_hash: otlp::content_hash_span(&span),
                reading: dialect::read_span(&span),
                observation: Observation::Span(span),
            });
        }
    }

    fn take_logs(&mut self, seq: u64, logs: Vec<RawLog>) {
        for (ordinal, log) in logs.into_iter().enumerate() {
            let (Some(trace_id), Some(span_id)) = (log.trace_id, log.span_id) else { continue };
            let Some(reading) = dialect::read_log(&log) else { continue };
            assert!(dialect::wants_log(&log.event_name), "{} is read but not wanted", log.event_name);
            self.rows.push(Row {
                tenant: Tenant::local(),
                position: Position { lane: Lane::Logs, seq, ordinal: u32::try_from(ordinal).unwrap() },
                received: Timestamp::default(),
                trace_id,
                span_id,
                content_hash: otlp::content_hash_log(&log),
                reading,
                observation: Observation::Log(log),
            });
        }
    }

    /// The same rows as if they had been sent in another order in up to so many requests.
    pub fn split(&self, seed: u64, requests: usize) -> Self {
        let mut split = self.clone();
        split.rows = shuffled(split.rows, seed);
        let size = split.rows.len().div_ceil(requests).max(1);
        for (at, row) in split.rows.iter_mut().enumerate() {
            let (seq, ordinal) = (u64::try_from(at / size).unwrap() + 1, u32::try_from(at % size).unwrap());
            row.position = Position { seq, ordinal, ..row.position };
        }
        split
    }

    /// The traces that have a row which alone makes one.
    pub fn agentic(&self) -> BTreeSet<TraceId> {
        self.rows.iter().filter(|row| row.reading.is_agentic()).map(|row| row.trace_id).collect()
    }

    /// The traces understood from the rows, in the order of their start.
    pub fn traces(&self, order: impl Fn(Vec<Arc<Row>>) -> Vec<Arc<Row>>) -> Vec<Trace> {
        let mut by_trace: BTreeMap<RowKey, Vec<Arc<Row>>> = BTreeMap::new();
        for row in order(self.rows.iter().cloned().map(Arc::new).collect()) {
            by_trace.entry(row.key()).or_default().push(row);
        }
        let mut traces: Vec<Trace> = by_trace.iter().filter_map(|(key, rows)| understand(key, 1, rows)).collect();
        traces.sort_by_key(|trace| (trace.timestamp, trace.trace_id));
        traces
    }
}

/// The same in an order that follows from a seed.
pub fn shuffled<T>(mut rows: Vec<T>, seed: u64) -> Vec<T> {
    let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed.to_le_bytes().repeat(4));
    for at in (1..rows.len()).rev() {
        let below = u64::try_from(at).unwrap() + 1;
        rows.swap(at, usize::try_from(random.next_u64() % below).unwrap());
    }
    rows
}
