//! The journal on a disk that forgets, fails, fills up and waits, and on the real one.

mod bench;
mod crash;
mod damage;
mod flow;
mod forgetful;
mod real;
mod rid;
mod slow;

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use iris_core::model::{Lane, Tenant, Timestamp};

use super::*;
use forgetful::ForgetfulDisk;

const HOME: &str = "/home";
/// No test waits longer for what must happen.
const DEADLINE: Duration = Duration::from_secs(20);

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap()
}

fn config(bytes_max: u64) -> Config {
    Config { bytes_max, ..Config::default() }
}

fn open(disk: &Arc<ForgetfulDisk>, config: &Config, forwarding: bool) -> (Journal, Recovered) {
    Journal::open(Path::new(HOME), config, forwarding, disk.boot()).unwrap()
}

fn record(body: impl Into<Bytes>) -> Record {
    Record {
        kind: Kind::Otlp,
        tenant: Tenant::new("team-a"),
        door: Door::Grpc,
        encoding: Encoding::Protobuf,
        arrived: Timestamp::from_unix_nanos(1_764_554_400_000_000_000),
        body: body.into(),
    }
}

/// Everything a follower can read now.
fn read_all(journal: &Journal, lane: Lane, who: Follower, after: u64) -> Vec<Read> {
    let mut reader = journal.reader(lane, who, after);
    std::iter::from_fn(|| reader.try_next()).take_while(|read| *read != Read::Closed).collect()
}

fn entries(journal: &Journal, lane: Lane) -> Vec<Entry> {
    read_all(journal, lane, Follower::Store, 0)
        .into_iter()
        .map(|read| match read {
            Read::Entry(entry) => entry,
            other => panic!("{other:?}"),
        })
        .collect()
}

fn bodies(journal: &Journal, lane: Lane) -> Vec<Bytes> {
    entries(journal, lane).into_iter().map(|entry| entry.record.body).collect()
}

fn status(journal: &Journal, lane: Lane) -> LaneStatus {
    journal.status().into_iter().find(|status| status.lane == lane).unwrap()
}

async fn within<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, wait).await.expect("it happens within the deadline")
}

/// Looks again and again until it holds.
async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + DEADLINE;
    while !holds() {
        assert!(std::time::Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
