//! A main file that is damaged.

use std::io::{Seek, SeekFrom, Write as _};
use std::time::Duration;

use iris_core::model::{Lane, Tenant};

use super::fixtures::*;
use super::pages::judge;
use super::writing::count;
use crate::deleted::Deletions;
use crate::store::beside::Beside;
use crate::store::mend::mend;
use crate::store::{Config, DamagedPart, Store, Through, Write, check, open as engine};

const GROUPS: u64 = 6;

/// A file of several row groups of spans, with a trace and an evaluation each, all behind a checkpoint.
async fn filled(home: &std::path::Path) {
    let (store, _) = open(home);
    for seq in 1..=GROUPS {
        store.send_async(Write::Record { lane: Lane::Traces, seq, rows: 4096 }).await.unwrap();
        store.send_async(packed(rows(seq, seq, 4096))).await.unwrap();
        judge(&store, trace(seq, 1), evaluation(seq, &format!("e-{seq}"), 0.5)).await;
        store.flush().await.unwrap();
    }
    store.checkpoint().await.unwrap();
    store.close(Duration::from_secs(20)).await.unwrap();
}

/// Scenario: pages of the file are overwritten, one place after the other over the whole of it.
/// Guarantees: every start gets through, with a new file where the old one could not be read; what is lost is counted, or
/// said not to be known; rows that were not touched are there; the journal is read again from where it begins; the
/// check says damaged before and whole after.
#[test]
fn what_can_be_read_of_a_damaged_file_is_kept() {
    let full = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        filled(full.path()).await;
        let bytes = std::fs::metadata(full.path().join("iris.duckdb")).unwrap().len();
        let (mut salvaged, mut in_part) = (0, 0);
        for place in 0..12 {
            let home = copy_of(full.path());
            let file = home.path().join("iris.duckdb");
            let mut opened = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
            opened.seek(SeekFrom::Start(bytes / 12 * place + 100)).unwrap();
            opened.write_all(&[0xa5; 3000]).unwrap();
            drop(opened);
            let before = check(home.path(), &config()).unwrap();
            let config = Config { journal_from: Through { traces: 2, ..Through::default() }, ..config() };
            let (store, boot) = Store::open(home.path(), &config, Deletions::default()).unwrap();
            let rows = count(&store, "spans").await;
            if let Some(damage) = boot.damage.first() {
                let found = damage.salvaged.clone().unwrap();
                // What a start meets may be no row at all.
                let is_seen = before.iter().any(|table| table.error.is_some());
                assert!(is_seen || (found.whole && found.lost_rows == 0), "{place}: {damage:?}");
                assert_eq!(damage.part, DamagedPart::Main);
                assert!(boot.stored_through.traces <= 2, "{place}: {:?}", boot.stored_through);
                assert!(!found.whole || rows + found.lost_rows >= GROUPS * 4096, "{place}: {rows} {found:?}");
                salvaged += 1;
                in_part += usize::from(rows > 0 && rows < GROUPS * 4096);
            }
            store.send_async(packed(super::fixtures::rows(99, 99, 10))).await.unwrap();
            store.flush().await.unwrap();
            assert_eq!(store.load(&key(99)).await.unwrap().rows.len(), 10);
            let read = store.trace(&Tenant::local(), trace_id(1)).await;
            assert!(read.is_ok() || boot.damage.is_empty(), "{place}: {:?}", boot.damage);
            store.close(Duration::from_secs(10)).await.unwrap();
            if !boot.damage.is_empty() {
                let after = check(home.path(), &config).unwrap();
                assert!(after.iter().all(|table| table.error.is_none()), "{place}: {after:?}");
            }
        }
        assert!(salvaged >= 2, "only {salvaged} places mattered at a start, {in_part} in part");
    });
}

/// Scenario: of two traces with long values the pieces of one are lost, and then the shapes of all results; the journal has
/// everything, or nothing any more.
/// Guarantees: what leans on what was lost goes where the journal has it, and stays where it has not; its neighbour stays;
/// no number that was given out is given out again, or a later row would get what belonged to an earlier one.
#[test]
fn what_leans_on_lost_rows_is_stored_again_and_no_number_is_used_twice() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        for n in [1, 2] {
            let mut one = trace(n, 1);
            (one.output, one.seen_through) = (Some("0123456789".repeat(3000)), 10);
            let mut judged = evaluation(n, &format!("e-{n}"), 0.5);
            judged.seen_through = 10;
            judge(&store, one, judged).await;
        }
        store.flush().await.unwrap();
        store.close(Duration::from_secs(20)).await.unwrap();
    });
    let nothing = Through { traces: 99, logs: 99, metrics: 0 };
    // The lane of logs began later than these traces came.
    let later = Through { logs: 50, ..Through::default() };
    for (from, traces, evaluations) in [(Through::default(), 1, 0), (later, 1, 0), (nothing, 2, 2)] {
        let copy = copy_of(home.path());
        let file = engine::engine(copy.path(), &config()).unwrap();
        let number = |sql: &str| file.query_row(sql, [], |row| row.get::<_, u64>(0)).unwrap();
        let last = number("SELECT max(owner) FROM pieces");
        assert!(last > 1);
        file.execute("DELETE FROM pieces WHERE owner = ?", [last]).unwrap();
        mend(&file, from, &["pieces"]).unwrap();
        assert_eq!(number("SELECT count(*) FROM traces"), traces);
        assert_eq!(number("SELECT count(*) FROM traces WHERE long_id = 1"), 1, "its neighbour is whole");
        assert!(number("SELECT max(owner) FROM pieces") > last, "the number of the lost one stays given out");
        file.execute("DELETE FROM shapes", []).unwrap();
        mend(&file, from, &["shapes"]).unwrap();
        assert_eq!(number("SELECT count(*) FROM evaluations"), evaluations);
        assert!(number("SELECT min(id) FROM shapes") > 8192, "numbers go on above all that may have been");
        Beside::of(&file).unwrap();
    }
}
