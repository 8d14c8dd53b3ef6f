//! Patterns of numbers.
//!
//! The usual way to search looks for a sign first that every match holds, a full stop or a hyphen, and tries the pattern
//! around it. That pays where such signs are few. A text of nothing but numbers is all signs, so that a long text is
//! read byte by byte instead, which takes the same time whatever it holds.

use std::sync::OnceLock;

use regex_automata::meta::{BuildError, Config, Regex};

/// From how many bytes on a text is read byte by byte.
const LONG_BYTES: usize = 2048;
/// Bytes of states that are built for one search.
const STATES_BYTES_MAX: usize = 2 << 20;

/// A pattern of this program's own.
#[derive(Debug)]
pub(super) struct Shape {
    source: &'static str,
    by_signs: OnceLock<Regex>,
    by_bytes: OnceLock<Regex>,
}

impl Shape {
    pub const fn new(source: &'static str) -> Self {
        Self { source, by_signs: OnceLock::new(), by_bytes: OnceLock::new() }
    }

    /// The pattern as it is best searched for in a text.
    pub fn within(&self, text: &str) -> &Regex {
        let by_signs = text.len() < LONG_BYTES;
        let kept = if by_signs { &self.by_signs } else { &self.by_bytes };
        #[expect(clippy::expect_used, reason = "every pattern is a constant, and a test compiles each")]
        kept.get_or_init(|| self.compiled(by_signs).expect("a constant pattern compiles"))
    }

    fn compiled(&self, by_signs: bool) -> Result<Regex, Box<BuildError>> {
        let config = Config::new().auto_prefilter(by_signs).hybrid_cache_capacity(STATES_BYTES_MAX);
        Regex::builder().configure(config).build(self.source).map_err(Box::new)
    }
}
