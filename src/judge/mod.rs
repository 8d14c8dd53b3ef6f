//! Asks a provider's model to judge, on the operator's own key, and keeps what that costs below every limit.
//!
//! Two requests at most for one call: a second one after a rate limit that asks for a short wait, or after an answer that
//! cannot be read. A key goes to the one origin it belongs to, redirects are not followed, and neither a key nor a
//! provider's body is logged or told. What is asked and how answers are read is `iris_core::judge`; the [`Ledger`] knows
//! what it costs.

mod config;
#[cfg(test)]
pub(crate) mod fake;
mod ledger;
mod route;
mod scripted;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use iris_core::judge::{
    Answer, Kind, Malformed, Manner, Model, Models, Prompt, Provider, Request, Stop, manner, rounded_usd, spent_usd,
    tokens_at_most, worst_case_usd,
};
use tokio::sync::Semaphore;

pub use config::Config;
pub use ledger::{Ceilings, Ledger, Over, Reserved, Standing};
use route::{Outcome, Route};
pub use scripted::Scripted;

/// Requests that one call may make.
const REQUESTS_MAX: usize = 2;
/// The longest wait that a rate limit may ask of a call; one that asks for more is told so.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// The wait when a rate limit asks for none.
const WAIT_DEFAULT: Duration = Duration::from_secs(2);

/// One call.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// Who judges.
    pub model: &'a Model,
    /// What it reads.
    pub prompt: &'a Prompt,
    /// Tokens of one answer at most.
    pub output_tokens_max: u64,
    /// As asked for; sent where the model takes one.
    pub temperature: f64,
    /// How long one request may take.
    pub timeout: Duration,
}

impl Ask<'_> {
    /// What it costs at worst, in US dollars.
    pub fn worst_usd(&self) -> f64 {
        // A model without a rate for answers is not among those that may judge.
        worst_case_usd(&self.model.rates, self.prompt, self.output_tokens_max).unwrap_or(f64::INFINITY)
    }
}

/// What a judge said.
#[derive(Debug, Clone, PartialEq)]
pub struct Said<T> {
    /// As it was read.
    pub value: T,
    /// What it took, all requests together.
    pub bill: Bill,
    /// The provider's own id of its answer.
    pub id: Option<String>,
    /// The temperature that was sent; none where the model takes none.
    pub temperature: Option<f64>,
}

/// Why there is no ruling.
#[derive(Debug, Clone, PartialEq)]
pub struct Failed {
    /// How the provider failed.
    pub kind: Kind,
    /// In its words, scrubbed, or in ours.
    pub words: String,
    /// What it took all the same.
    pub bill: Bill,
    /// When to come back, when the provider said so.
    pub retry_after_ms: Option<u64>,
}

/// What a call took.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Bill {
    /// Tokens sent.
    pub input_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
    /// US dollars.
    pub cost_usd: f64,
    /// Time in requests, waits between them left out.
    pub latency: Duration,
    /// Requests made.
    pub requests: u32,
}

impl Bill {
    fn add(&mut self, model: &Model, input_tokens: u64, output_tokens: u64) {
        self.input_tokens = self.input_tokens.saturating_add(input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(output_tokens);
        self.cost_usd += spent_usd(&model.rates, input_tokens, output_tokens).unwrap_or(0.0);
    }

    /// The cost with six decimals, as it is told.
    pub fn told_usd(&self) -> f64 {
        rounded_usd(self.cost_usd)
    }
}

/// Asks models.
pub struct Judge {
    models: Models,
    routes: BTreeMap<Provider, Route>,
    at_once: Semaphore,
    ledger: Ledger,
    config: Config,
    outcomes: Mutex<BTreeMap<&'static str, u64>>,
    requests: AtomicU64,
}

impl Judge {
    /// Sets it up for the providers that are configured; connects to none yet.
    ///
    /// # Errors
    /// What keeps a key from being read or a client from being made, without the key.
    pub fn new(config: &Config, models: Models, ledger: Ledger) -> Result<Self, String> {
        let mut routes = BTreeMap::new();
        for provider in Provider::ALL {
            if let Some(route) = Route::of(provider, config)? {
                routes.insert(provider, route);
            }
        }
        Ok(Self::with(routes, config, models, ledger))
    }

    /// One that answers from a script, whatever it is asked: for demonstrations and tests.
    pub fn scripted(config: &Config, models: Models, ledger: Ledger, script: &Scripted) -> Self {
        let routes = Provider::ALL.into_iter().map(|provider| (provider, Route::Scripted(script.clone()))).collect();
        Self::with(routes, config, models, ledger)
    }

    fn with(routes: BTreeMap<Provider, Route>, config: &Config, models: Models, ledger: Ledger) -> Self {
        Self {
            models,
            routes,
            at_once: Semaphore::new(usize::from(config.concurrency_max.max(1))),
            ledger,
            config: config.clone(),
            outcomes: Mutex::default(),
            requests: AtomicU64::new(0),
        }
    }

    /// Whether it follows a script instead of asking anybody.
    pub fn is_scripted(&self) -> bool {
        self.routes.values().any(|route| matches!(route, Route::Scripted(_)))
    }

    /// How calls ended: `ok`, or how the provider failed.
    pub fn outcomes(&self) -> Vec<(&'static str, u64)> {
        let outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.iter().map(|(kind, count)| (*kind, *count)).collect()
    }

    /// Requests sent to providers.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// The models that have a price.
    pub const fn models(&self) -> &Models {
        &self.models
    }

    /// The settings it goes by.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// What judging costs.
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The providers that can be asked.
    pub fn providers(&self) -> impl Iterator<Item = Provider> {
        self.routes.keys().copied()
    }

    /// Whether a provider can be asked.
    pub fn reaches(&self, provider: Provider) -> bool {
        self.routes.contains_key(&provider)
    }

    /// How a model is asked here.
    pub fn manner(&self, model: &Model, temperature: f64) -> Manner {
        let is_own = self.routes.get(&model.provider).is_some_and(Route::is_own);
        manner(model.provider, &model.name, temperature, is_own)
    }

    /// Asks, and settles what was set aside for it by what it did cost.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn ask<T>(
        &self,
        ask: &Ask<'_>,
        reserved: Reserved,
        read: impl Fn(&str) -> Result<T, Malformed>,
    ) -> Result<Said<T>, Failed> {
        let said = self.attempts(ask, read).await;
        let bill = said.as_ref().map_or_else(|failed| failed.bill, |said| said.bill);
        reserved.settle(bill.cost_usd);
        self.requests.fetch_add(bill.requests.into(), Ordering::Relaxed);
        let kind = said.as_ref().map_or_else(|failed| failed.kind.as_str(), |_| "ok");
        *self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default() += 1;
        said
    }

    async fn attempts<T>(&self, ask: &Ask<'_>, read: impl Fn(&str) -> Result<T, Malformed>) -> Result<Said<T>, Failed> {
        let mut bill = Bill::default();
        let failed = |kind, words: String, bill, retry_after_ms| Failed { kind, words, bill, retry_after_ms };
        let Some(route) = self.routes.get(&ask.model.provider) else {
            return Err(failed(Kind::Auth, "no key for this provider".to_owned(), bill, None));
        };
        let manner = self.manner(ask.model, ask.temperature);
        let Ok(Ok(_permit)) = tokio::time::timeout(ask.timeout, self.at_once.acquire()).await else {
            let words = "too many calls to providers at once; see judge.concurrency_max".to_owned();
            return Err(failed(Kind::RateLimit, words, bill, None));
        };
        let mut system = ask.prompt.system.clone();
        for left in (0..REQUESTS_MAX).rev() {
            let request = Request {
                provider: ask.model.provider,
                model: &ask.model.name,
                system: &system,
                user: &ask.prompt.user,
                output_tokens_max: ask.output_tokens_max,
                manner,
            };
            let began = Instant::now();
            let outcome = route.send(&request, ask.timeout).await;
            bill.latency += began.elapsed();
            bill.requests += 1;
            let at_most = tokens_at_most(&system).saturating_add(tokens_at_most(&ask.prompt.user));
            match outcome {
                Outcome::Answered(answer) => {
                    let (sent, received) = answer.usage.unwrap_or((at_most, ask.output_tokens_max));
                    bill.add(ask.model, sent, received);
                    match ruled(&answer, &read) {
                        Ok(value) => {
                            return Ok(Said { value, bill, id: answer.id, temperature: manner.temperature });
                        }
                        // Asking again for what was refused costs money and changes nothing.
                        Err(why) if left == 0 || why == Malformed::Refused => {
                            return Err(failed(Kind::MalformedResponse, why.to_string(), bill, None));
                        }
                        Err(_) => system = ask.prompt.stricter_system(),
                    }
                }
                Outcome::Unread if left > 0 => {
                    bill.add(ask.model, at_most, ask.output_tokens_max);
                    system = ask.prompt.stricter_system();
                }
                Outcome::Unread => {
                    bill.add(ask.model, at_most, ask.output_tokens_max);
                    let words = "the answer is none of this provider's".to_owned();
                    return Err(failed(Kind::MalformedResponse, words, bill, None));
                }
                Outcome::Broken(kind) => {
                    // Nobody knows what was charged for what did not arrive.
                    bill.add(ask.model, at_most, ask.output_tokens_max);
                    return Err(failed(kind, broken(kind).to_owned(), bill, None));
                }
                Outcome::Refused { kind, words, wait_ms } => {
                    let wait = wait_ms.map_or(WAIT_DEFAULT, Duration::from_millis);
                    if kind != Kind::RateLimit || left == 0 || wait > WAIT_MAX.min(ask.timeout) {
                        return Err(failed(kind, words, bill, wait_ms));
                    }
                    tokio::time::sleep(wait).await;
                }
            }
        }
        Err(failed(Kind::MalformedResponse, "no answer could be read".to_owned(), bill, None))
    }
}

const fn broken(kind: Kind) -> &'static str {
    match kind {
        Kind::Timeout => "no whole answer in time",
        _ => "the connection broke off",
    }
}

fn ruled<T>(answer: &Answer, read: impl Fn(&str) -> Result<T, Malformed>) -> Result<T, Malformed> {
    match answer.stop {
        Stop::Refused => Err(Malformed::Refused),
        Stop::Cut => Err(Malformed::Cut),
        Stop::End => read(&answer.text),
    }
}
