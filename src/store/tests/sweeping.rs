//! Retention.

use std::sync::Arc;

use iris_core::model::{Evaluation, Row, RowKey, Tenant, Timestamp, Trace};

use super::fixtures::*;
use super::writing::count;
use crate::store::{Config, Retention, Settled, Store, Write};

const DAYS: u64 = 24 * 60 * 60;
/// When the fixtures are, in seconds.
const DAY_SECONDS: u64 = DAY / SECOND;

fn forty_days_later() -> Timestamp {
    at(40 * DAYS)
}

/// Scenario: traces that came long ago, one of them judged again of late, one that claims to be from tomorrow; a
/// capture of years ago that came of late; old spans without a trace; then a restart.
/// Guarantees: what came long ago goes with its spans, versions and old evaluations, whatever it says of itself; a
/// late evaluation of it keeps its verdict and loses its text; what came of late stays; the positions stay.
#[test]
fn what_came_too_long_ago_goes_at_boot() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open_at(home.path(), &config(), || at(1)).unwrap();
        let mut late = evaluation(1, "late", 0.9);
        late.created_at = at(39 * DAYS);
        let from_tomorrow = Trace { timestamp: at(41 * DAYS), ..trace(4, 1) };
        judge(&store, trace(1, 1), evaluation(1, "old", 0.9)).await;
        judge(&store, trace(1, 2), late.clone()).await;
        judge(&store, trace(5, 1), evaluation(5, "old too", 0.9)).await;
        judge(&store, from_tomorrow, evaluation(4, "x", 0.1)).await;
        let mut all = rows(1, 1, 3);
        all.extend(rows(2, 2, 3));
        all.extend(rows(3, 3, 3));
        all.push(Arc::new(Row { received: at(39 * DAYS), ..row(3, 9, position(3, 9)) }));
        store.send_async(packed(all)).await.unwrap();
        store.flush().await.unwrap();
        store.release().await;

        let (store, _) = open_at(home.path(), &config(), || at(20 * DAYS)).unwrap();
        let replayed = Trace { timestamp: Timestamp::from_unix_nanos(1_420_070_400 * SECOND), ..trace(2, 1) };
        judge(&store, replayed.clone(), evaluation(2, "old as well", 0.9)).await;
        judge(&store, trace(5, 2), evaluation(5, "again", 0.9)).await;
        store.flush().await.unwrap();
        store.release().await;

        let (store, _) = open_at(home.path(), &config(), forty_days_later).unwrap();
        until("the sweep", || store.status().swept > 0 && store.status().checkpoints > 0).await;
        assert_eq!(store.trace(&Tenant::local(), trace_id(1)).await.unwrap(), None);
        assert_eq!(store.trace(&Tenant::local(), trace_id(2)).await.unwrap(), Some(replayed));
        assert_eq!(store.trace(&Tenant::local(), trace_id(4)).await.unwrap(), None);
        let reopened = store.trace(&Tenant::local(), trace_id(5)).await.unwrap();
        assert_eq!(reopened.map(|trace| trace.version), Some(2), "its newest version came of late");
        let left = |n| RowKey { tenant: Tenant::local(), trace_id: trace_id(n) };
        assert_eq!(store.load(&left(1)).await.unwrap().rows.len(), 0);
        assert_eq!(store.load(&left(2)).await.unwrap().rows.len(), 3);
        assert_eq!(store.load(&left(3)).await.unwrap().rows.len(), 1);
        let kept = store.evaluation(&Tenant::local(), "late").await.unwrap().unwrap();
        assert_eq!((kept.score, kept.created_at), (late.score, late.created_at));
        assert_eq!((kept.output_text.as_deref(), kept.suggestions.len()), (Some(""), 0));
        assert!(kept.erased_at.is_some());
        assert_eq!(count(&store, "evaluations").await, 1);
        assert_eq!(count(&store, "positions").await, 1);
        assert_eq!(store.status().settled_through.traces, 3);
    });
}

async fn judge(store: &Store, trace: Trace, evaluation: Evaluation) {
    let settled_through = Settled { traces: 3, ..Settled::default() };
    let (trace, evaluation) = (Box::new(trace), Arc::new(evaluation));
    store.send_async(Write::Judged { ticket: 1, trace, evaluation, settled_through }).await.unwrap();
}

/// Scenario: retention is off.
/// Guarantees: nothing goes.
#[test]
fn zero_days_keep_everything() {
    let home = tempfile::tempdir().unwrap();
    let config = Config { retention: Retention { days: 0, ..Retention::default() }, ..config() };
    runtime().block_on(async {
        let (store, _) = open_at(home.path(), &config, || at(400 * DAYS)).unwrap();
        store.send_async(packed(rows(1, 1, 3))).await.unwrap();
        store.checkpoint().await.unwrap();
        assert_eq!(count(&store, "spans").await, 3);
        assert_eq!(store.status().swept, 0);
    });
}

/// Scenario: rows came while the clock was never set, others before and after; a sweep with the clock as it should be.
/// Guarantees: they are as old as the process that took them, not as the clock was wrong.
#[test]
fn a_clock_that_was_never_set_makes_nothing_old() {
    const SEQ: u64 = (DAY_SECONDS + 10) << 20;
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open_at(home.path(), &config(), || Timestamp::from_unix_nanos(7 * SECOND)).unwrap();
        let unset =
            |id| Arc::new(Row { received: Timestamp::from_unix_nanos(SECOND), ..row(1, id, position(SEQ, id as u32)) });
        store.send_async(packed(vec![unset(0), unset(1)])).await.unwrap();
        let judged = Trace { seen_through: SEQ, ..trace(1, 1) };
        let said =
            Evaluation { created_at: Timestamp::from_unix_nanos(SECOND), seen_through: SEQ, ..evaluation(1, "e", 0.9) };
        judge(&store, judged, said).await;
        store.flush().await.unwrap();
        store.release().await;
        for (days, left) in [(1, 2), (20, 2), (45, 0)] {
            static DAYS_ON: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
            DAYS_ON.store(days, std::sync::atomic::Ordering::SeqCst);
            let now = || at(DAYS_ON.load(std::sync::atomic::Ordering::SeqCst) * DAYS);
            let (store, _) = open_at(home.path(), &config(), now).unwrap();
            if left == 0 {
                until("the sweep", || store.status().swept > 0 && store.status().checkpoints > 0).await;
            }
            // Each turn of the writer does a part of the sweep that a start begins.
            for _ in 0..20 {
                store.flush().await.unwrap();
            }
            assert_eq!(count(&store, "spans").await, left, "after {days} days");
            assert_eq!(count(&store, "evaluations").await, left / 2, "after {days} days");
            store.release().await;
        }
    });
}
