//! Requests made up for a test: agent runs and plain HTTP spans, as OTLP/protobuf.
#![allow(dead_code)] // each test needs a part of it

use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;

/// The trace id that `number` stands for, as bytes.
pub fn trace_id(number: u64) -> [u8; 16] {
    let mut id = [0xA5; 16];
    id[8..].copy_from_slice(&number.to_be_bytes());
    id
}

/// The same as text.
pub fn trace_hex(number: u64) -> String {
    trace_id(number).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An attribute that is a text.
pub fn text(key: &str, value: &str) -> KeyValue {
    let value = Some(AnyValue { value: Some(any_value::Value::StringValue(value.to_owned())) });
    KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
}

fn words(role: &str, said: &str) -> String {
    serde_json::json!([{ "role": role, "parts": [{ "type": "text", "content": said }] }]).to_string()
}

/// One span of a trace; span 1 is the root.
pub fn span(trace: u64, number: u64, name: &str, attributes: Vec<KeyValue>) -> Span {
    // Retention goes by when a trace began, so it begins now; equal for every call of one test program.
    static NOW: LazyLock<u64> =
        LazyLock::new(|| u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap());
    let begin = *NOW + number * 1_000_000;
    Span {
        trace_id: trace_id(trace).to_vec(),
        span_id: number.to_be_bytes().to_vec(),
        parent_span_id: if number == 1 { Vec::new() } else { 1_u64.to_be_bytes().to_vec() },
        name: name.to_owned(),
        start_time_unix_nano: begin,
        end_time_unix_nano: begin + 500_000,
        attributes,
        ..Span::default()
    }
}

/// An agent that was asked and answered, with one model call: `spans` spans in all, at least 2.
pub fn agent_run(trace: u64, spans: u64, answer: &str) -> Vec<Span> {
    let agent = vec![
        text("gen_ai.operation.name", "invoke_agent"),
        text("gen_ai.agent.name", "harbor_guide"),
        text("gen_ai.input.messages", &words("user", "How warm is it?")),
        text("gen_ai.output.messages", &words("assistant", answer)),
    ];
    let mut run = vec![span(trace, 1, "invoke_agent harbor_guide", agent)];
    for number in 2..=spans {
        let chat = vec![
            text("gen_ai.operation.name", "chat"),
            text("gen_ai.request.model", "harbor-1"),
            text("gen_ai.output.messages", &words("assistant", answer)),
        ];
        run.push(span(trace, number, "chat harbor-1", chat));
    }
    run
}

/// A web request in which no agent took part.
pub fn web_request(trace: u64) -> Vec<Span> {
    (1..=3).map(|number| span(trace, number, "GET /", vec![text("http.request.method", "GET")])).collect()
}

/// The spans as one request.
pub fn request(spans: Vec<Span>) -> Bytes {
    let scope_spans = vec![ScopeSpans {
        scope: Some(InstrumentationScope {
            name: "harbor.instrumentation".to_owned(),
            ..InstrumentationScope::default()
        }),
        spans,
        ..ScopeSpans::default()
    }];
    let resource = Some(Resource { attributes: vec![text("service.name", "harbor-service")], ..Resource::default() });
    let request = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans { resource, scope_spans, ..ResourceSpans::default() }],
    };
    Bytes::from(request.encode_to_vec())
}
