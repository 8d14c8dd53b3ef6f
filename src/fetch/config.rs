//! `citations.*`: whether sources are fetched, from where, and what an operator forbids.

use iris_core::citation::{Cidr, is_allowed};
use serde::{Deserialize, Deserializer, Serialize};

/// What all judge calls of one verification may cost when nothing is said, in US dollars.
const DEFAULT_USD_CALL: f64 = 1.0;
/// The longest that one source may take, in milliseconds.
const SOURCE_MS_MAX: u64 = 60_000;
/// The most of one source that is read, in bytes.
const SOURCE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// How citations are verified.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Whether sources are fetched: `ask` when a call says `allow_fetch`, `on` (or 1) unless it says no, `never` whatever it
    /// says. Not set: `ask`, and `never` where the web door listens beyond loopback.
    #[serde(deserialize_with = "fetch")]
    pub fetch: Option<Fetch>,
    /// Hosts that may be fetched, with everything below them; empty for every public host.
    pub allow_domains: Vec<String>,
    /// What a call's `domain_allowlist` does to `allow_domains`: `merge` adds to them, `intersect` only narrows them. Not
    /// set: `merge`, and `intersect` where the web door listens beyond loopback.
    pub domains: Option<Domains>,
    /// Ranges of addresses that are never connected to, beside every private and special one: the ranges of a cluster's
    /// services and pods, when they are public addresses.
    pub deny_cidrs: Vec<Cidr>,
    /// Ranges that may be connected to although they are private, such as those of a company's own library.
    pub allow_cidrs: Vec<Cidr>,
    /// The most that all judge calls of one verification may cost, in US dollars, when the call does not say.
    pub default_usd_call: f64,
    /// The same, whatever the call says. Not set: no limit, and `default_usd_call` where the web door listens beyond
    /// loopback.
    pub ceiling_usd_call: Option<f64>,
    /// The longest that one source may take, redirects included, in milliseconds, whatever the call says.
    pub source_ms_max: u64,
    /// The most of one source that is read, in bytes once decoded, whatever the call says.
    pub source_bytes_max: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            fetch: None,
            allow_domains: Vec::new(),
            domains: None,
            deny_cidrs: Vec::new(),
            allow_cidrs: Vec::new(),
            default_usd_call: DEFAULT_USD_CALL,
            ceiling_usd_call: None,
            source_ms_max: SOURCE_MS_MAX,
            source_bytes_max: SOURCE_BYTES_MAX,
        }
    }
}

/// Whether sources are fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Fetch {
    /// When a call asks for it.
    Ask,
    /// Unless a call says no.
    On,
    /// Never.
    Never,
}

/// What a call's list of hosts does to the operator's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Domains {
    /// It adds.
    Merge,
    /// It only narrows.
    Intersect,
}

/// `1` is what the contract's variable is set to; what else says no there means that a call must ask.
fn fetch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Fetch>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Word(String),
        Number(u64),
        Truth(bool),
    }
    let word = match Option::<Written>::deserialize(deserializer)? {
        None => return Ok(None),
        Some(Written::Word(word)) => word,
        Some(Written::Number(number)) => number.to_string(),
        Some(Written::Truth(truth)) => truth.to_string(),
    };
    match word.trim() {
        "1" | "on" => Ok(Some(Fetch::On)),
        "0" | "" | "false" | "ask" => Ok(Some(Fetch::Ask)),
        "never" => Ok(Some(Fetch::Never)),
        _ => Err(serde::de::Error::custom("one of ask, on, never; 1 means on, 0 means ask")),
    }
}

impl Config {
    /// What could not work, a line a problem.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (key, usd) in
            [("default_usd_call", Some(self.default_usd_call)), ("ceiling_usd_call", self.ceiling_usd_call)]
        {
            if usd.is_some_and(|usd| !usd.is_finite() || usd < 0.0) {
                problems.push(format!("citations.{key}: an amount of 0 or more is valid"));
            }
        }
        for (key, most) in [("source_ms_max", self.source_ms_max), ("source_bytes_max", self.source_bytes_max)] {
            if most == 0 {
                problems.push(format!("citations.{key}: 1 or more is valid"));
            }
        }
        if self.allow_domains.iter().any(|host| host.trim().is_empty()) {
            problems.push("citations.allow_domains: a host is blank".to_owned());
        }
        problems
    }

    /// The same settings where strangers may call: what is not set is set to the narrower choice.
    #[must_use]
    pub fn guarded(mut self) -> Self {
        self.fetch = self.fetch.or(Some(Fetch::Never));
        self.domains = self.domains.or(Some(Domains::Intersect));
        self.ceiling_usd_call = self.ceiling_usd_call.or(Some(self.default_usd_call));
        self
    }

    /// Whether a call that says this may fetch.
    pub fn may_fetch(&self, allow_fetch: Option<bool>) -> bool {
        match self.fetch.unwrap_or(Fetch::Ask) {
            Fetch::Never => false,
            Fetch::On => allow_fetch != Some(false),
            Fetch::Ask => allow_fetch == Some(true),
        }
    }

    /// The hosts that a call may fetch from, and whether its own list was narrowed. None when no host is left.
    pub fn hosts(&self, asked: Option<&[String]>) -> (Option<Vec<String>>, bool) {
        let own = &self.allow_domains;
        let Some(asked) = asked.filter(|asked| !asked.is_empty()) else { return (Some(own.clone()), false) };
        if own.is_empty() {
            return (Some(asked.to_vec()), false);
        }
        if self.domains != Some(Domains::Intersect) {
            return (Some(own.iter().chain(asked).cloned().collect()), false);
        }
        // What lies below one of the operator's stays; of one above, the operator's own do.
        let narrow = |host: &String| {
            let name = host.trim().trim_start_matches("*.").trim_matches('.').to_owned();
            if is_allowed(&name, own) {
                return vec![name];
            }
            let above = std::slice::from_ref(host);
            own.iter().filter(|one| is_allowed(one.trim().trim_matches('.'), above)).cloned().collect()
        };
        let left: Vec<String> = asked.iter().flat_map(narrow).collect();
        let narrowed = left.len() != asked.len() || !left.iter().zip(asked).all(|(one, other)| one == other);
        ((!left.is_empty()).then_some(left), narrowed)
    }
}
