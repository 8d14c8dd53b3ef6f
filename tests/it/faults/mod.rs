//! Disks that fill up, files that are damaged, processes that are killed where it hurts, senders and collectors of every
//! kind: nothing acknowledged is lost or doubled, every bound holds, and the sidecar heals by itself.
//!
//! The short form runs with every test; `IRIS_FAULTS=long`, which `make faults` sets, runs many more cases.

pub mod clock;
mod crowds;
pub mod damage;
pub mod disk;
mod downstream;
mod forged;
mod kills;
mod large;
mod middle;
mod schema;
mod start;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use crate::support::iris::Iris;
use crate::support::spans::{agent_run, request, trace_hex};

/// Spans of a run.
pub const SPANS: u64 = 3;
/// No test waits longer for what must happen.
pub const SOON: Duration = Duration::from_secs(120);

/// Whether the long form was asked for.
pub fn is_long() -> bool {
    std::env::var("IRIS_FAULTS").is_ok_and(|form| form == "long")
}

/// A row of numbers that is the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }
}

pub async fn open(iris: &Iris) -> Value {
    iris.until("ops", "/readyz?full", SOON, |state| state["store"]["state"] == "open").await
}

/// A request of one run.
pub fn run(number: u64) -> Bytes {
    request(agent_run(number, SPANS, "It is 18 C."))
}

pub async fn put(iris: &Iris, number: u64) -> u16 {
    iris.post("traces", "application/x-protobuf", run(number)).await.map_or(0, |(status, _)| status)
}

/// Every one of these is stored whole, once, and judged.
pub async fn all_there(iris: &Iris, numbers: impl IntoIterator<Item = u64>, what: &str) {
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

/// The same of very many, up to the thousand rows of one answer; for a sidecar that offers `query_sql`.
pub async fn all_counted(iris: &Iris, numbers: &[u64], what: &str) {
    let wanted: BTreeMap<String, u64> = numbers.iter().map(|number| (trace_hex(*number), SPANS)).collect();
    assert!(wanted.len() < 1000, "{} are too many for one answer", wanted.len());
    let counted = async |sql: &str| -> Option<BTreeMap<String, u64>> {
        let (status, found) = iris.tool("query_sql", &serde_json::json!({ "sql": sql, "limit": 1000 })).await;
        let rows = found["rows"].as_array().filter(|_| status == 200)?;
        rows.iter().map(|row| Some((row[0].as_str()?.to_owned(), row[1].as_u64()?))).collect()
    };
    let deadline = std::time::Instant::now() + SOON;
    loop {
        let spans = counted("SELECT trace_id, count(*) FROM spans GROUP BY 1").await.unwrap_or_default();
        let judged = counted("SELECT trace_id, count(*) FROM evaluations GROUP BY 1").await.unwrap_or_default();
        let short = wanted.iter().find(|(id, count)| spans.get(*id) != Some(count) || judged.get(*id) != Some(&1));
        let Some((id, _)) = short else { return };
        let (spans, judged) = (spans.get(id), judged.get(id));
        assert!(spans.is_none_or(|count| *count <= SPANS), "{what}: {id} has {spans:?} spans: some are there twice");
        assert!(
            std::time::Instant::now() < deadline,
            "{what}: {id} has {spans:?} spans and {judged:?} evaluations\n{}",
            iris.log()
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

pub fn settings(endpoint: &str) -> Vec<(&'static str, String)> {
    [
        ("IRIS__ASSEMBLY__QUIET_MS", "200"),
        ("IRIS__ASSEMBLY__SETTLE_MS", "200"),
        ("IRIS__FORWARD__ENDPOINT", endpoint),
        ("IRIS__FORWARD__PROTOCOL", "http"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .to_vec()
}

pub fn prepared(endpoint: &str) -> Iris {
    let settings = settings(endpoint);
    let borrowed: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    Iris::prepared(&borrowed)
}
