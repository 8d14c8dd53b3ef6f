//! What a start knows of the traces of earlier ones.

use super::*;

/// Scenario: judged traces are in the store; the process starts again; new traces come that began before the start,
/// and a late span of a stored one.
/// Guarantees: no new trace is looked up; the late span is joined to its trace.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_start_only_late_spans_are_looked_up() {
    let home = tempfile::tempdir().unwrap();
    let running = start(home.path(), mind(), &QUICK).await;
    for trace in 1..=40 {
        running.send(&[made(trace, 1, "agent").just_now(), made(trace, 2, "tool").just_now()]).await;
    }
    running.until("all judged", |status| status.judged == 40 && status.traces.open == 0).await;
    running.stop().await;

    let running = start(home.path(), mind(), &QUICK).await;
    for trace in 101..=150 {
        running.send(&[made(trace, 1, "agent").just_now(), made(trace, 2, "tool").just_now()]).await;
    }
    running.until("all judged", |status| status.judged == 50 && status.traces.open == 0).await;
    let status = running.pipeline.status();
    assert_eq!((status.traces.loads, status.traces.remembered), (0, 90));

    running.send(&[made(7, 3, "tool").just_now()]).await;
    assert_eq!(running.trace(7, 3).await.version, 2);
    running.until("let go", |status| status.traces.open == 0).await;
    assert_eq!(running.pipeline.status().traces.loads, 1);
    let ids: Vec<_> = running.evaluations(7).await.into_iter().map(|evaluation| evaluation.trace_version).collect();
    assert_eq!(ids, [Some(2), Some(1)]);
    running.stop().await;
}

/// Scenario: rows of a trace without AI were stored because it stayed undecided; the process starts again; its agent
/// comes late.
/// Guarantees: it is judged with the rows of before.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_start_a_plain_trace_is_known_too() {
    let home = tempfile::tempdir().unwrap();
    let soon = Config { undecided_ms: 30, idle_ms: 100, give_up_ms: 200, ..QUICK };
    let running = start(home.path(), mind(), &soon).await;
    running.send(&[made(1, 2, "").just_now()]).await;
    running.until("given up", |status| status.traces.plain == 1 && status.traces.open == 0).await;
    running.stop().await;

    let running = start(home.path(), mind(), &QUICK).await;
    running.send(&[made(1, 1, "agent").just_now()]).await;
    assert_eq!(running.trace(1, 2).await.version, 1);
    running.stop().await;
}

/// Scenario: a trace is open and the process starts again, so that its first span is only in the store.
/// Guarantees: it is shown with all it has, by its id and among the open ones, before it settles.
#[tokio::test(flavor = "multi_thread")]
async fn an_open_trace_that_is_only_in_the_store_is_shown() {
    let home = tempfile::tempdir().unwrap();
    let patient = Config { idle_ms: 60_000, give_up_ms: 600_000, ..QUICK };
    let running = start(home.path(), mind(), &patient).await;
    running.send(&[made(1, 2, "tool").says("from before").just_now()]).await;
    running.until("read", |status| status.traces.open == 1).await;
    running.stop().await;

    // Long waits: nothing is loaded while it is looked at.
    let slow = Config { quiet_ms: 600_000, settle_ms: 600_000, ..patient };
    let running = start(home.path(), mind(), &slow).await;
    let (trace, _) = running.pipeline.open_trace(&key(1)).await.unwrap().expect("an open trace");
    assert_eq!((trace.output.as_deref(), trace.in_progress, trace.version), (Some("from before"), true, 1));
    let seq = running.send(&[made(1, 3, "tool").says("just now").just_now()]).await;
    running.until("read", |status| status.lanes.first().is_some_and(|lane| lane.read_through == seq)).await;
    let (trace, _) = running.pipeline.open_trace(&key(1)).await.unwrap().expect("an open trace");
    assert_eq!((trace.output.as_deref(), trace.span_count), (Some("from before just now"), 2));
    assert_eq!(trace.seen_through, seq);
    let shown = running.pipeline.open_traces(&Tenant::local()).await;
    assert_eq!(shown.len(), 1);
    assert_eq!(running.pipeline.status().traces.loads, 0);
    running.stop().await;
}

/// Scenario: a judged trace is reopened by a late span, then by one that it had; neither is loaded yet.
/// Guarantees: with news it is shown as in progress, and what was seen stands; without, the stored verdict answers.
#[tokio::test(flavor = "multi_thread")]
async fn a_reopened_trace_is_shown_with_its_news_only() {
    let home = tempfile::tempdir().unwrap();
    let running = start(home.path(), mind(), &QUICK).await;
    for trace in [1, 2] {
        running.send(&[made(trace, 1, "agent").says("LEAK")]).await;
    }
    running.until("all judged", |status| status.judged == 2 && status.traces.open == 0).await;
    running.stop().await;

    let slow = Config { quiet_ms: 600_000, settle_ms: 600_000, idle_ms: 600_000, give_up_ms: 600_000, ..QUICK };
    let running = start(home.path(), mind(), &slow).await;
    running.send(&[made(1, 2, "tool").says("all is well")]).await;
    let seq = running.send(&[made(2, 1, "agent").says("LEAK")]).await;
    running.until("read", |status| status.lanes.first().is_some_and(|lane| lane.read_through == seq)).await;
    let (trace, evaluation) = running.pipeline.open_trace(&key(1)).await.unwrap().expect("news");
    assert_eq!((trace.version, trace.span_count, trace.in_progress), (2, 2, true));
    assert_eq!((evaluation.state, evaluation.rule_results[0].seen_in_version), (VerdictState::Fail, Some(1)));
    assert!(running.pipeline.open_trace(&key(2)).await.unwrap().is_none(), "nothing new in it");
    running.stop().await;
}
