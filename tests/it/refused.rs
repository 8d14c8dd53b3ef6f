//! Bad input gets a clear error and costs nobody else anything.

use std::io::Write as _;
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::support::iris::Iris;
use crate::support::spans::{agent_run, request, trace_hex};

/// The most resident memory the process may have had, in KiB.
const RESIDENT_MAX_KIB: u64 = 256 * 1024;

fn peak_kib(iris: &Iris) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", iris.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Scenario: 20 random bytes; a body of a type nobody speaks.
/// Guarantees: 400 with a `google.rpc.Status`; 415 that names the right types; a good request right after is taken.
#[tokio::test(flavor = "multi_thread")]
async fn nonsense_is_refused_by_name() {
    let iris = Iris::start(&[]).await;
    let nonsense =
        Bytes::from_static(b"\x9f\x12\xc8\x03\x77\x5e\x41\xf0\x08\x66\x9a\xbb\x20\x17\xe1\x52\xd3\x4c\x81\x3a");
    let (status, answer) = iris.post("traces", "application/x-protobuf", nonsense).await.unwrap();
    assert_eq!(status, 400);
    assert!(!answer.is_empty(), "no Status");
    let (status, answer) = iris.post("traces", "text/plain", Bytes::from_static(b"hello")).await.unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert_eq!(status, 415);
    assert!(answer.contains("application/x-protobuf") && answer.contains("application/json"), "{answer}");
    let (status, _) = iris.post("traces", "application/x-protobuf", request(agent_run(1, 2, "Fine."))).await.unwrap();
    assert_eq!(status, 200);
}

/// Scenario: 64 gzip bombs at once; then 64 MiB of empty spans, of empty attributes and of nested arrays.
/// Guarantees: each is refused as too large or as not OTLP, resident memory stays under 256 MB, and a run sent
/// beside them is stored and judged.
#[tokio::test(flavor = "multi_thread")]
async fn bombs_are_refused_within_bounded_memory() {
    let iris = Iris::start(&[("IRIS__ASSEMBLY__QUIET_MS", "300")]).await;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![0_u8; 1 << 20];
    for _ in 0..256 {
        encoder.write_all(&zeros).unwrap();
    }
    let bomb = Bytes::from(encoder.finish().unwrap());
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build().unwrap();
    let url = format!("http://{}/v1/traces", iris.door("http"));
    let bombs: Vec<_> = (0..64)
        .map(|_| {
            let post =
                client.post(&url).header("content-type", "application/x-protobuf").header("content-encoding", "gzip");
            tokio::spawn(post.body(bomb.clone()).send())
        })
        .collect();
    // The other door: at the HTTP door the bombs hold every connection there is.
    match iris.export("traces", request(agent_run(5, 2, "Fine."))).await {
        Ok(_) => {}
        Err(status) => assert_eq!(status.code(), tonic::Code::Unavailable, "{status}"),
    }
    for bomb in bombs {
        let status = bomb.await.unwrap().unwrap().status().as_u16();
        assert!(status == 413 || status == 503, "a bomb was answered {status}");
    }
    for (what, item) in [("empty spans", vec![0x12, 0]), ("empty attributes", vec![0x0a, 0])] {
        let body = nested(what, &item);
        let answer = client.post(&url).header("content-type", "application/x-protobuf").body(body).send().await;
        // The refusal may come, and the connection close, before the body is sent whole.
        if let Ok(answer) = answer {
            assert!([400, 413, 503].contains(&answer.status().as_u16()), "{what}: {}", answer.status());
        }
    }
    assert!(peak_kib(&iris) < RESIDENT_MAX_KIB, "resident memory reached {} KiB", peak_kib(&iris));
    let (status, _) = iris.post("traces", "application/x-protobuf", request(agent_run(6, 2, "Fine."))).await.unwrap();
    assert_eq!(status, 200);
    let path = format!("/api/v1/traces/{}", trace_hex(6));
    iris.until("web", &path, Duration::from_secs(30), |detail| detail["trace"]["in_progress"] == false).await;
}

/// 60 MiB of one small item in a scope, or in a span.
fn nested(what: &str, item: &[u8]) -> Bytes {
    let mut items = Vec::with_capacity(60 << 20);
    while items.len() < 60 << 20 {
        items.extend_from_slice(item);
    }
    let field = |number: u8, body: &[u8]| {
        let mut out = vec![number << 3 | 2];
        let mut length = body.len();
        while length > 127 {
            out.push((length & 127) as u8 | 128);
            length >>= 7;
        }
        out.push(length as u8);
        out.extend_from_slice(body);
        out
    };
    let scope = if what == "empty spans" { items } else { field(2, &field(9, &items)) };
    Bytes::from(field(1, &field(2, &scope)))
}

/// Scenario: an unknown key in the environment; a second sidecar on the same home.
/// Guarantees: the first is refused with the nearest key and exit code 64.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_key_is_refused_with_the_nearest() {
    let mut iris = Iris::prepared(&[("IRIS__ASSEMBLY__QUITE_MS", "5")]);
    let (status, said) = iris.start_refused().await;
    assert_eq!(status.code(), Some(64));
    assert!(said.contains("assembly.quiet_ms"), "{said}");
}

/// Scenario: requests of another protocol come to every door, again and again: HTTP to the gRPC port, gRPC to the HTTP port,
/// OTLP to a path that is none, and to a path of the web door that is none.
/// Guarantees: each is answered with where it belongs, and logged once with the same hint and nothing of what was sent.
#[tokio::test(flavor = "multi_thread")]
async fn requests_at_the_wrong_door_are_logged_seldom() {
    let iris = Iris::start(&[]).await;
    let client = reqwest::Client::new();
    for _ in 0..3 {
        for (door, path, kind, status) in [
            ("grpc", "/v1/traces?canary-41", "application/json", 415),
            ("http", "/canary-41", "application/x-protobuf", 404),
            ("http", "/opentelemetry.proto.collector.trace.v1.TraceService/Export", "application/grpc", 200),
            ("web", "/v1/logs?canary-41", "application/x-protobuf", 404),
        ] {
            let url = format!("http://{}{path}", iris.door(door));
            let answer = client.post(url).header("content-type", kind).body("canary-41").send().await.unwrap();
            assert_eq!(answer.status(), status, "{door} {path}");
        }
    }
    let log = iris.log();
    let told: Vec<&str> = log.lines().filter(|line| line.contains("came that this door does not serve")).collect();
    assert_eq!(told.len(), 4, "{log}");
    for hint in [
        "this port serves OTLP/gRPC",
        "this port serves OTLP/HTTP",
        "/v1/traces, /v1/metrics and /v1/logs",
        "door=\"web\"",
    ] {
        assert!(told.iter().any(|line| line.contains(hint)), "{hint}: {told:?}");
    }
    assert!(!log.contains("canary-41"), "{log}");
}
