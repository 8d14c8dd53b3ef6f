//! The sidecar's own logs and clock. It never exports traces of itself and never logs what an agent said: ids, counts
//! and reasons only.

mod seldom;

pub use seldom::Seldom;

use iris_core::model::Timestamp;
use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

/// What is logged. Logs go to standard error: standard output belongs to the commands.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Logging {
    /// debug, info, warn or error.
    pub level: Level,
    /// text or json.
    pub format: Format,
}

impl Default for Logging {
    fn default() -> Self {
        Self { level: Level::Info, format: Format::Text }
    }
}

/// The least severe line that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Everything.
    Debug,
    /// What an operator wants to know.
    Info,
    /// What an operator should look at.
    Warn,
    /// What is broken.
    Error,
}

/// The shape of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts logging. A second call in one process does nothing.
pub fn start(logging: &Logging) {
    let level = match logging.level {
        Level::Debug => "iris_sidecar=debug,warn",
        Level::Info => "iris_sidecar=info,warn",
        Level::Warn => "warn",
        Level::Error => "error",
    };
    // rmcp reports at error level what a peer sent wrong, with the peer's text in it.
    let filter = EnvFilter::new(format!("{level},rmcp=off,serve_inner=off"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    let _ = match logging.format {
        Format::Text => lines.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).try_init(),
        Format::Json => lines.json().flatten_event(true).try_init(),
    };
}

/// Now.
pub fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// Fills `bytes` from the system's random numbers.
///
/// # Panics
/// When the system has none, which leaves nothing safe to do.
#[expect(
    clippy::expect_used,
    reason = "without random numbers ids would collide; the system call does not fail on Linux once booted"
)]
pub fn random(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the system provides random numbers");
}
