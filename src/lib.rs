//! The half of iris-sidecar that talks: sockets, the journal, DuckDB, files.
//!
//! Bytes enter through [`receive`], are made durable by [`journal`], understood by [`ingest`] with the help of
//! `iris_core`, kept by [`store`] and sent on by [`forward`]. Questions enter through [`serve`], which knows
//! only [`tools`]. [`rulebook`] holds the rules in force, [`home`] the folder, [`deleted`] what must not come
//! back, [`door`] who may knock. [`judge`] asks models and [`fetch`] reads sources, for two of the tools. [`ops`]
//! tells how it is doing. [`run`] puts the rooms together and holds no logic; [`cli`] and [`config`] are what a user sees
//! of it, [`demo`] shows it at work.

pub mod cli;
pub mod config;
pub mod deleted;
pub mod demo;
pub mod door;
pub mod fetch;
pub mod forward;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod home;
pub mod ingest;
pub mod journal;
pub mod judge;
pub mod ops;
pub mod receive;
pub mod rulebook;
pub mod run;
pub mod serve;
pub mod store;
pub mod telemetry;
pub mod tools;
