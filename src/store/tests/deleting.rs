//! Traces that are deleted.

use std::sync::Arc;
use std::time::Duration;

use iris_core::model::{Evaluation, Position, Tenant, Trace};

use super::fixtures::*;
use super::pages::{judge, text};
use super::writing::count;
use crate::deleted::Deletions;
use crate::store::{Store, ToolWrite, Write};

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
        store.send_async(Write::Rows(vec![waiting(1, 0), waiting(2, 1)])).await.unwrap();
        assert!(store.has_trace(&key(1)).await.unwrap());

        deleted.add(&key(1)).unwrap();
        store.write(deletion(1, position(11, 0))).await.unwrap();
        assert!(!store.has_trace(&key(1)).await.unwrap());
        store.send_async(Write::Record { lane: iris_core::model::Lane::Traces, seq: 12, rows: 2 }).await.unwrap();
        store.send_async(Write::Rows(vec![Arc::new(row(1, 2, position(12, 0)))])).await.unwrap();
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
        store.send_async(Write::Rows(vec![Arc::new(row(1, 3, position(13, 0)))])).await.unwrap();
        store.flush().await.unwrap();
        assert_eq!(store.load(&key(1)).await.unwrap().rows.len(), 0);
    });
}
