//! The configuration: the sum of the rooms' own, read from several sources, checked as a whole.
//!
//! Defaults < file (YAML or JSON) < environment < flags. Every room declares its keys beside the code that obeys
//! them; this room only finds, merges and checks. It never reads the process environment itself: sources are values.

mod env;
mod expand;
mod keys;

use std::path::PathBuf;

pub use env::{FLAT, Flat};

use figment::Figment;
use figment::providers::Serialized;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Everything a user can set.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where everything is kept: database, journal, rules, audit log, `runtime.json`.
    pub home: Home,
    /// The OTLP doors.
    pub receive: crate::receive::Config,
    /// The web door: `/mcp` and `/api/v1`.
    pub web: crate::serve::Config,
    /// The ops door: `/livez`, `/readyz`, `/metrics`.
    pub ops: crate::ops::Config,
    /// The collector downstream.
    pub forward: crate::forward::Config,
    /// The journal that makes an acknowledgement true.
    pub journal: crate::journal::Config,
    /// When a trace is complete.
    pub assembly: iris_core::assemble::Config,
    /// The embedded DuckDB file.
    pub store: crate::store::Config,
    /// How long rows are kept.
    pub retention: crate::store::Retention,
    /// How outputs are judged.
    pub eval: iris_core::evaluate::Settings,
    /// What is logged.
    pub logging: crate::telemetry::Logging,
}

/// The folder that holds everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Home(pub PathBuf);

impl Default for Home {
    fn default() -> Self {
        Self(PathBuf::from("~/.iris"))
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
            match expand::read(text, &sources.env) {
                Ok(file) => {
                    let file = keys::snake_case(file);
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
            keys::set(&mut flags, key, env::typed(&defaults, key, value));
        }
        layers.push(flags);
        if !problems.is_empty() {
            return Err(Problems(problems));
        }
        let mut figment = Figment::from(Serialized::defaults(Self::default()));
        for layer in layers {
            figment = figment.merge(Serialized::defaults(layer));
        }
        let config: Self =
            figment.extract().map_err(|errors| Problems(errors.into_iter().map(|error| describe(&error)).collect()))?;
        let problems = config.problems();
        if problems.is_empty() { Ok(Loaded { config, warnings }) } else { Err(Problems(problems)) }
    }

    /// What the rooms refuse in it, one line a problem.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        problems.extend(self.receive.problems());
        problems.extend(self.web.problems());
        problems.extend(self.forward.problems());
        problems.extend(self.eval.problems());
        problems
    }

    /// The folder that holds everything, `~` resolved.
    pub fn home(&self, user_home: Option<&std::ffi::OsStr>) -> PathBuf {
        match (self.home.0.strip_prefix("~"), user_home) {
            (Ok(rest), Some(home)) => PathBuf::from(home).join(rest),
            _ => self.home.0.clone(),
        }
    }

    /// The effective tree as YAML-compatible JSON; secrets print as `[set]`.
    pub fn effective(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

fn describe(error: &figment::Error) -> String {
    let path = error.path.join(".");
    if path.is_empty() { error.kind.to_string() } else { format!("{path}: {}", error.kind) }
}

#[cfg(test)]
mod tests;
