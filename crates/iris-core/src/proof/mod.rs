//! How often the rules are right: measured on the repository's own cases and on texts that others labelled.
//!
//! Owns the cases (they are part of the program, so they can be run anywhere), the reading of labelled sets, and
//! [`document`], the one published form of what came out. The committed counts are `evaluate::Record`; this room makes
//! them. It opens no file: rows of labelled sets are given to it, names and counts leave it, a text never does.
//!
//! The two sources are never added up. Own cases are labelled by who wrote the rules and were used to repair them, so
//! they say that a rule does what it is meant to do; how often it is right elsewhere only the texts of others can say.

mod cases;
mod document;
mod labelled;

pub use cases::{Label, RuleCase, cases, counts, files, own};
pub use document::document;
pub use labelled::{Labelled, MEASURES, Measure, Measured, Said, wants};
