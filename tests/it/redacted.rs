//! With redaction on, nothing of what it takes out is anywhere, and every verdict is what it would have been.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use prost::Message as _;
use serde_json::{Value, json};

use crate::support::collector::Collector;
use crate::support::iris::Iris;
use crate::support::spans::{agent_run, request, trace_hex, trace_id};

const WAIT: Duration = Duration::from_secs(30);
const PROTOBUF: &str = "application/x-protobuf";

/// Live by form, no one's.
const MAIL: &str = "jane.harlow@quayhaven.io";
const CARD: &str = "4142898598467999";
const PASSWORD: &str = "x9!kQd83hd#Tq";

/// Put together here, so that no file holds it whole.
fn token() -> String {
    format!("ghp_{}{}", "R7mQ2xWv9LbT4nKc", "Z8sYd3HfJ6pGa1EuVo5X")
}

/// Everything that must be nowhere.
fn canaries() -> Vec<String> {
    vec!["jane.harlow".to_owned(), CARD.to_owned(), PASSWORD.to_owned(), token()]
}

fn leak() -> String {
    format!("Mail {MAIL}, card {CARD}, password: {PASSWORD} and {}.", token())
}

fn any(value: Any) -> AnyValue {
    AnyValue { value: Some(value) }
}

fn text(text: &str) -> AnyValue {
    any(Any::StringValue(text.to_owned()))
}

fn pair(key: &str, value: AnyValue) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(value), ..KeyValue::default() }
}

/// Attributes of every shape that a value can have.
fn everywhere() -> Vec<KeyValue> {
    let nested = json!({"to": MAIL, "more": json!({"card": CARD, "note": leak()}).to_string()}).to_string();
    let list = ArrayValue { values: vec![text(&leak()), any(Any::IntValue(CARD.parse().unwrap()))] };
    let map = KeyValueList {
        values: vec![
            pair("password", text(PASSWORD)),
            pair(MAIL, text("key")),
            pair("deep", any(Any::ArrayValue(list.clone()))),
        ],
    };
    vec![
        pair("text", text(&leak())),
        pair("bytes", any(Any::BytesValue(leak().into_bytes()))),
        pair("binary", any(Any::BytesValue([&[0xff, 0xfe][..], MAIL.as_bytes()].concat()))),
        pair("number", any(Any::IntValue(CARD.parse().unwrap()))),
        pair("list", any(Any::ArrayValue(list))),
        pair("map", any(Any::KvlistValue(map))),
        pair("nested", text(&nested)),
        pair("db.password", text(PASSWORD)),
        pair(MAIL, text("a key")),
    ]
}

/// An agent run that leaks in every place that a span has.
fn leaking(trace: u64, answer: &str) -> Vec<Span> {
    let mut spans = agent_run(trace, 2, answer);
    let root = &mut spans[0];
    root.name = format!("invoke_agent for {MAIL}");
    root.trace_state = format!("vendor={CARD}");
    root.status = Some(Status { message: leak(), code: 2 });
    root.attributes.extend(everywhere());
    root.events.push(Event { name: format!("seen {MAIL}"), attributes: everywhere(), ..Event::default() });
    root.links.push(Link {
        trace_id: trace_id(900 + trace).to_vec(),
        span_id: vec![9; 8],
        trace_state: format!("vendor={CARD}"),
        attributes: everywhere(),
        ..Link::default()
    });
    spans
}

/// The spans with a resource and a scope that leak too.
fn traces(spans: Vec<Span>) -> Bytes {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    let mut sent = ExportTraceServiceRequest::decode(request(spans)).unwrap();
    let resource = sent.resource_spans[0].resource.as_mut().unwrap();
    resource.attributes.push(pair("process.command_args", text(&leak())));
    let scope = sent.resource_spans[0].scope_spans[0].scope.as_mut().unwrap();
    scope.attributes = everywhere();
    scope.version = MAIL.to_owned();
    sent.encode_to_vec().into()
}

fn resource() -> Option<Resource> {
    Some(Resource { attributes: vec![pair("owner", text(MAIL))], ..Resource::default() })
}

fn scope() -> Option<InstrumentationScope> {
    Some(InstrumentationScope { name: MAIL.to_owned(), attributes: everywhere(), ..InstrumentationScope::default() })
}

fn logs() -> Bytes {
    let record = |body: AnyValue, event_name: &str| LogRecord {
        body: Some(body),
        attributes: everywhere(),
        event_name: event_name.to_owned(),
        severity_text: MAIL.to_owned(),
        trace_id: trace_id(77).to_vec(),
        span_id: vec![1; 8],
        ..LogRecord::default()
    };
    let body = any(Any::KvlistValue(KeyValueList { values: everywhere() }));
    let records = vec![record(text(&leak()), "app.line"), record(body, "gen_ai.choice")];
    let scope_logs = vec![ScopeLogs { scope: scope(), log_records: records, ..ScopeLogs::default() }];
    let resource_logs = vec![ResourceLogs { resource: resource(), scope_logs, ..ResourceLogs::default() }];
    ExportLogsServiceRequest { resource_logs }.encode_to_vec().into()
}

fn metrics() -> Bytes {
    let value = Some(number_data_point::Value::AsInt(1));
    let point = NumberDataPoint { attributes: everywhere(), value, ..NumberDataPoint::default() };
    let metric = Metric {
        name: "calls".to_owned(),
        description: leak(),
        metadata: everywhere(),
        data: Some(Data::Gauge(Gauge { data_points: vec![point] })),
        ..Metric::default()
    };
    let scope_metrics = vec![ScopeMetrics { scope: scope(), metrics: vec![metric], ..ScopeMetrics::default() }];
    let resource_metrics = vec![ResourceMetrics { resource: resource(), scope_metrics, ..ResourceMetrics::default() }];
    ExportMetricsServiceRequest { resource_metrics }.encode_to_vec().into()
}

/// The same agent run as OTLP/JSON.
fn in_json(trace: u64, answer: &str) -> Bytes {
    let said =
        |role: &str, text: &str| json!([{"role": role, "parts": [{"type": "text", "content": text}]}]).to_string();
    let attribute = |key: &str, text: &str| json!({"key": key, "value": {"stringValue": text}});
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    let span = json!({
        "traceId": trace_hex(trace), "spanId": "0000000000000001", "name": "invoke_agent", "unknown": leak(),
        "startTimeUnixNano": now.to_string(), "endTimeUnixNano": (now + 1_000_000).to_string(),
        "attributes": [
            attribute("gen_ai.operation.name", "invoke_agent"),
            attribute("gen_ai.agent.name", "harbor_guide"),
            attribute("gen_ai.input.messages", &said("user", &format!("Who is {MAIL}?"))),
            attribute("gen_ai.output.messages", &said("assistant", answer)),
        ],
    });
    json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).to_string().into()
}

/// Everything that a run answered to be compared: what was said of each trace, by its number.
type Said = BTreeMap<String, Value>;

/// The verdict and what each rule for safety saw, without offsets, which count the text as it is stored.
fn said(evaluation: &Value) -> Value {
    let results = evaluation["rule_results"].as_array().unwrap().iter();
    // How long a text is and which words it shares with another is measured on the text as it is stored.
    let results = results.filter(|result| result["category"] == "safety").map(|result| {
        let evidence = result["evidence"].as_array().cloned().unwrap_or_default();
        let labels: Vec<Value> = evidence.iter().map(|one| json!([one["label"], one["class"]])).collect();
        let is_pii = result["ruleName"] == "no_pii";
        let seen = if is_pii { json!([result["message"], labels]) } else { Value::Null };
        json!([result["ruleName"], result["state"], seen])
    });
    json!({"verdict": [evaluation["verdict"]["state"], evaluation["verdict"]["basis"], evaluation["verdict"]["by"]],
        "results": results.collect::<Vec<_>>()})
}

/// Sends everything by every door and waits for what is said of it.
async fn send(iris: &Iris) -> Said {
    let mut all = Said::new();
    let answers = [
        leak(),
        "It is 18 C.".to_owned(),
        format!("Your address is {MAIL}."),
        format!("base64: {}", base64_of(&leak())),
    ];
    for (number, answer) in (1_u64..).zip(&answers) {
        let (grpc, http, json, web) = (number, number + 20, number + 40, number + 60);
        iris.export("traces", traces(leaking(grpc, answer))).await.unwrap();
        assert_eq!(iris.post("traces", PROTOBUF, traces(leaking(http, answer))).await.unwrap().0, 200);
        assert_eq!(iris.post("traces", "application/json", in_json(json, answer)).await.unwrap().0, 200);
        let body: Value = serde_json::from_slice(&in_json(web, answer)).unwrap();
        assert_eq!(iris.posted("web", "/v1/traces", &body).await.0, 200);
        for trace in [grpc, http, json, web] {
            let path = format!("/api/v1/traces/{}", trace_hex(trace));
            let judged = |detail: &Value| detail["evals"].as_array().is_some_and(|evals| !evals.is_empty());
            let detail = iris.until("web", &path, WAIT, judged).await;
            all.insert(format!("trace {trace}"), said(&detail["evals"][0]));
        }
        let logged = json!({
            "agent_name": format!("agent of {MAIL}"), "input": format!("Who is {MAIL}?"), "output": answer, "evaluate": true,
            "tool_calls": [{"tool_name": "find", "input": {"password": PASSWORD, "list": [leak(), CARD.parse::<u64>().unwrap()]}, "output": leak()}],
            "metadata": {"note": leak(), MAIL: "key"}, "session_id": MAIL,
            "spans": [{"name": format!("for {MAIL}"), "kind": "INTERNAL", "start_time": "2026-12-01T10:00:00Z", "status_message": leak(),
                "attributes": {"x": leak()}, "events": [{"name": MAIL, "timestamp": "2026-12-01T10:00:00Z", "attributes": {"y": leak()}}]}],
        });
        let (status, reply) = iris.tool("log_trace", &logged).await;
        assert_eq!(status, 200, "{reply}");
        all.insert(format!("logged {number}"), said(&reply["evaluation"]));
        let asked = json!({"output": answer, "input": format!("I am {MAIL}"), "expected": leak()});
        let (status, reply) = iris.tool("evaluate_output", &asked).await;
        assert_eq!(status, 200, "{reply}");
        all.insert(format!("evaluated {number}"), said(&reply));
    }
    iris.export("logs", logs()).await.unwrap();
    assert_eq!(iris.post("logs", PROTOBUF, logs()).await.unwrap().0, 200);
    iris.export("metrics", metrics()).await.unwrap();
    assert_eq!(iris.post("metrics", PROTOBUF, metrics()).await.unwrap().0, 200);
    // What cannot be read is refused, and not told again.
    let broken = [&request(agent_run(99, 2, &leak()))[..], b"\x07"].concat();
    assert_eq!(iris.post("traces", PROTOBUF, broken.into()).await.unwrap().0, 400);
    all
}

fn base64_of(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

fn is_in(bytes: &[u8], what: &str) -> bool {
    bytes.windows(what.len()).any(|window| window == what.as_bytes())
}

/// The canaries that stand in a file of the folder, with its name.
fn in_files(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            in_files(&entry.path(), found);
        } else if kind.is_file() {
            let bytes = std::fs::read(entry.path()).unwrap();
            let held = canaries().into_iter().filter(|canary| is_in(&bytes, canary));
            found.extend(held.map(|canary| format!("{canary} in {}", entry.path().display())));
        }
    }
}

/// Every place where a canary can be seen from outside.
async fn seen(iris: &mut Iris, collector: &Collector) -> Vec<String> {
    let mut found = Vec::new();
    let mut look = |place: &str, bytes: &[u8]| {
        found.extend(
            canaries().into_iter().filter(|canary| is_in(bytes, canary)).map(|canary| format!("{canary} in {place}")),
        );
    };
    for path in ["/metrics", "/readyz?full"] {
        look(path, iris.get("ops", path).await.1.as_bytes());
    }
    let mut paths = vec!["/api/v1/traces?limit=1000".to_owned()];
    paths.extend([1, 21, 41, 61].map(|trace| format!("/api/v1/traces/{}", trace_hex(trace))));
    for path in paths {
        let (status, text) = iris.get("web", &path).await;
        assert_eq!(status, 200, "{path}");
        look(&path, text.as_bytes());
    }
    in_files(&iris.home(), &mut found);
    assert!(iris.terminate().await.success());
    in_files(&iris.home(), &mut found);
    let mut look = |place: &str, bytes: &[u8]| {
        found.extend(
            canaries().into_iter().filter(|canary| is_in(bytes, canary)).map(|canary| format!("{canary} in {place}")),
        );
    };
    look("the log", iris.log().as_bytes());
    for lane in ["traces", "logs", "metrics"] {
        assert!(!collector.bodies(lane).is_empty(), "no {lane} were forwarded");
        collector.taken(lane).iter().for_each(|taken| look(lane, &taken.body));
    }
    found
}

/// Scenario: the same telemetry, full of personal data and credentials in every place that every signal has, goes by
/// every door to a sidecar that redacts and to one that does not; both forward, and are stopped.
/// Guarantees: the first has nothing of it in a file, an answer, a forwarded byte, a log line or a metric, and says of
/// every trace and text what the second says: the same verdict for the same reasons. That second one has it, so this test
/// can see it.
#[tokio::test(flavor = "multi_thread")]
async fn g10_11_what_is_redacted_is_nowhere_and_verdicts_are_the_same() {
    let mut told = Vec::new();
    for redact in ["true", "false"] {
        let collector = Collector::start().await;
        let mut iris = Iris::start(&[
            ("IRIS__FORWARD__ENDPOINT", &collector.endpoint()),
            ("IRIS__REDACT__ENABLED", redact),
            ("IRIS__ASSEMBLY__QUIET_MS", "300"),
            ("IRIS__ASSEMBLY__SETTLE_MS", "300"),
            ("IRIS__LOGGING__LEVEL", "debug"),
        ])
        .await;
        told.push(send(&iris).await);
        for lane in ["traces", "logs", "metrics"] {
            collector.until(lane, |collector| !collector.bodies(lane).is_empty()).await;
        }
        let found = seen(&mut iris, &collector).await;
        match redact {
            "true" => assert!(found.is_empty(), "{found:#?}"),
            _ => assert!(canaries().iter().all(|canary| found.iter().any(|one| one.starts_with(canary))), "{found:?}"),
        }
    }
    let (with, without) = (&told[0], &told[1]);
    assert_eq!(with.len(), without.len());
    for (name, said) in without {
        assert_eq!(with[name], *said, "{name}");
    }
    let failed = without.values().filter(|said| said["verdict"][0] == "fail").count();
    assert!(failed >= 12, "{failed} of {} fail", without.len());
}
