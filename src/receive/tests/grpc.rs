use super::*;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use tonic::codec::CompressionEncoding;
use tonic::transport::Channel;
use tonic::{Code, Status};

const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const LOGS: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
const METRICS: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";

async fn channel(to: SocketAddr) -> Channel {
    Channel::from_shared(format!("http://{to}")).unwrap().connect().await.unwrap()
}

async fn call<Q, A>(
    channel: Channel,
    path: &'static str,
    compression: Option<CompressionEncoding>,
    request: Q,
) -> Result<tonic::Response<A>, Status>
where
    Q: Message + Default + Send + Sync + 'static,
    A: Message + Default + Send + Sync + 'static,
{
    let mut client = tonic::client::Grpc::new(channel);
    if let Some(compression) = compression {
        client = client.send_compressed(compression);
    }
    client.ready().await.unwrap();
    let mut request = tonic::Request::new(request);
    request.metadata_mut().insert("x-test", "1".parse().unwrap());
    client.unary(request, path.parse().unwrap(), tonic_prost::ProstCodec::<Q, A>::default()).await
}

/// One export of spans over a connection of its own.
pub(super) async fn export(
    _stand: &Stand,
    to: SocketAddr,
    request: ExportTraceServiceRequest,
) -> Result<ExportTraceServiceResponse, Status> {
    call(channel(to).await, TRACES, None, request).await.map(tonic::Response::into_inner)
}

fn rpc_status(status: &Status) -> RpcStatus {
    RpcStatus::decode(status.details()).unwrap()
}

#[tokio::test]
async fn all_three_services_answer_a_real_client() {
    let stand = Stand::usual().await;
    let channel = channel(stand.doors.grpc().unwrap()).await;
    let traces: ExportTraceServiceResponse =
        call(channel.clone(), TRACES, None, spans(0, 3)).await.unwrap().into_inner();
    let logs: ExportLogsServiceResponse = call(channel.clone(), LOGS, None, logs()).await.unwrap().into_inner();
    let metrics: ExportMetricsServiceResponse = call(channel, METRICS, None, metrics()).await.unwrap().into_inner();
    assert_eq!((traces.partial_success, logs.partial_success, metrics.partial_success), (None, None, None));
    let lanes: Vec<Lane> = stand.records.lock().unwrap().iter().map(|(lane, _)| *lane).collect();
    assert_eq!(lanes, Lane::ALL);
    assert_eq!(stand.bodies()[0], spans(0, 3).encode_to_vec(), "byte for byte");
    assert!(stand.records.lock().unwrap().iter().all(|(_, record)| record.door == journal::Door::Grpc));
    assert_eq!(count(&stand.counters.grpc.traces.accepted), 3);
    stand.assert_nothing_held().await;
}

#[tokio::test]
async fn an_empty_message_succeeds_and_leaves_no_record() {
    let stand = Stand::usual().await;
    let to = stand.doors.grpc().unwrap();
    assert_eq!(export(&stand, to, ExportTraceServiceRequest::default()).await.unwrap().partial_success, None);
    assert_eq!(stand.bodies().len(), 0);
}

#[tokio::test]
async fn gzip_and_zstd_are_taken_and_answers_are_plain() {
    let stand = Stand::usual().await;
    let channel = channel(stand.doors.grpc().unwrap()).await;
    for (n, compression) in [CompressionEncoding::Gzip, CompressionEncoding::Zstd].into_iter().enumerate() {
        let request = spans(n as u64 * 1000, 200);
        let answer: tonic::Response<ExportTraceServiceResponse> =
            call(channel.clone(), TRACES, Some(compression), request.clone()).await.unwrap();
        assert!(answer.metadata().get("grpc-encoding").is_none());
        assert_eq!(answer.metadata().get("grpc-accept-encoding").unwrap(), "gzip,zstd,identity");
        assert_eq!(stand.bodies()[n], request.encode_to_vec(), "{compression}");
    }
    stand.assert_nothing_held().await;
}

#[tokio::test]
async fn what_is_rejected_is_named_and_the_rest_is_kept() {
    let stand = Stand::usual().await;
    let answer = export(&stand, stand.doors.grpc().unwrap(), spans_with_a_bad_one()).await.unwrap();
    let partial = answer.partial_success.unwrap();
    assert_eq!(partial.rejected_spans, 1);
    assert!(partial.error_message.contains("32"), "{}", partial.error_message);
    let kept = ExportTraceServiceRequest::decode(stand.bodies()[0].clone()).unwrap();
    assert_eq!(kept.resource_spans[0].scope_spans[0].spans.len(), 3);
}

#[tokio::test]
async fn only_what_may_be_sent_again_says_when() {
    let stand = Stand::usual().await;
    let to = stand.doors.grpc().unwrap();
    for (appending, wait) in [
        (Appending::IsFull, Duration::from_millis(2500)),
        (Appending::Fails, Duration::from_secs(5)),
        (Appending::IsClosed, Duration::from_secs(1)),
    ] {
        stand.appending.send_replace(appending);
        let status = export(&stand, to, spans(0, 1)).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable, "{appending:?}");
        assert_eq!(rpc_status(&status).code, Code::Unavailable as i32);
        assert_eq!(retry_delay(&rpc_status(&status)), Some(wait), "{appending:?}");
        let http = stand.post("/v1/traces", &[PROTOBUF], &spans(0, 1).encode_to_vec()).await;
        assert_eq!((http.status, retry_delay(&http.rpc_status())), (503, Some(wait)), "{appending:?}");
        assert_eq!(http.header("retry-after"), Some(&*wait.as_secs_f64().ceil().to_string()));
    }
    assert_eq!((count(&stand.counters.grpc.traces.refused), count(&stand.counters.grpc.traces.failed)), (2, 1));
    let mut held = stand.admission.enter().unwrap();
    held.hold(32 * MIB).unwrap();
    let status = export(&stand, to, spans(0, 1)).await.unwrap_err();
    assert_eq!((status.code(), retry_delay(&rpc_status(&status))), (Code::Unavailable, Some(Duration::from_secs(1))));
    let http = stand.post("/v1/traces", &[JSON], br#"{"resourceSpans":[]}"#).await;
    assert_eq!((http.status, http.header("retry-after")), (503, Some("1")));
    assert_eq!(http.json()["details"][0]["retryDelay"], "1.000s");
    drop(held);
    assert_eq!(stand.bodies().len(), 0);
    stand.assert_nothing_held().await;
    stand.appending.send_replace(Appending::Works);
    export(&stand, to, spans(0, 1)).await.unwrap();
    assert_eq!(stand.bodies().len(), 1, "what was refused is not taken for a resend");
}

#[tokio::test]
async fn bad_messages_are_invalid_and_say_why() {
    let stand = Stand::usual().await;
    let to = stand.doors.grpc().unwrap();
    let malformed = Bytes::from_static(b"\x0a\x7fshort");
    let zipped = gzip(&spans(0, 1).encode_to_vec());
    let lying = framed(1, b"not gzip at all");
    let cut = framed(1, &zipped[..zipped.len() / 2]);
    for (encoding, body, code) in [
        (None, framed(0, &malformed), Code::InvalidArgument),
        (Some("gzip"), lying.clone(), Code::InvalidArgument),
        (Some("zstd"), lying, Code::InvalidArgument),
        (Some("gzip"), cut, Code::InvalidArgument),
        (None, framed(1, &zipped), Code::InvalidArgument),
        (None, Vec::new(), Code::InvalidArgument),
        (None, [framed(0, b""), framed(0, b"")].concat(), Code::InvalidArgument),
        (Some("br"), framed(0, b""), Code::Unimplemented),
    ] {
        let status = raw(to, TRACES, encoding, body).await;
        assert_eq!(status.code(), code, "{encoding:?} {}", status.message());
        assert!(!status.message().is_empty());
        let rpc = rpc_status(&status);
        assert_eq!(retry_delay(&rpc), None);
        assert_eq!(violation(&rpc).is_some(), code == Code::InvalidArgument, "{rpc:?}");
    }
    let accepted = raw(to, TRACES, Some("br"), framed(0, b"")).await;
    assert_eq!(accepted.metadata().get("grpc-accept-encoding").unwrap(), "gzip,zstd,identity");
    stand.assert_nothing_held().await;
}

#[tokio::test]
async fn what_is_not_served_is_unimplemented() {
    let stand = Stand::usual().await;
    let to = stand.doors.grpc().unwrap();
    for path in [
        "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
        "/x.Y/Z",
        "/opentelemetry.proto.collector.trace.v1.TraceService/Import",
    ] {
        assert_eq!(raw(to, path, None, framed(0, b"")).await.code(), Code::Unimplemented, "{path}");
    }
    assert_eq!(count(&stand.counters.grpc.requests.misdirected), 3);
}

#[tokio::test]
async fn with_a_token_set_every_call_needs_it() {
    let stand = Stand::with(Setup { token: Some("s3cret"), ..Setup::default() }).await;
    let to = stand.doors.grpc().unwrap();
    assert_eq!(export(&stand, to, spans(0, 1)).await.unwrap_err().code(), Code::Unauthenticated);
    let mut client = tonic::client::Grpc::new(channel(to).await);
    for (name, value) in [("authorization", "Bearer wrong"), ("origin", "https://evil.example")] {
        client.ready().await.unwrap();
        let mut request = tonic::Request::new(spans(0, 1));
        request.metadata_mut().insert(name, value.parse().unwrap());
        let codec = tonic_prost::ProstCodec::<_, ExportTraceServiceResponse>::default();
        let status = client.unary(request, TRACES.parse().unwrap(), codec).await.unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied, "{name}");
    }
    client.ready().await.unwrap();
    let mut request = tonic::Request::new(spans(0, 1));
    request.metadata_mut().insert("authorization", "Bearer s3cret".parse().unwrap());
    let codec = tonic_prost::ProstCodec::<_, ExportTraceServiceResponse>::default();
    client.unary(request, TRACES.parse().unwrap(), codec).await.unwrap();
    assert_eq!(stand.bodies().len(), 1);
}

pub(super) fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
    [&[flag][..], &u32::try_from(message.len()).unwrap().to_be_bytes(), message].concat()
}

/// Sends bytes as the body of a call, whatever they are, and reads the status.
pub(super) async fn raw(to: SocketAddr, path: &str, encoding: Option<&str>, body: Vec<u8>) -> Status {
    use http_body_util::{BodyExt, Full};
    use hyper_util::rt::{TokioExecutor, TokioIo};
    let stream = TcpStream::connect(to).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let driving = tokio::spawn(connection);
    let mut request = ::http::Request::post(format!("http://{to}{path}")).header("content-type", "application/grpc");
    if let Some(encoding) = encoding {
        request = request.header("grpc-encoding", encoding);
    }
    let request = request.body(Full::new(Bytes::from(body))).unwrap();
    let response = timeout(PATIENCE, sender.send_request(request)).await.expect("in time").unwrap();
    assert_eq!(response.status(), 200);
    let (parts, body) = response.into_parts();
    let trailers = body.collect().await.unwrap().trailers().cloned();
    driving.abort();
    Status::from_header_map(trailers.as_ref().unwrap_or(&parts.headers)).unwrap()
}
