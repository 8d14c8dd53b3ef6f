//! Rows, traces and evaluations to store.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use iris_core::model::{
    EvalType, Evaluation, Lane, Observation, Position, RawEvent, RawLink, RawLog, RawSpan, Reading, Resource, Role,
    Row, RowKey, Scope, SpanId, SpanKind, StatusCode, Tenant, Timestamp, TokenUsage, ToolCall, Trace, TraceId,
    TraceSource, Usage, VerdictState,
};
use serde_json::{Map, json};

use crate::deleted::Deletions;
use crate::store::{Boot, Config, Error, Packed, Store, Write};

pub const SECOND: u64 = 1_000_000_000;
/// 2026-12-01T00:00:00Z.
pub const DAY: u64 = 1_796_083_200 * SECOND;

/// xorshift: the same on every run.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

pub fn at(seconds: u64) -> Timestamp {
    Timestamp::from_unix_nanos(DAY + seconds * SECOND + 123_456_789)
}

/// A store that commits only when told or full, unless a test says otherwise.
pub fn config() -> Config {
    Config { group_ms: 3_600_000, checkpoint_idle_ms: 3_600_000, ..Config::default() }
}

pub fn open(home: &Path) -> (Store, Boot) {
    Store::open(home, &config(), Deletions::default()).expect("opens")
}

pub fn open_at(home: &Path, config: &Config, now: fn() -> Timestamp) -> Result<(Store, Boot), Error> {
    Store::open_at(home, config, Deletions::default(), now)
}

pub fn trace_id(n: u64) -> TraceId {
    let mut bytes = [7u8; 16];
    bytes[..8].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    TraceId::from_bytes(&bytes).unwrap()
}

pub fn span_id(n: u64) -> SpanId {
    SpanId::from_bytes(&(n + 1).to_be_bytes()).unwrap()
}

pub fn key(n: u64) -> RowKey {
    RowKey { tenant: Tenant::local(), trace_id: trace_id(n) }
}

pub fn position(seq: u64, ordinal: u32) -> Position {
    Position { lane: Lane::Traces, seq, ordinal }
}

/// A span that uses every field, with values that a careless store would bend.
pub fn span(trace: u64, id: u64) -> RawSpan {
    let attributes = json!({
        "gen_ai.request.model": "m-1",
        "text": "Grüße \u{1F600} \u{0} \" \\ \n",
        "big": u64::MAX, "small": i64::MIN, "minus_zero": -0.0, "third": 1.0 / 3.0, "huge": 1.797e308, "tiny": 5e-324,
        "whole": 3.0, "list": [1, "a", null, true], "nested": {"b": 1, "a": {}}, "empty": "",
    });
    RawSpan {
        trace_id: trace_id(trace),
        span_id: span_id(id),
        parent_span_id: (id > 0).then(|| span_id(0)),
        flags: 0x301,
        trace_state: "vendor=1".to_owned(),
        name: "chat m-1 \u{0} ✓".to_owned(),
        kind: SpanKind::Client,
        start: at(id),
        end: Timestamp::from_unix_nanos(at(id).as_unix_nanos() + 1_500_000_001),
        status: StatusCode::Error,
        status_message: "it broke".to_owned(),
        attributes: object(attributes),
        events: vec![RawEvent { time: at(id), name: "exception".to_owned(), attributes: object(json!({"a": 1.5})) }],
        links: vec![RawLink { trace_id: trace_id(99), span_id: span_id(98), attributes: Map::new() }],
        dropped: 3,
        resource: Arc::new(Resource { attributes: object(json!({"service.name": "shop"})) }),
        scope: Arc::new(Scope { name: "lib".to_owned(), version: "1".to_owned(), attributes: Map::new() }),
    }
}

pub fn object(value: serde_json::Value) -> Map<String, serde_json::Value> {
    match value {
        serde_json::Value::Object(map) => map,
        other => panic!("{other} is not an object"),
    }
}

/// The row of a span whose reading fills every column.
pub fn row(trace: u64, id: u64, position: Position) -> Row {
    let span = span(trace, id);
    Row {
        tenant: Tenant::local(),
        position,
        received: at(id + 2),
        trace_id: span.trace_id,
        span_id: span.span_id,
        content_hash: trace << 32 | id | 1 << 63,
        reading: Reading {
            role: Some(Role::Llm),
            agent_name: Some("planner".to_owned()),
            model: Some("m-1".to_owned()),
            provider: Some("p".to_owned()),
            tool_name: Some("search".to_owned()),
            usage: Usage { input: Some(10), output: Some(20), ..Usage::default() },
            cost_usd: Some(0.25),
            session_id: Some("s-1".to_owned()),
            ..Reading::default()
        },
        observation: Observation::Span(span),
    }
}

pub fn log_row(trace: u64, id: u64, position: Position) -> Row {
    let log = RawLog {
        trace_id: Some(trace_id(trace)),
        span_id: Some(span_id(id)),
        time: at(id),
        severity: 9,
        event_name: "gen_ai.choice".to_owned(),
        body: serde_json::Value::Null,
        attributes: object(json!({"index": 0})),
        resource: Arc::default(),
        scope: Arc::default(),
    };
    Row {
        tenant: Tenant::local(),
        position: Position { lane: Lane::Logs, ..position },
        received: at(id + 2),
        trace_id: trace_id(trace),
        span_id: span_id(id),
        content_hash: id | 1 << 62,
        reading: Reading::default(),
        observation: Observation::Log(log),
    }
}

pub fn rows(trace: u64, seq: u64, count: u32) -> Vec<Arc<Row>> {
    (0..count).map(|ordinal| Arc::new(row(trace, u64::from(ordinal), position(seq, ordinal)))).collect()
}

/// Rows on their way to the writer.
pub fn packed(rows: impl IntoIterator<Item = Arc<Row>>) -> Write {
    let mut buffer = Vec::new();
    Write::Rows(rows.into_iter().map(|row| Packed::of(&row, &mut buffer).unwrap()).collect())
}

/// As stored: whoever loads a row reads its dialects again.
pub fn unread(row: &Row) -> Row {
    Row { reading: Reading::default(), ..row.clone() }
}

pub fn trace(n: u64, version: u32) -> Trace {
    Trace {
        tenant: Tenant::local(),
        trace_id: trace_id(n),
        version,
        source: TraceSource::Otlp,
        agent_name: "planner".to_owned(),
        framework: Some("langchain".to_owned()),
        input: Some("what?".to_owned()),
        output: Some("that".to_owned()),
        tool_calls: Some(vec![ToolCall { tool_name: "search".to_owned(), ..ToolCall::default() }]),
        latency_ms: Some(1234.5),
        token_usage: Some(TokenUsage { prompt_tokens: Some(1), completion_tokens: None, total_tokens: Some(3) }),
        cost_usd: Some(1.0 / 3.0),
        cost_source: Some(iris_core::model::CostSource::Estimated),
        cost_parts: Some(iris_core::model::CostParts {
            calls: 2,
            priced_calls: 1,
            unpriced_models: vec!["m-2".to_owned()],
            output: Some(iris_core::model::CostPart { tokens: 3, usd: 1.0 / 3.0 }),
            ..Default::default()
        }),
        metadata: object(json!({"k": [1, {"z": null}]})),
        timestamp: at(n),
        session_id: Some("s-1".to_owned()),
        user_id: Some("u".to_owned()),
        model: Some("m-1".to_owned()),
        provider: Some("p".to_owned()),
        environment: Some("prod".to_owned()),
        service_version: Some("1.2".to_owned()),
        runs: vec![iris_core::model::Run { output: Some("that".to_owned()), ..Default::default() }],
        partial: false,
        in_progress: false,
        conflicting_spans: true,
        span_count: 4,
        error_count: 0,
        notes: iris_core::model::Notes { clock_skew: true, doubled_calls: 1, ..Default::default() },
        seen_through: 17,
    }
}

pub fn evaluation(n: u64, id: &str, score: f64) -> Evaluation {
    Evaluation {
        id: id.to_owned(),
        tenant: Tenant::local(),
        trace_id: Some(trace_id(n)),
        trace_version: Some(1),
        eval_type: EvalType::All,
        created_at: at(100),
        inline: true,
        seen_through: 17,
        position: None,
        output_text: Some("that".to_owned()),
        expected_text: None,
        score,
        passed: score >= 0.5,
        state: if score >= 0.5 { VerdictState::Pass } else { VerdictState::Fail },
        rule_results: Vec::new(),
        inputs: Map::new(),
        suggestions: vec!["say more".to_owned()],
        provenance: json!({"threshold": 0.1}),
        answered: None,
        erased_at: None,
    }
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Copies a folder's database files as they lie there, as a crash would leave them.
pub fn copy_of(home: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(home).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
    }
    copy
}

/// Waits for a condition; fails after ten seconds.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(tokio::time::Instant::now() < deadline, "{what} did not happen in 10 s");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
