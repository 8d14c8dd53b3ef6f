//! What is forwarded is what was accepted.

use std::time::Duration;

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;

use crate::support::collector::Collector;
use crate::support::iris::Iris;
use crate::support::spans::{agent_run, request};

/// Scenario: requests are accepted while the downstream takes them, while it is gone, and before and after a kill
/// of the sidecar; then the downstream comes back.
/// Guarantees: every message arrives byte for byte, over gRPC and over HTTP.
#[tokio::test(flavor = "multi_thread")]
async fn the_downstream_gets_every_message_unchanged_across_an_outage_and_a_restart() {
    for protocol in ["grpc", "http"] {
        let mut collector = Collector::start().await;
        let endpoint = collector.endpoint();
        let mut iris = Iris::start(&[
            ("IRIS__FORWARD__ENDPOINT", &endpoint),
            ("IRIS__FORWARD__PROTOCOL", protocol),
            ("IRIS__FORWARD__RETRY_INITIAL_MS", "50"),
            ("IRIS__FORWARD__RETRY_MAX_MS", "200"),
        ])
        .await;
        let mut sent = Vec::new();
        send(&iris, &mut sent, 1..=5).await;
        collector.until("the first five", |collector| collector.bodies("traces").len() >= 5).await;
        collector.stop().await;
        send(&iris, &mut sent, 6..=10).await;
        iris.kill();
        iris.start_again().await;
        send(&iris, &mut sent, 11..=15).await;
        collector.start_again().await;
        let all = |collector: &Collector| sent.iter().all(|body| collector.bodies("traces").contains(body));
        collector.until("all fifteen", all).await;
        assert!(
            collector.bodies("traces").iter().all(|body| sent.contains(body)),
            "{protocol}: something else arrived"
        );
    }
}

async fn send(iris: &Iris, sent: &mut Vec<Bytes>, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        let body = request(agent_run(number, 3, "It is 18 C."));
        match number % 2 {
            0 => drop(iris.export("traces", body.clone()).await.unwrap()),
            _ => assert_eq!(iris.post("traces", "application/x-protobuf", body.clone()).await.unwrap().0, 200),
        }
        sent.push(body);
    }
}

/// Scenario: of three spans the second has a span id of 32 bytes.
/// Guarantees: it is named and counted in `partial_success`; its neighbours are stored; downstream gets the message
/// without it and otherwise unchanged.
#[tokio::test(flavor = "multi_thread")]
async fn a_bad_span_is_cut_out_and_nothing_else() {
    let collector = Collector::start().await;
    let iris = Iris::start(&[("IRIS__FORWARD__ENDPOINT", &collector.endpoint())]).await;
    let good = agent_run(3, 2, "It is 18 C.");
    let mut bad = good[1].clone();
    bad.span_id = vec![7; 32];
    let mixed = request(vec![good[0].clone(), bad, good[1].clone()]);
    let (status, answer) = iris.post("traces", "application/x-protobuf", mixed).await.unwrap();
    assert_eq!(status, 200);
    let answer = opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse::decode(answer).unwrap();
    let partial = answer.partial_success.unwrap();
    assert_eq!(partial.rejected_spans, 1);
    assert!(partial.error_message.contains("span_id"), "{}", partial.error_message);
    collector.until("the message", |collector| !collector.bodies("traces").is_empty()).await;
    assert_eq!(collector.bodies("traces"), [request(good.clone())]);
    let path = format!("/api/v1/traces/{}", crate::support::spans::trace_hex(3));
    let detail =
        iris.until("web", &path, Duration::from_secs(20), |detail| detail["trace"]["in_progress"] == false).await;
    assert_eq!(detail["spans"].as_array().unwrap().len(), 2);
    assert_eq!(ExportTraceServiceRequest::decode(request(good)).unwrap().resource_spans.len(), 1);
}
