//! The half of iris-sidecar that thinks and never touches the world.
//!
//! Bytes become spans in [`otlp`], spans become readings in [`dialect`], readings become traces in
//! [`assemble`], traces become verdicts in [`evaluate`], which runs the [`rules`] over what [`text`] and
//! [`detect`] see. [`proof`] measures how often the rules are right. [`price`] says what model calls cost. [`redact`] takes personal data and
//! credentials out before anything is kept. [`judge`] and [`citation`] hold what a model is asked and where sources may be read. [`contract`] holds every word and shape of the tools.
//! [`model`] holds the nouns all of them share.
//!
//! Nothing here reads a clock, a file, a socket or the environment: time and randomness are arguments, so
//! the same input always gives the same output.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod assemble;
pub mod citation;
pub mod contract;
pub mod detect;
pub mod dialect;
pub mod evaluate;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod judge;
pub mod model;
pub mod otlp;
pub mod price;
pub mod proof;
pub mod redact;
pub mod rules;
pub mod text;

#[cfg(test)]
#[path = "../tests/it/thorough.rs"]
mod thorough;
