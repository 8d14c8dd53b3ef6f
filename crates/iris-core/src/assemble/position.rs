//! `settled_through`: the lowest position that is not covered, kept as a multiset of what traces hold.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::{Lane, Position};

/// Per lane, a sequence number up to which something holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Settled {
    /// In the traces lane.
    pub traces: u64,
    /// In the logs lane.
    pub logs: u64,
}

/// The lowest sequence number a trace holds, in the traces lane and in the logs lane.
pub(super) type Low = [Option<u64>; 2];

/// Adds a position to what a trace holds.
pub(super) fn lower(low: &mut Low, position: Position) {
    let slot = match position.lane {
        Lane::Traces => low.first_mut(),
        Lane::Logs => low.last_mut(),
        Lane::Metrics => None,
    };
    if let Some(slot) = slot {
        *slot = Some(slot.map_or(position.seq, |seq| seq.min(position.seq)));
    }
}

#[derive(Debug)]
struct LanePosition {
    pushed: u64,
    held: BTreeMap<u64, u32>,
}

impl LanePosition {
    fn settled(&self) -> u64 {
        self.held.first_key_value().map_or(self.pushed, |(seq, _)| seq.saturating_sub(1).min(self.pushed))
    }

    fn hold(&mut self, seq: Option<u64>) {
        if let Some(seq) = seq {
            *self.held.entry(seq).or_insert(0) += 1;
        }
    }

    fn release(&mut self, seq: Option<u64>) {
        let Some(seq) = seq else { return };
        if let Some(count) = self.held.get_mut(&seq) {
            *count -= 1;
            if *count == 0 {
                self.held.remove(&seq);
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Positions {
    traces: LanePosition,
    logs: LanePosition,
}

impl Positions {
    pub(super) fn new(pushed: Settled) -> Self {
        let lane = |pushed| LanePosition { pushed, held: BTreeMap::new() };
        Self { traces: lane(pushed.traces), logs: lane(pushed.logs) }
    }

    pub(super) fn pushed(&mut self, lane: Lane, seq: u64) {
        match lane {
            Lane::Traces => self.traces.pushed = self.traces.pushed.max(seq),
            Lane::Logs => self.logs.pushed = self.logs.pushed.max(seq),
            Lane::Metrics => {}
        }
    }

    pub(super) fn hold(&mut self, low: Low) {
        let [traces, logs] = low;
        self.traces.hold(traces);
        self.logs.hold(logs);
    }

    /// A trace held `from` and now holds `to`.
    pub(super) fn move_hold(&mut self, from: Low, to: Low) {
        if from == to {
            return;
        }
        self.hold(to);
        let [traces, logs] = from;
        self.traces.release(traces);
        self.logs.release(logs);
    }

    pub(super) fn settled(&self) -> Settled {
        Settled { traces: self.traces.settled(), logs: self.logs.settled() }
    }
}
