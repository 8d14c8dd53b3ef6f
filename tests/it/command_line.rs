//! The commands that ask: the same answers from a sidecar that runs and from its folder after it has ended.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::iris::Iris;

/// An agent's name that a terminal, a log viewer of continuous integration and an XML parser would obey.
const HOSTILE: &str = "\u{1b}]0;x\u{7}\n::error::forged\u{202e}\u{0}]]><b>";

fn run(iris: &Iris, arguments: &[impl AsRef<std::ffi::OsStr>]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iris-sidecar"));
    command.env_clear().env("IRIS_HOME", iris.home()).args(arguments).output().unwrap()
}

/// Exit code, standard output, standard error.
fn told(done: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (done.status.code().unwrap(), text(&done.stdout), text(&done.stderr))
}

fn succeeded<A: AsRef<std::ffi::OsStr> + std::fmt::Debug>(iris: &Iris, arguments: &[A]) -> String {
    let (code, out, err) = told(&run(iris, arguments));
    assert_eq!(code, 0, "{arguments:?}: {out}\n{err}");
    out
}

fn refused<A: AsRef<std::ffi::OsStr> + std::fmt::Debug>(iris: &Iris, arguments: &[A], code: i32) -> String {
    let (found, out, err) = told(&run(iris, arguments));
    assert_eq!(found, code, "{arguments:?}: {out}\n{err}");
    err
}

async fn log(iris: &Iris, agent: &str, output: &str) -> String {
    let call = json!({ "agent_name": agent, "input": "Who is on duty?", "output": output, "evaluate": true });
    let (status, reply) = iris.tool("log_trace", &call).await;
    assert_eq!(status, 200, "{reply}");
    reply["trace_id"].as_str().unwrap().to_owned()
}

fn assert_inert(text: &str) {
    let harmful = |letter: char| letter.is_control() && letter != '\n' || letter == '\u{202e}';
    assert!(!text.contains(harmful), "{text:?}");
    assert!(text.lines().all(|line| !line.trim_start().starts_with("::") && !line.contains("##[")), "{text}");
}

/// Guarantees: lines of a text are shown, and none of them is a command to a runner of continuous integration.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_runner_would_obey_is_broken_up() {
    let (iris, _) = filled(&[]).await;
    let id =
        log(&iris, "clerk", "All is well.\n::error file=a::forged\n  ::set-output name=x::y\nsee ##[add-path]/tmp")
            .await;
    let shown = succeeded(&iris, &["traces", "show", &id]);
    assert!(shown.contains(": :error file=a::forged") && shown.contains("## [add-path]/tmp"), "{shown}");
    assert_inert(&shown);
}

async fn filled(settings: &[(&str, &str)]) -> (Iris, String) {
    let iris = Iris::start(settings).await;
    iris.until("ops", "/readyz?full", Duration::from_secs(30), |state| state["store"]["state"] == "open").await;
    log(&iris, "good", "Maria is on duty until six in the evening; her shift ends with the handover.").await;
    let leaking = log(&iris, "leaking", "🙂 Maria is on duty; her private number is +1 415 555 2671, call her.").await;
    log(&iris, HOSTILE, "Nobody is on duty at this hour, the desk opens again at eight in the morning.").await;
    (iris, leaking)
}

/// Scenario: three traces, one that leaks a number and one whose agent has a hostile name; listed, shown and gated while
/// the sidecar runs, and from its folder after it has ended.
/// Guarantees: the same answers either way; exit codes as documented; what was seen is shown where it stands; nothing that
/// others wrote is obeyed.
#[tokio::test(flavor = "multi_thread")]
async fn traces_are_listed_shown_and_gated_alike_with_and_without_a_sidecar() {
    let (mut iris, leaking) = filled(&[]).await;
    let mut lists = Vec::new();
    for is_running in [true, false] {
        if !is_running {
            assert!(iris.terminate().await.success());
        }
        let table = succeeded(&iris, &["traces", "list"]);
        assert_eq!(table.lines().count(), 4, "{table}");
        assert_inert(&table);
        let failed = succeeded(&iris, &["traces", "list", "--verdict", "fail", "--since", "1h", "--agent", "leaking"]);
        assert!(failed.contains(&leaking) && failed.contains("no_pii"), "{failed}");
        let list = succeeded(&iris, &["traces", "list", "--format", "json", "--limit", "3"]);
        lists.push(serde_json::from_str::<Value>(&list).unwrap()["traces"].clone());

        let shown = succeeded(&iris, &["traces", "show", &leaking]);
        assert!(shown.contains("Verdict fail") && shown.contains("phone in output 42..57"), "{shown}");
        assert!(shown.contains("private number is +1 415 555 2671, call her."), "{shown}");
        assert_eq!(succeeded(&iris, &["traces", "show", &leaking[..12]]), shown);
        assert!(refused(&iris, &["traces", "show", &"0".repeat(31)], 2).contains("none of the newest"));
        assert!(refused(&iris, &["traces", "show", "0123"], 2).contains("32 hexadecimal"));
        assert!(refused(&iris, &["traces", "show", &"a".repeat(32)], 2).contains("trace"));
        assert!(refused(&iris, &["traces", "list", "--since", "soonh"], 2).contains("90m"));

        let report = iris.home().join("gate.xml");
        let (code, out, err) = told(&run(&iris, &["gate", "--junit", report.to_str().unwrap()]));
        assert_eq!(code, 1, "{out}{err}");
        assert!(out.contains("1 of 3 traces") && out.contains(&leaking), "{out}");
        assert_inert(&out);
        let xml = std::fs::read_to_string(&report).unwrap();
        assert!(xml.contains("tests=\"3\" skipped=\"0\" failures=\"1\"") && xml.contains(&leaking), "{xml}");
        assert!(!xml.contains('\u{1b}') && !xml.contains('\u{0}') && !xml.contains("<b>"), "{xml}");
        assert!(succeeded(&iris, &["gate", "--agent", "good"]).contains("0 of 1 traces"));
        assert!(succeeded(&iris, &["gate", "--rule", "no_stub_output"]).contains("0 of 3 traces"));
        let too_few = told(&run(&iris, &["gate", "--agent", "good", "--min-traces", "2"]));
        assert!(too_few.0 == 1 && too_few.1.contains("fewer than --min-traces 2"), "{too_few:?}");
        let told = told(&run(&iris, &["gate", "--format", "json"]));
        let told: Value = serde_json::from_str(&told.1).unwrap();
        assert_eq!((&told["passed"], &told["tripped"][0]["by"][0]), (&json!(false), &json!("no_pii")), "{told}");
    }
    assert_eq!(lists[0], lists[1]);
}

/// Scenario: nothing has come yet, with the web door open and with it shut, as in a pod.
/// Guarantees: the command line asks either way, over the socket where the door is shut; it says what brings the first
/// trace; a gate stays closed; the name of a class where a rule's is wanted is refused with the rule that was meant, so
/// that no gate is open for a slip.
#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_came_the_first_step_is_told_with_the_web_door_open_or_shut() {
    for settings in [&[][..], &[("IRIS__WEB__LISTEN", "off")]] {
        let iris = Iris::start(settings).await;
        let empty = succeeded(&iris, &["traces", "list"]);
        let sends_to = format!("OTEL_EXPORTER_OTLP_ENDPOINT=http://{}", iris.door("http"));
        assert!(empty.contains("no trace is here yet") && empty.contains(&sends_to), "{empty}");
        assert_eq!(succeeded(&iris, &["traces", "list", "--agent", "clerk"]), "no trace matches\n");
        let (code, out, _) = told(&run(&iris, &["gate", "--agent", "clerk"]));
        assert!(code == 1 && out.contains("no trace of the agent clerk began then"), "{out}");
        for command in [&["gate", "--min-traces", "0"][..], &["traces", "list"]] {
            let asked = [command, &["--rule", "silent_tool_failure"]].concat();
            let refused = refused(&iris, &asked, 2);
            assert!(refused.contains("no rule is called silent_tool_failure, but no_silent_tool_failure"), "{refused}");
            assert!(refused.contains("rules list"), "{refused}");
        }
        assert!(
            succeeded(&iris, &["gate", "--min-traces", "0", "--rule", "no_silent_tool_failure"]).contains("0 of 0")
        );
    }
}

/// Guarantees: an address without a scheme and a home that cannot be one are named with what helps.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_or_a_home_that_cannot_be_used_is_refused_with_what_helps() {
    let iris = Iris::prepared(&[]);
    let bare = refused(&iris, &["traces", "list", "--url", "127.0.0.1:6920"], 2);
    assert!(bare.contains("--url 127.0.0.1:6920") && bare.contains("http://127.0.0.1:6920"), "{bare}");
    let file = iris.home().join("file");
    std::fs::write(&file, "").unwrap();
    let home = refused(&iris, &["serve", "--home", file.to_str().unwrap()], 2);
    assert!(home.contains("cannot be used as the home folder") && !home.contains("config.yaml"), "{home}");
    let none = iris.home().join("none");
    let none = refused(&iris, &["traces", "list", "--home", none.to_str().unwrap()], 2);
    assert!(none.contains("no such folder") && none.contains("iris-sidecar serve"), "{none}");
}

/// Scenario: every trace is exported as JSON Lines and as Parquet.
/// Guarantees: each trace once, oldest first, with its texts and verdict as they are, typed, readable by a stock engine; a
/// file that cannot be written is named, and nothing is left of it.
#[tokio::test(flavor = "multi_thread")]
async fn g10_12_traces_are_exported_whole_and_typed() {
    let (iris, leaking) = filled(&[]).await;
    let large = format!("{} end", "All is well at the desk. ".repeat(80_000));
    let large_id = log(&iris, "large", &large).await;
    let path = |name: &str| iris.home().join(name).to_str().unwrap().to_owned();
    succeeded(&iris, &["export", "--to", &path("all.jsonl")]);
    let lines = std::fs::read_to_string(path("all.jsonl")).unwrap();
    let traces: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let agents: Vec<&str> = traces.iter().map(|trace| trace["agent_name"].as_str().unwrap()).collect();
    assert_eq!(agents, ["good", "leaking", HOSTILE, "large"]);
    assert_eq!((&traces[1]["trace_id"], &traces[1]["verdict"]["state"]), (&json!(leaking), &json!("fail")));
    assert!(traces[3]["output"] == large.as_str(), "whole, though it is longer than a page's share");
    assert_eq!(succeeded(&iris, &["export", "--to", "-", "--agent", "good"]).lines().count(), 1);

    succeeded(&iris, &["export", "--to", &path("all.parquet")]);
    let engine = duckdb::Connection::open_in_memory().unwrap();
    let sql = format!(
        "SELECT string_agg(verdict || typeof(timestamp) || typeof(cost_usd), ',' ORDER BY timestamp), max(length(output)), count(*) \
         FROM '{}' WHERE cost_usd IS NULL AND timestamp > TIMESTAMPTZ '2026-01-01 00:00:00+00'",
        path("all.parquet")
    );
    let read = |row: &duckdb::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, u64>(1)?, row.get::<_, u64>(2)?));
    let (verdicts, longest, count) = engine.query_row(&sql, [], read).unwrap();
    assert!(verdicts.contains("failTIMESTAMP WITH TIME ZONEDOUBLE"), "{verdicts}");
    assert_eq!((longest, count), (large.chars().count() as u64, 4), "{large_id}");
    for file in ["all.parquet", "all.jsonl"].map(&path) {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file} holds what agents said");
    }
    assert!(refused(&iris, &["export", "--to", &path("all.csv")], 2).contains(".parquet"));
    assert!(refused(&iris, &["export", "--to", "-", "--format", "parquet"], 2).contains("needs a file"));
    assert!(refused(&iris, &["export", "--to", &path("none/at/all.jsonl")], 2).contains("all.jsonl"));
    let left =
        |end: &str| std::fs::read_dir(iris.home()).unwrap().any(|one| one.unwrap().path().ends_with(Path::new(end)));
    assert!(!left("draft.duckdb"));
}

/// Scenario: a rule is tried, deployed, paused, resumed and deleted, by name and by id, also against a sidecar that wants
/// a key.
/// Guarantees: each change is told and takes effect; a rule that cannot be is refused with the field; no key is no entry.
#[tokio::test(flavor = "multi_thread")]
async fn rules_are_tried_deployed_paused_and_deleted() {
    let (mut iris, leaking) = filled(&[]).await;
    assert!(iris.terminate().await.success());
    iris.set("IRIS_API_KEY", "a-key-of-some-length-for-this-test");
    iris.start_again().await;
    iris.until("ops", "/readyz?full", Duration::from_secs(30), |state| state["store"]["state"] == "open").await;
    let key = iris.home().join("key");
    std::fs::write(&key, "a-key-of-some-length-for-this-test\n").unwrap();
    let key = key.to_str().unwrap();
    assert!(refused(&iris, &["rules", "list"], 1).contains("--key-file"));
    let with = |arguments: &[&str]| -> Vec<String> {
        arguments.iter().copied().chain(["--key-file", key]).map(str::to_owned).collect()
    };
    let file = iris.home().join("rule.json");
    let rule = json!({ "name": "no numbers", "eval_type": "safety", "severity": "high",
        "definition": { "type": "regex_no_match", "config": { "pattern": "[0-9]{3} [0-9]{3}" } } });
    std::fs::write(&file, rule.to_string()).unwrap();
    let file = file.to_str().unwrap();
    let tried = succeeded(&iris, &with(&["rules", "preview", file]));
    assert!(tried.contains("of 3 traces") && tried.contains("fail 1") && tried.contains(&leaking), "{tried}");
    assert!(succeeded(&iris, &with(&["rules", "list", "--only", "custom"])).contains("no custom rules"));
    let deployed = succeeded(&iris, &with(&["rules", "deploy", file, "--format", "json"]));
    let deployed: Value = serde_json::from_str(&deployed).unwrap();
    let id = deployed["rule"]["id"].as_str().unwrap();
    assert!(refused(&iris, &with(&["rules", "deploy", file]), 1).contains("rule-"), "the name is taken");
    succeeded(&iris, &with(&["rules", "deploy", file, "--replace"]));
    succeeded(&iris, &with(&["rules", "pause", "no numbers"]));
    let listed = succeeded(&iris, &with(&["rules", "list"]));
    assert!(listed.contains("no_pii") && listed.contains("paused"), "{listed}");
    succeeded(&iris, &with(&["rules", "resume", "no numbers"]));
    assert!(refused(&iris, &with(&["rules", "pause", id]), 2).contains("no deployed rule"), "it was replaced");
    succeeded(&iris, &with(&["rules", "delete", "no numbers"]));
    std::fs::write(file, json!({ "name": "x", "eval_type": "safety", "definition": { "type": "regex" } }).to_string())
        .unwrap();
    assert!(refused(&iris, &with(&["rules", "deploy", file]), 2).contains("definition"));
}

/// Guarantees: completions and manual pages are made of the command line itself, and name every command.
#[test]
fn the_command_line_describes_itself() {
    let program = env!("CARGO_BIN_EXE_iris-sidecar");
    let shell = |name: &str| Command::new(program).args(["completions", name]).output().unwrap();
    for name in ["bash", "zsh", "fish"] {
        let written = String::from_utf8(shell(name).stdout).unwrap();
        assert!(written.contains("check-config") && written.contains("gate"), "{name}");
    }
    let folder = tempfile::tempdir().unwrap();
    assert!(Command::new(program).arg("man").arg(folder.path()).status().unwrap().success());
    for page in ["iris-sidecar.1", "iris-sidecar-gate.1", "iris-sidecar-traces-show.1"] {
        assert!(folder.path().join(page).is_file(), "{page}");
    }
}
