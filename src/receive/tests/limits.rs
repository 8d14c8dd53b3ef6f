use super::grpc::{framed, raw};
use super::*;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, any_value};
use tonic::Code;

const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

#[tokio::test]
async fn a_body_over_the_limit_is_refused_at_every_stage() {
    let stand = Stand::with(Setup { body_bytes_max: MIB, ..Setup::default() }).await;
    let big = spans(0, 40_000).encode_to_vec();
    assert!(big.len() > MIB);
    let declared = stand.post("/v1/traces", &[PROTOBUF], &big).await;
    assert_eq!((declared.status, declared.rpc_status().code), (413, 8));
    let names_it = |message: &str| message.contains("1048576 bytes") && message.contains("receive.body_bytes_max");
    assert!(names_it(&declared.rpc_status().message));
    assert_eq!(retry_delay(&declared.rpc_status()), None);
    assert_eq!(declared.header("retry-after"), None, "must not be sent again");
    let announced = ("content-length", "99999999999");
    let unsent = stand.post("/v1/traces", &[PROTOBUF, announced, ("expect", "100-continue")], b"").await;
    assert_eq!(unsent.status, 413, "the announcement is enough");
    let chunked = [format!("{:x}\r\n", big.len()).as_bytes(), &big, b"\r\n0\r\n\r\n"].concat();
    let answer = stand.post("/v1/traces", &[PROTOBUF, ("transfer-encoding", "chunked")], &chunked).await;
    assert_eq!(answer.status, 413);
    let inflated = stand.post("/v1/traces", &[PROTOBUF, ("content-encoding", "gzip")], &gzip(&big)).await;
    assert_eq!((inflated.status, inflated.rpc_status().code), (413, 8));
    let to = stand.doors.grpc().unwrap();
    for (encoding, body) in [(None, framed(0, &big)), (Some("gzip"), framed(1, &gzip(&big)))] {
        let status = raw(to, TRACES, encoding, body).await;
        assert_eq!((status.code(), names_it(status.message())), (Code::ResourceExhausted, true), "{encoding:?}");
        assert_eq!(retry_delay(&RpcStatus::decode(status.details()).unwrap()), None, "must not be sent again");
    }
    assert_eq!(stand.bodies().len(), 0);
    let counts = &stand.counters;
    assert_eq!((count(&counts.http.requests.too_large), count(&counts.grpc.requests.too_large)), (4, 2));
    stand.assert_nothing_held().await;
}

#[tokio::test]
async fn an_http1_sender_gets_to_read_why_its_large_body_was_refused() {
    let stand = Stand::with(Setup { body_bytes_max: MIB, ..Setup::default() }).await;
    // Writes everything before it reads, as simple clients do.
    let mut stream = TcpStream::connect(stand.http()).await.unwrap();
    let body = vec![0; 16 * MIB];
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        stand.http(),
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&body).await.expect("the connection is not reset");
    let answer = timeout(PATIENCE, read_answer(&mut stream)).await.unwrap();
    assert_eq!(answer.status, 413);
    let status: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    let message = status["message"].as_str().unwrap();
    assert!(status["code"] == 8 && message.contains("receive.body_bytes_max"), "{status}");
    stand.assert_nothing_held().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_bombs_at_once_do_no_harm() {
    let stand = Stand::usual().await;
    let gzipped = gzip(&vec![0; 64 * MIB]);
    let zipped = zstd::encode_all(&vec![0; 64 * MIB][..], 1).unwrap();
    assert!(gzipped.len() < MIB && zipped.len() < MIB);
    let to = stand.doors.grpc().unwrap();
    let mut bombs = tokio::task::JoinSet::new();
    for n in 0..64 {
        let (encoding, body) = if n % 2 == 0 { ("gzip", gzipped.clone()) } else { ("zstd", zipped.clone()) };
        let http = stand.http();
        bombs.spawn(async move {
            if n % 4 < 2 {
                let answer =
                    exchange(http, "POST", "/v1/traces", &[PROTOBUF, ("content-encoding", encoding)], &body).await;
                assert!(matches!(answer.status, 413 | 503), "{answer:?}");
                answer.status == 413
            } else {
                let status = raw(to, TRACES, Some(encoding), framed(1, &body)).await;
                assert!(matches!(status.code(), Code::ResourceExhausted | Code::Unavailable), "{status:?}");
                status.code() == Code::ResourceExhausted
            }
        });
    }
    let defused = bombs.join_all().await.into_iter().filter(|was_defused| *was_defused).count();
    assert!(defused > 0, "somebody was told that it must not come again");
    stand.assert_nothing_held().await;
    assert_eq!(stand.bodies().len(), 0);
    let answer = stand.post("/v1/traces", &[PROTOBUF], &spans(0, 1).encode_to_vec()).await;
    assert_eq!(answer.status, 200, "and work goes on");
}

/// `inner` as field `number` of a message.
fn field(number: u8, inner: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    prost::encoding::encode_varint(inner.len() as u64, &mut bytes);
    bytes.extend_from_slice(inner);
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_mebibytes_of_nothing_are_refused() {
    let roomy = Setup { body_bytes_max: 64 * MIB, admission_bytes: 512 * MIB, ..Setup::default() };
    let stand = Stand::with(roomy).await;
    let room = 64 * MIB - 64;
    let span = |inner: &[u8]| field(1, &field(2, &field(2, inner)));
    let empty_spans = field(1, &field(2, &[0x12, 0x00].repeat(room / 2)));
    let empty_attributes = span(&[0x4a, 0x00].repeat(room / 2));
    let array = field(9, &field(2, &field(5, &[0x0a, 0x00].repeat(room / 2))));
    for (what, body) in [("spans", empty_spans), ("attributes", empty_attributes), ("array elements", span(&array))] {
        let compressed = gzip(&body);
        let answer = stand.post("/v1/traces", &[PROTOBUF, ("content-encoding", "gzip")], &compressed).await;
        assert_eq!((answer.status, answer.rpc_status().code), (413, 8), "{what}");
        assert!(answer.rpc_status().message.contains("262144"), "{what}: {}", answer.rpc_status().message);
        let status = raw(stand.doors.grpc().unwrap(), TRACES, Some("gzip"), framed(1, &compressed)).await;
        assert_eq!(status.code(), Code::ResourceExhausted, "{what}");
    }
    assert_eq!(stand.bodies().len(), 0);
    stand.assert_nothing_held().await;
}

#[tokio::test]
async fn values_that_nest_without_end_never_reach_the_journal() {
    let stand = Stand::usual().await;
    let mut value = AnyValue { value: Some(any_value::Value::BoolValue(true)) };
    for _ in 0..40 {
        value = AnyValue { value: Some(any_value::Value::ArrayValue(ArrayValue { values: vec![value] })) };
    }
    let mut request = spans(0, 1);
    let attributes = vec![KeyValue { key: "deep".to_owned(), value: Some(value), ..KeyValue::default() }];
    request.resource_spans[0].scope_spans[0].spans[0].attributes = attributes;
    let answer = stand.post("/v1/traces", &[PROTOBUF], &request.encode_to_vec()).await;
    assert_eq!((answer.status, answer.rpc_status().code), (400, 3));
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let answer = stand.post("/v1/traces", &[JSON], format!("{{\"x\": {deep}}}").as_bytes()).await;
    assert_eq!(answer.status, 400);
    assert_eq!(stand.bodies().len(), 0);
    stand.assert_nothing_held().await;
}

#[tokio::test]
async fn a_slow_sender_is_given_up() {
    let stand = Stand::with(Setup { read_timeout: Duration::from_millis(200), ..Setup::default() }).await;
    let answer = stand.post("/v1/traces", &[PROTOBUF, ("content-length", "100")], b"slow").await;
    assert_eq!((answer.status, answer.rpc_status().code), (408, 4));
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(count(&stand.counters.http.requests.timed_out), 1);
    let status = slow_call(&stand).await;
    assert_eq!(status.code(), Code::DeadlineExceeded);
    stand.assert_nothing_held().await;
}

/// Starts a call whose body never ends.
async fn slow_call(stand: &Stand) -> tonic::Status {
    use http_body_util::StreamBody;
    use hyper_util::rt::{TokioExecutor, TokioIo};
    let to = stand.doors.grpc().unwrap();
    let stream = TcpStream::connect(to).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let driving = tokio::spawn(connection);
    let body = StreamBody::new(Box::pin(futures_util::stream::pending::<io::Result<hyper::body::Frame<Bytes>>>()));
    let request = ::http::Request::post(format!("http://{to}{TRACES}")).header("content-type", "application/grpc");
    let response = timeout(PATIENCE, sender.send_request(request.body(body).unwrap())).await.unwrap().unwrap();
    driving.abort();
    tonic::Status::from_header_map(response.headers()).unwrap()
}

/// Scenario: the disk takes its time, and four times as many bytes come as may be under way; then the disk is quick again.
/// Guarantees: what there is no room for is refused at once with a delay to come back after; what was let in is kept once;
/// all the room is there again.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_disk_lets_nobody_wait_for_room() {
    let stand = Stand::with(Setup { admission_bytes: 4 * MIB, ..Setup::default() }).await;
    stand.appending.send_replace(Appending::Waits);
    let to = stand.http();
    let mut senders = tokio::task::JoinSet::new();
    for number in 0..64 {
        let body = spans(1000 * (number + 1), 1).encode_to_vec();
        // An unknown field: bytes that mean nothing and have to be carried all the same.
        let padded = [body, framed_noise(256 * 1024)].concat();
        senders.spawn(async move {
            let begun = std::time::Instant::now();
            (exchange(to, "POST", "/v1/traces", &[PROTOBUF], &padded).await, begun.elapsed())
        });
    }
    let (mut refused, mut taken) = (0, 0);
    while let Some(answered) = senders.join_next().await {
        let (answer, took) = answered.unwrap();
        if answer.status == 200 {
            taken += 1;
            continue;
        }
        refused += 1;
        assert_eq!(answer.status, 503);
        assert!(answer.header("retry-after").is_some());
        assert!(took < PATIENCE / 4, "a refusal took {took:?}");
        if refused == 40 {
            stand.appending.send_replace(Appending::Works);
        }
    }
    assert!(refused >= 40 && taken > 0, "{refused} refused, {taken} taken");
    assert_eq!(stand.bodies().len(), taken, "what was let in is kept, once");
    stand.assert_nothing_held().await;
}

/// A field that no request has, so long.
fn framed_noise(bytes: usize) -> Vec<u8> {
    let mut out = vec![0xfa, 0x3f];
    let mut length = bytes;
    while length > 127 {
        out.push(length as u8 | 128);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend(vec![0x5a; bytes]);
    out
}
