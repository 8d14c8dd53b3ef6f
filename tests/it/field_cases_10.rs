//! Operations, as they go wrong in the field: what of it a process can show. Each test bears the id of its case.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::faults::clock::{DAY, bent, set};
use crate::faults::open;
use crate::support::collector::Collector;
use crate::support::iris::Iris;
use crate::support::spans::{agent_run, request, trace_hex};

const PROTOBUF: &str = "application/x-protobuf";
const WAIT: Duration = Duration::from_secs(30);

fn is_judged(detail: &Value) -> bool {
    detail["evals"].as_array().is_some_and(|evals| !evals.is_empty())
}

fn path(trace: u64) -> String {
    format!("/api/v1/traces/{}", trace_hex(trace))
}

/// A sidecar with a configuration file.
async fn with_file(text: &str, settings: &[(&str, &str)]) -> Iris {
    let mut all = settings.to_vec();
    all.push(("IRIS__ASSEMBLY__QUIET_MS", "200"));
    all.push(("IRIS__ASSEMBLY__SETTLE_MS", "200"));
    let mut iris = Iris::prepared(&all);
    std::fs::write(iris.home().join("config.yaml"), text).unwrap();
    iris.start_again().await;
    iris
}

fn files(folder: &Path, each: &mut dyn FnMut(&Path, &[u8])) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files(&entry.path(), each);
        } else if kind.is_file() && entry.file_name() != "config.yaml" {
            each(&entry.path(), &std::fs::read(entry.path()).unwrap());
        }
    }
}

fn holds(bytes: &[u8], what: &str) -> bool {
    bytes.windows(what.len()).any(|window| window == what.as_bytes())
}

/// Scenario: names of fields and a pattern are to be taken out; values under them stand in JSON inside a text attribute,
/// in tool arguments and in the answer.
/// Guarantees: none of them is in a file, an answer or a forwarded byte, and every span is there.
#[tokio::test(flavor = "multi_thread")]
async fn g10_01_fields_and_patterns_of_the_operator_are_taken_out() {
    let collector = Collector::start().await;
    let text = "redact:\n  enabled: true\n  keys: [given_name, api_key]\n  patterns: ['[0-9-]{12,15}']\n";
    let mut iris = with_file(text, &[("IRIS__FORWARD__ENDPOINT", &collector.endpoint())]).await;
    let gone = ["Olewald", "k-93-blue", "1234-6789-123"];
    let inside = json!({"user": {"given_name": gone[0]}, "api_key": gone[1], "v": gone[2]}).to_string();
    let run = agent_run(1, 3, &inside);
    iris.post("traces", PROTOBUF, request(run)).await.unwrap();
    let is_stored =
        |detail: &Value| is_judged(detail) && detail["spans"].as_array().is_some_and(|spans| spans.len() == 3);
    let detail = iris.until("web", &path(1), WAIT, is_stored).await;
    let logged = json!({"agent_name": "a", "output": inside, "tool_calls": [{"tool_name": "t", "input": {"given_name": gone[0], "x": gone[2]}}]});
    assert_eq!(iris.tool("log_trace", &logged).await.0, 200);
    collector.until("the trace", |collector| !collector.bodies("traces").is_empty()).await;
    let all = iris.get("web", "/api/v1/traces").await.1;
    assert!(iris.terminate().await.success());
    for what in gone {
        assert!(!detail.to_string().contains(what) && !all.contains(what) && !iris.log().contains(what), "{what}");
        collector.taken("traces").iter().for_each(|taken| assert!(!holds(&taken.body, what), "{what} was sent on"));
        files(&iris.home(), &mut |file, bytes| assert!(!holds(bytes, what), "{what} in {}", file.display()));
    }
}

/// Scenario: only attributes that hold no content are kept; an answer with an address in it comes.
/// Guarantees: names are there, no text is anywhere, the verdict is unknown and never a pass, and a later evaluation skips
/// what reads text.
#[tokio::test(flavor = "multi_thread")]
async fn g10_03_content_can_be_left_out() {
    let text = "redact:\n  enabled: true\n  kept_attributes: [gen_ai.operation.name, gen_ai.agent.name, gen_ai.request.model]\n";
    let mut iris = with_file(text, &[]).await;
    iris.post("traces", PROTOBUF, request(agent_run(1, 2, "Mail jane.harlow@quayhaven.io or the warden.")))
        .await
        .unwrap();
    let detail = iris.until("web", &path(1), WAIT, is_judged).await;
    assert_eq!(detail["trace"]["agent_name"], "harbor_guide");
    assert_eq!((&detail["trace"]["input"], &detail["trace"]["output"]), (&Value::Null, &Value::Null));
    assert_eq!(detail["evals"][0]["verdict"]["state"], "unknown", "{detail}");
    let (status, reply) = iris.tool("evaluate_output", &json!({"trace_id": trace_hex(1)})).await;
    assert_eq!(status, 200);
    let skipped = |rule: &str| {
        reply["rule_results"].as_array().unwrap().iter().any(|one| one["ruleName"] == rule && one["skipped"] == true)
    };
    assert!(skipped("no_pii") && skipped("non_empty_output"), "{reply}");
    let logged =
        json!({"agent_name": "a", "input": "the warden asks", "output": "the warden answers", "tool_calls": []});
    assert_eq!(iris.tool("log_trace", &logged).await.0, 200);
    assert!(iris.terminate().await.success());
    for what in ["warden", "harlow", "How warm"] {
        files(&iris.home(), &mut |file, bytes| assert!(!holds(bytes, what), "{what} in {}", file.display()));
    }
}

/// Scenario: settings with a typing error, a pattern that is none, a number that is none.
/// Guarantees: it does not start, and names the key and the one that was meant; never does it run without redaction because
/// of a typing error.
#[tokio::test(flavor = "multi_thread")]
async fn g10_05_a_typing_error_is_refused() {
    for (text, env, said) in [
        ("redcat: {enabled: true}", None, "did you mean `redact`"),
        ("redact: {enabeld: true}", None, "did you mean `redact.enabled`"),
        ("redact: {enabled: true, patterns: ['(']}", None, "redact.patterns[0]"),
        ("redact: {keys: [name]}", None, "redact.enabled"),
        ("eval: {critcalRules: []}", None, "eval.critical_rules"),
        ("", Some(("IRIS__RETENTION__DAYS", "abc")), "retention.days"),
        ("", Some(("IRIS__REDACT__ENABLE", "true")), "did you mean `redact.enabled`"),
    ] {
        let settings: Vec<(&str, &str)> = env.into_iter().collect();
        let mut iris = Iris::prepared(&settings);
        std::fs::write(iris.home().join("config.yaml"), text).unwrap();
        let (status, log) = iris.start_refused().await;
        assert_eq!(status.code(), Some(64), "{text} {env:?}");
        assert!(log.contains(said), "{text} {env:?}: {log}");
    }
}

/// Scenario: traces of many agents with names that are no label, of which some leak.
/// Guarantees: a counter tells verdicts by state and another failures by rule, fit for an alert; no agent's name is a label,
/// and there are no more lines for more agents.
#[tokio::test(flavor = "multi_thread")]
async fn g10_09_verdicts_are_counted_under_bounded_labels() {
    let iris = Iris::start(&[("IRIS__ASSEMBLY__QUIET_MS", "100"), ("IRIS__ASSEMBLY__SETTLE_MS", "100")]).await;
    let mut lines = Vec::new();
    for round in 0..2 {
        for number in 0..20 {
            let trace = round * 20 + number + 1;
            let answer = if number < 7 { "Write to jane.harlow@quayhaven.io." } else { "It is 18 C in the harbor." };
            let mut run = agent_run(trace, 2, answer);
            let name = run[0].attributes.iter_mut().find(|one| one.key == "gen_ai.agent.name").unwrap();
            let odd = format!("agent \"{trace}\"\n{{x=\"1\"}} \\");
            name.value.as_mut().unwrap().value =
                Some(opentelemetry_proto::tonic::common::v1::any_value::Value::StringValue(odd));
            iris.post("traces", PROTOBUF, request(run)).await.unwrap();
        }
        for number in 0..20 {
            iris.until("web", &path(round * 20 + number + 1), WAIT, is_judged).await;
        }
        let wanted = 7 * (round + 1);
        let deadline = std::time::Instant::now() + WAIT;
        let text = loop {
            let text = iris.get("ops", "/metrics").await.1;
            if text.contains(&format!("iris_rules_failed_total{{rule=\"no_pii\"}} {wanted}")) {
                break text;
            }
            assert!(std::time::Instant::now() < deadline, "{text}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert!(text.contains(&format!("iris_verdicts_total{{state=\"fail\"}} {wanted}")), "{text}");
        assert!(!text.contains("agent \\\"") && !text.contains("{x="), "{text}");
        lines.push(
            text.lines()
                .filter(|line| line.starts_with("iris_verdicts") || line.starts_with("iris_rules_failed"))
                .count(),
        );
    }
    assert_eq!(lines[0], lines[1]);
}

/// Scenario: traces are kept for a day; the clock goes on, by less than a day after one of them came and more than a day
/// after another, and once two days ahead; twins: nothing is ever deleted with 0, and one that says it began long ago came
/// today.
/// Guarantees: what came more than a day ago goes, the others stay, whatever they say of themselves; that it went is logged
/// with how much; an answer without any trace says how long they are kept; 0 keeps them for ever; what is no number of days
/// is refused.
#[tokio::test(flavor = "multi_thread")]
async fn g10_04_what_came_too_long_ago_goes_and_an_empty_answer_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = bent(folder.path()) else { return };
    let file = folder.path().join("offset");
    let is_stored = |detail: &Value| detail["trace"]["in_progress"] == false && is_judged(detail);
    for days in ["1", "0"] {
        set(&file, 0);
        let mut iris = Iris::prepared(&[
            ("IRIS__ASSEMBLY__QUIET_MS", "200"),
            ("IRIS__RETENTION__DAYS", days),
            ("IRIS__STORE__GROUP_MS", "20"),
            ("LD_PRELOAD", library.to_str().unwrap()),
            ("CLOCK_FILE", file.to_str().unwrap()),
        ]);
        iris.start_again().await;
        // These spans say that they began in 2023 or so: that is not when they came.
        iris.post("traces", PROTOBUF, request(agent_run(1, 2, "It is 18 C."))).await.unwrap();
        iris.until("web", &path(1), WAIT, is_stored).await;
        // What waits is committed at the end, by the clock as it is then.
        assert!(iris.terminate().await.success());
        set(&file, DAY / 5);
        iris.start_again().await;
        iris.post("traces", PROTOBUF, request(agent_run(2, 2, "It is 18 C."))).await.unwrap();
        iris.until("web", &path(2), WAIT, is_stored).await;
        assert!(iris.terminate().await.success());
        set(&file, DAY + DAY / 10);
        iris.start_again().await;
        open(&iris).await;
        let deadline = std::time::Instant::now() + WAIT;
        while days == "1" && iris.get("web", &path(1)).await.0 != 404 {
            assert!(std::time::Instant::now() < deadline, "trace 1 came more than a day ago: {}", iris.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        for trace in if days == "1" { 2..=2 } else { 1..=2 } {
            assert_eq!(iris.get("web", &path(trace)).await.0, 200, "{days} days: trace {trace}");
        }
        let told = || iris.log().contains("rows past their retention were deleted rows=");
        while days == "1" && !told() {
            assert!(std::time::Instant::now() < deadline, "{}", iris.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(told(), days == "1", "{}", iris.log());
        assert!(iris.terminate().await.success());
        set(&file, 2 * DAY + DAY / 2);
        iris.start_again().await;
        open(&iris).await;
        while days == "1" && iris.get("web", &path(2)).await.0 != 404 {
            assert!(std::time::Instant::now() < deadline, "trace 2 came more than a day ago: {}", iris.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let (status, page) = iris.tool("get_traces", &json!({})).await;
        let told = if days == "1" { (json!(0), json!(1)) } else { (json!(2), Value::Null) };
        assert_eq!((status, &page["total"], &page["retention_days"]), (200, &told.0, &told.1), "{page}");
    }
    for days in ["-1", "1.5", "purge"] {
        let mut iris = Iris::prepared(&[("IRIS__RETENTION__DAYS", days)]);
        let (status, log) = iris.start_refused().await;
        assert_eq!(status.code(), Some(64), "{log}");
        assert!(log.contains("retention.days") && log.contains("a whole number, 0 or more"), "{log}");
    }
}

/// Scenario: an agent deploys a rule, stops it, deletes it, and deletes a trace; then the log of changes cannot be written;
/// then it is very large.
/// Guarantees: every change of rules leaves a line without a word of the rule's texts, the deletion of a trace leaves none;
/// a verdict says that rules have changed since the start; a change that cannot be logged is refused and not in force; a
/// log that is too large is turned over and goes on.
#[tokio::test(flavor = "multi_thread")]
async fn g10_10_every_change_of_rules_is_logged_or_refused() {
    let mut iris = with_file("", &[]).await;
    open(&iris).await;
    let rule = |name: &str| {
        json!({"name": name, "eval_type": "custom", "severity": "low",
            "definition": {"type": "excludes_keywords", "config": {"keywords": ["zanzibar"]}}})
    };
    let judged = json!({"output": "It is 18 C in the harbor."});
    let (_, before) = iris.tool("evaluate_output", &judged).await;
    assert!(before["rules_changed"].is_null(), "{before}");
    let rule_of = |definition: &Value| definition["rule"]["id"].as_str().unwrap_or_default().to_owned();
    let (status, deployed) = iris.tool("deploy_rule", &rule("no islands")).await;
    assert_eq!(status, 200, "{deployed}");
    let id = rule_of(&deployed);
    let id = if id.is_empty() { deployed["rule_id"].as_str().unwrap().to_owned() } else { id };
    assert_eq!(iris.tool("delete_rule", &json!({"rule_id": id, "enabled": false})).await.0, 200);
    assert_eq!(iris.tool("delete_rule", &json!({"rule_id": id})).await.0, 200);
    iris.post("traces", PROTOBUF, request(agent_run(1, 2, "It is 18 C."))).await.unwrap();
    iris.until("web", &path(1), WAIT, is_judged).await;
    assert_eq!(iris.tool("delete_trace", &json!({"trace_id": trace_hex(1)})).await.0, 200);
    let (_, after) = iris.tool("evaluate_output", &judged).await;
    assert_eq!(after["rules_changed"], 3, "{after}");
    let log = iris.home().join("audit.log");
    let written = std::fs::read_to_string(&log).unwrap();
    let actions: Vec<String> = written
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["action"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(actions, ["rule.deploy", "rule.toggle", "rule.delete"], "{written}");
    assert!(!written.contains("zanzibar") && !written.contains(&trace_hex(1)), "{written}");
    // A folder in its place cannot be written, whoever asks.
    std::fs::rename(&log, iris.home().join("kept")).unwrap();
    std::fs::create_dir(&log).unwrap();
    let (status, refused) = iris.tool("deploy_rule", &rule("unlogged")).await;
    assert!(status >= 500 && refused["error"]["code"].is_string(), "{status} {refused}");
    let (_, rules) = iris.get("web", "/api/v1/rules").await;
    assert!(!rules.contains("unlogged"), "{rules}");
    std::fs::remove_dir(&log).unwrap();
    // Two gigabytes that take no room.
    let large = std::fs::File::create(&log).unwrap();
    std::os::unix::fs::PermissionsExt::set_mode(&mut large.metadata().unwrap().permissions(), 0o600);
    large.set_len(2 << 30).unwrap();
    drop(large);
    assert!(iris.terminate().await.success());
    iris.start_again().await;
    open(&iris).await;
    let begun = std::time::Instant::now();
    let (status, deployed) = iris.tool("deploy_rule", &rule("turned over")).await;
    assert_eq!(status, 200, "{deployed}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let written = std::fs::read_to_string(&log).unwrap();
    assert!(written.lines().count() == 1 && written.contains("turned over"), "{} bytes", written.len());
    let (status, told) = iris.get("web", "/api/v1/audit?limit=5").await;
    assert!(status == 200 && told.contains("turned over"), "{status} {told}");
}
