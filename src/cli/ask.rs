//! Whom a command asks: the sidecar that holds the folder (by its web door, else by the socket in the folder), another by
//! its address, or, while none runs, the folder itself. All answer the HTTP API, so a command reads the same whoever it
//! asked.

use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use clap::Args;
use iris_core::model::Tenant;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::runtime::Runtime;
use tower::ServiceExt;

use super::{Settings, Stop, USAGE};
use crate::config::Config;
use crate::home;
use crate::run::Sidecar;
use crate::serve;
use crate::telemetry::Level;
use crate::tools::Caller;

/// How long the store may take to open.
const OPEN_MAX: Duration = Duration::from_secs(600);

/// How long an answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// How often something is asked for that was asked for too often, and how long between: many pages are read in a row.
const TRIES_MAX: u32 = 60;
const BETWEEN_TRIES: Duration = Duration::from_secs(1);

/// What the socket in the folder is called where an address is wanted.
const SOCKET_BASE: &str = "http://iris.sock";

/// How often something is asked of a sidecar that cannot answer yet.
const OPENING_TRIES_MAX: u32 = 10;

/// The largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Whom to ask.
#[derive(Debug, Args)]
pub(super) struct Whom {
    /// Ask the sidecar at this address, such as `https://iris.example.com:6920` [default: the one that holds the folder,
    /// or the folder itself while none runs]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// File that holds the key to show there [default: web.api_key]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Of a folder without a sidecar: the tenant whose traces and rules are meant
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    #[command(flatten)]
    settings: Settings,
}

/// Somebody who answers.
pub(super) struct Asked {
    runtime: Runtime,
    side: Side,
    first_step: String,
}

enum Side {
    /// A sidecar that runs.
    Running { client: reqwest::Client, base: String, key: Option<SecretString> },
    /// The folder, opened here.
    Here { sidecar: Box<Sidecar>, router: Router },
}

impl Whom {
    /// Finds whoever answers.
    ///
    /// # Errors
    /// When nobody does, and why.
    pub(super) fn find(&self) -> Result<Asked, Stop> {
        let runtime = super::runtime()?;
        let config = self.settings.load()?;
        let key = self.key(&config.web)?;
        let folder = config.home(std::env::var_os("HOME").as_deref());
        let running = home::runtime(&folder).filter(|_| self.url.is_none() && is_held(&folder));
        let client = reqwest::Client::builder().timeout(ANSWER_MAX);
        if let Some(url) = &self.url {
            let base = address(url)?;
            let client = client.build().map_err(Stop::failed)?;
            let first_step = "point an agent at the sidecar with OTEL_EXPORTER_OTLP_ENDPOINT".to_owned();
            return Ok(Asked { runtime, side: Side::Running { client, base, key }, first_step });
        }
        if let Some(running) = running {
            let scheme = if config.web.tls.is_on() { "https" } else { "http" };
            // What runs here is asked directly, whatever proxy the environment names.
            let client = client.no_proxy();
            let first_step = first_step(&running, config.receive.tls.is_on());
            let (client, base) = match running.web {
                Some(web) => (client, format!("{scheme}://{web}")),
                None => (client.unix_socket(folder.join(serve::SOCKET)), SOCKET_BASE.to_owned()),
            };
            let client = client.build().map_err(Stop::failed)?;
            return Ok(Asked { runtime, side: Side::Running { client, base, key }, first_step });
        }
        if !folder.is_dir() {
            return Err(Stop::usage(format!(
                "{}: no such folder, and no sidecar runs there: start one with `iris-sidecar serve`, or say with --home or \
                 --url where to ask",
                folder.display()
            )));
        }
        let sidecar = self.opened(&runtime, config, &folder)?;
        let message_bytes_max = sidecar.1;
        let tenant = self.tenant.as_ref().map_or_else(Tenant::local, |name| Tenant::new(name));
        let router = serve::answering(sidecar.0.app(), Caller::owner(tenant), message_bytes_max);
        let first_step = "start the sidecar with `iris-sidecar serve` and point an agent at it".to_owned();
        Ok(Asked { runtime, side: Side::Here { sidecar: Box::new(sidecar.0), router }, first_step })
    }

    /// Opens the folder here; and how large a message may be.
    fn opened(&self, runtime: &Runtime, mut config: Config, folder: &Path) -> Result<(Sidecar, usize), Stop> {
        config.logging.level = Level::Warn;
        crate::telemetry::start(&config.logging);
        // What waits for a collector goes on waiting.
        config.forward = crate::forward::Config::default();
        let message_bytes_max = config.mcp.message_bytes();
        let sidecar = runtime.block_on(async {
            let sidecar = Sidecar::start_alone(config, folder).await.map_err(Stop::failed)?;
            if !sidecar.opened(OPEN_MAX).await {
                sidecar.drain().await;
                return Err(Stop::failed("the database could not be opened; the log says why"));
            }
            Ok(sidecar)
        })?;
        Ok((sidecar, message_bytes_max))
    }

    fn key(&self, web: &serve::Config) -> Result<Option<SecretString>, Stop> {
        let file = self.key_file.as_ref().or(web.api_key_file.as_ref().filter(|_| web.api_key.is_none()));
        let Some(file) = file else { return Ok(web.api_key.clone()) };
        let text =
            std::fs::read_to_string(file).map_err(|error| Stop::usage(format!("{}: {error}", file.display())))?;
        Ok(Some(SecretString::from(text.trim().to_owned())))
    }
}

/// Whether somebody holds the lock of the folder: what a process that was killed left behind says nothing.
fn is_held(folder: &Path) -> bool {
    matches!(home::Home::take(folder), Err(home::Error::Held { .. }))
}

/// What brings the first trace to a process that runs.
fn first_step(running: &home::Runtime, is_tls: bool) -> String {
    let scheme = if is_tls { "https" } else { "http" };
    let (door, protocol) = match (&running.http, &running.grpc) {
        (Some(http), _) => (http, "http/protobuf"),
        (None, Some(grpc)) => (grpc, "grpc"),
        (None, None) => {
            return format!(
                "process {} holds the folder and takes no spans, as `iris-sidecar mcp` does: end it, then `iris-sidecar serve`",
                running.pid
            );
        }
    };
    format!(
        "point an agent at it with OTEL_EXPORTER_OTLP_ENDPOINT={scheme}://{door} and OTEL_EXPORTER_OTLP_PROTOCOL={protocol}"
    )
}

/// An address that was given, with what is wrong with it.
fn address(url: &str) -> Result<String, Stop> {
    let url = url.trim_end_matches('/');
    if url.starts_with("http://") || url.starts_with("https://") {
        return Ok(url.to_owned());
    }
    Err(Stop::usage(format!(
        "--url {}: write the whole address of a web door, such as http://127.0.0.1:6920",
        super::text::inert(url)
    )))
}

impl Asked {
    /// What brings the first trace to whoever was asked.
    pub(super) fn first_step(&self) -> &str {
        &self.first_step
    }

    /// Refuses the name of a rule that whoever was asked does not have.
    ///
    /// # Errors
    /// With the names that may have been meant.
    pub(super) fn knows_rule(&self, name: &str) -> Result<(), Stop> {
        let rules = self.get("/rules", &[])?;
        let lists = ["built_in", "rules", "quarantined"].map(|list| rules[list].as_array().map(Vec::as_slice));
        let all: Vec<&Value> = lists.into_iter().flatten().flatten().collect();
        if all.is_empty() || all.iter().any(|rule| rule["name"] == name) {
            return Ok(());
        }
        // A verdict names classes of failures too, which look like rules.
        let is_near = |rule: &&&Value| {
            let classes = rule["classes"].as_array().map(Vec::as_slice).unwrap_or_default();
            let own = rule["name"].as_str().unwrap_or_default();
            classes.iter().any(|class| class == name) || own.contains(name) || !own.is_empty() && name.contains(own)
        };
        let near: Vec<&str> = all.iter().filter(is_near).filter_map(|rule| rule["name"].as_str()).collect();
        let meant = if near.is_empty() { String::new() } else { format!(", but {}", near.join(", ")) };
        let name = super::text::inert(name);
        Err(Stop::usage(format!("no rule is called {name}{meant}; `iris-sidecar rules list` names them")))
    }

    /// Reads `/api/v1` and this path with these query parameters.
    ///
    /// # Errors
    /// What the one who was asked refused, in its words.
    pub(super) fn get(&self, path: &str, query: &[(&str, String)]) -> Result<Value, Stop> {
        let mut pairs = form_urlencoded::Serializer::new(String::new());
        pairs.extend_pairs(query);
        let query = pairs.finish();
        let path = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
        self.send(&Method::GET, &path, None)
    }

    /// Sends a body to `/api/v1` and this path; an empty answer is null.
    ///
    /// # Errors
    /// As [`Asked::get`].
    pub(super) fn send(&self, method: &Method, path: &str, body: Option<&Value>) -> Result<Value, Stop> {
        let (mut status, mut bytes) = self.send_once(method, path, body)?;
        let mut tries = 1;
        while match status {
            StatusCode::TOO_MANY_REQUESTS => tries < TRIES_MAX,
            StatusCode::SERVICE_UNAVAILABLE => {
                *method == Method::GET && tries < OPENING_TRIES_MAX && is_retryable(&bytes)
            }
            _ => false,
        } {
            std::thread::sleep(BETWEEN_TRIES);
            (status, bytes) = self.send_once(method, path, body)?;
            tries += 1;
        }
        let value: Value = if bytes.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&bytes).map_err(|_| Stop::failed(format!("the answer ({status}) is not JSON")))?
        };
        if status.is_success() { Ok(value) } else { Err(refused(status, &value)) }
    }

    fn send_once(&self, method: &Method, path: &str, body: Option<&Value>) -> Result<(StatusCode, Vec<u8>), Stop> {
        self.runtime.block_on(async {
            match &self.side {
                Side::Running { client, base, key } => {
                    let mut request = client.request(method.clone(), format!("{base}/api/v1{path}"));
                    if let Some(key) = key {
                        request = request.bearer_auth(key.expose_secret());
                    }
                    if let Some(body) = body {
                        request = request.json(body);
                    }
                    remote(request, base).await
                }
                Side::Here { router, .. } => local(router.clone(), method, path, body).await,
            }
        })
    }

    /// Lets go of the folder.
    pub(super) fn close(self) {
        if let Side::Here { sidecar, .. } = self.side {
            self.runtime.block_on(sidecar.drain());
        }
        self.runtime.shutdown_timeout(Duration::from_secs(1));
    }
}

async fn remote(request: reqwest::RequestBuilder, base: &str) -> Result<(StatusCode, Vec<u8>), Stop> {
    let unreached = |error: reqwest::Error| Stop::failed(format!("{base}: {}", without_address(&error)));
    let mut response = request.send().await.map_err(unreached)?;
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreached)? {
        if bytes.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(Stop::failed(format!("{base}: the answer is longer than {ANSWER_BYTES_MAX} bytes")));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok((response.status(), bytes))
}

/// Why, with the causes that the client's own words leave out.
fn without_address(error: &reqwest::Error) -> String {
    let mut causes = Vec::new();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    if causes.is_empty() { "no answer".to_owned() } else { causes.join(": ") }
}

async fn local(
    router: Router,
    method: &Method,
    path: &str,
    body: Option<&Value>,
) -> Result<(StatusCode, Vec<u8>), Stop> {
    let request = Request::builder().method(method).uri(format!("/api/v1{path}"));
    let request = request.header(header::CONTENT_TYPE, "application/json");
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let response = router.oneshot(request.body(body).map_err(Stop::failed)?).await.map_err(Stop::failed)?;
    let status = response.status();
    let bytes = axum::body::to_bytes(response.into_body(), ANSWER_BYTES_MAX).await.map_err(Stop::failed)?;
    Ok((status, bytes.to_vec()))
}

/// Whether a refusal says that the same may be asked again, as while the database is being opened.
fn is_retryable(answer: &[u8]) -> bool {
    serde_json::from_slice::<Value>(answer)
        .is_ok_and(|answer| answer["retryable"] == true || answer["error"]["retryable"] == true)
}

/// A refusal in the words of the one who was asked, with the first step that helps.
fn refused(status: StatusCode, answer: &Value) -> Stop {
    let error = answer["message"].as_str().or(answer["error"].as_str()).unwrap_or("refused");
    let step = answer["recovery"].get(0).and_then(Value::as_str).or(answer["error"]["recovery"][0].as_str());
    let message = match step {
        Some(step) => format!("{error}; {step}"),
        None if status == StatusCode::UNAUTHORIZED => format!("{error}; --key-file names the file that holds the key"),
        None => error.to_owned(),
    };
    let is_ours = status == StatusCode::BAD_REQUEST || status == StatusCode::NOT_FOUND;
    Stop { code: if is_ours { USAGE } else { 1 }, message: super::text::inert(&message) }
}
