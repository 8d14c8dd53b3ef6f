//! What a person may set, checked and turned into a [`Target`] before anything is opened.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};

use super::retry::Backoff;
use crate::door;

/// Where accepted telemetry is sent on to, and how. Without an endpoint nothing is forwarded.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The downstream collector, such as `http://otel-collector:4317`. For HTTP it is the base: `/v1/traces`,
    /// `/v1/logs` and `/v1/metrics` are appended to its path. Unset: nothing is forwarded.
    pub endpoint: Option<String>,
    /// How to speak to it: `grpc`, or `http`, which goes through the proxy that `HTTPS_PROXY` and its kin name.
    pub protocol: Protocol,
    /// How long one request may take, in milliseconds, from connecting to the last byte of the answer.
    pub timeout_ms: u64,
    /// How many requests of one signal may be under way at once, 1 to 64.
    pub concurrency: usize,
    /// `gzip`, `none`, or `auto`: none to an endpoint on loopback, gzip to any other.
    pub compression: Compression,
    /// Headers added to every request. Their values are secrets and are never shown.
    #[serde(serialize_with = "names_only")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub headers: BTreeMap<String, SecretString>,
    /// CAs that vouch for the downstream, PEM, instead of the system's. Read again when it changes.
    pub ca_file: Option<PathBuf>,
    /// A certificate that this sidecar shows the downstream, PEM. Read again when it changes.
    pub cert_file: Option<PathBuf>,
    /// Its private key, PEM. Read at the start.
    pub key_file: Option<PathBuf>,
    /// Also send the verdict of every trace, as log records `gen_ai.evaluation.result` on its ids.
    pub verdicts: bool,
    /// Also send traces that were written through the `log_trace` tool.
    pub tool_traces: bool,
    /// The wait before the first retry, in milliseconds; each further one is half as long again.
    pub retry_initial_ms: u64,
    /// The longest wait before a retry that the downstream did not ask for, in milliseconds.
    pub retry_max_ms: u64,
    /// Who chose the endpoint.
    #[serde(skip)]
    pub origin: Origin,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            endpoint: None,
            protocol: Protocol::Grpc,
            timeout_ms: 10_000,
            concurrency: 4,
            compression: Compression::Auto,
            headers: BTreeMap::new(),
            ca_file: None,
            cert_file: None,
            key_file: None,
            verdicts: true,
            tool_traces: false,
            retry_initial_ms: 5_000,
            retry_max_ms: 30_000,
            origin: Origin::Configured,
        }
    }
}

fn names_only<S: Serializer>(headers: &BTreeMap<String, SecretString>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(headers.len()))?;
    for name in headers.keys() {
        map.serialize_entry(name, "[set]")?;
    }
    map.end()
}

/// How to speak to the downstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// OTLP/gRPC. JSON bodies are transcoded to protobuf.
    Grpc,
    /// OTLP/HTTP. Protobuf and JSON bodies are sent as they came.
    Http,
}

/// Whether request bodies are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// None to loopback, gzip to any other endpoint.
    Auto,
    /// Never.
    None,
    /// Always gzip.
    Gzip,
}

/// Who chose the endpoint: decides what happens when it is one of our own listeners.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Origin {
    /// Written out for us: a loop is an error at start.
    #[default]
    Configured,
    /// Taken from `OTEL_EXPORTER_OTLP_*`, which a pod often sets for the agent and means us by it: a loop is
    /// ignored with one log line.
    Inherited,
}

/// Why the forwarder cannot be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The endpoint is one of our own listeners.
    #[error("forward.endpoint is our own listener {listener}: everything would be sent round for ever")]
    Loop {
        /// The listener it reaches.
        listener: SocketAddr,
    },
    /// Settings that cannot work, all of them.
    #[error("{}", .0.join("; "))]
    Invalid(Vec<String>),
    /// The TLS or HTTP client could not be made.
    #[error("the forwarding client cannot be set up: {0}")]
    Client(String),
}

/// A checked [`Config`]: where to send, and how.
#[derive(Debug, Clone)]
pub struct Target {
    pub(super) endpoint: Uri,
    pub(super) protocol: Protocol,
    pub(super) timeout: Duration,
    pub(super) concurrency: usize,
    pub(super) gzip: bool,
    pub(super) headers: HeaderMap,
    pub(super) backoff: Backoff,
    pub(super) tool_traces: bool,
    pub(super) trust: Trust,
    pub(super) trust_files: TrustFiles,
}

/// Where that stands; it may be rotated.
#[derive(Debug, Clone, Default)]
pub(super) struct TrustFiles {
    ca: Option<PathBuf>,
    identity: Option<(PathBuf, PathBuf)>,
}

/// Whom to trust, and as whom to appear, over TLS.
#[derive(Debug, Clone, Default)]
pub(super) struct Trust {
    /// CAs in PEM, instead of the system's.
    pub ca: Option<Vec<u8>>,
    /// Certificate and key in PEM.
    pub identity: Option<Identity>,
}

/// Certificate and key in PEM. It does not print.
#[derive(Clone)]
pub(super) struct Identity {
    pub cert: Vec<u8>,
    pub key: Vec<u8>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[set]")
    }
}

const CONCURRENCY_MAX: usize = 64;
const WAIT_MAX_MS: u64 = 600_000;
/// What the protocols own, and a setting must not replace.
const RESERVED: [&str; 8] = [
    "content-type",
    "content-encoding",
    "content-length",
    "transfer-encoding",
    "host",
    "te",
    "connection",
    "user-agent",
];

impl Target {
    /// Checks `config`. `None`: nothing is to be forwarded, because no endpoint is set or because an inherited
    /// one is one of `listeners`, our own. Resolves the endpoint's name once, blocking, and asks for nothing else
    /// of the network. To be called before the journal is opened, which keeps records for a forwarder only when
    /// there is one.
    pub fn new(config: &Config, origin: Origin, listeners: &[SocketAddr]) -> Result<Option<Self>, Error> {
        let Some(text) = config.endpoint.as_deref().filter(|text| !text.trim().is_empty()) else { return Ok(None) };
        let mut problems = config.problems();
        let endpoint = match parse_endpoint(text, config.protocol) {
            Ok(endpoint) if problems.is_empty() => endpoint,
            Ok(_) => return Err(Error::Invalid(problems)),
            Err(problem) => {
                problems.push(problem);
                return Err(Error::Invalid(problems));
            }
        };
        if let Some(listener) = own_listener(&endpoint, listeners) {
            if origin == Origin::Configured {
                return Err(Error::Loop { listener });
            }
            tracing::warn!(%listener, "OTEL_EXPORTER_OTLP_ENDPOINT is our own listener and is ignored: nothing is forwarded");
            return Ok(None);
        }
        let loopback = is_loopback(&endpoint);
        let headers = config.header_map().map_err(Error::Invalid)?;
        Ok(Some(Self {
            protocol: config.protocol,
            timeout: Duration::from_millis(config.timeout_ms),
            concurrency: config.concurrency,
            gzip: match config.compression {
                Compression::Auto => !loopback,
                Compression::None => false,
                Compression::Gzip => true,
            },
            headers,
            backoff: Backoff {
                initial: Duration::from_millis(config.retry_initial_ms),
                max: Duration::from_millis(config.retry_max_ms),
            },
            tool_traces: config.tool_traces,
            trust: config.trust_files().read().map_err(|problem| Error::Invalid(vec![problem]))?,
            trust_files: config.trust_files(),
            endpoint,
        }))
    }

    /// Whether the endpoint is on this machine's loopback.
    pub(super) fn is_loopback(&self) -> bool {
        is_loopback(&self.endpoint)
    }
}

impl TrustFiles {
    /// All of them.
    pub(super) fn all(&self) -> Vec<PathBuf> {
        let identity = self.identity.iter().flat_map(|(cert, key)| [cert, key]);
        self.ca.iter().chain(identity).cloned().collect()
    }

    /// Reads them.
    pub(super) fn read(&self) -> Result<Trust, String> {
        let ca = self.ca.as_ref().map(|file| {
            door::certificates("forward.ca_file", file)?;
            door::read_pem("forward.ca_file", file)
        });
        let identity = self.identity.as_ref().map(|(cert, key)| {
            door::certificates("forward.cert_file", cert)?;
            let cert = door::read_pem("forward.cert_file", cert)?;
            Ok::<_, String>(Identity { cert, key: door::read_pem("forward.key_file", key)? })
        });
        Ok(Trust { ca: ca.transpose()?, identity: identity.transpose()? })
    }
}

impl Config {
    /// The files for TLS.
    fn trust_files(&self) -> TrustFiles {
        TrustFiles { ca: self.ca_file.clone(), identity: self.cert_file.clone().zip(self.key_file.clone()) }
    }

    /// Everything wrong with it but its endpoint, each a sentence that names the key and what is valid.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut within = |key: &str, value: u64, low: u64, high: u64, unit: &str| {
            if !(low..=high).contains(&value) {
                problems.push(format!("forward.{key} is {value}{unit}: valid is {low} to {high}{unit}"));
            }
        };
        within("timeout_ms", self.timeout_ms, 1, WAIT_MAX_MS, " ms");
        within("retry_initial_ms", self.retry_initial_ms, 1, WAIT_MAX_MS, " ms");
        within("retry_max_ms", self.retry_max_ms, self.retry_initial_ms.max(1), WAIT_MAX_MS, " ms");
        within("concurrency", self.concurrency as u64, 1, CONCURRENCY_MAX as u64, "");
        if self.cert_file.is_some() != self.key_file.is_some() {
            problems.push("forward.cert_file and forward.key_file: set both".to_owned());
        }
        if let Err(mut headers) = self.header_map() {
            problems.append(&mut headers);
        }
        if let Some(Err(problem)) = self.endpoint.as_deref().map(|text| parse_endpoint(text, self.protocol)) {
            problems.push(problem);
        }
        problems
    }

    fn header_map(&self) -> Result<HeaderMap, Vec<String>> {
        let mut map = HeaderMap::new();
        let mut problems = Vec::new();
        for (name, value) in &self.headers {
            let Ok(name) = name.parse::<HeaderName>() else {
                problems.push(format!("forward.headers has {name:?}, which is not a header name"));
                continue;
            };
            if RESERVED.contains(&name.as_str()) || name.as_str().starts_with("grpc-") {
                problems.push(format!("forward.headers has {name}, which belongs to the protocol"));
                continue;
            }
            match HeaderValue::from_str(value.expose_secret()) {
                Ok(mut value) => {
                    value.set_sensitive(true);
                    map.insert(name, value);
                }
                Err(_) => problems.push(format!("forward.headers.{name} has a value with control characters")),
            }
        }
        if problems.is_empty() { Ok(map) } else { Err(problems) }
    }
}

/// A base URL with scheme and host, and for gRPC without a path. Its text is not repeated: it may hold a secret.
fn parse_endpoint(text: &str, protocol: Protocol) -> Result<Uri, String> {
    const VALID: &str = "valid is http://host:port or https://host:port";
    let uri: Uri = text.trim().parse().map_err(|_| format!("forward.endpoint is not a URL: {VALID}"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(format!("forward.endpoint has no scheme we know: {VALID}"));
    }
    if uri.host().is_none_or(str::is_empty) {
        return Err(format!("forward.endpoint names no host: {VALID}"));
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("forward.endpoint holds a user name: credentials belong in forward.headers".to_owned());
    }
    if uri.query().is_some() {
        return Err(format!("forward.endpoint has a query: {VALID}"));
    }
    let path = uri.path().trim_end_matches('/');
    if protocol == Protocol::Grpc && !path.is_empty() {
        return Err(
            "forward.endpoint has a path, which OTLP/gRPC has not: leave it out or set forward.protocol to http"
                .to_owned(),
        );
    }
    if ["/v1/traces", "/v1/logs", "/v1/metrics"].iter().any(|signal| path.ends_with(signal)) {
        return Err("forward.endpoint names one signal: leave out /v1/..., it is appended for each".to_owned());
    }
    Ok(uri)
}

fn host_of(endpoint: &Uri) -> &str {
    endpoint.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
}

fn port_of(endpoint: &Uri) -> u16 {
    endpoint.port_u16().unwrap_or(if endpoint.scheme_str() == Some("https") { 443 } else { 80 })
}

fn is_loopback(endpoint: &Uri) -> bool {
    let host = host_of(endpoint);
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// The listener of ours that the endpoint reaches. A name that resolves to nothing reaches none; an address that
/// is translated on its way back to us (a Kubernetes Service) cannot be told from any other.
fn own_listener(endpoint: &Uri, listeners: &[SocketAddr]) -> Option<SocketAddr> {
    let port = port_of(endpoint);
    let mut listeners = listeners.iter().filter(|listener| listener.port() == port).peekable();
    listeners.peek()?;
    let addresses: Vec<IpAddr> =
        (host_of(endpoint), port).to_socket_addrs().ok()?.map(|a| a.ip().to_canonical()).collect();
    listeners
        .find(|listener| {
            let own = listener.ip().to_canonical();
            addresses.iter().any(|ip| *ip == own || (own.is_unspecified() || ip.is_unspecified()) && is_local(*ip))
        })
        .copied()
}

/// Whether the address is one of this machine's: only those can be bound.
fn is_local(ip: IpAddr) -> bool {
    ip.is_loopback() || ip.is_unspecified() || UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(endpoint: &str) -> Config {
        Config { endpoint: Some(endpoint.to_owned()), ..Config::default() }
    }

    fn listeners() -> Vec<SocketAddr> {
        vec!["127.0.0.1:4317".parse().unwrap(), "0.0.0.0:4318".parse().unwrap()]
    }

    #[test]
    fn nothing_is_forwarded_without_an_endpoint() {
        assert!(Target::new(&Config::default(), Origin::Configured, &listeners()).unwrap().is_none());
        assert!(Target::new(&config(" "), Origin::Configured, &listeners()).unwrap().is_none());
    }

    #[test]
    fn our_own_listener_is_refused_when_configured_and_ignored_when_inherited() {
        for own in [
            "http://127.0.0.1:4317",
            "http://localhost:4317",
            "http://0.0.0.0:4317",
            "http://127.0.0.9:4318",
            "http://[::ffff:127.0.0.1]:4317",
        ] {
            let refused = Target::new(&config(own), Origin::Configured, &listeners());
            assert!(matches!(refused, Err(Error::Loop { .. })), "{own}: {refused:?}");
            assert!(Target::new(&config(own), Origin::Inherited, &listeners()).unwrap().is_none(), "{own}");
        }
        for other in ["http://127.0.0.1:4319", "http://192.0.2.1:4317", "http://192.0.2.1:4318"] {
            assert!(Target::new(&config(other), Origin::Configured, &listeners()).unwrap().is_some(), "{other}");
        }
    }

    #[test]
    fn an_endpoint_that_cannot_work_is_refused_without_repeating_it() {
        for bad in [
            "collector:4317",
            "localhost:4317",
            "ftp://secret-host",
            "http://secret:word@host",
            "http://host/secret",
            "http://",
            "http://host?secret=1",
        ] {
            let error = Target::new(&config(bad), Origin::Configured, &[]).unwrap_err().to_string();
            assert!(error.contains("forward.endpoint") && !error.contains("secret"), "{bad}: {error}");
        }
        let signal = Config { protocol: Protocol::Http, ..config("http://host:4318/v1/traces") };
        assert!(Target::new(&signal, Origin::Configured, &[]).is_err());
        let base = Config { protocol: Protocol::Http, ..config("http://host:4318/otlp/") };
        assert!(Target::new(&base, Origin::Configured, &[]).unwrap().is_some());
    }

    #[test]
    fn compression_is_left_out_to_loopback_only() {
        let gzip = |endpoint: &str, compression| {
            let config = Config { compression, ..config(endpoint) };
            Target::new(&config, Origin::Configured, &[]).unwrap().unwrap().gzip
        };
        assert!(!gzip("http://localhost:1", Compression::Auto));
        assert!(!gzip("http://[::1]:1", Compression::Auto));
        assert!(gzip("http://192.0.2.1:1", Compression::Auto));
        assert!(gzip("http://localhost:1", Compression::Gzip));
        assert!(!gzip("http://192.0.2.1:1", Compression::None));
    }

    #[test]
    fn every_problem_is_named_at_once_and_no_secret_is_shown() {
        let text = r#"{"timeout_ms": 0, "concurrency": 65, "headers": {"te": "x", "a b": "y", "ok": "hunter\n2"}}"#;
        let config: Config = serde_json::from_str(text).unwrap();
        let problems = config.problems().join("\n");
        for named in ["timeout_ms", "concurrency", "te,", "\"a b\"", "headers.ok"] {
            assert!(problems.contains(named), "{named} in {problems}");
        }
        assert!(!problems.contains("hunter"));
        let shown = serde_json::to_string(&config).unwrap() + &format!("{config:?}");
        assert!(shown.contains("[set]") && !shown.contains("hunter"), "{shown}");
        assert!(serde_json::from_str::<Config>(r#"{"endpiont": "x"}"#).is_err());
    }
}
