//! The pure half, and what is asked of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use iris_core::assemble::{self, Settling, View};
use iris_core::dialect;
use iris_core::evaluate::{self, Given, Ruleset, Settings};
use iris_core::model::{Evaluation, RawLog, RawSpan, Reading, Row, RowKey, SpanId, Tenant, Timestamp, Trace};
use iris_core::price::Prices;

use crate::ingest::costs::Costs;

/// So many traces are judged first by a process, and each may take as many budgets: what the rules look for is compiled
/// when it is first needed, and the trace that happens to need it first must not be called defeated for that.
const PREPARING: u32 = 32;
const PREPARING_BUDGETS: u64 = 16;

/// A judged trace whose evaluation is committed.
#[derive(Debug, Clone)]
pub struct Judging {
    /// Which.
    pub key: RowKey,
    /// The spans that are its runs, in order of start.
    pub run_spans: Vec<SpanId>,
    /// What was said of it.
    pub evaluation: Arc<Evaluation>,
    /// What was said before, when it was judged before.
    pub previous: Option<Arc<Evaluation>>,
}

/// Judges a trace with the rules in force. For one that is `in_progress` what is missing is no finding.
pub type Judge = Arc<dyn Fn(&Trace) -> Evaluation + Send + Sync>;
/// The trace that rows make, with the version it has.
pub type Understand = Arc<dyn Fn(&RowKey, u32, &[Arc<Row>]) -> Option<Trace> + Send + Sync>;
/// Told of a judged trace after its commit. Must not wait.
pub type Tell = Arc<dyn Fn(&Judging) + Send + Sync>;

/// What the pipeline asks of the pure half, as functions: tests put in ones that panic.
#[derive(Clone)]
pub struct Mind {
    /// What the dialects read from a span.
    pub read_span: fn(&RawSpan) -> Reading,
    /// What the dialects read from a log record; nothing when none does.
    pub read_log: fn(&RawLog) -> Option<Reading>,
    /// The span that a log record stands for by itself; nothing when it belongs to a span or no dialect knows it so.
    pub step_of: fn(&RawLog) -> Option<RawSpan>,
    /// The trace that rows make; nothing when no agent, model call, embedding or tool is among them.
    pub understand: Understand,
    /// The rules in force.
    pub judge: Judge,
    /// Carries into a new judging what the one before saw and no later span can take back.
    pub stand: fn(&Evaluation, Evaluation) -> Evaluation,
    /// Told of every judged trace, in order.
    pub judged: Option<Tell>,
    /// What the newest runs of each agent cost.
    pub costs: Costs,
}

impl Mind {
    /// The real one: all dialects, and for every judging the rules in force then.
    pub fn new(
        ruleset: impl Fn(&Tenant) -> Arc<Ruleset> + Send + Sync + 'static,
        settings: Arc<Settings>,
        now: fn() -> Timestamp,
    ) -> Self {
        let costs = Costs::default();
        let known = costs.clone();
        let unprepared = AtomicU32::new(PREPARING);
        let judge = move |trace: &Trace| {
            let ruleset = ruleset(&trace.tenant);
            let judge = if trace.in_progress { evaluate::provisional_within } else { evaluate::judge_trace_within };
            let first = unprepared.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
            let times = if first { PREPARING_BUDGETS } else { 1 };
            let (begun, budget) = (spent(), Duration::from_millis(settings.budget_ms.saturating_mul(times)));
            let is_spent = || !budget.is_zero() && spent().saturating_sub(begun) >= budget;
            let cost_history = known.before(trace);
            judge(&ruleset, trace, &settings, &Given { now: now(), cost_history: &cost_history, is_spent: &is_spent })
        };
        Self {
            read_span: dialect::read_span,
            read_log: dialect::read_log,
            step_of: dialect::step_of,
            understand: Arc::new(assemble::understand),
            judge: Arc::new(judge),
            stand: evaluate::stand,
            judged: None,
            costs,
        }
    }

    /// The same with prices of model calls other than the list's.
    #[must_use]
    pub fn priced(self, prices: Prices) -> Self {
        let understand =
            move |key: &RowKey, version: u32, rows: &[Arc<Row>]| assemble::understand_with(key, version, rows, &prices);
        Self { understand: Arc::new(understand), ..self }
    }

    /// Understands and judges a settled trace.
    pub(super) fn settle(&self, settling: &Settling) -> Option<(Box<Trace>, Box<Evaluation>)> {
        let mut trace = (self.understand)(&settling.key, settling.version, &settling.rows)?;
        trace.partial |= settling.partial;
        if settling.cut {
            trace.note_cut();
        }
        trace.seen_through = settling.seen_through;
        let mut evaluation = (self.judge)(&trace);
        evaluation.seen_through = settling.seen_through;
        if let Some(previous) = &settling.previous {
            evaluation = (self.stand)(previous, evaluation);
        }
        self.costs.remember(&trace);
        Some((Box::new(trace), Box::new(evaluation)))
    }

    /// Understands and judges a trace as it stands.
    pub(super) fn provisional(&self, view: &View) -> Option<(Trace, Evaluation)> {
        let mut trace = (self.understand)(&view.key, view.version, &view.rows)?;
        trace.in_progress = true;
        if view.cut {
            trace.note_cut();
        }
        trace.seen_through = view.seen_through;
        let mut evaluation = (self.judge)(&trace);
        // Of one that is judged as it stands, the last evaluation is its own.
        if let Some(previous) = view.previous.as_ref().filter(|_| !view.judged) {
            evaluation = (self.stand)(previous, evaluation);
        }
        Some((trace, evaluation))
    }
}

/// Processor time of this thread: a pod that has to wait for its share must not judge otherwise than one that has not.
fn spent() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let part = |value: i64| u64::try_from(value).unwrap_or_default();
    Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
}
