//! What the two tools that ask a model stand on, and what is the same in both: who may judge, where a judgement is linked,
//! which limits hold, and how its row becomes a reply.

use std::time::Duration;

use iris_core::contract::{Error, EvaluateWithLlmJudgeArgs, VerifyCitationsArgs, Warning, parse};
use iris_core::evaluate::{GivenTexts, Identity, Judged, asked};
use iris_core::judge::{Kind, Model, Nonce, Provider, Redactor};
use iris_core::model::{Evaluation, Lane, Position, Tenant, Trace};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::bounds::{Cuts, Measure};
use super::{App, Caller, World, evaluation_value, marks};
use crate::fetch::{self, Fetcher, System};
use crate::judge::{self, Judge, Scripted};
use crate::store::ToolWrite;

/// The text of a reply whose citations are whole, in bytes, where no model reads it.
const REPLY_BYTES_MAX: usize = 1024 * 1024;

/// Names of cut values in a reply.
const NAMED_MAX: usize = 60;

/// Why no model can be asked where nothing was set up for it.
const NO_JUDGE: &str = "what it cost today cannot be read, so no limit would hold; the log says why";

/// The judge, the reader of sources, and their settings.
pub struct Judging {
    pub(super) judge: Judge,
    pub(super) fetcher: Fetcher,
    pub(super) citations: fetch::Config,
    at_once: Semaphore,
}

/// For whom a model is asked, in which world.
pub struct Place {
    pub(super) tenant: Tenant,
    pub(super) world: World,
}

impl Place {
    /// Of a tenant.
    pub const fn new(tenant: Tenant, world: World) -> Self {
        Self { tenant, world }
    }

    pub(super) fn now_ms(&self) -> u64 {
        (self.world.now)().as_unix_nanos() / 1_000_000
    }

    pub(super) fn nonce(&self) -> Nonce {
        let mut bytes = [0; 6];
        (self.world.random)(&mut bytes);
        Nonce::new(bytes)
    }
}

impl Judging {
    /// From a judge and the settings for citations.
    pub fn new(judge: Judge, citations: &fetch::Config) -> Self {
        let at_once = Semaphore::new(usize::from(judge.config().concurrency_max.max(1)));
        Self { judge, fetcher: Fetcher::new(citations, System), citations: citations.clone(), at_once }
    }

    /// One that follows a script, for demonstrations.
    ///
    /// # Errors
    /// When the prices of the configuration do not hold together.
    pub fn scripted(answers: impl IntoIterator<Item = String>) -> Result<Self, Vec<String>> {
        let models = iris_core::judge::Models::with(&iris_core::price::Config::default())?;
        let ledger = judge::Ledger::forgetful(judge::Ceilings::default());
        let judge = Judge::scripted(&judge::Config::default(), models, ledger, &Scripted::new(answers));
        Ok(Self::new(judge, &fetch::Config::default()))
    }

    /// The same with another way to look names up.
    #[cfg(test)]
    pub(crate) fn resolving(mut self, resolve: impl fetch::Resolve) -> Self {
        self.fetcher = Fetcher::new(&self.citations, resolve);
        self
    }

    /// The judge.
    pub const fn judge(&self) -> &Judge {
        &self.judge
    }

    /// The reader of sources.
    pub const fn fetcher(&self) -> &Fetcher {
        &self.fetcher
    }

    /// The model of that name, when it has a price and its provider can be asked.
    ///
    /// # Errors
    /// `IRIS_JUDGE_UNKNOWN_MODEL`, then `IRIS_JUDGE_NOT_ENABLED`.
    pub fn model(&self, name: &str, provider: Option<Provider>) -> Result<Model, Error> {
        let models = self.judge.models();
        let model = models.find(name, provider).ok_or_else(|| Error::judge_unknown_model(models.valid(provider)))?;
        if !self.judge.reaches(model.provider) {
            let why = match model.provider {
                Provider::Anthropic => "no key for Anthropic reached this process",
                Provider::OpenAi => "no key for OpenAI reached this process",
            };
            return Err(Error::judge_not_enabled(why));
        }
        Ok(model)
    }

    /// Waits until this call's turn comes: each holds its texts in memory several times over.
    ///
    /// # Errors
    /// `IRIS_PROVIDER_ERROR` of kind `rate_limit` when it does not come in time.
    pub(super) async fn turn(&self, within: Duration) -> Result<SemaphorePermit<'_>, Error> {
        match tokio::time::timeout(within, self.at_once.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => {
                let words = "too many calls at once; see judge.concurrency_max";
                Err(Error::provider_failed(Kind::RateLimit, words, 0.0, None))
            }
        }
    }

    /// Replaces personal data, when that is configured.
    pub(super) fn redactor(&self) -> Option<Redactor> {
        self.judge.config().redact.then(Redactor::default)
    }

    /// How long one request may take.
    pub(super) fn timeout(&self, asked: Option<i64>, otherwise_ms: u64, warnings: &mut Vec<Warning>) -> Duration {
        let most = self.judge.config().request_ms_max;
        let bound = Bound { field: "timeout_ms", setting: "judge.request_ms_max", unit: "ms", most };
        Duration::from_millis(bound.of(asked, otherwise_ms, warnings))
    }

    /// What the provenance of both tools says of the judge.
    pub(super) fn provenance(&self, model: &Model, redactor: Option<&Redactor>, warnings: &[Warning]) -> Value {
        let mut told = json!({
            "model": model.name,
            "provider": model.provider,
            "scripted": self.judge.is_scripted(),
            "redacted": redactor.is_some(),
            "narrowed": warnings,
        });
        if let Some(redactor) = redactor {
            told["redactedValues"] = json!(redactor.values());
        }
        told
    }

    /// What `iris://capabilities` says of it.
    pub(super) fn capabilities(&self) -> (Value, Value) {
        let providers: Vec<Provider> = self.judge.providers().collect();
        let config = self.judge.config();
        let judge = json!({
            "enabled": !providers.is_empty(), "provider": providers.first(), "providers": providers,
            "costCapUsd": config.ceiling_usd_call.map_or(config.default_usd_call, |most| most.min(config.default_usd_call)),
            "ceilingUsdCall": config.ceiling_usd_call, "ceilingUsdDay": config.ceiling_usd_day,
            "ceilingUsdDayTenant": config.ceiling_usd_day_tenant,
            "redact": config.redact, "scripted": self.judge.is_scripted(),
        });
        let citations = json!({
            "fetchAllowed": self.citations.may_fetch(None), "fetchAllowedOnRequest": self.citations.may_fetch(Some(true)),
            "domainsRestricted": !self.citations.allow_domains.is_empty(),
        });
        (judge, citations)
    }
}

/// An argument in whole units that a setting bounds.
pub(super) struct Bound {
    pub field: &'static str,
    pub setting: &'static str,
    pub unit: &'static str,
    pub most: u64,
}

impl Bound {
    /// What holds: what was asked for, or the default, and never more than the setting.
    pub fn of(&self, asked: Option<i64>, otherwise: u64, warnings: &mut Vec<Warning>) -> u64 {
        let wanted = asked.and_then(|asked| u64::try_from(asked).ok());
        if wanted.is_some_and(|wanted| wanted > self.most) {
            warnings.push(Warning::narrowed(self.field, self.setting, format!("{} {}", self.most, self.unit)));
        }
        wanted.unwrap_or(otherwise).min(self.most)
    }
}

/// How much one call may cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Purse {
    /// In US dollars.
    pub usd: f64,
    /// The setting that says so, when it is not the argument.
    pub setting: Option<&'static str>,
}

/// The settings around an argument about money.
pub(super) struct Money {
    pub field: &'static str,
    pub default: (&'static str, f64),
    pub ceiling: (&'static str, Option<f64>),
}

impl Money {
    /// What holds: what was asked for, or the default, and never more than the ceiling.
    pub fn of(&self, asked: Option<f64>, warnings: &mut Vec<Warning>) -> Purse {
        let wanted = asked.unwrap_or(self.default.1);
        let (setting, most) = self.ceiling;
        match most.filter(|most| *most < wanted) {
            Some(most) => {
                if asked.is_some() {
                    warnings.push(Warning::narrowed(self.field, setting, format!("{most} US dollars")));
                }
                Purse { usd: most, setting: Some(setting) }
            }
            None => Purse { usd: wanted, setting: asked.is_none().then_some(self.default.0) },
        }
    }
}

impl App {
    /// What asking models cost the caller's tenant today, in US dollars.
    pub(super) fn judge_usd_today(&self, caller: &Caller) -> f64 {
        let now_ms = (self.world.now)().as_unix_nanos() / 1_000_000;
        self.judging.as_ref().map_or(0.0, |judging| judging.judge.ledger().today_usd(&caller.tenant, now_ms))
    }

    pub(super) fn judging(&self) -> Result<&Judging, Error> {
        self.judging.as_deref().ok_or_else(|| Error::judge_not_enabled(NO_JUDGE))
    }

    /// The trace that a judgement is linked to, looked up before anything is spent.
    pub(super) async fn linked(&self, trace_id: Option<&str>, caller: &Caller) -> Result<Option<Trace>, Error> {
        self.backend()?;
        match trace_id {
            Some(id) => self.find(super::trace_id(id)?, caller).await.map(Some),
            None => Ok(None),
        }
    }

    /// Stores what another process of this home had judged; without a judgement says whether one could be stored, and
    /// what of the arguments may be looked at when that is not all of it.
    ///
    /// # Errors
    /// As the tool of that name, but for what its judge fails with.
    pub async fn keep_made(
        &self,
        name: &str,
        arguments: Value,
        judged: Option<Judged>,
        caller: &Caller,
    ) -> Result<Value, Error> {
        self.admit(name, caller)?;
        let arguments = self.redacted(name, arguments).await?;
        let shown = self.facts.redactor.is_some().then(|| arguments.clone());
        let (trace_id, output, input, expected) = if name == "verify_citations" {
            let args: VerifyCitationsArgs = parse(arguments)?;
            (args.trace_id, args.output, None, None)
        } else {
            let args: EvaluateWithLlmJudgeArgs = parse(arguments)?;
            (args.trace_id, args.output, args.input, args.expected)
        };
        let trace = self.linked(trace_id.as_deref(), caller).await?;
        let Some(judged) = judged else { return Ok(json!({ "storable": true, "arguments": shown })) };
        let given = GivenTexts { output: &output, input: input.as_deref(), expected: expected.as_deref() };
        self.keep_judged(judged, given, trace.as_ref(), caller).await.map(|reply| self.shown(reply))
    }

    /// Makes the row of a judgement, stores it, and tells what it says.
    pub(super) async fn keep_judged(
        &self,
        judged: Judged,
        given: GivenTexts<'_>,
        trace: Option<&Trace>,
        caller: &Caller,
    ) -> Result<Value, Error> {
        let judged = self.redacted_judgement(judged).await?;
        let position = Position { lane: Lane::Traces, seq: 0, ordinal: 0 };
        let identity = Identity {
            id: self.new_evaluation_id(),
            tenant: caller.tenant.clone(),
            trace_id: trace.map(|trace| trace.trace_id),
            trace_version: trace.map(|trace| trace.version),
            seen_through: trace.map_or(0, |trace| trace.seen_through),
            position: Some(position),
            inline: false,
        };
        let ruleset = self.rulebook.snapshot(&caller.tenant);
        let evaluation = asked(&ruleset, &self.settings, judged, given, identity, (self.world.now)());
        self.keep(ToolWrite::Evaluation { evaluation: evaluation.clone(), position }, caller).await?;
        Ok(told(&evaluation, caller))
    }
}

/// Work beside the sockets that did not come back.
pub(super) fn broke(error: &tokio::task::JoinError) -> Error {
    tracing::error!(%error, "a judgement could not be prepared");
    Error::internal("judge")
}

/// A judgement as the tool that made it answers.
pub fn told(evaluation: &Evaluation, caller: &Caller) -> Value {
    let mut reply = evaluation.answered.clone().unwrap_or_default();
    reply["provenance"] = evaluation.provenance.clone();
    let marked = marks::of_answer(&reply);
    marks::mark(&mut reply, &marked);
    bound(&mut reply, caller);
    reply
}

/// A stored evaluation as it is read again; what a model was asked is told as its tool answered.
pub(super) fn read_again(evaluation: &Evaluation, caller: &Caller) -> Result<Value, serde_json::Error> {
    let mut reply = evaluation_value(evaluation)?;
    bound(&mut reply, caller);
    Ok(reply)
}

/// Cuts citations so that the reply stays within what its reader takes.
fn bound(reply: &mut Value, caller: &Caller) {
    let Some(Value::Array(citations)) = reply.get_mut("citations") else { return };
    let whole: Vec<&Value> = citations.iter().collect();
    let measure = Measure::fitting(&whole, caller.reply_bytes(REPLY_BYTES_MAX), None);
    let mut cuts = Cuts::naming(NAMED_MAX);
    for (at, citation) in citations.iter_mut().enumerate() {
        measure.cut(citation, &format!("citations[{at}]"), &mut cuts);
    }
    let names = cuts.into_names();
    if names.is_empty() {
        return;
    }
    match reply.get_mut("truncated") {
        Some(Value::Array(truncated)) => truncated.extend(names.into_iter().map(Value::String)),
        _ => reply["truncated"] = json!(names),
    }
}

/// Whether a warning says that an argument was cut.
#[cfg(test)]
pub(super) fn is_narrowed(warning: &Value, field: &str, setting: &str) -> bool {
    warning["code"] == iris_core::contract::ARGUMENT_NARROWED
        && warning["field"] == field
        && warning["setting"] == setting
}
