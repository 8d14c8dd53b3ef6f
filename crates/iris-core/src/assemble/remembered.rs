//! Traces that were let go, so that a late span is known to be one.

use std::collections::{HashMap, VecDeque};

use super::forgotten::Forgotten;
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
    /// Those the store has that are not among `known` any more.
    forgotten: Forgotten,
    /// With when each was last let go.
    known: HashMap<u64, (Remembered, Timestamp)>,
    /// Oldest first; a trace let go again since it was put here goes to the end when its turn comes.
    order: VecDeque<(u64, Timestamp)>,
}

impl Ring {
    pub(super) fn new(max: usize, forgotten: Forgotten) -> Self {
        Self { max, forgotten, known: HashMap::new(), order: VecDeque::new() }
    }

    pub(super) fn get(&self, key: &RowKey) -> Option<Remembered> {
        self.known.get(&self.forgotten.hash(key)).map(|(past, _)| *past)
    }

    /// Whether the trace may be one that was remembered once, and that the store has.
    pub(super) fn may_have_forgotten(&self, key: &RowKey) -> bool {
        self.forgotten.may_contain(key)
    }

    /// Remembers a trace let go at `time`; the one let go longest ago is forgotten for it.
    pub(super) fn insert(&mut self, key: &RowKey, past: Remembered, time: Timestamp) {
        let hash = self.forgotten.hash(key);
        if self.known.insert(hash, (past, time)).is_none() {
            self.order.push_back((hash, time));
        }
        // Each turn puts one entry right, so that the second round at the latest finds one that is.
        for _ in 0..=self.order.len() {
            if self.order.len() <= self.max {
                return;
            }
            let Some((oldest, queued)) = self.order.pop_front() else { return };
            match self.known.get(&oldest) {
                Some((_, last)) if *last > queued => self.order.push_back((oldest, *last)),
                _ => return self.forget(oldest),
            }
        }
    }

    fn forget(&mut self, hash: u64) {
        let stored = self.known.remove(&hash).is_some_and(|(past, _)| !past.dropped);
        if stored {
            self.forgotten.insert_hash(hash);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}
