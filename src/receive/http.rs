//! OTLP/HTTP: protobuf and JSON, over HTTP/1.1 and HTTP/2.
//!
//! Source: <https://opentelemetry.io/docs/specs/otlp/#otlphttp>.

use std::time::Duration;

use http::header::{
    ALLOW, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, EXPECT, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use iris_core::model::Lane;
use iris_core::otlp::Encoding;
use tokio::time::{Instant, timeout_at};

use super::fault::{Fault, Reason};
use super::grpc;
use super::intake::{self, Compression};
use super::reply::{self, Reply};
use super::shared::Door;
use crate::ingest::Accepted;

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// How much of a refused HTTP/1.1 body is read and thrown away, so that the sender gets to read the answer
/// instead of finding its connection reset, which it would take as a reason to send again.
const THROWN_AWAY_MAX_BYTES: u64 = 256 * 1024 * 1024;

/// How long that is done for a sender without the right token.
const STRANGER_PATIENCE: Duration = Duration::from_millis(500);

/// Answers one request.
pub(super) async fn answer(door: &Door, request: Request<Incoming>) -> Response<Reply> {
    if grpc::is_grpc(request.headers()) {
        return grpc::wrong_door(door);
    }
    let deadline = Instant::now() + door.shared.read_timeout;
    let (parts, mut body) = request.into_parts();
    let encoding = media_type(&parts.headers);
    match export(door, &parts, &mut body, encoding, deadline).await {
        Ok((lane, encoding, accepted)) => success(lane, encoding, &accepted),
        Err(fault) => {
            door.refused(&fault);
            let is_read = throw_away(&parts, &mut body, &fault, deadline).await;
            failure(&fault, &parts, encoding.unwrap_or(Encoding::Json), is_read)
        }
    }
}

async fn export(
    door: &Door,
    parts: &Parts,
    body: &mut Incoming,
    encoding: Option<Encoding>,
    deadline: Instant,
) -> Result<(Lane, Encoding, Accepted), Fault> {
    let shared = &door.shared;
    door.guard.check(&parts.uri, &parts.headers)?;
    // A client that looks here for an authorization server must find nothing: at a 401 it would go on looking.
    if parts.uri.path().starts_with("/.well-known/") {
        lane(parts.uri.path())?;
    }
    let sender = door.authenticate(&parts.headers)?;
    let lane = lane(parts.uri.path())?;
    if parts.method != Method::POST {
        return Err(Fault::misdirected(StatusCode::METHOD_NOT_ALLOWED, "send with POST"));
    }
    let Some(encoding) = encoding else {
        let message = "Content-Type must be application/x-protobuf or application/json";
        return Err(Fault::misdirected(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    };
    let compression = compression(&parts.headers)?;
    let mut permit = shared.admission.enter()?;
    let bytes = intake::read_body(body, shared.body_bytes_max, deadline, &mut permit).await?;
    let accepted = door.take(sender, lane, encoding, compression, bytes, permit).await?;
    Ok((lane, encoding, accepted))
}

/// The signal a path stands for. Langfuse's SDK sends spans to a path of its own.
fn lane(path: &str) -> Result<Lane, Fault> {
    match path.strip_suffix('/').unwrap_or(path) {
        "/v1/traces" | "/api/public/otel/v1/traces" => Ok(Lane::Traces),
        "/v1/logs" => Ok(Lane::Logs),
        "/v1/metrics" => Ok(Lane::Metrics),
        _ => {
            let message = "OTLP is served at /v1/traces, /v1/metrics and /v1/logs; an SDK's base endpoint is this \
                           address without a path";
            Err(Fault::misdirected(StatusCode::NOT_FOUND, message))
        }
    }
}

fn media_type(headers: &HeaderMap) -> Option<Encoding> {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let name = value.to_str().ok()?.split(';').next()?.trim();
    if name.eq_ignore_ascii_case("application/x-protobuf") {
        Some(Encoding::Protobuf)
    } else if name.eq_ignore_ascii_case("application/json") {
        Some(Encoding::Json)
    } else {
        None
    }
}

fn compression(headers: &HeaderMap) -> Result<Option<Compression>, Fault> {
    let unknown = || {
        let message = "Content-Encoding must be one of gzip, zstd, deflate and identity";
        Fault::misdirected(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
    };
    let mut values = headers.get_all(CONTENT_ENCODING).iter();
    let (first, second) = (values.next(), values.next());
    let Some(value) = first else { return Ok(None) };
    let name = value.to_str().map_err(|_| unknown())?.trim().to_ascii_lowercase();
    match (name.as_str(), second) {
        ("" | "identity" | "none", None) => Ok(None),
        ("gzip" | "x-gzip", None) => Ok(Some(Compression::Gzip)),
        ("zstd", None) => Ok(Some(Compression::Zstd)),
        ("deflate", None) => Ok(Some(Compression::Deflate)),
        _ => Err(unknown()),
    }
}

/// Reads on to the end of a refused body, keeping nothing. Says whether the end was reached.
async fn throw_away(parts: &Parts, body: &mut Incoming, fault: &Fault, deadline: Instant) -> bool {
    if body.is_end_stream() {
        return true;
    }
    // HTTP/2 can end a stream without ending the connection, and who asks first has sent nothing yet.
    let is_needless = parts.version == Version::HTTP_2 || parts.headers.contains_key(EXPECT);
    let is_hopeless = matches!(fault.reason, Reason::Aborted | Reason::TimedOut | Reason::Foreign);
    if is_needless || is_hopeless {
        return parts.version == Version::HTTP_2;
    }
    let is_stranger = fault.reason == Reason::Unauthenticated;
    let deadline = if is_stranger { deadline.min(Instant::now() + STRANGER_PATIENCE) } else { deadline };
    let mut thrown_away = 0u64;
    while thrown_away < THROWN_AWAY_MAX_BYTES {
        match timeout_at(deadline, body.frame()).await {
            Ok(None) => return true,
            Ok(Some(Ok(frame))) => thrown_away += frame.data_ref().map_or(0, |chunk| chunk.len() as u64),
            Ok(Some(Err(_))) | Err(_) => return false,
        }
    }
    false
}

fn success(lane: Lane, encoding: Encoding, accepted: &Accepted) -> Response<Reply> {
    let (body, media_type) = match encoding {
        Encoding::Protobuf => (reply::success_protobuf(lane, accepted).into(), PROTOBUF),
        Encoding::Json => (reply::success_json(lane, accepted), JSON),
    };
    let mut response = Response::new(Reply::of(body));
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

fn failure(fault: &Fault, parts: &Parts, encoding: Encoding, is_read: bool) -> Response<Reply> {
    let (body, media_type) = match encoding {
        Encoding::Protobuf => (fault.to_protobuf(), PROTOBUF),
        Encoding::Json => (fault.to_json(), JSON),
    };
    let mut response = Response::new(Reply::of(body));
    *response.status_mut() = fault.http;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, media_type);
    if let Some(seconds) = fault.retry_after_s() {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if fault.http == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("POST"));
    }
    if fault.http == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if !is_read && parts.version != Version::HTTP_2 {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
