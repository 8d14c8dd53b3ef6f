//! Which journal records are wholly stored: the end of the longest unbroken run in each lane.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use iris_core::model::{Lane, Position};
use serde::{Deserialize, Serialize};

/// One sequence number a lane; everything up to and including it is meant. 0 is before the first record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Through {
    /// Of the traces lane.
    pub traces: u64,
    /// Of the logs lane.
    pub logs: u64,
    /// Of the metrics lane.
    pub metrics: u64,
}

/// A lane's settled position has the same shape as its stored one.
pub type Settled = Through;

impl Through {
    /// The sequence number of a lane.
    pub const fn of(&self, lane: Lane) -> u64 {
        match lane {
            Lane::Traces => self.traces,
            Lane::Logs => self.logs,
            Lane::Metrics => self.metrics,
        }
    }

    /// The sequence number of a lane, to be changed.
    pub const fn of_mut(&mut self, lane: Lane) -> &mut u64 {
        match lane {
            Lane::Traces => &mut self.traces,
            Lane::Logs => &mut self.logs,
            Lane::Metrics => &mut self.metrics,
        }
    }

    /// Whether it is as far as another in every lane.
    pub const fn covers(self, other: Self) -> bool {
        self.traces >= other.traces && self.logs >= other.logs && self.metrics >= other.metrics
    }

    /// The larger of both, lane by lane: a position never goes back.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            traces: self.traces.max(other.traces),
            logs: self.logs.max(other.logs),
            metrics: self.metrics.max(other.metrics),
        }
    }
}

/// How many rows of which records a transaction completes.
#[derive(Debug, Clone, Default)]
pub(super) struct Done(HashMap<(Lane, u64), u32>);

impl Done {
    pub fn add(&mut self, lane: Lane, seq: u64, rows: u32) {
        *self.0.entry((lane, seq)).or_default() += rows;
    }

    pub fn row(&mut self, position: Position) {
        self.add(position.lane, position.seq, 1);
    }

    fn of(&self, lane: Lane, seq: u64) -> u32 {
        self.0.get(&(lane, seq)).copied().unwrap_or_default()
    }
}

/// One record that was announced and is not yet part of the run.
#[derive(Debug)]
struct Open {
    seq: u64,
    rows: u32,
}

#[derive(Debug, Default)]
struct LaneRun {
    /// Announced records beyond the run, in lane order.
    open: VecDeque<Open>,
    /// Rows of them that are durable or dropped. A row may overtake the announcement of its record.
    completed: BTreeMap<u64, u32>,
}

/// Follows every record from its announcement to the transaction that makes its last row durable.
#[derive(Debug, Default)]
pub(super) struct Tracker {
    lanes: [LaneRun; 3],
    through: Through,
    /// Tool records stored already, beyond the run.
    tools: HashSet<Position>,
}

impl Tracker {
    pub fn new(through: Through, tools: impl IntoIterator<Item = Position>) -> Self {
        Self { through, tools: tools.into_iter().collect(), ..Self::default() }
    }

    /// The run's end as the last transaction left it.
    pub const fn through(&self) -> Through {
        self.through
    }

    /// The newest record of a lane that was announced, or that the run holds.
    pub fn newest(&self, lane: Lane) -> u64 {
        self.lanes[index(lane)].open.back().map_or(self.through.of(lane), |open| open.seq)
    }

    /// A record was read from the journal. Called in lane order; a record at or below the run is known.
    pub fn announce(&mut self, lane: Lane, seq: u64, rows: u32) {
        if seq > self.newest(lane) {
            self.lanes[index(lane)].open.push_back(Open { seq, rows });
        }
    }

    /// Whether a tool record is in a committed transaction.
    pub fn has_tool(&self, position: Position) -> bool {
        position.seq <= self.through.of(position.lane) || self.tools.contains(&position)
    }

    /// A tool record is in a committed transaction.
    pub fn tool_stored(&mut self, position: Position) {
        if position.seq > self.through.of(position.lane) {
            self.tools.insert(position);
        }
    }

    /// Where the run would end once `done` is durable.
    pub fn preview(&self, done: &Done) -> Through {
        let mut through = self.through;
        for lane in Lane::ALL {
            let run = &self.lanes[index(lane)];
            let complete = |open: &&Open| {
                let before = run.completed.get(&open.seq).copied().unwrap_or_default();
                before.saturating_add(done.of(lane, open.seq)) >= open.rows
            };
            if let Some(last) = run.open.iter().take_while(complete).last() {
                *through.of_mut(lane) = last.seq;
            }
        }
        through
    }

    /// `done` is durable: the run moves on.
    pub fn commit(&mut self, done: &Done) {
        for ((lane, seq), rows) in &done.0 {
            if *seq > self.through.of(*lane) {
                *self.lanes[index(*lane)].completed.entry(*seq).or_default() += rows;
            }
        }
        self.through = self.preview(&Done::default());
        for lane in Lane::ALL {
            let through = self.through.of(lane);
            let run = &mut self.lanes[index(lane)];
            while run.open.front().is_some_and(|open| open.seq <= through) {
                run.open.pop_front();
            }
            run.completed = run.completed.split_off(&(through + 1));
        }
        let through = self.through;
        self.tools.retain(|position| position.seq > through.of(position.lane));
    }
}

const fn index(lane: Lane) -> usize {
    match lane {
        Lane::Traces => 0,
        Lane::Logs => 1,
        Lane::Metrics => 2,
    }
}

/// The lane's number in the file.
pub(super) const fn lane_number(lane: Lane) -> u8 {
    match lane {
        Lane::Traces => 0,
        Lane::Logs => 1,
        Lane::Metrics => 2,
    }
}

/// The lane of a number in the file.
pub(super) fn lane_of(number: u8) -> Option<Lane> {
    Lane::ALL.into_iter().find(|lane| lane_number(*lane) == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(items: &[(u64, u32)]) -> Done {
        let mut done = Done::default();
        for (seq, rows) in items {
            done.add(Lane::Traces, *seq, *rows);
        }
        done
    }

    #[test]
    fn the_run_ends_before_the_first_record_that_is_not_whole() {
        let mut tracker = Tracker::new(Through { traces: 4, ..Through::default() }, []);
        for (seq, rows) in [(5, 2), (7, 0), (9, 1)] {
            tracker.announce(Lane::Traces, seq, rows);
        }
        tracker.commit(&done(&[(9, 1), (5, 1)]));
        assert_eq!(tracker.through().traces, 4);
        assert_eq!(tracker.preview(&done(&[(5, 1)])).traces, 9);
        assert_eq!(tracker.through().traces, 4, "a preview changes nothing");
        tracker.commit(&done(&[(5, 1)]));
        assert_eq!(tracker.through(), Through { traces: 9, logs: 0, metrics: 0 });
    }

    #[test]
    fn a_row_may_overtake_its_record() {
        let mut tracker = Tracker::default();
        tracker.commit(&done(&[(3, 1)]));
        assert_eq!(tracker.through().traces, 0);
        tracker.announce(Lane::Traces, 2, 1);
        tracker.announce(Lane::Traces, 3, 1);
        assert_eq!(tracker.preview(&Done::default()).traces, 0);
        tracker.commit(&done(&[(2, 1)]));
        assert_eq!(tracker.through().traces, 3);
    }

    #[test]
    fn tools_below_the_run_are_known() {
        let position = |seq| Position { lane: Lane::Traces, seq, ordinal: 0 };
        let mut tracker = Tracker::new(Through::default(), [position(2)]);
        assert!(tracker.has_tool(position(2)) && !tracker.has_tool(position(1)));
        tracker.announce(Lane::Traces, 1, 0);
        tracker.announce(Lane::Traces, 2, 1);
        tracker.commit(&done(&[(2, 1)]));
        assert!(tracker.has_tool(position(1)) && tracker.has_tool(position(2)));
        assert!(tracker.tools.is_empty());
    }
}
