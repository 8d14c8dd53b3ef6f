//! What a model call costs: list prices as data, an operator's own prices before them, and the arithmetic.
//!
//! Owns `prices.toml`, how a model's name is found in it, and what the parts of a call's tokens cost. Never guesses: a
//! model that is not listed has no price, and what has no price costs nothing known, not nothing. Never reads a span: who
//! asks says which provider and model answered and what was used. Configuration enters through [`Prices::with`], questions
//! through [`Prices::of`], and [`Rates::charge`] answers in US dollars.

mod name;
mod table;

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::model::Usage;
use name::Named;
use table::Provider;

/// The most prices an operator may set.
const OVERRIDES_MAX: usize = 1000;
/// The longest name of a model that is looked up, in bytes.
const NAME_BYTES_MAX: usize = 256;
/// Tokens that a rate is for.
const PER_TOKENS: f64 = 1_000_000.0;
/// Providers whose models are served under the same names to clients made for OpenAI's, which then name that provider.
const BEHIND_OPENAI_CLIENTS: [&str; 5] = ["deepseek", "x_ai", "gcp.gemini", "anthropic", "moonshot_ai"];

/// `cost.*`: what model calls cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Whether calls whose spans state no cost are priced at list price. `false` leaves their cost unknown, unless `prices`
    /// knows it.
    pub list_prices: bool,
    /// Prices of your own, before the list: for deployments, fine-tuned or self-hosted models, and agreed rates.
    pub prices: Vec<Override>,
}

impl Default for Config {
    fn default() -> Self {
        Self { list_prices: true, prices: Vec::new() }
    }
}

impl Config {
    /// What could not work, a line a problem.
    pub fn problems(&self) -> Vec<String> {
        Prices::with(self).err().unwrap_or_default()
    }
}

/// The price of one model, set by the operator.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Override {
    /// The model's or deployment's name as the spans state it, whole; case does not matter.
    pub model: String,
    /// Only where this provider served it, as `gen_ai.provider.name` has it; any provider when left out.
    pub provider: Option<String>,
    /// Priced like this model of the list, such as `openai/gpt-4o`.
    pub like: Option<String>,
    /// USD per million tokens sent.
    pub input: Option<f64>,
    /// USD per million tokens sent that a cache held; `input` when left out.
    pub cached_read: Option<f64>,
    /// USD per million tokens sent that were written to a cache; `input` when left out.
    pub cache_write: Option<f64>,
    /// USD per million tokens received.
    pub output: Option<f64>,
}

/// USD per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Rates {
    /// For tokens sent that no cache held.
    pub input: f64,
    /// For tokens read from a cache; `input` when absent.
    pub cached_read: Option<f64>,
    /// For tokens written to a cache; `input` when absent.
    pub cache_write: Option<f64>,
    /// For tokens received; absent for models that answer with no text.
    pub output: Option<f64>,
    /// For sound sent; `input` when absent.
    pub input_audio: Option<f64>,
    /// For sound received; `output` when absent.
    pub output_audio: Option<f64>,
    /// What a call costs that sends more.
    pub above: Option<Above>,
}

/// The rates of a call that sends more than so many tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Above {
    /// Tokens sent, cached ones included.
    pub tokens: u64,
    input: Option<f64>,
    cached_read: Option<f64>,
    cache_write: Option<f64>,
    output: Option<f64>,
}

/// What one call cost in USD, by part.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Charge {
    /// Tokens sent that no cache held.
    pub input_usd: f64,
    /// Tokens read from a cache.
    pub cached_read_usd: f64,
    /// Tokens written to a cache.
    pub cache_write_usd: f64,
    /// Tokens received.
    pub output_usd: f64,
}

impl Charge {
    /// All parts together.
    pub fn total_usd(&self) -> f64 {
        self.input_usd + self.cached_read_usd + self.cache_write_usd + self.output_usd
    }
}

impl Rates {
    /// What a call cost. None when the counts that it takes are not known.
    pub fn charge(&self, usage: &Usage) -> Option<Charge> {
        let sent = usage.input?;
        let received = match (usage.output, self.output) {
            (Some(received), _) => received,
            // A model without a rate for answers answers with none.
            (None, None) => 0,
            (None, Some(_)) => return None,
        };
        if received > 0 && self.output.is_none() {
            return None;
        }
        let rates = self.for_size(sent);
        let (read, written) = (usage.cache_read.unwrap_or(0), usage.cache_write.unwrap_or(0));
        let heard = usage.input_audio.unwrap_or(0).min(sent.saturating_sub(read).saturating_sub(written));
        let plain = sent.saturating_sub(read).saturating_sub(written).saturating_sub(heard);
        let spoken = usage.output_audio.unwrap_or(0).min(received);
        let output = rates.output.unwrap_or(0.0);
        Some(Charge {
            input_usd: usd(plain, rates.input) + usd(heard, rates.input_audio.unwrap_or(rates.input)),
            cached_read_usd: usd(read, rates.cached_read.unwrap_or(rates.input)),
            cache_write_usd: usd(written, rates.cache_write.unwrap_or(rates.input)),
            output_usd: usd(received.saturating_sub(spoken), output)
                + usd(spoken, rates.output_audio.unwrap_or(output)),
        })
    }

    /// The rates of a call that sends so many tokens.
    fn for_size(&self, sent: u64) -> Self {
        match self.above {
            Some(above) if sent > above.tokens => Self {
                input: above.input.unwrap_or(self.input),
                cached_read: above.cached_read.or(self.cached_read),
                cache_write: above.cache_write.or(self.cache_write),
                output: above.output.or(self.output),
                ..*self
            },
            _ => *self,
        }
    }

    fn all(&self) -> impl Iterator<Item = f64> {
        let above =
            self.above.into_iter().flat_map(|above| [above.input, above.cached_read, above.cache_write, above.output]);
        let own = [self.cached_read, self.cache_write, self.output, self.input_audio, self.output_audio];
        std::iter::once(self.input).chain(own.into_iter().chain(above).flatten())
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of tokens stay far below 2^53")]
fn usd(tokens: u64, per_million: f64) -> f64 {
    tokens as f64 * per_million / PER_TOKENS
}

/// Whom to price.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ask<'a> {
    /// Who served the call, as the conventions spell it; any when not known.
    pub provider: Option<&'a str>,
    /// The model that answered.
    pub model: Option<&'a str>,
    /// The model or deployment that was asked for.
    pub request_model: Option<&'a str>,
}

/// All prices in force.
#[derive(Debug, Clone)]
pub struct Prices {
    own: HashMap<(Option<String>, String), Rates>,
    listed: bool,
}

impl Prices {
    /// The list alone.
    pub fn list() -> &'static Self {
        static LIST: LazyLock<Prices> = LazyLock::new(|| Prices { own: HashMap::new(), listed: true });
        &LIST
    }

    /// The list with an operator's prices before it.
    ///
    /// # Errors
    /// What could not work, a line a problem: a price without a model or without rates, a rate that is no amount, a model
    /// that is not listed, a model priced twice.
    pub fn with(config: &Config) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let mut own = HashMap::new();
        if config.prices.len() > OVERRIDES_MAX {
            problems
                .push(format!("cost.prices has {} entries: at most {OVERRIDES_MAX} are valid", config.prices.len()));
        }
        for (at, price) in config.prices.iter().take(OVERRIDES_MAX).enumerate() {
            match price.rates() {
                Ok(rates) => {
                    let provider = price.provider.as_deref().map(|name| name.trim().to_lowercase());
                    if own.insert((provider, price.model.trim().to_lowercase()), rates).is_some() {
                        problems.push(format!("cost.prices[{at}]: this model has a price already"));
                    }
                }
                Err(why) => problems.push(format!("cost.prices[{at}]: {why}")),
            }
        }
        if problems.is_empty() { Ok(Self { own, listed: config.list_prices }) } else { Err(problems) }
    }

    /// The rates of a model. An operator's price for the model that answered comes first, then one for the model or
    /// deployment that was asked for, then the list's for the model that answered, or was asked for when none is named.
    pub fn of(&self, ask: &Ask<'_>) -> Option<Rates> {
        let named = [ask.model, ask.request_model];
        let mut names = named.into_iter().flatten().filter(|name| name.len() <= NAME_BYTES_MAX);
        if !self.own.is_empty()
            && let Some(rates) = names.clone().find_map(|name| self.own(ask.provider, &name.trim().to_lowercase()))
        {
            return Some(rates);
        }
        let model = names.next()?;
        if !self.listed || is_anyones(ask, model) {
            return None;
        }
        listed(ask.provider, model)
    }

    fn own(&self, provider: Option<&str>, name: &str) -> Option<Rates> {
        let at = |provider: Option<String>| self.own.get(&(provider, name.to_owned())).copied();
        provider.and_then(|provider| at(Some(provider.to_lowercase()))).or_else(|| at(None))
    }
}

/// Whether a deployment answered with a name that says nothing: Azure has named every model of a family by the family.
fn is_anyones(ask: &Ask<'_>, model: &str) -> bool {
    let family = matches!(model, "gpt-4" | "gpt-35-turbo" | "gpt-3.5-turbo");
    family
        && ask.provider == Some("azure.ai.openai")
        && ask.request_model.is_some_and(|asked| !asked.eq_ignore_ascii_case(model))
}

/// The names and aliases of the models that a provider lists, in no order.
pub fn names(provider: &str) -> impl Iterator<Item = &'static str> {
    table::provider(provider).into_iter().flat_map(Provider::names)
}

/// The list's rates of a model.
fn listed(provider: Option<&str>, model: &str) -> Option<Rates> {
    let named = Named::read(model);
    let Some(provider) = provider else {
        return only(table::providers().iter().filter(|provider| !provider.host), &named);
    };
    let Some(provider) = table::provider(provider) else {
        // A router's own rates are not those of whom it routes to.
        return None;
    };
    provider.find(&named).or_else(|| {
        let others = || BEHIND_OPENAI_CLIENTS.iter().filter_map(|name| table::provider(name));
        (provider.name == "openai").then(|| only(others(), &named)).flatten()
    })
}

/// The rates that all providers who list a model agree on.
fn only<'a>(providers: impl Iterator<Item = &'a Provider>, named: &Named<'_>) -> Option<Rates> {
    let mut found = providers.filter_map(|provider| provider.find(named));
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

impl Override {
    fn rates(&self) -> Result<Rates, String> {
        if self.model.trim().is_empty() || self.model.len() > NAME_BYTES_MAX {
            return Err(format!("model names none: 1 to {NAME_BYTES_MAX} bytes are valid"));
        }
        let like = match &self.like {
            None => None,
            Some(like) => {
                let (provider, model) = match like.split_once('/') {
                    Some((provider, model)) if table::provider(provider).is_some() => (Some(provider), model),
                    _ => (None, like.as_str()),
                };
                Some(listed(provider, model).ok_or_else(|| "like names no model of the list".to_owned())?)
            }
        };
        let input = self.input.or(like.map(|like| like.input));
        let input = input.ok_or_else(|| "neither input nor like is set".to_owned())?;
        let rates = Rates {
            input,
            cached_read: self.cached_read.or(like.and_then(|like| like.cached_read)),
            cache_write: self.cache_write.or(like.and_then(|like| like.cache_write)),
            output: self.output.or(like.and_then(|like| like.output)),
            input_audio: like.and_then(|like| like.input_audio),
            output_audio: like.and_then(|like| like.output_audio),
            above: like.and_then(|like| like.above),
        };
        if rates.all().any(|rate| !rate.is_finite() || rate < 0.0) {
            return Err("a rate is no amount of USD: 0 or more is valid".to_owned());
        }
        Ok(rates)
    }
}

#[cfg(test)]
mod tests;
