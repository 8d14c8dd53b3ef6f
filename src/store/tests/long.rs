//! Values far longer than a row holds, under the engine's usual memory limit.

use std::sync::Arc;
use std::time::Duration;

use iris_core::model::{Evaluation, Observation, RawSpan, Row, Tenant, Trace};
use serde_json::json;

use super::fixtures::*;
use super::pages::{judge, text};
use super::writing::count;
use crate::store::{Bounds, Budget, Store, ToolWrite, TraceQuery};

const CLOSE: Duration = Duration::from_secs(60);

fn long_row(n: u64, bytes: usize) -> Row {
    let mut row = row(n / 8, n, position(n + 1, 0));
    if let Observation::Span(span) = &mut row.observation {
        span.attributes.insert("page".to_owned(), json!(text(n, bytes)));
    }
    row
}

/// Checkpoints, closes and opens again: whatever the engine must do with what it holds, it does here.
async fn reopened(store: Store, home: &std::path::Path) -> Store {
    store.checkpoint().await.unwrap();
    store.close(CLOSE).await.unwrap();
    open(home).0
}

/// Scenario: 2,400 spans of 50 KB, 120 MB in little more than one vector of rows; a checkpoint; another start.
/// Guarantees: all are stored, and any trace of them reads back as it was sent.
#[test]
fn many_neighbours_of_fifty_kilobytes_are_stored_and_read() {
    const SPANS: u64 = 2400;
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        for n in 0..SPANS {
            store.send_async(packed(vec![Arc::new(long_row(n, 50_000))])).await.unwrap();
        }
        let store = reopened(store, home.path()).await;
        assert_eq!(count(&store, "spans").await, SPANS);
        for trace in [0, 137, SPANS / 8 - 1] {
            let part = store.spans(&Tenant::local(), trace_id(trace), Bounds::WHOLE).await.unwrap();
            let sent: Vec<Row> = (trace * 8..trace * 8 + 8).map(|n| unread(&long_row(n, 50_000))).collect();
            assert!(part.items == sent && part.left_out == 0, "trace {trace}");
        }
        assert_eq!(store.status().unreadable, 0);
    });
}

/// Scenario: sixty traces with answers of 2 MB, each judged with the answer in the evaluation; a checkpoint; another start.
/// Guarantees: a page of all of them is answered, one of them whole, and so is an evaluation.
#[test]
fn many_neighbours_of_two_megabytes_are_stored_and_read() {
    const TRACES: u64 = 60;
    let answer = |n: u64| Some(text(n, 2_000_000));
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        for n in 1..=TRACES {
            let large = Trace { output: answer(n), ..trace(n, 1) };
            judge(&store, large, Evaluation { output_text: answer(n), ..evaluation(n, &format!("e-{n}"), 0.9) }).await;
        }
        let store = reopened(store, home.path()).await;
        let query = TraceQuery { limit: 1000, ..TraceQuery::default() };
        let budget = Budget { bytes: 1 << 20, shrink: |_| false };
        let page = store.traces(&Tenant::local(), &query, budget).await.unwrap();
        assert_eq!((page.rows.len() as u64, page.unreadable.len()), (TRACES, 0));
        assert!(page.rows.iter().all(|row| row.lost.output == 2_000_000 - 4096 && row.evaluation.is_some()));
        for n in [1, 30, TRACES] {
            let trace = store.trace(&Tenant::local(), trace_id(n)).await.unwrap().unwrap();
            assert!(trace.output == answer(n) && trace.runs == super::fixtures::trace(n, 1).runs);
            let evaluation = store.evaluation(&Tenant::local(), &format!("e-{n}")).await.unwrap().unwrap();
            assert!(evaluation.output_text == answer(n));
        }
    });
}

/// Scenario: one span with 30 MB in one attribute, a name of 20 KB, and a trace with every field long.
/// Guarantees: they read back as they were sent, filters find a long name, and a deletion leaves no piece behind.
#[test]
fn one_enormous_value_is_a_value_like_any_other() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open_at(home.path(), &config(), || at(1)).unwrap();
        let mut enormous = long_row(8, 30_000_000);
        if let Observation::Span(span) = &mut enormous.observation {
            span.name = text(1, 20_000);
            span.status_message = text(2, 20_000);
        }
        store.send_async(packed(vec![Arc::new(enormous.clone())])).await.unwrap();
        let long = |n| text(n, 40_000);
        let large = Trace {
            agent_name: long(1),
            session_id: Some(long(2)),
            input: Some("é".repeat(30_000)),
            output: Some(long(3)),
            metadata: object(json!({ "blob": long(4) })),
            tool_calls: Some(vec![iris_core::model::ToolCall { tool_name: long(5), ..Default::default() }]),
            runs: vec![iris_core::model::Run { error: Some(long(6)), ..Default::default() }],
            ..trace(1, 1)
        };
        let mut late =
            Evaluation { suggestions: vec![long(7)], output_text: Some(long(8)), ..evaluation(1, "late", 0.9) };
        late.created_at = at(DAYS * 39);
        judge(&store, large.clone(), Evaluation { suggestions: vec![long(9)], ..evaluation(1, "old", 0.9) }).await;
        judge(&store, Trace { version: 2, ..large.clone() }, late.clone()).await;
        let tool = ToolWrite::Trace {
            trace: Trace { output: Some(long(10)), ..trace(2, 1) },
            spans: vec![RawSpan { status_message: long(11), ..span(2, 0) }],
            position: position(9, 0),
        };
        store.write(tool).await.unwrap();
        let store = reopened(store, home.path()).await;

        let part = store.spans(&Tenant::local(), trace_id(1), Bounds::WHOLE).await.unwrap();
        assert!(part.items == [unread(&enormous)]);
        let query = TraceQuery { agent_name: Some(long(1)), session_id: Some(long(2)), limit: 9, ..Default::default() };
        let page = store.traces(&Tenant::local(), &query, Budget::WHOLE).await.unwrap();
        let shown = Trace { version: 2, runs: Vec::new(), ..large.clone() };
        assert!(page.rows.len() == 1 && page.rows[0].trace == shown);
        let stored = store.trace(&Tenant::local(), trace_id(1)).await.unwrap();
        assert!(stored == Some(Trace { version: 2, ..large }));
        assert!(store.evaluation(&Tenant::local(), "late").await.unwrap() == Some(late.clone()));
        assert!(count(&store, "pieces").await > 7000);
        store.close(CLOSE).await.unwrap();

        let (store, _) = open_at(home.path(), &config(), || at(40 * DAYS)).unwrap();
        until("the sweep", || store.status().swept > 0 && store.status().checkpoints > 0).await;
        let kept = store.evaluation(&Tenant::local(), "late").await.unwrap().unwrap();
        assert_eq!((kept.score, kept.output_text.as_deref(), kept.suggestions.len()), (late.score, Some(""), 0));
        assert_eq!(count(&store, "pieces").await, 0);
    });
}

const DAYS: u64 = 24 * 60 * 60;

/// Scenario: a piece of one span is gone.
/// Guarantees: that span is left out and counted; its neighbour stands.
#[test]
fn a_row_whose_pieces_are_not_whole_is_left_out() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        let rows: Vec<Row> = (8..10).map(|n| long_row(n, 50_000)).collect();
        store.send_async(packed(rows.iter().cloned().map(Arc::new))).await.unwrap();
        store.close(CLOSE).await.unwrap();
        let connection = crate::store::open::engine(home.path(), &config()).unwrap();
        connection.execute("DELETE FROM pieces WHERE owner = 1 AND ordinal = 2", []).unwrap();
        drop(connection);
        let (store, _) = open(home.path());
        let part = store.spans(&Tenant::local(), trace_id(1), Bounds::WHOLE).await.unwrap();
        assert!(part.items == [unread(&rows[1])] && part.left_out == 1 && part.total == 2);
        assert_eq!(store.status().unreadable, 1);
    });
}
