//! Turns rows into traces: decides when a trace is finished, what of it is stored, and what waits in memory.
//!
//! Owns: every open trace, the waits, the budgets for open and undecided traces, the memory of traces it has let
//! go, and `settled_through`. Never does: read a clock, store, load, understand or judge; it says what is to be
//! done as [`Effect`]s and is told what happened ([`Assembler::loaded`], [`Assembler::judged`],
//! [`Assembler::committed`]). Rows enter through [`Assembler::push`], one journal record at a time and in lane
//! order; time enters through [`Assembler::tick`]. Times are monotonic, measured from any fixed point.
//!
//! Every pushed row leaves exactly once: in [`Effect::Store`] or in [`Effect::Drop`]. A trace is let go only
//! after its evaluation is committed, so that it is always in memory or in the store.

mod closing;
mod config;
mod conversation;
mod forgotten;
mod open;
mod position;
mod remembered;
mod understand;
mod view;
mod weight;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::RandomState;
use std::sync::Arc;
use std::time::Duration;

pub use config::{Config, Settings};
pub use conversation::{Conversation, TRACES_MAX as CONVERSATION_TRACES_MAX, conversation, is_bare};
pub use forgotten::Forgotten;
pub use position::Settled;
pub use understand::{understand, understand_with};
pub use view::{Counts, View};
pub use weight::row_bytes;

use crate::model::{Evaluation, Lane, Position, Row, RowKey, Timestamp};
use open::{Fate, Open, Past, Phase};
use position::Positions;
use remembered::{Remembered, Ring};

/// Something the caller has to do.
#[derive(Debug)]
pub enum Effect {
    /// Store these rows.
    Store(Vec<Arc<Row>>),
    /// These rows will never be stored.
    Drop {
        /// Where they stand.
        rows: Vec<Position>,
        /// Why.
        why: Dropped,
    },
    /// Understand and judge this trace, then call [`Assembler::judged`].
    Settle(Box<Settling>),
    /// Load this trace from the store, then call [`Assembler::loaded`] or [`Assembler::load_failed`].
    Load(RowKey),
    /// The text of this trace was given up for memory; nothing to do but count.
    Spill(RowKey),
}

/// Why rows are not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// The same span with the same content is in the open trace already.
    Duplicate,
    /// The trace settled without an agent, LLM or tool span.
    Other,
    /// The trace was deleted while it was open.
    Deleted,
}

/// A trace that is to be judged.
#[derive(Debug)]
pub struct Settling {
    /// Which.
    pub key: RowKey,
    /// The version it will have, from 1.
    pub version: u32,
    /// All its rows, in any order.
    pub rows: Vec<Arc<Row>>,
    /// Closed by time or by a limit, not because it was complete.
    pub partial: bool,
    /// It has rows beyond these: more than are looked at, or some that could not be read back.
    pub cut: bool,
    /// The highest sequence number among its rows.
    pub seen_through: u64,
    /// Its last evaluation, when it was judged before.
    pub previous: Option<Arc<Evaluation>>,
}

/// What the store has of a trace.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Its committed rows, read by the dialects again.
    pub rows: Vec<Arc<Row>>,
    /// The highest version stored; 0 for none.
    pub version: u32,
    /// The newest inline evaluation.
    pub evaluation: Option<Arc<Evaluation>>,
}

/// A trace of which an earlier process let go: what the store says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Which.
    pub key: RowKey,
    /// The highest version stored; 0 for none.
    pub version: u32,
    /// Whether it has an agentic row.
    pub agentic: bool,
    /// When the last of its rows arrived.
    pub last: Timestamp,
}

/// How many traces the caller can take at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// To be judged.
    pub judgings: usize,
    /// To be loaded.
    pub loads: usize,
}

/// The answer to [`Assembler::judged`]: what to write beside trace and evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judged {
    /// To be handed to [`Assembler::committed`] once the write is committed. Rises by one each time.
    pub ticket: u64,
    /// True once this write and all earlier ones are committed.
    pub settled_through: Settled,
}

/// The state machine. One owner; pure.
#[derive(Debug)]
pub struct Assembler {
    config: Config,
    settings: Settings,
    hasher: RandomState,
    open: HashMap<RowKey, Open>,
    timers: BTreeSet<(Duration, RowKey)>,
    /// In order of opening; entries whose serial no longer fits are stale.
    opened: VecDeque<(u64, RowKey)>,
    /// As `opened`, of the traces that hold undecided rows.
    held: VecDeque<(u64, RowKey)>,
    serial: u64,
    /// Traces that wait and have not been told to close.
    waiting: usize,
    remembered: Ring,
    /// Traces that wait for the commit of their evaluation.
    awaiting: VecDeque<(u64, RowKey)>,
    ticket: u64,
    positions: Positions,
    /// A trace with an observation from before this time may be in the store, put there by an earlier process.
    horizon: Timestamp,
    /// The newest arrival pushed.
    newest: Timestamp,
    counts: Counts,
}

impl Assembler {
    /// An empty assembler. `covered` is where the store stands: every row up to there is either covered by an
    /// evaluation or belongs to a trace handed to [`Assembler::reopen`].
    pub fn new(config: Config, settings: Settings, covered: Settled) -> Self {
        Self {
            remembered: Ring::new(settings.remembered_max, Forgotten::default()),
            positions: Positions::new(covered),
            config,
            settings,
            hasher: RandomState::new(),
            open: HashMap::new(),
            timers: BTreeSet::new(),
            opened: VecDeque::new(),
            held: VecDeque::new(),
            serial: 0,
            waiting: 0,
            awaiting: VecDeque::new(),
            ticket: 0,
            horizon: Timestamp::default(),
            newest: Timestamp::default(),
            counts: Counts::default(),
        }
    }

    /// Takes over the traces that the store has and that are not told to [`Assembler::remember`]. Before anything else:
    /// what was remembered until then is not any more.
    #[must_use]
    pub fn with_forgotten(mut self, forgotten: Forgotten) -> Self {
        self.remembered = Ring::new(self.settings.remembered_max, forgotten);
        self
    }

    /// Opens a trace that the store has rows of above `settled_through` which no evaluation covers. It is loaded
    /// when its time comes; until then `settled_through` stays where it is.
    pub fn reopen(&mut self, now: Duration, key: &RowKey, settled_through: Settled) {
        if self.open.contains_key(key) {
            return;
        }
        self.begin(now, key);
        let Some(mut open) = self.open.remove(key) else { return };
        self.unaccount(&open);
        open.past = Past::Needed { rows: 0 };
        open.fate = Fate::Stored;
        open.uncovered = [Some(settled_through.traces.saturating_add(1)), Some(settled_through.logs.saturating_add(1))];
        self.positions.move_hold([None, None], open.uncovered);
        self.account(&open);
        self.open.insert(key.clone(), open);
        self.schedule(key);
    }

    /// Takes over what an earlier process remembered, so that a late span is known to be one and every other trace
    /// is not looked up. To be called oldest first.
    pub fn remember(&mut self, known: &Known) {
        // All of it is committed, so that a load lacks nothing: one row says that there are some.
        let past = Remembered { version: known.version, rows: 1, agentic: known.agentic, dropped: false };
        self.newest = self.newest.max(known.last);
        self.remembered.insert(&known.key, past, known.last);
    }

    /// Says that traces with observations from before `time` may have been judged by an earlier process without
    /// being among those told to [`Assembler::remember`].
    pub fn forgot(&mut self, time: Timestamp) {
        self.horizon = self.horizon.max(time);
    }

    /// Takes the rows of one journal record, in lane order. A record without rows is pushed too: it moves the
    /// position.
    pub fn push(&mut self, now: Duration, lane: Lane, seq: u64, rows: Vec<Arc<Row>>) -> Vec<Effect> {
        self.positions.pushed(lane, seq);
        let mut by_trace: BTreeMap<RowKey, Vec<Arc<Row>>> = BTreeMap::new();
        for row in rows {
            self.newest = self.newest.max(row.received);
            by_trace.entry(row.key()).or_default().push(row);
        }
        let mut effects = Vec::new();
        let (mut store, mut duplicates) = (Vec::new(), Vec::new());
        for (key, rows) in by_trace {
            self.push_trace(now, &key, rows, &mut store, &mut duplicates);
        }
        self.counts.duplicates += duplicates.len() as u64;
        if !duplicates.is_empty() {
            effects.push(Effect::Drop { rows: duplicates, why: Dropped::Duplicate });
        }
        self.insert_oldest_undecided(&mut store);
        self.close_oldest(&mut store);
        if !store.is_empty() {
            effects.push(Effect::Store(store));
        }
        self.spill(&mut effects);
        effects
    }

    fn push_trace(
        &mut self,
        now: Duration,
        key: &RowKey,
        rows: Vec<Arc<Row>>,
        store: &mut Vec<Arc<Row>>,
        duplicates: &mut Vec<Position>,
    ) {
        let mut open = match self.open.remove(key) {
            Some(open) => open,
            None => {
                self.begin(now, key);
                match self.open.remove(key) {
                    Some(open) => open,
                    None => return,
                }
            }
        };
        self.unaccount(&open);
        let before = open.uncovered;
        let mut news = false;
        for row in rows {
            let position = row.position;
            if open.is_duplicate(&row) {
                duplicates.push(position);
                continue;
            }
            news = true;
            let kept = open.take(&row, self.settings.rows_max);
            if open.fate == Fate::Held && (open.agentic || !kept) {
                open.fate = Fate::Stored;
                store.extend(open.rows.iter().filter(|held| !Arc::ptr_eq(held, &row)).cloned());
            }
            if open.fate == Fate::Stored {
                store.push(row);
            }
            if open.holds_position() {
                open.cover_from(position);
            }
        }
        if news {
            open.last = now;
            open.fresh = true;
            open.provisional = false;
            open.hot = false;
            if let Phase::Judged(_) = open.phase {
                open.phase = Phase::Waiting;
            }
        }
        self.positions.move_hold(before, open.uncovered);
        self.release_unless_agentic(&mut open);
        self.account(&open);
        self.open.insert(key.clone(), open);
        self.schedule(key);
    }

    /// Opens a trace; it may have a past.
    fn begin(&mut self, now: Duration, key: &RowKey) {
        self.serial += 1;
        let mut open = Open::new(self.serial, now, &self.hasher);
        if let Some(past) = self.remembered.get(key) {
            if past.dropped {
                open.past = Past::Dropped;
            } else {
                open.past = Past::Needed { rows: past.rows };
                open.version = past.version;
                open.agentic = past.agentic;
                open.fate = if past.agentic { Fate::Stored } else { Fate::Held };
            }
        } else {
            open.forgotten = self.remembered.may_have_forgotten(key);
        }
        self.opened.push_back((self.serial, key.clone()));
        if open.fate == Fate::Held {
            self.held.push_back((self.serial, key.clone()));
        }
        self.account(&open);
        self.open.insert(key.clone(), open);
    }

    /// What the store had of a trace that was asked for. Closing goes on with the next [`Assembler::tick`].
    pub fn loaded(&mut self, now: Duration, key: &RowKey, loaded: Loaded) -> Vec<Effect> {
        let Some(mut open) = self.open.remove(key) else { return Vec::new() };
        let mut store = Vec::new();
        self.unaccount(&open);
        open.phase = Phase::Waiting;
        if open.fate == Fate::Held && !loaded.rows.is_empty() {
            open.fate = Fate::Stored;
            store.clone_from(&open.rows);
        }
        if open.merge(loaded, self.settings.rows_max, open.tries >= LOAD_TRIES_MAX) {
            open.past = Past::Known;
            open.spilled = false;
            open.hot = true;
            open.tries = 0;
            self.release_unless_agentic(&mut open);
        } else {
            open.tries += 1;
            open.retry = Some(now + LOAD_RETRY);
        }
        self.account(&open);
        self.open.insert(key.clone(), open);
        self.schedule(key);
        if store.is_empty() { Vec::new() } else { vec![Effect::Store(store)] }
    }

    /// The store could not answer; it is asked again later.
    pub fn load_failed(&mut self, now: Duration, key: &RowKey) {
        let Some(open) = self.open.get_mut(key) else { return };
        open.phase = Phase::Waiting;
        open.retry = Some(now + LOAD_FAILED_RETRY);
        self.waiting += usize::from(open.is_waiting());
        self.schedule(key);
    }

    /// A trace was judged. Without an evaluation (nothing to judge in it, or judging failed) its rows count as
    /// covered, and nothing is to be committed. Must be called in the order in which the writes are sent.
    pub fn judged(&mut self, key: &RowKey, evaluation: Option<Arc<Evaluation>>) -> Judged {
        if evaluation.is_some() {
            self.ticket += 1;
        }
        if let Some(mut open) = self.open.remove(key) {
            self.unaccount(&open);
            self.positions.move_hold(open.judging, [None, None]);
            open.judging = [None, None];
            let judged = evaluation.is_some();
            if judged {
                open.version += 1;
                open.previous = evaluation;
            }
            if open.fresh {
                open.phase = Phase::Waiting;
                self.account(&open);
                self.open.insert(key.clone(), open);
                self.schedule(key);
            } else if judged {
                open.phase = Phase::Judged(self.ticket);
                // What waits for its commit is hardly ever looked at again, and under load there is much of it.
                if open.fate == Fate::Stored && self.counts.text_bytes + open.bytes > self.settings.text_bytes_max / 4 {
                    open.spill();
                }
                self.account(&open);
                self.awaiting.push_back((self.ticket, key.clone()));
                self.open.insert(key.clone(), open);
            } else {
                self.account(&open);
                self.open.insert(key.clone(), open);
                self.let_go(key, false);
            }
        }
        Judged { ticket: self.ticket, settled_through: self.settled() }
    }

    /// Every write up to `ticket` is committed: traces that gained nothing since are let go.
    pub fn committed(&mut self, ticket: u64) {
        while let Some((next, _)) = self.awaiting.front() {
            if *next > ticket {
                break;
            }
            let Some((next, key)) = self.awaiting.pop_front() else { break };
            if self.open.get(&key).is_some_and(|open| open.phase == Phase::Judged(next)) {
                self.let_go(&key, false);
            }
        }
    }

    /// Forgets an open trace that was deleted. What of it waited undecided is dropped.
    pub fn forget(&mut self, key: &RowKey) -> Vec<Effect> {
        let rows = match self.open.get_mut(key) {
            Some(open) if open.fate == Fate::Held => std::mem::take(&mut open.rows),
            _ => Vec::new(),
        };
        self.remove(key);
        let rows: Vec<_> = rows.iter().map(|row| row.position).collect();
        if rows.is_empty() { Vec::new() } else { vec![Effect::Drop { rows, why: Dropped::Deleted }] }
    }

    /// Per lane: every stored row up to there is covered by an evaluation that was handed out as [`Judged`].
    pub fn settled(&self) -> Settled {
        self.positions.settled()
    }

    /// When [`Assembler::tick`] next has something to do.
    pub fn next_due(&self) -> Option<Duration> {
        self.timers.first().map(|(due, _)| *due)
    }

    fn let_go(&mut self, key: &RowKey, dropped: bool) {
        if let Some(open) = self.remove(key) {
            let stored = if let Past::Needed { rows } = open.past { rows } else { 0 };
            let rows = stored.max(u32::try_from(open.seen.len()).unwrap_or(u32::MAX));
            let dropped = dropped && stored == 0;
            let past = Remembered { version: open.version, rows, agentic: open.agentic, dropped };
            self.remembered.insert(key, past, self.newest);
        }
    }

    fn remove(&mut self, key: &RowKey) -> Option<Open> {
        let open = self.open.remove(key)?;
        self.unaccount(&open);
        self.positions.move_hold(open.uncovered, [None, None]);
        self.positions.move_hold(open.judging, [None, None]);
        if let Some(queued) = open.queued {
            self.timers.remove(&(queued, key.clone()));
        }
        self.sweep();
        Some(open)
    }

    /// Keeps the two queues of openings from outgrowing the traces they speak of.
    fn sweep(&mut self) {
        if self.opened.len() > 2 * self.open.len() + 1024 {
            let open = &self.open;
            self.opened.retain(|(serial, key)| open.get(key).is_some_and(|o| o.serial == *serial));
            self.held
                .retain(|(serial, key)| open.get(key).is_some_and(|o| o.serial == *serial && o.fate == Fate::Held));
        }
    }

    fn account(&mut self, open: &Open) {
        match open.fate {
            Fate::Held => {
                self.counts.undecided += 1;
                self.counts.undecided_bytes += open.bytes;
            }
            Fate::Stored => {
                self.counts.text_bytes += open.bytes;
                self.counts.closing_bytes += open.closing_bytes();
            }
        }
        self.account_waiting(open);
    }

    fn account_waiting(&mut self, open: &Open) {
        self.waiting += usize::from(open.is_waiting());
    }

    fn unaccount(&mut self, open: &Open) {
        match open.fate {
            Fate::Held => {
                self.counts.undecided -= 1;
                self.counts.undecided_bytes -= open.bytes;
            }
            Fate::Stored => {
                self.counts.text_bytes -= open.bytes;
                self.counts.closing_bytes -= open.closing_bytes();
            }
        }
        self.waiting -= usize::from(open.is_waiting());
    }
}

/// How often a load that misses rows is repeated: the writer commits within seconds.
const LOAD_TRIES_MAX: u8 = 20;
/// How long after a load that missed rows.
const LOAD_RETRY: Duration = Duration::from_millis(500);
/// How long after a load that failed.
const LOAD_FAILED_RETRY: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
