//! What the environment already says of a collector: `OTEL_EXPORTER_OTLP_*`, read when no endpoint is configured.
//!
//! Source: <https://opentelemetry.io/docs/specs/otel/protocol/exporter/>. The forms for one signal are not read: one
//! endpoint takes all three.

use percent_encoding::percent_decode_str;

use super::config::{Compression, Config, Origin, Protocol};

const PREFIX: &str = "OTEL_EXPORTER_OTLP_";

impl Config {
    /// Takes over what `env` says, unless an endpoint is configured. Values that cannot work are left out whole, with
    /// a warning to show: they were written for someone else, and must not keep us from starting.
    #[must_use]
    pub fn inherit(self, env: impl Fn(&str) -> Option<String>) -> (Self, Option<String>) {
        let read = |name: &str| env(&format!("{PREFIX}{name}")).filter(|value| !value.trim().is_empty());
        if self.endpoint.as_deref().is_some_and(|endpoint| !endpoint.trim().is_empty()) {
            return (self, None);
        }
        let Some(endpoint) = read("ENDPOINT") else { return (self, None) };
        let inherited = self.clone().with(endpoint, read);
        let problems = match &inherited {
            Ok(config) => config.problems(),
            Err(problem) => vec![(*problem).to_owned()],
        };
        match inherited {
            Ok(config) if problems.is_empty() => (Self { origin: Origin::Inherited, ..config }, None),
            _ => {
                let problems = problems.join("; ");
                let warning =
                    format!("{PREFIX}* is ignored and nothing is forwarded, set forward.endpoint: {problems}");
                (self, Some(warning))
            }
        }
    }

    fn with(mut self, endpoint: String, read: impl Fn(&str) -> Option<String>) -> Result<Self, &'static str> {
        self.protocol = match read("PROTOCOL").as_deref().map(str::trim) {
            Some("grpc") => Protocol::Grpc,
            // Bodies are sent in the encoding they came in.
            Some("http/protobuf" | "http/json") => Protocol::Http,
            Some(_) => return Err("the protocol is none of grpc, http/protobuf, http/json"),
            // SDKs disagree about the default, and agree about the ports.
            None if endpoint.trim_end_matches('/').ends_with(":4317") => Protocol::Grpc,
            None if endpoint.contains(":4318") => Protocol::Http,
            None => self.protocol,
        };
        match read("COMPRESSION").as_deref().map(str::trim) {
            Some("gzip") => self.compression = Compression::Gzip,
            Some("none") => self.compression = Compression::None,
            Some(_) => return Err("the compression is neither gzip nor none"),
            None => {}
        }
        let file = |name: &str| read(name).map(|path| std::path::PathBuf::from(path.trim()));
        self.ca_file = file("CERTIFICATE").or(self.ca_file);
        self.cert_file = file("CLIENT_CERTIFICATE").or(self.cert_file);
        self.key_file = file("CLIENT_KEY").or(self.key_file);
        if let Some(timeout) = read("TIMEOUT") {
            self.timeout_ms = timeout.trim().parse().map_err(|_| "the timeout is not a number of milliseconds")?;
        }
        for pair in read("HEADERS").iter().flat_map(|headers| headers.split(',')).filter(|pair| !pair.trim().is_empty())
        {
            let (name, value) = pair.split_once('=').ok_or("the headers are not name=value,name=value")?;
            let value = percent_decode_str(value.trim()).decode_utf8().map_err(|_| "a header is not UTF-8")?;
            self.headers.insert(name.trim().to_owned(), value.into_owned().into());
        }
        self.endpoint = Some(endpoint);
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    fn inherit(config: Config, env: &[(&str, &str)]) -> (Config, Origin) {
        let read = |name: &str| {
            let name = name.strip_prefix(PREFIX).unwrap();
            env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let (config, _) = config.inherit(read);
        let origin = config.origin;
        (config, origin)
    }

    #[test]
    fn everything_is_taken_over() {
        let env = [
            ("ENDPOINT", "https://collector:4318/otlp"),
            ("HEADERS", "authorization=Bearer%20a%3Db, x-scope = 7 ,"),
            ("TIMEOUT", "2500"),
            ("COMPRESSION", "gzip"),
        ];
        let (config, origin) = inherit(Config::default(), &env);
        assert_eq!((origin, config.protocol, config.timeout_ms), (Origin::Inherited, Protocol::Http, 2500));
        assert_eq!(config.compression, Compression::Gzip);
        assert_eq!(config.endpoint.as_deref(), Some("https://collector:4318/otlp"));
        assert_eq!(config.headers["authorization"].expose_secret(), "Bearer a=b");
        assert_eq!(config.headers["x-scope"].expose_secret(), "7");
    }

    #[test]
    fn the_protocol_is_what_is_said_or_what_the_port_says() {
        let protocol = |endpoint, protocol: &[(&'static str, &'static str)]| {
            let mut env = vec![("ENDPOINT", endpoint)];
            env.extend(protocol);
            inherit(Config::default(), &env).0.protocol
        };
        assert_eq!(protocol("http://c:4317/", &[]), Protocol::Grpc);
        assert_eq!(protocol("http://c:4318", &[]), Protocol::Http);
        assert_eq!(protocol("http://c:4317", &[("PROTOCOL", "http/protobuf")]), Protocol::Http);
        assert_eq!(protocol("http://c:4318", &[("PROTOCOL", "grpc")]), Protocol::Grpc);
        assert_eq!(protocol("http://c:9000", &[]), Config::default().protocol);
    }

    #[test]
    fn what_is_configured_wins_and_what_cannot_work_is_left_out() {
        let own = Config { endpoint: Some("http://own:4317".to_owned()), ..Config::default() };
        let (config, origin) = inherit(own, &[("ENDPOINT", "http://other:4317"), ("TIMEOUT", "1")]);
        assert_eq!((config.endpoint.as_deref(), config.timeout_ms), (Some("http://own:4317"), 10_000));
        assert_eq!(origin, Origin::Configured);
        for bad in [
            &[("ENDPOINT", "collector:4317")][..],
            &[("ENDPOINT", "http://c:1"), ("PROTOCOL", "udp")],
            &[("ENDPOINT", "http://c:1"), ("TIMEOUT", "soon")],
            &[("ENDPOINT", "http://c:1"), ("HEADERS", "secret")],
            &[("ENDPOINT", "http://c:1"), ("COMPRESSION", "zstd")],
            &[("ENDPOINT", " ")],
            &[("TIMEOUT", "5")],
        ] {
            let (config, origin) = inherit(Config::default(), bad);
            assert_eq!((config.endpoint, config.timeout_ms, origin), (None, 10_000, Origin::Configured), "{bad:?}");
            assert!(config.headers.is_empty());
        }
    }
}
