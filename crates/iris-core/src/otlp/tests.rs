use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, span};
use prost::Message;
use serde_json::json;

use super::*;

fn any(value: Any) -> AnyValue {
    AnyValue { value: Some(value) }
}

fn pair(key: &str, value: Any) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(any(value)), key_strindex: 0 }
}

fn request(spans: Vec<Span>) -> Vec<u8> {
    let scope = InstrumentationScope { name: "scope".to_owned(), ..Default::default() };
    let resource =
        Resource { attributes: vec![pair("service.name", Any::StringValue("shop".to_owned()))], ..Default::default() };
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, ..Default::default() }];
    let group = ResourceSpans { resource: Some(resource), scope_spans, ..Default::default() };
    ExportTraceServiceRequest { resource_spans: vec![group] }.encode_to_vec()
}

fn plain(id: u8) -> Span {
    Span { trace_id: vec![id; 16], span_id: vec![id; 8], name: format!("span {id}"), ..Default::default() }
}

#[test]
fn values_become_json() {
    let mut span = plain(1);
    let list = ArrayValue { values: vec![any(Any::BoolValue(true)), AnyValue { value: None }] };
    let map = KeyValueList { values: vec![pair("a", Any::IntValue(-1))] };
    span.attributes = vec![
        pair("text", Any::StringValue("é".to_owned())),
        pair("big", Any::IntValue(i64::MAX)),
        pair("half", Any::DoubleValue(0.5)),
        pair("nan", Any::DoubleValue(f64::NAN)),
        pair("up", Any::DoubleValue(f64::INFINITY)),
        pair("down", Any::DoubleValue(f64::NEG_INFINITY)),
        pair("bytes", Any::BytesValue(vec![0, 255])),
        pair("list", Any::ArrayValue(list)),
        pair("map", Any::KvlistValue(map)),
        KeyValue { key: "none".to_owned(), ..Default::default() },
    ];
    let spans = decode_spans(Encoding::Protobuf, &request(vec![span])).unwrap();
    let expected = json!({
        "text": "é", "big": i64::MAX, "half": 0.5, "nan": "NaN", "up": "Infinity", "down": "-Infinity",
        "bytes": "AP8=", "list": [true, null], "map": {"a": -1}, "none": null,
    });
    assert_eq!(serde_json::Value::Object(spans[0].attributes.clone()), expected);
}

#[test]
fn spans_of_a_group_share_their_resource_and_scope() {
    let spans = decode_spans(Encoding::Protobuf, &request(vec![plain(1), plain(2)])).unwrap();
    assert!(std::sync::Arc::ptr_eq(&spans[0].resource, &spans[1].resource));
    assert!(std::sync::Arc::ptr_eq(&spans[0].scope, &spans[1].scope));
    assert_eq!(spans[1].scope.name, "scope");
    assert_eq!(spans[1].resource.attributes["service.name"], "shop");
}

#[test]
fn a_hash_sees_content_and_not_who_sent_it() {
    let mut other = plain(1);
    other.events.push(span::Event { name: "exception".to_owned(), ..Default::default() });
    let spans = decode_spans(Encoding::Protobuf, &request(vec![plain(1), plain(1), other])).unwrap();
    let hashes: Vec<_> = spans.iter().map(content_hash_span).collect();
    assert_eq!(hashes[0], hashes[1]);
    assert_ne!(hashes[0], hashes[2]);
    let mut moved = spans[0].clone();
    moved.resource = std::sync::Arc::default();
    assert_eq!(content_hash_span(&moved), hashes[0]);
}

/// Scenario: spans of three traces, one of them with a link to another, in protobuf and in JSON.
/// Guarantees: only spans of the unwanted trace go, a link to it is no span of it; nothing changes when none goes.
#[test]
fn spans_of_an_unwanted_trace_are_cut_out() {
    let linked = Span {
        links: vec![span::Link { trace_id: vec![2; 16], span_id: vec![2; 8], ..Default::default() }],
        ..plain(3)
    };
    let all = vec![plain(1), plain(2), plain(2), linked];
    let protobuf = request(all.clone());
    let json =
        |spans: &[Span]| serde_json::to_vec(&json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})).unwrap();
    let unwanted = |id: u8| move |trace_id: TraceId| trace_id.as_bytes() == &[id; 16];
    for (encoding, body) in [(Encoding::Protobuf, protobuf), (Encoding::Json, json(&all))] {
        let cut = without(Lane::Traces, encoding, &body, &mut unwanted(2)).unwrap();
        assert_eq!((cut.items, cut.rejected), (2, 2));
        let left = decode_spans(encoding, &cut.rewritten.unwrap()).unwrap();
        assert_eq!(left.iter().map(|span| span.name.as_str()).collect::<Vec<_>>(), ["span 1", "span 3"]);
        let whole = without(Lane::Traces, encoding, &body, &mut unwanted(9)).unwrap();
        assert_eq!((whole.items, whole.rewritten), (4, None));
    }
    let logs = br#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"traceId":"02020202020202020202020202020202"},{"body":{}}]}]}]}"#;
    let cut = without(Lane::Logs, Encoding::Json, logs, &mut unwanted(2)).unwrap();
    assert_eq!((cut.items, cut.rejected), (1, 1));
}

/// Scenario: log records over two groups, as JSON and as the same in protobuf.
/// Guarantees: exactly the records that were said to go go, wherever they stand; nothing changes when none goes.
#[test]
fn records_that_are_unwanted_are_cut_out() {
    let record = |text: &str| json!({"body": {"stringValue": text}, "attributes": []});
    let body = json!({"resourceLogs": [
        {"scopeLogs": [{"logRecords": [record("a"), record("b")]}, {"logRecords": [record("c")]}]},
        {"scopeLogs": [{"logRecords": [record("d"), record("b")]}]},
    ]});
    let json = serde_json::to_vec(&body).unwrap();
    let protobuf = json_to_protobuf(Lane::Logs, &json).unwrap();
    for (encoding, body) in [(Encoding::Json, json), (Encoding::Protobuf, protobuf)] {
        let cut = without_records(encoding, &body, &mut |log| log.body == "b" || log.body == "c").unwrap();
        assert_eq!((cut.items, cut.rejected), (2, 3));
        let left = decode_logs(encoding, &cut.rewritten.unwrap()).unwrap();
        assert_eq!(left.iter().map(|log| log.body.clone()).collect::<Vec<_>>(), ["a", "d"]);
        let whole = without_records(encoding, &body, &mut |_| false).unwrap();
        assert_eq!((whole.items, whole.rewritten), (5, None));
    }
}
