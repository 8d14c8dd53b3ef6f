//! What end-to-end tests stand on: the built binary, and an OTLP server behind it.

pub mod client;
pub mod collector;
pub mod iris;
pub mod proc;
pub mod provider;
pub mod spans;
