//! The database as it goes wrong in the field. Each test bears the id of its case, and where the case has a twin that must
//! come out otherwise, both stand in it. Kills and damage of every kind are in `faults` (G8-05), what a deletion leaves
//! behind in `deleted` (G8-07), what the engine may touch beside the store (G8-08), and growth over time in `soak` (G8-04).

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use duckdb::Connection;
use rustix::fs::{FlockOperation, fcntl_lock};
use serde_json::{Value, json};

use crate::faults::{SPANS, all_there, is_long, open, put};
use crate::support::iris::Iris;
use crate::support::spans::{agent_run, request, span, trace_hex};

const WAIT: Duration = Duration::from_secs(60);

/// Scenario: a second sidecar on the same home, and a program that opens the database file, while the first runs; twins: the
/// same questions over HTTP, and the file once the sidecar has ended.
/// Guarantees: the second ends at once with one line that names the holder and the folder; the program is told who holds
/// the file; the first is not disturbed and answers; afterwards the file opens anywhere and is whole.
#[tokio::test(flavor = "multi_thread")]
async fn g8_01_a_second_process_is_told_who_holds_the_file() {
    let mut iris = Iris::start(&[("IRIS__ASSEMBLY__QUIET_MS", "200")]).await;
    open(&iris).await;
    assert_eq!(put(&iris, 1).await, 200);
    all_there(&iris, [1], "before").await;
    let begun = Instant::now();
    let second = Command::new(env!("CARGO_BIN_EXE_iris-sidecar"))
        .arg("serve")
        .env_clear()
        .env("IRIS_HOME", iris.home())
        .output()
        .unwrap();
    assert!(!second.status.success() && begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let said = String::from_utf8_lossy(&[second.stdout, second.stderr].concat()).into_owned();
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    assert_eq!(lines.len(), 1, "{said}");
    let home = iris.home();
    assert!(said.contains(&format!("pid {}", iris.pid())) && said.contains(home.to_str().unwrap()), "{said}");
    for read_only in [true, false] {
        let mode = if read_only { duckdb::AccessMode::ReadOnly } else { duckdb::AccessMode::ReadWrite };
        let flags = duckdb::Config::default().access_mode(mode).unwrap();
        let refused = Connection::open_with_flags(home.join("iris.duckdb"), flags).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains(&format!("PID {}", iris.pid())), "{refused}");
    }
    let (status, page) = iris.get("web", "/api/v1/traces").await;
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!((status, &page["total"]), (200, &json!(1)), "it answers as before");
    assert_eq!(put(&iris, 2).await, 200);
    all_there(&iris, [1, 2], "after").await;
    assert!(iris.terminate().await.success());
    let traces: u64 = Connection::open(home.join("iris.duckdb"))
        .unwrap()
        .query_row("SELECT count(DISTINCT trace_id) FROM traces", [], |row| row.get(0))
        .unwrap();
    assert_eq!(traces, 2);
}

/// Scenario: another process holds a lock on the database file when the sidecar starts, and lets go of it later; twin: it
/// never does, and the sidecar ends and starts again.
/// Guarantees: runs are acknowledged and kept meanwhile, questions are told to come again, the log names what is in the way
/// and does not repeat itself; once the lock is gone everything is stored once, without a restart and after one.
#[tokio::test(flavor = "multi_thread")]
async fn g8_02_a_lock_that_nobody_answers_for_is_waited_out() {
    for is_let_go in [true, false] {
        let mut iris = Iris::prepared(&[("IRIS__ASSEMBLY__QUIET_MS", "200")]);
        let path = iris.home().join("iris.duckdb");
        let file = fs::File::options().read(true).write(true).create(true).truncate(false).open(&path).unwrap();
        fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        iris.start_again().await;
        for number in 1..=5 {
            assert_eq!(put(&iris, number).await, 200);
        }
        let state = iris.until("ops", "/readyz?full", WAIT, |state| state["store"]["state"] == "opening").await;
        assert_eq!(state["ready"], true);
        let (status, answer) = iris.get("web", "/api/v1/traces").await;
        assert!(status == 503 && answer.contains("retry"), "{status} {answer}");
        let told = |log: &str| log.matches("the store cannot be opened").count();
        let deadline = Instant::now() + WAIT;
        while told(&iris.log()) == 0 {
            assert!(Instant::now() < deadline, "{}", iris.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // Longer than two attempts take.
        let until = Instant::now() + Duration::from_millis(4500);
        while Instant::now() < until {
            assert_eq!(iris.get("ops", "/livez").await.0, 200);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(told(&iris.log()), 1, "{}", iris.log());
        assert!(iris.log().contains(&format!("process with id {}", std::process::id())), "{}", iris.log());
        if is_let_go {
            drop(file);
        } else {
            assert!(iris.terminate().await.success());
            drop(file);
            iris.start_again().await;
        }
        open(&iris).await;
        all_there(&iris, 1..=5, "once the lock is gone").await;
    }
}

/// Scenario: the write-ahead log loses 1 to 200 bytes of its end, or one byte of it is another; the database file is empty,
/// or no database; twins: nothing is done to it, and the log is gone altogether.
/// Guarantees: every start gets through by itself and keeps what was set aside; all that was acknowledged is there once;
/// the next run is taken and kept.
#[tokio::test(flavor = "multi_thread")]
async fn g8_05_no_log_and_no_file_keeps_it_from_starting() {
    type Harm = fn(&std::path::Path, &std::path::Path);
    let harms: &[(&str, Harm)] = &[
        ("nothing", |_, _| ()),
        ("the log is gone", |_, log| fs::remove_file(log).unwrap()),
        ("1 byte of the log is gone", |_, log| shorten(log, 1)),
        ("17 bytes of the log are gone", |_, log| shorten(log, 17)),
        ("200 bytes of the log are gone", |_, log| shorten(log, 200)),
        ("a byte of the log is another", |_, log| turn(log, 2)),
        ("a byte early in the log is another", |_, log| turn(log, 10)),
        ("the file is empty", |file, _| fs::write(file, "").unwrap()),
        ("the file is no database", |file, _| fs::write(file, [0x5a; 30_000]).unwrap()),
    ];
    let collector = crate::support::collector::Collector::stopped().await;
    let mut first = crate::faults::prepared(&collector.endpoint());
    first.start_again().await;
    open(&first).await;
    for number in 1..=8 {
        assert_eq!(put(&first, number).await, 200);
    }
    all_there(&first, 1..=8, "before").await;
    first.kill();
    for (what, harm) in harms {
        let mut iris = crate::faults::prepared(&collector.endpoint());
        let home = iris.home();
        crate::faults::damage::copy_folder(&first.home(), &home);
        harm(&home.join("iris.duckdb"), &home.join("iris.duckdb.wal"));
        iris.start_again().await;
        let state = open(&iris).await;
        all_there(&iris, 1..=8, what).await;
        let set_aside = fs::read_dir(home.join("duckdb/set-aside")).map_or(0, Iterator::count);
        let damage = state["store"]["damage"].as_array().map_or(0, Vec::len);
        assert_eq!(set_aside > 0, damage > 0, "{what}: what was set aside is told");
        assert!(damage == 0 || !["nothing", "the log is gone"].contains(what), "{what}: {state}");
        assert_eq!(put(&iris, 100).await, 200, "{what}");
        all_there(&iris, [100], what).await;
    }
}

fn shorten(path: &std::path::Path, bytes: u64) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_len(file.metadata().unwrap().len() - bytes).unwrap();
}

/// Turns the byte at that part of a file.
fn turn(path: &std::path::Path, part: usize) {
    let mut bytes = fs::read(path).unwrap();
    let at = bytes.len() / part;
    bytes[at] ^= 0x55;
    fs::write(path, bytes).unwrap();
}

/// Sends a span of each trace a time until told to stop; how many were taken, and the longest wait for an acknowledgement.
async fn send_both(
    iris: Arc<Iris>,
    traces: [u64; 2],
    numbers: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
) -> (u64, Duration) {
    let (mut taken, mut slowest) = (0_u64, Duration::ZERO);
    while !stop.load(Ordering::Relaxed) {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        let spans = traces.map(|trace| span(trace, number, "step", Vec::new()));
        let begun = Instant::now();
        let (status, _) = iris.post("traces", "application/x-protobuf", request(spans.to_vec())).await.unwrap();
        slowest = slowest.max(begun.elapsed());
        assert_eq!(status, 200);
        taken += 1;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    (taken, slowest)
}

/// Scenario: eight senders send spans of one trace; meanwhile it is judged by a tool again and again, others read it, and at
/// the end it is deleted while they still send; twin: a second trace that gets the same and is not deleted.
/// Guarantees: nobody is told of a conflict of transactions; acknowledgements come soon; the trace that stays has every
/// acknowledged span once; the deleted one stays deleted, whatever comes late.
#[tokio::test(flavor = "multi_thread")]
async fn g8_09_many_writers_of_one_trace_do_not_meet() {
    let iris = Arc::new(
        Iris::start(&[
            ("IRIS__ASSEMBLY__QUIET_MS", "150"),
            ("IRIS__STORE__GROUP_MS", "20"),
            ("IRIS__STORE__CHECKPOINT_WAL_BYTES", "262144"),
            ("IRIS__MCP__SQL", "true"),
        ])
        .await,
    );
    open(&iris).await;
    let (stays, goes) = (1, 2);
    for trace in [stays, goes] {
        let body = request(agent_run(trace, 2, "It is 18 C."));
        assert_eq!(iris.post("traces", "application/x-protobuf", body).await.unwrap().0, 200);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let numbers = Arc::new(AtomicU64::new(3));
    let mut work = tokio::task::JoinSet::new();
    for _ in 0..8 {
        work.spawn(send_both(Arc::clone(&iris), [stays, goes], Arc::clone(&numbers), Arc::clone(&stop)));
    }
    let until = Instant::now() + Duration::from_secs(if is_long() { 60 } else { 5 });
    let mut judged = BTreeSet::new();
    while Instant::now() < until {
        for trace in [stays, goes] {
            let id = trace_hex(trace);
            let (status, reply) = iris.tool("evaluate_output", &json!({ "trace_id": id, "output": "fine" })).await;
            let text = reply.to_string();
            assert!(!text.contains("TransactionContext") && !text.contains("onflict"), "{text}");
            // A trace that is being deleted or stored anew may be unknown for a moment, never broken.
            assert!([200, 404].contains(&status), "{status} {text}");
            judged.insert((trace, status));
            let (status, text) = iris.get("web", &format!("/api/v1/traces/{id}")).await;
            assert!([200, 404].contains(&status), "{status} {text}");
        }
    }
    assert!(judged.contains(&(stays, 200)), "{judged:?}");
    let (status, reply) = iris.tool("delete_trace", &json!({ "trace_id": trace_hex(goes) })).await;
    assert_eq!((status, &reply["deleted"]), (200, &json!(true)), "{reply}");
    let until = Instant::now() + Duration::from_secs(1);
    while Instant::now() < until {
        assert_eq!(iris.get("web", &format!("/api/v1/traces/{}", trace_hex(goes))).await.0, 404, "it came back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    stop.store(true, Ordering::Relaxed);
    let mut acknowledged = 0;
    while let Some(sender) = work.join_next().await {
        let (taken, slowest) = sender.unwrap();
        acknowledged += taken;
        assert!(slowest < Duration::from_secs(5), "an acknowledgement took {slowest:?}");
    }
    let path = format!("/api/v1/traces/{}", trace_hex(stays));
    iris.until("web", &path, WAIT, |detail| detail["trace"]["in_progress"] == false).await;
    let sql = "SELECT trace_id, count(*), count(DISTINCT span_id) FROM spans GROUP BY trace_id ORDER BY 1";
    let (status, found) = iris.tool("query_sql", &json!({ "sql": sql })).await;
    assert_eq!(status, 200, "{found}");
    assert_eq!(found["rows"], json!([[trace_hex(stays), acknowledged + 2, acknowledged + 2]]));
    let log = iris.log();
    assert!(!log.contains("TransactionContext") && !log.contains("onflict"), "{log}");
}

fn write_rules(iris: &Iris, text: &str) {
    let path = iris.home().join("custom-rules.json");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Scenario: stored evaluations are edited by hand into what no evaluation is; twin: those beside them.
/// Guarantees: the start succeeds; what cannot be read is left out and counted; its neighbours are there.
#[tokio::test(flavor = "multi_thread")]
async fn g8_11_a_row_that_cannot_be_read_costs_itself_alone() {
    let mut iris = Iris::start(&[("IRIS__ASSEMBLY__QUIET_MS", "200")]).await;
    open(&iris).await;
    for number in 1..=6 {
        assert_eq!(put(&iris, number).await, 200);
    }
    all_there(&iris, 1..=6, "before").await;
    assert!(iris.terminate().await.success());
    let database = Connection::open(iris.home().join("iris.duckdb")).unwrap();
    for (number, body) in [(1, r#"{"rule":"x"}"#), (2, "null"), (3, "not json"), (4, "")] {
        let sql = "UPDATE evaluations SET body = ?, long_id = NULL, long = NULL WHERE lower(hex(trace_id)) = ?";
        assert_eq!(database.execute(sql, duckdb::params![body, trace_hex(number)]).unwrap(), 1);
    }
    database.execute_batch("CHECKPOINT").unwrap();
    drop(database);
    iris.start_again().await;
    open(&iris).await;
    all_there(&iris, [5, 6], "the neighbours").await;
    let (status, page) = iris.get("web", "/api/v1/traces").await;
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!((status, &page["total"]), (200, &json!(6)), "{page}");
    for number in 1..=4 {
        let (status, detail) = iris.get("web", &format!("/api/v1/traces/{}", trace_hex(number))).await;
        let detail: Value = serde_json::from_str(&detail).unwrap();
        assert_eq!((status, detail["spans"].as_array().map(Vec::len)), (200, Some(SPANS as usize)), "{detail}");
        assert_eq!(detail["evals"].as_array().map(Vec::len), Some(0), "{detail}");
    }
    let state = open(&iris).await;
    assert!(state["store"]["unreadable"].as_u64().is_some_and(|rows| rows >= 4), "{state}");
    assert_eq!(put(&iris, 7).await, 200);
    all_there(&iris, [7], "the next").await;
}

/// Scenario: the rule file has an entry of no known kind, a comma too many, nothing in it, or the form of a later version;
/// twin: a good file.
/// Guarantees: it starts and judges; a bad entry is named and stays in the file, its neighbours fire; a file that cannot be
/// read is never written over, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn g8_11_a_rule_file_that_cannot_be_read_is_kept_and_told() {
    const GOOD: &str = r#"{"id":"rule-00000001","name":"harbour","evalType":"safety","severity":"low","enabled":true,"definition":{"name":"harbour","type":"min_length","config":{"length":1}},"createdAt":"2026-12-01T09:30:00.000Z","updatedAt":"2026-12-01T09:30:00.000Z","version":1}"#;
    const STRANGE: &str = r#"{"id":"rule-00000002","name":"moon","severity":"low","definition":{"type":"moon_phase"}}"#;
    let cases = [
        ("good", format!(r#"{{"version":1,"rules":[{GOOD}]}}"#), Some(0)),
        ("an entry of no known kind", format!(r#"{{"version":1,"rules":[{GOOD},{STRANGE}]}}"#), Some(1)),
        ("a comma too many", format!(r#"{{"version":1,"rules":[{GOOD},]}}"#), None),
        ("cut off", format!(r#"{{"version":1,"rules":[{GOOD}"#), None),
        ("nothing", String::new(), None),
        ("a later version", format!(r#"{{"version":99,"rules":{{"harbour":{GOOD}}}}}"#), None),
    ];
    for (what, text, quarantined) in cases {
        let mut iris = Iris::prepared(&[("IRIS__ASSEMBLY__QUIET_MS", "200")]);
        write_rules(&iris, &text);
        iris.start_again().await;
        open(&iris).await;
        let (status, rules) = iris.get("web", "/api/v1/rules").await;
        match quarantined {
            Some(count) => {
                assert_eq!(status, 200, "{what}: {rules}");
                let rules: Value = serde_json::from_str(&rules).unwrap();
                let named = rules["quarantined"].as_array().map_or(0, Vec::len);
                assert_eq!(named, count, "{what}: {rules}");
                assert!(rules.to_string().contains("harbour"), "{what}: {rules}");
            }
            None => assert_eq!(status, 500, "{what}: {rules}"),
        }
        let state = open(&iris).await;
        let told = state["rules"][0]["state"].as_str().unwrap_or_default();
        assert_eq!(told == "unreadable", quarantined.is_none(), "{what}: {}", state["rules"]);
        let rule = json!({"name": "mine", "eval_type": "custom", "severity": "low",
            "definition": {"type": "min_length", "config": {"length": 1}}});
        let (status, reply) = iris.tool("deploy_rule", &rule).await;
        assert_eq!(status == 200, quarantined.is_some(), "{what}: {reply}");
        assert_eq!(put(&iris, 1).await, 200, "{what}");
        let path = format!("/api/v1/traces/{}", trace_hex(1));
        let detail = iris.until("web", &path, WAIT, |detail| detail["trace"]["in_progress"] == false).await;
        let verdict = &detail["evals"][0]["verdict"];
        assert_eq!(verdict["state"] == "unknown", quarantined.is_none(), "{what}: {verdict}");
        let after = fs::read_to_string(iris.home().join("custom-rules.json")).unwrap();
        match quarantined {
            None => assert_eq!(after, text, "{what}: never written over"),
            Some(0) => {}
            Some(_) => assert!(after.contains("moon_phase"), "{what}: {after}"),
        }
    }
}
