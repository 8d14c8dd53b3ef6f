//! What the pipeline tells the rest of the process.

use iris_core::assemble::{Counts, Settled};
use iris_core::model::{Lane, Timestamp};
use serde::Serialize;

/// At most so many are named; all are counted.
pub(super) const NAMED_MAX: usize = 64;

/// How far the pipeline is. Counters are since the start.
#[derive(Debug, Clone, Default)]
pub struct PipelineStatus {
    /// Open, undecided, settled, dropped.
    pub traces: Counts,
    /// How far each lane is read.
    pub lanes: Vec<LaneLag>,
    /// Every stored row up to there is covered by an evaluation that was sent to the store.
    pub settled_through: Settled,
    /// Traces judged.
    pub judged: u64,
    /// What was said of them.
    pub said: super::Said,
    /// Traces being judged.
    pub judging: usize,
    /// Writes that wait for the store's queue.
    pub outbox: usize,
    /// Rows handed to the store.
    pub rows: u64,
    /// Rows with content that no dialect could read, by the dialect that came closest.
    pub unmapped: std::collections::BTreeMap<&'static str, u64>,
    /// Loads that the store did not answer.
    pub load_failures: u64,
    /// Panics caught in decoding, judging and questions.
    pub panics: u64,
    /// Records and traces set aside.
    pub poisoned: u64,
    /// The first of them.
    pub set_aside: Vec<SetAside>,
    /// The owner ended without being asked to; nothing is read any more.
    pub failed: bool,
}

/// How far one lane is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LaneLag {
    /// Which.
    pub lane: Lane,
    /// The last record taken.
    pub read_through: u64,
    /// Records taken since the start.
    pub records: u64,
    /// When the last record taken had arrived.
    pub arrived: Timestamp,
    /// Acknowledged records not yet taken. While what was there at the start is replayed it is not known how
    /// many of those are left, and they are not in it.
    pub lag: u64,
    /// Records from before the start are still to be taken.
    pub replaying: bool,
}

/// A record or trace that is not looked at again: it stays in the journal for the forwarder, or in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SetAside {
    /// A journal record.
    Record {
        /// Its lane.
        lane: Lane,
        /// Its sequence number.
        seq: u64,
        /// Why: never a word of its content.
        why: String,
    },
    /// A trace that could not be judged.
    Trace {
        /// Its id.
        trace_id: String,
        /// Why.
        why: String,
    },
}
