//! Who may judge: models with a price, the provider of each, and the parameters each takes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::price::{self, Ask, Prices, Rates};

/// Who runs the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// Anthropic.
    Anthropic,
    /// `OpenAI`.
    #[serde(rename = "openai")]
    OpenAi,
}

impl Provider {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Anthropic, Self::OpenAi];

    /// Its name on the wire and in the price list.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
        }
    }
}

/// A model that may judge.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// As it is sent.
    pub name: String,
    /// Who runs it.
    pub provider: Provider,
    /// What it costs.
    pub rates: Rates,
}

/// Snapshots whose price is that of the model they are of, as their provider says.
/// Source: <https://platform.claude.com/docs/en/about-claude/models/overview>.
const SNAPSHOTS: &[(&str, &str)] = &[("claude-haiku-4-5-20251001", "claude-haiku-4-5")];

/// Parts of names that say that a model does not answer at the chat endpoint, or not with text.
/// Source: <https://developers.openai.com/api/docs/models>.
const NO_CHAT: [&str; 8] =
    ["embedding", "audio", "codex", "instruct", "-pro", "deep-research", "search-preview", "realtime"];

/// Every model that may judge: those of the list, and an operator's own.
#[derive(Debug, Clone)]
pub struct Models {
    prices: Prices,
    own: Vec<price::Override>,
}

impl Models {
    /// The list with an operator's prices before it. Whether spans are priced by the list does not matter here.
    ///
    /// # Errors
    /// As [`Prices::with`].
    pub fn with(config: &price::Config) -> Result<Self, Vec<String>> {
        let prices = Prices::with(&price::Config { list_prices: true, prices: config.prices.clone() })?;
        Ok(Self { prices, own: config.prices.clone() })
    }

    /// The model of that name, exactly: a name with a date behind it is not the name without. None when it has no price
    /// for that provider.
    pub fn find(&self, name: &str, provider: Option<Provider>) -> Option<Model> {
        let name = name.trim();
        let candidates = Provider::ALL.into_iter().filter(|one| provider.is_none_or(|wanted| wanted == *one));
        for one in candidates {
            let is_own = self.own.iter().any(|own| is_of(own, name, one));
            let listed = SNAPSHOTS.iter().find(|(snapshot, _)| *snapshot == name).map_or(name, |(_, model)| model);
            let is_listed = may_chat(name) && price::names(one.as_str()).any(|known| known == listed);
            if !is_own && !is_listed {
                continue;
            }
            let priced = if is_own { name } else { listed };
            let ask = Ask { provider: Some(one.as_str()), model: Some(priced), request_model: None };
            if let Some(rates) = self.prices.of(&ask).filter(|rates| rates.output.is_some()) {
                return Some(Model { name: name.to_owned(), provider: one, rates });
            }
        }
        None
    }

    /// Every name that [`Models::find`] knows, sorted.
    pub fn valid(&self, provider: Option<Provider>) -> Vec<String> {
        let listed = Provider::ALL.into_iter().flat_map(|one| price::names(one.as_str()).map(str::to_owned));
        let snapshots = SNAPSHOTS.iter().map(|(name, _)| (*name).to_owned());
        let own = self.own.iter().map(|own| own.model.trim().to_owned());
        let mut valid: Vec<String> =
            listed.chain(snapshots).chain(own).filter(|name| self.find(name, provider).is_some()).collect();
        valid.sort();
        valid.dedup();
        valid
    }
}

/// Whether an operator's price is for this model of this provider. One that names no provider is for a model of an
/// endpoint that speaks as `OpenAI`'s, unless its name is Anthropic's.
fn is_of(own: &price::Override, name: &str, provider: Provider) -> bool {
    if !own.model.trim().eq_ignore_ascii_case(name) {
        return false;
    }
    match own.provider.as_deref().map(str::trim) {
        Some(stated) => stated.eq_ignore_ascii_case(provider.as_str()),
        None => (provider == Provider::Anthropic) == name.to_ascii_lowercase().starts_with("claude"),
    }
}

fn may_chat(name: &str) -> bool {
    !NO_CHAT.iter().any(|part| name.contains(part))
}

/// The field that bounds an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenField {
    /// `max_tokens`.
    MaxTokens,
    /// `max_completion_tokens`: what reasoning takes counts.
    MaxCompletionTokens,
}

impl TokenField {
    /// The field's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// How a model wants to be asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Manner {
    /// What bounds the answer.
    pub token_field: TokenField,
    /// The temperature that is sent; none where the model refuses one.
    pub temperature: Option<f64>,
}

/// Anthropic's models that take a temperature; later ones answer 400 to it.
/// Source: <https://platform.claude.com/docs/en/about-claude/models/migration-guide>.
const CLAUDE_WITH_TEMPERATURE: &[&str] = &[
    "claude-3",
    "claude-haiku-4-5",
    "claude-haiku-4.5",
    "claude-sonnet-4",
    "claude-4-sonnet",
    "claude-4-opus",
    "claude-opus-4-0",
    "claude-opus-4-1",
    "claude-opus-4.1",
    "claude-opus-4-5",
    "claude-opus-4.5",
    "claude-opus-4-6",
    "claude-opus-4.6",
];

/// `OpenAI`'s models that take a temperature and `max_tokens`; its reasoning models answer 400 to both.
/// Source: <https://developers.openai.com/api/docs/guides/reasoning>.
const GPT_WITH_TEMPERATURE: &[&str] = &["gpt-3.5", "gpt-35", "gpt-4", "chatgpt-4o"];

/// The hottest that Anthropic takes.
const CLAUDE_TEMPERATURE_MAX: f64 = 1.0;

/// How to ask a model. A model of an operator's own endpoint is asked in the older manner, which all such servers take.
pub fn manner(provider: Provider, model: &str, temperature: f64, own_endpoint: bool) -> Manner {
    let model = model.to_ascii_lowercase();
    let is_one_of = |prefixes: &[&str]| prefixes.iter().any(|prefix| model.starts_with(prefix));
    match provider {
        Provider::Anthropic => {
            let takes = model == "claude-opus-4" || is_one_of(CLAUDE_WITH_TEMPERATURE);
            let temperature = takes.then_some(temperature.min(CLAUDE_TEMPERATURE_MAX));
            Manner { token_field: TokenField::MaxTokens, temperature }
        }
        Provider::OpenAi if is_one_of(GPT_WITH_TEMPERATURE) => {
            Manner { token_field: TokenField::MaxTokens, temperature: Some(temperature) }
        }
        Provider::OpenAi if own_endpoint && !price::names("openai").any(|name| name == model) => {
            Manner { token_field: TokenField::MaxTokens, temperature: Some(temperature) }
        }
        Provider::OpenAi => Manner { token_field: TokenField::MaxCompletionTokens, temperature: None },
    }
}
