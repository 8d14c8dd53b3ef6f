//! The web door: MCP over streamable HTTP, the HTTP API, the dashboard, and MCP for local processes over a socket.
//!
//! Transports only: what is asked goes to [`crate::tools`], what comes back is written down. Host, Origin and key are
//! checked before a body is read.

mod api;
mod dashboard;
mod gate;
mod lines;
mod mcp;
mod message;
mod openapi;
mod otlp;
mod paid;
mod relay;
mod routes;
mod rules;
mod socket;
mod streamable;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::door::{self, KeyConfig, Listen, TlsConfig};
use crate::tools::{App, Caller};
use gate::{Gate, enter, refusal};

pub use dashboard::{Around, Counter, Doors};
pub use mcp::{Config as McpConfig, Mcp};
pub use message::LIMIT_SETTING;
#[cfg(any(test, fuzzing))]
pub(crate) use message::fuzzed;
pub use otlp::Spans;
pub use relay::{End, Relay, relay};
pub use socket::{NAME as SOCKET, attend, connect, listen as listen_socket};

/// Connections at a time; an idle one makes room for the next.
const CONNECTIONS_MAX: u32 = 256;

/// How long a drain waits for requests in flight.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// The longest text of an error that is put into JSON.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Settings of the web door.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Address of the web door, or `off`.
    pub listen: Listen,
    /// The key every caller must show as a Bearer token; none is needed when it is not set.
    #[serde(serialize_with = "crate::door::hidden")]
    #[schemars(with = "Option<String>")]
    pub api_key: Option<SecretString>,
    /// A file that holds the key, instead of `api_key`. Read again when it changes.
    pub api_key_file: Option<PathBuf>,
    /// TLS at this door.
    pub tls: TlsConfig,
    /// What a caller may do while no key is set: `all` or `read`.
    pub anonymous: Anonymous,
    /// Requests a minute that one caller may make.
    pub rate_limit: RateLimit,
    /// Serve callers beyond loopback although no key is set.
    pub allow_unauthenticated: bool,
    /// Further names that a Host header may carry.
    pub allowed_hosts: Vec<String>,
    /// Further origins that a browser may send.
    pub allowed_origins: Vec<String>,
}

/// What a caller without a key may do, where none is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Anonymous {
    /// Everything.
    #[default]
    All,
    /// Look, and nothing else.
    Read,
}

/// Requests a minute for each key, or for all callers together where none is set. Ten seconds' worth may come at once;
/// 0: no limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RateLimit {
    /// At `/mcp`.
    pub mcp: u32,
    /// At `/api/v1`.
    pub api: u32,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self { mcp: 6000, api: 12_000 }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: Listen::loopback(6920),
            api_key: None,
            api_key_file: None,
            tls: TlsConfig::default(),
            anonymous: Anonymous::default(),
            rate_limit: RateLimit::default(),
            allow_unauthenticated: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
        }
    }
}

impl Config {
    /// What is wrong with it. `has_keys`: callers need one of `keys`.
    pub fn problems(&self, has_keys: bool) -> Vec<String> {
        let has_key = has_keys || self.api_key.is_some() || self.api_key_file.is_some();
        let open = self.listen.beyond_loopback() && !has_key && !self.allow_unauthenticated;
        let mut problems = Vec::new();
        if open {
            problems.push(format!(
                "web.listen {} is open beyond loopback without a key: set web.api_key_file or keys, or write out web.allow_unauthenticated: true",
                self.listen
            ));
        }
        if self.api_key.as_ref().is_some_and(|key| key.expose_secret().trim().is_empty()) {
            problems.push("web.api_key is blank: leave it out or set a key".to_owned());
        }
        if self.api_key.is_some() && self.api_key_file.is_some() {
            problems.push("web.api_key: set either this or web.api_key_file".to_owned());
        }
        problems.extend(self.tls.problems("web.tls"));
        problems
    }
}

/// What the web door serves beside the tools.
#[derive(Clone, Default)]
pub struct Beside {
    /// Where OTLP goes that comes in by it.
    pub spans: Option<Spans>,
    /// What the dashboard tells of the process.
    pub around: Around,
}

/// Serves the web door until `cancel`.
///
/// # Errors
/// When a key cannot be read, or the listener fails.
pub async fn serve(
    listener: TcpListener,
    config: &Config,
    keys: &[KeyConfig],
    message_bytes_max: usize,
    app: Arc<App>,
    beside: Beside,
    cancel: CancellationToken,
) -> std::io::Result<()> {
    let address = listener.local_addr()?;
    let gate = Gate::new(config, keys, address).map_err(std::io::Error::other)?;
    let tls = config.tls.open("web.tls").map_err(std::io::Error::other)?;
    let new = {
        let app = Arc::clone(&app);
        move || Ok(Mcp::of_request(Arc::clone(&app)))
    };
    let mcp = streamable::routes(new, message_bytes_max, &cancel);
    let mut router = Router::new()
        .route("/mcp", mcp.clone())
        .route("/mcp/", mcp)
        .nest("/api/v1", api::routes(Arc::clone(&app), message_bytes_max))
        .merge(dashboard::routes(Arc::clone(&app), gate.clone(), beside.around));
    if let Some(spans) = beside.spans {
        router = router.route("/v1/traces", otlp::routes(app, spans, message_bytes_max));
    }
    let router = router.fallback(api::no_route).layer(from_fn_with_state(gate, enter));
    door::serve(listener, CONNECTIONS_MAX, tls, router, cancel, DRAIN_MAX).await;
    Ok(())
}

/// The HTTP API for a caller in this process: no address, no gate.
pub fn answering(app: &Arc<App>, caller: Caller, message_bytes_max: usize) -> Router {
    Router::new().nest("/api/v1", api::routes(Arc::clone(app), message_bytes_max)).layer(axum::Extension(caller))
}

/// Serves other MCP handlers behind the same gate and transport, without the rest of the door, until the task ends.
///
/// # Errors
/// As [`serve`].
pub async fn serve_handler<H: rmcp::ServerHandler>(
    listener: TcpListener,
    config: &Config,
    message_bytes_max: usize,
    new: impl Fn() -> std::io::Result<H> + Send + Sync + 'static,
) -> std::io::Result<()> {
    let gate = Gate::new(config, &[], listener.local_addr()?).map_err(std::io::Error::other)?;
    let cancel = CancellationToken::new();
    let mcp = streamable::routes(new, message_bytes_max, &cancel);
    let router = Router::new().route("/mcp", mcp).fallback(api::no_route).layer(from_fn_with_state(gate, enter));
    door::serve(listener, CONNECTIONS_MAX, None, router, cancel, DRAIN_MAX).await;
    Ok(())
}

/// Errors are JSON on this door, also those that a library wrote as plain text.
async fn in_json(response: Response, is_mcp: bool) -> Response {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_error = response.status().is_client_error() || response.status().is_server_error();
    // The page for a person who asked for one that is not there is no error of a library.
    if !is_error || kind.starts_with("application/json") || kind.starts_with("text/html") {
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
