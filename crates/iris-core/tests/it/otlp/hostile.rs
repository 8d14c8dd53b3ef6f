//! No bytes do harm: nothing panics, what is taken is what every library takes, bombs are refused at once.

use std::time::{Duration, Instant};

use iris_core::model::Lane;
use iris_core::otlp::{Encoding, Limits, Refusal, decode_logs, decode_spans, has_log_event, json_to_protobuf, walk};
use proptest::prelude::*;
use proptest::sample::Index;

use super::make::{Request, good};
use super::oracle;

const BOMB_BYTES: usize = 64 << 20;
/// Far more than a refusal takes, even unoptimised on a busy machine.
const AT_ONCE: Duration = Duration::from_secs(20);

fn everything(body: &[u8]) {
    for lane in Lane::ALL {
        for encoding in [Encoding::Protobuf, Encoding::Json] {
            let _ = walk(lane, encoding, body, &Limits::default());
        }
        let _ = json_to_protobuf(lane, body);
    }
    for encoding in [Encoding::Protobuf, Encoding::Json] {
        let _ = decode_spans(encoding, body);
        let _ = decode_logs(encoding, body);
        let _ = has_log_event(encoding, body, &mut |_| false);
    }
}

/// What must hold of any protobuf body whatever.
fn check_protobuf(lane: Lane, body: &[u8]) {
    let Ok(walked) = walk(lane, Encoding::Protobuf, body, &Limits::default()) else { return };
    let left = walked.rewritten.as_deref().unwrap_or(body);
    assert_eq!(walked.rewritten.is_some(), walked.message.is_some());
    let again = walk(lane, Encoding::Protobuf, left, &Limits::default());
    if let Ok(again) = &again {
        assert_eq!((again.items, again.rejected, &again.rewritten), (walked.items, 0, &None));
    } else {
        // Nothing but unknown fields may be left.
        assert_eq!(walked.items, 0);
    }
    let request = Request::decode(lane, left).expect("what is taken decodes");
    match &request {
        Request::Traces(request) => {
            assert_eq!(decode_spans(Encoding::Protobuf, left).unwrap(), oracle::spans(request));
        }
        Request::Logs(request) => {
            let logs = decode_logs(Encoding::Protobuf, left).unwrap();
            assert_eq!(logs, oracle::logs(request));
            let mut names = logs.iter().map(|log| log.event_name.as_str());
            let mut agree = |name: &str| {
                assert_eq!(Some(name), names.next());
                false
            };
            has_log_event(Encoding::Protobuf, left, &mut agree).unwrap();
        }
        // Of two kinds of data in one metric the generated message keeps the later.
        Request::Metrics(_) => return,
    }
    assert_eq!(request.items(), walked.items);
}

/// What must hold of any JSON body whatever.
fn check_json(lane: Lane, body: &[u8]) {
    let Ok(walked) = walk(lane, Encoding::Json, body, &Limits::default()) else { return };
    let left = walked.rewritten.as_deref().unwrap_or(body);
    let protobuf = json_to_protobuf(lane, left).expect("what is taken can be written as protobuf");
    let again = walk(lane, Encoding::Json, left, &Limits::default()).unwrap();
    assert_eq!((again.items, again.rejected, again.rewritten), (walked.items, 0, None));
    serde_json::from_slice::<serde::de::IgnoredAny>(left).expect("what is left is JSON");
    let request = Request::decode(lane, &protobuf).unwrap();
    if lane != Lane::Metrics {
        assert_eq!(request.items(), walked.items);
        if let Ok(theirs) = Request::from_json(lane, left) {
            assert_eq!(request, theirs);
        }
    }
}

#[derive(Debug, Clone)]
enum Harm {
    Set(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Repeat(Index, usize),
    End(Index),
}

fn harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        8 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Harm::Set(at, byte)),
        2 => (any::<Index>(), prop::collection::vec(any::<u8>(), 1..5)).prop_map(|(at, bytes)| Harm::Insert(at, bytes)),
        2 => (any::<Index>(), 1usize..40).prop_map(|(at, len)| Harm::Remove(at, len)),
        2 => (any::<Index>(), 1usize..400).prop_map(|(at, len)| Harm::Repeat(at, len)),
        1 => any::<Index>().prop_map(Harm::End),
    ]
}

fn apply(body: &mut Vec<u8>, harm: Harm) {
    if body.is_empty() {
        return;
    }
    let len = body.len();
    match harm {
        Harm::Set(at, byte) => body[at.index(len)] = byte,
        Harm::Insert(at, bytes) => {
            let at = at.index(len);
            body.splice(at..at, bytes);
        }
        Harm::Remove(at, count) => {
            let at = at.index(len);
            body.drain(at..len.min(at + count));
        }
        Harm::Repeat(at, count) => {
            let at = at.index(len);
            let again = body[at..len.min(at + count)].to_vec();
            body.splice(at..at, again);
        }
        Harm::End(at) => body.truncate(at.index(len)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::thorough::cases(2_000)))]

    #[test]
    fn no_bytes_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        everything(&body);
    }

    #[test]
    fn no_text_like_json_panics(body in r#"(\{|\}|\[|\]|,|:|"resourceSpans"|"scopeSpans"|"spans"|"traceId"|"0af7"|null|1e5|-|"\\u|\\ud800"|"kind"| |"x"){0,40}"#) {
        everything(body.as_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::thorough::cases(600)))]

    #[test]
    fn harmed_protobuf_is_refused_or_means_what_the_generated_messages_say(
        case in any::<Index>(),
        harms in prop::collection::vec(harm(), 1..4),
    ) {
        let cases = good("pb");
        let case = case.get(&cases);
        let mut body = case.body.clone();
        harms.into_iter().for_each(|harm| apply(&mut body, harm));
        check_protobuf(case.lane, &body);
        everything(&body);
    }

    #[test]
    fn harmed_json_is_refused_or_means_what_the_crate_reads(
        case in any::<Index>(),
        harms in prop::collection::vec(harm(), 1..4),
    ) {
        let cases = good("pb");
        let case = case.get(&cases);
        let mut body = Request::decode(case.lane, &case.body).unwrap().to_json();
        harms.into_iter().for_each(|harm| apply(&mut body, harm));
        check_json(case.lane, &body);
    }
}

#[test]
fn random_bytes_are_refused() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    for _ in 0..20_000 {
        let body: Vec<u8> = (0..20).map(|_| byte()).collect();
        for lane in Lane::ALL {
            let walked = walk(lane, Encoding::Protobuf, &body, &Limits::default());
            assert!(matches!(walked, Err(Refusal::Malformed { .. })), "{lane:?} {body:x?} {walked:?}");
        }
    }
}

#[test]
fn a_request_of_another_signal_is_malformed() {
    for case in good("pb") {
        for lane in Lane::ALL.into_iter().filter(|lane| *lane != case.lane) {
            let walked = walk(lane, Encoding::Protobuf, &case.body, &Limits::default());
            assert!(matches!(walked, Err(Refusal::Malformed { .. })), "{} as {lane:?}", case.name);
        }
    }
}

#[test]
fn malformed_names_the_place() {
    for (body, offset, why) in [
        (&b"\x0a\x05\x12"[..], 1, "a length points past the end"),
        (b"\x0a\x02\x12\x05", 3, "a length points past the end"),
        (b"\x0a\x02\x10\x05", 2, "a field has the wrong wire type"),
        (b"\x0a\x00\x00", 2, "a field number is 0"),
        (b"\x0a\x00\x0f", 2, "a field has the wrong wire type"),
        (b"\x0a\x00\x17", 3, "a wire type does not exist"),
        (b"\x0a\x00\x10\x80", 3, "a number is cut off"),
        (b"\x0a\x00\x11\x00", 3, "a fixed-size number is cut off"),
        (b"\x0a\x00\x14", 3, "a group ends that did not begin"),
        (b"\x10\x01", 0, "it has no field of a request of its signal"),
    ] {
        let refusal = walk(Lane::Traces, Encoding::Protobuf, body, &Limits::default()).unwrap_err();
        assert_eq!(refusal, Refusal::Malformed { offset, why: why.to_owned() }, "{body:x?}");
    }
}

/// A length-delimited field, its length in five bytes.
fn field(number: u8, payload: Vec<u8>) -> Vec<u8> {
    let len = payload.len();
    let mut out = vec![number << 3 | 2];
    out.extend((0..4).map(|index| (len >> (7 * index)) as u8 & 0x7f | 0x80));
    out.push((len >> 28) as u8);
    out.extend(payload);
    out
}

/// A payload in fields within each other, the outermost first, written once.
fn nested(numbers: &[u8], payload: &[u8]) -> Vec<u8> {
    const HEAD_BYTES: usize = 6;
    let mut out = Vec::with_capacity(numbers.len() * HEAD_BYTES + payload.len());
    for (at, number) in numbers.iter().enumerate() {
        let inner = payload.len() + (numbers.len() - 1 - at) * HEAD_BYTES;
        out.extend(&field(*number, vec![])[..1]);
        out.extend((0..4).map(|index| (inner >> (7 * index)) as u8 & 0x7f | 0x80));
        out.push((inner >> 28) as u8);
    }
    out.extend_from_slice(payload);
    out
}

#[test]
fn bombs_are_refused_at_once() {
    let pairs = |pair: [u8; 2]| pair.repeat(BOMB_BYTES / 2);
    let bombs = [
        ("groups", pairs([0x0a, 0])),
        ("scopes", nested(&[1], &pairs([0x12, 0]))),
        ("spans", nested(&[1, 2], &pairs([0x12, 0]))),
        ("attributes", nested(&[1, 2, 2], &pairs([0x4a, 0]))),
        ("events", nested(&[1, 2, 2], &pairs([0x5a, 0]))),
        ("elements", nested(&[1, 2, 2, 9, 2, 5], &pairs([0x0a, 0]))),
    ];
    for (what, body) in bombs {
        let started = Instant::now();
        let refusal = walk(Lane::Traces, Encoding::Protobuf, &body, &Limits::default()).unwrap_err();
        assert!(matches!(refusal, Refusal::TooMany { items: 262_145, max: 262_144 }), "{what} {refusal}");
        assert!(started.elapsed() < AT_ONCE, "{what} took {:?}", started.elapsed());
    }
    let json = |open: &str, one: &str| format!("{open}{}", one.repeat(BOMB_BYTES / one.len()));
    for (what, body) in [
        ("spans", json(r#"{"resourceSpans":[{"scopeSpans":[{"spans":["#, "{},")),
        ("words", json(r#"{"resourceSpans":[{"scopeSpans":[{"spans":["#, "1,")),
        (
            "elements",
            json(r#"{"resourceSpans":[{"resource":{"attributes":[{"value":{"arrayValue":{"values":["#, "null,"),
        ),
    ] {
        let started = Instant::now();
        let refusal = walk(Lane::Traces, Encoding::Json, body.as_bytes(), &Limits::default()).unwrap_err();
        assert!(matches!(refusal, Refusal::TooMany { items: 262_145, max: 262_144 }), "{what} {refusal}");
        assert!(started.elapsed() < AT_ONCE, "{what} took {:?}", started.elapsed());
    }
}

#[test]
fn nesting_has_an_end() {
    let request = |depth: usize| {
        let mut value = vec![];
        for _ in 1..depth {
            value = field(5, field(1, value));
        }
        let ids = [vec![0x0a, 16], vec![1; 16], vec![0x12, 8], vec![1; 8]].concat();
        field(1, field(2, field(2, [ids, field(9, field(2, value))].concat())))
    };
    let max = Limits::default().depth_max;
    let body = request(max);
    assert_eq!(walk(Lane::Traces, Encoding::Protobuf, &body, &Limits::default()).unwrap().items, 1);
    assert_eq!(decode_spans(Encoding::Protobuf, &body).unwrap().len(), 1);
    for depth in [max + 1, 2_000] {
        let body = request(depth);
        assert_eq!(walk(Lane::Traces, Encoding::Protobuf, &body, &Limits::default()), Err(Refusal::TooDeep { max }));
        assert_eq!(decode_spans(Encoding::Protobuf, &body), Err(Refusal::TooDeep { max }));
    }
    let groups = [vec![0x0a, 0], [0x13].repeat(BOMB_BYTES)].concat();
    assert!(matches!(
        walk(Lane::Traces, Encoding::Protobuf, &groups, &Limits::default()),
        Err(Refusal::Malformed { .. })
    ));
    let value = r#"{"arrayValue":{"values":["#;
    let open = r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":"#;
    let json = |depth: usize| format!("{open}{}{{}}{}}}]}}]}}]}}", value.repeat(depth - 1), "]}}".repeat(depth - 1));
    assert_eq!(walk(Lane::Logs, Encoding::Json, json(max).as_bytes(), &Limits::default()).unwrap().items, 1);
    assert_eq!(decode_logs(Encoding::Json, json(max).as_bytes()).unwrap().len(), 1);
    for body in [json(max + 1), json(100_000), "[".repeat(BOMB_BYTES), format!("{{\"x\":{}", "[".repeat(BOMB_BYTES))] {
        let refusal = walk(Lane::Logs, Encoding::Json, body.as_bytes(), &Limits::default()).unwrap_err();
        assert!(body.starts_with('[') || refusal == Refusal::TooDeep { max }, "{refusal}");
    }
}
