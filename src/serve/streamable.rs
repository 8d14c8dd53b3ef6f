//! MCP over streamable HTTP, without sessions: every message is checked here as on every other transport, so that one
//! mistake has one answer, and handed on.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::message::Refusal;
use super::{lines, read_body};

/// Answers `/mcp` by the handlers that `new` makes.
pub(super) fn routes<H: ServerHandler>(
    new: impl Fn() -> std::io::Result<H> + Send + Sync + 'static,
    message_bytes_max: usize,
    cancel: &CancellationToken,
) -> MethodRouter {
    // Host and Origin are checked by the gate, for every route alike.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_allowed_hosts(Vec::<String>::new())
        .with_max_request_body_bytes(message_bytes_max)
        .with_cancellation_token(cancel.child_token());
    let service = StreamableHttpService::new(new, Arc::<NeverSessionManager>::default(), config);
    any(move |request: Request| answer(service.clone(), message_bytes_max, request))
}

async fn answer<H: ServerHandler>(
    service: StreamableHttpService<H, NeverSessionManager>,
    message_bytes_max: usize,
    request: Request,
) -> Response {
    if request.method() != Method::POST {
        return service.handle(request).await.map(Body::new).into_response();
    }
    let (parts, body) = request.into_parts();
    let Some(body) = read_body(body, message_bytes_max).await else {
        // Of a body that broke off nobody reads the answer.
        return refused(StatusCode::PAYLOAD_TOO_LARGE, &Refusal::too_large(message_bytes_max));
    };
    if body.trim_ascii().is_empty() {
        return refused(StatusCode::BAD_REQUEST, &Refusal::not_json("the body is empty"));
    }
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        let refusal = Refusal::not_served("Content-Type must be application/json");
        return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, &refusal);
    }
    if let Err(refusal) = lines::read(&body) {
        return refused(StatusCode::BAD_REQUEST, &refusal);
    }
    service.handle(Request::from_parts(parts, Body::from(body))).await.map(Body::new).into_response()
}

fn refused(status: StatusCode, refusal: &Refusal) -> Response {
    (status, Json(refusal.to_value())).into_response()
}
