//! What a trace's model calls used and cost, in parts, and what is odd about its spans.

use serde::{Deserialize, Serialize};

use super::SpanId;

/// How many models without a price are named.
pub const UNPRICED_MAX: usize = 8;

/// What the cost of a trace or run is made of, so that it can be checked. Parts stand for the calls that were priced by
/// list; what spans state themselves is not taken apart.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CostParts {
    /// Model calls, each once.
    pub calls: u32,
    /// Of these, with a cost that is stated or could be worked out. When fewer than `calls`, the cost as a whole is unknown.
    pub priced_calls: u32,
    /// Of these, that state no tokens and no cost although they did not fail.
    pub calls_without_usage: u32,
    /// Models without a price, as the spans name them, at most eight.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unpriced_models: Vec<String>,
    /// USD that spans state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported_usd: Option<f64>,
    /// Tokens sent that no cache held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<CostPart>,
    /// Tokens read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_read: Option<CostPart>,
    /// Tokens written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<CostPart>,
    /// Tokens received, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<CostPart>,
    /// Of the tokens received, those spent on reasoning; their cost is part of `output`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}

impl CostParts {
    /// Why the cost as a whole is not known, in words that repeat nothing of the trace; none when it is known.
    pub fn lack(&self) -> Option<String> {
        if self.priced_calls >= self.calls {
            return None;
        }
        let of = format!("of {} model call{}", self.calls, if self.calls == 1 { "" } else { "s" });
        Some(match (self.unpriced_models.len(), self.calls_without_usage) {
            (0, 0) => format!("cost not known: {} {of} could be priced", self.priced_calls),
            (0, silent) => format!("cost not known: {silent} {of} without token counts"),
            (models, _) => {
                format!("cost not known: no price for {models} of the models, {} {of} priced", self.priced_calls)
            }
        })
    }
}

impl CostParts {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let part = |one: Option<CostPart>, two: Option<CostPart>| match (one, two) {
            (Some(one), Some(two)) => {
                Some(CostPart { tokens: one.tokens.saturating_add(two.tokens), usd: one.usd + two.usd })
            }
            (one, two) => one.or(two),
        };
        let mut unpriced_models = self.unpriced_models;
        for model in other.unpriced_models {
            if !unpriced_models.contains(&model) && unpriced_models.len() < UNPRICED_MAX {
                unpriced_models.push(model);
            }
        }
        Self {
            calls: self.calls.saturating_add(other.calls),
            priced_calls: self.priced_calls.saturating_add(other.priced_calls),
            calls_without_usage: self.calls_without_usage.saturating_add(other.calls_without_usage),
            unpriced_models,
            reported_usd: match (self.reported_usd, other.reported_usd) {
                (Some(one), Some(two)) => Some(one + two),
                (one, two) => one.or(two),
            },
            input: part(self.input, other.input),
            cached_read: part(self.cached_read, other.cached_read),
            cache_write: part(self.cache_write, other.cache_write),
            output: part(self.output, other.output),
            reasoning_tokens: match (self.reasoning_tokens, other.reasoning_tokens) {
                (Some(one), Some(two)) => Some(one.saturating_add(two)),
                (one, two) => one.or(two),
            },
        }
    }
}

/// One part of a cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CostPart {
    /// Tokens.
    pub tokens: u64,
    /// USD.
    pub usd: f64,
}

/// What is odd about the spans of a trace, for whoever wonders about its numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Notes {
    /// Parents that spans name and that never came, at most sixteen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_parents: Vec<SpanId>,
    /// A span ended before it began, or began well before its parent: clocks disagree, times are to be doubted.
    #[serde(skip_serializing_if = "is_false")]
    pub clock_skew: bool,
    /// Spans of model calls that record what another span records too; each call counts once.
    #[serde(skip_serializing_if = "is_zero")]
    pub doubled_calls: u32,
    /// The same for tools.
    #[serde(skip_serializing_if = "is_zero")]
    pub doubled_tools: u32,
    /// An agent states other totals than its calls add up to; the calls count.
    #[serde(skip_serializing_if = "is_false")]
    pub usage_mismatch: bool,
    /// No agent or workflow stands around what it tells: a program called models or tools by itself.
    #[serde(skip_serializing_if = "is_false")]
    pub bare: bool,
}

impl Notes {
    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "shaped for serde")]
fn is_false(value: &bool) -> bool {
    !*value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "shaped for serde")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}
