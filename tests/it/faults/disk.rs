//! Disks that fill up or turn read-only.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::{SOON, all_counted, is_long, open, put, run};
use crate::support::collector::Collector;
use crate::support::iris::Iris;

/// A file system of its own for a home; gone with the value.
pub struct Small(PathBuf);

impl Small {
    /// `None` where one may not mount.
    #[expect(clippy::print_stderr, reason = "a test that did nothing says so")]
    pub fn at(home: &Path, mebibytes: u32) -> Option<Self> {
        let options = format!("size={mebibytes}m,mode=0700");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(home).output().ok()?;
        if !mounted.status.success() {
            eprintln!("skipped: {}", String::from_utf8_lossy(&mounted.stderr));
            return None;
        }
        Some(Self(home.to_owned()))
    }

    pub fn remount(&self, how: &str) {
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
pub fn fill(home: &Path, left: u64) -> PathBuf {
    let path = home.join("ballast");
    let mut file = fs::File::create(&path).unwrap();
    for chunk in [64 * 1024, 512] {
        let chunk = vec![1; chunk];
        while file.write_all(&chunk).is_ok() {}
    }
    let size = file.metadata().unwrap().len();
    file.set_len(size.saturating_sub(left)).unwrap();
    path
}

/// Sends runs while there is no room, until five were refused; keeps what was acknowledged.
async fn send_while_full(iris: &Iris, number: &mut u64, kept: &mut Vec<u64>) {
    let until = Instant::now() + Duration::from_secs(5);
    let most = *number + 150;
    let mut refused = 0;
    while Instant::now() < until && refused < 5 && *number < most {
        *number += 1;
        let begun = Instant::now();
        match put(iris, *number).await {
            200 => kept.push(*number),
            status => {
                assert!((500..600).contains(&status), "{status}");
                assert!(begun.elapsed() < Duration::from_secs(5));
                refused += 1;
            }
        }
    }
}

/// The disk of a running sidecar fills up to so many bytes, and has room again.
async fn fill_and_free(iris: &Iris, left: u64, number: &mut u64, kept: &mut Vec<u64>) {
    *number += 1;
    assert_eq!(put(iris, *number).await, 200);
    kept.push(*number);
    let ballast = fill(&iris.home(), left);
    send_while_full(iris, number, kept).await;
    let name = format!("r-{number}");
    let rule = serde_json::json!({"name": name, "eval_type": "custom", "severity": "low",
        "definition": {"type": "min_length", "config": {"min_length": 1}}});
    let (_, deployed) = iris.tool("deploy_rule", &rule).await;
    assert_eq!(iris.get("ops", "/livez").await.0, 200);
    let (_, state) = iris.get("ops", "/readyz?full").await;
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    // Some of what the ballast left may have been given back meanwhile, as when a log is merged into the file.
    let free = state["home"]["disk_free_bytes"].as_u64().unwrap();
    assert!(free < 8 << 20, "{free} bytes are told to be free: {state}");
    let (_, metrics) = iris.get("ops", "/metrics").await;
    assert!(metrics.contains("iris_home_disk_free_bytes") && metrics.contains("iris_journal_refusing"), "{metrics}");
    assert_eq!(iris.get("web", "/api/v1/rules").await.0, 200);
    fs::remove_file(ballast).unwrap();
    let (_, rules) = iris.get("web", "/api/v1/rules").await;
    assert_eq!(rules.contains(&name), deployed["rule"].is_object(), "{deployed}");
    let until = Instant::now() + SOON;
    loop {
        *number += 1;
        if put(iris, *number).await == 200 {
            kept.push(*number);
            return;
        }
        assert!(Instant::now() < until, "it takes nothing any more\n{}", iris.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Scenario: a disk of 32 MiB fills up while spans come, at several amounts of space left, so that the journal, the
/// database, a checkpoint or the rule file is what meets it; then there is room again; twice.
/// Guarantees: what is refused is said at once; health and questions are answered meanwhile, and tell that the disk is full;
/// a rule that was not written is refused; all that was answered with 200 is forwarded, and is there once when there is
/// room, without a restart and after one.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_answers_and_recovers() {
    let lefts: &[u64] = if is_long() { &[0, 4, 64, 200, 600, 1500, 3000] } else { &[0, 600] };
    for left in lefts {
        let collector = Collector::start().await;
        let mut iris = Iris::prepared(&[
            ("IRIS__ASSEMBLY__QUIET_MS", "200"),
            ("IRIS__STORE__CHECKPOINT_IDLE_MS", "500"),
            ("IRIS__RETENTION__BYTES_MAX", "134217728"),
            ("IRIS__FORWARD__ENDPOINT", &collector.endpoint()),
            ("IRIS__FORWARD__PROTOCOL", "http"),
            ("IRIS__MCP__SQL", "true"),
        ]);
        let Some(small) = Small::at(&iris.home(), 32) else { return };
        iris.start_again().await;
        open(&iris).await;
        let (mut number, mut kept, begun) = (0, Vec::new(), Instant::now());
        for time in ["first", "second"] {
            fill_and_free(&iris, left * 1024, &mut number, &mut kept).await;
            all_counted(&iris, &kept, time).await;
            let arrived = |collector: &Collector| {
                let bodies = collector.bodies("traces");
                kept.iter().all(|number| bodies.binary_search(&run(*number)).is_ok())
            };
            collector.until("what was acknowledged", arrived).await;
        }
        // Every ten seconds each of the two lanes that are written may tell one that goes on.
        let told = iris.log().matches("the journal cannot").count() as u64;
        assert!(told <= 2 * (1 + begun.elapsed().as_secs() / 10), "{told} lines\n{}", iris.log());
        iris.kill();
        iris.start_again().await;
        open(&iris).await;
        all_counted(&iris, &kept, "after a restart").await;
        iris.kill();
        drop(small);
    }
}

/// Scenario: a sidecar has ended, and its disk is full to the last byte when it starts again; then there is room.
/// Guarantees: it runs meanwhile, and is found and takes spans when there is room, without another start; what was
/// acknowledged before is there once.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_on_a_full_disk_waits_for_room() {
    let mut iris = Iris::prepared(&[
        ("IRIS__ASSEMBLY__QUIET_MS", "200"),
        ("IRIS__RETENTION__BYTES_MAX", "134217728"),
        ("IRIS__MCP__SQL", "true"),
    ]);
    let Some(small) = Small::at(&iris.home(), 32) else { return };
    iris.start_again().await;
    open(&iris).await;
    for number in 1..=5 {
        assert_eq!(put(&iris, number).await, 200);
    }
    // A kill would leave a reserved segment, of which the start gives back what is not used.
    assert!(iris.terminate().await.success());
    let ballast = fill(&iris.home(), 0);
    iris.start_unfound().await;
    fs::remove_file(ballast).unwrap();
    iris.until_ready().await;
    open(&iris).await;
    let until = Instant::now() + SOON;
    while put(&iris, 6).await != 200 {
        assert!(Instant::now() < until, "it takes nothing any more\n{}", iris.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    all_counted(&iris, &[1, 2, 3, 4, 5, 6], "with room again").await;
    iris.kill();
    drop(small);
}

/// Scenario: the folder is on a file system that turned read-only while the sidecar was down; then it may be written again.
/// Guarantees: the start ends at once and names the folder; afterwards everything is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_folder_is_refused_by_name() {
    let mut iris = Iris::prepared(&[("IRIS__ASSEMBLY__QUIET_MS", "200"), ("IRIS__MCP__SQL", "true")]);
    let Some(small) = Small::at(&iris.home(), 32) else { return };
    iris.start_again().await;
    open(&iris).await;
    for number in 1..=5 {
        assert_eq!(put(&iris, number).await, 200);
    }
    iris.kill();
    small.remount("ro");
    let begun = Instant::now();
    let (status, said) = iris.start_refused().await;
    assert!(!status.success() && begun.elapsed() < Duration::from_secs(10), "{status} after {:?}", begun.elapsed());
    let home = iris.home();
    assert!(said.contains(home.to_str().unwrap()) && said.contains("Read-only file system"), "{said}");
    small.remount("rw");
    iris.start_again().await;
    open(&iris).await;
    all_counted(&iris, &[1, 2, 3, 4, 5], "writable again").await;
    iris.kill();
    drop(small);
}
