//! Traces that are deleted while their spans still come.

use super::*;
use crate::store::ToolWrite;

fn deletion(trace: u8) -> Bytes {
    let position = Position { lane: Lane::Traces, seq: 0, ordinal: 0 };
    let write = ToolWrite::Deletion { tenant: Tenant::local(), trace_id: trace_id(trace), position };
    Bytes::from(serde_json::to_vec(&write).unwrap())
}

/// Scenario: two judged traces and an open one; two are deleted, by a record in the journal alone, as after a crash
/// between the journal and everything else; later spans of them come, before and after a kill.
/// Guarantees: nothing of them is stored or shown again; the third stands; the lane goes on.
#[tokio::test]
async fn spans_of_a_deleted_trace_go_nowhere() {
    let home = tempfile::tempdir().unwrap();
    let running = start(home.path(), mind(), &QUICK).await;
    running.send(&[made(1, 1, "agent"), made(2, 1, "agent")]).await;
    running.trace(1, 1).await;
    running.trace(2, 1).await;
    running.send(&[Made { parent: 9, ..made(3, 1, "agent") }]).await;
    for trace in [1, 3] {
        running.send_body(Lane::Traces, Kind::Tombstone, deletion(trace)).await;
    }
    running.send(&[made(1, 2, "agent"), made(2, 2, "llm"), made(3, 2, "agent")]).await;
    running.trace(2, 2).await;
    assert!(running.deleted.contains(&key(1)) && running.deleted.contains(&key(3)));
    running.kill().await;

    let running = start(home.path(), mind(), &QUICK).await;
    let last = running.send(&[made(1, 3, "agent"), made(2, 3, "llm"), made(3, 3, "agent")]).await;
    running.trace(2, 3).await;
    running.store.flush().await.unwrap();
    for trace in [1, 3] {
        assert_eq!(running.store.trace(&Tenant::local(), trace_id(trace)).await.unwrap(), None);
        assert_eq!(running.store.load(&key(trace)).await.unwrap().rows.len(), 0);
        assert!(running.pipeline.open_trace(&key(trace)).await.unwrap().is_none());
    }
    assert_eq!(running.store.status().stored_through.traces, last);
    running.stop().await;
}
