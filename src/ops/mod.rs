//! The ops door: is the process alive, can it acknowledge, how is it doing. Never evaluated, never exported.

mod metrics;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{RawQuery, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::door::{self, Guard, Listen, Refused, Tls, TlsConfig};

pub use metrics::{Family, Kind, Sample};

/// Settings of the ops door.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Address of the ops door, or `off`. It tells counts and states, never what an agent said.
    pub listen: Listen,
    /// TLS at this door.
    pub tls: TlsConfig,
}

impl Config {
    /// What could not work, a line a problem.
    pub fn problems(&self) -> Vec<String> {
        self.tls.problems("ops.tls")
    }
}

impl Default for Config {
    fn default() -> Self {
        Self { listen: Listen::loopback(13133), tls: TlsConfig::default() }
    }
}

/// What the door answers from.
pub struct Ops {
    ready: AtomicBool,
    obstacle: Box<dyn Fn() -> Option<&'static str> + Send + Sync>,
    state: Box<dyn Fn() -> Value + Send + Sync>,
    families: Box<dyn Fn() -> Vec<Family> + Send + Sync>,
}

impl Ops {
    /// Answers from what keeps the rooms from acknowledging, from their state and from their counters. The first is
    /// asked at every probe and must be cheap.
    pub fn new(
        obstacle: impl Fn() -> Option<&'static str> + Send + Sync + 'static,
        state: impl Fn() -> Value + Send + Sync + 'static,
        families: impl Fn() -> Vec<Family> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            ready: AtomicBool::new(false),
            obstacle: Box::new(obstacle),
            state: Box::new(state),
            families: Box::new(families),
        })
    }

    /// Says whether the doors are open.
    pub fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Release);
    }

    /// Every metric as it is now.
    pub fn families(&self) -> Vec<Family> {
        (self.families)()
    }

    /// Why requests cannot be acknowledged.
    fn not_ready(&self) -> Option<&'static str> {
        if self.ready.load(Ordering::Acquire) { (self.obstacle)() } else { Some("starting or draining") }
    }
}

/// The answer to whoever takes it for another door, as an exporter may.
const ELSEWHERE: &str = "nothing is here: this door has /livez, /readyz, /readyz?full and /metrics; OTLP goes to receive.http.listen \
                         (port 4318) or receive.grpc.listen (4317), the dashboard and the API are at web.listen (6920)\n";

/// Connections at a time; an idle one makes room for the next.
const CONNECTIONS_MAX: u32 = 64;

/// How long a drain waits for requests in flight.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// Serves the ops door until `cancel`.
///
/// # Errors
/// When the listener has no address.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Tls>,
    ops: Arc<Ops>,
    cancel: CancellationToken,
) -> std::io::Result<()> {
    let address = listener.local_addr()?;
    let gate = Gate { guard: Guard::new(address, &[], &[]), on_loopback: address.ip().is_loopback() };
    let router = Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        // Where probes written for a collector's health check look.
        .route("/", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics_text))
        .fallback(|| async { (StatusCode::NOT_FOUND, ELSEWHERE) })
        .with_state(ops)
        .layer(from_fn_with_state(Arc::new(gate), enter));
    door::serve(listener, CONNECTIONS_MAX, tls, router, cancel, DRAIN_MAX).await;
    Ok(())
}

/// Who may ask.
struct Gate {
    guard: Guard,
    on_loopback: bool,
}

/// On loopback only by its own names: a page in a browser must not read this through a name that points here. Beyond
/// it, probes and scrapers come by names nobody lists, and a page still says where it is from.
async fn enter(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let checked = match gate.on_loopback {
        true => gate.guard.check(request.uri(), request.headers()),
        false => gate.guard.check_origin(request.headers()),
    };
    match checked {
        Ok(()) => next.run(request).await,
        Err(Refused::Host) => (StatusCode::FORBIDDEN, "the Host header is not this door's\n").into_response(),
        Err(Refused::Origin) => (StatusCode::FORBIDDEN, "the Origin header is not this door's\n").into_response(),
    }
}

async fn readyz(State(ops): State<Arc<Ops>>, RawQuery(query): RawQuery) -> Response {
    let obstacle = ops.not_ready();
    let status = if obstacle.is_none() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    if query.as_deref() == Some("full") {
        let mut state = json!({ "ready": obstacle.is_none(), "not_ready": obstacle });
        if let (Some(fields), Value::Object(rooms)) = (state.as_object_mut(), (ops.state)()) {
            fields.extend(rooms);
        }
        return (status, Json(state)).into_response();
    }
    (status, obstacle.map_or_else(|| "ok\n".to_owned(), |why| format!("not ready: {why}\n"))).into_response()
}

async fn metrics_text(State(ops): State<Arc<Ops>>) -> Response {
    match metrics::encode(ops.families()) {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests;
