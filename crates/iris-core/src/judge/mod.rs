//! What a model is asked when it judges, what that may cost, and how its answer is read.
//!
//! Owns the [`Template`]s with their dimensions and thresholds, the fence around every text that others wrote
//! ([`ask`]), the models that may judge and the parameters each of them takes ([`Models`]), the bound on what a call
//! can cost ([`tokens_at_most`], [`worst_case_usd`]), the placeholders for personal data ([`Redactor`]), and the shapes
//! of requests, answers and faults of the providers. Never sends anything, never holds a key, never waits: randomness
//! and time are arguments, and whoever calls a provider does so elsewhere. A score is never taken from an answer that
//! is cut, refused or ambiguous.

mod ask;
mod budget;
mod fault;
mod models;
mod redact;
mod reply;
mod template;
mod wire;

pub use ask::{Claim, Nonce, Prompt, SOURCE_CHARS_MAX, Suspicion, Texts, ask, ask_whether_supported};
pub use budget::{rounded_usd, spent_usd, tokens_at_most, worst_case_usd};
pub use fault::{Kind, asked_wait_ms, message_of, scrubbed};
pub use models::{Manner, Model, Models, Provider, TokenField, manner};
pub use redact::Redactor;
pub use reply::{Malformed, Ruling, Support, read_ruling, read_support, rounded};
pub use template::{Dimension, Template};
pub use wire::{Answer, ENDPOINTS, Endpoint, Request, Stop, body, read_answer};

#[cfg(test)]
mod tests;
