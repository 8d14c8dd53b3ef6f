//! What waits to be committed, in the order in which it came.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use iris_core::model::Position;

use super::group::Item;
use super::track::{Settled, Tracker};

struct Queued {
    item: Item,
    weight: usize,
    since: Instant,
}

pub(super) struct Pending {
    queue: VecDeque<Queued>,
    rows: usize,
    bytes: usize,
    /// Of the items that make rows of `spans`.
    row_bytes: usize,
    tools: HashSet<Position>,
    /// The settled position of everything already committed or written before the queue.
    settled: Settled,
}

impl Pending {
    pub fn new(settled: Settled) -> Self {
        Self { queue: VecDeque::new(), rows: 0, bytes: 0, row_bytes: 0, tools: HashSet::new(), settled }
    }

    pub fn push(&mut self, item: Item) {
        // A settled position must not overtake the evaluations that justify it.
        if let (Item::Settled(settled), true) = (&item, self.queue.is_empty()) {
            self.settled = self.settled.max(*settled);
            return;
        }
        if let Item::Tool(write) = &item {
            self.tools.insert(write.position());
        }
        let weight = item.weight();
        self.rows += item.rows();
        self.bytes += weight;
        if item.rows() > 0 {
            self.row_bytes += weight;
        }
        self.queue.push_back(Queued { item, weight, since: Instant::now() });
    }

    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn has_work(&self) -> bool {
        !self.queue.is_empty()
    }

    pub fn has_tool(&self, position: Position) -> bool {
        self.tools.contains(&position)
    }

    /// Traces and evaluations that wait beside the rows do not count towards `bytes_max` before they are as many
    /// bytes themselves: they would keep a group from ever being whole.
    pub const fn is_full(&self, rows_max: usize, bytes_max: usize) -> bool {
        self.rows >= rows_max || self.row_bytes >= bytes_max || self.bytes - self.row_bytes >= bytes_max
    }

    /// When the oldest will have waited long enough.
    pub fn due(&self, wait: Duration) -> Option<Instant> {
        self.queue.front().map(|oldest| oldest.since + wait)
    }

    /// How many items make the next transaction: never more rows than a full group, so that row groups stay whole.
    pub fn cut(&self, rows_max: usize, bytes_max: usize) -> usize {
        let (mut rows, mut row_bytes, mut other_bytes) = (0, 0, 0);
        for (index, queued) in self.queue.iter().enumerate() {
            let more = queued.item.rows();
            if index > 0 && (rows + more > rows_max || row_bytes >= bytes_max || other_bytes >= bytes_max) {
                return index;
            }
            rows += more;
            if more > 0 {
                row_bytes += queued.weight;
            } else {
                other_bytes += queued.weight;
            }
        }
        self.queue.len()
    }

    pub fn first(&self, count: usize) -> Vec<&Item> {
        self.queue.iter().take(count).map(|queued| &queued.item).collect()
    }

    /// The settled position that nothing in the queue has to be waited for.
    pub const fn settled(&self) -> Settled {
        self.settled
    }

    /// The settled position once the first `count` items are committed.
    pub fn settled_after(&self, count: usize) -> Settled {
        self.queue.iter().take(count).fold(self.settled, |settled, queued| match &queued.item {
            Item::Judged { settled: more, .. } | Item::Settled(more) | Item::Gone { settled: more, .. } => {
                settled.max(*more)
            }
            Item::Row(_) | Item::Tool(_) => settled,
        })
    }

    /// The first `count` items are committed. Returns the highest ticket among them, 0 when there is none.
    pub fn remove(&mut self, count: usize, tracker: &mut Tracker) -> u64 {
        self.settled = self.settled_after(count);
        let mut ticket = 0;
        for queued in self.queue.drain(..count.min(self.queue.len())) {
            self.rows -= queued.item.rows();
            self.bytes -= queued.weight;
            if queued.item.rows() > 0 {
                self.row_bytes -= queued.weight;
            }
            match queued.item {
                Item::Tool(write) => {
                    self.tools.remove(&write.position());
                    tracker.tool_stored(write.position());
                }
                Item::Judged { ticket: more, .. } | Item::Gone { ticket: more, .. } => ticket = ticket.max(more),
                Item::Row(_) | Item::Settled(_) => {}
            }
        }
        while let Some(Queued { item: Item::Settled(settled), .. }) = self.queue.front() {
            self.settled = self.settled.max(*settled);
            self.queue.pop_front();
        }
        ticket
    }
}
