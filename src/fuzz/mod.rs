//! Every parser of the shell that reads what strangers wrote, or what a disk may have spoiled, each as one function of
//! bytes with what must hold of any bytes whatever. Nothing but fuzzers (`fuzz/`) and the tests beside this calls it; no
//! build of the product has it. Those of the core are in `iris_core::fuzz`.

#[cfg(test)]
mod tests;

use crate::config::{Config, Sources};
use crate::{journal, rulebook, serve, store};

/// A segment file of the journal.
pub fn journal_frames(data: &[u8]) {
    journal::fuzzed::segment(data);
}

/// A rule file.
pub fn rule_file(data: &[u8]) {
    rulebook::fuzzed::file(data);
}

/// A configuration file: what is taken holds together, and is the same when it is read back as it is shown.
pub fn config_yaml(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let env = vec![("COLLECTOR".to_owned(), "http://collector.example:4317".to_owned())];
    let sources = Sources { file: Some(("config.yaml".to_owned(), text.to_owned())), env, flags: Vec::new() };
    match Config::load(&sources) {
        Ok(loaded) => assert!(loaded.config.problems().is_empty()),
        Err(problems) => assert!(!problems.0.is_empty(), "what is refused is refused for a reason"),
    }
}

/// A statement of `query_sql`.
pub fn sql_guard(data: &[u8]) {
    store::fuzzed_sql(data);
}

/// Lines of an MCP client.
pub fn mcp_message(data: &[u8]) {
    serve::fuzzed(data);
}
