//! OTLP/gRPC to the downstream: tonic's channel, our own five bytes of framing.
//!
//! The body is written as it stands, copied nowhere. The answer is read here and not by tonic's client because
//! three things must be told apart that its `Status` mixes: what the downstream said, what the connection said,
//! and an answer over the limit, which tonic reports as `OUT_OF_RANGE` and the OTLP rules would retry for ever.
//! Wire format: <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>.

use std::convert::Infallible;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use iris_core::model::Lane;
use tonic::body::Body;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, transport};
use tower::ServiceExt as _;
use tower_service::Service as _;

use super::client::{CONNECT_MAX, USER_AGENT};
use super::config::{Error, Target};
use super::reply::{AnswerBytes, rejected_in_protobuf};
use super::retry::{Answer, Class, judge_grpc, judge_http};

const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(30);
/// Flag and length before a gRPC message.
const FRAME_BYTES: usize = 5;

pub(super) struct Client {
    channel: Channel,
    path: &'static str,
    headers: HeaderMap,
}

impl Client {
    pub(super) fn new(lane: Lane, target: &Target) -> Result<Self, Error> {
        let refused = |error: transport::Error| Error::Client(error.to_string());
        let mut endpoint = Endpoint::from(target.endpoint.clone())
            .user_agent(USER_AGENT)
            .map_err(refused)?
            .connect_timeout(target.timeout.min(CONNECT_MAX))
            .http2_keep_alive_interval(KEEP_ALIVE_EVERY)
            .keep_alive_timeout(target.timeout)
            .tcp_nodelay(true);
        if target.endpoint.scheme_str() == Some("https") {
            let mut tls = match &target.trust.ca {
                Some(ca) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca)),
                None => ClientTlsConfig::new().with_native_roots(),
            };
            if let Some(identity) = &target.trust.identity {
                tls = tls.identity(Identity::from_pem(&identity.cert, &identity.key));
            }
            endpoint = endpoint.tls_config(tls).map_err(refused)?;
        }
        let path = match lane {
            Lane::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            Lane::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
            Lane::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        };
        Ok(Self { channel: endpoint.connect_lazy(), path, headers: target.headers.clone() })
    }

    /// One unary call. `message` is compressed already when `gzip` says so.
    pub(super) async fn send(&self, message: Bytes, gzip: bool, timeout: Duration) -> Answer {
        let request = self.request(message, gzip, timeout);
        let mut channel = self.channel.clone();
        let response = match channel.ready().await {
            Ok(ready) => ready.call(request).await,
            Err(error) => Err(error),
        };
        match response {
            Ok(response) => read(response).await,
            Err(error) => Answer::Retry { class: lost(&error), asked: None },
        }
    }

    fn request(&self, message: Bytes, gzip: bool, timeout: Duration) -> Request<Body> {
        let mut prefix = BytesMut::with_capacity(FRAME_BYTES);
        prefix.put_u8(u8::from(gzip));
        // A body is at most 64 MiB by admission.
        prefix.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
        let frames = [prefix.freeze(), message].map(|bytes| Ok::<_, Infallible>(Frame::data(bytes)));
        let mut request = Request::new(Body::new(StreamBody::new(stream::iter(frames))));
        *request.method_mut() = http::Method::POST;
        *request.version_mut() = http::Version::HTTP_2;
        *request.uri_mut() = http::Uri::from_static(self.path);
        let headers = request.headers_mut();
        headers.clone_from(&self.headers);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        if gzip {
            headers.insert("grpc-encoding", HeaderValue::from_static("gzip"));
        }
        if let Ok(value) = HeaderValue::from_str(&grpc_timeout(timeout)) {
            headers.insert("grpc-timeout", value);
        }
        request
    }
}

/// At most eight digits and a unit.
fn grpc_timeout(timeout: Duration) -> String {
    format!("{}m", timeout.as_millis().min(99_999_999))
}

/// Whether the connection failed to stand, failed to last, or was too slow: the channel keeps `grpc-timeout` too.
fn lost(error: &transport::Error) -> Class {
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = source {
        if error.is::<tonic::ConnectError>() {
            return Class::Connect;
        }
        if error.is::<tonic::TimeoutExpired>() {
            return Class::Timeout;
        }
        source = error.source();
    }
    Class::Disconnected
}

/// Reads an answer: message, then the status in the trailers, or the status in the headers alone.
async fn read(response: Response<Body>) -> Answer {
    let (head, mut body) = response.into_parts();
    if let Some(answer) = status_of(&head.headers) {
        return answer.unwrap_or(Answer::Accepted { rejected: 0 });
    }
    let is_grpc =
        head.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
    if !head.status.is_success() || !is_grpc {
        return not_grpc(head.status, &head.headers);
    }
    let mut answer = AnswerBytes::default();
    loop {
        match body.frame().await {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if answer.push(&data) => {}
                // Only a success has a message, so one over the limit is a success that cannot be read.
                Ok(_) => return Answer::Accepted { rejected: 0 },
                Err(frame) => match frame.trailers_ref().and_then(status_of) {
                    Some(None) => return Answer::Accepted { rejected: rejected(answer.kept()) },
                    Some(Some(answer)) => return answer,
                    None => {}
                },
            },
            // The stream ended without a status: nobody knows whether it was taken.
            Some(Err(_)) | None => return Answer::Retry { class: Class::Disconnected, asked: None },
        }
    }
}

/// The status in a header map: `None` when there is none, `Some(None)` when it is OK.
#[allow(clippy::option_option)] // three states, read in one place
fn status_of(headers: &HeaderMap) -> Option<Option<Answer>> {
    let code = Code::from_bytes(headers.get("grpc-status")?.as_bytes());
    if code == Code::Ok {
        return Some(None);
    }
    Some(Some(judge_grpc(code, headers.get("grpc-status-details-bin").map(HeaderValue::as_bytes))))
}

/// An HTTP answer where a gRPC one belongs: a proxy that is busy, or an endpoint that speaks something else.
fn not_grpc(status: http::StatusCode, headers: &HeaderMap) -> Answer {
    match judge_http(status, headers, &[], std::time::SystemTime::now()) {
        Answer::Refused { class } if status == http::StatusCode::PAYLOAD_TOO_LARGE => Answer::Refused { class },
        Answer::Refused { .. } if status.is_success() => Answer::Setup { class: Class::NotOtlp },
        Answer::Refused { class } => Answer::Setup { class },
        answer => answer,
    }
}

/// How many items an answer says were rejected; 0 when it cannot be read, which the batch does not hang on.
fn rejected(answer: &[u8]) -> u64 {
    match answer.split_at_checked(FRAME_BYTES) {
        Some(([0, ..], message)) => rejected_in_protobuf(message),
        _ => 0,
    }
}
