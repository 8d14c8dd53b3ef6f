//! Traces that a tool stored, sent to a collector besides: best effort, once each, and never waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use iris_core::model::Lane;
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::config::{Error, Origin, Protocol, Target};
use super::retry::Answer;
use crate::journal::Encoding;

/// Traces that wait to be sent; what comes on top is not sent.
const WAITING_MAX: usize = 256;

/// How often a failure that goes on is logged.
const SAID_EVERY: Duration = Duration::from_secs(60);

/// Where traces that `log_trace` stored are also sent. Best effort: nothing waits for it and nothing is tried again.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// An OTLP/HTTP collector, such as `http://localhost:4318`; `/v1/traces` is appended unless it stands there. Unset:
    /// they are not sent.
    pub endpoint: Option<String>,
    /// `service.name` of what is sent.
    pub service_name: String,
    /// Headers added to every request, as `name=value,name=value`. A secret, never shown.
    #[serde(serialize_with = "crate::door::hidden")]
    #[schemars(with = "Option<String>")]
    pub headers: Option<SecretString>,
    /// How long one request may take, in milliseconds.
    pub timeout_ms: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { endpoint: None, service_name: "iris-sidecar".to_owned(), headers: None, timeout_ms: 15_000 }
    }
}

impl Config {
    /// What is wrong with it.
    pub fn problems(&self) -> Vec<String> {
        match self.endpoint {
            Some(_) => {
                self.target_config().problems().iter().map(|problem| problem.replace("forward.", "export.")).collect()
            }
            None => Vec::new(),
        }
    }

    /// Where to send.
    ///
    /// # Errors
    /// A setting that cannot work, or an endpoint that is one of our own `listeners`.
    pub fn target(&self, listeners: &[std::net::SocketAddr]) -> Result<Option<Target>, Error> {
        Target::new(&self.target_config(), Origin::Configured, listeners)
    }

    fn target_config(&self) -> super::Config {
        let base = |endpoint: &String| endpoint.trim_end_matches('/').trim_end_matches("/v1/traces").to_owned();
        let pairs = self.headers.as_ref().map(ExposeSecret::expose_secret).unwrap_or_default();
        let pairs = pairs.split(',').filter_map(|pair| pair.split_once('='));
        super::Config {
            endpoint: self.endpoint.as_ref().map(base),
            protocol: Protocol::Http,
            timeout_ms: self.timeout_ms,
            headers: pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().into())).collect(),
            ..super::Config::default()
        }
    }
}

/// A handle that takes traces as OTLP/JSON.
#[derive(Debug, Clone)]
pub struct Exporter {
    queue: mpsc::Sender<Bytes>,
    lost: Arc<AtomicU64>,
    service_name: Arc<str>,
}

impl Exporter {
    /// The handle, and the work to be spawned: it ends at `cancel`, with what waits then.
    ///
    /// # Errors
    /// When the client cannot be set up.
    pub fn new(
        target: &Target,
        service_name: &str,
        cancel: CancellationToken,
    ) -> Result<(Self, impl Future<Output = ()> + Send + use<>), Error> {
        let client = Client::new(Lane::Traces, target)?;
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        let exporter = Self { queue, lost: Arc::default(), service_name: service_name.into() };
        let lost = Arc::clone(&exporter.lost);
        Ok((exporter, send(client, waiting, lost, cancel)))
    }

    /// Takes one request, or counts it as lost when too many wait.
    pub fn send(&self, body: Bytes) {
        if self.queue.try_send(body).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// `service.name` of what is sent.
    pub fn service_name(&self) -> &str {
        &self.service_name
    }

    /// Traces that were not sent since the start.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

async fn send(client: Client, mut waiting: mpsc::Receiver<Bytes>, lost: Arc<AtomicU64>, cancel: CancellationToken) {
    let mut said: Option<tokio::time::Instant> = None;
    loop {
        let body = tokio::select! {
            body = waiting.recv() => body,
            () = cancel.cancelled() => waiting.try_recv().ok(),
        };
        let Some(body) = body else { return };
        if let Answer::Accepted { .. } = client.send(Encoding::Json, body).await {
            continue;
        }
        let all = lost.fetch_add(1, Ordering::Relaxed) + 1;
        if said.is_none_or(|said| said.elapsed() >= SAID_EVERY) {
            said = Some(tokio::time::Instant::now());
            tracing::warn!(
                lost = all,
                "a trace that log_trace stored was not taken by export.endpoint; it is not sent again"
            );
        }
    }
}
