use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use iris_core::assemble::Config;
use iris_core::model::{
    CostSource, EvalType, Evaluation, Evidence, Lane, Message, Position, RawLog, RawSpan, Reading, Role, Row, RowKey,
    RuleResult, Tenant, Timestamp, Trace, TraceId, TraceSource, VerdictState,
};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value as OtlpValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;
use serde_json::json;

use super::*;
use crate::deleted::Deletions;
use crate::journal::{self, Door, Encoding, Kind, RealDisk, Record};
use crate::store::{self, Bounds, Budget, ToolWrite};

mod captured;
mod crash;
mod deleting;
mod flow;
mod poison;
mod restart;

/// A span in the making.
#[derive(Debug, Clone, Copy)]
struct Made {
    trace: u8,
    span: u8,
    parent: u8,
    role: &'static str,
    output: &'static str,
    start: u64,
}

/// Span 1 of a trace is its root, every other span is below it.
fn made(trace: u8, span: u8, role: &'static str) -> Made {
    Made { trace, span, parent: u8::from(span != 1), role, output: "", start: telemetry_now() }
}

impl Made {
    /// A time as instrumentation would give it, so that the trace may be one an earlier process knew.
    fn just_now(self) -> Self {
        Self { start: now().as_unix_nanos() - 10_000_000_000, ..self }
    }

    fn says(self, output: &'static str) -> Self {
        Self { output, ..self }
    }

    fn otlp(self) -> Span {
        let text = |key: &str, value: &str| KeyValue {
            key: key.to_owned(),
            value: Some(AnyValue { value: Some(OtlpValue::StringValue(value.to_owned())) }),
            ..KeyValue::default()
        };
        Span {
            trace_id: vec![self.trace; 16],
            span_id: vec![self.span; 8],
            parent_span_id: if self.parent == 0 { Vec::new() } else { vec![self.parent; 8] },
            name: "step".to_owned(),
            start_time_unix_nano: self.start,
            end_time_unix_nano: self.start,
            attributes: vec![text("role", self.role), text("output", self.output)],
            ..Span::default()
        }
    }
}

/// One fixed time for all spans: after every start's horizon, so that nothing is taken for a late one.
fn telemetry_now() -> u64 {
    4_000_000_000_000_000_000
}

/// The arrival of requests: retention deletes what arrived long ago.
fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Timestamp::from_unix_nanos(u64::try_from(since.as_nanos()).unwrap())
}

fn request(spans: &[Made]) -> Bytes {
    let spans = spans.iter().map(|span| span.otlp()).collect();
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    let resource_spans = vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }];
    ExportTraceServiceRequest { resource_spans }.encode_to_vec().into()
}

fn log_request(trace: u8, span: u8) -> Bytes {
    let log_records = vec![LogRecord {
        trace_id: vec![trace; 16],
        span_id: vec![span; 8],
        event_name: "gen_ai.choice".to_owned(),
        ..LogRecord::default()
    }];
    let scope_logs = vec![ScopeLogs { log_records, ..ScopeLogs::default() }];
    let resource_logs = vec![ResourceLogs { scope_logs, ..ResourceLogs::default() }];
    ExportLogsServiceRequest { resource_logs }.encode_to_vec().into()
}

fn trace_id(trace: u8) -> TraceId {
    TraceId::from_bytes(&[trace; 16]).unwrap()
}

fn key(trace: u8) -> RowKey {
    RowKey { tenant: Tenant::local(), trace_id: trace_id(trace) }
}

fn attribute<'a>(span: &'a RawSpan, name: &str) -> &'a str {
    span.attributes.get(name).and_then(|value| value.as_str()).unwrap_or_default()
}

/// A dialect of the tests.
fn read_span(span: &RawSpan) -> Reading {
    let role = match attribute(span, "role") {
        "agent" => Some(Role::Agent),
        "tool" => Some(Role::Tool),
        "llm" | "hollow" => Some(Role::Llm),
        "panic" => panic!("wanted by the test"),
        _ => None,
    };
    let has_content = role.is_some() && attribute(span, "role") != "hollow";
    Reading {
        role,
        output_messages: has_content.then(|| vec![Message { role: "assistant".to_owned(), parts: Vec::new() }]),
        output: (!attribute(span, "output").is_empty()).then(|| attribute(span, "output").to_owned()),
        ..Reading::default()
    }
}

fn read_log(log: &RawLog) -> Option<Reading> {
    let messages = vec![Message { role: "assistant".to_owned(), parts: Vec::new() }];
    log.event_name.starts_with("gen_ai").then(|| Reading {
        role: Some(Role::Llm),
        output_messages: Some(messages),
        ..Reading::default()
    })
}

/// What the tests want to see of a trace: how many different rows it has, and what its spans said.
fn understand(key: &RowKey, version: u32, rows: &[Arc<Row>]) -> Option<Trace> {
    rows.iter().find(|row| row.reading.is_agentic())?;
    let different: BTreeSet<_> = rows.iter().map(|row| (row.span_id, row.content_hash)).collect();
    let said: BTreeSet<_> = rows.iter().filter_map(|row| row.reading.output.clone()).collect();
    Some(Trace {
        tenant: key.tenant.clone(),
        trace_id: key.trace_id,
        version,
        source: TraceSource::Otlp,
        agent_name: "test".to_owned(),
        framework: None,
        input: None,
        output: (!said.is_empty()).then(|| said.into_iter().collect::<Vec<_>>().join(" ")),
        tool_calls: None,
        latency_ms: None,
        token_usage: None,
        cost_usd: None,
        cost_source: None::<CostSource>,
        cost_parts: None,
        metadata: serde_json::Map::new(),
        timestamp: Timestamp::from_unix_nanos(telemetry_now()),
        session_id: None,
        user_id: None,
        model: None,
        provider: None,
        environment: None,
        service_version: None,
        runs: Vec::new(),
        partial: false,
        in_progress: false,
        conflicting_spans: false,
        span_count: u32::try_from(different.len()).unwrap(),
        error_count: 0,
        notes: iris_core::model::Notes::default(),
        seen_through: 0,
    })
}

/// One rule: whoever says LEAK last fails it.
fn judge(trace: &Trace) -> Evaluation {
    let output = trace.output.clone().unwrap_or_default();
    assert!(!output.contains("PANIC"), "wanted by the test");
    let leaks = output.ends_with("LEAK");
    let mut evaluation = Evaluation {
        id: format!("{}-{}", trace.trace_id, trace.version),
        tenant: trace.tenant.clone(),
        trace_id: Some(trace.trace_id),
        trace_version: Some(trace.version),
        eval_type: EvalType::All,
        created_at: Timestamp::from_unix_nanos(telemetry_now() + u64::from(trace.version)),
        inline: true,
        seen_through: 0,
        position: None,
        output_text: None,
        expected_text: None,
        score: 1.0,
        passed: true,
        state: VerdictState::Pass,
        rule_results: vec![leak_rule(leaks)],
        inputs: serde_json::Map::new(),
        suggestions: Vec::new(),
        provenance: json!({ "rows": trace.span_count }),
        answered: None,
        erased_at: None,
    };
    compose(&mut evaluation);
    evaluation
}

/// As the real one, for the one rule of the tests.
fn stand(previous: &Evaluation, mut next: Evaluation) -> Evaluation {
    if previous.rule_results[0].stands {
        next.rule_results = vec![RuleResult { seen_in_version: previous.trace_version, ..leak_rule(true) }];
        compose(&mut next);
    }
    next
}

fn compose(evaluation: &mut Evaluation) {
    let fails = evaluation.rule_results.iter().any(|result| result.state == "fail");
    evaluation.state = if fails { VerdictState::Fail } else { VerdictState::Pass };
    evaluation.passed = !fails;
}

fn leak_rule(leaks: bool) -> RuleResult {
    let evidence = if leaks { vec![Evidence::Pattern { name: "leak".to_owned(), count: 1 }] } else { Vec::new() };
    RuleResult {
        rule_name: "no_leak".into(),
        rule_id: None,
        category: "safety".into(),
        critical: true,
        critical_source: "default".into(),
        state: if leaks { "fail" } else { "pass" }.into(),
        passed: !leaks,
        score: 1.0,
        message: String::new(),
        skipped: false,
        skip_reason: None,
        skip_class: None,
        kind: "detection".into(),
        role: Some("veto".into()),
        question: "".into(),
        classes: Vec::new(),
        rule_version: 1,
        origin: None,
        saw: Vec::new(),
        uncertainty: None,
        evidence,
        value: None,
        weight: 1.0,
        stands: leaks,
        seen_in_version: None,
    }
}

fn mind() -> Mind {
    Mind {
        read_span,
        read_log,
        step_of: |_| None,
        understand: Arc::new(understand),
        judge: Arc::new(judge),
        stand,
        judged: None,
        costs: crate::ingest::Costs::default(),
    }
}

/// Waits short enough for tests.
const QUICK: Config = Config {
    quiet_ms: 40,
    settle_ms: 80,
    complete_ms: 10,
    undecided_ms: 300,
    idle_ms: 1_000,
    give_up_ms: 5_000,
    open_max: 1_000,
};

/// A running pipeline on a folder.
struct Running {
    journal: Journal,
    store: Store,
    deleted: Deletions,
    pipeline: Pipeline,
}

async fn start(home: &Path, mind: Mind, config: &Config) -> Running {
    let disk = Arc::new(RealDisk);
    let (journal, _) = Journal::open(home, &journal::Config::default(), false, disk).unwrap();
    let folder = home.to_owned();
    let settings = store::Config { group_ms: 20, ..store::Config::default() };
    let deleted = Deletions::open(home).unwrap();
    let known = deleted.clone();
    let (store, boot) =
        tokio::task::spawn_blocking(move || Store::open(&folder, &settings, known)).await.unwrap().unwrap();
    let parts =
        Parts { home: home.to_owned(), journal: journal.clone(), store: store.clone(), deleted: deleted.clone(), mind };
    let pipeline = Pipeline::start(parts, config, false, boot).await.unwrap();
    Running { journal, store, deleted, pipeline }
}

impl Running {
    async fn send(&self, spans: &[Made]) -> u64 {
        self.send_body(Lane::Traces, Kind::Otlp, request(spans)).await
    }

    async fn send_body(&self, lane: Lane, kind: Kind, body: Bytes) -> u64 {
        let encoding = if kind == Kind::Otlp { Encoding::Protobuf } else { Encoding::Json };
        let record = Record { kind, tenant: Tenant::local(), door: Door::Grpc, encoding, arrived: now(), body };
        self.journal.append(lane, record).await.unwrap()
    }

    /// The newest stored version of a trace, once it has so many different rows.
    async fn trace(&self, trace: u8, rows: u32) -> Trace {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let found = match self.store.trace(&Tenant::local(), trace_id(trace)).await {
                // Beside a flood the engine may have no memory left for a question: it is asked again.
                Err(error) if error.is_retryable() && Instant::now() < deadline => None,
                found => found.unwrap(),
            };
            match found {
                Some(found) if found.span_count == rows => return found,
                found => assert!(
                    Instant::now() < deadline,
                    "trace {trace} has {:?} rows, not {rows}: {:?}",
                    found.map(|found| found.span_count),
                    self.pipeline.status()
                ),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn evaluations(&self, trace: u8) -> Vec<Evaluation> {
        self.store.evaluations(&Tenant::local(), trace_id(trace), Bounds::WHOLE).await.unwrap().items
    }

    async fn until(&self, what: &str, holds: impl Fn(&PipelineStatus) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while !holds(&self.pipeline.status()) {
            assert!(Instant::now() < deadline, "never {what}: {:?}", self.pipeline.status());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Ends in order.
    async fn stop(self) {
        self.pipeline.drain(Duration::from_secs(10)).await;
        self.store.close(Duration::from_secs(10)).await.unwrap();
        self.journal.close().await;
    }

    /// Ends as a kill would.
    async fn kill(self) {
        self.pipeline.end().await;
        self.store.release().await;
        self.journal.close().await;
    }
}
