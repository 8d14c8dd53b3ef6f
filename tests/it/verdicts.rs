//! Verdicts reach the downstream as log records on the ids of what was judged.

use std::collections::BTreeMap;
use std::time::Duration;

use iris_core::otlp::{Encoding, decode_logs};
use serde_json::Value;

use crate::support::collector::{Collector, Mood};
use crate::support::iris::Iris;
use crate::support::spans::{agent_run, request, span, trace_hex};

const WAIT: Duration = Duration::from_secs(30);
const PROTOBUF: &str = "application/x-protobuf";

/// One record as the downstream reads it.
#[derive(Debug, Clone, PartialEq)]
struct Told {
    trace: String,
    span: String,
    name: String,
    label: String,
    evaluation: String,
    supersedes: Option<String>,
    score: Option<f64>,
}

/// Every verdict that was taken, in the order in which it was.
fn told(collector: &Collector) -> Vec<Told> {
    let logs = collector.taken("logs");
    let records = logs.iter().flat_map(|taken| decode_logs(Encoding::Protobuf, &taken.body).unwrap());
    records
        .filter(|record| record.event_name == "gen_ai.evaluation.result")
        .map(|record| {
            assert_eq!(record.resource.attributes["service.name"], "iris-sidecar");
            let text = |key: &str| record.attributes.get(key).and_then(Value::as_str).map(str::to_owned);
            Told {
                trace: record.trace_id.unwrap().to_string(),
                span: record.span_id.unwrap().to_string(),
                name: text("gen_ai.evaluation.name").unwrap(),
                label: text("gen_ai.evaluation.score.label").unwrap(),
                evaluation: text("iris.evaluation.id").unwrap(),
                supersedes: text("iris.evaluation.supersedes"),
                score: record.attributes.get("gen_ai.evaluation.score.value").and_then(Value::as_f64),
            }
        })
        .collect()
}

fn verdicts(collector: &Collector) -> Vec<Told> {
    told(collector).into_iter().filter(|told| told.name == "iris.verdict").collect()
}

fn settings(endpoint: &str) -> [(&str, &str); 5] {
    [
        ("IRIS__FORWARD__ENDPOINT", endpoint),
        ("IRIS__FORWARD__RETRY_INITIAL_MS", "50"),
        ("IRIS__FORWARD__RETRY_MAX_MS", "200"),
        ("IRIS__ASSEMBLY__QUIET_MS", "200"),
        ("IRIS__ASSEMBLY__SETTLE_MS", "200"),
    ]
}

/// Waits until a version of a trace is judged and stored: what is shown before is not what is sent.
async fn stored(iris: &Iris, trace: u64, version: usize) -> Value {
    let path = format!("/api/v1/traces/{}", trace_hex(trace));
    let is_stored = |detail: &Value| {
        let evaluations = detail["evals"].as_array().map_or(0, Vec::len);
        detail["trace"]["in_progress"] == false && detail["trace"]["version"] == version && evaluations >= version
    };
    iris.until("web", &path, WAIT, is_stored).await
}

async fn judged(iris: &Iris, trace: u64) -> Value {
    stored(iris, trace, 1).await
}

/// Scenario: a trace that leaks and one that does not are judged; a tool evaluates the first again; then a late span
/// comes for the second that changes nothing, and one that leaks.
/// Guarantees: a stock OTLP receiver gets one verdict for each on the ids of the agent's span, with the rules that decided
/// it and nothing of the text, and again only when it changed, naming the evaluation that it replaces.
#[tokio::test(flavor = "multi_thread")]
async fn g10_06_verdicts_arrive_on_the_ids_of_what_was_judged() {
    for protocol in ["grpc", "http"] {
        let collector = Collector::start().await;
        let endpoint = collector.endpoint();
        let mut settings = settings(&endpoint).to_vec();
        settings.push(("IRIS__FORWARD__PROTOCOL", protocol));
        let iris = Iris::start(&settings).await;
        let leak = "Write to jane.harlow@quayhaven.io.";
        for (trace, answer) in [(1, leak), (2, "It is 18 C in the harbor.")] {
            iris.post("traces", PROTOBUF, request(agent_run(trace, 2, answer))).await.unwrap();
        }
        let (first, second) = (judged(&iris, 1).await, judged(&iris, 2).await);
        collector.until("two verdicts", |collector| verdicts(collector).len() >= 2).await;
        let all = told(&collector);
        let by_trace: BTreeMap<&str, &Told> =
            all.iter().filter(|told| told.name == "iris.verdict").map(|told| (told.trace.as_str(), told)).collect();
        for (trace, detail) in [(1, &first), (2, &second)] {
            let told = by_trace[trace_hex(trace).as_str()];
            let evaluation = &detail["evals"][0];
            assert_eq!(evaluation["id"], *told.evaluation, "{:#}\n{all:#?}", detail["evals"]);
            assert_eq!(evaluation["verdict"]["state"], *told.label);
            assert_eq!((told.span.as_str(), &told.supersedes), ("0000000000000001", &None));
            assert_eq!(evaluation["score"].as_f64(), told.score);
        }
        let deciding: Vec<&Told> = all.iter().filter(|told| told.name == "no_pii").collect();
        assert!(deciding.len() == 1 && deciding[0].label == "fail", "{deciding:?}");
        for taken in collector.taken("logs") {
            assert!(!taken.body.windows(11).any(|bytes| bytes == b"jane.harlow"), "a verdict repeats what was leaked");
        }
        let asked = serde_json::json!({"trace_id": trace_hex(1)});
        assert_eq!(iris.tool("evaluate_output", &asked).await.0, 200);
        let late = |number, answer: &str| {
            let mut late = agent_run(2, 2, answer).pop().unwrap();
            late.span_id = u64::to_be_bytes(number).to_vec();
            request(vec![late])
        };
        iris.post("traces", PROTOBUF, late(3, "It is 18 C in the harbor.")).await.unwrap();
        stored(&iris, 2, 2).await;
        let root = agent_run(2, 2, leak).remove(0);
        let mut again = span(2, 4, "invoke_agent harbor_guide", root.attributes);
        again.parent_span_id = Vec::new();
        iris.post("traces", PROTOBUF, request(vec![again])).await.unwrap();
        let detail = stored(&iris, 2, 3).await;
        collector.until("the changed verdict", |collector| verdicts(collector).len() >= 3).await;
        let all = verdicts(&collector);
        assert_eq!(all.len(), 3, "{all:#?}");
        assert_eq!((all[2].trace.clone(), all[2].label.as_str()), (trace_hex(2), "fail"));
        assert_eq!(detail["evals"][0]["id"], *all[2].evaluation);
        assert_eq!(detail["evals"][1]["id"], all[2].supersedes.as_deref().unwrap_or("none"), "{all:#?}");
    }
}

/// Scenario: traces are judged while nobody listens downstream; the sidecar is killed and started again, twice; then the
/// downstream comes back.
/// Guarantees: every verdict arrives, each once.
#[tokio::test(flavor = "multi_thread")]
async fn verdicts_outlive_a_kill() {
    let mut collector = Collector::stopped().await;
    let endpoint = collector.endpoint();
    let mut iris = Iris::start(&settings(&endpoint)).await;
    let mut judgings = BTreeMap::new();
    for round in 0..3 {
        for trace in round * 4..(round + 1) * 4 {
            iris.post("traces", PROTOBUF, request(agent_run(trace, 2, "It is 18 C in the harbor."))).await.unwrap();
        }
        for trace in round * 4..(round + 1) * 4 {
            let detail = judged(&iris, trace).await;
            judgings.insert(trace_hex(trace), detail["evals"][0]["id"].as_str().unwrap().to_owned());
        }
        // Killed at once: the last verdicts may be committed and not yet in the journal.
        iris.kill();
        iris.start_again().await;
    }
    collector.start_again().await;
    collector
        .until("all twelve", |collector| {
            let arrived: std::collections::BTreeSet<String> =
                verdicts(collector).into_iter().map(|told| told.trace).collect();
            arrived.len() == judgings.len()
        })
        .await;
    assert!(iris.terminate().await.success());
    let mut arrived: Vec<(String, String)> =
        verdicts(&collector).into_iter().map(|told| (told.trace, told.evaluation)).collect();
    arrived.sort();
    assert_eq!(arrived, judgings.into_iter().collect::<Vec<_>>());
}

/// Scenario: the downstream takes traces and has no service for logs.
/// Guarantees: the verdict is left out with one warning, traces go on, and the logs lane is not stopped by it.
#[tokio::test(flavor = "multi_thread")]
async fn a_downstream_without_logs_gets_no_verdicts() {
    let collector = Collector::start().await;
    collector.set_lane("logs", Mood::Refuse(tonic::Code::Unimplemented, 404));
    let endpoint = collector.endpoint();
    let mut iris = Iris::start(&settings(&endpoint)).await;
    for trace in 1..=3 {
        iris.post("traces", PROTOBUF, request(agent_run(trace, 2, "It is 18 C."))).await.unwrap();
        judged(&iris, trace).await;
    }
    collector.until("an attempt", |collector| !collector.attempts("logs").is_empty()).await;
    let full = iris.until("ops", "/readyz?full", WAIT, |full| {
        let lanes = full["forward"].as_array().cloned().unwrap_or_default();
        lanes.iter().any(|lane| lane["lane"] == "logs" && lane["state"] == "idle")
    });
    full.await;
    assert!(iris.terminate().await.success());
    assert_eq!(collector.bodies("traces").len(), 3);
    assert_eq!(iris.log().matches("verdicts are not sent").count(), 1, "{}", iris.log());
}
