//! Rows in, the same rows out; groups, awaited writes, positions.

use std::sync::Arc;
use std::time::Duration;

use iris_core::model::{Lane, Observation, Tenant, TraceSource};

use super::fixtures::*;
use crate::deleted::Deletions;
use crate::store::{Bounds, Config, Error, Packed, Settled, Store, Through, ToolWrite, Write};

pub async fn count(store: &Store, table: &'static str) -> u64 {
    let sql = format!("SELECT count(*) FROM {table}");
    let found =
        store.inner.readers.read(move |reader| reader.first(&sql, &[], |row| row.get(0).map_err(Error::engine))).await;
    found.unwrap().unwrap()
}

fn tool_trace(n: u64, seq: u64) -> ToolWrite {
    let trace = iris_core::model::Trace { source: TraceSource::Tool, ..trace(n, 1) };
    ToolWrite::Trace { trace, spans: vec![span(n, 0), span(n, 1)], position: position(seq, 0) }
}

/// Scenario: spans and log records with every field and awkward values are stored and loaded.
/// Guarantees: what comes back equals what was sent.
#[test]
fn rows_come_back_exactly() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        let first = row(1, 0, position(5, 0));
        let mut open_span = row(1, 1, position(5, 1));
        let log = log_row(1, 1, position(6, 0));
        if let Observation::Span(span) = &mut open_span.observation {
            span.end = Default::default();
            span.name = String::new();
            span.events.clear();
            span.links.clear();
            span.flags = 0;
            span.attributes.clear();
        }
        let sent = [first, open_span, log];
        store.send_async(packed(sent.iter().cloned().map(Arc::new))).await.unwrap();
        store.flush().await.unwrap();
        let loaded = store.load(&key(1)).await.unwrap();
        assert_eq!(loaded.version, 0);
        assert_eq!(loaded.evaluation, None);
        assert_eq!(loaded.rows, sent.iter().map(unread).collect::<Vec<_>>());
        let (Observation::Span(before), Observation::Span(after)) = (&sent[0].observation, &loaded.rows[0].observation)
        else {
            panic!("not spans")
        };
        // Equality of maps does not look at their order, and of floats not at the sign of zero.
        assert_eq!(
            serde_json::to_string(&before.attributes).unwrap(),
            serde_json::to_string(&after.attributes).unwrap()
        );
        store.close(Duration::from_secs(5)).await.unwrap();
    });
}

/// Scenario: the same span arrives twice, and once more with other content.
/// Guarantees: the resend collapses, the conflicting span stays.
#[test]
fn resends_collapse_and_conflicts_stay() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        let first = row(1, 0, position(1, 0));
        let resend = row(1, 0, position(2, 0));
        let conflict = iris_core::model::Row { content_hash: 4, ..row(1, 0, position(3, 0)) };
        store.send_async(packed([first, conflict, resend].map(Arc::new))).await.unwrap();
        store.flush().await.unwrap();
        let found = store.spans(&Tenant::local(), trace_id(1), Bounds::WHOLE).await.unwrap().items;
        assert_eq!(found.iter().map(|row| row.position.seq).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(count(&store, "spans").await, 3);
    });
}

/// Scenario: fewer rows than a group wait.
/// Guarantees: they are committed once the oldest has waited long enough, without another message.
#[test]
fn a_group_does_not_wait_for_ever() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = Store::open(home.path(), &Config { group_ms: 20, ..config() }, Deletions::default()).unwrap();
        store.send_async(Write::Record { lane: Lane::Traces, seq: 1, rows: 3 }).await.unwrap();
        store.send_async(packed(rows(1, 1, 3))).await.unwrap();
        until("the commit", || store.status().rows == 3).await;
        assert_eq!(store.status().stored_through.traces, 1);
    });
}

/// Scenario: rows that are not enough for a group wait beside traces that are not enough for one either, and together
/// they are as much as the writer takes in.
/// Guarantees: they are committed at once: nothing could be added, and whoever sends more would wait for the clock.
#[test]
fn a_group_to_which_nothing_can_be_added_is_committed() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let rows = packed(rows(1, 1, 200));
        let Write::Rows(held) = &rows else { panic!("not rows") };
        let bytes: usize = held.iter().map(Packed::bytes).sum();
        let group_bytes = bytes / 4 * 5;
        let (store, _) = Store::open(home.path(), &Config { group_bytes, ..config() }, Deletions::default()).unwrap();
        store.send_async(rows).await.unwrap();
        let sent = tokio::time::timeout(Duration::from_secs(10), async {
            for n in 2..10_000 {
                let (trace, evaluation) = (Box::new(trace(n, 1)), Arc::new(evaluation(n, &format!("e-{n}"), 1.0)));
                let settled_through = Settled::default();
                store.send_async(Write::Judged { ticket: n, trace, evaluation, settled_through }).await.unwrap();
                if store.status().rows > 0 {
                    return;
                }
            }
        });
        sent.await.expect("the rows are committed while traces come");
        assert_eq!(store.status().rows, 200);
    });
}

/// Scenario: more rows than a group come in messages that do not fit it.
/// Guarantees: every transaction has exactly a full group, the rest waits.
#[test]
fn groups_are_cut_at_a_full_row_group() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) =
            Store::open(home.path(), &Config { group_rows: 10, ..config() }, Deletions::default()).unwrap();
        store.send_async(packed(rows(1, 1, 25))).await.unwrap();
        until("two groups", || store.status().groups == 2).await;
        assert_eq!(store.status().rows, 20);
        store.flush().await.unwrap();
        assert_eq!(store.status().rows, 25);
    });
}

/// Scenario: a tool writes beside an open span group.
/// Guarantees: the next read sees the trace, its spans and its evaluation; the group stays open.
#[test]
fn an_awaited_write_is_seen_by_the_next_read() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        store.send_async(packed(rows(1, 1, 5))).await.unwrap();
        store.write(tool_trace(2, 2)).await.unwrap();
        let stored = store.trace(&Tenant::local(), trace_id(2)).await.unwrap().unwrap();
        assert_eq!(stored, iris_core::model::Trace { source: TraceSource::Tool, ..trace(2, 1) });
        assert_eq!(store.spans(&Tenant::local(), trace_id(2), Bounds::WHOLE).await.unwrap().items.len(), 2);
        let mut evaluation = evaluation(2, "e-1", 0.75);
        evaluation.created_at = at(3);
        let write = ToolWrite::Evaluation { evaluation: evaluation.clone(), position: position(3, 0) };
        store.write(write).await.unwrap();
        assert_eq!(store.evaluation(&Tenant::local(), "e-1").await.unwrap(), Some(evaluation.clone()));
        assert_eq!(store.evaluations(&Tenant::local(), trace_id(2), Bounds::WHOLE).await.unwrap().items, [evaluation]);
        assert_eq!(store.evaluation(&Tenant::new("other"), "e-1").await.unwrap(), None);
        assert_eq!(store.status().rows, 0, "the span group is still open");
        assert_eq!(store.status().awaited, 2);
    });
}

/// Scenario: a tool's record reaches the writer by the awaited way and by the journal, in both orders, committed
/// or not, and once more after a restart.
/// Guarantees: it is stored once, and its record counts as stored.
#[test]
fn a_tool_write_is_stored_once() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        let journal =
            |seq| [Write::Record { lane: Lane::Traces, seq, rows: 1 }, Write::Tool(Box::new(tool_trace(seq, seq)))];
        store.write(tool_trace(1, 1)).await.unwrap();
        for write in journal(1).into_iter().chain(journal(2)) {
            store.send_async(write).await.unwrap();
        }
        store.write(tool_trace(2, 2)).await.unwrap();
        store.write(tool_trace(2, 2)).await.unwrap();
        store.checkpoint().await.unwrap();
        assert_eq!(count(&store, "traces").await, 2);
        assert_eq!(store.status().stored_through.traces, 2);
        store.write(tool_trace(4, 4)).await.unwrap();
        store.close(Duration::from_secs(5)).await.unwrap();

        let (store, boot) = open(home.path());
        assert_eq!(boot.stored_through, Through { traces: 2, ..Through::default() });
        assert_eq!(boot.stored.into_iter().collect::<Vec<_>>(), [position(4, 0)]);
        assert!(boot.reopen.is_empty(), "spans of log_trace are never reopened");
        store.send_async(Write::Record { lane: Lane::Traces, seq: 3, rows: 0 }).await.unwrap();
        for write in journal(4) {
            store.send_async(write).await.unwrap();
        }
        store.checkpoint().await.unwrap();
        assert_eq!(count(&store, "traces").await, 3);
        assert_eq!(store.checkpointed().borrow().traces, 4);
    });
}

/// Scenario: two traces are judged, one is still open when the process ends; a later span comes for a judged one.
/// Guarantees: tickets are published after their commit; boot reopens exactly what no evaluation covers.
#[test]
fn judged_traces_are_not_reopened() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        let mut committed = store.committed();
        for (seq, n) in [(1, 1), (2, 2), (3, 3)] {
            store.send_async(Write::Record { lane: Lane::Traces, seq, rows: 2 }).await.unwrap();
            store.send_async(packed(rows(n, seq, 2))).await.unwrap();
        }
        for (ticket, n, seen) in [(7, 1, 1), (8, 3, 3)] {
            let mut evaluation = evaluation(n, "e", 1.0);
            evaluation.seen_through = seen;
            let settled_through = Settled { traces: 1, ..Settled::default() };
            let (trace, evaluation) = (Box::new(trace(n, 1)), Arc::new(evaluation));
            store.send_async(Write::Judged { ticket, trace, evaluation, settled_through }).await.unwrap();
        }
        store.flush().await.unwrap();
        assert_eq!(*committed.borrow_and_update(), 8);
        store.close(Duration::from_secs(5)).await.unwrap();
        let (store, boot) = open(home.path());
        assert_eq!(boot.stored_through.traces, 3);
        assert_eq!(boot.settled_through.traces, 1);
        assert_eq!(boot.reopen, [key(2)]);
        let loaded = store.load(&key(3)).await.unwrap();
        assert_eq!((loaded.version, loaded.rows.len()), (1, 2));
        assert_eq!(loaded.evaluation.unwrap().seen_through, 3);

        store.send_async(packed(rows(3, 9, 1))).await.unwrap();
        store.close(Duration::from_secs(5)).await.unwrap();
        let (_, boot) = open(home.path());
        assert_eq!(boot.reopen, [key(2), key(3)]);
        assert_eq!(boot.stored.into_iter().collect::<Vec<_>>(), [position(9, 0)]);
    });
}

/// Scenario: only traffic that is dropped arrives, then a checkpoint is asked for.
/// Guarantees: nothing is written until then; the checkpoint carries the positions.
#[test]
fn dropped_traffic_alone_writes_nothing() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = Store::open(home.path(), &Config { group_ms: 1, ..config() }, Deletions::default()).unwrap();
        store.checkpoint().await.unwrap();
        for seq in 1..50 {
            store.send_async(Write::Record { lane: Lane::Logs, seq, rows: 4 }).await.unwrap();
            store.send_async(Write::Dropped { lane: Lane::Logs, seq, rows: 4 }).await.unwrap();
        }
        store.send_async(Write::Settled { settled_through: Settled { logs: 49, ..Settled::default() } }).await.unwrap();
        store.flush().await.unwrap();
        assert_eq!(count(&store, "positions").await, 0);
        assert_eq!(store.status().groups, 0);
        store.checkpoint().await.unwrap();
        assert_eq!(count(&store, "positions").await, 1);
        assert_eq!(store.checkpointed().borrow().logs, 49);
        assert_eq!(store.status().settled_through.logs, 49);
    });
}

/// Scenario: the store is quiet for long enough.
/// Guarantees: it checkpoints by itself, once, and the log is empty.
#[test]
fn a_quiet_store_checkpoints() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let quiet = Config { group_ms: 1, checkpoint_idle_ms: 30, ..config() };
        let (store, _) = Store::open(home.path(), &quiet, Deletions::default()).unwrap();
        store.send_async(packed(rows(1, 1, 5))).await.unwrap();
        until("rows", || store.status().rows == 5).await;
        until("a checkpoint after the rows", || {
            let status = store.status();
            status.checkpoints > 0 && status.wal_bytes == 0
        })
        .await;
    });
}

/// Scenario: every handle of a store goes without a close.
/// Guarantees: what was sent is committed; a call on a closed store says so.
#[test]
fn the_last_handle_commits_and_closed_says_so() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        store.send_async(packed(rows(1, 1, 5))).await.unwrap();
        let thread = store.inner.writer.lock().unwrap().take().unwrap();
        drop(store);
        tokio::task::spawn_blocking(move || thread.join()).await.unwrap().unwrap();
        let (store, boot) = open(home.path());
        assert_eq!(boot.stored.len(), 5);
        let other = store.clone();
        store.close(Duration::from_secs(5)).await.unwrap();
        assert!(matches!(other.write(tool_trace(1, 1)).await, Err(Error::Closed)));
        assert!(matches!(other.send_async(packed(Vec::new())).await, Err(Error::Closed)));
        assert!(matches!(other.trace(&Tenant::local(), trace_id(1)).await, Err(Error::Closed)));
    });
}

/// Scenario: a full row group of rows waits with the judged traces of so many spans beside it, all together more
/// bytes than make a group.
/// Guarantees: the rows are committed whole, so that they go past the write-ahead log.
#[test]
fn judged_traces_do_not_break_a_row_group() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        let rows: Vec<_> = (0..4096)
            .map(|n| {
                let mut row = row(n / 8, n % 8, position(n / 512 + 1, (n % 512) as u32));
                if let Observation::Span(span) = &mut row.observation {
                    span.attributes.insert("text".to_owned(), "x".repeat(1200).into());
                }
                Arc::new(row)
            })
            .collect();
        for (n, rows) in (0..).zip(rows.chunks(512)) {
            for place in 0..64 {
                let number = n * 64 + place;
                let judged = iris_core::model::Trace { output: Some("y".repeat(4096)), ..trace(number, 1) };
                let write = Write::Judged {
                    ticket: number + 1,
                    trace: Box::new(judged),
                    evaluation: Arc::new(evaluation(number, &format!("e{number}"), 1.0)),
                    settled_through: Settled::default(),
                };
                store.send_async(write).await.unwrap();
            }
            store.send_async(packed(rows.to_vec())).await.unwrap();
        }
        until("the commit", || store.status().rows == 4096).await;
        assert_eq!(store.status().groups, 1);
        store.close(Duration::from_secs(5)).await.unwrap();
    });
}

/// Scenario: runs that share everything, something or nothing with their trace.
/// Guarantees: what is read equals what was stored, and a text stands in the file's row once.
#[test]
fn runs_come_back_whole() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        let whole = trace(3, 1);
        let run = iris_core::model::Run {
            span_id: Some(span_id(4)),
            agent_name: Some("planner".to_owned()),
            input: whole.input.clone(),
            output: whole.output.clone(),
            tool_calls: whole.tool_calls.clone().unwrap(),
            ..Default::default()
        };
        let other = iris_core::model::Run { input: Some("else".to_owned()), tool_calls: Vec::new(), ..run.clone() };
        let nothing = iris_core::model::Run::default();
        let sent = iris_core::model::Trace { runs: vec![run, other, nothing], ..whole };
        let write = Write::Judged {
            ticket: 1,
            trace: Box::new(sent.clone()),
            evaluation: Arc::new(evaluation(3, "e", 1.0)),
            settled_through: Settled::default(),
        };
        store.send_async(write).await.unwrap();
        store.flush().await.unwrap();
        assert_eq!(store.trace(&Tenant::local(), sent.trace_id).await.unwrap(), Some(sent));
        let read = |row: &duckdb::Row<'_>| row.get::<_, String>(0).map_err(Error::engine);
        let runs = store.inner.readers.read(move |reader| reader.first("SELECT runs FROM traces", &[], read)).await;
        let runs = runs.unwrap().unwrap();
        assert!(!runs.contains("what?") && !runs.contains("that"), "{runs}");
        store.close(Duration::from_secs(5)).await.unwrap();
    });
}
