//! Traces that are deleted.

use std::sync::Arc;
use std::time::Duration;

use iris_core::model::{Evaluation, Position, Tenant, Trace};

use super::fixtures::*;
use super::pages::{judge, text};
use super::writing::count;
use crate::deleted::Deletions;
use crate::store::{self, Store, ToolWrite, Write};

const CANARY: &str = "CANARY-7f3a";

fn deletion(n: u64, position: Position) -> ToolWrite {
    ToolWrite::Deletion { tenant: Tenant::local(), trace_id: trace_id(n), position }
}

fn evaluated(n: u64, position: Position) -> ToolWrite {
    let evaluation = Evaluation {
        inline: false,
        position: Some(position),
        output_text: Some(CANARY.to_owned()),
        suggestions: vec![CANARY.to_owned()],
        ..evaluation(n, &format!("by-tool-{n}"), 0.9)
    };
    ToolWrite::Evaluation { evaluation, position }
}

/// Every text of every row, as one.
async fn everything(store: &Store) -> String {
    let mut all = String::new();
    for table in ["spans", "traces", "evaluations", "pieces", "shapes"] {
        let sql = format!("SELECT t::VARCHAR FROM {table} t");
        let read = |row: &duckdb::Row<'_>| row.get::<_, String>(0).map_err(crate::store::Error::engine);
        let rows = store.inner.readers.read(move |reader| reader.rows(&sql, &[], read)).await.unwrap();
        all.extend(rows);
    }
    all
}

fn spoken(n: u64) -> Trace {
    Trace { output: Some(format!("{CANARY} {}", text(n, 30_000))), ..trace(n, 1) }
}

/// Scenario: two traces with long texts, evaluations by tools, and rows that still wait for their commit; one is
/// deleted; then come a row, a judging and an evaluation of it that were under way, and the same deletion again.
/// Guarantees: nothing of it is left but verdicts without text; the other trace is untouched; positions move on.
#[test]
fn nothing_of_a_deleted_trace_is_left_or_comes_back() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let deleted = Deletions::open(home.path()).unwrap();
        let (store, _) = Store::open(home.path(), &config(), deleted.clone()).unwrap();
        for n in [1, 2] {
            let inline = Evaluation { output_text: None, ..evaluation(n, &format!("inline-{n}"), 0.2) };
            judge(&store, spoken(n), inline).await;
            store.write(evaluated(n, position(n, 0))).await.unwrap();
        }
        store.flush().await.unwrap();
        store.send_async(Write::Record { lane: iris_core::model::Lane::Traces, seq: 10, rows: 2 }).await.unwrap();
        let waiting = |n, ordinal| Arc::new(row(n, 1, position(10, ordinal)));
        store.send_async(packed(vec![waiting(1, 0), waiting(2, 1)])).await.unwrap();
        assert!(store.has_trace(&key(1)).await.unwrap());

        deleted.add(&key(1)).unwrap();
        store.write(deletion(1, position(11, 0))).await.unwrap();
        assert!(!store.has_trace(&key(1)).await.unwrap());
        store.send_async(Write::Record { lane: iris_core::model::Lane::Traces, seq: 12, rows: 2 }).await.unwrap();
        store.send_async(packed(vec![Arc::new(row(1, 2, position(12, 0)))])).await.unwrap();
        store.send_async(Write::Tool(Box::new(evaluated(1, position(12, 1))))).await.unwrap();
        let inline = Evaluation { output_text: Some(CANARY.to_owned()), ..evaluation(1, "too late", 0.9) };
        judge(&store, Trace { version: 2, ..spoken(1) }, inline).await;
        store.send_async(Write::Tool(Box::new(deletion(1, position(11, 0))))).await.unwrap();
        store.flush().await.unwrap();

        assert_eq!(store.trace(&Tenant::local(), trace_id(1)).await.unwrap(), None);
        assert_eq!(store.load(&key(1)).await.unwrap().rows.len(), 0);
        for id in ["inline-1", "by-tool-1"] {
            let kept = store.evaluation(&Tenant::local(), id).await.unwrap().unwrap();
            assert!(kept.erased_at.is_some() && kept.suggestions.is_empty(), "{kept:?}");
        }
        assert_eq!(store.evaluation(&Tenant::local(), "too late").await.unwrap(), None);
        assert_eq!(store.trace(&Tenant::local(), trace_id(2)).await.unwrap(), Some(spoken(2)));
        assert_eq!(store.load(&key(2)).await.unwrap().rows.len(), 1);
        let left = everything(&store).await;
        // The output of the other trace in its row, and the text and the suggestion of its evaluation.
        assert_eq!(
            left.matches(CANARY).count(),
            4,
            "the head of the output and its first piece, and two in the evaluation"
        );
        assert_eq!(count(&store, "spans").await, 1);
        assert_eq!(store.status().stored_through.traces, 12);
        store.close(Duration::from_secs(5)).await.unwrap();

        let (store, _) = Store::open(home.path(), &config(), Deletions::open(home.path()).unwrap()).unwrap();
        store.send_async(packed(vec![Arc::new(row(1, 3, position(13, 0)))])).await.unwrap();
        store.flush().await.unwrap();
        assert_eq!(store.load(&key(1)).await.unwrap().rows.len(), 0);
    });
}

/// Scenario: an evaluation whose journal record is known only once that is written, of a trace that is deleted.
/// Guarantees: what is left of it still says which record it came from: after a kill the journal's reader stores it no second time.
#[test]
fn what_is_left_of_an_evaluation_names_its_record() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        judge(&store, spoken(1), evaluation(1, "inline", 0.2)).await;
        let mut write = evaluated(1, position(0, 0));
        write.place(position(7, 0));
        store.write(write).await.unwrap();
        // As earlier builds wrote it: the record in the columns alone.
        let ToolWrite::Evaluation { evaluation, .. } = evaluated(1, position(0, 0)) else { unreachable!() };
        let earlier = Evaluation { id: "by-tool-0".to_owned(), ..evaluation };
        store.write(ToolWrite::Evaluation { evaluation: earlier, position: position(6, 3) }).await.unwrap();
        store.write(deletion(1, position(8, 0))).await.unwrap();
        let sql = "SELECT seq, ordinal FROM evaluations WHERE starts_with(id, 'by-tool') AND erased ORDER BY id";
        let read = |row: &duckdb::Row<'_>| {
            let read = || -> duckdb::Result<(u64, u32)> { Ok((row.get(0)?, row.get(1)?)) };
            read().map_err(crate::store::Error::engine)
        };
        let found = store.inner.readers.read(move |reader| reader.rows(sql, &[], read)).await.unwrap();
        assert_eq!(found, [(6, 3), (7, 0)]);
    });
}

fn long(n: u64) -> Trace {
    Trace { output: Some(text(n, 30_000)), ..trace(n, 1) }
}

/// Files below a folder that hold a text.
fn files_with(folder: &std::path::Path, text: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if std::fs::read(&path).unwrap().windows(text.len()).any(|part| part == text.as_bytes()) {
            found.push(path);
        }
    }
    found
}

/// Scenario: a trace with a canary where it is stored as it is, checkpointed; it is deleted with the file to be written
/// anew at once, or after the next start; long values and other traces stand beside it.
/// Guarantees: the canary is on disk before and in no file after; the reply was not early; everything else reads as
/// before, also after another start.
#[test]
fn the_bytes_of_a_deleted_trace_go() {
    for restarted in [false, true] {
        let home = tempfile::tempdir().unwrap();
        let within = |within_minutes| store::Config { erase: store::Erase { within_minutes }, ..config() };
        runtime().block_on(async {
            let deleted = Deletions::open(home.path()).unwrap();
            let first = within(if restarted { 60 } else { 0 });
            let (store, _) = Store::open(home.path(), &first, deleted.clone()).unwrap();
            for n in 1..=40 {
                let agent_name = if n == 1 { format!("agent {CANARY}") } else { format!("agent {n}") };
                judge(&store, Trace { agent_name, ..long(n) }, evaluation(n, &format!("e-{n}"), 0.2)).await;
            }
            store.send_async(packed(rows(2, 1, 3))).await.unwrap();
            store.checkpoint().await.unwrap();
            assert!(!files_with(home.path(), CANARY).is_empty(), "the control finds it");

            deleted.add(&key(1)).unwrap();
            store.write(deletion(1, position(50, 0))).await.unwrap();
            let store = if restarted {
                assert!(store.status().erase_due.is_some());
                store.close(Duration::from_secs(10)).await.unwrap();
                assert!(!files_with(home.path(), CANARY).is_empty(), "deleted rows leave their bytes");
                Store::open(home.path(), &within(0), deleted.clone()).unwrap().0
            } else {
                store
            };
            until("the rewriting", || *store.rewritten().borrow() == 1).await;
            assert_eq!(files_with(home.path(), CANARY), Vec::<std::path::PathBuf>::new());
            assert_eq!(store.status().erase_due, None);
            assert_eq!(store.trace(&Tenant::local(), trace_id(1)).await.unwrap(), None);
            judge(&store, trace(41, 1), evaluation(41, "e-41", 0.9)).await;
            store.flush().await.unwrap();
            store.close(Duration::from_secs(10)).await.unwrap();

            let (store, boot) = Store::open(home.path(), &within(0), deleted).unwrap();
            assert!(boot.damage.is_empty());
            for n in 2..=40 {
                let trace = store.trace(&Tenant::local(), trace_id(n)).await.unwrap().unwrap();
                assert!(trace.output == long(n).output && trace.agent_name == format!("agent {n}"));
                assert!(store.evaluation(&Tenant::local(), &format!("e-{n}")).await.unwrap().is_some());
            }
            assert_eq!(store.load(&key(2)).await.unwrap().rows.len(), 3);
            assert!(store.trace(&Tenant::local(), trace_id(41)).await.unwrap().is_some());
            assert_eq!(*store.rewritten().borrow(), 0, "once is enough");
        });
    }
}
