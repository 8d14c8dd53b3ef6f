//! Receiving, as it goes wrong in the field: what of it is decided by bytes alone. Each test bears the id of its case.

use iris_core::dialect;
use iris_core::model::{Lane, SpanKind};
use iris_core::otlp::{
    Encoding, Limits, Refusal, Walked, content_hash_span, decode_logs, decode_spans, has_log_event, walk,
};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

fn json(resource_spans: &str, scope_spans: &str, span: &str) -> String {
    format!(r#"{{"{resource_spans}":[{{"{scope_spans}":[{{"spans":[{span}]}}]}}]}}"#)
}

fn walked(encoding: Encoding, body: &[u8]) -> Result<Walked, Refusal> {
    walk(Lane::Traces, encoding, body, &Limits::default())
}

fn request(spans: Vec<Span>) -> Vec<u8> {
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    let resource_spans = vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }];
    ExportTraceServiceRequest { resource_spans }.encode_to_vec()
}

fn span(trace_id: Vec<u8>, id: u64, name: &str) -> Span {
    let span_id = id.to_be_bytes().to_vec();
    Span { trace_id, span_id, name: name.to_owned(), end_time_unix_nano: 1, ..Span::default() }
}

#[test]
fn g1_02_bytes_that_are_no_request_are_refused_with_a_reason() {
    for body in [&b"\xff\x13\x07\xfe\x00\x11\x99\x42\x01\x80\x80\x80\xff\xee\xdd\xcc\xbb\xaa\x05\x06"[..], b"\x0a\xff"]
    {
        let refusal = walked(Encoding::Protobuf, body).unwrap_err();
        assert!(matches!(refusal, Refusal::Malformed { .. }) && !refusal.to_string().is_empty(), "{refusal}");
    }
    assert!(matches!(walked(Encoding::Json, b"{\"resourceSpans\": ["), Err(Refusal::Malformed { .. })));
}

#[test]
fn g1_04_a_span_twice_in_one_request_is_told_by_its_content() {
    let trace = vec![1; 16];
    let body = request(vec![span(trace.clone(), 1, "a"), span(trace.clone(), 1, "a"), span(trace, 1, "b")]);
    assert_eq!(walked(Encoding::Protobuf, &body), Ok(Walked { items: 3, ..Walked::default() }));
    let hashes: Vec<u64> = decode_spans(Encoding::Protobuf, &body).unwrap().iter().map(content_hash_span).collect();
    let [first, again, other] = hashes[..] else { panic!("{hashes:?}") };
    assert_eq!(first, again);
    assert_ne!(first, other);
    let trace = |id: u64| [id.to_be_bytes(), (id + 1).to_be_bytes()].concat();
    let many = request((1..=11_500).map(|id| span(trace(id), id, "one")).collect());
    assert_eq!(walked(Encoding::Protobuf, &many), Ok(Walked { items: 11_500, ..Walked::default() }));
}

#[test]
fn g1_06_json_is_read_in_every_spelling_and_never_under_a_wrong_id() {
    let upper = TRACE.to_uppercase();
    let of = |trace: &str, more: &str| format!(r#"{{"traceId":"{trace}","spanId":"{SPAN}","name":"s"{more}}}"#);
    let time = r#","startTimeUnixNano":"1712345678901234567""#;
    let bare = r#","startTimeUnixNano":1712345678901234567"#;
    let cases = [
        json("resourceSpans", "scopeSpans", &of(TRACE, time)),
        json("resourceSpans", "scopeSpans", &of(&upper, time)),
        json("resourceSpans", "scopeSpans", &of(TRACE, bare)),
        json("resourceSpans", "scopeSpans", &of(TRACE, &format!(r#"{time},"foo":1"#))),
        json("resourceSpans", "scopeSpans", &of(TRACE, &format!(r#"{time},"kind":"SPAN_KIND_CLIENT""#))),
        json("resourceSpans", "scopeSpans", &of(TRACE, &format!(r#"{time},"kind":3"#))),
    ];
    for (at, body) in cases.iter().enumerate() {
        assert_eq!(walked(Encoding::Json, body.as_bytes()).map(|walked| walked.items), Ok(1), "{body}");
        let read = decode_spans(Encoding::Json, body.as_bytes()).unwrap().remove(0);
        assert_eq!(read.trace_id.to_string(), TRACE, "{body}");
        assert_eq!(read.start.as_unix_nanos(), 1_712_345_678_901_234_567, "{body}");
        assert_eq!(read.kind == SpanKind::Client, at >= 4, "{body}");
    }
    // OTLP/JSON has no other names than those in camel case: nothing is taken, and the answer says so.
    let walked_snake =
        walked(Encoding::Json, json("resource_spans", "scope_spans", &of(TRACE, time)).as_bytes()).unwrap();
    assert_eq!(walked_snake.items, 0);
    assert!(walked_snake.message.is_some_and(|why| why.contains("resourceSpans")));
    for wrong in ["CvdlGRbNQ92ESOshHIAxnA==", "00000000000000000000000000000000", "0af7651916cd43dd8448eb211c8031", ""]
    {
        let body = json("resourceSpans", "scopeSpans", &format!("{},{}", of(wrong, time), of(TRACE, time)));
        let walked = walked(Encoding::Json, body.as_bytes()).unwrap();
        assert_eq!((walked.items, walked.rejected), (1, 1), "{wrong}");
        assert!(walked.message.is_some_and(|why| why.contains("trace")), "{wrong}");
        let rest = walked.rewritten.unwrap();
        assert_eq!(decode_spans(Encoding::Json, &rest).unwrap().len(), 1, "{wrong}");
    }
}

#[test]
fn g1_07_an_id_in_hexadecimal_text_takes_no_neighbour_with_it() {
    let good = |id: u64| span(vec![2; 16], id, "good");
    let body = request(vec![good(1), span(TRACE.as_bytes().to_vec(), 2, "bad"), good(3), good(4)]);
    let walked = walked(Encoding::Protobuf, &body).unwrap();
    assert_eq!((walked.items, walked.rejected), (3, 1));
    let (message, rest) = (walked.message.unwrap(), walked.rewritten.unwrap());
    assert!(message.contains("trace") && message.contains("32"), "{message}");
    let kept: Vec<String> =
        decode_spans(Encoding::Protobuf, &rest).unwrap().into_iter().map(|span| span.name).collect();
    assert_eq!(kept, ["good"; 3]);
}

#[test]
fn g1_09_log_records_of_coding_agents_make_a_trace() {
    let body = r#"{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"claude-code"}}]},
        "scopeLogs":[{"logRecords":[{"timeUnixNano":"1712345678901234567","traceId":"","spanId":"","attributes":[
        {"key":"event.name","value":{"stringValue":"claude_code.api_request"}},{"key":"session.id","value":{"stringValue":"s-1"}},
        {"key":"cost_usd","value":{"doubleValue":0.012}},{"key":"input_tokens","value":{"intValue":"7"}}]}]}]}]}"#;
    let body = body.as_bytes();
    assert_eq!(
        walk(Lane::Logs, Encoding::Json, body, &Limits::default()),
        Ok(Walked { items: 1, ..Walked::default() })
    );
    assert_eq!(has_log_event(Encoding::Json, body, &mut |name| dialect::wants_log(name)), Ok(true));
    let log = decode_logs(Encoding::Json, body).unwrap().remove(0);
    let reading = dialect::read_span(&dialect::step_of(&log).unwrap());
    assert!(reading.is_agentic());
    assert_eq!(
        (reading.usage.input, reading.cost_usd, reading.session_id.as_deref()),
        (Some(7), Some(0.012), Some("s-1"))
    );
}
