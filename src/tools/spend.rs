//! What asking models to judge cost, and the latest of those judgements.

use iris_core::contract::{Error, Scope};
use iris_core::model::Evaluation;

use super::{App, Caller};
use crate::store::EvaluationQuery;

/// Evaluations made by calls that are looked at, the newest first.
const LOOKED_AT_MAX: u32 = 200;

/// What judging costs a tenant.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spend {
    /// Who can be asked; empty while the judge is off.
    pub providers: Vec<&'static str>,
    /// It follows a script: nothing is paid.
    pub is_scripted: bool,
    /// What was spent is not known, so nothing is asked.
    pub is_unknown: bool,
    /// Spent or set aside since midnight UTC, in US dollars.
    pub today_usd: f64,
    /// What a day may cost all tenants together.
    pub ceiling_usd_day: Option<f64>,
    /// What a day may cost each.
    pub ceiling_usd_day_tenant: Option<f64>,
    /// What a call may cost.
    pub ceiling_usd_call: Option<f64>,
    /// Questions by how they ended, of all tenants since the start.
    pub outcomes: Vec<(&'static str, u64)>,
    /// Calls refused for a limit of the day, of all tenants since the start.
    pub refused: u64,
    /// The latest judgements of models, newest first, among the last evaluations made by calls.
    pub latest: Vec<Evaluation>,
}

impl App {
    /// What asking models to judge cost.
    ///
    /// # Errors
    /// `IRIS_STORAGE_ERROR`.
    pub async fn spend(&self, caller: &Caller) -> Result<Spend, Error> {
        caller.check("evaluations", Scope::Read)?;
        let query = EvaluationQuery { by_call: true, limit: LOOKED_AT_MAX, ..EvaluationQuery::default() };
        let store = &self.backend()?.store;
        let page = store.evaluation_page(&caller.tenant, &query).await.map_err(|error| self.failed(&error))?;
        let mut latest = page.items;
        latest.retain(|evaluation| evaluation.answered.is_some());
        let mut spend = Spend { latest, today_usd: self.judge_usd_today(caller), ..Spend::default() };
        match self.judging.as_deref() {
            None => spend.is_unknown = true,
            Some(judging) => {
                let (judge, config) = (judging.judge(), judging.judge().config());
                let now_ms = (self.world.now)().as_unix_nanos() / 1_000_000;
                spend.providers = judge.providers().map(iris_core::judge::Provider::as_str).collect();
                spend.is_scripted = judge.is_scripted();
                spend.ceiling_usd_day = judge.ledger().ceilings().day;
                spend.ceiling_usd_day_tenant = judge.ledger().ceilings().day_tenant;
                spend.ceiling_usd_call = config.ceiling_usd_call;
                spend.outcomes = judge.outcomes();
                spend.refused = judge.ledger().standing(now_ms).refused;
            }
        }
        Ok(spend)
    }
}
