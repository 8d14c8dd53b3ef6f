//! What the rows of traces say of verdicts, beside what their evaluations say.

use std::collections::BTreeMap;
use std::time::Duration;

use iris_core::contract::SortBy;
use iris_core::model::{Evaluation, RuleResult, Tenant, Timestamp, Trace, TraceId, VerdictState};
use serde_json::json;

use super::fixtures::*;
use super::pages::judge;
use crate::store::{self, Budget, By, Step, Store, ToolWrite, TraceQuery, Window};

const RULES: [&str; 4] = ["no_pii", "no_injection", "min_length", "a,\"b"];
const STATES: [VerdictState; 3] = [VerdictState::Pass, VerdictState::Fail, VerdictState::Unknown];

fn failed(rule: &str) -> RuleResult {
    serde_json::from_value(json!({
        "ruleName": rule, "category": "safety", "critical": false, "criticalSource": "default", "state": "fail", "passed": false,
        "score": 0.0, "message": "m", "kind": "detection", "question": "safe_output", "classes": [], "ruleVersion": 1, "saw": [], "weight": 1.0,
    }))
    .unwrap()
}

/// What was stored, as a plain list.
#[derive(Default)]
struct Book {
    /// By trace: tenant and newest version.
    traces: BTreeMap<TraceId, Trace>,
    /// In the order of storing.
    evaluations: Vec<Evaluation>,
}

impl Book {
    /// The latest evaluation with a score, among those made since then.
    fn latest(&self, trace: &Trace, since: Timestamp) -> Option<&Evaluation> {
        let micros = |time: Timestamp| time.as_unix_nanos() / 1000;
        let of_it = self
            .evaluations
            .iter()
            .filter(|one| one.trace_id == Some(trace.trace_id) && one.tenant == trace.tenant && !one.judged_nothing());
        // The last of those made in the same microsecond.
        of_it.filter(|one| micros(one.created_at) >= micros(since)).max_by_key(|one| micros(one.created_at))
    }

    fn of<'a>(&'a self, tenant: &'a Tenant) -> impl Iterator<Item = &'a Trace> {
        self.traces.values().filter(move |trace| trace.tenant == *tenant)
    }

    /// The newest first, as a page shows them.
    fn found(&self, tenant: &Tenant, fits: impl Fn(&Trace, Option<&Evaluation>) -> bool) -> Vec<TraceId> {
        let all = self.of(tenant).filter(|trace| fits(trace, self.latest(trace, Timestamp::default())));
        let mut all: Vec<&Trace> = all.collect();
        all.sort_by_key(|trace| (std::cmp::Reverse(trace.timestamp), trace.trace_id));
        all.into_iter().map(|trace| trace.trace_id).collect()
    }
}

fn judged(dice: &mut Dice, trace: &Trace, id: u64) -> Evaluation {
    let state = STATES[dice.roll(3) as usize];
    let rules = if state == VerdictState::Fail { 1 + dice.roll(2) } else { 0 };
    let rule_results = (0..rules).map(|_| failed(RULES[dice.roll(4) as usize])).collect();
    let score = dice.roll(101) as f64 / 100.0;
    // No two of the same microsecond.
    let created_at = at(dice.roll(4000)).after(Duration::from_micros(id));
    let tenant = trace.tenant.clone();
    let trace_id = Some(trace.trace_id);
    Evaluation { state, rule_results, created_at, tenant, trace_id, ..evaluation(1, &format!("e-{id}"), score) }
}

/// Traces of two tenants in one to three versions, by spans and by tools, judged with their rows, by themselves, again and
/// again, or never, in no order of time; some are deleted.
async fn filled(store: &Store, dice: &mut Dice) -> Book {
    let mut book = Book::default();
    let mut seq = 0;
    for n in 1..=300 {
        let tenant = if n % 5 == 0 { Tenant::new("red") } else { Tenant::local() };
        let model = (dice.roll(4) > 0).then(|| format!("m-{}", dice.roll(3)));
        let mut one = Trace {
            tenant,
            model,
            agent_name: format!("agent-{}", dice.roll(4)),
            timestamp: at(dice.roll(4000)),
            cost_usd: (dice.roll(3) > 0).then_some(0.25),
            latency_ms: (dice.roll(5) > 0).then(|| dice.roll(1000) as f64),
            ..trace(n, 1)
        };
        seq += 1;
        let by_tool = dice.roll(3) == 0;
        if by_tool {
            let write = ToolWrite::Trace { trace: one.clone(), spans: Vec::new(), position: position(seq, 0) };
            store.send_async(store::Write::Tool(Box::new(write))).await.unwrap();
        } else {
            // Some came back after their first versions were deleted.
            let first = 1 + dice.roll(8) / 7;
            for version in first..=first + dice.roll(10) / 7 * (1 + dice.roll(2)) {
                one.version = u32::try_from(version).unwrap();
                let evaluation = judged(dice, &one, n * 10 + version);
                judge(store, one.clone(), evaluation.clone()).await;
                book.evaluations.push(evaluation);
            }
        }
        let alone = if by_tool { dice.roll(3) } else { dice.roll(5) / 3 };
        for again in 0..alone {
            seq += 1;
            if dice.roll(4) == 0 {
                store.flush().await.unwrap();
            }
            let evaluation = judged(dice, &one, n * 10 + 5 + again);
            let write = ToolWrite::Evaluation { evaluation: evaluation.clone(), position: position(seq, 0) };
            store.send_async(store::Write::Tool(Box::new(write))).await.unwrap();
            book.evaluations.push(evaluation);
        }
        if dice.roll(20) == 0 {
            seq += 1;
            let (tenant, trace_id) = (one.tenant.clone(), one.trace_id);
            let write = ToolWrite::Deletion { tenant, trace_id, position: position(seq, 0) };
            store.flush().await.unwrap();
            store.send_async(store::Write::Tool(Box::new(write))).await.unwrap();
        } else {
            book.traces.insert(one.trace_id, one);
        }
    }
    store.flush().await.unwrap();
    book
}

async fn same_pages(store: &Store, book: &Book, tenant: &Tenant) {
    let all = || TraceQuery { limit: 1000, ..TraceQuery::default() };
    let page = async |query: TraceQuery| {
        let page = store.traces(tenant, &query, Budget::WHOLE).await.unwrap();
        assert_eq!(page.total as usize, page.rows.len(), "{query:?}");
        page.rows.into_iter().map(|row| (row.trace.trace_id, row.evaluation)).collect::<Vec<_>>()
    };
    let ids = |rows: &[(TraceId, Option<Evaluation>)]| rows.iter().map(|(id, _)| *id).collect::<Vec<_>>();
    let found = page(TraceQuery { sort_by: SortBy::Timestamp, ..all() }).await;
    assert_eq!(ids(&found), book.found(tenant, |_, _| true));
    for (id, evaluation) in found {
        let latest = book.latest(&book.traces[&id], Timestamp::default());
        assert_eq!(evaluation.map(|one| one.id), latest.map(|one| one.id.clone()), "{id}");
    }
    for state in STATES {
        let found = page(TraceQuery { verdict: Some(state), ..all() }).await;
        let expected = book.found(tenant, |_, latest| latest.is_some_and(|one| one.state == state));
        assert_eq!(ids(&found), expected, "{state:?}");
        assert!(!expected.is_empty());
    }
    for rule in RULES {
        let found = page(TraceQuery { rule: Some(rule.to_owned()), ..all() }).await;
        let has = |one: &Evaluation| one.rule_results.iter().any(|result| result.rule_name == rule);
        assert_eq!(ids(&found), book.found(tenant, |_, latest| latest.is_some_and(has)), "{rule}");
    }
    let agent = "agent-2".to_owned();
    let query = TraceQuery { min_score: Some(0.25), max_score: Some(0.75), agent_name: Some(agent.clone()), ..all() };
    let fits = |trace: &Trace, latest: Option<&Evaluation>| {
        trace.agent_name == agent && latest.is_some_and(|one| (0.25..=0.75).contains(&one.score))
    };
    assert_eq!(ids(&page(query).await), book.found(tenant, fits));
}

async fn same_figures(store: &Store, book: &Book, tenant: &Tenant) {
    for (since, until) in [(0, 4100), (1000, 3000)] {
        let window = Window { since: at(since), until: at(until), names: Vec::new() };
        let found = store.series(tenant, &window, Step::Hour, By::Model).await.unwrap();
        let of = |fits: &dyn Fn(&Trace, Option<&Evaluation>) -> bool| {
            let all = book.of(tenant).filter(|trace| (window.since..=window.until).contains(&trace.timestamp));
            all.filter(|trace| fits(trace, book.latest(trace, window.since))).count() as u64
        };
        let state = |wanted| of(&|_, latest| latest.is_some_and(|one| one.state == wanted));
        let total = &found.total;
        assert_eq!(total.traces, of(&|_, _| true));
        assert_eq!([total.passed, total.failed, total.unknown], STATES.map(state));
        let of_model = |name: &Option<String>| of(&|trace, _| trace.model == *name);
        for (name, figures) in &found.names {
            assert_eq!(figures.traces, of_model(name), "{name:?}");
            let failed =
                of(&|trace, latest| trace.model == *name && latest.is_some_and(|one| one.state == VerdictState::Fail));
            assert_eq!(figures.failed, failed, "{name:?}");
        }
        assert_eq!(found.points.iter().map(|(_, one)| one.passed).sum::<u64>(), total.passed);
        for (rule, times) in &found.rules {
            // A rule that failed twice in one evaluation is named twice.
            let named = |one: &Evaluation| one.rule_results.iter().filter(|result| result.rule_name == *rule).count();
            let all = book.of(tenant).filter(|trace| (window.since..=window.until).contains(&trace.timestamp));
            let sum: usize = all.filter_map(|trace| book.latest(trace, window.since)).map(named).sum();
            assert_eq!(*times, sum as u64, "{rule}");
        }
    }
}

/// Evaluations of traces that are there, whose verdicts are still to be brought into the rows of those.
async fn apart(store: &Store) -> u64 {
    let sql = "SELECT count(*) FROM evaluations WHERE NOT with_trace AND score IS NOT NULL \
               AND (tenant, trace_id) IN (SELECT tenant, trace_id FROM traces)";
    let count = store.read(|reader| reader.first(sql, &[], |row| row.get(0).map_err(store::Error::engine)));
    count.await.unwrap().unwrap()
}

async fn none_apart(store: &Store) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while apart(store).await > 0 {
        assert!(tokio::time::Instant::now() < deadline, "verdicts are still apart from their traces after 20 s");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Scenario: hundreds of traces as they come and are judged in all ways, before and after another start, and after the file
/// forgot what the rows say of verdicts, as one has them that an earlier version wrote; each while verdicts are apart from
/// their traces, and once they were brought together.
/// Guarantees: pages by every filter of verdicts and the figures are those of a plain computation, for each tenant.
#[test]
fn rows_and_evaluations_say_the_same_of_verdicts() {
    for seed in [0x2545_f491_4f6c_dd1d, 77, 4_294_967_291] {
        let home = tempfile::tempdir().unwrap();
        runtime().block_on(async {
            let (mut store, _) = open(home.path());
            let book = filled(&store, &mut Dice(seed)).await;
            for time in ["at first", "after a start", "as an earlier version left it"] {
                if time == "at first" {
                    assert!(apart(&store).await > 50, "all wait to be asked");
                }
                for tenant in [Tenant::local(), Tenant::new("red")] {
                    same_pages(&store, &book, &tenant).await;
                    same_figures(&store, &book, &tenant).await;
                }
                if time != "at first" {
                    none_apart(&store).await;
                    for tenant in [Tenant::local(), Tenant::new("red")] {
                        same_pages(&store, &book, &tenant).await;
                        same_figures(&store, &book, &tenant).await;
                    }
                }
                store.checkpoint().await.unwrap();
                store.close(Duration::from_secs(20)).await.unwrap();
                if time == "after a start" {
                    let connection = store::open::engine(home.path(), &config()).unwrap();
                    let apart = "UPDATE traces SET verdict_at = NULL, verdict_score = NULL, verdict_state = NULL, verdict_rules = NULL; \
                                 UPDATE evaluations SET with_trace = false; CHECKPOINT";
                    connection.execute_batch(apart).unwrap();
                }
                store = open(home.path()).0;
            }
        });
    }
}

/// Scenario: more evaluations than one bite of which the traces are not there, before one of a trace that is.
/// Guarantees: what has no row to be brought into is passed over, and asked for nothing.
#[test]
fn evaluations_without_a_trace_hold_up_nothing() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        for n in 1..=1500 {
            let one = Evaluation { trace_id: Some(trace_id(9000 + n)), ..evaluation(n, &format!("nowhere-{n}"), 0.5) };
            let write = ToolWrite::Evaluation { evaluation: one, position: position(n, 0) };
            store.send_async(store::Write::Tool(Box::new(write))).await.unwrap();
        }
        let write = ToolWrite::Trace { trace: trace(1, 1), spans: Vec::new(), position: position(2000, 0) };
        store.write(write).await.unwrap();
        let late = evaluation(1, "late", 0.75);
        store.write(ToolWrite::Evaluation { evaluation: late, position: position(2001, 0) }).await.unwrap();
        store.close(Duration::from_secs(20)).await.unwrap();
        let (store, _) = open(home.path());
        none_apart(&store).await;
        let scored = TraceQuery { min_score: Some(0.75), limit: 10, ..TraceQuery::default() };
        let page = store.traces(&Tenant::local(), &scored, Budget::WHOLE).await.unwrap();
        assert_eq!(page.rows.into_iter().map(|row| row.trace.trace_id).collect::<Vec<_>>(), [trace_id(1)]);
    });
}

/// Scenario: a trace stays while its evaluation is too old, and another's.
/// Guarantees: a filter by verdict finds what the page shows: a trace that is not judged any more.
#[test]
fn a_verdict_goes_with_its_evaluation() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        const DAYS: u64 = 24 * 60 * 60;
        let (store, _) = open_at(home.path(), &config(), || at(20 * DAYS)).unwrap();
        let late = Evaluation { created_at: at(19 * DAYS), ..evaluation(2, "late", 0.9) };
        judge(&store, trace(1, 1), evaluation(1, "old", 0.9)).await;
        judge(&store, trace(2, 1), late).await;
        // Judged again in time, and by itself: its verdict stands when the old one goes.
        judge(&store, trace(3, 1), evaluation(3, "old too", 0.9)).await;
        let again = Evaluation { created_at: at(19 * DAYS), ..evaluation(3, "again", 0.9) };
        store
            .send_async(store::Write::Tool(Box::new(ToolWrite::Evaluation {
                evaluation: again,
                position: position(9, 0),
            })))
            .await
            .unwrap();
        store.flush().await.unwrap();
        let passed = TraceQuery { verdict: Some(VerdictState::Pass), limit: 10, ..TraceQuery::default() };
        assert_eq!(store.traces(&Tenant::local(), &passed, Budget::WHOLE).await.unwrap().total, 3);
        store.release().await;
        let (store, _) = open_at(home.path(), &config(), || at(40 * DAYS)).unwrap();
        until("the sweep", || store.status().swept > 0 && store.status().checkpoints > 0).await;
        let page = store.traces(&Tenant::local(), &passed, Budget::WHOLE).await.unwrap();
        let found: Vec<_> = page.rows.iter().map(|row| row.trace.trace_id).collect();
        assert_eq!((page.total, found), (2, vec![trace_id(3), trace_id(2)]));
        let all = TraceQuery { limit: 10, ..TraceQuery::default() };
        assert_eq!(store.traces(&Tenant::local(), &all, Budget::WHOLE).await.unwrap().total, 3);
    });
}
