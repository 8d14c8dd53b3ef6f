//! What the documentation says of a dialect, kept beside the code that reads it.
//!
//! `docs/dialects.md` is written from these; a test fails when the two differ.

/// One section of `docs/dialects.md`.
#[derive(Debug)]
pub struct Guide {
    /// Its heading: the library as its users call it.
    pub title: &'static str,
    /// How to point that library at the sidecar: one paragraph or a list.
    pub setup: &'static str,
    /// What is read, and from which keys.
    pub reads: &'static [(&'static str, &'static str)],
    /// What else its users should know; empty when there is nothing.
    pub notes: &'static str,
    /// The folders of `tests/cases/dialect` with requests that this library sent, or that follow its documentation.
    pub cases: &'static [&'static str],
}
