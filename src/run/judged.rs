//! The judge as it starts, and what the ops door tells of it.

use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;
use iris_core::judge::Models;
use serde_json::{Value, json};

use crate::config::Config;
use crate::judge::{Judge, Ledger};
use crate::ops::{Family, Kind};
use crate::tools::Judging;

/// What the two paid tools stand on: what is given, else what is configured.
pub(super) async fn start(
    given: Option<Judging>,
    config: &Config,
    home: &Path,
) -> anyhow::Result<Option<Arc<Judging>>> {
    match given {
        Some(given) => Ok(Some(Arc::new(given))),
        None => judging(config, home).await,
    }
}

/// What the two paid tools stand on in a process of this configuration, if anything.
///
/// # Errors
/// When a key cannot be read or prices do not hold together.
pub async fn judging(config: &Config, home: &Path) -> anyhow::Result<Option<Arc<Judging>>> {
    let (config, home) = (config.clone(), home.to_owned());
    Ok(tokio::task::spawn_blocking(move || configured(&config, &home)).await??.map(Arc::new))
}

/// None when what was spent today cannot be read: without it the limits of the day would begin anew.
fn configured(config: &Config, home: &Path) -> anyhow::Result<Option<Judging>> {
    let settings = config.judge();
    let models = Models::with(&config.cost).map_err(|problems| anyhow!("cost: {}", problems.join("; ")))?;
    let ledger = match Ledger::open(home, settings.ceilings()) {
        Ok(ledger) => ledger,
        Err(error) => {
            tracing::error!(%error, "spend.json in the home folder cannot be read: no model is asked until it is repaired or removed");
            return Ok(None);
        }
    };
    let judge = Judge::new(&settings, models, ledger).map_err(|why| anyhow!("judge: {why}"))?;
    Ok(Some(Judging::new(judge, &config.citations())))
}

/// Its counters.
pub(super) fn families(judging: &Judging, now_ms: u64) -> Vec<Family> {
    let standing = judging.judge().ledger().standing(now_ms);
    let micros = |nanos: u64| nanos.div_ceil(1000);
    let owned = |counts: Vec<(&'static str, u64)>| {
        counts.into_iter().map(|(one, count)| (one.to_owned(), count)).collect::<Vec<_>>()
    };
    let one = |name, help, kind, value| Family::one(name, help, kind, value);
    let calls = "Questions to models by how they ended";
    let fetches = "Sources of citations by how reading them ended";
    vec![
        one(
            "iris_judge_spent_microdollars",
            "Millionths of a US dollar spent on models that judge",
            Kind::Counter,
            micros(standing.spent_nanos),
        ),
        one(
            "iris_judge_today_microdollars",
            "Millionths of a US dollar spent or set aside since midnight UTC",
            Kind::Gauge,
            micros(standing.today_nanos),
        ),
        one("iris_judge_requests", "Requests sent to providers", Kind::Counter, judging.judge().requests()),
        one("iris_judge_refused_calls", "Questions refused for a limit of the day", Kind::Counter, standing.refused),
        one(
            "iris_judge_ledger_failures",
            "Times that what was spent could not be written down",
            Kind::Counter,
            standing.failures,
        ),
        Family::by("iris_judge_calls", calls, Kind::Counter, &["outcome"], owned(judging.judge().outcomes())),
        Family::by("iris_citation_fetches", fetches, Kind::Counter, &["outcome"], owned(judging.fetcher().outcomes())),
    ]
}

/// Its state.
pub(super) fn state(judging: Option<&Judging>, now_ms: u64) -> Value {
    let Some(judging) = judging else { return json!({ "state": "spend.json cannot be read" }) };
    let (judge, dollars) = (judging.judge(), |nanos: u64| nanos as f64 / 1e9);
    let (standing, ceilings) = (judge.ledger().standing(now_ms), judge.ledger().ceilings());
    let providers: Vec<_> = judge.providers().collect();
    json!({
        "state": if providers.is_empty() { "off" } else { "on" },
        "providers": providers, "scripted": judge.is_scripted(),
        "spent_usd": dollars(standing.spent_nanos), "today_usd": dollars(standing.today_nanos),
        "ceiling_usd_day": ceilings.day, "ceiling_usd_day_tenant": ceilings.day_tenant,
        "refused": standing.refused, "ledger_failures": standing.failures,
    })
}
