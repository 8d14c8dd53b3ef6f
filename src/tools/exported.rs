//! A trace that `log_trace` stored, as the OTLP/JSON request that `export.endpoint` gets.

use bytes::Bytes;
use iris_core::model::{Lane, RawSpan, SpanKind, StatusCode, Timestamp, Trace};
use serde_json::{Map, Value, json};

use crate::journal::Record;
use crate::store::ToolWrite;

/// Characters of an input or output that a made-up span carries.
const TEXT_CHARS_MAX: usize = 4096;

/// The scope of what is sent.
const SCOPE: &str = "iris.trace.v1";

/// The request. A trace that was stored without steps is one span named after its agent.
pub(super) fn request(trace: &Trace, spans: &[RawSpan], service_name: &str) -> Value {
    let resource = [
        ("service.name", json!(service_name)),
        ("telemetry.sdk.name", json!("iris-sidecar")),
        ("telemetry.sdk.language", json!("rust")),
        ("telemetry.sdk.version", json!(env!("CARGO_PKG_VERSION"))),
    ];
    let resource = Map::from_iter(resource.map(|(name, value)| (name.to_owned(), value)));
    let sent: Vec<Value> = if spans.is_empty() { vec![whole(trace)] } else { spans.iter().map(span).collect() };
    json!({ "resourceSpans": [{
        "resource": { "attributes": pairs(&resource) },
        "scopeSpans": [{ "scope": { "name": SCOPE, "version": env!("CARGO_PKG_VERSION") }, "spans": sent }],
    }] })
}

/// A journal record of `log_trace` as the OTLP/protobuf request that the collector gets with `forward.tool_traces`; its
/// service is the agent. Nothing for any other record.
pub fn forwarded(record: &Record) -> Option<Bytes> {
    let ToolWrite::Trace { trace, spans, .. } = serde_json::from_slice(&record.body).ok()? else { return None };
    let request = request(&trace, &spans, &trace.agent_name).to_string();
    let message = iris_core::otlp::json_to_protobuf(Lane::Traces, request.as_bytes());
    message.map(Bytes::from).map_err(|error| tracing::warn!(%error, "a logged trace has no OTLP form")).ok()
}

fn whole(trace: &Trace) -> Value {
    let cut = |text: &Option<String>| text.as_ref().map(|text| text.chars().take(TEXT_CHARS_MAX).collect::<String>());
    let usage = trace.token_usage;
    let told = [
        ("iris.agent_name", json!(trace.agent_name)),
        ("iris.framework", json!(trace.framework)),
        ("iris.input", json!(cut(&trace.input))),
        ("iris.output", json!(cut(&trace.output))),
        ("iris.cost_usd", json!(trace.cost_usd)),
        ("iris.total_tokens", json!(usage.and_then(|usage| usage.total_tokens))),
        ("iris.prompt_tokens", json!(usage.and_then(|usage| usage.prompt_tokens))),
        ("iris.completion_tokens", json!(usage.and_then(|usage| usage.completion_tokens))),
    ];
    let told = told.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.to_owned(), value));
    let took =
        std::time::Duration::try_from_secs_f64(trace.latency_ms.unwrap_or_default() / 1000.0).unwrap_or_default();
    let id = trace.trace_id.to_string();
    json!({
        "traceId": id, "spanId": id[..16], "name": trace.agent_name, "kind": 1,
        "startTimeUnixNano": nanos(trace.timestamp), "endTimeUnixNano": nanos(trace.timestamp.after(took)),
        "attributes": pairs(&Map::from_iter(told)),
    })
}

fn span(span: &RawSpan) -> Value {
    let kind = match span.kind {
        SpanKind::Unspecified => 0,
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
        SpanKind::Producer => 4,
        SpanKind::Consumer => 5,
    };
    let code = match span.status {
        StatusCode::Unset => 0,
        StatusCode::Ok => 1,
        StatusCode::Error => 2,
    };
    let events: Vec<Value> = span
        .events
        .iter()
        .map(|event| json!({ "timeUnixNano": nanos(event.time), "name": event.name, "attributes": pairs(&event.attributes) }))
        .collect();
    json!({
        "traceId": span.trace_id.to_string(), "spanId": span.span_id.to_string(),
        "parentSpanId": span.parent_span_id.map(|id| id.to_string()).unwrap_or_default(),
        "name": span.name, "kind": kind, "startTimeUnixNano": nanos(span.start), "endTimeUnixNano": nanos(span.end),
        "attributes": pairs(&span.attributes), "events": events, "status": { "code": code, "message": span.status_message },
    })
}

/// A 64-bit number as OTLP/JSON writes it.
fn nanos(time: Timestamp) -> String {
    time.as_unix_nanos().to_string()
}

fn pairs(attributes: &Map<String, Value>) -> Vec<Value> {
    attributes.iter().map(|(key, value)| json!({ "key": key, "value": any(value) })).collect()
}

/// A value as OTLP/JSON has it. Source: opentelemetry-proto, `common.proto`, `AnyValue`.
fn any(value: &Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::Bool(is) => json!({ "boolValue": is }),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => json!({ "intValue": whole.to_string() }),
            None => json!({ "doubleValue": number }),
        },
        Value::String(text) => json!({ "stringValue": text }),
        Value::Array(items) => json!({ "arrayValue": { "values": items.iter().map(any).collect::<Vec<_>>() } }),
        Value::Object(fields) => json!({ "kvlistValue": { "values": pairs(fields) } }),
    }
}
