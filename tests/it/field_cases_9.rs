//! Pods, as they go wrong in the field: what of it a process can show. Each test bears the id of its case.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::faults::disk::{Small, fill};
use crate::faults::{is_long, open};
use crate::support::collector::Collector;
use crate::support::iris::Iris;
use crate::support::proc::{cpu_ticks, peak_kib};
use crate::support::spans::{agent_run, request, text, trace_hex};

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

/// A control group of its own with a limit of memory; gone with the value.
struct Group(PathBuf);

impl Group {
    /// `None` where one may not make any.
    #[expect(clippy::print_stderr, reason = "a test that did a part says so")]
    fn of(bytes: u64) -> Option<Self> {
        let name = format!("iris-test-{}", std::process::id());
        for (root, limit) in [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")] {
            let group = PathBuf::from(root).join(&name);
            if fs::create_dir(&group).is_err() {
                continue;
            }
            let made = Self(group);
            if fs::write(made.0.join(limit), bytes.to_string()).is_ok() {
                return Some(made);
            }
        }
        eprintln!("without a control group: none can be made here");
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Empty once the sidecar in it has ended.
        let _ = fs::remove_dir(&self.0);
    }
}

/// Sends traces of 50 KB for so long; how many were taken and how many refused with a delay.
async fn flood(iris: Arc<Iris>, numbers: Arc<AtomicU64>, until: Instant) -> (u64, u64) {
    let (mut taken, mut refused) = (0, 0);
    while Instant::now() < until {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        let mut spans = agent_run(number, 3, "It is 18 C.");
        spans[1].attributes.push(text("harbor.noise", &format!("{number} ").repeat(8 * 1024)));
        match iris.post("traces", PROTOBUF, request(spans)).await.unwrap().0 {
            200 => taken += 1,
            503 => {
                refused += 1;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            status => panic!("{status}"),
        }
    }
    (taken, refused)
}

/// Scenario: a limit of 256 MiB on memory, where a control group can be made; four senders send traces of 50 KB as fast as
/// they are taken, and one sends a span that is larger than a message may be, again and again, by both doors.
/// Guarantees: the process lives and stays below its limit; what cannot be taken is refused with a delay and taken again
/// later; the large span is refused for good, counted, and holds up nobody; everything taken is judged, and then the
/// processor is let go of.
#[tokio::test(flavor = "multi_thread")]
async fn g9_03_a_flood_and_an_oversized_span_stay_within_the_memory() {
    const LIMIT: u64 = 256 << 20;
    let group = Group::of(LIMIT);
    let mut iris = Iris::prepared(&[("IRIS__ASSEMBLY__QUIET_MS", "200"), ("IRIS__RECEIVE__BODY_BYTES_MAX", "1048576")]);
    group.iter().for_each(|group| iris.set_group(&group.0));
    iris.start_again().await;
    let state = open(&iris).await;
    // An eighth of what may be in memory.
    assert!(state["admission"]["bytes_max"].as_u64().unwrap() <= LIMIT / 8 || group.is_none(), "{state}");
    let (pid, iris) = (iris.pid(), Arc::new(iris));
    let numbers = Arc::new(AtomicU64::new(10));
    let until = Instant::now() + Duration::from_secs(if is_long() { 120 } else { 8 });
    let senders: Vec<_> = (0..4).map(|_| tokio::spawn(flood(Arc::clone(&iris), Arc::clone(&numbers), until))).collect();
    let mut large = agent_run(1, 2, "It is 18 C.");
    large[1].attributes.push(text("harbor.noise", &"x".repeat(2 << 20)));
    let large = request(large);
    let mut oversized = 0;
    while Instant::now() < until {
        assert_eq!(iris.post("traces", PROTOBUF, large.clone()).await.unwrap().0, 413);
        let refused = iris.export("traces", large.clone()).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted, "{refused}");
        oversized += 1;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let (mut taken, mut refused) = (0, 0);
    for sender in senders {
        let (some, others) = sender.await.unwrap();
        taken += some;
        refused += others;
    }
    assert!(taken > 20, "only {taken} were taken, {refused} refused");
    assert_eq!((iris.pid(), iris.get("ops", "/livez").await.0), (pid, 200));
    assert!(peak_kib(pid) * 1024 < LIMIT, "{} KiB", peak_kib(pid));
    let text = iris.get("ops", "/metrics").await.1;
    for door in ["grpc", "http"] {
        let line = format!(
            "iris_receiver_requests_not_accepted_total{{transport=\"{door}\",reason=\"too_large\"}} {oversized}"
        );
        assert!(text.contains(&line), "{line} is not in {text}");
    }
    let all_judged = |state: &Value| {
        let (pipeline, lane) = (&state["pipeline"], &state["pipeline"]["lanes"][0]);
        lane["lag"] == 0 && pipeline["open"] == 0 && pipeline["judged"].as_u64() >= Some(taken)
    };
    iris.until("ops", "/readyz?full", Duration::from_secs(300), all_judged).await;
    // A loop that never rests uses a hundred ticks a second.
    let deadline = Instant::now() + WAIT;
    loop {
        let before = cpu_ticks(pid);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let used = cpu_ticks(pid) - before;
        if used < 30 {
            break;
        }
        assert!(Instant::now() < deadline, "{used} hundredths of a second in one, with nothing to do");
    }
}

/// Scenario: the volume of the pod, 64 MiB, is filled by another container while runs come; the sidecar is stopped and
/// started on the full volume; then there is room again.
/// Guarantees: what is taken is sent on; what cannot be written is refused with a delay, and health and metrics say why; it
/// starts on the full volume or says what is missing; with room again it takes, and has and sends on all it ever took,
/// within a budget of its own.
#[tokio::test(flavor = "multi_thread")]
async fn g9_04_a_full_volume_degrades_and_recovers() {
    let collector = Collector::start().await;
    let mut iris = Iris::prepared(&[
        ("IRIS__ASSEMBLY__QUIET_MS", "200"),
        ("IRIS__RETENTION__BYTES_MAX", "134217728"),
        ("IRIS__FORWARD__ENDPOINT", &collector.endpoint()),
    ]);
    let Some(volume) = Small::at(&iris.home(), 64) else { return };
    iris.start_again().await;
    open(&iris).await;
    let mut taken = Vec::new();
    let put = async |iris: &Iris, number: u64| {
        let mut spans = agent_run(number, 3, "It is 18 C.");
        spans[1].attributes.push(text("harbor.noise", &format!("{number} ").repeat(8 * 1024)));
        let body = request(spans);
        let answer = iris.post("traces", PROTOBUF, body.clone()).await;
        (answer.map_or(0, |(status, _)| status), body)
    };
    for number in 1..=5 {
        let (status, body) = put(&iris, number).await;
        assert_eq!(status, 200);
        taken.push((number, body));
    }
    let ballast = fill(&iris.home(), 0);
    let (mut number, mut refused) = (5, 0);
    let deadline = Instant::now() + WAIT;
    while refused < 3 {
        number += 1;
        match put(&iris, number).await {
            (200, body) => taken.push((number, body)),
            (503, _) => refused += 1,
            (status, _) => panic!("{status}"),
        }
        assert!(Instant::now() < deadline, "a full volume refuses nothing");
    }
    let (status, ready) = iris.get("ops", "/readyz").await;
    assert!(status == 503 && ready.contains("journal"), "{status} {ready}");
    assert_eq!(iris.get("ops", "/livez").await.0, 200);
    let metrics = iris.get("ops", "/metrics").await.1;
    assert!(metrics.contains("iris_journal_refusing{lane=\"traces\"} 1"), "{metrics}");
    assert!(metrics.contains("iris_home_disk_free_bytes "), "{metrics}");
    let all_sent = |collector: &Collector| {
        let bodies = collector.bodies("traces");
        taken.iter().all(|(_, body)| bodies.binary_search(body).is_ok())
    };
    collector.until("what was taken", all_sent).await;
    iris.kill();
    let begun = Instant::now();
    iris.start_for(Duration::from_secs(3));
    assert!(begun.elapsed() < Duration::from_secs(10));
    fs::remove_file(ballast).unwrap();
    iris.start_again().await;
    open(&iris).await;
    let (status, body) = put(&iris, 1000).await;
    assert_eq!(status, 200);
    taken.push((1000, body));
    for (number, _) in &taken {
        iris.until("web", &format!("/api/v1/traces/{}", trace_hex(*number)), WAIT, is_judged).await;
    }
    let all_sent = |collector: &Collector| {
        let bodies = collector.bodies("traces");
        taken.iter().all(|(_, body)| bodies.binary_search(body).is_ok())
    };
    collector.until("all of it", all_sent).await;
    iris.kill();
    drop(volume);
}
