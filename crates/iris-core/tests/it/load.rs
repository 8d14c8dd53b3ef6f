//! A trace as a busy support bot sends it: eight spans of about 1.4 KB, a run, two tools, five model calls.
//!
//! The words are drawn by a fixed generator, so that every run of a measurement sees the same trace.

use std::sync::Arc;

use iris_core::assemble::understand;
use iris_core::dialect;
use iris_core::model::{Lane, Observation, Position, Row, Tenant, Timestamp, Trace};
use iris_core::otlp::{self, Encoding};
use serde_json::{Value, json};

const WORDS: [&str; 40] = [
    "the",
    "customer",
    "order",
    "refund",
    "policy",
    "agent",
    "search",
    "result",
    "weather",
    "please",
    "confirm",
    "account",
    "number",
    "shipping",
    "delivery",
    "summary",
    "document",
    "analysis",
    "table",
    "value",
    "increase",
    "quarter",
    "revenue",
    "however",
    "therefore",
    "question",
    "answer",
    "context",
    "retrieval",
    "model",
    "token",
    "latency",
    "error",
    "retry",
    "tool",
    "function",
    "call",
    "email",
    "address",
    "invoice",
];

/// Xorshift, seeded.
pub struct Draw(u64);

impl Draw {
    pub const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub const fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// So many bytes of words, a full stop behind every ninth or so.
    pub fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            text.push_str(WORDS[usize::try_from(self.next() % 40).unwrap()]);
            text.push_str(if self.next().is_multiple_of(9) { ". " } else { " " });
        }
        text.truncate(bytes);
        text
    }

    fn said(&mut self, role: &str, bytes: usize) -> Value {
        let content = self.text(bytes);
        json!(json!([{"role": role, "parts": [{"type": "text", "content": content}]}]).to_string())
    }
}

fn attributes(draw: &mut Draw, at: usize) -> (&'static str, Value) {
    match at {
        0 => (
            "invoke_agent support-bot",
            json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support-bot-7",
                "gen_ai.conversation.id": format!("{:016x}", draw.next()),
                "gen_ai.input.messages": draw.said("user", 300), "gen_ai.output.messages": draw.said("assistant", 700)}),
        ),
        3 | 5 => (
            "execute_tool search_orders",
            json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search_orders",
                "gen_ai.tool.call.id": format!("call_{:016x}", draw.next()),
                "gen_ai.tool.call.arguments": json!({"query": draw.text(200)}).to_string(),
                "gen_ai.tool.call.result": json!({"rows": draw.text(850)}).to_string()}),
        ),
        _ => (
            "chat gpt-4o",
            json!({"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o",
                "gen_ai.response.model": "gpt-4o-2024-08-06", "gen_ai.response.id": format!("chatcmpl-{:016x}", draw.next()),
                "gen_ai.usage.input_tokens": draw.next() % 4000, "gen_ai.usage.output_tokens": draw.next() % 900,
                "gen_ai.input.messages": draw.said("user", 450), "gen_ai.output.messages": draw.said("assistant", 400)}),
        ),
    }
}

/// The spans of one trace as one OTLP/JSON request.
fn request(draw: &mut Draw) -> Vec<u8> {
    let (trace, root) = (format!("{:016x}{:016x}", draw.next(), draw.next()), format!("{:016x}", draw.next()));
    let spans: Vec<Value> = (0..8)
        .map(|at| {
            let (name, fields) = attributes(draw, at);
            let fields = fields.as_object().unwrap().iter().map(|(key, value)| {
                let value = match value.as_u64() {
                    Some(number) => json!({"intValue": number.to_string()}),
                    None => json!({"stringValue": value}),
                };
                json!({"key": key, "value": value})
            });
            let start = 1_700_000_000_000_000_000_u64 + at as u64 * 1_000_000;
            json!({"traceId": trace, "spanId": if at == 0 { root.clone() } else { format!("{:016x}", draw.next()) },
                "parentSpanId": if at == 0 { "" } else { root.as_str() }, "name": name, "kind": if at == 0 { 1 } else { 3 },
                "startTimeUnixNano": start.to_string(), "endTimeUnixNano": (start + 900_000_000).to_string(),
                "attributes": fields.collect::<Vec<_>>(), "flags": 257})
        })
        .collect();
    let resource = ["service.name", "service.version", "telemetry.sdk.language", "k8s.pod.name"]
        .map(|key| json!({"key": key, "value": {"stringValue": "support-bot"}}));
    let scope = json!({"name": "opentelemetry.instrumentation.openai_v2", "version": "2.3b0"});
    let whole = json!({"resourceSpans": [{"resource": {"attributes": resource},
        "scopeSpans": [{"scope": scope, "spans": spans}]}]});
    whole.to_string().into_bytes()
}

/// The rows of one trace; another seed draws other words.
pub fn rows(seed: u64) -> Vec<Arc<Row>> {
    let spans = otlp::decode_spans(Encoding::Json, &request(&mut Draw::new(seed))).unwrap();
    assert_eq!(spans.len(), 8);
    let rows = spans.into_iter().enumerate().map(|(at, span)| {
        Arc::new(Row {
            tenant: Tenant::local(),
            position: Position { lane: Lane::Traces, seq: 1, ordinal: u32::try_from(at).unwrap() },
            received: Timestamp::default(),
            trace_id: span.trace_id,
            span_id: span.span_id,
            content_hash: otlp::content_hash_span(&span),
            reading: dialect::read_span(&span),
            observation: Observation::Span(span),
        })
    });
    rows.collect()
}

/// The same, understood.
pub fn trace(seed: u64) -> Trace {
    let rows = rows(seed);
    understand(&rows[0].key(), 1, &rows).expect("the spans make a trace")
}
