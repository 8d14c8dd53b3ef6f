//! From the journal to a stored verdict.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_request_becomes_a_trace_with_a_verdict() {
    let home = tempfile::tempdir().unwrap();
    let running = start(home.path(), mind(), &QUICK).await;
    let seq = running.send(&[made(1, 2, "tool"), made(1, 1, "agent").says("hello")]).await;
    let trace = running.trace(1, 2).await;
    assert_eq!((trace.version, trace.seen_through, trace.partial), (1, seq, false));
    assert_eq!(trace.output.as_deref(), Some("hello"));
    let evaluations = running.evaluations(1).await;
    assert_eq!(evaluations.len(), 1);
    assert_eq!((evaluations[0].seen_through, evaluations[0].state), (seq, VerdictState::Pass));
    running.until("let go", |status| status.traces.open == 0).await;
    let status = running.pipeline.status();
    assert_eq!((status.judged, status.rows, status.poisoned, status.panics), (1, 2, 0, 0));
    assert_eq!(status.settled_through.traces, seq);
    assert_eq!((status.lanes[0].lane, status.lanes[0].read_through), (Lane::Traces, seq));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_and_log_records_of_several_requests_make_one_trace() {
    let home = tempfile::tempdir().unwrap();
    let running = start(home.path(), mind(), &QUICK).await;
    running.send(&[made(1, 2, "hollow")]).await;
    running.send_body(Lane::Logs, Kind::Otlp, log_request(1, 2)).await;
    running.send(&[made(1, 1, "agent"), made(2, 1, "agent")]).await;
    assert_eq!(running.trace(1, 3).await.version, 1);
    assert_eq!(running.trace(2, 1).await.version, 1);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_without_ai_costs_no_write() {
    let home = tempfile::tempdir().unwrap();
    let running = start(home.path(), mind(), &QUICK).await;
    let seq = running.send(&[made(1, 1, ""), made(1, 2, "")]).await;
    running.until("dropped", |status| status.traces.other == 1).await;
    running.until("handed on", |status| status.outbox == 0).await;
    running.store.flush().await.unwrap();
    let written = running.store.status();
    assert_eq!((written.groups, written.rows), (0, 0));
    assert_eq!(written.stored_through, Through::default(), "the position moves with the next write");
    running.send(&[made(2, 1, "agent")]).await;
    running.trace(2, 1).await;
    // A row is read as soon as it is committed, a moment before the status says so.
    running.store.flush().await.unwrap();
    assert!(running.store.status().stored_through.traces > seq);
    assert!(running.store.spans(&Tenant::local(), trace_id(1), Bounds::WHOLE).await.unwrap().items.is_empty());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_span_makes_a_new_version_and_what_was_seen_stands() {
    let home = tempfile::tempdir().unwrap();
    let running = start(home.path(), mind(), &QUICK).await;
    running.send(&[made(1, 1, "agent").says("LEAK")]).await;
    running.trace(1, 1).await;
    running.until("let go", |status| status.traces.open == 0).await;
    running.send(&[made(1, 2, "tool").says("all is well")]).await;
    let trace = running.trace(1, 2).await;
    assert_eq!((trace.version, trace.output.as_deref()), (2, Some("LEAK all is well")));
    let evaluations = running.evaluations(1).await;
    assert_eq!(evaluations.len(), 2);
    assert_eq!(evaluations[0].trace_version, Some(2));
    assert_eq!(evaluations[0].state, VerdictState::Fail);
    assert_eq!(evaluations[0].rule_results[0].seen_in_version, Some(1));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resend_is_stored_once_and_judged_once() {
    let home = tempfile::tempdir().unwrap();
    let running = start(home.path(), mind(), &QUICK).await;
    running.send(&[made(1, 1, "agent"), made(1, 2, "tool")]).await;
    running.trace(1, 2).await;
    running.until("let go", |status| status.traces.open == 0).await;
    running.send(&[made(1, 1, "agent")]).await;
    running.until("looked at", |status| status.traces.loads == 1 && status.traces.open == 0).await;
    assert_eq!(running.evaluations(1).await.len(), 1);
    assert_eq!(running.store.spans(&Tenant::local(), trace_id(1), Bounds::WHOLE).await.unwrap().items.len(), 2);
    running.stop().await;
}

/// Scenario: a trace is handed out to be judged without all of its spans.
/// Guarantees: the trace says so to whoever judges and reads it.
#[tokio::test(flavor = "multi_thread")]
async fn a_trace_that_is_cut_says_so() {
    let rows = rows_of(1);
    for cut in [false, true] {
        let settling = iris_core::assemble::Settling {
            key: key(1),
            version: 1,
            rows: rows.clone(),
            partial: cut,
            cut,
            seen_through: 1,
            previous: None,
        };
        let (trace, _) = mind().settle(&settling).unwrap();
        let said = trace.metadata.get("otel").and_then(|otel| otel.get("every_span"));
        assert_eq!(said, cut.then_some(&serde_json::Value::Bool(false)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_trace_is_shown_and_not_stored() {
    let home = tempfile::tempdir().unwrap();
    let patient = Config { idle_ms: 60_000, give_up_ms: 600_000, ..QUICK };
    let running = start(home.path(), mind(), &patient).await;
    let seq = running.send(&[made(1, 2, "tool").says("so far"), made(2, 2, "")]).await;
    running.until("read", |status| status.traces.open == 2).await;
    let (trace, evaluation) = running.pipeline.open_trace(&key(1)).await.unwrap().unwrap();
    assert!(trace.in_progress);
    assert_eq!((trace.version, trace.seen_through, trace.output.as_deref()), (1, seq, Some("so far")));
    assert_eq!(evaluation.state, VerdictState::Pass);
    assert!(running.pipeline.open_trace(&key(2)).await.unwrap().is_none(), "no agent in it");
    assert!(running.pipeline.open_trace(&key(3)).await.unwrap().is_none());
    assert_eq!(running.pipeline.open_traces(&Tenant::local()).await.len(), 1);
    assert!(running.pipeline.open_traces(&Tenant::new("other")).await.is_empty());
    running.store.flush().await.unwrap();
    assert!(running.store.trace(&Tenant::local(), trace_id(1)).await.unwrap().is_none());
    assert!(running.evaluations(1).await.is_empty());
    running.pipeline.forget(&key(1)).await;
    assert!(running.pipeline.open_trace(&key(1)).await.unwrap().is_none());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn draining_leaves_open_traces_for_the_next_start() {
    let home = tempfile::tempdir().unwrap();
    let running = start(home.path(), mind(), &QUICK).await;
    running.send(&[made(1, 2, "tool"), made(2, 2, "")]).await;
    running.send(&[made(3, 1, "agent")]).await;
    running.trace(3, 1).await;
    running.stop().await;

    let running = start(home.path(), mind(), &QUICK).await;
    assert!(running.store.trace(&Tenant::local(), trace_id(1)).await.unwrap().is_none());
    assert_eq!(running.store.spans(&Tenant::local(), trace_id(1), Bounds::WHOLE).await.unwrap().items.len(), 1);
    running.send(&[made(1, 1, "agent"), made(2, 1, "agent")]).await;
    assert_eq!(running.trace(1, 2).await.version, 1);
    assert_eq!(running.trace(2, 2).await.version, 1);
    assert_eq!(running.evaluations(3).await.len(), 1);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_tools_wrote_is_stored_once_whichever_way_it_comes_first() {
    let home = tempfile::tempdir().unwrap();
    let running = start(home.path(), mind(), &QUICK).await;
    let nowhere = Position { lane: Lane::Traces, seq: 0, ordinal: 0 };
    let logged = |trace: u8| {
        let mut logged = understand(&key(trace), 1, &rows_of(trace)).unwrap();
        logged.source = TraceSource::Tool;
        ToolWrite::Trace { trace: logged, spans: Vec::new(), position: nowhere }
    };
    for trace in [1, 2] {
        let mut write = logged(trace);
        let body = Bytes::from(serde_json::to_vec(&write).unwrap());
        let seq = running.send_body(Lane::Traces, Kind::ToolTrace, body).await;
        write.place(Position { lane: Lane::Traces, seq, ordinal: 0 });
        if trace == 1 {
            running.until("read", |status| status.lanes.first().is_some_and(|lane| lane.read_through == seq)).await;
        }
        running.store.write(write).await.unwrap();
        running.trace(trace, 1).await;
        running.until("read", |status| status.lanes.first().is_some_and(|lane| lane.read_through == seq)).await;
        running.until("handed on", |status| status.outbox == 0).await;
    }
    running.store.flush().await.unwrap();
    let query = store::TraceQuery { limit: 10, ..store::TraceQuery::default() };
    let page = running.store.traces(&Tenant::local(), &query, Budget::WHOLE).await.unwrap();
    assert_eq!((page.rows.len(), page.total), (2, 2));
    running.stop().await;
}

/// One agent's row, as the pipeline would make it.
fn rows_of(trace: u8) -> Vec<Arc<Row>> {
    let record = Record {
        kind: Kind::Otlp,
        tenant: Tenant::local(),
        door: Door::Grpc,
        encoding: Encoding::Protobuf,
        arrived: now(),
        body: request(&[made(trace, 1, "agent")]),
    };
    let entry = journal::Entry { seq: 1, record, body_hash: 0 };
    match decode::decode(&entry, Lane::Traces, &mind()).content {
        decode::Content::Rows(rows) => rows.into_iter().map(|(row, _)| row).collect(),
        _ => panic!("no rows"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_want_to_know_are_told_after_the_commit_and_in_order() {
    let home = tempfile::tempdir().unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let ears = Arc::clone(&told);
    let tell: Tell = Arc::new(move |judging| {
        let previous = judging.previous.as_ref().map(|previous| previous.id.clone());
        ears.lock().unwrap().push((judging.evaluation.id.clone(), previous));
    });
    let running = start(home.path(), Mind { judged: Some(tell), ..mind() }, &QUICK).await;
    running.send(&[made(1, 1, "agent")]).await;
    running.until("let go", |status| status.judged == 1 && status.traces.open == 0).await;
    running.send(&[made(1, 2, "tool")]).await;
    running.until("let go", |status| status.judged == 2 && status.traces.open == 0).await;
    let (first, second) = (format!("{}-1", trace_id(1)), format!("{}-2", trace_id(1)));
    assert_eq!(*told.lock().unwrap(), [(first.clone(), None), (second, Some(first))]);
    running.stop().await;
}

/// Far more than the window, the outbox and the store's queue hold at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_goes_through_and_every_trace_is_judged() {
    let home = tempfile::tempdir().unwrap();
    let running = start(home.path(), mind(), &QUICK).await;
    let text: &'static str = "x".repeat(200_000).leak();
    for trace in 1..=120 {
        running.send(&[made(trace, 2, "tool").says(text), made(trace, 1, "agent")]).await;
    }
    running.until("all judged", |status| status.judged == 120 && status.traces.open == 0).await;
    for trace in 1..=120 {
        running.trace(trace, 2).await;
    }
    let status = running.pipeline.status();
    assert_eq!((status.rows, status.poisoned), (240, 0));
    running.stop().await;
}

#[test]
fn a_row_that_may_wait_undecided_keeps_its_text_and_an_agents_lets_go_of_it() {
    let record = Record {
        kind: Kind::Otlp,
        tenant: Tenant::local(),
        door: Door::Grpc,
        encoding: Encoding::Protobuf,
        arrived: now(),
        body: request(&[made(1, 1, "").says("of no agent"), made(2, 1, "agent").says("of an agent")]),
    };
    let decoded = decode::decode(&journal::Entry { seq: 1, record, body_hash: 0 }, Lane::Traces, &mind());
    let decode::Content::Rows(rows) = decoded.content else { panic!("no rows") };
    let said = |row: &Row| row.span().map(|span| attribute(span, "output").to_owned());
    assert_eq!(said(&rows[0].0).as_deref(), Some("of no agent"), "the budget of undecided rows counts it");
    assert_eq!(said(&rows[1].0).as_deref(), Some(""), "it is written down already");
    assert_eq!(rows[1].0.reading.output.as_deref(), Some("of an agent"));
}
