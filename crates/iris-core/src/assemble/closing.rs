//! When a trace closes: timers, limits, and what closing it means.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::open::{Fate, Open, Past, Phase};
use super::{Assembler, Dropped, Effect, Room, Settling};
use crate::model::{Row, RowKey, Tenant};

/// The most timers one tick looks at, so that a tick is short.
const STEPS_MAX: usize = 4096;
/// Spilling goes on until this share of the budget is in use, so that it is not done for every push.
const SPILL_TO_EIGHTHS: usize = 7;

/// How long a load waits for room before it is looked at again.
const NO_ROOM_PAUSE: Duration = Duration::from_millis(100);

/// What a trace's time has come for.
enum Step {
    Wait,
    Load,
    Close { partial: bool },
    StorePlain,
    CallProvisional,
}

impl Assembler {
    /// Does what is due, handing out no more than there is room for. Without room to judge the rest stays due; a
    /// load for which there is no room is put off a little, so that it keeps nothing else waiting.
    pub fn tick(&mut self, now: Duration, room: Room) -> Vec<Effect> {
        let mut effects = Vec::new();
        let mut room = room;
        for _ in 0..STEPS_MAX {
            let Some((due, _)) = self.timers.first() else { break };
            if *due > now {
                break;
            }
            let Some((_, key)) = self.timers.pop_first() else { break };
            let Some(open) = self.open.get_mut(&key) else { continue };
            open.queued = None;
            if open.retry.is_some_and(|retry| retry <= now) {
                open.retry = None;
            }
            let step = match self.open.get(&key) {
                Some(open) => self.step(open, now),
                None => Step::Wait,
            };
            match step {
                Step::Wait => {}
                Step::Load if room.loads == 0 => self.put_off(&key, now),
                Step::Close { .. } if room.judgings == 0 => {
                    self.schedule(&key);
                    break;
                }
                Step::Load => {
                    room.loads -= 1;
                    self.ask_load(&key, &mut effects);
                }
                Step::Close { partial } => room.judgings -= usize::from(self.close(&key, partial, &mut effects)),
                Step::StorePlain => self.store_plain(&key, &mut effects),
                Step::CallProvisional => {
                    if let Some(open) = self.open.get_mut(&key) {
                        open.provisional = true;
                    }
                }
            }
            if let Some(open) = self.open.get_mut(&key) {
                open.hot = false;
            }
            self.schedule(&key);
        }
        effects
    }

    /// Looks at a trace again after a moment, although it is due.
    fn put_off(&mut self, key: &RowKey, now: Duration) {
        if let Some(open) = self.open.get_mut(key) {
            open.retry = Some(now + NO_ROOM_PAUSE);
        }
    }

    fn step(&self, open: &Open, now: Duration) -> Step {
        if self.due(open).is_none_or(|due| due > now) {
            return Step::Wait;
        }
        let silent = now.saturating_sub(open.last);
        let age = now.saturating_sub(open.opened);
        let quiet = silent >= open.wait(&self.config);
        let given_up = open.forced || silent >= self.config.give_up() || age >= self.config.age_max();
        let closes = given_up || (quiet && open.is_ready());
        if (closes && self.must_load(open)) || (quiet && self.may_be_elsewhere(open)) {
            return Step::Load;
        }
        if closes {
            return Step::Close { partial: !open.is_ready() || open.forced };
        }
        if open.fate == Fate::Held && age >= self.config.undecided() {
            return Step::StorePlain;
        }
        if silent >= self.config.idle() && !open.provisional {
            return if open.agentic && open.is_orphaned() { Step::Load } else { Step::CallProvisional };
        }
        Step::Wait
    }

    /// Whether it cannot be judged from what is in memory.
    fn must_load(&self, open: &Open) -> bool {
        (open.agentic && open.spilled) || self.may_be_elsewhere(open)
    }

    /// Whether what it lacks may be in the store.
    fn may_be_elsewhere(&self, open: &Open) -> bool {
        (open.fate == Fate::Stored && matches!(open.past, Past::Needed { .. })) || open.is_suspect(self.horizon)
    }

    /// When [`Assembler::step`] has something to do for it.
    fn due(&self, open: &Open) -> Option<Duration> {
        if open.phase != Phase::Waiting {
            return None;
        }
        if let Some(retry) = open.retry {
            return Some(retry);
        }
        if open.forced || open.hot {
            return Some(Duration::ZERO);
        }
        let mut due = (open.last + self.config.give_up()).min(open.opened + self.config.age_max());
        if open.is_ready() || self.may_be_elsewhere(open) {
            due = due.min(open.last + open.wait(&self.config));
        }
        if open.fate == Fate::Held {
            due = due.min(open.opened + self.config.undecided());
        }
        if !open.provisional {
            due = due.min(open.last + self.config.idle());
        }
        Some(due)
    }

    /// Keeps at most one timer a trace, never later than it is due; one that is early is looked at and put back.
    pub(super) fn schedule(&mut self, key: &RowKey) {
        let Some(open) = self.open.get(key) else { return };
        let due = self.due(open);
        let queued = open.queued;
        let next = match (due, queued) {
            (None, _) => None,
            (Some(due), Some(queued)) if queued <= due => return,
            (Some(due), _) => Some(due),
        };
        if let Some(queued) = queued {
            self.timers.remove(&(queued, key.clone()));
        }
        if let Some(next) = next {
            self.timers.insert((next, key.clone()));
        }
        if let Some(open) = self.open.get_mut(key) {
            open.queued = next;
        }
    }

    fn ask_load(&mut self, key: &RowKey, effects: &mut Vec<Effect>) {
        let Some(open) = self.open.get_mut(key) else { return };
        self.waiting -= usize::from(open.is_waiting());
        open.phase = Phase::Loading;
        open.retry = None;
        self.counts.loads += 1;
        effects.push(Effect::Load(key.clone()));
    }

    /// Closes a trace. True when it was handed out to be judged.
    fn close(&mut self, key: &RowKey, partial: bool, effects: &mut Vec<Effect>) -> bool {
        let Some(open) = self.open.get_mut(key) else { return false };
        if open.agentic && open.fresh {
            self.waiting -= usize::from(open.is_waiting());
            open.phase = Phase::Judging;
            open.judging = open.uncovered;
            open.uncovered = [None, None];
            open.fresh = false;
            open.forced = false;
            let settling = Settling {
                key: key.clone(),
                version: open.version + 1,
                rows: open.rows.clone(),
                partial: partial || open.cut,
                cut: open.cut,
                seen_through: open.seen_through,
                previous: open.previous.clone(),
            };
            self.counts.settled += 1;
            self.counts.partial += u64::from(settling.partial);
            self.counts.reopened += u64::from(open.version > 0);
            effects.push(Effect::Settle(Box::new(settling)));
            return true;
        }
        let held = open.fate == Fate::Held;
        let dropped = held && !self.settings.keep_other_traces;
        if held {
            let rows = self.release_held(key);
            self.counts.other += 1;
            if dropped {
                let rows = rows.iter().map(|row| row.position).collect();
                effects.push(Effect::Drop { rows, why: Dropped::Other });
            } else {
                effects.push(Effect::Store(rows));
            }
        }
        self.let_go(key, dropped);
        false
    }

    /// Takes the rows out of an undecided trace.
    fn release_held(&mut self, key: &RowKey) -> Vec<Arc<Row>> {
        let Some(open) = self.open.get_mut(key) else { return Vec::new() };
        self.counts.undecided_bytes -= open.bytes;
        open.bytes = 0;
        std::mem::take(&mut open.rows)
    }

    /// Stores the rows of an undecided trace like any span; only their ids stay.
    fn store_plain(&mut self, key: &RowKey, effects: &mut Vec<Effect>) {
        let rows = self.plain_rows(key);
        if !rows.is_empty() {
            effects.push(Effect::Store(rows));
        }
    }

    fn plain_rows(&mut self, key: &RowKey) -> Vec<Arc<Row>> {
        let rows = self.release_held(key);
        let Some(open) = self.open.get_mut(key) else { return rows };
        self.counts.undecided -= 1;
        self.counts.plain += 1;
        open.fate = Fate::Stored;
        open.spilled = true;
        let held = open.uncovered;
        open.uncovered = [None, None];
        self.positions.move_hold(held, [None, None]);
        rows
    }

    /// Undecided traces beyond their budget, oldest first.
    pub(super) fn insert_oldest_undecided(&mut self, store: &mut Vec<Arc<Row>>) {
        while self.counts.undecided_bytes > self.settings.undecided_bytes_max {
            let Some((serial, key)) = self.held.pop_front() else { break };
            if self.open.get(&key).is_some_and(|open| open.serial == serial && open.fate == Fate::Held) {
                store.extend(self.plain_rows(&key));
                self.schedule(&key);
            }
        }
    }

    /// Open traces beyond their number, oldest first. Those that are closing already go to the end of the queue.
    pub(super) fn close_oldest(&mut self, store: &mut Vec<Arc<Row>>) {
        for _ in 0..self.opened.len() {
            if self.waiting <= self.config.open_max {
                break;
            }
            let Some((serial, key)) = self.opened.pop_front() else { break };
            let Some(open) = self.open.get(&key).filter(|open| open.serial == serial) else { continue };
            if open.is_waiting() && open.fate == Fate::Held {
                store.extend(self.plain_rows(&key));
            }
            let Some(open) = self.open.get_mut(&key) else { continue };
            if open.is_waiting() && !open.agentic && !matches!(open.past, Past::Needed { .. }) {
                self.let_go(&key, false);
                continue;
            }
            if open.is_waiting() {
                self.waiting -= 1;
                open.forced = true;
            }
            self.opened.push_back((serial, key.clone()));
            self.schedule(&key);
        }
    }

    /// Gives up the text of the longest silent traces of the tenant that holds most, until there is room.
    pub(super) fn spill(&mut self, effects: &mut Vec<Effect>) {
        if self.counts.text_bytes <= self.settings.text_bytes_max {
            return;
        }
        let goal = self.settings.text_bytes_max / 8 * SPILL_TO_EIGHTHS;
        let mut tenants: HashMap<Tenant, (usize, Vec<(Duration, RowKey)>)> = HashMap::new();
        for (key, open) in &self.open {
            let resting = matches!(open.phase, Phase::Waiting | Phase::Judged(_));
            if resting && open.fate == Fate::Stored && !open.hot && !open.rows.is_empty() {
                let (bytes, keys) = tenants.entry(key.tenant.clone()).or_default();
                *bytes += open.bytes;
                keys.push((open.last, key.clone()));
            }
        }
        for (_, keys) in tenants.values_mut() {
            keys.sort_unstable_by(|a, b| b.cmp(a));
        }
        while self.counts.text_bytes > goal {
            let Some((bytes, keys)) = tenants.values_mut().max_by_key(|(bytes, _)| *bytes) else { break };
            let Some((_, key)) = keys.pop() else { break };
            let Some(open) = self.open.get_mut(&key) else { continue };
            *bytes = bytes.saturating_sub(open.bytes);
            self.counts.text_bytes -= open.bytes;
            self.counts.closing_bytes -= open.closing_bytes();
            self.counts.spilled += 1;
            open.spill();
            effects.push(Effect::Spill(key));
        }
    }

    /// A trace whose rows are stored although nothing in it is agentic holds no position: nothing will cover it.
    pub(super) fn release_unless_agentic(&mut self, open: &mut Open) {
        if !open.holds_position() {
            self.positions.move_hold(open.uncovered, [None, None]);
            open.uncovered = [None, None];
        }
    }
}
