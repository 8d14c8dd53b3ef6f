//! The ops door: is the process alive, can it acknowledge, how is it doing. Never evaluated, never exported.

mod metrics;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::door::Listen;

pub use metrics::{Family, Kind, Sample};

/// Settings of the ops door.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Address of the ops door, or `off`. It tells counts and states, never what an agent said.
    pub listen: Listen,
}

impl Default for Config {
    fn default() -> Self {
        Self { listen: Listen::loopback(13133) }
    }
}

/// What the door answers from.
pub struct Ops {
    ready: AtomicBool,
    state: Box<dyn Fn() -> Value + Send + Sync>,
    families: Box<dyn Fn() -> Vec<Family> + Send + Sync>,
}

impl Ops {
    /// Answers from the state of the rooms and from their counters.
    pub fn new(
        state: impl Fn() -> Value + Send + Sync + 'static,
        families: impl Fn() -> Vec<Family> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { ready: AtomicBool::new(false), state: Box::new(state), families: Box::new(families) })
    }

    /// Says whether requests can be acknowledged.
    pub fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Release);
    }
}

/// Serves the ops door until `cancel`.
///
/// # Errors
/// When the listener fails.
pub async fn serve(listener: TcpListener, ops: Arc<Ops>, cancel: CancellationToken) -> std::io::Result<()> {
    let router = Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics_text))
        .with_state(ops);
    axum::serve(listener, router).with_graceful_shutdown(cancel.cancelled_owned()).await
}

async fn readyz(State(ops): State<Arc<Ops>>, RawQuery(query): RawQuery) -> Response {
    let ready = ops.ready.load(Ordering::Acquire);
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    if query.as_deref() == Some("full") {
        let mut state = json!({ "ready": ready });
        if let (Some(fields), Value::Object(rooms)) = (state.as_object_mut(), (ops.state)()) {
            fields.extend(rooms);
        }
        return (status, Json(state)).into_response();
    }
    (status, if ready { "ok\n" } else { "not ready: starting or draining\n" }).into_response()
}

async fn metrics_text(State(ops): State<Arc<Ops>>) -> Response {
    match metrics::encode((ops.families)()) {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
