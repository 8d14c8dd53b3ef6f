use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::model::{
    EvalType, Message, Observation, RawLog, RawSpan, Reading, Resource, Role, Scope, SpanId, SpanKind, StatusCode,
    Tenant, TraceId, VerdictState,
};

mod budgets;
mod field_cases;
mod past;
mod random;
mod waits;

/// A span in the making; terse, because the tests are many.
#[derive(Debug, Clone)]
pub(super) struct Made {
    trace: u8,
    span: u8,
    parent: Option<u8>,
    role: Option<Role>,
    flags: u32,
    ended: bool,
    content: bool,
    service: &'static str,
    text: String,
    tenant: &'static str,
    start: u64,
}

/// Span `span` of trace `trace`: no parent, no AI, ended.
pub(super) fn made(trace: u8, span: u8) -> Made {
    Made {
        trace,
        span,
        parent: None,
        role: None,
        flags: 0,
        ended: true,
        content: true,
        service: "agent",
        text: String::new(),
        tenant: "local",
        start: 1_000,
    }
}

impl Made {
    fn under(mut self, parent: u8) -> Self {
        self.parent = Some(parent);
        self
    }
    fn role(mut self, role: Role) -> Self {
        self.role = Some(role);
        self
    }
    fn remote(mut self) -> Self {
        self.flags = 0x300;
        self
    }
    fn unended(mut self) -> Self {
        self.ended = false;
        self
    }
    fn hollow(mut self) -> Self {
        self.content = false;
        self
    }
    fn service(mut self, service: &'static str) -> Self {
        self.service = service;
        self
    }
    fn tenant(mut self, tenant: &'static str) -> Self {
        self.tenant = tenant;
        self
    }
    fn starting(mut self, start: u64) -> Self {
        self.start = start;
        self
    }
    fn text(mut self, text: &str) -> Self {
        self.text = text.to_owned();
        self
    }

    /// The row at a position.
    fn at(&self, seq: u64, ordinal: u32) -> Arc<Row> {
        let mut attributes = serde_json::Map::new();
        attributes.insert("text".to_owned(), Value::String(self.text.clone()));
        let span = RawSpan {
            trace_id: trace_id(self.trace),
            span_id: span_id(self.span),
            parent_span_id: self.parent.map(span_id),
            flags: self.flags,
            trace_state: String::new(),
            name: "step".to_owned(),
            kind: SpanKind::Internal,
            start: Timestamp::from_unix_nanos(self.start),
            end: Timestamp::from_unix_nanos(if self.ended { 2_000 } else { 0 }),
            status: StatusCode::Unset,
            status_message: String::new(),
            attributes,
            events: Vec::new(),
            links: Vec::new(),
            dropped: 0,
            resource: Arc::new(Resource {
                attributes: [("service.name".to_owned(), json!(self.service))].into_iter().collect(),
            }),
            scope: Arc::new(Scope::default()),
        };
        Arc::new(Row {
            tenant: Tenant::new(self.tenant),
            position: Position { lane: Lane::Traces, seq, ordinal },
            received: Timestamp::from_unix_nanos(5_000 + seq),
            trace_id: span.trace_id,
            span_id: span.span_id,
            content_hash: u64::from(self.ended) + 2 * self.text.len() as u64,
            reading: self.reading(),
            observation: Observation::Span(span),
        })
    }

    fn reading(&self) -> Reading {
        let messages = self.content.then(|| vec![Message { role: "assistant".to_owned(), parts: Vec::new() }]);
        Reading { role: self.role, output_messages: messages.filter(|_| self.role.is_some()), ..Reading::default() }
    }
}

/// A log record that carries the messages of a span.
fn log_of(trace: u8, span: u8, seq: u64) -> Arc<Row> {
    let mut row = Row::clone(&made(trace, span).role(Role::Llm).at(seq, 0));
    row.position.lane = Lane::Logs;
    row.content_hash = 77;
    row.observation = Observation::Log(RawLog {
        trace_id: Some(row.trace_id),
        span_id: Some(row.span_id),
        time: Timestamp::from_unix_nanos(1_000),
        severity: 0,
        event_name: "gen_ai.choice".to_owned(),
        body: Value::Null,
        attributes: serde_json::Map::new(),
        resource: Arc::new(Resource::default()),
        scope: Arc::new(Scope::default()),
    });
    Arc::new(row)
}

fn trace_id(n: u8) -> TraceId {
    TraceId::from_bytes(&[n; 16]).unwrap()
}

fn span_id(n: u8) -> SpanId {
    SpanId::from_bytes(&[n; 8]).unwrap()
}

pub(super) fn key(trace: u8) -> RowKey {
    RowKey { tenant: Tenant::local(), trace_id: trace_id(trace) }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// An evaluation that saw so much.
fn evaluation(trace: u8, version: u32, seen_through: u64) -> Arc<Evaluation> {
    Arc::new(Evaluation {
        id: format!("{trace}-{version}"),
        tenant: Tenant::local(),
        trace_id: Some(trace_id(trace)),
        trace_version: Some(version),
        eval_type: EvalType::All,
        created_at: Timestamp::default(),
        inline: true,
        seen_through,
        position: None,
        output_text: None,
        expected_text: None,
        score: 1.0,
        passed: true,
        state: VerdictState::Pass,
        rule_results: Vec::new(),
        inputs: serde_json::Map::new(),
        suggestions: Vec::new(),
        provenance: json!({}),
        answered: None,
        erased_at: None,
    })
}

/// Room for everything.
const ROOM: Room = Room { judgings: usize::MAX, loads: usize::MAX };

/// An assembler with a clock and a record of what it asked for.
struct Bench {
    assembler: Assembler,
    now: Duration,
    seq: u64,
    stored: Vec<Arc<Row>>,
    dropped: Vec<(Position, Dropped)>,
    settled: Vec<Settling>,
    loads: Vec<RowKey>,
    spills: Vec<RowKey>,
}

impl Bench {
    fn new() -> Self {
        Self::with(Config::default(), Settings::default())
    }

    fn with(config: Config, settings: Settings) -> Self {
        Self {
            assembler: Assembler::new(config, settings, Settled::default()),
            now: ms(1_000_000),
            seq: 0,
            stored: Vec::new(),
            dropped: Vec::new(),
            settled: Vec::new(),
            loads: Vec::new(),
            spills: Vec::new(),
        }
    }

    fn note(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Store(rows) => self.stored.extend(rows),
                Effect::Drop { rows, why } => self.dropped.extend(rows.into_iter().map(|row| (row, why))),
                Effect::Settle(settling) => self.settled.push(*settling),
                Effect::Load(key) => self.loads.push(key),
                Effect::Spill(key) => self.spills.push(key),
            }
        }
    }

    /// One request with these spans.
    fn push(&mut self, spans: &[Made]) {
        self.seq += 1;
        let rows = spans.iter().zip(0..).map(|(span, ordinal)| span.at(self.seq, ordinal)).collect();
        self.push_rows(Lane::Traces, self.seq, rows);
    }

    fn push_rows(&mut self, lane: Lane, seq: u64, rows: Vec<Arc<Row>>) {
        self.seq = self.seq.max(seq);
        let effects = self.assembler.push(self.now, lane, seq, rows);
        self.note(effects);
    }

    /// Lets so many milliseconds pass, stopping wherever something is due.
    fn pass(&mut self, wait_ms: u64) {
        let end = self.now + ms(wait_ms);
        for _ in 0..10_000 {
            match self.assembler.next_due() {
                Some(due) if due <= end => {
                    self.now = self.now.max(due);
                    let effects = self.assembler.tick(self.now, ROOM);
                    self.note(effects);
                }
                _ => break,
            }
        }
        self.now = end;
    }

    /// Judges the trace handed out last, and commits when asked to.
    fn judge(&mut self, commit: bool) -> Judged {
        let settling = self.settled.last().expect("a trace was handed out");
        let evaluation = Arc::new(Evaluation {
            id: format!("{}-{}", settling.key.trace_id, settling.version),
            trace_version: Some(settling.version),
            seen_through: settling.seen_through,
            ..Evaluation::clone(&evaluation(1, 1, 0))
        });
        let key = settling.key.clone();
        let judged = self.assembler.judged(&key, Some(evaluation));
        if commit {
            self.assembler.committed(judged.ticket);
        }
        judged
    }

    fn spans_of(settling: &Settling) -> Vec<u8> {
        let mut spans: Vec<u8> = settling.rows.iter().map(|row| row.span_id.as_bytes()[0]).collect();
        spans.sort_unstable();
        spans
    }
}
