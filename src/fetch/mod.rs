//! Reads the source of a citation from the public web, for which a text chose the address.
//!
//! The only room that connects to an address which a caller, an agent or a page chose. Every hop is judged before it is
//! made: the address, then every address its name resolves to; the connection goes to one of those and to no other, so
//! a name that changes its answer changes nothing. At most three redirects, each judged anew. One deadline covers
//! everything, and the limit on bytes counts what is decoded. Sends no cookie, no credential and no referrer.

mod body;
mod config;
#[cfg(test)]
pub(crate) mod fake;
mod own;
mod resolve;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use iris_core::citation::{Cidr, Guard, Refused, Target, is_allowed, is_text, plain};
use iris_core::text::head;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Response, StatusCode};

use body::{Coding, Intake};
pub use config::{Config, Domains, Fetch};
pub use resolve::{Place, Resolve, Resolving, System};

/// Redirects that are followed.
const REDIRECTS_MAX: usize = 3;
/// A connection must stand within this time.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Bytes of a page's words that are kept: more than the code points that a judge reads can take.
const TEXT_BYTES_MAX: usize = 64 * 1024;
/// Code points of a media type that are told.
const CONTENT_TYPE_CHARS_MAX: usize = 100;
const USER_AGENT: &str = concat!("iris-sidecar/", env!("CARGO_PKG_VERSION"), " (citation check)");

/// What one source may take.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The whole time, redirects and body included.
    pub timeout: Duration,
    /// Decoded bytes that are read.
    pub bytes_max: u64,
    /// The hosts that may be fetched, with what is below them; empty for every host.
    pub hosts: Vec<String>,
}

/// A source that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Where, after redirects.
    pub url: String,
    /// The status.
    pub status: u16,
    /// The media type as sent.
    pub content_type: String,
    /// Decoded bytes read.
    pub bytes_fetched: u64,
    /// There was more.
    pub truncated: bool,
    /// The beginning, as much as a judge reads.
    pub text: String,
}

/// Why a source could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// For programs.
    pub kind: &'static str,
    /// For readers; never what the other side wrote.
    pub message: String,
}

impl Failure {
    /// Of a kind, with a sentence.
    pub fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self::new(refused.kind(), refused.to_string())
    }
}

/// Reads sources.
pub struct Fetcher {
    denied: Vec<Cidr>,
    allowed: Vec<Cidr>,
    resolve: Box<dyn Resolve>,
    outcomes: Mutex<BTreeMap<&'static str, u64>>,
}

impl Fetcher {
    /// Reads what the guard and the operator's ranges permit, by the names that `resolve` knows.
    pub fn new(config: &Config, resolve: impl Resolve) -> Self {
        // A second installation is refused and harmless: the first one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self {
            denied: config.deny_cidrs.clone(),
            allowed: config.allow_cidrs.clone(),
            resolve: Box::new(resolve),
            outcomes: Mutex::default(),
        }
    }

    /// Reads one source.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn fetch(&self, address: &str, limits: &Limits) -> Result<Page, Failure> {
        let reading = self.follow(address, limits);
        let read = match tokio::time::timeout(limits.timeout, reading).await {
            Ok(read) => read,
            Err(_) => Err(Failure::new("timeout", format!("not read within {} ms", limits.timeout.as_millis()))),
        };
        let kind = read.as_ref().map_or_else(|failure| failure.kind, |_| "ok");
        *self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default() += 1;
        read
    }

    /// How often sources were read, and how often they were not, by why.
    pub fn outcomes(&self) -> Vec<(&'static str, u64)> {
        let outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.iter().map(|(kind, count)| (*kind, *count)).collect()
    }

    async fn follow(&self, address: &str, limits: &Limits) -> Result<Page, Failure> {
        // Interfaces come and go, so what this machine itself is called is asked each time.
        let guard = Guard::new(own::addresses(), self.denied.clone(), self.allowed.clone());
        let mut target = Target::parse(address, &guard)?;
        for _ in 0..=REDIRECTS_MAX {
            let response = self.get(&target, &guard, limits).await?;
            let location = response.status().is_redirection().then(|| location(response.headers())).flatten();
            match location {
                Some(location) => target = target.redirected(&location, &guard)?,
                None => return read(&target, response, limits).await,
            }
        }
        Err(Failure::new("redirect_loop", format!("more than {REDIRECTS_MAX} redirects")))
    }

    /// One request to a target whose host is permitted and whose addresses were judged.
    async fn get(&self, target: &Target, guard: &Guard, limits: &Limits) -> Result<Response, Failure> {
        if !is_allowed(target.name().unwrap_or(target.host()), &limits.hosts) {
            return Err(Refused::NotAllowed.into());
        }
        let mut client = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .connect_timeout(CONNECT_MAX.min(limits.timeout))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .pool_max_idle_per_host(0)
            .http1_only()
            // A proxy would look the name up itself, and connect to what it likes.
            .no_proxy();
        if let Some(name) = target.name() {
            let places = self.resolve.resolve(name.to_owned(), target.port()).await;
            let places = places.map_err(|_| Failure::new("unknown", "the host's name could not be looked up"))?;
            let judged: Vec<_> = places.iter().map(|place| place.address).collect();
            if judged.is_empty() {
                return Err(Failure::new("unknown", "the host's name stands for no address"));
            }
            if let Some(why) = guard.refuses_any(&judged) {
                return Err(Refused::Forbidden(why).into());
            }
            let dialled: Vec<SocketAddr> = places.iter().map(|place| place.dial).collect();
            client = client.resolve_to_addrs(target.host(), &dialled);
        }
        let client = client.build().map_err(|_| Failure::new("unknown", "no client could be made"))?;
        let request = client
            .get(target.as_str())
            .header(ACCEPT, "text/*, application/json, application/xml, application/xhtml+xml;q=0.9, */*;q=0.1")
            .header(ACCEPT_ENCODING, "gzip, identity");
        request.send().await.map_err(|error| match error.is_timeout() {
            true => Failure::new("timeout", "no connection in time"),
            false if error.is_connect() => Failure::new("unknown", "no connection could be made"),
            false => Failure::new("unknown", "the answer broke off"),
        })
    }
}

fn location(headers: &HeaderMap) -> Option<String> {
    headers.get(LOCATION)?.to_str().ok().map(str::to_owned)
}

/// Reads what was answered, when it is text and not too large.
async fn read(target: &Target, mut response: Response, limits: &Limits) -> Result<Page, Failure> {
    let status = response.status();
    if status != StatusCode::OK && status != StatusCode::NON_AUTHORITATIVE_INFORMATION {
        return Err(Failure::new("bad_status", format!("status {}", status.as_u16())));
    }
    let stated = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let content_type: String = stated(CONTENT_TYPE).chars().take(CONTENT_TYPE_CHARS_MAX).collect();
    if !is_text(&content_type) {
        return Err(Failure::new("not_text", "the source is no text"));
    }
    let coding = Coding::of(response.headers().get_all(CONTENT_ENCODING).iter())
        .ok_or_else(|| Failure::new("not_text", "the source is coded in a way that is not read"))?;
    if stated(CONTENT_LENGTH).parse::<u64>().is_ok_and(|length| length > limits.bytes_max) {
        return Err(Failure::new("too_large", format!("more than {} bytes", limits.bytes_max)));
    }
    let mut intake = Intake::new(coding, limits.bytes_max);
    loop {
        let chunk = response.chunk().await.map_err(|_| Failure::new("unknown", "the answer broke off"))?;
        let Some(chunk) = chunk else { break };
        let goes_on = intake.push(&chunk).map_err(|_| Failure::new("not_text", "the source cannot be decoded"))?;
        if !goes_on {
            break;
        }
    }
    let taken = intake.finish().map_err(|_| Failure::new("not_text", "the source cannot be decoded"))?;
    let text = plain(&taken.text, &content_type);
    Ok(Page {
        url: target.as_str().to_owned(),
        status: status.as_u16(),
        content_type,
        bytes_fetched: taken.bytes,
        truncated: taken.is_cut,
        text: head(&text, TEXT_BYTES_MAX).to_owned(),
    })
}
