//! A second OTLP server that records what it takes and misbehaves when told to.
//!
//! One port answers OTLP/gRPC (tonic's server with a codec that passes bytes through) and OTLP/HTTP. What it took
//! is [`Collector::taken`], byte for byte after content decoding; how it answers is its [`Mood`], for all lanes or
//! one, standing or for the next requests only. [`Collector::stop`] closes the port and every connection, and
//! [`Collector::start_again`] opens the same port once more with everything taken so far.
//!
//! Shared by the tests of `src/forward` and the end-to-end tests; depends on neither.
#![allow(dead_code)] // each of its two users needs a part of it

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::future::Future;
use std::io::Read as _;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Code, Status};

/// How a request is answered.
#[derive(Debug, Clone)]
pub enum Mood {
    /// Taken.
    Accept,
    /// Taken, so long after it came.
    AcceptAfter(Duration),
    /// Taken but for so many items.
    Partial(i64),
    /// Taken, with an answer of so many bytes.
    AcceptWithAnswer(usize),
    /// Refused, by this code over gRPC and this status over HTTP.
    Refuse(Code, u16),
    /// The same with a delay: `RetryInfo` over gRPC, `Retry-After` in seconds over HTTP.
    RefuseFor(Code, u16, Duration),
    /// Read, and the connection closed without an answer.
    HangUp,
    /// Read, and never answered.
    Silence,
    /// gRPC only: an answer without the trailers that would say whether it was taken.
    NoTrailers,
    /// JSON is refused with 415, anything else taken.
    NoJson,
}

/// One message that was taken.
#[derive(Debug, Clone)]
pub struct Taken {
    /// `traces`, `logs` or `metrics`.
    pub lane: &'static str,
    /// Whether it came over gRPC.
    pub grpc: bool,
    /// The request's headers.
    pub headers: HeaderMap,
    /// After content decoding.
    pub body: Bytes,
}

#[derive(Default)]
struct Inner {
    taken: Vec<Taken>,
    /// Every request, taken or not.
    attempts: Vec<(&'static str, Instant)>,
    standing: HashMap<&'static str, Mood>,
    next: HashMap<&'static str, VecDeque<Mood>>,
    /// Bodies that hold these bytes are answered so, whatever else is set.
    special: Option<(Vec<u8>, Mood)>,
}

#[derive(Clone, Default)]
struct Shared {
    inner: Arc<Mutex<Inner>>,
    changed: Arc<Notify>,
}

/// See the module.
pub struct Collector {
    address: SocketAddr,
    shared: Shared,
    running: Option<(JoinHandle<()>, CancellationToken)>,
    tls: Option<TlsAcceptor>,
}

pub const LANES: [&str; 3] = ["traces", "logs", "metrics"];

impl Collector {
    /// Listens on a free port of loopback.
    pub async fn start() -> Self {
        let mut collector =
            Self { address: "127.0.0.1:0".parse().unwrap(), shared: Shared::default(), running: None, tls: None };
        collector.start_again().await;
        collector
    }

    /// Listens on a free port of loopback and speaks TLS only; with a CA, with clients that it vouches for only.
    pub async fn start_tls(config: rustls::ServerConfig) -> Self {
        let tls = Some(TlsAcceptor::from(Arc::new(config)));
        let mut collector =
            Self { address: "127.0.0.1:0".parse().unwrap(), shared: Shared::default(), running: None, tls };
        collector.start_again().await;
        collector
    }

    /// A port of loopback on which nobody listens: [`Collector::start_again`] opens it.
    pub async fn stopped() -> Self {
        let mut collector = Self::start().await;
        collector.stop().await;
        collector
    }

    /// Opens the port.
    pub async fn start_again(&mut self) {
        assert!(self.running.is_none(), "it runs already");
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(self.address).unwrap();
        let listener = socket.listen(64).unwrap();
        self.address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let task = tokio::spawn(listen(listener, self.tls.clone(), self.shared.clone(), stop.clone()));
        self.running = Some((task, stop));
    }

    /// Closes the port and every connection, at once and without an answer.
    pub async fn stop(&mut self) {
        if let Some((task, stop)) = self.running.take() {
            stop.cancel();
            task.await.unwrap();
        }
    }

    /// `http://127.0.0.1:port`, for either protocol.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on all lanes are answered so.
    pub fn set(&self, mood: &Mood) {
        LANES.iter().for_each(|lane| self.set_lane(lane, mood.clone()));
    }

    /// From now on one lane is answered so.
    pub fn set_lane(&self, lane: &'static str, mood: Mood) {
        self.shared.inner.lock().unwrap().standing.insert(lane, mood);
    }

    /// The lane's next requests are answered so, one mood each, before the standing one holds again.
    pub fn set_next(&self, lane: &'static str, moods: impl IntoIterator<Item = Mood>) {
        self.shared.inner.lock().unwrap().next.entry(lane).or_default().extend(moods);
    }

    /// Forgets all moods: everything is taken.
    pub fn set_calm(&self) {
        let mut inner = self.shared.inner.lock().unwrap();
        inner.next.clear();
        inner.standing.clear();
        inner.special = None;
    }

    /// Every body that holds `bytes` is answered so.
    pub fn set_for(&self, bytes: &[u8], mood: Mood) {
        self.shared.inner.lock().unwrap().special = Some((bytes.to_vec(), mood));
    }

    /// What was taken of a lane, in the order it was taken.
    pub fn taken(&self, lane: &str) -> Vec<Taken> {
        self.shared.inner.lock().unwrap().taken.iter().filter(|taken| taken.lane == lane).cloned().collect()
    }

    /// The bodies taken of a lane, sorted, each once.
    pub fn bodies(&self, lane: &str) -> Vec<Bytes> {
        let mut bodies: Vec<Bytes> = self.taken(lane).into_iter().map(|taken| taken.body).collect();
        bodies.sort();
        bodies.dedup();
        bodies
    }

    /// When each request for a lane came, taken or not.
    pub fn attempts(&self, lane: &str) -> Vec<Instant> {
        self.shared.inner.lock().unwrap().attempts.iter().filter(|(of, _)| *of == lane).map(|(_, at)| *at).collect()
    }

    /// Waits until `condition` holds, looking again whenever a request came.
    ///
    /// # Panics
    /// When it does not hold within 30 s.
    pub async fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let wait = async {
            loop {
                let changed = self.shared.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if condition(self) {
                    return;
                }
                changed.await;
            }
        };
        let held = tokio::time::timeout(Duration::from_secs(30), wait).await;
        assert!(held.is_ok(), "not within 30 s: {what}; attempts {:?}", LANES.map(|lane| self.attempts(lane).len()));
    }
}

async fn listen(listener: TcpListener, tls: Option<TlsAcceptor>, shared: Shared, stop: CancellationToken) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let Ok((stream, _)) = accepted else { continue };
        let hang_up = CancellationToken::new();
        let (shared, cut) = (shared.clone(), hang_up.clone());
        let service = hyper::service::service_fn(move |request| answer(request, shared.clone(), cut.clone()));
        let tls = tls.clone();
        connections.spawn(async move {
            let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            let served = async {
                match tls {
                    None => drop(builder.serve_connection(TokioIo::new(stream), service).await),
                    Some(tls) => {
                        let Ok(stream) = tls.accept(stream).await else { return };
                        drop(builder.serve_connection(TokioIo::new(stream), service).await);
                    }
                }
            };
            tokio::select! {
                () = served => {}
                () = hang_up.cancelled() => {}
            }
        });
    }
    connections.shutdown().await;
}

async fn answer(
    request: Request<Incoming>,
    shared: Shared,
    hang_up: CancellationToken,
) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let lane = LANES.into_iter().find(|lane| {
        let package = if *lane == "traces" { "trace" } else { lane };
        let service = format!("/opentelemetry.proto.collector.{package}.v1.");
        path.ends_with(&format!("/v1/{lane}")) || path.starts_with(&service) && path.ends_with("Service/Export")
    });
    let Some(lane) = lane else { return Ok(plain(StatusCode::NOT_FOUND, Bytes::new(), "text/plain")) };
    shared.inner.lock().unwrap().attempts.push((lane, Instant::now()));
    shared.changed.notify_waiters();
    let grpc =
        head.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
    let headers = head.headers.clone();
    let request = Request::from_parts(head, body);
    let turn = Turn { lane, grpc, headers, shared, hang_up };
    if grpc {
        let mut server = tonic::server::Grpc::new(RawCodec)
            .accept_compressed(CompressionEncoding::Gzip)
            .max_decoding_message_size(usize::MAX)
            .max_encoding_message_size(usize::MAX);
        let no_trailers = turn.peek_no_trailers();
        let mut response = server.unary(Unary(turn), request).await;
        if no_trailers {
            let whole = response.body_mut().collect().await.unwrap().to_bytes();
            *response.body_mut() = Body::new(Full::new(whole));
        }
        return Ok(response);
    }
    Ok(over_http(turn, request).await)
}

struct Turn {
    lane: &'static str,
    grpc: bool,
    headers: HeaderMap,
    shared: Shared,
    hang_up: CancellationToken,
}

impl Turn {
    fn peek_no_trailers(&self) -> bool {
        let inner = self.shared.inner.lock().unwrap();
        let next = inner.next.get(self.lane).and_then(VecDeque::front);
        matches!(next.or_else(|| inner.standing.get(self.lane)), Some(Mood::NoTrailers))
    }

    fn mood(&self, body: &[u8]) -> Mood {
        let mut inner = self.shared.inner.lock().unwrap();
        if let Some((bytes, mood)) = &inner.special
            && body.windows(bytes.len()).any(|window| window == bytes.as_slice())
        {
            return mood.clone();
        }
        let next = inner.next.get_mut(self.lane).and_then(VecDeque::pop_front);
        next.or_else(|| inner.standing.get(self.lane).cloned()).unwrap_or(Mood::Accept)
    }

    /// Acts on the mood: the answer's message when the body is taken, else the refusal.
    async fn act(self, body: Bytes) -> Result<Bytes, (Code, u16, Option<Duration>)> {
        let mut answer = Bytes::new();
        match self.mood(&body) {
            Mood::Accept | Mood::NoTrailers => {}
            Mood::AcceptAfter(wait) => tokio::time::sleep(wait).await,
            Mood::Partial(rejected) => answer = partial(rejected),
            Mood::AcceptWithAnswer(size) => answer = vec![0x7a; size].into(),
            Mood::Refuse(code, status) => return Err((code, status, None)),
            Mood::RefuseFor(code, status, wait) => return Err((code, status, Some(wait))),
            Mood::HangUp => {
                self.hang_up.cancel();
                std::future::pending::<()>().await;
            }
            Mood::Silence => std::future::pending::<()>().await,
            Mood::NoJson => {
                if self.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json") {
                    return Err((Code::InvalidArgument, 415, None));
                }
            }
        }
        let Self { lane, grpc, headers, shared, .. } = self;
        shared.inner.lock().unwrap().taken.push(Taken { lane, grpc, headers, body });
        shared.changed.notify_waiters();
        Ok(answer)
    }
}

/// An `ExportTraceServiceResponse`; those of logs and metrics have the same shape.
fn partial(rejected: i64) -> Bytes {
    use opentelemetry_proto::tonic::collector::trace::v1::{ExportTracePartialSuccess, ExportTraceServiceResponse};
    let partial =
        ExportTracePartialSuccess { rejected_spans: rejected, error_message: "text of the downstream".into() };
    ExportTraceServiceResponse { partial_success: Some(partial) }.encode_to_vec().into()
}

async fn over_http(turn: Turn, request: Request<Incoming>) -> Response<Body> {
    let Ok(body) = request.into_body().collect().await else {
        return plain(StatusCode::BAD_REQUEST, Bytes::new(), "text/plain");
    };
    let mut body = body.to_bytes();
    if turn.headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding == "gzip") {
        let mut inflated = Vec::new();
        flate2::read::GzDecoder::new(body.reader()).read_to_end(&mut inflated).expect("a gzip body");
        body = inflated.into();
    }
    match turn.act(body).await {
        Ok(answer) => plain(StatusCode::OK, answer, "application/x-protobuf"),
        Err((_, status, wait)) => {
            let mut response = plain(StatusCode::from_u16(status).unwrap(), Bytes::new(), "application/x-protobuf");
            if let Some(wait) = wait {
                let seconds = HeaderValue::from(wait.as_secs());
                response.headers_mut().insert(header::RETRY_AFTER, seconds);
            }
            response
        }
    }
}

fn plain(status: StatusCode, body: Bytes, kind: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::new(Full::new(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

struct Unary(Turn);

impl tonic::server::UnaryService<Bytes> for Unary {
    type Response = Bytes;
    type Future = Pin<Box<dyn Future<Output = Result<tonic::Response<Bytes>, Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let Turn { lane, grpc, headers, shared, hang_up } = &self.0;
        let turn =
            Turn { lane, grpc: *grpc, headers: headers.clone(), shared: shared.clone(), hang_up: hang_up.clone() };
        Box::pin(async move {
            match turn.act(request.into_inner()).await {
                Ok(answer) => Ok(tonic::Response::new(answer)),
                Err((code, _, None)) => Err(Status::new(code, "text of the downstream")),
                Err((code, _, Some(wait))) => Err(Status::with_details(code, "busy", retry_info(code, wait))),
            }
        })
    }
}

/// A `google.rpc.Status` with a `RetryInfo`, put together by hand so that it checks what is read, and not itself.
fn retry_info(code: Code, wait: Duration) -> Bytes {
    fn field(tag: u8, bytes: &[u8]) -> Vec<u8> {
        let mut field = vec![tag, u8::try_from(bytes.len()).unwrap()];
        field.extend_from_slice(bytes);
        field
    }
    let mut delay = BytesMut::new();
    delay.put_u8(0x08);
    prost::encoding::encode_varint(wait.as_secs(), &mut delay);
    delay.put_u8(0x10);
    prost::encoding::encode_varint(wait.subsec_nanos().into(), &mut delay);
    let mut any = field(0x0a, b"type.googleapis.com/google.rpc.RetryInfo");
    any.extend(field(0x12, &field(0x0a, &delay)));
    let mut status = vec![0x08, u8::try_from(code as i32).unwrap()];
    status.extend(field(0x1a, &any));
    status.into()
}

/// Passes messages through as bytes, for a client as for a server.
#[derive(Clone, Copy)]
pub struct RawCodec;

impl Codec for RawCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(item);
        Ok(())
    }
}

impl Decoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}
