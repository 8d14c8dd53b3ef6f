//! The configuration: the sum of the rooms' own, read from several sources, checked as a whole.
//!
//! Defaults < file (YAML or JSON) < environment < flags. Every room declares its keys beside the code that obeys
//! them; this room only finds, merges and checks. It never reads the process environment itself: sources are values.

mod collector;
mod document;
mod env;
mod expand;
mod keys;
mod shape;
mod yaml;

use std::path::PathBuf;

pub use document::{page, yaml};
pub use env::{FLAT, Flat};
pub use expand::read_file;

use figment::Figment;
use figment::providers::Serialized;
use iris_core::contract::{plain_expected, plain_reason};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use shape::Shape;

/// Everything a user can set.
#[derive(Debug, Clone, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where everything is kept: database, journal, rules, audit log, `runtime.json`.
    pub home: Home,
    /// The OTLP doors.
    pub receive: crate::receive::Config,
    /// The web door: `/mcp` and `/api/v1`.
    pub web: crate::serve::Config,
    /// Keys with a name, a tenant and scopes, for the OTLP doors and the web door. With any of them set, a request
    /// without a key is refused.
    pub keys: Vec<crate::door::KeyConfig>,
    /// The tools, whichever door they are called through.
    pub mcp: crate::serve::McpConfig,
    /// The ops door: `/livez`, `/readyz`, `/metrics`.
    pub ops: crate::ops::Config,
    /// The collector downstream.
    pub forward: crate::forward::Config,
    /// Another collector, for traces that `log_trace` stored.
    pub export: crate::forward::ExportConfig,
    /// The journal that makes an acknowledgement true.
    pub journal: crate::journal::Config,
    /// When a trace is complete.
    pub assembly: iris_core::assemble::Config,
    /// What model calls cost.
    pub cost: iris_core::price::Config,
    /// Asking models to judge: keys, endpoints and limits of money.
    pub judge: crate::judge::Config,
    /// Reading the sources that outputs cite.
    pub citations: crate::fetch::Config,
    /// The embedded DuckDB file.
    pub store: crate::store::Config,
    /// How long rows are kept.
    pub retention: crate::store::Retention,
    /// How soon the bytes of what was deleted go.
    pub erase: crate::store::Erase,
    /// Personal data and credentials taken out before anything is stored or forwarded.
    pub redact: iris_core::redact::Config,
    /// How outputs are judged.
    pub eval: iris_core::evaluate::Settings,
    /// What is logged.
    pub logging: crate::telemetry::Logging,
}

/// The folder that holds everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Home(pub PathBuf);

impl Default for Home {
    fn default() -> Self {
        Self(PathBuf::from("~/.iris"))
    }
}

impl Home {
    /// The folder, `~` resolved.
    pub fn resolve(&self, user_home: Option<&std::ffi::OsStr>) -> PathBuf {
        match (self.0.strip_prefix("~"), user_home) {
            (Ok(rest), Some(home)) => PathBuf::from(home).join(rest),
            _ => self.0.clone(),
        }
    }
}

/// Where settings come from, lowest precedence first.
#[derive(Debug, Default)]
pub struct Sources {
    /// The text of the configuration file and its name, when there is one.
    pub file: Option<(String, String)>,
    /// The process environment.
    pub env: Vec<(String, String)>,
    /// Command line: dotted key and value.
    pub flags: Vec<(String, String)>,
}

impl Sources {
    fn get(&self, name: &str) -> Option<&str> {
        self.env.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
    }

    /// The home as everything but the file says it: where the file is looked for.
    pub fn home(&self) -> PathBuf {
        let flag = self.flags.iter().rev().find(|(key, _)| key == "home").map(|(_, path)| path.as_str());
        let named = flag.or_else(|| self.get("IRIS__HOME")).or_else(|| self.get("IRIS_HOME"));
        let home = named.map_or_else(Home::default, |path| Home(PathBuf::from(path)));
        home.resolve(self.get("HOME").map(std::ffi::OsStr::new))
    }
}

/// Values of a wrong type that are named at a time.
const PROBLEMS_MAX: usize = 64;

/// A configuration that holds together, and what is odd about it.
#[derive(Debug)]
pub struct Loaded {
    /// The effective configuration.
    pub config: Config,
    /// Oddities that do not stop a start, such as an unknown flat `IRIS_*` name.
    pub warnings: Vec<String>,
}

/// All that is wrong with a configuration, one line a problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has {} {}:\n  {}", .0.len(), if .0.len() == 1 { "problem" } else { "problems" }, .0.join("\n  "))]
pub struct Problems(pub Vec<String>);

impl Config {
    /// Merges the sources and checks the result.
    ///
    /// # Errors
    /// Every problem at once: unknown keys with the nearest valid one, values of a wrong type, values that the rooms
    /// refuse, such as an open door beyond loopback.
    pub fn load(sources: &Sources) -> Result<Loaded, Problems> {
        let defaults = serde_json::to_value(Self::default()).map_err(|error| Problems(vec![error.to_string()]))?;
        let mut problems = Vec::new();
        let mut warnings = Vec::new();
        let mut layers = Vec::new();
        if let Some((name, text)) = &sources.file {
            match expand::read(text, &sources.env, &defaults) {
                Ok(file) => {
                    let file = match collector::is_shaped_so(&file) {
                        true => {
                            let told = collector::translate(&file);
                            warnings.extend(told.warnings.into_iter().map(|warning| format!("{name}: {warning}")));
                            problems.extend(told.problems.into_iter().map(|problem| format!("{name}: {problem}")));
                            told.tree
                        }
                        false => file,
                    };
                    problems.extend(
                        keys::unknown(&defaults, &file).into_iter().map(|problem| format!("{name}: {problem}")),
                    );
                    layers.push(file);
                }
                Err(why) => problems.push(format!("{name}: {why}")),
            }
        }
        let env = env::read(&sources.env, &defaults);
        problems.extend(env.problems);
        warnings.extend(env.warnings);
        layers.push(env.tree);
        let mut flags = Value::Object(serde_json::Map::new());
        for (key, value) in &sources.flags {
            let (key, shape) = Shape::of(&defaults).at(key);
            keys::set(&mut flags, &key, shape.typed(value));
        }
        problems.extend(keys::unknown(&defaults, &flags).into_iter().map(|problem| format!("--set: {problem}")));
        layers.push(flags);
        layers.iter_mut().for_each(|layer| keys::prune(&defaults, layer));
        let Some(mut config) = extracted(&mut layers, &mut problems) else { return Err(Problems(problems)) };
        let ignored;
        (config.forward, ignored) = config.forward.inherit(|name| sources.get(name).map(str::to_owned));
        warnings.extend(ignored);
        problems.extend(config.problems());
        if problems.is_empty() { Ok(Loaded { config, warnings }) } else { Err(Problems(problems)) }
    }

    /// What the rooms refuse in it, one line a problem.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let has_keys = !self.keys.is_empty();
        problems.extend(crate::door::KeyConfig::problems(&self.keys));
        problems.extend(self.receive.problems(has_keys));
        problems.extend(self.web.problems(has_keys));
        problems.extend(self.mcp.problems());
        problems.extend(self.ops.problems());
        problems.extend(self.forward.problems());
        problems.extend(self.export.problems());
        problems.extend(self.journal.problems());
        problems.extend(self.assembly.problems());
        problems.extend(self.cost.problems());
        problems.extend(self.judge.problems());
        problems.extend(self.citations.problems());
        problems.extend(self.store().problems());
        problems.extend(self.eval.problems());
        problems.extend(self.redact.problems());
        problems
    }

    /// The store's settings with the sections that it obeys too.
    pub fn store(&self) -> crate::store::Config {
        crate::store::Config { retention: self.retention.clone(), erase: self.erase.clone(), ..self.store.clone() }
    }

    /// The judge's settings, with every ceiling set where the web door listens beyond loopback.
    pub fn judge(&self) -> crate::judge::Config {
        if self.web.listen.beyond_loopback() { self.judge.clone().guarded() } else { self.judge.clone() }
    }

    /// The settings for citations, the narrower ones where the web door listens beyond loopback.
    pub fn citations(&self) -> crate::fetch::Config {
        if self.web.listen.beyond_loopback() { self.citations.clone().guarded() } else { self.citations.clone() }
    }

    /// The journal's settings within what `retention.bytes_max` leaves it.
    pub fn journal(&self) -> crate::journal::Config {
        let bytes_max = self.journal.bytes_max.min(self.retention.journal_bytes_max());
        crate::journal::Config { bytes_max, ..self.journal.clone() }
    }

    /// The folder that holds everything, `~` resolved.
    pub fn home(&self, user_home: Option<&std::ffi::OsStr>) -> PathBuf {
        self.home.resolve(user_home)
    }

    /// The effective tree as YAML-compatible JSON; secrets print as `[set]`.
    pub fn effective(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// The layers as one. A value of a wrong type is a problem, and left out, so that the next one is found too.
fn extracted(layers: &mut [Value], problems: &mut Vec<String>) -> Option<Config> {
    for _ in 0..PROBLEMS_MAX {
        let mut figment = Figment::from(Serialized::defaults(Config::default()));
        for layer in layers.iter() {
            figment = figment.merge(Serialized::defaults(layer));
        }
        let errors = match figment.extract() {
            Ok(config) => return Some(config),
            Err(errors) => errors,
        };
        let mut left_out = false;
        for error in errors {
            problems.push(describe(&error));
            left_out |=
                layers.iter_mut().map(|layer| keys::remove(layer, &error.path)).fold(false, |any, one| any | one);
        }
        if !left_out {
            return None;
        }
    }
    None
}

/// An error of a value without the value, which may be a secret that stands where it should not.
fn describe(error: &figment::Error) -> String {
    use figment::error::{Actual, Kind};
    let found = |actual: &Actual| match actual {
        Actual::Bool(_) => "true or false",
        Actual::Unsigned(_) | Actual::Signed(_) | Actual::Float(_) => "a number",
        Actual::Char(_) | Actual::Str(_) | Actual::Bytes(_) => "text",
        Actual::Unit | Actual::Option => "nothing",
        Actual::Seq => "a list",
        Actual::Map => "a mapping",
        _ => "something else",
    };
    let expected = |valid: &dyn std::fmt::Display| plain_expected(&valid.to_string()).replace("an object", "a mapping");
    let why = match &error.kind {
        Kind::InvalidType(actual, valid) => format!("found {}, expected {}", found(actual), expected(valid)),
        Kind::InvalidValue(actual, valid) => {
            format!("{} is not valid here, expected {}", found(actual), expected(valid))
        }
        Kind::UnknownVariant(_, valid) => format!("not one of {}", valid.join(", ")),
        Kind::ISizeOutOfRange(_) | Kind::USizeOutOfRange(_) => "the number is out of range".to_owned(),
        Kind::Unsupported(actual) => format!("{} is not supported", found(actual)),
        Kind::UnsupportedKey(actual, valid) => format!("{} is no key, expected {}", found(actual), expected(valid)),
        other => plain_reason(&other.to_string()),
    };
    let path = error.path.join(".");
    if path.is_empty() { why } else { format!("{path}: {why}") }
}

#[cfg(test)]
mod tests;
