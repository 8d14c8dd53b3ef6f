//! The web door: MCP over streamable HTTP, the HTTP API, and MCP for local processes over a socket.
//!
//! Transports only: what is asked goes to [`crate::tools`], what comes back is written down. Host, Origin and key are
//! checked before a body is read.

mod api;
mod lines;
mod mcp;
mod message;
mod relay;
mod rules;
mod socket;
mod streamable;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::door::{self, Guard, Listen, Unwelcome, bearer};
use crate::tools::App;

pub use mcp::{Config as McpConfig, Mcp};
pub use message::LIMIT_SETTING;
pub use relay::{End, Relay, relay};
pub use socket::{attend, connect, listen as listen_socket};

/// Connections at a time; the longest idle one makes room for the next.
const CONNECTIONS_MAX: u32 = 256;

/// How long a drain waits for requests in flight.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// The longest text of an error that is put into JSON.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Settings of the web door.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Address of the web door, or `off`.
    pub listen: Listen,
    /// The key every caller must show as a Bearer token; none is needed when it is not set.
    #[serde(serialize_with = "crate::door::hidden")]
    pub api_key: Option<SecretString>,
    /// Serve callers beyond loopback although no key is set.
    pub allow_unauthenticated: bool,
    /// Further names that a Host header may carry.
    pub allowed_hosts: Vec<String>,
    /// Further origins that a browser may send.
    pub allowed_origins: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: Listen::loopback(6920),
            api_key: None,
            allow_unauthenticated: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
        }
    }
}

impl Config {
    /// What is wrong with it.
    pub fn problems(&self) -> Vec<String> {
        let open = self.listen.beyond_loopback() && self.api_key.is_none() && !self.allow_unauthenticated;
        let mut problems = Vec::new();
        if open {
            problems.push(format!(
                "web.listen {} is open beyond loopback without a key: set web.api_key, or write out web.allow_unauthenticated: true",
                self.listen
            ));
        }
        if self.api_key.as_ref().is_some_and(|key| key.expose_secret().trim().is_empty()) {
            problems.push("web.api_key is blank: leave it out or set a key".to_owned());
        }
        problems
    }
}

/// Who may enter.
#[derive(Clone)]
struct Gate {
    guard: Arc<Guard>,
    key: Option<SecretString>,
}

/// Serves the web door until `cancel`.
///
/// # Errors
/// When the listener fails.
pub async fn serve(
    listener: TcpListener,
    config: &Config,
    message_bytes_max: usize,
    app: Arc<App>,
    cancel: CancellationToken,
) -> std::io::Result<()> {
    let address = listener.local_addr()?;
    let router = router(config, message_bytes_max, address, &app, &cancel);
    door::serve(listener, CONNECTIONS_MAX, router, cancel, DRAIN_MAX).await;
    Ok(())
}

fn router(
    config: &Config,
    message_bytes_max: usize,
    address: std::net::SocketAddr,
    app: &Arc<App>,
    cancel: &CancellationToken,
) -> Router {
    let gate = Gate {
        guard: Arc::new(Guard::new(address, &config.allowed_hosts, &config.allowed_origins)),
        key: config.api_key.clone(),
    };
    let mcp = streamable::routes(Arc::clone(app), message_bytes_max, cancel);
    Router::new()
        .route("/mcp", mcp.clone())
        .route("/mcp/", mcp)
        .nest("/api/v1", api::routes(Arc::clone(app), message_bytes_max))
        .fallback(api::no_route)
        .layer(from_fn_with_state(gate, enter))
}

/// Host and Origin first, then the key; nothing of the body is read before.
async fn enter(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    let is_mcp = matches!(request.uri().path(), "/mcp" | "/mcp/");
    if let Err(refused) = gate.guard.check(request.uri(), request.headers()) {
        return refusal(StatusCode::FORBIDDEN, &refused.to_string(), is_mcp);
    }
    if let (Some(key), false) = (&gate.key, is_open(request.uri().path()))
        && let Err(unwelcome) = bearer(request.headers(), key)
    {
        return unwelcomed(unwelcome, is_mcp);
    }
    let response = next.run(request).await;
    let mut response = in_json(response, is_mcp).await;
    response.headers_mut().insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

/// What is answered without a key: the health check, and where clients ask whether there is an authorization server.
/// There is none, and only a plain 404 says so: at a 401 they would try to register.
fn is_open(path: &str) -> bool {
    let is_sought = ["/.well-known/", "/mcp/.well-known/"].iter().any(|folder| path.starts_with(folder));
    is_sought || matches!(path, "/api/v1/health" | "/register")
}

fn unwelcomed(unwelcome: Unwelcome, is_mcp: bool) -> Response {
    let status = match unwelcome {
        Unwelcome::Missing => StatusCode::UNAUTHORIZED,
        Unwelcome::Wrong => StatusCode::FORBIDDEN,
    };
    let mut response = refusal(status, &unwelcome.to_string(), is_mcp);
    if unwelcome == Unwelcome::Missing {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// A refusal in the words of the path it answers.
fn refusal(status: StatusCode, message: &str, is_mcp: bool) -> Response {
    let body = match is_mcp {
        true => message::Refusal::not_served(message).to_value(),
        false => serde_json::json!({ "error": message }),
    };
    (status, axum::Json(body)).into_response()
}

/// Errors are JSON on this door, also those that a library wrote as plain text.
async fn in_json(response: Response, is_mcp: bool) -> Response {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_error = response.status().is_client_error() || response.status().is_server_error();
    if !is_error || kind.starts_with("application/json") {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let text = axum::body::to_bytes(body, TEXT_BYTES_MAX).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let text = if text.trim().is_empty() { parts.status.canonical_reason().unwrap_or("refused") } else { text.trim() };
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.remove(CONTENT_TYPE);
    let mut response = refusal(parts.status, text, is_mcp);
    response.headers_mut().extend(parts.headers);
    response
}
/// How much of a body that is too large is read and thrown away, in bodies: whoever sends it reads the answer only when
/// it could send on.
const THROWN_AWAY_MAX: usize = 8;

/// How long that may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A body of at most `bytes_max` bytes. `None` when it is larger, or broke off.
async fn read_body(mut body: Body, bytes_max: usize) -> Option<Bytes> {
    let mut kept = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(chunk) = frame.ok()?.into_data() else { continue };
        if kept.len() + chunk.len() > bytes_max {
            drop(kept);
            let mut left = bytes_max.saturating_mul(THROWN_AWAY_MAX);
            let rest = async {
                while let Some(Ok(frame)) = body.frame().await {
                    left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
                    if left == 0 {
                        break;
                    }
                }
            };
            let _ = tokio::time::timeout(PATIENCE, rest).await;
            return None;
        }
        kept.extend_from_slice(&chunk);
    }
    Some(kept.freeze())
}

#[cfg(test)]
mod tests;
