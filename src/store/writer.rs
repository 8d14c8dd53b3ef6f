//! The only thread that writes. It owns both writing connections: one for span groups, one for awaited writes,
//! which are committed at once and never wait for a group to fill.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use duckdb::Connection;
use iris_core::model::{Lane, Position, RowKey, Timestamp};
use tokio::sync::{mpsc, oneshot};

use super::beside::Beside;
use super::fold::Fold;
use super::group::{self, Item, Positions};
use super::open::CATALOG;
use super::packed::{Packed, Scratch};
use super::pending::Pending;
use super::reader::Readers;
use super::retention::Sweep;
use super::rewrite::Closed;
use super::soon::Soon;
use super::status::Shared;
use super::track::{Done, Tracker};
use super::{Config, Error, Sent, Standing, ToolWrite, Write};
use crate::deleted::Deletions;

/// First and longest wait before a failed commit is tried again.
const RETRY_FIRST: Duration = Duration::from_millis(250);
const RETRY_LONGEST: Duration = Duration::from_secs(30);

/// What is asked of the writer beside the ordinary channel.
pub(super) enum Command {
    /// A tool waits for this to be committed.
    Write(Box<ToolWrite>, oneshot::Sender<Result<(), Error>>),
    /// A tool wrote this and does not wait: it is committed soon, and before whatever is asked next.
    Soon(Box<ToolWrite>),
    /// Commit what tools wrote without waiting.
    Settle(oneshot::Sender<Result<(), Error>>),
    /// Say up to where the traces lane has come here, and up to where all of it is committed.
    Came(oneshot::Sender<(u64, u64)>),
    /// Commit everything that waits.
    Flush(oneshot::Sender<Result<(), Error>>),
    /// Commit everything that waits, then CHECKPOINT.
    Checkpoint(oneshot::Sender<Result<(), Error>>),
    /// Commit everything that waits, CHECKPOINT if that fits before the deadline, and end.
    Close { until: Instant, done: oneshot::Sender<Result<(), Error>> },
    /// End without committing anything, as a kill would.
    Abandon,
    /// The engine gave up on the file.
    #[cfg(test)]
    Break,
}

impl Command {
    /// Answers it without doing it; true when it was to end the writer.
    fn refuse(self, why: &Error, shared: &Shared) -> bool {
        // A caller that no longer waits learns nothing, and needs not to.
        match self {
            Self::Write(_, done) | Self::Settle(done) | Self::Flush(done) | Self::Checkpoint(done) => {
                let _ = done.send(Err(why.clone()));
                false
            }
            Self::Close { done, .. } => {
                let _ = done.send(Err(why.clone()));
                true
            }
            // Whoever asks learns by the silence.
            Self::Came(_) => false,
            Self::Soon(_) => {
                // The journal's reader brings it once there is a file again.
                shared.landed(1);
                false
            }
            Self::Abandon => true,
            #[cfg(test)]
            Self::Break => false,
        }
    }
}

pub(super) struct Writer {
    pub spans: Connection,
    pub tools: Connection,
    pub ordinary: mpsc::Receiver<Sent>,
    pub awaited: mpsc::Receiver<Command>,
    pub config: Config,
    pub wal: PathBuf,
    pub database: PathBuf,
    pub tracker: Tracker,
    /// As the file has them.
    pub positions: Positions,
    pub shared: Shared,
    pub readers: Arc<Readers>,
    pub home: PathBuf,
    /// When the oldest deletion was asked for of which bytes may be in the file.
    pub erase_asked: Option<Timestamp>,
    /// As the file has them.
    pub beside: Beside,
    /// Of these nothing is stored any more.
    pub deleted: Deletions,
    pub now: fn() -> Timestamp,
}

/// What the loop remembers from one turn to the next.
pub(super) struct State {
    pub pending: Pending,
    /// What tools wrote without waiting.
    pub soon: Soon,
    pub fold: Fold,
    pub scratch: Scratch,
    /// Committed since the last CHECKPOINT.
    dirty: bool,
    last_write: Instant,
    pub retry: Option<(Instant, Duration)>,
    checkpoint_after: Instant,
    pub sweep: Option<Sweep>,
    sweep_at: Option<Instant>,
    /// When the file's size is looked at.
    pub look_at: Option<Instant>,
    /// When the file is to be written anew.
    pub rewrite_at: Option<Instant>,
    /// How often rows went so that a copy has room.
    pub freed_for_copy: u8,
    /// The engine is closed until it can be opened again.
    pub closed: Option<Closed>,
    /// The engine gave up on the file and has to be opened again.
    pub is_broken: bool,
    /// A group of so many items and these positions, of which the engine did not say whether it is in.
    pub unsure: Option<(usize, Positions)>,
    pub ending: bool,
}

impl Writer {
    /// Runs until every handle is gone or it is told to close.
    pub async fn run(mut self) {
        let now = Instant::now();
        let mut state = State {
            pending: Pending::new(self.positions.settled),
            soon: Soon::default(),
            fold: Fold::new(),
            scratch: Scratch::new(std::mem::take(&mut self.beside)),
            dirty: true,
            last_write: now,
            retry: None,
            checkpoint_after: now,
            sweep: None,
            sweep_at: Some(now),
            look_at: Some(now),
            rewrite_at: None,
            freed_for_copy: 0,
            closed: None,
            is_broken: false,
            unsure: None,
            ending: false,
        };
        if let Some(asked) = self.erase_asked.take() {
            self.erase_from(&mut state, asked);
        }
        let mut ordinary_open = true;
        while !state.ending {
            let room = ordinary_open && state.closed.is_none() && self.has_room(&state);
            let wake = tokio::time::Instant::from_std(self.next_wake(&state));
            tokio::select! {
                biased;
                command = self.awaited.recv() => match command {
                    Some(command) => match &state.closed {
                        Some(closed) => state.ending = command.refuse(&closed.why, &self.shared),
                        None => self.command(&mut state, command),
                    },
                    None => break,
                },
                write = self.ordinary.recv(), if room => match write {
                    Some(sent) => self.accept(&mut state, sent.write),
                    None => ordinary_open = false,
                },
                () = tokio::time::sleep_until(wake) => {}
            }
            if state.closed.is_some() {
                self.reopen(&mut state);
                continue;
            }
            self.tick(&mut state);
            if std::mem::take(&mut state.is_broken) {
                self.open_anew(&mut state).await;
            } else if state.sweep.is_none() && state.rewrite_at.is_some_and(|at| Instant::now() >= at) {
                self.rewrite(&mut state).await;
            }
        }
        if !state.ending && state.closed.is_none() {
            // Every handle is gone: nobody can ask any more, but what was sent is kept.
            self.commit_soon(&mut state);
            self.drain_ordinary(&mut state);
            if let Err(error) = self.commit_all(&mut state) {
                tracing::error!(%error, "rows that waited for the database at its end were not committed");
            }
        }
    }

    /// Whether more may be taken while a group waits or cannot be committed.
    const fn has_room(&self, state: &State) -> bool {
        state.pending.bytes() < self.config.group_bytes + self.config.group_bytes / 2
    }

    /// Whether what waits is a group: it is enough for one, or nothing can be added to it any more.
    const fn is_full(&self, state: &State) -> bool {
        state.pending.is_full(self.config.group_rows, self.config.group_bytes) || !self.has_room(state)
    }

    fn next_wake(&self, state: &State) -> Instant {
        let far = Instant::now() + Duration::from_secs(3600);
        if let Some(closed) = &state.closed {
            return closed.again;
        }
        if state.sweep.is_some() {
            return Instant::now();
        }
        let full = self.is_full(state);
        let wait = if full { Duration::ZERO } else { Duration::from_millis(self.config.group_ms) };
        let due = state.pending.due(wait);
        let due = match (due, state.retry) {
            (Some(due), Some((retry, _))) => Some(due.max(retry)),
            (due, _) => due,
        };
        let idle = self.has_anything_to_checkpoint(state).then(|| {
            (state.last_write + Duration::from_millis(self.config.checkpoint_idle_ms)).max(state.checkpoint_after)
        });
        [due, idle, state.soon.due(), state.fold.at, state.sweep_at, state.look_at, state.rewrite_at]
            .into_iter()
            .flatten()
            .fold(far, Instant::min)
    }

    fn tick(&mut self, state: &mut State) {
        let now = Instant::now();
        if state.soon.due().is_some_and(|due| now >= due) {
            self.commit_soon(state);
        }
        let waits = state.retry.is_some_and(|(retry, _)| now < retry);
        let wait = Duration::from_millis(self.config.group_ms);
        let full = self.is_full(state);
        let due = state.pending.due(wait).is_some_and(|due| now >= due);
        if !waits && (full || due) {
            // A failure is kept in the status and tried again later.
            let _ = self.commit(state);
            return;
        }
        let idle =
            now.saturating_duration_since(state.last_write) >= Duration::from_millis(self.config.checkpoint_idle_ms);
        if idle && now >= state.checkpoint_after && self.has_anything_to_checkpoint(state) {
            self.checkpoint_or_log(state);
        }
        self.sweep(state, now);
        self.fold(state, now);
        self.keep_within_share(state, now);
    }

    fn has_anything_to_checkpoint(&self, state: &State) -> bool {
        state.dirty || self.positions_now(state, &Done::default()) != self.positions
    }

    fn positions_now(&self, state: &State, done: &Done) -> Positions {
        Positions {
            stored: self.tracker.preview(done).max(self.positions.stored),
            settled: state.pending.settled().max(self.positions.settled),
        }
    }

    fn accept(&mut self, state: &mut State, write: Write) {
        match write {
            Write::Record { lane, seq, rows } => {
                self.tracker.announce(lane, seq, rows);
                if rows == 0 {
                    self.tracker.commit(&Done::default());
                }
            }
            Write::Dropped { lane, seq, rows } => {
                // Nothing to make durable: the run moves in memory and reaches the file with the next write.
                let mut done = Done::default();
                done.add(lane, seq, rows);
                self.tracker.commit(&done);
            }
            Write::Rows(rows) => self.accept_rows(state, rows),
            Write::Tool(write) if state.soon.came(write.position()) => {}
            Write::Tool(write) if self.tracker.has_tool(write.position()) => {
                let mut done = Done::default();
                done.row(write.position());
                self.tracker.commit(&done);
            }
            Write::Tool(write) => match self.standing(write) {
                Ok(write) => state.pending.push(Item::Tool(write)),
                Err(position) => {
                    let mut done = Done::default();
                    done.row(position);
                    self.tracker.commit(&done);
                }
            },
            Write::Judged { ticket, trace, evaluation, settled_through: settled } => {
                let key = RowKey { tenant: trace.tenant.clone(), trace_id: trace.trace_id };
                state.pending.push(if self.deleted.contains(&key) {
                    Item::Gone { ticket, settled }
                } else {
                    Item::Judged { ticket, trace, evaluation, settled }
                });
            }
            Write::Settled { settled_through } => state.pending.push(Item::Settled(settled_through)),
        }
    }

    /// Rows of traces that were deleted count as dropped.
    fn accept_rows(&mut self, state: &mut State, rows: Vec<Packed>) {
        let mut dropped = Done::default();
        let nothing_deleted = self.deleted.is_empty();
        for row in rows {
            if nothing_deleted || !self.deleted.contains(&row.key()) {
                state.pending.push(Item::Row(Box::new(row)));
            } else {
                dropped.row(row.position());
            }
        }
        self.tracker.commit(&dropped);
    }

    /// What of a tool's write is still to be stored. `Err` is the position of what is not.
    pub fn standing(&self, write: Box<ToolWrite>) -> Result<Box<ToolWrite>, Position> {
        let position = write.position();
        match write.standing(&self.deleted, (self.now)()) {
            Standing::All(write) | Standing::Part(write) => Ok(write),
            Standing::Nothing => Err(position),
        }
    }

    pub fn command(&mut self, state: &mut State, command: Command) {
        match command {
            Command::Write(write, done) => self.write_awaited(state, write, done),
            Command::Soon(write) => self.write_soon(state, write),
            Command::Came(done) => {
                let _ = done.send((self.tracker.newest(Lane::Traces), self.tracker.through().traces));
            }
            Command::Settle(done) => {
                self.commit_soon(state);
                let _ = done.send(Ok(()));
            }
            Command::Flush(done) => {
                self.commit_soon(state);
                self.drain_ordinary(state);
                let _ = done.send(self.commit_all(state));
            }
            Command::Checkpoint(done) => {
                self.commit_soon(state);
                self.drain_ordinary(state);
                let flushed = self.commit_all(state);
                let checked = flushed.and_then(|()| self.checkpoint(state));
                if let Err(error) = &checked {
                    state.is_broken |= error.ends_engine();
                    self.shared.met(error);
                }
                let _ = done.send(checked);
            }
            Command::Close { until, done } => {
                self.ordinary.close();
                self.commit_soon(state);
                self.drain_ordinary(state);
                let mut closed = self.commit_all(state);
                if closed.is_ok() && Instant::now() < until && self.has_anything_to_checkpoint(state) {
                    closed = self.checkpoint(state);
                }
                state.ending = true;
                let _ = done.send(closed);
            }
            Command::Abandon => state.ending = true,
            #[cfg(test)]
            Command::Break => state.is_broken = true,
        }
    }

    /// Takes what the ordinary channel holds, committing on the way so that the window stays bounded.
    fn drain_ordinary(&mut self, state: &mut State) {
        while self.has_room(state) {
            let Ok(sent) = self.ordinary.try_recv() else { return };
            self.accept(state, sent.write);
            if state.pending.is_full(self.config.group_rows, self.config.group_bytes) && self.commit(state).is_err() {
                return;
            }
        }
    }

    pub fn commit_all(&mut self, state: &mut State) -> Result<(), Error> {
        while state.pending.has_work() {
            self.commit(state)?;
        }
        Ok(())
    }

    /// Commits the oldest group that waits.
    fn commit(&mut self, state: &mut State) -> Result<(), Error> {
        let started = Instant::now();
        let count = state.pending.cut(self.config.group_rows, self.config.group_bytes);
        let items = state.pending.first(count);
        let mut done = Done::default();
        items.iter().for_each(|item| item.complete(&mut done));
        let positions = Positions {
            stored: self.tracker.preview(&done).max(self.positions.stored),
            settled: state.pending.settled_after(count).max(self.positions.settled),
        };
        let changed = (positions != self.positions).then_some(positions);
        let mut set_aside = 0;
        let mut written = self
            .check_share()
            .and_then(|()| group::write(&self.spans, &items, changed, (self.now)(), &mut state.scratch));
        if matches!(&written, Err(error) if error.may_be_a_row())
            && let Some(bad) = group::find_bad(&self.spans, &items, (self.now)(), &mut state.scratch)
        {
            set_aside = bad.len();
            let good = (0..).zip(&items).filter(|(index, _)| bad.binary_search(index).is_err());
            let good: Vec<&Item> = good.map(|(_, item)| *item).collect();
            written = group::write(&self.spans, &good, changed, (self.now)(), &mut state.scratch);
        }
        if let Err(error) = written {
            state.unsure = Some((count, positions));
            return Err(self.failed(state, error));
        }
        if set_aside > 0 {
            tracing::error!(set_aside, "rows that the database refused were set aside");
        }
        self.group_is_in(state, count, positions, set_aside, started);
        Ok(())
    }

    /// The oldest group that waits is in the file.
    pub fn group_is_in(
        &mut self,
        state: &mut State,
        count: usize,
        positions: Positions,
        set_aside: usize,
        started: Instant,
    ) {
        state.unsure = None;
        let items = state.pending.first(count);
        let mut done = Done::default();
        items.iter().for_each(|item| item.complete(&mut done));
        let rows: usize = items.iter().map(|item| item.rows()).sum();
        state.fold.came(&items);
        self.tracker.commit(&done);
        self.positions = positions;
        let deletes = items.iter().any(|item| item.is_deletion());
        let ticket = state.pending.remove(count, &mut self.tracker);
        if deletes {
            self.erase_from(state, (self.now)());
        }
        self.shared.group_committed(rows, set_aside, started.elapsed());
        self.after_commit(state);
        self.shared.publish_ticket(ticket);
    }

    pub fn after_commit(&mut self, state: &mut State) {
        state.dirty = true;
        state.retry = None;
        state.last_write = Instant::now();
        let wal_bytes = std::fs::metadata(&self.wal).map_or(0, |file| file.len());
        self.shared.now_holds(wal_bytes, self.positions);
        self.look_at_size(state);
        if wal_bytes >= self.config.checkpoint_wal_bytes && state.last_write >= state.checkpoint_after {
            self.checkpoint_or_log(state);
        }
    }

    fn failed(&mut self, state: &mut State, error: Error) -> Error {
        let wait = state.retry.map_or(RETRY_FIRST, |(_, wait)| (wait * 2).min(RETRY_LONGEST));
        state.retry = Some((Instant::now() + wait, wait));
        state.is_broken |= error.ends_engine();
        if matches!(error, Error::NoSpace(_)) {
            self.look_at_size(state);
        }
        if self.shared.set_failed(&error) {
            tracing::error!(%error, retry_ms = wait.as_millis(), "the database refused a commit; rows wait in memory and in the journal");
        }
        error
    }

    pub fn checkpoint_or_log(&mut self, state: &mut State) {
        if let Err(error) = self.checkpoint(state) {
            state.is_broken |= error.ends_engine();
            self.shared.met(&error);
            tracing::warn!(%error, "a checkpoint of the database failed and is tried again later");
        }
    }

    /// Brings the positions of memory into the file and the write-ahead log into the main file.
    pub fn checkpoint(&mut self, state: &mut State) -> Result<(), Error> {
        let started = Instant::now();
        // Whatever happens, not again at once.
        state.checkpoint_after = started + RETRY_LONGEST;
        let positions = Positions {
            settled: self.positions.settled.max(state.pending.settled()),
            stored: self.tracker.through().max(self.positions.stored),
        };
        if positions != self.positions {
            group::transaction(&self.spans, true, |connection| group::append_positions(connection, positions))?;
            self.positions = positions;
        }
        self.spans.execute_batch(&format!("CHECKPOINT {CATALOG}")).map_err(Error::engine)?;
        state.dirty = false;
        state.checkpoint_after = started;
        let wal_bytes = std::fs::metadata(&self.wal).map_or(0, |file| file.len());
        self.shared.checkpointed(self.positions, wal_bytes, started.elapsed());
        Ok(())
    }

    fn sweep(&mut self, state: &mut State, now: Instant) {
        if state.sweep.is_none() && state.sweep_at.is_some_and(|at| now >= at) {
            state.sweep_at = self.config.retention.interval().map(|interval| now + interval);
            state.sweep = self.config.retention.cutoff((self.now)()).map(Sweep::new);
        }
        let Some(mut sweep) = state.sweep.take() else { return };
        match sweep.step(&self.spans, (self.now)(), &mut state.scratch) {
            Ok(true) => state.sweep = Some(sweep),
            Ok(false) => {
                self.shared.swept(sweep.deleted);
                if sweep.deleted > 0 {
                    // What judged a trace beside what went is asked again.
                    state.fold = Fold::new();
                    tracing::info!(rows = sweep.deleted, "rows past their retention were deleted");
                    self.checkpoint_or_log(state);
                    self.look_at_size(state);
                    // What waited for room is tried again at once.
                    state.retry = None;
                }
            }
            Err(error) => {
                state.is_broken |= error.ends_engine();
                self.shared.met(&error);
                tracing::warn!(%error, "a retention sweep failed; the next one goes on");
            }
        }
    }
}
