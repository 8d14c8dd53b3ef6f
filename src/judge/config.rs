//! `judge.*`: the providers' keys and endpoints, and what judging may cost.

use std::path::PathBuf;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::Ceilings;

/// How models are asked to judge.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The key for Anthropic; without one its models cannot judge.
    #[serde(serialize_with = "crate::door::hidden")]
    #[schemars(with = "Option<String>")]
    pub anthropic_api_key: Option<SecretString>,
    /// A file that holds it, instead.
    pub anthropic_api_key_file: Option<PathBuf>,
    /// The key for OpenAI, or for the endpoint of `openai_base_url`.
    #[serde(serialize_with = "crate::door::hidden")]
    #[schemars(with = "Option<String>")]
    pub openai_api_key: Option<SecretString>,
    /// A file that holds it, instead.
    pub openai_api_key_file: Option<PathBuf>,
    /// A file of certificates (PEM) that are trusted beside the system's, for endpoints of one's own.
    pub ca_file: Option<PathBuf>,
    /// Another endpoint that speaks Anthropic's Messages, such as `https://gateway.example.org/v1`. The key goes there and
    /// nowhere else.
    pub anthropic_base_url: Option<String>,
    /// Another endpoint that speaks OpenAI's Chat Completions, such as `http://127.0.0.1:8000/v1`. It needs no key; its
    /// models need a price in `cost.prices`, which may be 0.
    pub openai_base_url: Option<String>,
    /// The header that carries the key to `openai_base_url`, alone, where that endpoint wants another than
    /// `authorization`.
    pub openai_key_header: Option<String>,
    /// The most that one call may cost at worst, in US dollars, when the call does not say.
    pub default_usd_call: f64,
    /// The most that one call may cost at worst, in US dollars, whatever the call says. Not set: no limit, and
    /// `default_usd_call` where the web door listens beyond loopback.
    pub ceiling_usd_call: Option<f64>,
    /// The most that all calls of one day (UTC) may cost, in US dollars, verified citations included. Not set: no limit,
    /// and 1 US dollar where the web door listens beyond loopback.
    pub ceiling_usd_day: Option<f64>,
    /// The same for each tenant.
    pub ceiling_usd_day_tenant: Option<f64>,
    /// The longest that one request may take, in milliseconds, whatever the call says.
    pub request_ms_max: u64,
    /// The texts of one call together, in bytes: what is longer is refused.
    pub text_bytes_max: u64,
    /// Requests to providers, and calls, at a time; further calls wait within their own time.
    pub concurrency_max: u16,
    /// Replace personal data and credentials by placeholders before a text leaves for a provider.
    pub redact: bool,
}

/// What one call may cost when nothing is said.
const DEFAULT_USD_CALL: f64 = 0.25;
/// What one day may cost where strangers may call and nothing is said.
const GUARDED_USD_DAY: f64 = 1.0;
/// The texts of one call together, in bytes: more than any model reads.
const TEXT_BYTES_MAX: u64 = 2 * 1024 * 1024;
/// The longest that one request may take, in milliseconds.
const REQUEST_MS_MAX: u64 = 300_000;

impl Default for Config {
    fn default() -> Self {
        Self {
            anthropic_api_key: None,
            anthropic_api_key_file: None,
            openai_api_key: None,
            openai_api_key_file: None,
            ca_file: None,
            anthropic_base_url: None,
            openai_base_url: None,
            openai_key_header: None,
            default_usd_call: DEFAULT_USD_CALL,
            ceiling_usd_call: None,
            ceiling_usd_day: None,
            ceiling_usd_day_tenant: None,
            request_ms_max: REQUEST_MS_MAX,
            text_bytes_max: TEXT_BYTES_MAX,
            concurrency_max: 8,
            redact: false,
        }
    }
}

impl Config {
    /// The same settings where strangers may call: a ceiling that is not set is set.
    #[must_use]
    pub fn guarded(mut self) -> Self {
        self.ceiling_usd_call = self.ceiling_usd_call.or(Some(self.default_usd_call));
        self.ceiling_usd_day = self.ceiling_usd_day.or(Some(GUARDED_USD_DAY));
        self
    }

    /// The limits of a day.
    pub fn ceilings(&self) -> Ceilings {
        Ceilings { day: self.ceiling_usd_day, day_tenant: self.ceiling_usd_day_tenant }
    }

    /// What could not work, a line a problem.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let amounts = [
            ("default_usd_call", Some(self.default_usd_call)),
            ("ceiling_usd_call", self.ceiling_usd_call),
            ("ceiling_usd_day", self.ceiling_usd_day),
            ("ceiling_usd_day_tenant", self.ceiling_usd_day_tenant),
        ];
        for (key, usd) in amounts {
            if usd.is_some_and(|usd| !usd.is_finite() || usd < 0.0) {
                problems.push(format!("judge.{key}: an amount of 0 or more is valid"));
            }
        }
        for (key, most) in [
            ("concurrency_max", u64::from(self.concurrency_max)),
            ("request_ms_max", self.request_ms_max),
            ("text_bytes_max", self.text_bytes_max),
        ] {
            if most == 0 {
                problems.push(format!("judge.{key}: 1 or more is valid"));
            }
        }
        for (key, set, file) in [
            ("anthropic_api_key", self.anthropic_api_key.is_some(), self.anthropic_api_key_file.is_some()),
            ("openai_api_key", self.openai_api_key.is_some(), self.openai_api_key_file.is_some()),
        ] {
            if set && file {
                problems.push(format!("judge: set either {key} or {key}_file"));
            }
        }
        let keyed = |set: bool, file: bool| set || file;
        for (key, url, has_key) in [
            (
                "anthropic_base_url",
                &self.anthropic_base_url,
                keyed(self.anthropic_api_key.is_some(), self.anthropic_api_key_file.is_some()),
            ),
            (
                "openai_base_url",
                &self.openai_base_url,
                keyed(self.openai_api_key.is_some(), self.openai_api_key_file.is_some()),
            ),
        ] {
            if let Some(why) = url.as_deref().and_then(|url| unusable(url, has_key)) {
                problems.push(format!("judge.{key}: {why}"));
            }
        }
        problems
    }
}

/// Why a key must not be sent, or nothing can be asked, at that address.
fn unusable(url: &str, has_key: bool) -> Option<&'static str> {
    let Ok(url) = reqwest::Url::parse(url) else { return Some("not an address, such as https://host/v1") };
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Some("not an http or https address");
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Some("an address with credentials, query or fragment");
    }
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let is_loopback =
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    (has_key && url.scheme() == "http" && !is_loopback).then_some("a key is sent by https only, except to loopback")
}
