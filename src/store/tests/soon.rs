//! What tools hand over without waiting for its COMMIT.

use std::sync::atomic::Ordering;
use std::time::Duration;

use iris_core::model::{Lane, Tenant};

use super::fixtures::*;
use super::writing::count;
use crate::deleted::Deletions;
use crate::store::{Store, ToolWrite, Write};

fn tool_trace(n: u64, seq: u64) -> ToolWrite {
    ToolWrite::Trace { trace: trace(n, 1), spans: vec![span(n, 1)], position: position(seq, 0) }
}

fn evaluated(n: u64, seq: u64) -> ToolWrite {
    ToolWrite::Evaluation { evaluation: evaluation(n, &format!("e-{n}"), 0.5), position: position(seq, 0) }
}

fn journal(seq: u64) -> [Write; 2] {
    [Write::Record { lane: Lane::Traces, seq, rows: 1 }, Write::Tool(Box::new(tool_trace(seq, seq)))]
}

/// Scenario: five hundred writes are handed over by eight callers, each of which reads its own at once.
/// Guarantees: the next read sees it, whatever else is under way; far fewer transactions than writes are made when
/// nobody reads.
#[test]
fn what_was_handed_over_is_seen_by_the_next_read() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        store.send_async(packed(rows(1000, 1000, 5))).await.unwrap();
        let callers: Vec<_> = (0..8_u64)
            .map(|caller| {
                let store = store.clone();
                tokio::spawn(async move {
                    for n in (1..=20).map(|n| caller * 100 + n) {
                        store.write_soon(tool_trace(n, n)).await.unwrap();
                        assert!(store.trace(&Tenant::local(), trace_id(n)).await.unwrap().is_some(), "trace {n}");
                        store.write_soon(evaluated(n, 2000 + n)).await.unwrap();
                        let id = format!("e-{n}");
                        assert!(store.evaluation(&Tenant::local(), &id).await.unwrap().is_some(), "{id}");
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.await.unwrap();
        }
        assert_eq!(store.status().rows, 0, "the span group is still open");
        let before = store.status().awaited;
        for n in 5000..5200 {
            store.write_soon(tool_trace(n, n)).await.unwrap();
        }
        // Counted as committed first, and then as handed over no more.
        until("all of them are committed without being asked for", || {
            store.inner.shared.soon.load(Ordering::SeqCst) == 0
        })
        .await;
        assert_eq!(store.status().awaited, before + 200);
    });
}

/// Scenario: the journal's reader brings what was handed over, before and after it is committed, and once more after
/// a kill.
/// Guarantees: it is stored once, its record counts as stored only once it is in the file, and closing keeps it.
#[test]
fn what_was_handed_over_is_stored_once() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        store.write_soon(tool_trace(1, 1)).await.unwrap();
        for write in journal(1).into_iter().chain(journal(2)) {
            store.send_async(write).await.unwrap();
        }
        store.write_soon(tool_trace(2, 2)).await.unwrap();
        store.checkpoint().await.unwrap();
        assert_eq!(count(&store, "traces").await, 2);
        assert_eq!(store.checkpointed().borrow().traces, 2);

        store.write_soon(tool_trace(3, 3)).await.unwrap();
        store.close(Duration::from_secs(5)).await.unwrap();
        let (store, boot) = open(home.path());
        assert_eq!(boot.stored.into_iter().collect::<Vec<_>>(), [position(3, 0)]);
        for write in journal(3) {
            store.send_async(write).await.unwrap();
        }
        store.checkpoint().await.unwrap();
        assert_eq!((count(&store, "traces").await, store.checkpointed().borrow().traces), (3, 3));

        store.write_soon(tool_trace(4, 4)).await.unwrap();
        store.release().await;
        let (store, _) = open(home.path());
        for write in journal(4) {
            store.send_async(write).await.unwrap();
        }
        store.checkpoint().await.unwrap();
        assert_eq!((count(&store, "traces").await, store.checkpointed().borrow().traces), (4, 4));
    });
}

/// Scenario: a trace is handed over and deleted before it is committed; another write of it comes too late.
/// Guarantees: nothing of it is stored, and the record of each counts as stored.
#[test]
fn what_is_deleted_before_its_commit_is_not_stored() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let deleted = Deletions::open(home.path()).unwrap();
        let (store, _) = Store::open(home.path(), &config(), deleted.clone()).unwrap();
        for write in journal(1) {
            store.send_async(write).await.unwrap();
        }
        store.write_soon(tool_trace(2, 2)).await.unwrap();
        deleted.add(&key(2)).unwrap();
        let deletion = ToolWrite::Deletion { tenant: Tenant::local(), trace_id: trace_id(2), position: position(3, 0) };
        store.write(deletion).await.unwrap();
        store.write_soon(tool_trace(2, 4)).await.unwrap();
        for write in journal(2) {
            store.send_async(write).await.unwrap();
        }
        assert!(!store.has_trace(&key(2)).await.unwrap());
        store.checkpoint().await.unwrap();
        assert_eq!((count(&store, "traces").await, store.checkpointed().borrow().traces), (1, 2));
    });
}
