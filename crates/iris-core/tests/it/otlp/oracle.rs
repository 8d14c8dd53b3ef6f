//! What decoding should give, from the generated messages.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use iris_core::model::{
    Attributes, RawEvent, RawLink, RawLog, RawSpan, Resource, Scope, SpanId, SpanKind, StatusCode, Timestamp, TraceId,
};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::{Map, Value, json};

pub fn spans(request: &ExportTraceServiceRequest) -> Vec<RawSpan> {
    let mut out = Vec::new();
    for group in &request.resource_spans {
        let resource = Arc::new(resource(group.resource.as_ref()));
        for group in &group.scope_spans {
            let scope = Arc::new(scope(group.scope.as_ref()));
            out.extend(group.spans.iter().filter_map(|item| span(item, &resource, &scope)));
        }
    }
    out
}

pub fn logs(request: &ExportLogsServiceRequest) -> Vec<RawLog> {
    let mut out = Vec::new();
    for group in &request.resource_logs {
        let resource = Arc::new(resource(group.resource.as_ref()));
        for group in &group.scope_logs {
            let scope = Arc::new(scope(group.scope.as_ref()));
            out.extend(group.log_records.iter().map(|item| log(item, &resource, &scope)));
        }
    }
    out
}

fn resource(sent: Option<&opentelemetry_proto::tonic::resource::v1::Resource>) -> Resource {
    Resource { attributes: sent.map(|sent| attributes(&sent.attributes)).unwrap_or_default() }
}

fn scope(sent: Option<&InstrumentationScope>) -> Scope {
    sent.map(|sent| Scope {
        name: sent.name.clone(),
        version: sent.version.clone(),
        attributes: attributes(&sent.attributes),
    })
    .unwrap_or_default()
}

fn span(sent: &Span, resource: &Arc<Resource>, scope: &Arc<Scope>) -> Option<RawSpan> {
    let kinds = [SpanKind::Internal, SpanKind::Server, SpanKind::Client, SpanKind::Producer, SpanKind::Consumer];
    let status = sent.status.clone().unwrap_or_default();
    let kind = usize::try_from(sent.kind).ok().and_then(|kind| kind.checked_sub(1));
    Some(RawSpan {
        trace_id: TraceId::from_bytes(&sent.trace_id)?,
        span_id: SpanId::from_bytes(&sent.span_id)?,
        parent_span_id: SpanId::from_bytes(&sent.parent_span_id),
        flags: sent.flags,
        trace_state: sent.trace_state.clone(),
        name: sent.name.clone(),
        kind: kind.and_then(|kind| kinds.get(kind)).copied().unwrap_or_default(),
        start: Timestamp::from_unix_nanos(sent.start_time_unix_nano),
        end: Timestamp::from_unix_nanos(sent.end_time_unix_nano),
        status: match status.code {
            1 => StatusCode::Ok,
            2 => StatusCode::Error,
            _ => StatusCode::Unset,
        },
        status_message: status.message,
        attributes: attributes(&sent.attributes),
        events: sent
            .events
            .iter()
            .map(|event| RawEvent {
                time: Timestamp::from_unix_nanos(event.time_unix_nano),
                name: event.name.clone(),
                attributes: attributes(&event.attributes),
            })
            .collect(),
        links: sent
            .links
            .iter()
            .filter_map(|link| {
                Some(RawLink {
                    trace_id: TraceId::from_bytes(&link.trace_id)?,
                    span_id: SpanId::from_bytes(&link.span_id)?,
                    attributes: attributes(&link.attributes),
                })
            })
            .collect(),
        dropped: sent
            .dropped_attributes_count
            .saturating_add(sent.dropped_events_count)
            .saturating_add(sent.dropped_links_count),
        resource: Arc::clone(resource),
        scope: Arc::clone(scope),
    })
}

fn log(sent: &LogRecord, resource: &Arc<Resource>, scope: &Arc<Scope>) -> RawLog {
    let attributes = attributes(&sent.attributes);
    let named = attributes.get("event.name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let time = if sent.time_unix_nano == 0 { sent.observed_time_unix_nano } else { sent.time_unix_nano };
    RawLog {
        trace_id: TraceId::from_bytes(&sent.trace_id),
        span_id: SpanId::from_bytes(&sent.span_id),
        time: Timestamp::from_unix_nanos(time),
        severity: u32::try_from(sent.severity_number).unwrap_or_default(),
        // Rust's tracing names the place in the source.
        event_name: match sent.event_name.as_str() {
            name if !named.is_empty() && (name.is_empty() || name.starts_with("event ")) => named,
            name => name.to_owned(),
        },
        body: value(sent.body.as_ref()),
        attributes,
        resource: Arc::clone(resource),
        scope: Arc::clone(scope),
    }
}

fn attributes(sent: &[KeyValue]) -> Attributes {
    sent.iter().map(|pair| (pair.key.clone(), value(pair.value.as_ref()))).collect::<Map<_, _>>()
}

fn value(sent: Option<&AnyValue>) -> Value {
    match sent.and_then(|sent| sent.value.as_ref()) {
        None | Some(Any::StringValueStrindex(_)) => Value::Null,
        Some(Any::StringValue(text)) => json!(text),
        Some(Any::BoolValue(value)) => json!(value),
        Some(Any::IntValue(value)) => json!(value),
        Some(Any::DoubleValue(value)) if value.is_nan() => json!("NaN"),
        Some(Any::DoubleValue(f64::INFINITY)) => json!("Infinity"),
        Some(Any::DoubleValue(f64::NEG_INFINITY)) => json!("-Infinity"),
        Some(Any::DoubleValue(value)) => json!(value),
        Some(Any::BytesValue(bytes)) => json!(STANDARD.encode(bytes)),
        Some(Any::ArrayValue(list)) => list.values.iter().map(|element| value(Some(element))).collect(),
        Some(Any::KvlistValue(map)) => Value::Object(attributes(&map.values)),
    }
}
