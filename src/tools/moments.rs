//! What failed, the most telling first: each trace with what its evaluations said and why it deserves a look.

use std::collections::{BTreeSet, HashMap, HashSet};

use iris_core::contract::{Error, Scope};
use iris_core::evaluate::{self, Around, MomentKind, Verdict};
use iris_core::model::{EvalType, Evaluation, Trace, TraceId, VerdictState};

use super::figures::{Period, window};
use super::{App, Caller};
use crate::store::{Budget, PageRow, TraceQuery};

/// Failed traces that are looked at, the newest first.
pub const LOOKED_AT_MAX: u32 = 200;

/// Failures of an agent that must be there before another set of rules counts as new.
const COMPARED_MIN: usize = 5;

/// A trace that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Moment {
    /// The trace; long texts in it are cut.
    pub trace: Trace,
    /// Why it deserves a look.
    pub kind: MomentKind,
    /// How much, now.
    pub rank: f64,
    /// Its latest verdict.
    pub verdict: Verdict,
    /// The rules that the latest evaluation failed.
    pub failed: Vec<String>,
    /// How many of its rules were skipped.
    pub skipped: usize,
    /// How many of its rules passed.
    pub passed: usize,
}

/// The failures of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Failures {
    /// The window.
    pub period: Period,
    /// The most telling first.
    pub moments: Vec<Moment>,
    /// How many failed traces there are in the window; the newest [`LOOKED_AT_MAX`] were ranked.
    pub total: u64,
}

impl App {
    /// The failed traces of a window, the most telling first; `None` for the shortest window that shows enough.
    ///
    /// # Errors
    /// `IRIS_STORAGE_ERROR`.
    pub async fn failures(&self, period: Option<Period>, caller: &Caller) -> Result<Failures, Error> {
        caller.check("traces", Scope::Read)?;
        let now = (self.world.now)();
        let period = self.period(period, now, caller).await?;
        let query = TraceQuery {
            since: Some(window(period, now, Vec::new()).since),
            verdict: Some(VerdictState::Fail),
            limit: LOOKED_AT_MAX,
            ..TraceQuery::default()
        };
        let store = &self.backend()?.store;
        // Long values are no part of a list.
        let budget = Budget { bytes: 0, shrink: |document| super::bounds::Measure::CUT.cut_field(document) };
        let page = store.traces(&caller.tenant, &query, budget).await.map_err(|error| self.failed(&error))?;
        let ids: Vec<TraceId> = page.rows.iter().map(|row| row.trace.trace_id).collect();
        let said = store.said(&caller.tenant, &ids).await.map_err(|error| self.failed(&error))?;
        let mut by_trace: HashMap<TraceId, Vec<(EvalType, VerdictState)>> = HashMap::new();
        for (id, bundle, state) in said {
            by_trace.entry(id).or_default().push((bundle, state));
        }
        let total = page.total;
        let ranked = tokio::task::spawn_blocking(move || ranked(page.rows, &by_trace, now));
        let moments = ranked.await.map_err(|error| self.unforeseen(&error))?;
        Ok(Failures { period, moments, total })
    }
}

fn ranked(
    rows: Vec<PageRow>,
    said: &HashMap<TraceId, Vec<(EvalType, VerdictState)>>,
    now: iris_core::model::Timestamp,
) -> Vec<Moment> {
    let new = new_patterns(&rows);
    let mut moments: Vec<Moment> = rows
        .into_iter()
        .filter_map(|row| {
            let evaluation = row.evaluation?;
            let around = Around {
                cost_usd: row.trace.cost_usd,
                said: said.get(&row.trace.trace_id).map(Vec::as_slice).unwrap_or_default(),
                is_new: new.contains(&row.trace.trace_id),
            };
            let kind = evaluate::moment(&evaluation, around);
            let rank = evaluate::rank(kind, now.since(row.trace.timestamp));
            let skipped = evaluation.rule_results.iter().filter(|result| result.skipped).count();
            let failed = failed_rules(&evaluation);
            let passed = evaluation.rule_results.len() - skipped - failed.len();
            let verdict = evaluate::decide(&evaluation);
            Some(Moment { trace: row.trace, kind, rank, verdict, failed, skipped, passed })
        })
        .collect();
    moments.sort_by(|one, two| two.rank.total_cmp(&one.rank));
    moments
}

/// The names of the rules that an evaluation failed.
pub fn failed_rules(evaluation: &Evaluation) -> Vec<String> {
    let failed = evaluation.rule_results.iter().filter(|result| !result.passed && !result.skipped);
    failed.map(|result| result.rule_name.to_string()).collect()
}

/// The traces whose set of failed rules their agent had not failed before, once it had failed often enough to say so.
fn new_patterns(rows: &[PageRow]) -> HashSet<TraceId> {
    let mut seen: HashMap<&str, (usize, HashSet<BTreeSet<String>>)> = HashMap::new();
    let mut new = HashSet::new();
    // They come newest first.
    for row in rows.iter().rev() {
        let Some(evaluation) = &row.evaluation else { continue };
        let (times, sets) = seen.entry(&row.trace.agent_name).or_default();
        let set: BTreeSet<String> = failed_rules(evaluation).into_iter().collect();
        if sets.insert(set) && *times >= COMPARED_MIN {
            new.insert(row.trace.trace_id);
        }
        *times += 1;
    }
    new
}
