//! Pods, as they go wrong in the field: what of it a process can show. Each test bears the id of its case.

use std::fs::File;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::collector::Collector;
use crate::support::iris::Iris;
use crate::support::spans::{agent_run, request, trace_hex};

const PROTOBUF: &str = "application/x-protobuf";
const WAIT: Duration = Duration::from_secs(60);

fn is_judged(detail: &Value) -> bool {
    detail["evals"].as_array().is_some_and(|evals| !evals.is_empty())
}

/// Scenario: the database cannot be opened yet: another process still has it. An agent exports meanwhile.
/// Guarantees: the sidecar is ready, takes what is sent and sends it on; questions are told to come back; when the database
/// is free, what was taken is judged.
#[tokio::test(flavor = "multi_thread")]
async fn g9_05_spans_are_taken_before_the_store_is_open() {
    let collector = Collector::start().await;
    let mut iris =
        Iris::start(&[("IRIS__FORWARD__ENDPOINT", &collector.endpoint()), ("IRIS__ASSEMBLY__QUIET_MS", "200")]).await;
    iris.until("ops", "/readyz?full", WAIT, |full| full["store"]["state"] == "open").await;
    assert!(iris.terminate().await.success());
    let database = File::options().read(true).write(true).open(iris.home().join("iris.duckdb")).unwrap();
    fcntl_lock(&database, FlockOperation::NonBlockingLockExclusive).unwrap();
    iris.start_again().await;
    let body = request(agent_run(1, 2, "It is 18 C."));
    assert_eq!(iris.post("traces", PROTOBUF, body.clone()).await.unwrap().0, 200);
    collector.until("the trace", |collector| collector.bodies("traces").contains(&body)).await;
    let full: Value = serde_json::from_str(&iris.get("ops", "/readyz?full").await.1).unwrap();
    assert_eq!((&full["ready"], &full["store"]["state"]), (&json!(true), &json!("opening")));
    let (status, reply) = iris.tool("get_traces", &json!({})).await;
    assert_eq!((status, &reply["error"]["code"]), (503, &json!("IRIS_STORAGE_ERROR")), "{reply}");
    // Closing it gives the lock back.
    drop(database);
    iris.until("web", &format!("/api/v1/traces/{}", trace_hex(1)), WAIT, is_judged).await;
}

/// Scenario: the downstream is gone, many traces wait for it, and the pod is stopped: SIGTERM, and once more. After the
/// restart the downstream is back.
/// Guarantees: it ends well within ten seconds and cleanly, says how much is left, and sends all of it afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn g9_07_a_stop_without_a_downstream_leaves_nothing_behind() {
    let mut collector = Collector::stopped().await;
    let endpoint = collector.endpoint();
    let settings = [
        ("IRIS__FORWARD__ENDPOINT", endpoint.as_str()),
        ("IRIS__FORWARD__RETRY_INITIAL_MS", "50"),
        ("IRIS__FORWARD__RETRY_MAX_MS", "500"),
    ];
    let mut iris = Iris::start(&settings).await;
    let mut sent = Vec::new();
    for trace in 1..=200 {
        let body = request(agent_run(trace, 2, "It is 18 C."));
        assert_eq!(iris.post("traces", PROTOBUF, body.clone()).await.unwrap().0, 200);
        sent.push(body);
    }
    let pid = Pid::from_raw(i32::try_from(iris.pid()).unwrap()).unwrap();
    let begun = Instant::now();
    kill_process(pid, Signal::TERM).unwrap();
    let status = iris.terminate().await;
    assert!(status.success() && begun.elapsed() < Duration::from_secs(10), "{status} after {:?}", begun.elapsed());
    let log = iris.log();
    assert!(log.contains("is left for the next start"), "{log}");
    collector.start_again().await;
    iris.start_again().await;
    sent.sort();
    collector.until("all of it", |collector| collector.bodies("traces") == sent).await;
    // At most what was under way may come twice, and nothing was.
    assert_eq!(collector.taken("traces").len(), 200);
}

/// Scenario: a pod's environment: the variables that Kubernetes makes for Services, some of them named like this program,
/// and an OTLP endpoint for the agent that is this sidecar itself.
/// Guarantees: it starts, forwards nothing to itself and says so once; nothing else is said of names that are not its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_pods_environment_does_not_keep_it_from_starting() {
    // Free now; whoever takes it in between makes the start fail, and the test with it.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (listen, endpoint) = (format!("127.0.0.1:{port}"), format!("http://localhost:{port}"));
    let services = ["IRIS", "IRIS_SIDECAR", "IRIS_SIDECAR_GATEWAY", "KUBERNETES", "OTEL_COLLECTOR"];
    let mut settings = vec![
        ("IRIS__RECEIVE__HTTP__LISTEN".to_owned(), listen),
        ("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), endpoint),
        ("OTEL_EXPORTER_OTLP_PROTOCOL".to_owned(), "http/protobuf".to_owned()),
        ("OTEL_SERVICE_NAME".to_owned(), "agent".to_owned()),
        ("OTEL_RESOURCE_ATTRIBUTES".to_owned(), "k8s.pod.name=agent-0".to_owned()),
    ];
    for service in services {
        for (ending, value) in [
            ("SERVICE_HOST", "10.0.0.7"),
            ("SERVICE_PORT", "4317"),
            ("SERVICE_PORT_OTLP_GRPC", "4317"),
            ("PORT", "tcp://10.0.0.7:4317"),
            ("PORT_4317_TCP", "tcp://10.0.0.7:4317"),
            ("PORT_4317_TCP_PROTO", "tcp"),
            ("PORT_4317_TCP_PORT", "4317"),
            ("PORT_4317_TCP_ADDR", "10.0.0.7"),
        ] {
            settings.push((format!("{service}_{ending}"), value.to_owned()));
        }
    }
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let mut iris = Iris::start(&settings).await;
    assert_eq!(iris.post("traces", PROTOBUF, request(agent_run(1, 2, "It is 18 C."))).await.unwrap().0, 200);
    iris.until("web", &format!("/api/v1/traces/{}", trace_hex(1)), WAIT, is_judged).await;
    assert!(iris.terminate().await.success());
    let log = iris.log();
    assert_eq!(log.matches("is our own listener and is ignored").count(), 1, "{log}");
    assert!(!log.contains("is no setting"), "{log}");
}
