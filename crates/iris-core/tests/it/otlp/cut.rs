//! What is rejected goes, and nothing else changes.

use iris_core::model::Lane;
use iris_core::otlp::{Encoding, Limits, Walked, decode_spans, walk};
use proptest::prelude::*;
use prost::Message;
use prost::encoding::encode_varint;

use super::make::{Request, span, text};

/// A length-delimited field.
fn field(number: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_varint(u64::from(number << 3 | 2), &mut out);
    encode_varint(payload.len() as u64, &mut out);
    out.extend_from_slice(payload);
    out
}

/// What a later version of OTLP might add, here a number and a run of bytes that is not UTF-8.
fn unknown() -> Vec<u8> {
    let mut out = field(900, &[0xff, 0xfe]);
    out.extend([0xa8, 0x3f, 0x81, 0x80, 0x00]);
    out
}

/// A trace request by resource, scope and encoded span, with unknown fields at every level.
fn assemble(groups: &[Vec<Vec<Vec<u8>>>]) -> Vec<u8> {
    let mut body = unknown();
    for scopes in groups {
        let mut group = field(1, &field(1, &text("service.name", "shop").encode_to_vec()));
        for spans in scopes {
            let mut scope = field(1, &field(1, b"scope"));
            scope.extend(unknown());
            for span in spans {
                scope.extend(field(2, span));
            }
            scope.extend(unknown());
            scope.extend(field(3, b"https://opentelemetry.io/schemas/1.37.0"));
            group.extend(field(2, &scope));
        }
        group.extend(unknown());
        body.extend(field(1, &group));
    }
    body
}

/// A good span, or one that is wrong in one of the ways that reject it.
fn damaged(id: u32, how: Option<u8>) -> Vec<u8> {
    let mut span = span(id);
    let mut raw = unknown();
    match how {
        Some(0) => span.trace_id = vec![7; 15],
        Some(1) => span.span_id = vec![7; 32],
        Some(2) => span.trace_id = vec![0; 16],
        Some(3) => span.span_id.clear(),
        Some(4) => span.parent_span_id = vec![1; 3],
        Some(5) => raw.extend(field(5, b"\xc3(")),
        Some(6) => raw.extend(field(11, &field(3, &field(1, &[0x80])))),
        Some(7) => raw.extend(field(13, &field(1, &[1; 8]))),
        Some(_) => raw.extend(field(9, &field(2, &field(5, &field(1, &field(1, &[0xff])))))),
        None => {}
    }
    raw.extend(span.encode_to_vec());
    raw
}

fn walked(body: &[u8]) -> Walked {
    walk(Lane::Traces, Encoding::Protobuf, body, &Limits::default()).unwrap()
}

/// An encoded span, and whether it is good.
type Made = (Vec<u8>, bool);
type Groups = Vec<Vec<Vec<Option<u8>>>>;

fn groups() -> impl Strategy<Value = Groups> {
    let how = prop_oneof![3 => Just(None), 2 => (0u8..9).prop_map(Some)];
    let spans = prop::collection::vec(how, 0..9);
    prop::collection::vec(prop::collection::vec(spans, 0..4), 1..4)
}

/// The request, and the same one made without its bad spans.
fn both(groups: &Groups) -> (Vec<u8>, Vec<u8>) {
    let mut id = 0;
    let mut make = |how: &Option<u8>| {
        id += 1;
        (damaged(id, *how), how.is_none())
    };
    let all: Vec<Vec<Vec<Made>>> = groups
        .iter()
        .map(|scopes| scopes.iter().map(|spans| spans.iter().map(&mut make).collect()).collect())
        .collect();
    let pick = |only_good: bool| {
        let spans = |spans: &Vec<Made>| {
            spans.iter().filter(|(_, good)| *good || !only_good).map(|(span, _)| span.clone()).collect()
        };
        let groups: Vec<Vec<Vec<Vec<u8>>>> = all.iter().map(|scopes| scopes.iter().map(spans).collect()).collect();
        assemble(&groups)
    };
    (pick(false), pick(true))
}

proptest! {
    #[test]
    fn what_is_left_is_the_request_made_without_the_bad_spans(groups in groups()) {
        let (body, good) = both(&groups);
        let bad = groups.iter().flatten().flatten().filter(|how| how.is_some()).count();
        let all = groups.iter().flatten().flatten().count();
        let walked = walked(&body);
        prop_assert_eq!((walked.items, walked.rejected), ((all - bad) as u64, bad as u64));
        prop_assert_eq!(walked.message.is_some(), bad > 0);
        prop_assert_eq!(walked.rewritten.is_some(), bad > 0);
        let left = walked.rewritten.unwrap_or(body);
        prop_assert_eq!(&left, &good);
        prop_assert_eq!(decode_spans(Encoding::Protobuf, &left).unwrap().len(), all - bad);
    }
}

#[test]
fn lengths_shrink_over_the_edge_of_a_byte() {
    for many in [1, 2, 3, 200, 20_000] {
        let groups: Groups = vec![vec![(0..many).map(|index| (index > 0).then_some(1)).collect()]];
        let (body, good) = both(&groups);
        assert_eq!(walked(&body).rewritten.unwrap_or(body), good, "{many}");
    }
}

#[test]
fn bytes_around_a_cut_keep_odd_but_lawful_forms() {
    // Two scopes whose lengths are written longer than need be; only the one that is cut gets a new length.
    let odd = |scope: &[u8]| {
        let mut out = vec![0x12, scope.len() as u8 | 0x80, (scope.len() >> 7) as u8 | 0x80, 0x00];
        out.extend_from_slice(scope);
        out
    };
    let (good, bad) = (field(2, &damaged(1, None)), field(2, &damaged(2, Some(1))));
    let whole = odd(&good);
    let body = field(1, &[whole.clone(), odd(&[good.clone(), bad].concat())].concat());
    let expected = field(1, &[whole, field(2, &good)].concat());
    assert_eq!(walked(&body).rewritten.unwrap(), expected);
}

#[test]
fn a_message_names_the_first_and_what_was_wrong_with_it() {
    for (how, why) in [
        (0, "span 1: trace_id must be 16 bytes, was 15"),
        (1, "span 1: span_id must be 8 bytes, was 32"),
        (2, "span 1: trace_id must not be all zero"),
        (3, "span 1: span_id is missing"),
        (4, "span 1: parent_span_id must be 8 bytes, was 3"),
        (5, "span 1: name is not UTF-8"),
        (6, "span 1: key is not UTF-8"),
        (7, "span 1: trace_id must be 16 bytes, was 8"),
        (8, "span 1: string_value is not UTF-8"),
    ] {
        let body = assemble(&[vec![vec![damaged(1, None)], vec![damaged(2, Some(how)), damaged(3, Some(0))]]]);
        let walked = walked(&body);
        assert_eq!((walked.rejected, walked.message.as_deref()), (2, Some(why)));
    }
}

#[test]
fn a_scope_or_resource_that_cannot_be_read_takes_its_spans_with_it() {
    let good = |id| field(2, &damaged(id, None));
    let kept = field(1, &field(2, &good(1)));
    let scope = field(2, &[field(1, &field(1, &[0xff])), good(2), field(2, &damaged(3, Some(0)))].concat());
    let mixed = field(1, &[scope, field(2, &good(4))].concat());
    let lost = field(1, &[field(2, &[good(5), good(6)].concat()), field(3, &[0xff])].concat());
    let walked = walked(&[kept.clone(), mixed, lost].concat());
    assert_eq!((walked.items, walked.rejected), (2, 4));
    assert_eq!(walked.message.as_deref(), Some("scope 1: name is not UTF-8"));
    assert_eq!(walked.rewritten.unwrap(), [kept, field(1, &field(2, &good(4)))].concat());
}

#[test]
fn a_data_point_is_cut_out_of_its_metric() {
    let point = |attribute: &[u8]| field(1, &field(7, &field(1, attribute)));
    let metric = |points: &[u8]| field(1, &field(2, &field(2, &[field(1, b"tokens"), field(7, points)].concat())));
    let walk = |body: &[u8]| walk(Lane::Metrics, Encoding::Protobuf, body, &Limits::default()).unwrap();
    let walked = walk(&metric(&[point(b"a"), point(&[0xff]), point(b"c")].concat()));
    assert_eq!((walked.items, walked.rejected), (2, 1));
    assert_eq!(walked.message.as_deref(), Some("data point 1: key is not UTF-8"));
    let left = walked.rewritten.unwrap();
    assert_eq!(left, metric(&[point(b"a"), point(b"c")].concat()));
    assert_eq!(Request::decode(Lane::Metrics, &left).unwrap().items(), 2);
    let unnamed = field(1, &field(2, &field(2, &[field(1, &[0xff]), field(7, &point(b"a"))].concat())));
    let walked = walk(&unnamed);
    assert_eq!((walked.rejected, walked.message.as_deref()), (1, Some("metric 0: name is not UTF-8")));
    assert_eq!(walked.rewritten.unwrap(), field(1, &field(2, &[])));
}

#[test]
fn a_log_record_may_be_without_ids_but_not_with_wrong_ones() {
    let record = |ids: &[u8]| field(1, &field(2, &field(2, ids)));
    let walk = |body: &[u8]| walk(Lane::Logs, Encoding::Protobuf, body, &Limits::default()).unwrap();
    for ids in [vec![], field(9, &[]), field(9, &[0; 16]), [field(9, &[1; 16]), field(10, &[1; 8])].concat()] {
        assert_eq!(walk(&record(&ids)).items, 1, "{ids:?}");
    }
    for ids in [field(9, &[1; 8]), field(10, &[1; 16]), field(10, &[1; 7])] {
        let walked = walk(&record(&ids));
        assert_eq!((walked.items, walked.rejected), (0, 1), "{ids:?}");
        assert_eq!(walked.rewritten.unwrap(), field(1, &field(2, &[])));
    }
}
