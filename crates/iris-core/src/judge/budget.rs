//! What a call can cost at worst, before it is made, and what it did cost.

use unicode_normalization::UnicodeNormalization;

use super::Prompt;
use crate::model::Usage;
use crate::price::Rates;

/// Tokens that a provider puts around two messages, at most.
const AROUND_TOKENS: u64 = 64;

/// Attempts that one call may make.
const ATTEMPTS: f64 = 2.0;

/// More tokens than any tokenizer makes of a text: every token stands for at least one byte, of the text as it is or as
/// a tokenizer may normalise it first. Counting characters would be too few for Chinese, and a quarter of them for
/// Base64.
pub fn tokens_at_most(text: &str) -> u64 {
    let as_is = text.len();
    let normalised = if text.is_ascii() { as_is } else { text.nfkc().map(char::len_utf8).sum() };
    u64::try_from(as_is.max(normalised)).unwrap_or(u64::MAX)
}

/// What a call costs at worst, in US dollars: two attempts with the stricter prompt, each answered at full length.
/// None when the model has no rate for answers.
pub fn worst_case_usd(rates: &Rates, prompt: &Prompt, output_tokens_max: u64) -> Option<f64> {
    let sent = tokens_at_most(&prompt.stricter_system()).saturating_add(tokens_at_most(&prompt.user));
    let one = spent_usd(rates, sent.saturating_add(AROUND_TOKENS), output_tokens_max)?;
    Some(one * ATTEMPTS)
}

/// What one attempt cost, in US dollars. None when the model has no rate for answers.
pub fn spent_usd(rates: &Rates, input_tokens: u64, output_tokens: u64) -> Option<f64> {
    let usage = Usage { input: Some(input_tokens), output: Some(output_tokens), ..Usage::default() };
    rates.output?;
    rates.charge(&usage).map(|charge| charge.total_usd())
}

/// An amount with six decimals, as it is told.
pub fn rounded_usd(usd: f64) -> f64 {
    (usd * 1e6).round() / 1e6
}
