//! A recorded scenario: requests and the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use iris_core::assemble::understand;
use iris_core::dialect;
use iris_core::model::{Lane, Observation, Position, RawLog, RawSpan, Row, RowKey, Tenant, Timestamp, Trace, TraceId};
use iris_core::otlp::{self, Encoding, Limits};
use proptest::prelude::Rng as _;
use proptest::test_runner::{RngAlgorithm, TestRng};
use serde_json::Value;

/// One scenario.
#[derive(Clone)]
pub struct Capture {
    pub dialect: String,
    pub scenario: String,
    pub truth: Value,
    /// Whether every request was accepted whole.
    pub accepted: bool,
    /// Everything that was sent, one after the other.
    pub bytes: Vec<u8>,
    rows: Vec<Row>,
    /// Trace ids in the order they appeared.
    pub trace_ids: Vec<TraceId>,
}

/// Values that are reserved for documentation, and live-form values of the same length: only the latter are a leak.
const LIVE: [(&str, &str); 3] = [
    ("078-05-1120", "536-22-8716"),
    ("4111 1111 1111 1111", "4142 8985 9846 7999"),
    ("@example.test", "@quayhaven.io"),
];

/// Every scenario below a folder, in the order of their names.
pub fn all(folder: &Path) -> Vec<Capture> {
    let mut found = Vec::new();
    for dialect in folders(folder) {
        found.extend(folders(&dialect).iter().filter_map(|scenario| read(scenario, false)));
    }
    found
}

/// The scenarios that leak, with values that are no documentation's.
pub fn live(folder: &Path) -> Vec<Capture> {
    let leaks = folders(folder).into_iter().map(|dialect| dialect.join("pii")).filter(|scenario| scenario.is_dir());
    leaks.filter_map(|scenario| read(&scenario, true)).collect()
}

/// The bytes with live-form values in place of reserved ones.
fn made_live(mut bytes: Vec<u8>) -> Vec<u8> {
    for (reserved, live) in LIVE {
        let mut at = 0;
        while let Some(found) = bytes.get(at..).and_then(|rest| find(rest, reserved.as_bytes())) {
            bytes[at + found..at + found + live.len()].copy_from_slice(live.as_bytes());
            at += found + live.len();
        }
    }
    bytes
}

/// Where a run of bytes begins.
pub fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

fn read(scenario: &Path, is_live: bool) -> Option<Capture> {
    let load = |path: &Path| std::fs::read(path).map(|bytes| if is_live { made_live(bytes) } else { bytes });
    let truth: Value = serde_json::from_slice(&load(&scenario.join("expected.json")).ok()?).unwrap();
    if truth["spans_exported"] == Value::Bool(false) {
        return None;
    }
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut capture = Capture {
        dialect: name(scenario.parent()?),
        scenario: name(scenario),
        truth,
        accepted: true,
        bytes: Vec::new(),
        rows: Vec::new(),
        trace_ids: Vec::new(),
    };
    let mut files: Vec<PathBuf> = std::fs::read_dir(scenario).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| name(path).starts_with(|first: char| first.is_ascii_digit()));
    files.sort();
    for (seq, path) in files.iter().enumerate() {
        let body = load(path).unwrap();
        let encoding = if name(path).ends_with(".json") { Encoding::Json } else { Encoding::Protobuf };
        capture.bytes.extend(&body);
        let lane = match name(path) {
            name if name.contains(".metrics") => Lane::Metrics,
            name if name.contains(".logs") => Lane::Logs,
            _ => Lane::Traces,
        };
        let walked = otlp::walk(lane, encoding, &body, &Limits::default());
        capture.accepted &= walked.is_ok_and(|walked| walked.rejected == 0);
        if lane == Lane::Metrics {
            continue;
        }
        let seq = u64::try_from(seq).unwrap() + 1;
        if lane == Lane::Logs {
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
            let ordinal = u32::try_from(ordinal).unwrap();
            self.take_span(Position { lane: Lane::Traces, seq, ordinal }, span);
        }
    }

    fn take_span(&mut self, position: Position, span: RawSpan) {
        if !self.trace_ids.contains(&span.trace_id) {
            self.trace_ids.push(span.trace_id);
        }
        self.rows.push(Row {
            tenant: Tenant::local(),
            position,
            received: Timestamp::default(),
            trace_id: span.trace_id,
            span_id: span.span_id,
            content_hash: otlp::content_hash_span(&span),
            reading: dialect::read_span(&span),
            observation: Observation::Span(span),
        });
    }

    fn take_logs(&mut self, seq: u64, logs: Vec<RawLog>) {
        for (ordinal, log) in logs.into_iter().enumerate() {
            let position = Position { lane: Lane::Logs, seq, ordinal: u32::try_from(ordinal).unwrap() };
            if let Some(span) = dialect::step_of(&log) {
                assert!(dialect::wants_log(&log.event_name), "{} is a step but not wanted", log.event_name);
                self.take_span(position, span);
                continue;
            }
            let (Some(trace_id), Some(span_id)) = (log.trace_id, log.span_id) else { continue };
            let Some(reading) = dialect::read_log(&log) else { continue };
            assert!(dialect::wants_log(&log.event_name), "{} is read but not wanted", log.event_name);
            self.rows.push(Row {
                tenant: Tenant::local(),
                position,
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
