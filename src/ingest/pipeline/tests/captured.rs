//! What real instrumentations sent, through the real dialects and the real rules, to a stored verdict.

use iris_core::evaluate::{self, Ruleset, Settings};

use super::*;

fn real() -> Mind {
    let ruleset = Arc::new(Ruleset::built_in());
    Mind::new(move |_| Arc::clone(&ruleset), Arc::new(Settings::default()), now)
}

/// Sends a captured case and waits for the verdict of the trace that holds its answer.
async fn judged(case: &str, killed: bool) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/dialect").join(case);
    let expected = std::fs::read_to_string(folder.join("expected.json")).unwrap();
    let expected: serde_json::Value = serde_json::from_str(&expected).unwrap();
    let answer = expected["output"].as_str().unwrap();
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "pb"));
    files.sort();
    assert!(!files.is_empty());

    let home = tempfile::tempdir().unwrap();
    let mut running = start(home.path(), real(), &QUICK).await;
    for file in files {
        let is_logs = file.to_string_lossy().ends_with(".logs.pb");
        let lane = if is_logs { Lane::Logs } else { Lane::Traces };
        running.send_body(lane, Kind::Otlp, std::fs::read(&file).unwrap().into()).await;
        if killed {
            running.kill().await;
            running = start(home.path(), real(), &QUICK).await;
        }
    }
    let deadline = Instant::now() + Duration::from_secs(30);
    let query = store::TraceQuery { limit: 100, ..store::TraceQuery::default() };
    let (trace, evaluation) = loop {
        let page = running.store.traces(&Tenant::local(), &query, Budget::WHOLE).await.unwrap();
        let mut found = page.rows.iter().filter(|row| row.trace.output.as_deref().is_some_and(|o| o.contains(answer)));
        if let Some((row, evaluation)) = found.find_map(|row| Some((row, row.evaluation.as_ref()?))) {
            break (row.trace.clone(), evaluation.clone());
        }
        assert!(Instant::now() < deadline, "{case}: {:?}, {:?}", page.rows, running.pipeline.status());
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(evaluation.trace_version, Some(trace.version));
    assert_eq!(evaluate::compose(&evaluation).state, evaluation.state);
    assert!(evaluation.rule_results.iter().any(|result| result.state == "pass"), "{case}: nothing was judged");
    running.until("let go", |status| status.traces.open == 0 && status.outbox == 0).await;
    let status = running.pipeline.status();
    assert_eq!((status.poisoned, status.panics), (0, 0));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_traced_by_openinference() {
    judged("openinference-langchain/tool_ok", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_traced_by_openinference_killed_on_the_way() {
    judged("openinference-langchain/tool_ok", true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn content_that_comes_as_log_records() {
    judged("otel-openai-v2_latest_event_only/tool_ok", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn content_that_comes_as_log_records_killed_on_the_way() {
    judged("otel-openai-v2_latest_event_only/tool_ok", true).await;
}
