//! The point of acknowledgement: an append-only, checksummed, segmented log on disk, one lane a signal.
//!
//! Owns `home/journal/`: segments, cursors and the key of message hashes. Everything the sidecar answers "yes" to
//! is a record here first, and [`Journal::append`] returns only when a sync covers it; requests that come while a
//! sync runs share the next one. Two followers read each lane with a [`Reader`]: the store and the forwarder.
//! A segment is deleted when both are past it; [`Journal::rid`] takes single records out of it before. The lanes share nothing but the counter of sequence numbers, so
//! no signal blocks or evicts another.
//!
//! Never looks into a message, never deduplicates, never talks to the network, keeps no body after its sync.
//! Data enters through [`Journal::append`] and leaves through [`Reader::next`].

mod appender;
mod disk;
mod files;
mod frame;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzed;
mod keeper;
mod lane;
mod reader;
mod recover;
mod rid;
mod scan;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use iris_core::model::{Lane, Tenant, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use appender::{Appender, Command, Job, QUEUE_RECORDS_MAX};
pub use disk::{Disk, DiskFile, RealDisk};
use files::Cursors;
use frame::Key;
use keeper::{Housekeeping, Keeper};
use lane::{LaneShared, Limits};
pub use reader::Reader;
pub use recover::{Damage, DamageKind, RECENT_HASHES_MAX, Recovered};
pub use rid::{Asked, Rid};

/// Segments are this long unless the lane is small or a record is longer.
const SEGMENT_BYTES: u64 = 8 * 1024 * 1024;
/// A lane is cut into at least so many segments, so that deletion has something to delete.
const SEGMENTS_MIN: u64 = 8;
/// With less the metrics lane could not hold a usual request.
const BYTES_MIN: u64 = 1024 * 1024;
/// The longest time between two syncs, in milliseconds: housekeeping, which syncs, comes round at least so often.
const SYNC_INTERVAL_MAX_MS: u64 = 1000;
/// A start jumps over so many sequence numbers, in case the newest ones were lost with what carried them.
const SEQ_JUMP: u64 = 1 << 20;

/// The journal's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Bytes on disk for everything accepted and not yet both stored and forwarded: 70 % for traces, 20 % for
    /// logs, 10 % for metrics. At least 1 MiB.
    pub bytes_max: u64,
    /// When accepted bytes are forced to disk: `always` before the sender is answered (survives a power cut);
    /// `interval` within `sync_interval_ms` (a power cut loses at most that); `off` when the kernel likes.
    /// All three survive a killed process. On an emptyDir nothing survives the pod, so there `always` buys
    /// safety only from a crash of the node's kernel.
    pub sync: Sync,
    /// Between two syncs with `sync: interval`, in milliseconds, 1 to 1000.
    pub sync_interval_ms: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { bytes_max: 512 * 1024 * 1024, sync: Sync::Always, sync_interval_ms: 1000 }
    }
}

impl Config {
    /// What could not work, a line a problem.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.bytes_max < BYTES_MIN {
            problems.push(Error::TooSmall(self.bytes_max).to_string());
        }
        if !(1..=SYNC_INTERVAL_MAX_MS).contains(&self.sync_interval_ms) {
            problems.push(format!(
                "journal.sync_interval_ms is {} ms: valid is 1 to {SYNC_INTERVAL_MAX_MS} ms, because a power cut loses as much",
                self.sync_interval_ms
            ));
        }
        problems
    }

    fn limits(&self, lane: Lane, forwarding: bool) -> Limits {
        let percent = match lane {
            Lane::Traces => 70,
            Lane::Logs => 20,
            Lane::Metrics => 10,
        };
        let bytes_max = self.bytes_max / 100 * percent;
        Limits { bytes_max, segment_bytes: (bytes_max / SEGMENTS_MIN).min(SEGMENT_BYTES), forwarding }
    }
}

/// When accepted bytes are forced to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sync {
    /// Before the sender is answered.
    #[default]
    Always,
    /// At regular times.
    Interval,
    /// Never; the kernel writes when it likes.
    Off,
}

macro_rules! byte_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$item_doc:meta])* $item:ident = $byte:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$item_doc])* $item = $byte,)* }

        impl $name {
            fn from_byte(byte: u8) -> Option<Self> {
                match byte {
                    $($byte => Some(Self::$item),)*
                    _ => None,
                }
            }
        }
    };
}

byte_enum! {
    /// What a record is. The numbers are on disk and never change their meaning.
    Kind {
        /// An OTLP request as accepted.
        Otlp = 1,
        /// A trace logged by a tool.
        ToolTrace = 2,
        /// An evaluation made by a tool.
        ToolEvaluation = 3,
        /// A deletion.
        Tombstone = 4,
        /// A verdict to be forwarded as log records.
        Verdict = 5,
        /// What is left of a record that was deleted: its place.
        Erased = 6,
    }
}

byte_enum! {
    /// Which way a record came. The numbers are on disk and never change their meaning.
    Door {
        /// OTLP/gRPC.
        Grpc = 1,
        /// OTLP/HTTP.
        Http = 2,
        /// A tool call.
        Tool = 3,
        /// Made by the sidecar itself.
        Sidecar = 4,
    }
}

byte_enum! {
    /// How a record's body is written. The numbers are on disk and never change their meaning.
    Encoding {
        /// Protobuf.
        Protobuf = 1,
        /// JSON.
        Json = 2,
    }
}

/// What is journalled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What it is.
    pub kind: Kind,
    /// Whose; at most 1,024 bytes.
    pub tenant: Tenant,
    /// Which way it came.
    pub door: Door,
    /// How the body is written.
    pub encoding: Encoding,
    /// When it arrived.
    pub arrived: Timestamp,
    /// The message, after content decoding.
    pub body: Bytes,
}

/// A record as read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its place: rising within a lane, unique over all lanes, never used again.
    pub seq: u64,
    /// The record as appended.
    pub record: Record,
    /// [`Journal::hash`] of it.
    pub body_hash: u128,
}

/// Who reads a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Follower {
    /// The way to DuckDB. It follows traces and logs; metrics are only forwarded.
    Store,
    /// The way downstream.
    Forward,
}

/// What a reader gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// The next record.
    Entry(Entry),
    /// Records that were dropped for the forwarder because it was too far behind. Not every seq in between was a
    /// record of this lane.
    Gap {
        /// The first seq that may be lost.
        first: u64,
        /// The last.
        last: u64,
    },
    /// The journal is closed and everything was read.
    Closed,
}

/// Why a record was not taken. Nothing of it will be read after any of these, unless the disk failed so that its
/// bytes could not be cut off again: then it may come back after a restart.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The store is too far behind to give room back.
    #[error("the journal is full until the store has caught up, retry in {} ms", retry_after.as_millis())]
    Full {
        /// When to try again.
        retry_after: Duration,
    },
    /// The disk refused, is full, or failed.
    #[error("the journal cannot be written: {0}")]
    Disk(#[source] io::Error),
    /// It could never fit.
    #[error("a record of {bytes} bytes does not fit in a lane of {bytes_max} bytes")]
    TooLarge {
        /// What it would take.
        bytes: u64,
        /// What the lane has.
        bytes_max: u64,
    },
    /// The journal is closed.
    #[error("the journal is closed")]
    Closed,
}

/// Why the journal cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The setting is out of range.
    #[error("journal.bytes_max is {0} bytes, at least {BYTES_MIN} are needed")]
    TooSmall(u64),
    /// The disk failed.
    #[error("cannot open the journal: {0}")]
    Disk(#[from] io::Error),
}

/// How a lane stands. Counters are since the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneStatus {
    /// Which lane.
    pub lane: Lane,
    /// Bytes on disk, reserved ones included.
    pub bytes: u64,
    /// Its share of `journal.bytes_max`.
    pub bytes_max: u64,
    /// Files.
    pub segments: usize,
    /// Nothing before this seq is there any more.
    pub first: u64,
    /// The highest seq acknowledged.
    pub acknowledged: u64,
    /// What the store reported last.
    pub stored: u64,
    /// What the forwarder is past.
    pub forwarded: u64,
    /// Records acknowledged.
    pub records: u64,
    /// Syncs that records waited for.
    pub syncs: u64,
    /// Failed writes, syncs and creations.
    pub failures: u64,
    /// Records refused because the lane was full.
    pub refused_full: u64,
    /// How long ago an append failed or found the lane full, in milliseconds; `None` once one was taken.
    pub refusing_ms: Option<u64>,
    /// Damaged places found, those at the start included.
    pub damaged: u64,
    /// Records dropped for the forwarder.
    pub dropped_records: u64,
    /// Segments dropped for the forwarder.
    pub dropped_segments: u64,
    /// Records in the segments that the forwarder is not past the end of: at least what it has to send.
    pub unforwarded_records: u64,
    /// Bytes of those.
    pub unforwarded_bytes: u64,
    /// Bytes of the segments that the store has not reported wholly stored; 0 of a lane that it does not follow.
    pub unstored_bytes: u64,
}

/// The handle; clones share one journal. Dropping the last clone ends its threads without waiting for them.
#[derive(Clone)]
pub struct Journal {
    inner: Arc<Inner>,
}

struct Inner {
    lanes: [LaneHandle; 3],
    key: Arc<Key>,
    keeper: Arc<Keeper>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct LaneHandle {
    shared: Arc<LaneShared>,
    commands: mpsc::Sender<Command>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.keeper.close();
    }
}

impl Journal {
    /// Opens or makes `home/journal`, reads what is there, and starts one thread a lane and a housekeeper.
    /// With `forwarding` false the forwarder holds nothing back. Blocks; the caller holds the lock on `home`.
    pub fn open(
        home: &Path,
        config: &Config,
        forwarding: bool,
        disk: Arc<dyn Disk>,
    ) -> Result<(Self, Recovered), Error> {
        if config.bytes_max < BYTES_MIN {
            return Err(Error::TooSmall(config.bytes_max));
        }
        let dir = home.join("journal");
        disk.make_dir(&dir)?;
        disk.sync_dir(home)?;
        let (key, key_is_new) = Key::load(&*disk, &dir)?;
        let key = Arc::new(key);
        let cursors = Cursors::read(&*disk, &dir)?.unwrap_or_default();
        let shared = Lane::ALL.map(|lane| {
            let limits = config.limits(lane, forwarding);
            Arc::new(LaneShared::new(lane, dir.join(lane.as_str()), limits, disk.clone(), key.clone()))
        });
        let mut recovered = Recovered::default();
        let mut recent = Vec::new();
        let mut highest = cursors.highest();
        for lane in &shared {
            let found = recover::recover(lane, cursors.get(lane.lane))?;
            highest = highest.max(found.last);
            recovered.records += found.records;
            recovered.unknown += found.unknown;
            recovered.damaged += found.damaged;
            recovered.damage.extend(found.damage);
            recent.extend(found.recent);
        }
        disk.sync_dir(&dir)?;
        recovered.key_renewed = key_is_new && highest > 0;
        if !recovered.key_renewed {
            recent.sort_unstable_by_key(|(seq, _)| *seq);
            let skip = recent.len().saturating_sub(RECENT_HASHES_MAX);
            recovered.recent = recent.into_iter().skip(skip).map(|(_, hash)| hash).collect();
        }
        recovered.next_seq = next_seq(highest);
        let seqs = Arc::new(AtomicU64::new(recovered.next_seq));
        let period = match config.sync {
            Sync::Interval => Duration::from_millis(config.sync_interval_ms.max(1)),
            Sync::Always | Sync::Off => Duration::from_secs(1),
        };
        let keeper = Arc::new(Keeper::default());
        let lanes = shared.to_vec();
        let housekeeping = Housekeeping { keeper: keeper.clone(), lanes, disk, dir, period, written: cursors };
        let mut threads = vec![spawn("journal-keeper", move || housekeeping.run())?];
        let mut handles = Vec::with_capacity(shared.len());
        for shared in shared {
            let (commands, receiver) = mpsc::channel(QUEUE_RECORDS_MAX);
            let appender = Appender::new(shared.clone(), keeper.clone(), seqs.clone(), config.sync, receiver);
            threads.push(spawn(&format!("journal-{}", shared.lane.as_str()), move || appender.run())?);
            handles.push(LaneHandle { shared, commands });
        }
        let lanes = handles.try_into().map_err(|_| io::Error::other("not three lanes"))?;
        let inner = Inner { lanes, key, keeper, threads: Mutex::new(threads) };
        Ok((Self { inner: Arc::new(inner) }, recovered))
    }

    /// Makes a record durable and returns its seq. Returns only after the sync that covers it (with `sync: always`),
    /// or with an error after which the record counts as never sent. Giving up the wait takes nothing back.
    pub async fn append(&self, lane: Lane, record: Record) -> Result<u64, AppendError> {
        let hash = self.hash(&record.tenant, lane, &record.body);
        self.append_hashed(lane, record, hash).await
    }

    /// [`append`](Self::append) for a caller that has the record's [`hash`](Self::hash) already.
    pub async fn append_hashed(&self, lane: Lane, record: Record, hash: u128) -> Result<u64, AppendError> {
        let (reply, answer) = oneshot::channel();
        let job = self.job(lane, record, hash, Some(reply))?;
        let sent = self.lane(lane).commands.send(Command::Append(job)).await;
        sent.map_err(|_| AppendError::Closed)?;
        answer.await.unwrap_or(Err(AppendError::Closed))
    }

    /// Hands a record over without waiting for anything; false when the lane has no room in its queue, is closed,
    /// or the record is too large. Whether it becomes durable is not said.
    pub fn offer(&self, lane: Lane, record: Record) -> bool {
        let hash = self.hash(&record.tenant, lane, &record.body);
        let Ok(job) = self.job(lane, record, hash, None) else { return false };
        self.lane(lane).commands.try_send(Command::Append(job)).is_ok()
    }

    /// A secret of this home's own for another purpose, drawn from the key of message hashes: the same after every start.
    pub fn secret(&self, purpose: &str) -> [u8; 32] {
        use sha2::{Digest, Sha256};
        let mut hash = Sha256::new();
        hash.update((purpose.len() as u64).to_le_bytes());
        hash.update(purpose);
        hash.update(self.inner.key.0);
        hash.finalize().into()
    }

    /// The keyed 128-bit hash of a message by which a resend is known, over tenant, signal and message. The key is
    /// made once a home.
    pub fn hash(&self, tenant: &Tenant, lane: Lane, body: &[u8]) -> u128 {
        self.inner.key.hash(tenant.as_str(), lane, body)
    }

    /// A follower's reader: every acknowledged record with a seq above `after`, in order, as it comes.
    pub fn reader(&self, lane: Lane, who: Follower, after: u64) -> Reader {
        Reader::new(self.lane(lane).shared.clone(), who, after)
    }

    /// The store has everything up to here in a completed checkpoint. Never moves back.
    pub fn stored(&self, lane: Lane, through: u64) {
        let mut state = self.lane(lane).shared.state();
        state.stored = state.stored.max(through);
        drop(state);
        self.inner.keeper.touch();
    }

    /// The forwarder is past everything up to here. Never moves back; on disk within a second and at close.
    pub fn forwarded(&self, lane: Lane, through: u64) {
        let mut state = self.lane(lane).shared.state();
        state.forwarded = state.forwarded.max(through);
        drop(state);
        self.inner.keeper.touch();
    }

    /// Where the forwarder goes on.
    pub fn forward_cursor(&self, lane: Lane) -> u64 {
        self.lane(lane).shared.state().forwarded
    }

    /// Ends the lane's open segment, so that what is in it is deleted as soon as both followers are past it.
    pub async fn rotate(&self, lane: Lane) {
        let (reply, done) = oneshot::channel();
        if self.lane(lane).commands.send(Command::Rotate(reply)).await.is_ok() {
            // An error means closed, which ends the segment too.
            let _ = done.await;
        }
    }

    /// How the lanes stand.
    pub fn status(&self) -> Vec<LaneStatus> {
        self.inner.lanes.iter().map(|lane| lane.shared.status()).collect()
    }

    /// Takes nothing more, finishes what waits, writes the cursors, ends the threads. Readers then give what is left
    /// and `Closed`. A second call does nothing.
    pub async fn close(&self) {
        for lane in &self.inner.lanes {
            // An error means that it is closed.
            let _ = lane.commands.send(Command::Close).await;
        }
        let threads = std::mem::take(&mut *self.inner.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let keeper = self.inner.keeper.clone();
        let joined = tokio::task::spawn_blocking(move || {
            let mut threads = threads.into_iter();
            let housekeeping = threads.next();
            threads.for_each(join);
            keeper.close();
            housekeeping.into_iter().for_each(join);
        });
        if let Err(error) = joined.await {
            tracing::error!(%error, "the journal did not close in order");
        }
    }

    fn lane(&self, lane: Lane) -> &LaneHandle {
        &self.inner.lanes[lane as usize]
    }

    fn job(&self, lane: Lane, record: Record, hash: u128, reply: Option<Reply>) -> Result<Job, AppendError> {
        let bytes_max = self.lane(lane).shared.bytes_max;
        let bytes = frame::OPENING_BYTES + frame::stride(record.tenant.as_str(), record.body.len());
        let tenant_fits = record.tenant.as_str().len() <= frame::TENANT_BYTES_MAX;
        if bytes > bytes_max || !tenant_fits || u32::try_from(record.body.len()).is_err() {
            return Err(AppendError::TooLarge { bytes, bytes_max });
        }
        let checksum = crc32fast::hash(&record.body);
        Ok(Job { record, hash, checksum, reply })
    }
}

type Reply = oneshot::Sender<Result<u64, AppendError>>;

impl LaneShared {
    fn status(&self) -> LaneStatus {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let bytes = self.bytes();
        let acknowledged = self.visible.borrow().seq;
        let state = self.state();
        let unforwarded = || {
            let behind = |segment: &&Arc<lane::Segment>| self.forwarding && segment.last() > state.forwarded;
            state.segments.iter().filter(behind)
        };
        LaneStatus {
            lane: self.lane,
            bytes,
            bytes_max: self.bytes_max,
            segments: state.segments.len(),
            first: state.segments.front().map_or(acknowledged.saturating_add(1), |segment| segment.first),
            acknowledged,
            stored: state.stored,
            forwarded: state.forwarded,
            records: read(&self.counters.records),
            syncs: read(&self.counters.syncs),
            failures: read(&self.counters.failures),
            refused_full: read(&self.counters.refused_full),
            refusing_ms: self.refusing_ms(),
            damaged: read(&self.counters.damaged),
            dropped_records: read(&self.counters.dropped_records),
            dropped_segments: read(&self.counters.dropped_segments),
            unforwarded_records: unforwarded().map(|segment| read(&segment.records)).sum(),
            unforwarded_bytes: unforwarded().map(|segment| segment.end()).sum(),
            unstored_bytes: state
                .segments
                .iter()
                .filter(|segment| self.lane != Lane::Metrics && segment.last() > state.stored)
                .map(|segment| segment.end())
                .sum(),
        }
    }
}

/// Above everything seen. Seconds of the clock times a million are above everything a journal ever gave out, as
/// long as it takes fewer than a million records a second: so positions stay unique even when the newest records,
/// or the whole journal, were lost and the store still knows them.
fn next_seq(highest: u64) -> u64 {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    highest.saturating_add(SEQ_JUMP).max(seconds.saturating_mul(SEQ_JUMP))
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(work)
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("a thread of the journal ended by a panic");
    }
}
