//! The way to one provider: its address, its key, and one request at a time.

use std::path::Path;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use iris_core::judge::{
    Answer, ENDPOINTS, Endpoint, Kind, Provider, Request, asked_wait_ms, body, message_of, read_answer,
};
use secrecy::{ExposeSecret, SecretString};

use super::{Config, Scripted};

/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Bytes of a fault's body that are read.
const FAULT_BYTES_MAX: usize = 16 * 1024;
/// A connection must stand within this time.
const CONNECT_MAX: Duration = Duration::from_secs(10);
const USER_AGENT: &str = concat!("iris-sidecar/", env!("CARGO_PKG_VERSION"));
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Where providers say when to come back, the standard one first.
const WAITS: [&str; 2] = ["retry-after", "anthropic-ratelimit-requests-reset"];

/// What came of one request.
pub(super) enum Outcome {
    /// An answer of the provider.
    Answered(Answer),
    /// Status 200 with something that is none.
    Unread,
    /// Refused with a status, or never sent.
    Refused { kind: Kind, words: String, wait_ms: Option<u64> },
    /// It was sent, and no whole answer came.
    Broken(Kind),
}

/// The way to one provider.
pub(super) enum Route {
    Http(Box<Http>),
    Scripted(Scripted),
}

pub(super) struct Http {
    client: reqwest::Client,
    url: reqwest::Url,
    headers: HeaderMap,
    is_own: bool,
}

impl Route {
    /// The way to a provider as configured; none when neither a key nor an endpoint of one's own is.
    pub fn of(provider: Provider, config: &Config) -> Result<Option<Self>, String> {
        let (name, key, file, base) = match provider {
            Provider::Anthropic => (
                "judge.anthropic_api_key_file",
                &config.anthropic_api_key,
                &config.anthropic_api_key_file,
                &config.anthropic_base_url,
            ),
            Provider::OpenAi => (
                "judge.openai_api_key_file",
                &config.openai_api_key,
                &config.openai_api_key_file,
                &config.openai_base_url,
            ),
        };
        let key = match (key, file) {
            // A variable that is set to nothing is not set.
            (Some(key), None) if key.expose_secret().trim().is_empty() => None,
            (Some(key), _) => Some(key.clone()),
            (None, Some(file)) => Some(crate::door::from_file(name, file)?),
            (None, None) => None,
        };
        if key.is_none() && base.is_none() {
            return Ok(None);
        }
        let Some(endpoint) = ENDPOINTS.iter().find(|endpoint| endpoint.provider == provider) else { return Ok(None) };
        let own_header = config.openai_key_header.as_deref().filter(|_| provider == Provider::OpenAi && base.is_some());
        let trusted = config.ca_file.as_deref().filter(|_| base.is_some()).map(certificates).transpose()?;
        let http = Http::new(endpoint, key.as_ref(), base.as_deref(), own_header, trusted.unwrap_or_default())?;
        Ok(Some(Self::Http(Box::new(http))))
    }

    /// Whether it leads to an endpoint of the operator's own.
    pub fn is_own(&self) -> bool {
        matches!(self, Self::Http(http) if http.is_own)
    }

    /// One request within a time.
    pub async fn send(&self, request: &Request<'_>, timeout: Duration) -> Outcome {
        match self {
            Self::Scripted(script) => Outcome::Answered(script.answer()),
            // What takes too long may have been charged for.
            Self::Http(http) => match tokio::time::timeout(timeout, http.send(request)).await {
                Ok(outcome) => outcome,
                Err(_) => Outcome::Broken(Kind::Timeout),
            },
        }
    }
}

impl Http {
    fn new(
        endpoint: &Endpoint,
        key: Option<&SecretString>,
        base: Option<&str>,
        own_header: Option<&str>,
        trusted: Vec<reqwest::Certificate>,
    ) -> Result<Self, String> {
        // A second installation is refused and harmless: the first one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let base = base.unwrap_or(endpoint.base).trim_end_matches('/');
        let mut url = reqwest::Url::parse(base).map_err(|error| error.to_string())?;
        // People write the host alone, or with the path of its version.
        let path = if url.path() == "/" { "/v1" } else { url.path() };
        let path = format!("{}{}", path.trim_end_matches('/'), endpoint.path);
        url.set_path(&path);
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, JSON);
        headers.insert(header::ACCEPT, JSON);
        for (name, value) in endpoint.headers {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        if let Some(key) = key {
            let (name, prefix) = own_header.map_or((endpoint.key_header, endpoint.key_prefix), |name| (name, ""));
            let name = HeaderName::try_from(name).map_err(|_| "judge.openai_key_header is no header".to_owned())?;
            let value = HeaderValue::try_from(format!("{prefix}{}", key.expose_secret().trim()));
            let mut value = value
                .map_err(|_| format!("the key for {} is none that a header can carry", endpoint.provider.as_str()))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let mut client = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .connect_timeout(CONNECT_MAX)
            .tcp_nodelay(true)
            // A redirect would carry the key and the texts to a host nobody chose.
            .redirect(reqwest::redirect::Policy::none());
        if !trusted.is_empty() {
            client = client.tls_certs_merge(trusted);
        }
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        if host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback()) {
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| error.without_url().to_string())?;
        Ok(Self { client, is_own: !base.eq_ignore_ascii_case(endpoint.base), url, headers })
    }

    async fn send(&self, request: &Request<'_>) -> Outcome {
        let sending = self.client.post(self.url.clone()).headers(self.headers.clone()).body(body(request)).send();
        let response = match sending.await {
            Ok(response) => response,
            Err(error) if error.is_connect() => {
                let words = "no connection could be made".to_owned();
                return Outcome::Refused { kind: Kind::ServerError, words, wait_ms: None };
            }
            Err(_) => return Outcome::Broken(Kind::ServerError),
        };
        if let Some(kind) = Kind::of_status(response.status().as_u16()) {
            let wait_ms = wait(response.headers());
            let told = read(response, FAULT_BYTES_MAX).await.map(|told| message_of(&told)).unwrap_or_default();
            return Outcome::Refused { kind, words: told, wait_ms };
        }
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("json");
        let is_json = kind.to_ascii_lowercase().contains("json");
        match read(response, ANSWER_BYTES_MAX).await {
            None => Outcome::Broken(Kind::ServerError),
            Some(answer) if is_json => {
                read_answer(request.provider, &answer).map_or(Outcome::Unread, Outcome::Answered)
            }
            Some(_) => Outcome::Unread,
        }
    }
}

/// Certificates to trust beside the system's.
fn certificates(file: &Path) -> Result<Vec<reqwest::Certificate>, String> {
    let told = |why: &dyn std::fmt::Display| format!("judge.ca_file: {}: {why}", file.display());
    let text = std::fs::read(file).map_err(|error| told(&error))?;
    let read = reqwest::Certificate::from_pem_bundle(&text).map_err(|error| told(&error))?;
    if read.is_empty() { Err(told(&"holds no certificate")) } else { Ok(read) }
}

fn wait(headers: &HeaderMap) -> Option<u64> {
    let now_ms = i64::try_from(crate::telemetry::now().as_unix_nanos() / 1_000_000).unwrap_or(i64::MAX);
    WAITS.iter().find_map(|name| asked_wait_ms(headers.get(*name)?.to_str().ok()?, now_ms))
}

/// A body to its end, or to the limit; none when it broke off.
async fn read(mut response: reqwest::Response, bytes_max: usize) -> Option<Vec<u8>> {
    let mut taken = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        taken.extend_from_slice(&chunk[..chunk.len().min(bytes_max - taken.len())]);
        if taken.len() == bytes_max {
            break;
        }
    }
    Some(taken)
}
