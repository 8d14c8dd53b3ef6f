//! What tools write: at once for callers that wait for the COMMIT, and a moment later, many in one transaction, for
//! those that go on as soon as the journal has it.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use iris_core::model::Position;
use tokio::sync::oneshot;

use super::group::{self, Item, Positions};
use super::reader::Reader;
use super::track::Done;
use super::writer::{Command, State, Writer};
use super::{Error, Store, ToolWrite};

/// Awaited writes of one transaction.
const AWAITED_MAX: usize = 64;
/// How long a write waits for others that may share its transaction, and what makes it wait no longer.
const WAIT: Duration = Duration::from_millis(50);
const WRITES_MAX: usize = 256;
const BYTES_MAX: usize = 4 << 20;

/// How often a store that catches up is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

type Answer = oneshot::Sender<Result<(), Error>>;

/// A write on its way into a transaction.
pub(super) struct Waiting {
    item: Item,
    position: Position,
    /// Who waits for it.
    done: Option<Answer>,
    /// The journal's reader has brought it too: its record counts as stored with it.
    came: bool,
}

impl Waiting {
    fn new(write: Box<ToolWrite>, done: Option<Answer>) -> Self {
        Self { position: write.position(), item: Item::Tool(write), done, came: false }
    }

    fn answer(self, result: Result<(), Error>) {
        if let Some(done) = self.done {
            // A caller that no longer waits finds its row on the next read, or the error in the journal's reader.
            let _ = done.send(result);
        }
    }
}

/// Writes that nobody waits for, until they are committed.
#[derive(Default)]
pub(super) struct Soon {
    waiting: Vec<Waiting>,
    bytes: usize,
    since: Option<Instant>,
}

impl Soon {
    fn push(&mut self, waiting: Waiting) {
        self.bytes += waiting.item.weight();
        self.since.get_or_insert_with(Instant::now);
        self.waiting.push(waiting);
    }

    fn is_full(&self) -> bool {
        self.waiting.len() >= WRITES_MAX || self.bytes >= BYTES_MAX
    }

    /// When they have waited long enough.
    pub fn due(&self) -> Option<Instant> {
        self.since.map(|since| since + WAIT)
    }

    /// The journal's reader brings that record; true when it waits here.
    pub fn came(&mut self, position: Position) -> bool {
        let found = self.waiting.iter_mut().rev().find(|waiting| waiting.position == position);
        found.map(|waiting| waiting.came = true).is_some()
    }
}

impl Store {
    /// Stores what a tool wrote together with what others write meanwhile, and returns without its COMMIT: the next
    /// read through a handle of this store waits for it. While commits fail it waits as [`Store::write`] does. Only
    /// for what is in the journal.
    ///
    /// # Errors
    /// As [`Store::write`] while commits fail, and [`Error::Closed`].
    pub async fn write_soon(&self, write: ToolWrite) -> Result<(), Error> {
        let shared = &self.inner.shared;
        if shared.status().failed.is_some() {
            return self.write(write).await;
        }
        // Counted only once there is a place for it: a caller that goes away while it waits leaves nothing behind.
        let place = self.inner.awaited.reserve().await.map_err(|_| Error::Closed)?;
        shared.soon.fetch_add(1, Ordering::SeqCst);
        place.send(Command::Soon(Box::new(write)));
        Ok(())
    }

    /// Waits until every record of the traces lane up to this one is committed, at most so long: what was answered as
    /// stored before a start is then seen by the first question after it.
    pub async fn caught_up(&self, through: u64, most: Duration) {
        let catching_up = async {
            loop {
                let (done, answer) = oneshot::channel();
                let asked = self.inner.awaited.send(Command::Came(done)).await;
                let (Ok(()), Ok((came, committed))) = (asked, answer.await) else { return };
                if committed >= through {
                    return;
                }
                if came >= through {
                    // An error is in the status, and tried again.
                    let _ = self.flush().await;
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        // What takes longer is seen when it is there.
        let _ = tokio::time::timeout(most, catching_up).await;
    }

    /// Reads, after what was handed over before is committed.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Reader<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.settle().await?;
        self.inner.readers.read(work).await
    }

    /// Waits until what tools handed over is committed, or waits elsewhere because it cannot be.
    pub(super) async fn settle(&self) -> Result<(), Error> {
        if self.inner.shared.soon.load(Ordering::SeqCst) == 0 {
            return Ok(());
        }
        let most = self.inner.readers.deadline();
        match tokio::time::timeout(most, self.ask(Command::Settle)).await {
            // Why it could not be committed is in the status; what is in the file can be read all the same.
            Ok(_) => Ok(()),
            Err(_) => Err(Error::Busy(most)),
        }
    }
}

impl Writer {
    /// Takes whatever else waits beside this write and commits all of it in one transaction.
    pub fn write_awaited(&mut self, state: &mut State, write: Box<ToolWrite>, done: Answer) {
        self.commit_soon(state);
        let mut waiting = vec![Waiting::new(write, Some(done))];
        let mut other = None;
        while waiting.len() < AWAITED_MAX {
            match self.awaited.try_recv() {
                Ok(Command::Write(write, done)) => waiting.push(Waiting::new(write, Some(done))),
                Ok(command) => {
                    other = Some(command);
                    break;
                }
                Err(_) => break,
            }
        }
        self.commit_tools(state, waiting);
        if let Some(command) = other {
            self.command(state, command);
        }
    }

    /// Keeps a write for the next transaction of its kind.
    pub fn write_soon(&mut self, state: &mut State, write: Box<ToolWrite>) {
        state.soon.push(Waiting::new(write, None));
        if state.soon.is_full() {
            self.commit_soon(state);
        }
    }

    /// Commits what tools wrote without waiting. What the database refuses is tried again when the journal's reader
    /// has brought it.
    pub fn commit_soon(&mut self, state: &mut State) {
        let soon = std::mem::take(&mut state.soon).waiting;
        if !soon.is_empty() {
            let landed = soon.len();
            self.commit_tools(state, soon);
            self.shared.landed(landed);
        }
    }

    fn commit_tools(&mut self, state: &mut State, waiting: Vec<Waiting>) {
        let mut fresh = Vec::new();
        for one in waiting {
            if state.pending.has_tool(one.position) {
                // The journal's reader was faster: it waits in the group.
                let result = self.commit_all(state);
                one.answer(result);
            } else if self.tracker.has_tool(one.position) {
                self.is_in(one, Ok(()));
            } else {
                match self.still_standing(one) {
                    Ok(one) => fresh.push(one),
                    Err(gone) => self.is_in(gone, Ok(())),
                }
            }
        }
        if fresh.is_empty() {
            return;
        }
        // What waits of a trace that is deleted has to be in the file before it is deleted there.
        if fresh.iter().any(|one| one.item.is_deletion())
            && let Err(error) = self.commit_all(state)
        {
            fresh.into_iter().for_each(|one| Self::not_in(state, one, error.clone()));
            return;
        }
        let items: Vec<&Item> = fresh.iter().map(|one| &one.item).collect();
        let together = self.write_on_tools(state, &items);
        let alone = items.len() > 1 && matches!(&together, Err(error) if error.may_be_a_row());
        let mut committed = false;
        for one in fresh {
            let result = if alone { self.write_on_tools(state, &[&one.item]) } else { together.clone() };
            committed |= result.is_ok();
            match result {
                Ok(()) => {
                    self.tracker.tool_stored(one.position);
                    self.is_in(one, Ok(()));
                }
                Err(error) => {
                    state.is_broken |= error.ends_engine();
                    self.shared.set_failed(&error);
                    Self::not_in(state, one, error);
                }
            }
        }
        if committed {
            self.after_commit(state);
        }
    }

    /// The same write as far as it is still to be stored; `Err` is one of which nothing is.
    fn still_standing(&self, one: Waiting) -> Result<Waiting, Waiting> {
        let Waiting { item: Item::Tool(write), position, done, came } = one else { return Err(one) };
        match self.standing(write) {
            Ok(write) => Ok(Waiting { item: Item::Tool(write), position, done, came }),
            Err(_) => Err(Waiting { item: Item::Settled(self.positions.settled), position, done, came }),
        }
    }

    /// It is stored, or never will be: its record is complete, if the journal's reader announced it.
    fn is_in(&mut self, one: Waiting, result: Result<(), Error>) {
        if one.came {
            let mut done = Done::default();
            done.row(one.position);
            self.tracker.commit(&done);
        }
        one.answer(result);
    }

    /// It is not stored: it waits in the group if the journal's reader has brought it, and otherwise for that reader.
    fn not_in(state: &mut State, one: Waiting, error: Error) {
        let Waiting { item, done, came, .. } = one;
        if came {
            state.pending.push(item);
        }
        if let Some(done) = done {
            // A caller that no longer waits learns it from the journal's reader.
            let _ = done.send(Err(error));
        }
    }

    fn write_on_tools(&mut self, state: &mut State, items: &[&Item]) -> Result<(), Error> {
        let positions = Positions { stored: self.tracker.through().max(self.positions.stored), ..self.positions };
        let changed = (positions != self.positions).then_some(positions);
        if !items.iter().any(|item| item.is_deletion()) {
            self.check_share()?;
        }
        group::write(&self.tools, items, changed, (self.now)(), &mut state.scratch)?;
        if items.iter().any(|item| item.is_deletion()) {
            self.erase_from(state, (self.now)());
        }
        state.fold.came(items);
        self.positions = positions;
        self.shared.awaited_committed(items.len());
        Ok(())
    }
}
