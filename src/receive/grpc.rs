//! OTLP/gRPC: three unary calls, unframed here so that every byte has its permit before it is kept.
//!
//! tonic's own server takes a whole message into memory, and inflates it there, before any of our code runs.

use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use iris_core::model::Lane;
use iris_core::otlp::Encoding;
use tokio::time::Instant;

use super::fault::Fault;
use super::intake::{self, Compression};
use super::reply::{self, Reply};
use super::shared::Door;
use crate::ingest::Accepted;

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const ACCEPTED_ENCODINGS: HeaderValue = HeaderValue::from_static("gzip,zstd,identity");

/// The prefix of an uncompressed message without a byte in it.
const EMPTY_MESSAGE: [u8; 5] = [0; 5];

/// Whether this is gRPC by its content type.
pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| {
        value
            .as_bytes()
            .strip_prefix(b"application/grpc")
            .is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
    })
}

/// Answers one request.
pub(super) async fn answer(door: &Door, request: Request<Incoming>) -> Response<Reply> {
    if request.version() != Version::HTTP_2 || !is_grpc(request.headers()) {
        return not_grpc(door);
    }
    match export(door, request).await {
        Ok((lane, accepted)) => success(lane, &accepted),
        Err(fault) => {
            door.refused(&fault);
            failure(&fault)
        }
    }
}

async fn export(door: &Door, request: Request<Incoming>) -> Result<(Lane, Accepted), Fault> {
    let deadline = Instant::now() + door.shared.read_timeout;
    let (parts, mut body) = request.into_parts();
    let lane = match parts.uri.path() {
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export" => Lane::Traces,
        "/opentelemetry.proto.collector.logs.v1.LogsService/Export" => Lane::Logs,
        "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export" => Lane::Metrics,
        _ => {
            let message = "only Export of TraceService, MetricsService and LogsService in \
                           opentelemetry.proto.collector is served";
            return Err(Fault::misdirected(StatusCode::OK, message));
        }
    };
    if parts.method != Method::POST {
        return Err(Fault::misdirected(StatusCode::OK, "a call is a POST"));
    }
    // A browser cannot speak this protocol to a name that points here, so the name does not matter; a page that gets
    // this far through something else says where it comes from.
    door.guard.check_origin(&parts.headers)?;
    let sender = door.authenticate(&parts.headers)?;
    let compression = compression(&parts.headers)?;
    let mut permit = door.shared.admission.enter()?;
    let (message, is_compressed) =
        intake::read_message(&mut body, door.shared.body_bytes_max, deadline, &mut permit).await?;
    let compression = match (is_compressed, compression) {
        (false, _) => None,
        (true, Some(compression)) => Some(compression),
        (true, None) => return Err(Fault::malformed("the message is compressed, but grpc-encoding does not say how")),
    };
    let accepted = door.take(sender, lane, Encoding::Protobuf, compression, message, permit).await?;
    Ok((lane, accepted))
}

fn compression(headers: &HeaderMap) -> Result<Option<Compression>, Fault> {
    match headers.get(GRPC_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"identity") => Ok(None),
        Some(b"gzip") => Ok(Some(Compression::Gzip)),
        Some(b"zstd") => Ok(Some(Compression::Zstd)),
        Some(_) => Err(Fault::misdirected(StatusCode::OK, "grpc-encoding must be gzip, zstd or identity")),
    }
}

fn success(lane: Lane, accepted: &Accepted) -> Response<Reply> {
    let message = reply::success_protobuf(lane, accepted);
    let mut framed = EMPTY_MESSAGE.to_vec();
    // The answer is a number and at most a kilobyte of words.
    let length = u32::try_from(message.len()).unwrap_or(0).to_be_bytes();
    framed.splice(1.., length.into_iter().chain(message));
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
    let mut response = Response::new(Reply::with_trailers(framed.into(), trailers));
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response.headers_mut().insert(GRPC_ACCEPT_ENCODING, ACCEPTED_ENCODINGS);
    response
}

/// The status in the headers and no body: what gRPC calls trailers only.
fn failure(fault: &Fault) -> Response<Reply> {
    let mut response = fault.to_grpc().into_http::<Reply>();
    response.headers_mut().insert(GRPC_ACCEPT_ENCODING, ACCEPTED_ENCODINGS);
    response
}

/// Answers a gRPC call that came to the HTTP door.
pub(super) fn wrong_door(door: &Door) -> Response<Reply> {
    let place = door.other.map_or_else(|| "the port of receive.grpc.listen".to_owned(), |address| address.to_string());
    let fault = Fault::misdirected(StatusCode::OK, format!("this port serves OTLP/HTTP; OTLP/gRPC is at {place}"));
    door.refused(&fault);
    failure(&fault)
}

/// Answers something else that came to the gRPC door, in plain words.
fn not_grpc(door: &Door) -> Response<Reply> {
    let place = door.other.map_or_else(|| "the port of receive.http.listen".to_owned(), |address| address.to_string());
    let message = format!(
        "this port serves OTLP/gRPC (application/grpc over HTTP/2); OTLP/HTTP is at {place}, \
         paths /v1/traces, /v1/metrics and /v1/logs\n"
    );
    let fault = Fault::misdirected(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
    door.refused(&fault);
    let mut response = Response::new(Reply::of(fault.message.into()));
    *response.status_mut() = fault.http;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
