//! What a kill leaves behind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use iris_core::model::{Lane, Position, RowKey, Tenant, TraceSource};
use proptest::prelude::*;

use super::fixtures::*;
use super::writing::count;
use crate::deleted::Deletions;
use crate::store::{Config, Error, Settled, Store, ToolWrite, Write};

/// Scenario: a process is gone between two commits; the files as they lay are opened elsewhere.
/// Guarantees: exactly the committed rows are there, whether they went by the log or past it.
#[test]
fn a_kill_keeps_exactly_what_was_committed() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) =
            Store::open(home.path(), &Config { group_rows: 4096, ..config() }, Deletions::default()).unwrap();
        for (seq, rows) in [(1, 4096), (2, 7)] {
            store.send_async(Write::Record { lane: Lane::Traces, seq, rows }).await.unwrap();
            store.send_async(packed(super::fixtures::rows(seq, seq, rows))).await.unwrap();
        }
        store.flush().await.unwrap();
        store.send_async(Write::Record { lane: Lane::Traces, seq: 3, rows: 5 }).await.unwrap();
        store.send_async(packed(rows(3, 3, 5))).await.unwrap();
        let copy = copy_of(home.path());
        store.release().await;
        for home in [copy.path(), home.path()] {
            let (store, boot) = open(home);
            assert_eq!(boot.stored_through.traces, 2);
            assert!(boot.stored.is_empty(), "{boot:?}");
            assert_eq!(count(&store, "spans").await, 4096 + 7);
            assert_eq!(store.load(&key(2)).await.unwrap().rows.len(), 7);
            store.close(Duration::from_secs(10)).await.unwrap();
        }
    });
}

/// Scenario: two full groups are committed.
/// Guarantees: their row groups have 4,096 rows, are compressed with zstd, and went past the log.
#[test]
fn full_groups_go_past_the_log_compressed() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        store.checkpoint().await.unwrap();
        store.send_async(packed(rows(1, 1, 8192))).await.unwrap();
        until("both groups", || store.status().rows == 8192).await;
        let wal_bytes = store.status().wal_bytes;
        assert!(wal_bytes < 100_000, "{wal_bytes} bytes of log for 8192 rows");
        let sql = "SELECT row_group_id, column_name, compression, segment_type, sum(count)::BIGINT \
                   FROM pragma_storage_info('spans') WHERE segment_type <> 'VALIDITY' AND column_name IN ('attributes', 'rest') \
                   GROUP BY ALL ORDER BY ALL";
        let read = |row: &duckdb::Row<'_>| {
            let read = || -> duckdb::Result<(i64, String, String, i64)> { Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(4)?)) };
            read().map_err(Error::engine)
        };
        let segments = store.inner.readers.read(move |reader| reader.rows(sql, &[], read)).await.unwrap();
        let zstd = |group, column: &str| (group, column.to_owned(), "ZSTD".to_owned(), 4096);
        assert_eq!(segments, [zstd(0, "attributes"), zstd(0, "rest"), zstd(1, "attributes"), zstd(1, "rest")]);
    });
}

/// What a random history holds.
#[derive(Debug, Clone)]
enum Step {
    /// A record of so many rows, of which the first so many are dropped.
    Record { rows: u32, dropped: u32 },
    /// A tool's record; whether its awaited write comes before the journal's reader, after it, or never.
    Tool(u8),
    /// One row of the oldest records that still wait goes to the writer, out of order if the number says so.
    Row(usize),
    /// Everything that was sent for the first traces is judged.
    Judge,
    /// Commit.
    Flush,
    /// Commit and checkpoint.
    Checkpoint,
    /// The process is killed and a new one starts.
    Crash,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0u32..4).prop_flat_map(|rows| (0..=rows).prop_map(move |dropped| Step::Record { rows, dropped })),
        2 => (0u8..3).prop_map(Step::Tool),
        8 => (0usize..8).prop_map(Step::Row),
        1 => Just(Step::Judge),
        2 => Just(Step::Flush),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Crash),
    ];
    proptest::collection::vec(step, 1..60)
}

/// A journal in memory and what was told to the store of it.
#[derive(Default)]
struct Journal {
    /// Rows that must be stored, by record; a tool's record has one.
    wanted: BTreeMap<u64, BTreeSet<Position>>,
    tools: BTreeSet<Position>,
    /// Rows not yet sent in this life of the process.
    unsent: Vec<Position>,
}

fn tool(position: Position) -> ToolWrite {
    let trace = iris_core::model::Trace { source: TraceSource::Tool, ..trace(position.seq + 1000, 1) };
    ToolWrite::Trace { trace, spans: vec![span(position.seq + 1000, 0)], position }
}

impl Journal {
    async fn step(&mut self, store: &Store, step: &Step) {
        let seq = self.wanted.len() as u64 + 1;
        match step {
            Step::Record { rows, dropped } => {
                store.send_async(Write::Record { lane: Lane::Traces, seq, rows: *rows }).await.unwrap();
                if *dropped > 0 {
                    store.send_async(Write::Dropped { lane: Lane::Traces, seq, rows: *dropped }).await.unwrap();
                }
                let wanted: BTreeSet<Position> = (*dropped..*rows).map(|ordinal| position(seq, ordinal)).collect();
                self.unsent.extend(&wanted);
                self.wanted.insert(seq, wanted);
            }
            Step::Tool(way) => {
                let position = position(seq, 0);
                self.wanted.insert(seq, BTreeSet::from([position]));
                self.tools.insert(position);
                if *way == 0 {
                    store.write(tool(position)).await.unwrap();
                }
                store.send_async(Write::Record { lane: Lane::Traces, seq, rows: 1 }).await.unwrap();
                store.send_async(Write::Tool(Box::new(tool(position)))).await.unwrap();
                if *way == 1 {
                    store.write(tool(position)).await.unwrap();
                }
            }
            Step::Row(which) => {
                if !self.unsent.is_empty() {
                    let position = self.unsent.remove(which % self.unsent.len());
                    let row = row(position.seq, u64::from(position.ordinal), position);
                    store.send_async(packed(vec![Arc::new(row)])).await.unwrap();
                }
            }
            Step::Judge => {
                let (trace, evaluation) = (Box::new(trace(1, 1)), Arc::new(evaluation(1, "e", 1.0)));
                let settled_through = Settled::default();
                store.send_async(Write::Judged { ticket: 1, trace, evaluation, settled_through }).await.unwrap();
            }
            Step::Flush => store.flush().await.unwrap(),
            Step::Checkpoint => store.checkpoint().await.unwrap(),
            Step::Crash => {}
        }
    }

    /// The next process: checks what it finds, then sends what is missing as a replay would.
    async fn reopen(&mut self, home: &std::path::Path) -> Result<Store, TestCaseError> {
        let (store, boot) = open(home);
        let through = boot.stored_through.traces;
        let found = self.found(&store).await;
        for (seq, wanted) in self.wanted.range(..=through) {
            prop_assert!(wanted.is_subset(&found), "{seq} is behind the position {through} but not stored");
        }
        let beyond: BTreeSet<Position> = found.iter().filter(|position| position.seq > through).copied().collect();
        prop_assert_eq!(&beyond, &boot.stored.iter().copied().collect::<BTreeSet<_>>());
        self.unsent.clear();
        for (seq, wanted) in self.wanted.range(through + 1..) {
            store.send_async(Write::Record { lane: Lane::Traces, seq: *seq, rows: wanted.len() as u32 }).await.unwrap();
            for position in wanted {
                if self.tools.contains(position) {
                    store.send_async(Write::Tool(Box::new(tool(*position)))).await.unwrap();
                } else if found.contains(position) {
                    store.send_async(Write::Dropped { lane: Lane::Traces, seq: *seq, rows: 1 }).await.unwrap();
                } else {
                    self.unsent.push(*position);
                }
            }
        }
        Ok(store)
    }

    /// Every position in the file; a position stored twice is none that a row wanted.
    async fn found(&self, store: &Store) -> BTreeSet<Position> {
        let sql = "SELECT seq, ordinal FROM spans WHERE source <> 'tool' UNION ALL \
                   SELECT seq, ordinal FROM traces WHERE source = 'tool'";
        let read = |row: &duckdb::Row<'_>| {
            let read = || -> duckdb::Result<Position> { Ok(position(row.get(0)?, row.get(1)?)) };
            read().map_err(Error::engine)
        };
        let rows = store.inner.readers.read(move |reader| reader.rows(sql, &[], read)).await.unwrap();
        let found: BTreeSet<Position> = rows.iter().copied().collect();
        assert_eq!(found.len(), rows.len(), "something is stored twice");
        found
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 200, ..ProptestConfig::default() })]

    /// Scenario: random histories of records, rows out of order, tools by both ways, commits and kills.
    /// Guarantees: a position never covers what is not stored, nothing is stored twice, a replay completes the run.
    #[test]
    fn positions_are_never_ahead_of_rows(steps in steps()) {
        let home = tempfile::tempdir().unwrap();
        runtime().block_on(async {
            let mut journal = Journal::default();
            let (mut store, _) = open(home.path());
            for step in &steps {
                if matches!(step, Step::Crash) {
                    store.release().await;
                    store = journal.reopen(home.path()).await?;
                } else {
                    journal.step(&store, step).await;
                }
            }
            store.release().await;
            let store = journal.reopen(home.path()).await?;
            while !journal.unsent.is_empty() {
                journal.step(&store, &Step::Row(3)).await;
            }
            store.checkpoint().await.unwrap();
            prop_assert_eq!(store.checkpointed().borrow().traces, journal.wanted.len() as u64);
            let wanted: BTreeSet<Position> = journal.wanted.values().flatten().copied().collect();
            prop_assert_eq!(journal.found(&store).await, wanted);
            store.close(Duration::from_secs(5)).await.unwrap();
            Ok(())
        })?;
    }
}

/// Scenario: the table refuses some rows of a group.
/// Guarantees: those are set aside and counted, every other is stored, the position covers all of them.
#[test]
fn bad_rows_are_found_and_set_aside() {
    let home = tempfile::tempdir().unwrap();
    let schema = include_str!("../migrations/0001_initial.sql")
        .replace("seq            UBIGINT   NOT NULL,", "seq UBIGINT NOT NULL CHECK (seq % 10 <> 3),");
    crate::store::schema::migrate_with(home.path(), &schema);
    runtime().block_on(async {
        let (store, _) = open(home.path());
        for seq in 1..=40 {
            store.send_async(Write::Record { lane: Lane::Traces, seq, rows: 2 }).await.unwrap();
            store.send_async(packed(rows(seq, seq, 2))).await.unwrap();
        }
        store.flush().await.unwrap();
        assert_eq!(count(&store, "spans").await, 80 - 8);
        let status = store.status();
        assert_eq!((status.set_aside, status.failed, status.stored_through.traces), (8, None, 40));
        let missing = RowKey { tenant: Tenant::local(), trace_id: trace_id(13) };
        assert!(store.load(&missing).await.unwrap().rows.is_empty());
    });
}

/// Scenario: the table refuses every row.
/// Guarantees: that is taken for the store's fault, not the rows': nothing is set aside, and the status says why.
#[test]
fn a_store_that_refuses_everything_loses_nothing() {
    let home = tempfile::tempdir().unwrap();
    let schema = include_str!("../migrations/0001_initial.sql")
        .replace("seq            UBIGINT   NOT NULL,", "seq UBIGINT NOT NULL CHECK (seq > 1000),");
    crate::store::schema::migrate_with(home.path(), &schema);
    runtime().block_on(async {
        let (store, _) = open(home.path());
        store.send_async(Write::Record { lane: Lane::Traces, seq: 1, rows: 100 }).await.unwrap();
        store.send_async(packed(rows(1, 1, 100))).await.unwrap();
        assert!(store.flush().await.is_err());
        let status = store.status();
        assert_eq!((status.set_aside, status.rows, status.stored_through.traces), (0, 0, 0));
        assert!(status.failed.unwrap().contains("CHECK constraint failed"));
        assert!(store.write(tool(position(2000, 0))).await.is_ok(), "awaited writes go their own way");
    });
}
