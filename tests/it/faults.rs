//! Disks that fill up, files that are damaged, processes that are killed where it hurts: nothing acknowledged is lost,
//! and the sidecar heals by itself.
//!
//! The short form runs with every test; `IRIS_FAULTS=long`, which `make faults` sets, runs many more cases.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::acknowledged::send;
use crate::support::collector::Collector;
use crate::support::iris::Iris;
use crate::support::spans::{agent_run, request, trace_hex};

const SPANS: u64 = 3;
const SOON: Duration = Duration::from_secs(120);

fn is_long() -> bool {
    std::env::var("IRIS_FAULTS").is_ok_and(|form| form == "long")
}

/// A row of numbers that is the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }
}

async fn open(iris: &Iris) -> Value {
    iris.until("ops", "/readyz?full", SOON, |state| state["store"]["state"] == "open").await
}

async fn put(iris: &Iris, number: u64) -> u16 {
    let body = request(agent_run(number, SPANS, "It is 18 C."));
    iris.post("traces", "application/x-protobuf", body).await.map_or(0, |(status, _)| status)
}

/// Every one of these is stored whole, once, and judged.
async fn all_there(iris: &Iris, numbers: impl IntoIterator<Item = u64>, what: &str) {
    for number in numbers {
        let path = format!("/api/v1/traces/{}", trace_hex(number));
        let settled = |detail: &Value| {
            detail["trace"]["in_progress"] == false && !detail["evals"].as_array().is_none_or(Vec::is_empty)
        };
        let detail = iris.until("web", &path, SOON, settled).await;
        let ids: BTreeSet<&str> =
            detail["spans"].as_array().unwrap().iter().filter_map(|span| span["span_id"].as_str()).collect();
        assert_eq!(ids.len() as u64, SPANS, "{what}: trace {number}\n{}", iris.log());
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// What is done to a file.
#[derive(Debug, Clone, Copy)]
enum Harm {
    FlipBit,
    Truncate,
    ZeroPage,
    Empty,
    Garbage,
    /// Two segments change places; of the database, its first and second half.
    Swap,
    Missing,
}

const HARMS: [Harm; 7] =
    [Harm::FlipBit, Harm::Truncate, Harm::ZeroPage, Harm::Empty, Harm::Garbage, Harm::Swap, Harm::Missing];

fn segments(home: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(home.join("journal/traces")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Harms one file; says where.
fn harm(home: &Path, file: &Path, harm: Harm, random: &mut Random) -> String {
    let bytes = fs::metadata(file).map_or(0, |data| data.len());
    let place = random.below(bytes);
    let mut opened = OpenOptions::new().read(true).write(true).open(file).unwrap();
    match harm {
        Harm::FlipBit => {
            let mut byte = [0];
            opened.seek(SeekFrom::Start(place)).unwrap();
            opened.read_exact(&mut byte).unwrap();
            opened.seek(SeekFrom::Start(place)).unwrap();
            opened.write_all(&[byte[0] ^ 1 << random.below(8)]).unwrap();
        }
        Harm::Truncate => opened.set_len(place).unwrap(),
        Harm::ZeroPage => {
            let start = place / 4096 * 4096;
            opened.seek(SeekFrom::Start(start)).unwrap();
            let length = usize::try_from(4096.min(bytes - start)).unwrap();
            opened.write_all(&vec![0; length]).unwrap();
        }
        Harm::Empty => opened.set_len(0).unwrap(),
        Harm::Garbage => {
            let noise: Vec<u8> = (0..bytes).map(|_| u8::try_from(random.below(256)).unwrap()).collect();
            opened.write_all(&noise).unwrap();
        }
        Harm::Swap => {
            let all = segments(home);
            let other = all.iter().find(|other| other.as_path() != file);
            match other.filter(|_| file.extension().is_some_and(|ending| ending == "seg")) {
                Some(other) => {
                    let (one, two) = (fs::read(file).unwrap(), fs::read(other).unwrap());
                    fs::write(file, two).unwrap();
                    fs::write(other, one).unwrap();
                }
                None => {
                    let mut content = fs::read(file).unwrap();
                    let half = content.len() / 2;
                    content.rotate_left(half);
                    fs::write(file, content).unwrap();
                }
            }
        }
        Harm::Missing => fs::remove_file(file).unwrap(),
    }
    format!("{harm:?} of {} at {place} of {bytes}", file.strip_prefix(home).unwrap().display())
}

/// A home in which some traces are in the database, some in its log, and all in the journal, because the collector is
/// gone. Returns how many.
async fn filled(iris: &mut Iris) -> u64 {
    iris.start_again().await;
    open(iris).await;
    for number in 1..=30 {
        assert_eq!(put(iris, number).await, 200);
    }
    all_there(iris, 1..=30, "before").await;
    // It ends in order: everything is behind a checkpoint.
    assert!(iris.terminate().await.success());
    iris.start_again().await;
    open(iris).await;
    for number in 31..=45 {
        assert_eq!(put(iris, number).await, 200);
    }
    all_there(iris, 31..=45, "before").await;
    iris.kill();
    45
}

fn settings(endpoint: &str) -> Vec<(&'static str, String)> {
    [
        ("IRIS__ASSEMBLY__QUIET_MS", "200"),
        ("IRIS__ASSEMBLY__SETTLE_MS", "200"),
        ("IRIS__FORWARD__ENDPOINT", endpoint),
        ("IRIS__FORWARD__PROTOCOL", "http"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .to_vec()
}

fn prepared(endpoint: &str) -> Iris {
    let settings = settings(endpoint);
    let borrowed: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    Iris::prepared(&borrowed)
}

/// Scenario: one file of the database, its log or the journal is harmed in some way while the sidecar is down.
/// Guarantees: it starts, says what was damaged, has everything that was acknowledged (the database's rows are in the
/// journal, the journal's in the database), and takes, judges and keeps what comes next.
#[tokio::test(flavor = "multi_thread")]
async fn a_harmed_file_costs_nothing_that_is_elsewhere() {
    let collector = Collector::stopped().await;
    let endpoint = collector.endpoint();
    let mut first = prepared(&endpoint);
    let count = filled(&mut first).await;
    let cases = if is_long() { 200 } else { 12 };
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for case in 0..cases {
        let mut iris = prepared(&endpoint);
        let home = iris.home();
        copy_folder(&first.home(), &home);
        let segment = {
            let all = segments(&home);
            let at = usize::try_from(random.below(all.len() as u64)).unwrap();
            all[at].clone()
        };
        let file = match case % 3 {
            0 => home.join("iris.duckdb"),
            1 => home.join("iris.duckdb.wal"),
            _ => segment,
        };
        if !file.exists() {
            continue;
        }
        let what = harm(&home, &file, HARMS[case / 3 % HARMS.len()], &mut random);
        iris.start_again().await;
        open(&iris).await;
        all_there(&iris, 1..=count, &what).await;
        assert_eq!(put(&iris, 100).await, 200, "{what}");
        all_there(&iris, [100], &what).await;
        iris.kill();
        iris.start_again().await;
        open(&iris).await;
        all_there(&iris, [1, count, 100], &what).await;
    }
}

/// Scenario: a sidecar under load checkpoints all the time and is killed (SIGKILL) at moments of every kind: under load,
/// and again and again while it is still opening.
/// Guarantees: it always opens again, and has every run that was answered with 200, whole and judged.
#[tokio::test(flavor = "multi_thread")]
async fn kills_while_it_opens_and_checkpoints_lose_nothing() {
    let mut iris = Iris::prepared(&[
        ("IRIS__ASSEMBLY__QUIET_MS", "200"),
        ("IRIS__STORE__CHECKPOINT_WAL_BYTES", "32768"),
        ("IRIS__STORE__GROUP_MS", "20"),
    ]);
    let rounds = if is_long() { 40 } else { 4 };
    let mut random = Random(42);
    let (numbers, mut acknowledged) = (Arc::new(AtomicU64::new(1)), BTreeSet::new());
    for _ in 0..rounds {
        for _ in 0..3 {
            iris.start_for(Duration::from_millis(random.below(400)));
        }
        iris.start_again().await;
        open(&iris).await;
        let stop = Arc::new(AtomicBool::new(false));
        let url = format!("http://{}/v1/traces", iris.door("http"));
        let target = numbers.load(Ordering::Relaxed) + 30 + random.below(40);
        let sender = tokio::spawn(send(url, Arc::clone(&numbers), Arc::clone(&stop)));
        while numbers.load(Ordering::Relaxed) < target {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        iris.kill();
        stop.store(true, Ordering::Relaxed);
        acknowledged.extend(sender.await.unwrap());
    }
    iris.start_again().await;
    open(&iris).await;
    assert!(acknowledged.len() > 50, "only {} runs were acknowledged", acknowledged.len());
    for number in &acknowledged {
        let path = format!("/api/v1/traces/{}", trace_hex(*number));
        iris.until("web", &path, SOON, |detail| !detail["evals"].as_array().is_none_or(Vec::is_empty)).await;
    }
}

/// A file system of its own for a home; gone with the value.
struct Small(PathBuf);

impl Small {
    /// `None` where one may not mount.
    #[expect(clippy::print_stderr, reason = "a test that did nothing says so")]
    fn at(home: &Path, mebibytes: u32) -> Option<Self> {
        let options = format!("size={mebibytes}m,mode=0700");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(home).output().ok()?;
        if !mounted.status.success() {
            eprintln!("skipped: {}", String::from_utf8_lossy(&mounted.stderr));
            return None;
        }
        Some(Self(home.to_owned()))
    }

    fn remount(&self, how: &str) {
        let done = Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(&self.0).status().unwrap();
        assert!(done.success());
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // Also when a sidecar still has files in it.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Takes all but so many bytes of a file system.
fn fill(home: &Path, left: u64) -> PathBuf {
    let path = home.join("ballast");
    let mut file = fs::File::create(&path).unwrap();
    let chunk = vec![1; 64 * 1024];
    while file.write_all(&chunk).is_ok() {}
    let size = file.metadata().unwrap().len();
    file.set_len(size.saturating_sub(left)).unwrap();
    path
}

/// Scenario: the disk fills up while spans come, at several amounts of space left, so that the journal, the database, a
/// checkpoint or the rule file is what meets it; then there is room again. Then the same with a disk that turns read-only.
/// Guarantees: what is refused is said at once; health and questions are answered meanwhile; a rule that was not written is
/// refused; all that was answered with 200 is there when there is room, without a restart and after one.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "after a full disk the database may stay busy until a restart"]
async fn a_full_disk_refuses_answers_and_recovers() {
    let lefts: &[u64] = if is_long() { &[0, 4, 64, 200, 600, 1500, 3000] } else { &[0, 600] };
    for left in lefts {
        let mut iris =
            Iris::prepared(&[("IRIS__ASSEMBLY__QUIET_MS", "200"), ("IRIS__STORE__CHECKPOINT_IDLE_MS", "500")]);
        let Some(small) = Small::at(&iris.home(), 48) else { return };
        iris.start_again().await;
        open(&iris).await;
        let mut kept = Vec::new();
        let mut number = 0;
        for phase in ["full", "read-only"] {
            number += 1;
            assert_eq!(put(&iris, number).await, 200, "{phase}");
            kept.push(number);
            let ballast = if phase == "full" {
                Some(fill(&iris.home(), left * 1024))
            } else {
                small.remount("ro");
                None
            };
            let until = Instant::now() + Duration::from_secs(5);
            let mut refused = 0;
            while Instant::now() < until && refused < 5 {
                number += 1;
                let begun = Instant::now();
                match put(&iris, number).await {
                    200 => kept.push(number),
                    status => {
                        assert!((500..600).contains(&status), "{status}");
                        assert!(begun.elapsed() < Duration::from_secs(5));
                        refused += 1;
                    }
                }
            }
            let rule = serde_json::json!({"name": format!("r-{number}"), "eval_type": "custom", "severity": "low",
                "definition": {"type": "min_length", "config": {"min_length": 1}}});
            let (_, deployed) = iris.tool("deploy_rule", &rule).await;
            assert_eq!(iris.get("ops", "/livez").await.0, 200);
            assert_ne!(iris.get("ops", "/readyz?full").await.1, "");
            assert_eq!(iris.get("web", "/api/v1/rules").await.0, 200);
            match ballast {
                Some(ballast) => fs::remove_file(ballast).unwrap(),
                None => small.remount("rw"),
            }
            let (_, rules) = iris.get("web", "/api/v1/rules").await;
            let is_there = rules.contains(&format!("r-{number}"));
            assert_eq!(is_there, deployed["rule"].is_object(), "{deployed}");
            let until = Instant::now() + SOON;
            loop {
                number += 1;
                if put(&iris, number).await == 200 {
                    kept.push(number);
                    break;
                }
                assert!(Instant::now() < until, "{phase}: it takes nothing any more\n{}", iris.log());
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            all_there(&iris, kept.iter().copied(), phase).await;
        }
        iris.kill();
        iris.start_again().await;
        open(&iris).await;
        all_there(&iris, kept.iter().copied(), "after a restart").await;
        iris.kill();
        drop(small);
    }
}

/// Runs the program on a home: its exit code and what it printed.
fn run(iris: &Iris, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iris-sidecar"));
    let done = command.env_clear().env("IRIS_HOME", iris.home()).args(arguments).output().unwrap();
    let said = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8_lossy(&said).into_owned())
}

/// Scenario: places in the database file are overwritten until `store-check` finds damage; it is repaired by hand.
/// Guarantees: the check tells whole from damaged by its exit code; the repaired file is whole; the next start has
/// everything, completed from the journal.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_database_is_found_and_repaired_by_hand() {
    let collector = Collector::stopped().await;
    let mut iris = prepared(&collector.endpoint());
    let count = filled(&mut iris).await;
    let (code, said) = run(&iris, &["store-check"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("spans"), "{said}");
    let file = iris.home().join("iris.duckdb");
    let bytes = fs::metadata(&file).unwrap().len();
    let mut found = false;
    for part in 1..16 {
        let mut opened = OpenOptions::new().write(true).open(&file).unwrap();
        opened.seek(SeekFrom::Start(bytes / 16 * part)).unwrap();
        opened.write_all(&vec![0xa5; usize::try_from(bytes / 16).unwrap()]).unwrap();
        if run(&iris, &["store-check"]).0 == Some(3) {
            found = true;
            break;
        }
    }
    assert!(found, "no place mattered");
    let (code, said) = run(&iris, &["store-check", "--repair"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(&iris, &["store-check"]);
    assert_eq!(code, Some(0), "{said}");
    iris.start_again().await;
    open(&iris).await;
    all_there(&iris, 1..=count, "after a repair").await;
}
