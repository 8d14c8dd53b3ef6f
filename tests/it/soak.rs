//! Runs for a while: memory, handles, threads and disk stay flat, and the folder never exceeds its budget (field case
//! G8-04). A minute long with every test; `make soak` sets `IRIS_SOAK_SECONDS` to half an hour.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::json;

use crate::faults::{Random, open};
use crate::support::iris::Iris;
use crate::support::proc::{handles, resident_kib, threads};
use crate::support::spans::{agent_run, request, text, trace_hex};

/// The smallest budget there may be.
const BUDGET: u64 = 128 << 20;
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// What memory may go up and down by, in KiB.
const SWAY_KIB: u64 = 32 * 1024;

fn lasts() -> Duration {
    let given = std::env::var("IRIS_SOAK_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(given.unwrap_or(60))
}

/// What all files below a folder take, the same way `du` counts.
fn taken(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => taken(&entry.path()),
        Ok(found) => found.blocks() * 512,
        Err(_) => 0,
    };
    entries.flatten().map(of).sum()
}

/// The same by what lies in the folder itself.
fn taken_by_each(folder: &Path) -> BTreeMap<String, u64> {
    let of = |entry: fs::DirEntry| {
        let path = entry.path();
        let bytes = if path.is_dir() { taken(&path) } else { entry.metadata().map_or(0, |found| found.blocks() * 512) };
        (entry.file_name().to_string_lossy().into_owned(), bytes)
    };
    fs::read_dir(folder).map_or_else(|_| BTreeMap::new(), |entries| entries.flatten().map(of).collect())
}

/// A look at the process.
#[derive(Debug, Clone)]
struct Look {
    resident_kib: u64,
    handles: usize,
    threads: u64,
    home_bytes: u64,
    by_each: BTreeMap<String, u64>,
}

/// A run with text that no compression makes smaller.
fn run(number: u64, random: &mut Random) -> Bytes {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let noise: String = (0..48 * 1024).map(|_| char::from(LETTERS[random.below(64) as usize])).collect();
    let mut spans = agent_run(number, 3, "It is 18 C.");
    spans[1].attributes.push(text("harbor.noise", &noise));
    request(spans)
}

/// Sends runs until told to stop; what is refused is sent again later, as every exporter does. Returns how many bytes were
/// taken.
async fn send(iris: Arc<Iris>, numbers: Arc<AtomicU64>, seed: u64, stop: Arc<AtomicBool>) -> u64 {
    let (mut random, mut bytes) = (Random(seed), 0);
    while !stop.load(Ordering::Relaxed) {
        let body = run(numbers.fetch_add(1, Ordering::Relaxed), &mut random);
        while iris.post("traces", "application/x-protobuf", body.clone()).await.map_or(0, |(status, _)| status) != 200 {
            if stop.load(Ordering::Relaxed) {
                return bytes;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        bytes += body.len() as u64;
    }
    bytes
}

/// Asks and deletes what is there, as agents and people do.
async fn ask(iris: Arc<Iris>, numbers: Arc<AtomicU64>, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        let newest = numbers.load(Ordering::Relaxed);
        let (status, _) = iris.get("web", "/api/v1/traces?limit=20").await;
        assert!([200, 503].contains(&status), "{status}");
        iris.get("web", &format!("/api/v1/traces/{}", trace_hex(newest.saturating_sub(20)))).await;
        iris.tool("evaluate_output", &json!({ "output": "It is 18 C." })).await;
        iris.tool("log_trace", &json!({ "agent_name": "soak", "output": "It is 18 C.", "evaluate": true })).await;
        iris.tool("delete_trace", &json!({ "trace_id": trace_hex(newest.saturating_sub(50)) })).await;
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

fn median(looks: &[Look], of: impl Fn(&Look) -> u64) -> u64 {
    let mut values: Vec<u64> = looks.iter().map(of).collect();
    values.sort_unstable();
    values[values.len() / 2]
}

/// Scenario: runs of 50 KB that cannot be compressed come as fast as they are taken, several times what the folder may
/// hold; meanwhile traces are read, judged, logged and deleted.
/// Guarantees: the folder never holds more than `retention.bytes_max`; the last third of the time needs no more memory,
/// handles and threads than the one before; the newest trace is there, the oldest has gone.
#[expect(clippy::print_stderr, reason = "figures for docs/performance.md")]
#[tokio::test(flavor = "multi_thread")]
async fn g8_04_a_long_run_stays_flat_and_within_its_budget() {
    let budget = BUDGET.to_string();
    let iris = Arc::new(
        Iris::start(&[
            ("IRIS__RETENTION__BYTES_MAX", budget.as_str()),
            ("IRIS__ASSEMBLY__QUIET_MS", "200"),
            ("IRIS__ERASE__WITHIN_MINUTES", "1"),
        ])
        .await,
    );
    open(&iris).await;
    let (stop, numbers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(1)));
    let senders: Vec<_> = (1..=2)
        .map(|seed| tokio::spawn(send(Arc::clone(&iris), Arc::clone(&numbers), seed, Arc::clone(&stop))))
        .collect();
    let asking = tokio::spawn(ask(Arc::clone(&iris), Arc::clone(&numbers), Arc::clone(&stop)));
    let (begun, mut looks) = (Instant::now(), Vec::new());
    while begun.elapsed() < lasts() {
        let pid = iris.pid();
        let look = Look {
            resident_kib: resident_kib(pid),
            handles: handles(pid),
            threads: threads(pid),
            home_bytes: taken(&iris.home()),
            by_each: taken_by_each(&iris.home()),
        };
        let (bytes, by_each) = (look.home_bytes, &look.by_each);
        assert!(bytes <= BUDGET, "{bytes} bytes in home of {BUDGET}: {by_each:?}\n{}", iris.log());
        looks.push(look);
        tokio::time::sleep(LOOK_EVERY).await;
    }
    stop.store(true, Ordering::Relaxed);
    asking.await.unwrap();
    let mut bytes = 0;
    for sender in senders {
        bytes += sender.await.unwrap();
    }
    let third = looks.len() / 3;
    let (before, last) = (&looks[third..2 * third], &looks[2 * third..]);
    let of_memory = |looks: &[Look]| median(looks, |look| look.resident_kib);
    eprintln!(
        "{} s: {} MiB taken, resident {} then {} KiB, handles {} then {}, threads {} then {}, home at most {} MiB",
        begun.elapsed().as_secs(),
        bytes >> 20,
        of_memory(before),
        of_memory(last),
        median(before, |look| look.handles as u64),
        median(last, |look| look.handles as u64),
        median(before, |look| look.threads),
        median(last, |look| look.threads),
        looks.iter().map(|look| look.home_bytes).max().unwrap() >> 20,
    );
    let most = looks.iter().max_by_key(|look| look.home_bytes).unwrap();
    eprintln!("most of it: {:?}", most.by_each);
    assert!(of_memory(last) <= of_memory(before) + SWAY_KIB, "memory grows");
    let most = |looks: &[Look], of: fn(&Look) -> u64| looks.iter().map(of).max().unwrap();
    assert!(most(last, |look| look.handles as u64) <= most(before, |look| look.handles as u64) + 16, "handles grow");
    assert!(most(last, |look| look.threads) <= most(before, |look| look.threads) + 4, "threads grow");
    let newest = numbers.load(Ordering::Relaxed) - 10;
    let path = format!("/api/v1/traces/{}", trace_hex(newest));
    iris.until("web", &path, Duration::from_secs(120), |detail| detail["trace"]["in_progress"] == false).await;
    if bytes > 3 * BUDGET {
        assert_eq!(iris.get("web", &format!("/api/v1/traces/{}", trace_hex(1))).await.0, 404, "the oldest went first");
    }
}
