//! What arrives when nothing goes wrong.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn every_lane_arrives_byte_for_byte_over_both_protocols_compressed_or_not() {
    for protocol in PROTOCOLS {
        for compression in [Compression::None, Compression::Gzip] {
            let (journal, _home) = journal();
            let collector = Collector::start().await;
            for lane in Lane::ALL {
                put_numbered(&journal, lane, 0..50).await;
                // Beyond what is compressed inline, and beyond one HTTP/2 window.
                put(&journal, lane, Kind::Otlp, Encoding::Protobuf, vec![0xff; 300_000]).await;
                put(&journal, lane, Kind::Otlp, Encoding::Protobuf, Bytes::new()).await;
            }
            let headers = [("X-Scope".to_owned(), "a secret".into())].into();
            let forwarder = forward(&journal, &Config { compression, headers, ..config(&collector, protocol) });
            for lane in Lane::ALL {
                let name = lane.as_str();
                collector.until("all bodies", |collector| collector.bodies(name).len() == 52).await;
                let mut expected = numbered(0..50);
                expected.extend([Bytes::new(), vec![0xff; 300_000].into()]);
                expected.sort();
                assert_eq!(collector.bodies(name), expected, "{protocol:?} {compression:?} {name}");
                for taken in collector.taken(name) {
                    assert_eq!(taken.grpc, protocol == Protocol::Grpc);
                    assert_eq!(taken.headers["x-scope"], "a secret");
                    let coding = if taken.grpc { "grpc-encoding" } else { "content-encoding" };
                    let gzip = taken.headers.get(coding).is_some_and(|coding| coding == "gzip");
                    assert_eq!(gzip, compression == Compression::Gzip);
                }
                let status = until(&forwarder, lane, |status| status.state == State::Idle).await;
                assert_eq!((status.sent, status.failed, status.dropped, status.in_flight_bytes), (52, 0, 0, 0));
                assert_eq!(status.cursor, journal.forward_cursor(lane));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn json_is_unchanged_over_http_and_transcoded_for_grpc() {
    let json = br#"{ "resourceSpans": [{"scopeSpans":[{"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","name":"x"}]}]}] }"#;
    for protocol in PROTOCOLS {
        let (journal, _home) = journal();
        let collector = Collector::start().await;
        put(&journal, Lane::Traces, Kind::Otlp, Encoding::Json, &json[..]).await;
        let _forwarder = forward(&journal, &config(&collector, protocol));
        collector.until("the body", |collector| !collector.taken("traces").is_empty()).await;
        let taken = collector.taken("traces").remove(0);
        match protocol {
            Protocol::Http => {
                assert_eq!(taken.body, &json[..]);
                assert_eq!(taken.headers["content-type"], "application/json");
            }
            Protocol::Grpc => assert_is_the_span(&taken.body),
        }
    }
}

fn assert_is_the_span(body: &[u8]) {
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    let span = &request.resource_spans[0].scope_spans[0].spans[0];
    assert_eq!((span.name.as_str(), span.trace_id[0], span.span_id[7]), ("x", 0x0a, 0x31));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_downstream_that_takes_no_json_gets_protobuf() {
    let json = br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","name":"x"}]}]}]}"#;
    let (journal, _home) = journal();
    let collector = Collector::start().await;
    collector.set(&Mood::NoJson);
    for _ in 0..3 {
        put(&journal, Lane::Traces, Kind::Otlp, Encoding::Json, &json[..]).await;
    }
    let forwarder = forward(&journal, &Config { concurrency: 1, ..config(&collector, Protocol::Http) });
    collector.until("all three", |collector| collector.taken("traces").len() == 3).await;
    assert_eq!(collector.attempts("traces").len(), 4, "it is found out once");
    collector.taken("traces").iter().for_each(|taken| assert_is_the_span(&taken.body));
    assert_eq!(standing(&forwarder, Lane::Traces).failed, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_telemetry_is_sent_and_what_is_skipped_moves_the_cursor() {
    let (journal, _home) = journal();
    let collector = Collector::start().await;
    for kind in [Kind::ToolTrace, Kind::ToolEvaluation, Kind::Tombstone] {
        put(&journal, Lane::Traces, kind, Encoding::Json, "secret").await;
    }
    put_numbered(&journal, Lane::Traces, 0..1).await;
    let last = put(&journal, Lane::Traces, Kind::Tombstone, Encoding::Json, "secret").await;
    put(&journal, Lane::Logs, Kind::Verdict, Encoding::Protobuf, body(7)).await;
    let forwarder = forward(&journal, &config(&collector, Protocol::Grpc));
    until(&forwarder, Lane::Traces, |status| status.cursor == last).await;
    collector.until("the verdict", |collector| collector.bodies("logs") == numbered(7..8)).await;
    assert_eq!(collector.bodies("traces"), numbered(0..1));
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_traces_are_sent_when_asked_for() {
    let writer: ToolTraceWriter = |record| (record.body != "no").then(|| Bytes::from_static(b"written"));
    for tool_traces in [false, true] {
        let (journal, _home) = journal();
        let collector = Collector::start().await;
        for text in ["yes", "no"] {
            put(&journal, Lane::Traces, Kind::ToolTrace, Encoding::Json, text).await;
        }
        let last = put_numbered(&journal, Lane::Traces, 0..1).await;
        let target =
            Target::new(&Config { tool_traces, ..config(&collector, Protocol::Grpc) }, Origin::Configured, &[]);
        let forwarder =
            start(&journal, &target.unwrap().unwrap(), Some(writer), &Deletions::default(), &CancellationToken::new())
                .unwrap();
        until(&forwarder, Lane::Traces, |status| status.cursor == last).await;
        assert_eq!(collector.bodies("traces").contains(&Bytes::from_static(b"written")), tool_traces);
        assert_eq!(collector.taken("traces").len(), 1 + usize::from(tool_traces));
    }
}

fn span_of(trace: &str) -> String {
    format!(r#"{{"traceId":"{trace}","spanId":"b7ad6b7169203331","name":"x"}}"#)
}

/// Scenario: a message of two traces and one of a single trace wait in the journal; that trace is deleted.
/// Guarantees: nothing of it is sent, the other trace is, and the cursor goes past both.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_deleted_trace_is_sent() {
    let (gone, kept) = ("0af7651916cd43dd8448eb211c80319c", "1bf7651916cd43dd8448eb211c80319c");
    let (journal, _home) = journal();
    let collector = Collector::start().await;
    let message = |spans: &[&str]| {
        let spans: Vec<String> = spans.iter().map(|trace| span_of(trace)).collect();
        format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{}]}}]}}]}}"#, spans.join(","))
    };
    put(&journal, Lane::Traces, Kind::Otlp, Encoding::Json, message(&[gone, kept])).await;
    let last = put(&journal, Lane::Traces, Kind::Otlp, Encoding::Json, message(&[gone])).await;
    let deleted = Deletions::default();
    deleted.add(&RowKey { tenant: Tenant::local(), trace_id: gone.parse().unwrap() }).unwrap();
    let target = Target::new(&config(&collector, Protocol::Http), Origin::Configured, &[]).unwrap().unwrap();
    let forwarder = start(&journal, &target, None, &deleted, &CancellationToken::new()).unwrap();
    until(&forwarder, Lane::Traces, |status| status.cursor == last).await;
    assert_eq!(collector.bodies("traces"), [Bytes::from(message(&[kept]))]);
    assert_eq!(standing(&forwarder, Lane::Traces).failed, 0);
}
