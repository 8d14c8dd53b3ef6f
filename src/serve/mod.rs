//! The web door: MCP over streamable HTTP, the HTTP API, and MCP for local processes over a socket.
//!
//! Transports only: what is asked goes to [`crate::tools`], what comes back is written down. Host, Origin and key are
//! checked before a body is read.

mod api;
mod mcp;
mod socket;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::StatusCode;
use axum::http::header::{HeaderValue, WWW_AUTHENTICATE};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::door::{self, Guard, Listen, Unwelcome, bearer};
use crate::tools::{App, Caller};

pub use mcp::Mcp;
pub use socket::{bridge, listen as listen_socket};

/// The largest request body, in bytes.
const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Connections at a time; the longest idle one makes room for the next.
const CONNECTIONS_MAX: u32 = 256;

/// How long a drain waits for requests in flight.
const DRAIN_MAX: Duration = Duration::from_secs(2);

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
    app: Arc<App>,
    cancel: CancellationToken,
) -> std::io::Result<()> {
    let address = listener.local_addr()?;
    let router = router(config, address, &app, &cancel);
    door::serve(listener, CONNECTIONS_MAX, router, cancel, DRAIN_MAX).await;
    Ok(())
}

fn router(config: &Config, address: std::net::SocketAddr, app: &Arc<App>, cancel: &CancellationToken) -> Router {
    let gate = Gate {
        guard: Arc::new(Guard::new(address, &config.allowed_hosts, &config.allowed_origins)),
        key: config.api_key.clone(),
    };
    // Host and Origin are checked by the gate, for every route alike.
    let streamable = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_allowed_hosts(Vec::<String>::new())
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        .with_cancellation_token(cancel.child_token());
    let for_mcp = Arc::clone(app);
    let mcp = StreamableHttpService::new(
        move || Ok(Mcp::new(Arc::clone(&for_mcp), Caller::local())),
        Arc::new(NeverSessionManager::default()),
        streamable,
    );
    Router::new()
        .nest_service("/mcp", mcp)
        .nest("/api/v1", api::routes(Arc::clone(app)))
        .fallback(api::no_route)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn_with_state(gate, enter))
}

/// Host and Origin first, then the key; nothing of the body is read before.
async fn enter(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    if let Err(refused) = gate.guard.check(request.uri(), request.headers()) {
        return (StatusCode::FORBIDDEN, axum::Json(serde_json::json!({ "error": refused.to_string() })))
            .into_response();
    }
    let open = request.uri().path() == "/api/v1/health";
    if let (Some(key), false) = (&gate.key, open)
        && let Err(unwelcome) = bearer(request.headers(), key)
    {
        return refusal(unwelcome);
    }
    let mut response = next.run(request).await;
    response.headers_mut().insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

fn refusal(unwelcome: Unwelcome) -> Response {
    let body = axum::Json(serde_json::json!({ "error": unwelcome.to_string() }));
    match unwelcome {
        Unwelcome::Missing => (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], body).into_response(),
        Unwelcome::Wrong => (StatusCode::FORBIDDEN, body).into_response(),
    }
}

#[cfg(test)]
mod tests;
