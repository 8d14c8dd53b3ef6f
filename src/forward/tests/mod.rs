//! The forwarder against a real OTLP server on loopback that records what it takes and can misbehave.

mod answers;
mod delivery;
mod faults;

#[path = "../../../tests/it/support/collector.rs"]
mod collector;

use iris_core::model::{RowKey, Tenant, Timestamp};
use tonic::Code;

use self::collector::{Collector, Mood};
use super::*;
use crate::journal::{self, Door, Encoding, Kind};

const PROTOCOLS: [Protocol; 2] = [Protocol::Grpc, Protocol::Http];

/// A journal in a directory of its own, which goes with the second value.
fn journal() -> (Journal, tempfile::TempDir) {
    let home = tempfile::tempdir().unwrap();
    (open(home.path()), home)
}

fn open(home: &std::path::Path) -> Journal {
    let config = journal::Config { sync: journal::Sync::Off, ..journal::Config::default() };
    Journal::open(home, &config, true, Arc::new(journal::RealDisk)).unwrap().0
}

fn config(collector: &Collector, protocol: Protocol) -> Config {
    Config {
        endpoint: Some(collector.endpoint()),
        protocol,
        retry_initial_ms: 20,
        retry_max_ms: 100,
        timeout_ms: 2_000,
        ..Config::default()
    }
}

fn forward(journal: &Journal, config: &Config) -> Forwarder {
    let target = Target::new(config, Origin::Configured, &[]).unwrap().unwrap();
    start(journal, &target, None, &Deletions::default(), &CancellationToken::new()).unwrap()
}

async fn put(journal: &Journal, lane: Lane, kind: Kind, encoding: Encoding, body: impl Into<Bytes>) -> u64 {
    let record = Record {
        kind,
        tenant: Tenant::local(),
        door: Door::Http,
        encoding,
        arrived: Timestamp::from_unix_nanos(1),
        body: body.into(),
    };
    journal.append(lane, record).await.unwrap()
}

/// Bytes that are no valid OTLP and sort by number: whoever decoded them would fail.
fn body(number: usize) -> Bytes {
    Bytes::from(format!("\u{0}\u{7f}{number:06} not to be touched"))
}

async fn put_numbered(journal: &Journal, lane: Lane, numbers: std::ops::Range<usize>) -> u64 {
    let mut last = 0;
    for number in numbers {
        last = put(journal, lane, Kind::Otlp, Encoding::Protobuf, body(number)).await;
    }
    last
}

fn numbered(numbers: std::ops::Range<usize>) -> Vec<Bytes> {
    numbers.map(body).collect()
}

fn standing(forwarder: &Forwarder, lane: Lane) -> ForwardStatus {
    forwarder.lanes().status().into_iter().find(|status| status.lane == lane).unwrap()
}

/// Waits until a lane's standing is as wanted.
async fn until(forwarder: &Forwarder, lane: Lane, wanted: impl Fn(&ForwardStatus) -> bool) -> ForwardStatus {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let status = standing(forwarder, lane);
        if wanted(&status) {
            return status;
        }
        assert!(Instant::now() < deadline, "not within 30 s: {status:?}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
