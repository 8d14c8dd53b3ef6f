//! What a user may set at the OTLP doors.

use std::path::PathBuf;

use http::uri::Authority;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use crate::door::{Listen, TlsConfig};

/// OTLP recommends 64 MiB: <https://opentelemetry.io/docs/specs/otlp/#request-size-limits>.
const BODY_BYTES_LIMIT: u64 = 64 * 1024 * 1024;
const BODY_BYTES_LEAST: u64 = 64 * 1024;

/// The part of the memory limit that one body may have.
const BODY_SHARE: u64 = 16;

const CONNECTIONS_LIMIT: u32 = 65_536;

/// The OTLP doors.
#[derive(Debug, Clone, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// OTLP/gRPC.
    pub grpc: GrpcConfig,
    /// OTLP/HTTP.
    pub http: HttpConfig,
    /// The largest message, in bytes after decompression; at most 64 MiB. Unset: the smaller of 64 MiB and a
    /// sixteenth of the memory limit.
    pub body_bytes_max: Option<u64>,
    /// The bearer token that every OTLP request must carry. Unset: none is asked for.
    #[serde(serialize_with = "crate::door::hidden")]
    #[schemars(with = "Option<String>")]
    pub token: Option<SecretString>,
    /// A file that holds the token, instead of `token`. Read again when it changes.
    pub token_file: Option<PathBuf>,
    /// TLS at both doors.
    pub tls: TlsConfig,
}

/// OTLP/gRPC.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GrpcConfig {
    /// The address to listen at, such as `127.0.0.1:4317`; port 0 picks a free one, `off` closes the door.
    pub listen: Listen,
    /// Lets an address beyond loopback be served without a token.
    pub allow_unauthenticated: bool,
    /// The most connections at a time; an idle one makes room for the next.
    pub connections_max: u32,
}

/// OTLP/HTTP.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// The address to listen at, such as `127.0.0.1:4318`; port 0 picks a free one, `off` closes the door.
    pub listen: Listen,
    /// Lets an address beyond loopback be served without a token.
    pub allow_unauthenticated: bool,
    /// The most connections at a time; an idle one makes room for the next.
    pub connections_max: u32,
    /// Names a client may call this door by besides the loopback names, such as `iris.agents.svc` (any port) or
    /// `iris.agents.svc:4318`.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may send here besides our own, such as `https://console.example.com`.
    pub allowed_origins: Vec<String>,
}

impl Default for GrpcConfig {
    fn default() -> Self {
        Self { listen: Listen::loopback(4317), allow_unauthenticated: false, connections_max: 64 }
    }
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: Listen::loopback(4318),
            allow_unauthenticated: false,
            connections_max: 64,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
        }
    }
}

impl Config {
    /// Everything that stops these settings from being used, one sentence each. `has_keys`: callers need one of `keys`.
    pub fn problems(&self, has_keys: bool) -> Vec<String> {
        let mut problems = Vec::new();
        let is_known = self.tls.asks_for_certificates();
        let has_token = has_keys || is_known || self.token.is_some() || self.token_file.is_some();
        problems.extend(self.tls.problems("receive.tls"));
        let doors = [
            ("receive.grpc", self.grpc.listen, self.grpc.allow_unauthenticated, self.grpc.connections_max),
            ("receive.http", self.http.listen, self.http.allow_unauthenticated, self.http.connections_max),
        ];
        for (name, listen, allow_unauthenticated, connections_max) in doors {
            if listen.beyond_loopback() && !has_token && !allow_unauthenticated {
                problems.push(format!(
                    "{name}.listen: {listen} can be reached from outside, so set receive.token_file, keys, receive.tls.client_ca_file or \
                     {name}.allow_unauthenticated: true"
                ));
            }
            if connections_max == 0 || connections_max > CONNECTIONS_LIMIT {
                problems.push(format!("{name}.connections_max: must be 1 to {CONNECTIONS_LIMIT}"));
            }
        }
        if let (Listen::At(grpc), Listen::At(http)) = (self.grpc.listen, self.http.listen)
            && grpc == http
            && grpc.port() != 0
        {
            problems.push(format!("receive.http.listen: {http} is receive.grpc.listen too"));
        }
        if self.body_bytes_max.is_some_and(|bytes| !(BODY_BYTES_LEAST..=BODY_BYTES_LIMIT).contains(&bytes)) {
            problems.push(format!("receive.body_bytes_max: must be {BODY_BYTES_LEAST} to {BODY_BYTES_LIMIT} bytes"));
        }
        if self.token.is_some() && self.token_file.is_some() {
            problems.push("receive.token: set either this or receive.token_file".to_owned());
        }
        if self.token.as_ref().is_some_and(|token| token.expose_secret().trim().is_empty()) {
            problems.push("receive.token: must not be empty".to_owned());
        }
        for (place, host) in self.http.allowed_hosts.iter().enumerate() {
            if !is_host(host) {
                problems.push(format!("receive.http.allowed_hosts[{place}]: must be a host name or name:port"));
            }
        }
        for (place, page) in self.http.allowed_origins.iter().enumerate() {
            if !is_origin(page) {
                problems.push(format!(
                    "receive.http.allowed_origins[{place}]: must be like https://name or https://name:port"
                ));
            }
        }
        problems
    }

    /// The largest message under this memory limit, in bytes after decompression.
    pub fn body_bytes(&self, memory_limit_bytes: u64) -> usize {
        let fitting = (memory_limit_bytes / BODY_SHARE).min(BODY_BYTES_LIMIT);
        usize::try_from(self.body_bytes_max.unwrap_or(fitting)).unwrap_or(usize::MAX)
    }
}

/// A host name or address with or without a port.
fn is_host(text: &str) -> bool {
    !text.contains('@') && text.parse::<Authority>().is_ok()
}

/// A scheme and a host with or without a port, as browsers send it.
fn is_origin(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, host)| !scheme.is_empty() && is_host(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(json: &str) -> Config {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_door_beyond_loopback_needs_a_token_or_the_word_of_its_owner() {
        let open = r#"{"grpc": {"listen": "0.0.0.0:4317"}, "http": {"listen": "[::]:4318"}}"#;
        let problems = config(open).problems(false);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("receive.grpc.listen: 0.0.0.0:4317 can be reached"), "{problems:?}");
        assert!(problems[1].contains("receive.http.allow_unauthenticated"), "{problems:?}");
        let one =
            r#"{"grpc": {"listen": "0.0.0.0:4317", "allow_unauthenticated": true}, "http": {"listen": "[::]:4318"}}"#;
        assert_eq!(config(one).problems(false).len(), 1, "said for one door only");
        let mut with_token = config(open);
        with_token.token = Some("t".into());
        assert_eq!(with_token.problems(false), Vec::<String>::new());
        for loopback in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1", "off"] {
            let mut config = Config::default();
            config.grpc.listen = loopback.parse().unwrap();
            assert_eq!(config.problems(false), Vec::<String>::new(), "{loopback}");
        }
    }

    #[test]
    fn every_problem_is_named_at_once() {
        let json = r#"{"body_bytes_max": 1, "token": " ", "token_file": "/x", "grpc": {"listen": "127.0.0.1:9", "connections_max": 0},
            "http": {"listen": "127.0.0.1:9", "allowed_hosts": ["a b"], "allowed_origins": ["null"]}}"#;
        assert_eq!(config(json).problems(false).len(), 7, "{:?}", config(json).problems(false));
    }

    #[test]
    fn listens_where_it_is_told() {
        assert_eq!(Config::default().grpc.listen.to_string(), "127.0.0.1:4317");
        assert_eq!(config(r#"{"http": {"listen": false}}"#).http.listen, Listen::Off);
        assert!(serde_json::from_str::<Config>(r#"{"http": {"listen": "4318"}}"#).is_err());
        assert!(serde_json::from_str::<Config>(r#"{"http": {"listne": "off"}}"#).is_err());
    }

    #[test]
    fn the_largest_body_follows_the_memory() {
        assert_eq!(Config::default().body_bytes(256 << 20), 16 << 20);
        assert_eq!(Config::default().body_bytes(16 << 30), 64 << 20);
        assert_eq!(config(r#"{"body_bytes_max": 1048576}"#).body_bytes(256 << 20), 1 << 20);
    }

    #[test]
    fn the_token_is_never_printed() {
        let config = config(r#"{"token": "tr0ub4dor"}"#);
        let printed = format!("{config:?}{}", serde_json::to_string(&config).unwrap());
        assert!(printed.contains("[set]") && !printed.contains("tr0ub4dor"), "{printed}");
    }
}
