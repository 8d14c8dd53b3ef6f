//! Both doors from outside, over real sockets.

mod grpc;
mod http;
mod lifecycle;
mod limits;

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use iris_core::model::Lane;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::{Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use super::fault::{BadRequest, RetryInfo, RpcStatus};
use super::shared::Shared;
use super::*;
use crate::ingest::{Append, ReceiveCounters};
use crate::journal::{AppendError, Journal, RealDisk, Record};

const MIB: usize = 1024 * 1024;
const ROOMY: u64 = 1 << 50;
const PATIENCE: Duration = Duration::from_secs(20);
const PROTOBUF: (&str, &str) = ("content-type", "application/x-protobuf");
const JSON: (&str, &str) = ("content-type", "application/json");

/// What the stand-in for the journal does with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Appending {
    Works,
    Waits,
    IsFull,
    Fails,
    IsClosed,
}

/// Both doors before a stand-in for the journal.
struct Stand {
    doors: Doors,
    inlet: Inlet,
    admission: Admission,
    counters: Arc<ReceiveCounters>,
    records: Arc<Mutex<Vec<(Lane, Record)>>>,
    appending: watch::Sender<Appending>,
    _home: tempfile::TempDir,
}

/// How a stand differs from the usual one.
struct Setup {
    config: Config,
    body_bytes_max: usize,
    admission_bytes: usize,
    read_timeout: Duration,
    token: Option<&'static str>,
    keys: Vec<KeyConfig>,
    forwarding: bool,
}

impl Default for Setup {
    fn default() -> Self {
        let mut config = Config::default();
        config.grpc.listen = Listen::loopback(0);
        config.http.listen = Listen::loopback(0);
        Self {
            config,
            body_bytes_max: 4 * MIB,
            admission_bytes: 32 * MIB,
            read_timeout: PATIENCE,
            token: None,
            keys: Vec::new(),
            forwarding: true,
        }
    }
}

impl Stand {
    async fn usual() -> Self {
        Self::with(Setup::default()).await
    }

    async fn with(setup: Setup) -> Self {
        let home = tempfile::tempdir().unwrap();
        let config = journal::Config { bytes_max: 8 * MIB as u64, ..journal::Config::default() };
        let (journal, _) = Journal::open(home.path(), &config, true, Arc::new(RealDisk)).unwrap();
        let records: Arc<Mutex<Vec<(Lane, Record)>>> = Arc::default();
        let (appending, watching) = watch::channel(Appending::Works);
        let append = stand_in(Arc::clone(&records), watching);
        let counters = Arc::new(ReceiveCounters::default());
        let inlet = Inlet::with_append(journal, append, [], setup.forwarding, Arc::clone(&counters));
        let admission = Admission::with_bytes(setup.admission_bytes as u64, ROOMY);
        let config = Config { token: setup.token.map(Into::into), ..Config::default() };
        let keys = admitted(&config, &setup.keys).unwrap();
        let mut shared = Shared::new(inlet.clone(), admission.clone(), setup.body_bytes_max, keys);
        shared.read_timeout = setup.read_timeout;
        let doors = Doors::open_with(&setup.config, shared, None).await.unwrap();
        Self { doors, inlet, admission, counters, records, appending, _home: home }
    }

    fn http(&self) -> SocketAddr {
        self.doors.http().unwrap()
    }

    fn bodies(&self) -> Vec<Bytes> {
        self.records.lock().unwrap().iter().map(|(_, record)| record.body.clone()).collect()
    }

    async fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        exchange(self.http(), "POST", path, headers, body).await
    }

    /// Every permit is back, however the requests ended.
    async fn assert_nothing_held(&self) {
        until("permits are given back", || self.admission.bytes_free() == self.admission.bytes_max()).await;
    }
}

fn stand_in(records: Arc<Mutex<Vec<(Lane, Record)>>>, watching: watch::Receiver<Appending>) -> Append {
    let seq = Arc::new(AtomicU64::new(1));
    Arc::new(move |lane, record, _| {
        let (records, mut watching, seq) = (Arc::clone(&records), watching.clone(), Arc::clone(&seq));
        Box::pin(async move {
            let now = *watching.wait_for(|now| *now != Appending::Waits).await.unwrap();
            match now {
                Appending::IsFull => Err(AppendError::Full { retry_after: Duration::from_millis(2500) }),
                Appending::Fails => Err(AppendError::Disk(io::Error::other("test"))),
                Appending::IsClosed => Err(AppendError::Closed),
                Appending::Works | Appending::Waits => {
                    records.lock().unwrap().push((lane, record));
                    Ok(seq.fetch_add(1, Ordering::Relaxed))
                }
            }
        })
    })
}

/// An HTTP/1.1 answer.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: HashMap<String, String>,
    body: Bytes,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    fn json(&self) -> serde_json::Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_slice(&self.body).unwrap()
    }

    fn rpc_status(&self) -> RpcStatus {
        assert_eq!(self.header("content-type"), Some("application/x-protobuf"), "{self:?}");
        RpcStatus::decode(self.body.clone()).unwrap()
    }
}

/// Sends one request over a connection of its own, with a `Host` and a length unless given.
async fn exchange(to: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let stream = TcpStream::connect(to).await.unwrap();
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    let given = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    if !given("host") {
        head += &format!("Host: {to}\r\n");
    }
    if !given("content-length") && !given("transfer-encoding") {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    let (mut reading, mut writing) = stream.into_split();
    let (head, body) = (head.into_bytes(), body.to_vec());
    // Written beside reading: an answer may come before the body is sent.
    let sending = tokio::spawn(async move {
        let _ = writing.write_all(&head).await;
        let _ = writing.write_all(&body).await;
        writing
    });
    let answer = timeout(PATIENCE, read_answer(&mut reading)).await.expect("an answer in time");
    sending.abort();
    answer
}

async fn read_answer(stream: &mut (impl AsyncReadExt + Unpin)) -> Answer {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "closed without an answer: {bytes:?}");
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = bytes.split_off(head_end);
    while body.len() < length {
        assert!(stream.read_buf(&mut body).await.unwrap() > 0, "closed within the answer");
    }
    Answer { status, headers, body: body.into() }
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited too long until {what}");
        sleep(Duration::from_millis(2)).await;
    }
}

/// A request of `spans` spans whose ids begin at `first`.
fn spans(first: u64, spans: u64) -> ExportTraceServiceRequest {
    let spans = (first..first + spans)
        .map(|n| Span {
            trace_id: [[1; 8], (n + 1).to_be_bytes()].concat(),
            span_id: (n + 1).to_be_bytes().to_vec(),
            name: "step".to_owned(),
            start_time_unix_nano: 1,
            end_time_unix_nano: 2,
            ..Span::default()
        })
        .collect();
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    ExportTraceServiceRequest { resource_spans: vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }] }
}

/// Three good spans and one whose trace id is the hex text of one.
fn spans_with_a_bad_one() -> ExportTraceServiceRequest {
    let mut request = spans(0, 4);
    request.resource_spans[0].scope_spans[0].spans[1].trace_id = b"0af7651916cd43dd8448eb211c80319c".to_vec();
    request
}

fn logs() -> ExportLogsServiceRequest {
    let log_records =
        vec![LogRecord { time_unix_nano: 1, event_name: "gen_ai.choice".to_owned(), ..LogRecord::default() }];
    let scope_logs = vec![ScopeLogs { log_records, ..ScopeLogs::default() }];
    ExportLogsServiceRequest { resource_logs: vec![ResourceLogs { scope_logs, ..ResourceLogs::default() }] }
}

fn metrics() -> ExportMetricsServiceRequest {
    let data_points = vec![NumberDataPoint { time_unix_nano: 1, ..NumberDataPoint::default() }];
    let data = Some(metric::Data::Gauge(Gauge { data_points }));
    let metrics = vec![Metric { name: "tokens".to_owned(), data, ..Metric::default() }];
    let scope_metrics = vec![ScopeMetrics { metrics, ..ScopeMetrics::default() }];
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics { scope_metrics, ..ResourceMetrics::default() }],
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The time to come back that a status carries.
fn retry_delay(status: &RpcStatus) -> Option<Duration> {
    let detail = status.details.iter().find(|detail| detail.type_url.ends_with("google.rpc.RetryInfo"))?;
    let delay = RetryInfo::decode(&detail.value[..]).unwrap().retry_delay.unwrap();
    Some(Duration::new(delay.seconds.try_into().unwrap(), delay.nanos.try_into().unwrap()))
}

/// What a status says is wrong with the body.
fn violation(status: &RpcStatus) -> Option<String> {
    let detail = status.details.iter().find(|detail| detail.type_url.ends_with("google.rpc.BadRequest"))?;
    Some(BadRequest::decode(&detail.value[..]).unwrap().field_violations.remove(0).description)
}

fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
