//! The list of prices, read once.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::Rates;
use super::name::{Day, Named, read_day};

/// A provider and the models it lists.
#[derive(Debug)]
pub struct Provider {
    /// As the conventions spell it.
    pub name: String,
    /// Serves models of others: a name says what is run, not at which rates.
    pub host: bool,
    aliases: Vec<String>,
    shares: Vec<String>,
    models: HashMap<String, (Rates, Day)>,
}

impl Provider {
    /// The rates of a model, under any of its names, in this list or one that it shares.
    pub fn find(&self, named: &Named<'_>) -> Option<Rates> {
        named.forms().find_map(|(name, day)| self.exactly(name, day).or_else(|| self.behind_prefix(name, day)))
    }

    /// The names and aliases of its own models.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.models.keys().map(String::as_str)
    }

    fn exactly(&self, name: &str, day: Option<Day>) -> Option<Rates> {
        let shared = || self.shares.iter().filter_map(|name| provider(name));
        std::iter::once(self).chain(shared()).find_map(|provider| {
            let (rates, taken) = provider.models.get(name)?;
            // A snapshot made after the figures were taken may cost anything.
            day.is_none_or(|day| day <= *taken).then_some(*rates)
        })
    }

    /// Routers and clients put the provider's name in front: `anthropic/claude-opus-4-5`.
    fn behind_prefix(&self, name: &str, day: Option<Day>) -> Option<Rates> {
        let (prefix, name) = name.split_once('/')?;
        self.is_called(prefix).then(|| self.exactly(name, day)).flatten()
    }

    fn is_called(&self, name: &str) -> bool {
        let short = self.name.split('.').next_back().unwrap_or_default();
        let of = |one: &str| one.eq_ignore_ascii_case(name);
        of(&self.name) || of(short) || self.aliases.iter().any(|alias| of(alias))
    }
}

/// All providers, in the order of the list.
pub fn providers() -> &'static [Provider] {
    static PROVIDERS: LazyLock<Vec<Provider>> = LazyLock::new(|| {
        let file: File = toml::from_str(TEXT).unwrap_or_default();
        file.provider.into_iter().map(Provider::from).collect()
    });
    &PROVIDERS
}

/// The provider of a name.
pub fn provider(name: &str) -> Option<&'static Provider> {
    providers().iter().find(|provider| provider.name == name || provider.aliases.iter().any(|alias| alias == name))
}

/// The list as written.
pub(super) const TEXT: &str = include_str!("prices.toml");

/// The list as TOML.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub provider: Vec<Section>,
}

/// One provider as TOML.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Section {
    pub name: String,
    #[serde(default)]
    pub aliases: Vec<String>,
    #[serde(default)]
    pub shares: Vec<String>,
    #[serde(default)]
    pub host: bool,
    #[cfg_attr(not(test), expect(dead_code, reason = "for whoever checks a price"))]
    pub source: String,
    pub date: String,
    #[serde(default)]
    pub model: Vec<Entry>,
}

/// One model as TOML.
#[derive(Debug, Deserialize)]
pub(super) struct Entry {
    pub name: String,
    #[serde(default)]
    pub aliases: Vec<String>,
    #[serde(flatten)]
    pub rates: Rates,
    #[cfg_attr(not(test), expect(dead_code, reason = "for whoever checks a price"))]
    pub source: Option<String>,
    pub date: Option<String>,
}

impl From<Section> for Provider {
    fn from(section: Section) -> Self {
        let mut models = HashMap::new();
        for entry in section.model {
            let taken = read_day(entry.date.as_deref().unwrap_or(&section.date)).unwrap_or(0);
            for name in std::iter::once(entry.name).chain(entry.aliases) {
                models.insert(name, (entry.rates, taken));
            }
        }
        let Section { name, host, aliases, shares, .. } = section;
        Self { name, host, aliases, shares, models }
    }
}
