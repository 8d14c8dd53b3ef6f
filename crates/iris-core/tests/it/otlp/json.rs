//! OTLP/JSON as senders write it.

use iris_core::model::{Lane, RawSpan, SpanKind, StatusCode};
use iris_core::otlp::{self, Encoding, Limits, Refusal, Walked, decode_logs, decode_spans, json_to_protobuf, walk};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::make::Request;

const IDS: &str = r#""traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331""#;

fn in_scope(spans: &str) -> String {
    format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{spans}]}}]}}]}}"#)
}

fn walked(body: &str) -> Walked {
    walk(Lane::Traces, Encoding::Json, body.as_bytes(), &Limits::default()).unwrap()
}

/// The one span with these members, ids given.
fn span(members: &str) -> RawSpan {
    let body = in_scope(&format!("{{{IDS},{members}}}"));
    assert_eq!(walked(&body), Walked { items: 1, ..Walked::default() }, "{members}");
    decode_spans(Encoding::Json, body.as_bytes()).unwrap().remove(0)
}

fn attribute(value: &str) -> Value {
    let span = span(&format!(r#""attributes":[{{"key":"k","value":{value}}}]"#));
    span.attributes["k"].clone()
}

#[test]
fn values_are_read_in_every_form_that_senders_use() {
    for (value, expected) in [
        (r#"{"stringValue":"a\u00e9\ud83d\ude00\n\/\"b"}"#, json!("aé😀\n/\"b")),
        (r#"{"stringValue":"cut \ud83d"}"#, json!("cut \u{fffd}")),
        (r#"{"stringValue":"\ude00\ud83dx"}"#, json!("\u{fffd}\u{fffd}x")),
        (r#"{"stringValue":"\ud83d\ud83d\ude00"}"#, json!("\u{fffd}😀")),
        (r#"{"intValue":12}"#, json!(12)),
        (r#"{"intValue":"12"}"#, json!(12)),
        (r#"{"intValue":12.0}"#, json!(12)),
        (r#"{"intValue":1.2e1}"#, json!(12)),
        (r#"{"intValue":"-9223372036854775808"}"#, json!(i64::MIN)),
        (r#"{"intValue":9223372036854775807}"#, json!(i64::MAX)),
        (r#"{"intValue":9007199254740993}"#, json!(9_007_199_254_740_993_i64)),
        (r#"{"doubleValue":0.1}"#, json!(0.1)),
        (r#"{"doubleValue":3}"#, json!(3.0)),
        (r#"{"doubleValue":"2.5"}"#, json!(2.5)),
        (r#"{"doubleValue":"NaN"}"#, json!("NaN")),
        (r#"{"doubleValue":"Infinity"}"#, json!("Infinity")),
        (r#"{"doubleValue":"-Infinity"}"#, json!("-Infinity")),
        (r#"{"boolValue":false}"#, json!(false)),
        (r#"{"bytesValue":"+/8="}"#, json!("+/8=")),
        (r#"{"bytesValue":"-_8"}"#, json!("+/8=")),
        (r#"{"arrayValue":{"values":[{"intValue":1},null,{}]}}"#, json!([1, null, null])),
        (r#"{"arrayValue":{}}"#, json!([])),
        (r#"{"arrayValue":{"values":null}}"#, json!([])),
        (r#"{"kvlistValue":{"values":[{"key":"a","value":{"kvlistValue":{"values":[]}}}]}}"#, json!({"a": {}})),
        (r#"{"stringValue":null,"intValue":3}"#, json!(3)),
        (r#"{"later":[{"x":[1,2.5e-3,"\u0000",true,{}]}],"intValue":3}"#, json!(3)),
        (r#"{"intValue":1,"stringValue":"the later counts"}"#, json!("the later counts")),
        ("{}", Value::Null),
        ("null", Value::Null),
    ] {
        assert_eq!(attribute(value), expected, "{value}");
    }
}

#[test]
fn fields_are_read_in_every_form_that_senders_use() {
    let upper = in_scope(r#"{"traceId":"0AF7651916CD43DD8448EB211C80319C","spanId":"B7ad6b7169203331"}"#);
    let upper = decode_spans(Encoding::Json, upper.as_bytes()).unwrap().remove(0);
    assert_eq!(upper.trace_id, span(r#""name":"n""#).trace_id);
    for kind in ["3", r#""3""#, r#""SPAN_KIND_CLIENT""#, "3.0"] {
        assert_eq!(span(&format!(r#""kind":{kind}"#)).kind, SpanKind::Client, "{kind}");
    }
    for code in ["2", r#""STATUS_CODE_ERROR""#] {
        let status = format!(r#""status":{{"code":{code},"message":"m","details":[]}}"#);
        assert_eq!(span(&status).status, StatusCode::Error, "{code}");
    }
    for time in ["1544712660300000001", r#""1544712660300000001""#] {
        let span = span(&format!(r#""endTimeUnixNano":{time}"#));
        assert_eq!(span.end.as_unix_nanos(), 1_544_712_660_300_000_001, "{time}");
    }
    assert_eq!(span(r#""parentSpanId":"""#).parent_span_id, None);
    assert_eq!(span(r#""parentSpanId":null"#).parent_span_id, None);
    assert_eq!(span(r#""flags":257"#).flags, 257);
    assert_eq!(span(r#""name":"a","name":"b""#).name, "b");
    assert_eq!(span(r#""n\u0061me":"escaped key""#).name, "escaped key");
    assert_eq!(span(r#""attributes":[{"key":"a"}],"attributes":[{"key":"b"}]"#).attributes.len(), 2);
    assert_eq!(span(r#""trace_state":"snake case is unknown","name":"n""#).trace_state, "");
    let log = br#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"severityNumber":"SEVERITY_NUMBER_WARN",
        "observedTimeUnixNano":"7","attributes":[{"key":"event.name","value":{"stringValue":"gen_ai.choice"}}]}]}]}]}"#;
    let log = decode_logs(Encoding::Json, log).unwrap().remove(0);
    assert_eq!((log.severity, log.time.as_unix_nanos(), log.event_name.as_str()), (13, 7, "gen_ai.choice"));
}

#[test]
fn a_span_that_cannot_be_read_is_rejected_alone() {
    for (bad, why) in [
        (r#""spanId":"b7ad6b7169203331""#.to_owned(), "trace_id is missing"),
        (r#""traceId":null,"spanId":"b7ad6b7169203331""#.to_owned(), "trace_id is missing"),
        (format!(r#"{IDS},"spanId":"b7ad6b71692033""#), "span_id must be 16 hex digits, was 14"),
        (format!(r#"{IDS},"traceId":"CvdlGRbNQ92ESOshHIAxnA==""#), "trace_id is not hex"),
        (format!(r#"{IDS},"traceId":"{}""#, "0".repeat(32)), "trace_id must not be all zero"),
        (format!(r#"{IDS},"traceId":7"#), "trace_id is not a string of hex digits"),
        (format!(r#"{IDS},"parentSpanId":"ab""#), "parent_span_id must be 16 hex digits, was 2"),
        (format!(r#"{IDS},"name":7"#), "name is not a string"),
        (format!(r#"{IDS},"kind":"CLIENT""#), "kind is not an integer of its range"),
        (format!(r#"{IDS},"kind":[]"#), "kind is not an integer"),
        (format!(r#"{IDS},"flags":4294967296"#), "flags is not an integer of its range"),
        (format!(r#"{IDS},"startTimeUnixNano":-1"#), "start_time_unix_nano is not an integer of its range"),
        (format!(r#"{IDS},"startTimeUnixNano":"1.5""#), "start_time_unix_nano is not an integer of its range"),
        (format!(r#"{IDS},"startTimeUnixNano":"+1""#), "start_time_unix_nano is not an integer of its range"),
        (format!(r#"{IDS},"events":{{}}"#), "events is not an array"),
        (format!(r#"{IDS},"events":[7]"#), "events is not an object"),
        (format!(r#"{IDS},"status":[1,[2]]"#), "status is not an object"),
        (format!(r#"{IDS},"attributes":[{{"value":{{"doubleValue":1e999}}}}]"#), "double_value is not a number"),
        (format!(r#"{IDS},"attributes":[{{"value":{{"doubleValue":"inf"}}}}]"#), "double_value is not a number"),
        (
            format!(r#"{IDS},"attributes":[{{"value":{{"intValue":9223372036854775808}}}}]"#),
            "int_value is not an integer of its range",
        ),
        (format!(r#"{IDS},"attributes":[{{"value":{{"bytesValue":"?"}}}}]"#), "bytes_value is not base64"),
        (format!(r#"{IDS},"attributes":[{{"value":{{"boolValue":"true"}}}}]"#), "bool_value is not true or false"),
    ] {
        let walked = walked(&in_scope(&format!("{{{IDS}}}, {{{bad}}}")));
        assert_eq!((walked.items, walked.rejected), (1, 1), "{bad}");
        assert_eq!(walked.message, Some(format!("span 1: {why}")), "{bad}");
        assert_eq!(walked.rewritten, Some(in_scope(&format!("{{{IDS}}} ")).into_bytes()), "{bad}");
    }
    let walked = walked(&in_scope(&format!(r#""span", {{{IDS}}}"#)));
    assert_eq!(walked.message.as_deref(), Some("span 0: it is not an object"));
    assert_eq!(walked.rewritten, Some(in_scope(&format!(" {{{IDS}}}")).into_bytes()));
}

#[test]
fn malformed_names_the_place() {
    for (body, offset, why) in [
        ("", 0, "the request is not a JSON object"),
        ("[]", 0, "the request is not a JSON object"),
        ("{", 1, "an object's key is not a string"),
        (r#"{"a":1,}"#, 7, "an object's key is not a string"),
        (r#"{"a" 1}"#, 5, "a key has no colon"),
        (r#"{"a":1 "b":2}"#, 7, "an object goes on without a comma"),
        (r#"{"a":[1 2]}"#, 8, "an array goes on without a comma"),
        (r#"{"a":[1,]}"#, 8, "a value is not JSON"),
        (r#"{"a":01}"#, 5, "a value is not JSON"),
        (r#"{"a":NaN}"#, 5, "a value is not JSON"),
        (r#"{"a":tru}"#, 5, "a value is not JSON"),
        (r#"{"a":"\x"}"#, 6, "an escape does not exist"),
        ("{\"a\":\"\n\"}", 6, "a string holds a control character"),
        (r#"{"a":"b}"#, 5, "a string does not end"),
        (r#"{} {}"#, 3, "something follows the request"),
        (r#"{"resourceSpans":{}}"#, 17, "a field does not hold what OTLP says it does"),
        (r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"#, 51, "the request is cut off"),
    ] {
        let refusal = walk(Lane::Traces, Encoding::Json, body.as_bytes(), &Limits::default()).unwrap_err();
        assert_eq!(refusal, Refusal::Malformed { offset, why: why.to_owned() }, "{body}");
    }
    let refusal = walk(Lane::Traces, Encoding::Json, b"{\"a\":\"\xff\"}", &Limits::default()).unwrap_err();
    assert_eq!(refusal, Refusal::Malformed { offset: 6, why: "the request is not UTF-8".to_owned() });
}

#[test]
fn a_request_that_names_nothing_we_know_is_warned_about() {
    for body in [r#"{"resource_spans":[]}"#, r#"{"resourceLogs":[]}"#] {
        let walked = walked(body);
        assert_eq!((walked.items, walked.rejected, walked.rewritten), (0, 0, None));
        assert_eq!(walked.message.as_deref(), Some("the request has no resourceSpans, nothing was taken"));
    }
    assert_eq!(walked(r#"{"resourceSpans":[]}"#).message, None);
}

/// White space, as much as one likes.
fn blank() -> impl Strategy<Value = String> {
    "[ \n\r\t]{0,3}"
}

proptest! {
    #[test]
    fn what_is_left_is_the_text_without_the_bad_spans_and_their_commas(
        spans in prop::collection::vec((any::<bool>(), blank(), blank()), 0..8),
        more in prop::collection::vec(any::<bool>(), 0..3),
    ) {
        let text = |index: usize, good: bool| {
            let id = if good { format!("{:016x}", index + 1) } else { "00".to_owned() };
            format!(r#"{{"traceId":"{:032x}","spanId":"{id}","name":"], {{\"{index}"}}"#, index + 1)
        };
        let parts: Vec<String> = spans
            .iter()
            .enumerate()
            .map(|(index, (good, before, after))| format!("{before}{}{after}", text(index, *good)))
            .collect();
        let second: Vec<String> = more.iter().enumerate().map(|(index, good)| text(index, *good)).collect();
        let body = in_scope(&format!("{}],\"x\":[],\"spans\":[{}", parts.join(","), second.join(",")));
        // Blanks stay: a bad span leaves those around it, between the commas that are left.
        let mut left = String::new();
        let (mut kept, mut follows) = (false, false);
        for (index, (good, before, after)) in spans.iter().enumerate() {
            if *good && kept && follows {
                left.push(',');
            }
            left.push_str(before);
            if *good {
                left.push_str(&text(index, true));
                (kept, follows) = (true, true);
            }
            left.push_str(after);
        }
        let second_left: Vec<String> =
            more.iter().enumerate().filter(|(_, good)| **good).map(|(index, _)| text(index, true)).collect();
        let expected = in_scope(&format!("{left}],\"x\":[],\"spans\":[{}", second_left.join(",")));
        let walked = walked(&body);
        let good = spans.iter().filter(|(good, _, _)| *good).count() + second_left.len();
        prop_assert_eq!(walked.items, good as u64);
        prop_assert_eq!(walked.rejected, (spans.len() + more.len() - good) as u64);
        let left = walked.rewritten.unwrap_or(body.into_bytes());
        prop_assert_eq!(String::from_utf8_lossy(&left), expected);
        prop_assert_eq!(decode_spans(Encoding::Json, &left).unwrap().len(), good);
    }
}

#[test]
fn all_kinds_of_points_survive_the_way_to_protobuf() {
    let point =
        r#""attributes":[{"key":"k","value":{"intValue":"1"}}],"startTimeUnixNano":"1","timeUnixNano":2,"flags":1"#;
    let exemplar =
        r#""exemplars":[{"timeUnixNano":"3","asInt":"-4","spanId":"b7ad6b7169203331","filteredAttributes":[]}]"#;
    let body = format!(
        r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[
        {{"name":"g","unit":"1","gauge":{{"dataPoints":[{{{point},"asDouble":0.5,{exemplar}}},{{{point},"asInt":"-5"}}]}}}},
        {{"name":"s","sum":{{"dataPoints":[{{{point},"asInt":7}}],"aggregationTemporality":2,"isMonotonic":true}}}},
        {{"name":"h","histogram":{{"dataPoints":[{{{point},"count":"3","sum":1.5,"bucketCounts":["1",2],
            "explicitBounds":[0.5],"min":0,"max":"1"}}],"aggregationTemporality":"AGGREGATION_TEMPORALITY_DELTA"}}}},
        {{"name":"e","exponentialHistogram":{{"dataPoints":[{{{point},"scale":-3,"zeroCount":"1","zeroThreshold":0.1,
            "positive":{{"offset":-1,"bucketCounts":["18446744073709551615",0]}},"negative":{{}}}}]}}}},
        {{"name":"q","summary":{{"dataPoints":[{{{point},"count":1,"sum":2,"quantileValues":[{{"quantile":0.5,"value":1}}]}}]}}}}
        ]}}]}}]}}"#
    );
    let walked = walk(Lane::Metrics, Encoding::Json, body.as_bytes(), &Limits::default()).unwrap();
    assert_eq!(walked, Walked { items: 6, ..Walked::default() });
    let Request::Metrics(request) =
        Request::decode(Lane::Metrics, &json_to_protobuf(Lane::Metrics, body.as_bytes()).unwrap()).unwrap()
    else {
        unreachable!()
    };
    let back: Value = serde_json::to_value(&request.resource_metrics[0].scope_metrics[0].metrics).unwrap();
    let at = |pointer: &str| back.pointer(pointer).unwrap_or(&Value::Null).clone();
    assert_eq!(at("/0/gauge/dataPoints/0/asDouble"), json!(0.5));
    assert_eq!(at("/0/gauge/dataPoints/0/exemplars/0/spanId"), json!("b7ad6b7169203331"));
    assert_eq!(at("/1/sum/isMonotonic"), json!(true));
    assert_eq!(at("/2/histogram/dataPoints/0/bucketCounts"), json!(["1", "2"]));
    assert_eq!(at("/2/histogram/aggregationTemporality"), json!(1));
    assert_eq!(at("/3/exponentialHistogram/dataPoints/0/scale"), json!(-3));
    assert_eq!(at("/3/exponentialHistogram/dataPoints/0/positive/offset"), json!(-1));
    assert_eq!(at("/3/exponentialHistogram/dataPoints/0/positive/bucketCounts/0"), json!("18446744073709551615"));
    assert_eq!(at("/4/summary/dataPoints/0/quantileValues/0/quantile"), json!(0.5));
}

/// Guarantees: a trace is known by its id whichever letters it is written with: what is deleted is found in either.
#[test]
fn an_unwanted_trace_is_found_in_capital_letters_too() {
    let span = |id: &str| format!(r#"{{"traceId":"{id}","spanId":"eee19b7ec3c1b174","name":"x"}}"#);
    for id in
        ["5b8efff798038103d269b633813fc60c", "5B8EFFF798038103D269B633813FC60C", "5b8EFFf798038103d269b633813fC60C"]
    {
        let other = span("0af7651916cd43dd8448eb211c80319c");
        let body = format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{},{other}]}}]}}]}}"#, span(id));
        let mut asked = Vec::new();
        let left = otlp::without(Lane::Traces, Encoding::Json, body.as_bytes(), &mut |trace| {
            asked.push(trace);
            trace == "5b8efff798038103d269b633813fc60c".parse().unwrap()
        });
        let left = left.unwrap();
        assert_eq!((asked.len(), left.items, left.rejected), (2, 1, 1), "{id}");
        assert!(!String::from_utf8(left.rewritten.unwrap()).unwrap().contains(id), "{id}");
    }
}
