//! Traces that were let go, so that a late span is known to be one.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};

use crate::model::{RowKey, Timestamp};

/// What is remembered of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Remembered {
    /// Its last version.
    pub(super) version: u32,
    /// How many different rows it had.
    pub(super) rows: u32,
    /// Whether it had an agentic row.
    pub(super) agentic: bool,
    /// Its rows were dropped, not stored.
    pub(super) dropped: bool,
}

/// The last so many traces let go. Keys are hashed with a random seed: two that collide cost a load that finds
/// nothing, never a wrong answer.
#[derive(Debug)]
pub(super) struct Ring {
    max: usize,
    hasher: RandomState,
    known: HashMap<u64, Remembered>,
    order: VecDeque<(u64, Timestamp)>,
}

impl Ring {
    pub(super) fn new(max: usize) -> Self {
        Self { max, hasher: RandomState::new(), known: HashMap::new(), order: VecDeque::new() }
    }

    pub(super) fn get(&self, key: &RowKey) -> Option<Remembered> {
        self.known.get(&self.hasher.hash_one(key)).copied()
    }

    /// Remembers a trace let go at `time`. Returns when the one forgotten for it was let go.
    pub(super) fn insert(&mut self, key: &RowKey, past: Remembered, time: Timestamp) -> Option<Timestamp> {
        let hash = self.hasher.hash_one(key);
        if self.known.insert(hash, past).is_none() {
            self.order.push_back((hash, time));
        }
        if self.order.len() <= self.max {
            return None;
        }
        let (oldest, time) = self.order.pop_front()?;
        self.known.remove(&oldest).map(|_| time)
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}
