//! A main file that is damaged.

use std::io::{Seek, SeekFrom, Write as _};
use std::time::Duration;

use iris_core::model::{Lane, Tenant};

use super::fixtures::*;
use super::pages::judge;
use super::writing::count;
use crate::deleted::Deletions;
use crate::store::{Config, DamagedPart, Store, Through, Write, check};

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
