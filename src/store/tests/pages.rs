//! Pages of large values, and rows that cannot be read, under the engine's usual memory limit.

use iris_core::model::{Evaluation, Tenant, Trace};
use serde_json::json;

use super::fixtures::*;
use crate::store::{self, Bounds, Budget, Error, Lost, PageRow, Settled, Store, TracePage, TraceQuery, Write};

/// What a page may carry whole in these tests.
const PAGE_BYTES: u64 = 1 << 20;

pub async fn judge(store: &Store, trace: Trace, evaluation: Evaluation) {
    let (trace, evaluation) = (Box::new(trace), std::sync::Arc::new(evaluation));
    let settled_through = Settled::default();
    store.send_async(Write::Judged { ticket: 1, trace, evaluation, settled_through }).await.unwrap();
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// A text of so many bytes that compresses about as well as prose.
pub fn text(seed: u64, bytes: usize) -> String {
    let mut state = seed | 1;
    let mut text = String::with_capacity(bytes + 8);
    while text.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let byte = (state >> 56) as usize;
        text.extend([HEX[byte >> 4], HEX[byte & 15], b' '].map(char::from));
    }
    text.truncate(bytes);
    text
}

async fn page(store: &Store, query: TraceQuery, bytes: u64) -> TracePage {
    let shrink = |document: &mut serde_json::Value| {
        *document = json!({ "cut": true });
        true
    };
    let query = TraceQuery { limit: 100, ..query };
    store.traces(&Tenant::local(), &query, Budget { bytes, shrink }).await.unwrap()
}

/// Sixty traces with 60 MB of answers: more than the engine could handle as one vector of rows within its 96 MiB.
const TRACES: u64 = 60;
const OUTPUT_BYTES: usize = 1_000_000;

async fn sixty(store: &Store) {
    for n in 1..=TRACES {
        let large = Trace {
            output: Some(text(n, OUTPUT_BYTES)),
            runs: Vec::new(),
            metadata: object(json!({ "n": n })),
            ..trace(n, 1)
        };
        judge(store, large, Evaluation { output_text: None, ..evaluation(n, &format!("e-{n}"), 0.9) }).await;
        store.flush().await.unwrap();
    }
}

fn check(page: &TracePage) {
    assert_eq!((page.rows.len(), page.total, page.unreadable.len()), (60, TRACES, 0));
    for (row, n) in page.rows.iter().zip((1..=TRACES).rev()) {
        let PageRow { trace, evaluation, lost } = row;
        assert_eq!(trace.trace_id, trace_id(n));
        assert_eq!(trace.output.as_deref(), Some(&text(n, OUTPUT_BYTES)[..4096]));
        assert_eq!(*lost, Lost { output: OUTPUT_BYTES as u64 - 4096, ..Lost::default() });
        assert_eq!(trace.metadata["n"], n);
        assert_eq!(evaluation.as_ref().map(|evaluation| evaluation.id.clone()), Some(format!("e-{n}")));
    }
}

/// Scenario: sixty traces of 1 MB; a page of all, brief and full, and one by its id, before a checkpoint and after
/// another start.
/// Guarantees: every page is answered, long texts cut and counted; the one is whole.
#[test]
fn a_page_of_large_traces_is_answered_within_the_engines_memory() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (mut store, _) = open(home.path());
        sixty(&store).await;
        for restarted in [false, true] {
            if restarted {
                store.checkpoint().await.unwrap();
                store.close(std::time::Duration::from_secs(20)).await.unwrap();
                store = open(home.path()).0;
            }
            check(&page(&store, TraceQuery::default(), 0).await);
            check(&page(&store, TraceQuery::default(), PAGE_BYTES).await);
            let one = TraceQuery { trace_id: Some(trace_id(7)), ..TraceQuery::default() };
            let one = page(&store, one, 8 << 20).await;
            assert_eq!(one.rows[0].trace.output, Some(text(7, OUTPUT_BYTES)));
            assert_eq!(one.rows[0].lost, Lost::default());
            let stored = store.trace(&Tenant::local(), trace_id(7)).await.unwrap().unwrap();
            assert_eq!(stored.output, Some(text(7, OUTPUT_BYTES)));
        }
    });
}

/// Scenario: two traces with long documents, a long body and long texts in other letters than ASCII.
/// Guarantees: within the budget all of it is whole; above, texts are cut at characters and documents shrunk; an
/// evaluation loses no more than the text that it judged.
#[test]
fn long_values_are_whole_until_the_page_is_too_large() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        let large = Trace {
            input: Some("ü".repeat(10_000)),
            output: Some("short".to_owned()),
            metadata: object(json!({ "blob": "x".repeat(20_000) })),
            user_id: Some("u".repeat(20_000)),
            ..trace(1, 1)
        };
        let spoken = format!("{} \"output_text\":\"no key\" \\ end", "y".repeat(70_000));
        let judged = Evaluation { output_text: Some(spoken.clone()), ..evaluation(1, "e-1", 0.9) };
        judge(&store, large.clone(), judged.clone()).await;
        judge(&store, trace(2, 1), evaluation(2, "e-2", 0.9)).await;
        store.flush().await.unwrap();

        let whole = page(&store, TraceQuery::default(), PAGE_BYTES).await;
        assert_eq!(whole.rows[1].trace, Trace { runs: Vec::new(), ..large.clone() });
        assert_eq!(whole.rows[1].lost, Lost::default());
        let stripped = Evaluation { output_text: Some(String::new()), ..judged };
        assert_eq!(whole.rows[1].evaluation, Some(stripped.clone()));
        let evaluations = store.evaluations(&Tenant::local(), trace_id(1), Bounds::WHOLE).await.unwrap();
        assert_eq!(evaluations.items, [stripped]);

        let cut = page(&store, TraceQuery::default(), 30_000).await;
        let row = &cut.rows[1];
        assert_eq!(row.trace.input, Some("ü".repeat(2048)));
        assert_eq!(row.trace.metadata, object(json!({ "cut": true })));
        assert_eq!((&row.trace.output, &row.trace.user_id), (&large.output, &large.user_id));
        assert_eq!(row.lost, Lost { input: 10_000 - 2048, metadata: true, ..Lost::default() });
        assert_eq!(cut.rows[0].trace.metadata, trace(2, 1).metadata, "short documents stay");
    });
}

/// Scenario: one trace, one evaluation and one span are no longer what was written.
/// Guarantees: the store starts; each is left out, counted and named; every neighbour is answered.
#[test]
fn a_row_that_cannot_be_read_fails_no_other() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        for n in 1..=5 {
            judge(&store, trace(n, 1), evaluation(n, &format!("e-{n}"), 0.9)).await;
        }
        store.send_async(packed(rows(5, 1, 3))).await.unwrap();
        store.close(std::time::Duration::from_secs(5)).await.unwrap();
        let connection = store::open::engine(home.path(), &config()).unwrap();
        let of = |n: u64| trace_id(n).as_bytes().to_vec();
        for (sql, n) in [
            ("UPDATE traces SET body = 'not json' WHERE trace_id = ?", 2),
            ("UPDATE evaluations SET body = 'null' WHERE trace_id = ?", 4),
            ("UPDATE spans SET rest = '{\"flags\": \"x\"}' WHERE trace_id = ? AND ordinal = 1", 5),
        ] {
            assert_eq!(connection.execute(sql, [of(n)]).unwrap(), 1, "{sql}");
        }
        drop(connection);

        let (store, _) = open(home.path());
        let page = page(&store, TraceQuery::default(), PAGE_BYTES).await;
        let shown: Vec<_> =
            page.rows.iter().map(|row| row.evaluation.as_ref().map(|evaluation| evaluation.id.as_str())).collect();
        assert_eq!(shown, [Some("e-5"), None, Some("e-3"), Some("e-1")]);
        assert_eq!((page.total, page.unreadable), (5, vec![trace_id(2)]));
        assert_eq!(store.status().unreadable, 2);
        let spans = store.spans(&Tenant::local(), trace_id(5), Bounds::WHOLE).await.unwrap();
        assert_eq!((spans.items.len(), spans.total, spans.left_out), (2, 3, 1));
        assert_eq!(store.load(&key(5)).await.unwrap().rows.len(), 2);
        let evaluations = store.evaluations(&Tenant::local(), trace_id(4), Bounds::WHOLE).await.unwrap();
        assert_eq!((evaluations.items.len(), evaluations.total, evaluations.left_out), (0, 1, 1));
        assert_eq!(store.status().unreadable, 5);
        let error = store.trace(&Tenant::local(), trace_id(2)).await.unwrap_err();
        assert!(matches!(error, Error::Unreadable { table: "traces", .. }), "{error:?}");
    });
}

/// Scenario: a trace of spans with 10 MB between them, read within bounds.
/// Guarantees: no row more than the bounds allow is read, and how many there are is said.
#[test]
fn readers_of_spans_and_evaluations_stop_at_their_bounds() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        let large = |n: u32| {
            let mut row = row(1, u64::from(n), position(1, n));
            if let iris_core::model::Observation::Span(span) = &mut row.observation {
                span.attributes.insert("page".to_owned(), json!(text(u64::from(n), 500_000)));
            }
            std::sync::Arc::new(row)
        };
        store.send_async(packed((0..20).map(large))).await.unwrap();
        for n in 0..5 {
            judge(&store, trace(1, n + 1), evaluation(1, &format!("e-{n}"), 0.9)).await;
        }
        store.flush().await.unwrap();
        let spans = |items, bytes| {
            let store = store.clone();
            async move {
                let part = store.spans(&Tenant::local(), trace_id(1), Bounds { items, bytes }).await.unwrap();
                (part.items.len(), part.total, part.left_out)
            }
        };
        assert_eq!(spans(3, u64::MAX).await, (3, 20, 0));
        assert_eq!(spans(usize::MAX, 1_200_000).await, (3, 20, 0));
        assert_eq!(spans(usize::MAX, u64::MAX).await, (20, 20, 0));
        let bounds = Bounds { items: 2, bytes: u64::MAX };
        let evaluations = store.evaluations(&Tenant::local(), trace_id(1), bounds).await.unwrap();
        let ids: Vec<_> = evaluations.items.iter().map(|evaluation| evaluation.id.as_str()).collect();
        assert_eq!((ids, evaluations.total), (vec!["e-4", "e-3"], 5));
    });
}
