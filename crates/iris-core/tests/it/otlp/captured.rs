//! Requests that exporters really sent are taken whole and mean the same in every way they can be read.

use iris_core::model::Lane;
use iris_core::otlp::{
    Encoding, Limits, content_hash_span, decode_logs, decode_spans, has_log_event, json_to_protobuf, walk,
};

use super::make::{Request, good};
use super::oracle;

#[test]
fn captured_requests_are_taken_whole_and_decode_as_the_generated_messages_do() {
    let cases = good("pb");
    for lane in Lane::ALL {
        assert!(cases.iter().filter(|case| case.lane == lane).count() >= 5, "too few {lane:?}");
    }
    for case in cases {
        let request = Request::decode(case.lane, &case.body).unwrap();
        let walked = walk(case.lane, Encoding::Protobuf, &case.body, &Limits::default()).unwrap();
        assert_eq!((walked.items, walked.rejected), (request.items(), 0), "{}", case.name);
        assert_eq!((walked.message, walked.rewritten), (None, None), "{}", case.name);
        match &request {
            Request::Traces(request) => {
                let spans = decode_spans(Encoding::Protobuf, &case.body).unwrap();
                assert!(!spans.is_empty(), "{}", case.name);
                assert_eq!(spans, oracle::spans(request), "{}", case.name);
            }
            Request::Logs(request) => {
                let logs = decode_logs(Encoding::Protobuf, &case.body).unwrap();
                assert!(!logs.is_empty(), "{}", case.name);
                assert_eq!(logs, oracle::logs(request), "{}", case.name);
            }
            Request::Metrics(_) => {}
        }
    }
}

#[test]
fn captured_requests_written_as_json_mean_the_same() {
    for case in good("pb") {
        let request = Request::decode(case.lane, &case.body).unwrap();
        let json = request.to_json();
        let walked = walk(case.lane, Encoding::Json, &json, &Limits::default()).unwrap();
        assert_eq!((walked.items, walked.rejected), (request.items(), 0), "{} {:?}", case.name, walked.message);
        assert_eq!((walked.message, walked.rewritten), (None, None), "{}", case.name);
        let back = json_to_protobuf(case.lane, &json).unwrap();
        assert_eq!(Request::decode(case.lane, &back).unwrap(), request, "{}", case.name);
        if case.lane == Lane::Traces {
            let (ours, sent) = (decode_spans(Encoding::Json, &json), decode_spans(Encoding::Protobuf, &case.body));
            assert_eq!(ours, sent, "{}", case.name);
            let hashes = |spans: Vec<_>| spans.iter().map(content_hash_span).collect::<Vec<_>>();
            assert_eq!(hashes(ours.unwrap()), hashes(sent.unwrap()), "{}", case.name);
        }
    }
}

#[test]
fn published_examples_of_json_are_read_as_the_crate_reads_them() {
    let cases = good("json");
    assert_eq!(cases.len(), 4);
    for case in cases {
        let expected = Request::from_json(case.lane, &case.body).unwrap();
        let walked = walk(case.lane, Encoding::Json, &case.body, &Limits::default()).unwrap();
        assert_eq!((walked.items, walked.rejected), (expected.items(), 0), "{} {:?}", case.name, walked.message);
        assert!(walked.items > 0 && walked.rewritten.is_none(), "{}", case.name);
        let protobuf = json_to_protobuf(case.lane, &case.body).unwrap();
        assert_eq!(Request::decode(case.lane, &protobuf).unwrap(), expected, "{}", case.name);
    }
}

#[test]
fn an_empty_request_asks_for_nothing() {
    for lane in Lane::ALL {
        for (encoding, body) in [(Encoding::Protobuf, ""), (Encoding::Json, "{}"), (Encoding::Json, " {\n}\n")] {
            let walked = walk(lane, encoding, body.as_bytes(), &Limits::default()).unwrap();
            assert_eq!(walked, Default::default(), "{lane:?} {encoding:?}");
        }
    }
    assert_eq!(decode_spans(Encoding::Json, b"{}"), Ok(Vec::new()));
    assert_eq!(decode_logs(Encoding::Protobuf, b""), Ok(Vec::new()));
}

#[test]
fn events_are_found_by_the_name_that_decoding_gives_them() {
    let mut names = std::collections::BTreeSet::new();
    for case in good("pb").into_iter().filter(|case| case.lane == Lane::Logs) {
        let json = Request::decode(case.lane, &case.body).unwrap().to_json();
        let decoded: Vec<String> =
            decode_logs(Encoding::Protobuf, &case.body).unwrap().into_iter().map(|log| log.event_name).collect();
        for (encoding, body) in [(Encoding::Protobuf, &case.body), (Encoding::Json, &json)] {
            let mut asked = Vec::new();
            let mut note = |name: &str| {
                asked.push(name.to_owned());
                false
            };
            assert_eq!(has_log_event(encoding, body, &mut note), Ok(false), "{}", case.name);
            assert_eq!(asked, decoded, "{}", case.name);
            let last = decoded.last().unwrap();
            assert_eq!(has_log_event(encoding, body, &mut |name| name == last), Ok(true), "{}", case.name);
        }
        names.extend(decoded);
    }
    assert!(names.contains("gen_ai.user.message") && names.len() > 3, "{names:?}");
}

/// The smallest limit under which a body is taken.
fn items(lane: Lane, encoding: Encoding, body: &[u8]) -> usize {
    let is_taken = |items_max| walk(lane, encoding, body, &Limits { items_max, ..Limits::default() }).is_ok();
    let (mut too_few, mut enough) = (0, 262_144);
    assert!(is_taken(enough) && !is_taken(too_few));
    while too_few + 1 < enough {
        let middle = usize::midpoint(too_few, enough);
        *(if is_taken(middle) { &mut enough } else { &mut too_few }) = middle;
    }
    enough
}

#[test]
fn items_of_every_kind_are_counted_alike_in_both_encodings() {
    let body = br#"{"resourceSpans":[{"resource":{"attributes":[{}]},"scopeSpans":[{"spans":[{
        "traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","links":[{}],
        "events":[{"attributes":[{}]}],
        "attributes":[{},{"value":{"arrayValue":{"values":[{},null,{"kvlistValue":{"values":[{}]}}]}}}]}]}]}]}"#;
    // Group, resource attribute, group, span, link, event, its attribute, two attributes, three elements, a pair.
    assert_eq!(items(Lane::Traces, Encoding::Json, body), 13);
    let protobuf = json_to_protobuf(Lane::Traces, body).unwrap();
    assert_eq!(items(Lane::Traces, Encoding::Protobuf, &protobuf), 13);
    for case in good("pb") {
        let json = Request::decode(case.lane, &case.body).unwrap().to_json();
        let (protobuf, json) =
            (items(case.lane, Encoding::Protobuf, &case.body), items(case.lane, Encoding::Json, &json));
        assert_eq!(protobuf, json, "{}", case.name);
    }
}
