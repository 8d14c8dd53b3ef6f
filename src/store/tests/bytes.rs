//! How large the file gets, and that the store heals after it was closed for a copy.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use iris_core::model::{Evaluation, Lane, Observation, Tenant, Timestamp};

use super::fixtures::*;
use super::pages::judge;
use crate::deleted::Deletions;
use crate::store::budget::end_of_oldest;
use crate::store::{Config, Erase, Retention, Store, ToolWrite, Write, open};

const MIB: u64 = 1024 * 1024;

fn file_bytes(home: &Path) -> u64 {
    ["iris.duckdb", "iris.duckdb.wal", "iris.duckdb.new"]
        .map(|name| std::fs::metadata(home.join(name)).map_or(0, |file| file.len()))
        .iter()
        .sum()
}

/// Text that does not compress.
fn noise(seed: u64, bytes: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(33 + u8::try_from(state % 90).unwrap())
    };
    (0..bytes).map(|_| letter()).collect()
}

/// Stores traces of some 64 KiB each, one record a trace.
async fn fill(store: &Store, traces: std::ops::Range<u64>) {
    for n in traces {
        store.send_async(Write::Record { lane: Lane::Traces, seq: n, rows: 8 }).await.unwrap();
        let rows = (0..8).map(|ordinal| {
            let mut row = row(n, u64::from(ordinal), position(n, ordinal));
            if let Observation::Span(span) = &mut row.observation {
                let said = noise(n * 8 + u64::from(ordinal), 8000);
                span.attributes.insert("said".to_owned(), serde_json::Value::String(said));
            }
            Arc::new(row)
        });
        store.send_async(packed(rows.collect::<Vec<_>>())).await.unwrap();
        judge(store, trace(n, 1), evaluation(n, &format!("e-{n}"), 0.9)).await;
        if n % 32 == 0 {
            commit(store).await;
        }
    }
    commit(store).await;
}

/// Commits, as soon as there is room.
async fn commit(store: &Store) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while let Err(error) = store.flush().await {
        assert!(tokio::time::Instant::now() < deadline, "{error}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn much_later() -> Timestamp {
    at(3 * 24 * 3600)
}

fn early() -> Timestamp {
    at(0)
}

/// Scenario (field case G8-07): nine tenths of what is stored are past their retention when the store is opened again.
/// Guarantees: the file itself shrinks with the sweep, and what is young is whole.
#[test]
fn g8_07_retention_gives_the_disk_back() {
    let home = tempfile::tempdir().unwrap();
    let retention = Retention { days: 1, ..Retention::default() };
    let config = Config { retention, ..config() };
    runtime().block_on(async {
        let (store, _) =
            open_at(home.path(), &Config { retention: Retention::default(), ..config.clone() }, early).unwrap();
        fill(&store, 1..361).await;
        store.checkpoint().await.unwrap();
        store.close(Duration::from_secs(20)).await.unwrap();
        let before = file_bytes(home.path());
        assert!(before > 20 * MIB, "{before} bytes");
        let (store, _) = open_at(home.path(), &config, much_later).unwrap();
        fill(&store, 400..440).await;
        until("the file is smaller", || file_bytes(home.path()) < before / 4).await;
        assert_eq!(store.trace(&Tenant::local(), trace_id(1)).await.unwrap(), None);
        for n in 400..440 {
            assert!(store.trace(&Tenant::local(), trace_id(n)).await.unwrap().is_some(), "{n}");
            assert_eq!(store.load(&key(n)).await.unwrap().rows.len(), 8);
        }
        store.close(Duration::from_secs(20)).await.unwrap();
    });
}

/// Scenario: several times as much is stored as the folder may hold.
/// Guarantees: the store's files together never take more than its share; the oldest goes, the newest stays; no commit
/// fails for good.
#[test]
fn the_oldest_goes_before_the_share_is_full() {
    let home = tempfile::tempdir().unwrap();
    let retention = Retention { bytes_max: 128 * MIB, ..Retention::default() };
    let share = retention.share();
    let config = Config { retention, ..config() };
    runtime().block_on(async {
        let (store, _) = Store::open(home.path(), &config, Deletions::default()).unwrap();
        let mut most = 0;
        for part in 0..26 {
            let first = part * 40 + 1;
            fill(&store, first..first + 40).await;
            most = most.max(file_bytes(home.path()));
        }
        assert!(most <= share.most + share.wal, "{most} bytes of {share:?}");
        until("the store is quiet", || store.status().failed.is_none()).await;
        assert_eq!(store.trace(&Tenant::local(), trace_id(1)).await.unwrap(), None, "the oldest went");
        assert!(store.trace(&Tenant::local(), trace_id(1040)).await.unwrap().is_some(), "the newest stays");
        store.close(Duration::from_secs(20)).await.unwrap();
    });
}

/// Scenario: the engine cannot be opened again after the file was written anew, because its folder is in the way; later
/// it is not.
/// Guarantees: the status says why; a write is refused at once; the store opens by itself, with all it had, and goes on.
#[test]
fn a_store_that_could_not_be_opened_again_heals() {
    let home = tempfile::tempdir().unwrap();
    let config = Config { erase: Erase { within_minutes: 0 }, ..config() };
    runtime().block_on(async {
        let deleted = Deletions::open(home.path()).unwrap();
        let (store, _) = Store::open(home.path(), &config, deleted.clone()).unwrap();
        for n in [1, 2] {
            judge(&store, trace(n, 1), evaluation(n, &format!("e-{n}"), 0.9)).await;
        }
        store.flush().await.unwrap();
        let temp = home.path().join("duckdb").join("temp");
        std::fs::rename(&temp, home.path().join("away")).unwrap();
        std::fs::write(&temp, "").unwrap();
        deleted.add(&key(1)).unwrap();
        let gone = ToolWrite::Deletion { tenant: Tenant::local(), trace_id: trace_id(1), position: position(50, 0) };
        store.write(gone).await.unwrap();
        until("the store says why", || store.status().failed.is_some()).await;
        let later = ToolWrite::Deletion { tenant: Tenant::local(), trace_id: trace_id(9), position: position(51, 0) };
        assert!(store.write(later.clone()).await.is_err());
        std::fs::remove_file(&temp).unwrap();
        until("it heals", || store.status().failed.is_none()).await;
        assert!(store.trace(&Tenant::local(), trace_id(2)).await.unwrap().is_some());
        store.write(later).await.unwrap();
        judge(&store, trace(3, 1), evaluation(3, "e-3", 0.9)).await;
        store.flush().await.unwrap();
        assert!(store.trace(&Tenant::local(), trace_id(3)).await.unwrap().is_some());
        store.close(Duration::from_secs(10)).await.unwrap();
    });
}

/// Scenario: ten traces; a hundred evaluations of them an hour later, one a second; then a hundred of no trace.
/// Guarantees: evaluations go with their traces, so that half of what is there is half of the traces, however often those were
/// judged; what belongs to no trace counts for itself.
#[test]
fn the_oldest_half_is_of_traces_and_of_what_belongs_to_none() {
    let home = tempfile::tempdir().unwrap();
    let fill = async |of_traces: bool| {
        let (store, _) = open_at(home.path(), &config(), early).unwrap();
        let first = if of_traces { 0 } else { 1000 };
        for n in 1..=if of_traces { 10 } else { 0 } {
            let write = ToolWrite::Trace { trace: trace(n, 1), spans: Vec::new(), position: position(n, 0) };
            store.write(write).await.unwrap();
        }
        for n in first..first + 100 {
            let one = evaluation(1 + n % 10, &format!("e-{n}"), 0.9);
            let trace_id = one.trace_id.filter(|_| of_traces);
            let evaluation = Evaluation { created_at: at(3600 + n), trace_id, ..one };
            let write = ToolWrite::Evaluation { evaluation, position: position(20 + n, 0) };
            store.send_async(Write::Tool(Box::new(write))).await.unwrap();
        }
        store.close(Duration::from_secs(20)).await.unwrap();
    };
    let seconds = |part| {
        let connection = open::engine(home.path(), &config()).unwrap();
        let end = end_of_oldest(&connection, part).unwrap().unwrap();
        (end.as_unix_nanos() - early().as_unix_nanos()) / SECOND
    };
    runtime().block_on(fill(true));
    assert_eq!(seconds(0.5), 0, "all of them came at once");
    runtime().block_on(fill(false));
    assert!((4635..4655).contains(&seconds(0.5)), "{}", seconds(0.5));
}
