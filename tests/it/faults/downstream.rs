//! A collector that is dead, slow, refusing, half-closing, half-accepting or badly set up.

use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::io::AsyncReadExt;
use tonic::Code;

use super::{SPANS, all_there, is_long, open};
use crate::support::collector::{Collector, Mood};
use crate::support::iris::Iris;
use crate::support::proc::resident_kib;
use crate::support::spans::{agent_run, request};

/// How long each kind of trouble lasts.
fn lasts() -> Duration {
    Duration::from_millis(if is_long() { 20_000 } else { 700 })
}

/// Sends runs while the trouble lasts; each is acknowledged, whatever the collector does.
async fn send(iris: &Iris, sent: &mut Vec<Bytes>, what: &str) {
    let until = Instant::now() + lasts();
    while Instant::now() < until {
        let number = sent.len() as u64 + 1;
        let body = request(agent_run(number, SPANS, "It is 18 C."));
        let (status, _) = iris.post("traces", "application/x-protobuf", body.clone()).await.unwrap();
        assert_eq!(status, 200, "{what}");
        sent.push(body);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Listens where the collector did and closes its half of every connection at once.
async fn half_closing(collector: &Collector) -> tokio::task::JoinHandle<()> {
    let listener = tokio::net::TcpListener::bind(collector.address()).await.unwrap();
    tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            connections.spawn(async move {
                let _ = tokio::io::AsyncWriteExt::shutdown(&mut stream).await;
                let mut thrown_away = [0; 4096];
                while stream.read(&mut thrown_away).await.is_ok_and(|count| count > 0) {}
            });
        }
    })
}

/// Scenario: runs are sent while the collector is dead, slow, refuses, hangs up, never answers, answers without trailers,
/// takes a part, asks for credentials and closes half of each connection, one after the other, over both protocols; then
/// it is well.
/// Guarantees: every run is acknowledged and judged meanwhile; the sidecar does not grow; every run arrives byte for byte,
/// but for what the collector itself said it did not take.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_collector_does_everything_arrives() {
    for protocol in ["http", "grpc"] {
        let mut collector = Collector::start().await;
        let iris = Iris::start(&[
            ("IRIS__FORWARD__ENDPOINT", &collector.endpoint()),
            ("IRIS__FORWARD__PROTOCOL", protocol),
            ("IRIS__FORWARD__TIMEOUT_MS", "1000"),
            ("IRIS__FORWARD__RETRY_INITIAL_MS", "50"),
            ("IRIS__FORWARD__RETRY_MAX_MS", "300"),
            ("IRIS__ASSEMBLY__QUIET_MS", "200"),
        ])
        .await;
        open(&iris).await;
        let mut sent = Vec::new();
        send(&iris, &mut sent, "well").await;
        let before = resident_kib(iris.pid());
        let moods = [
            ("slow", Mood::AcceptAfter(Duration::from_millis(300))),
            ("refuses", Mood::Refuse(Code::Unavailable, 503)),
            ("refuses for a while", Mood::RefuseFor(Code::ResourceExhausted, 429, Duration::from_secs(1))),
            ("hangs up", Mood::HangUp),
            ("never answers", Mood::Silence),
            ("wants credentials", Mood::Refuse(Code::Unauthenticated, 401)),
            ("is another thing", Mood::Refuse(Code::Unimplemented, 404)),
            ("takes a part", Mood::Partial(1)),
        ];
        for (what, mood) in moods {
            collector.set(&mood);
            send(&iris, &mut sent, what).await;
        }
        if protocol == "grpc" {
            collector.set(&Mood::NoTrailers);
            send(&iris, &mut sent, "answers without trailers").await;
        }
        collector.stop().await;
        send(&iris, &mut sent, "dead").await;
        let closing = half_closing(&collector).await;
        send(&iris, &mut sent, "closes half").await;
        closing.abort();
        assert!(closing.await.unwrap_err().is_cancelled());
        let grown = resident_kib(iris.pid()).saturating_sub(before);
        assert!(grown < 96 * 1024, "{grown} KiB more after the trouble");
        collector.set_calm();
        collector.start_again().await;
        let all = |collector: &Collector| {
            let arrived = collector.bodies("traces");
            sent.iter().all(|body| arrived.binary_search(body).is_ok())
        };
        collector.until("everything that was acknowledged", all).await;
        assert!(
            collector.bodies("traces").iter().all(|body| sent.contains(body)),
            "{protocol}: something else arrived"
        );
        all_there(&iris, (1..=sent.len() as u64).step_by(7), protocol).await;
        let lag = iris.until("ops", "/readyz?full", Duration::from_secs(20), |state| {
            state["forward"].as_array().is_some_and(|lanes| lanes.iter().all(|lane| lane["lag_records"] == 0))
        });
        lag.await;
    }
}
