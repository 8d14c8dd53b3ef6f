//! The tests of the pure half that need files or more than one room.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests read cases and measure; the crate does neither"
)]

mod cases;
mod corpora;
mod dialects;
mod documents;
mod field_cases;
mod field_cases_1;
mod judged_load;
mod judging;
mod leaks;
mod load;
mod otlp;
mod recorded;
mod thorough;
mod tidy;
