//! The one task that owns the Assembler and everything that has to happen in order.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use iris_core::assemble::{Assembler, Dropped, Effect, Loaded, Room, Settled, Settling, View};
use iris_core::dialect;
use iris_core::model::{Evaluation, Lane, Position, RowKey, Tenant, Trace};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio::time::Instant;

use super::super::worker::{Pool, Task, Work};
use super::decode::{Content, Decoded, read_again};
use super::follow::{Arrived, Feeds};
use super::status::NAMED_MAX;
use super::suspects::{self, Suspects};
use super::{Judging, LANES, LaneLag, Mind, PipelineStatus, Said, SetAside};
use crate::deleted::Deletions;
use crate::journal::{Journal, LaneStatus};
use crate::store::{self, Packed, Store, Through, Write};

/// Traces handed to the workers at a time.
const JUDGINGS_MAX: usize = 32;
/// Traces being loaded from the store at a time.
const LOADS_MAX: usize = 4;
/// Writes that wait for the store's queue before no more is read.
const OUTBOX_READ_MAX: usize = 64;
/// Writes that wait for the store's queue before no more traces are handed out.
const OUTBOX_JUDGE_MAX: usize = 96;
/// A trace that waits for the workers so long after its time says that they are behind.
const BEHIND: Duration = Duration::from_millis(250);
/// How often the journal's bytes and the settled position are looked at.
const ROUND: Duration = Duration::from_secs(1);
/// The least time between two checkpoints asked for.
const CHECKPOINT_PAUSE: Duration = Duration::from_secs(30);
/// The same while a lane is nearly full of what is not stored: each makes room, or it would be full again at once.
const CHECKPOINT_PAUSE_NEARLY_FULL: Duration = Duration::from_secs(2);
/// The same while a lane refuses.
const CHECKPOINT_PAUSE_FULL: Duration = Duration::from_secs(1);
/// A settled position that no evaluation carried to the store is sent this often, and only beside rows.
const SETTLED_PAUSE: Duration = Duration::from_secs(30);

/// What is asked of the owner.
pub(super) enum Command {
    View(RowKey, oneshot::Sender<Option<View>>),
    Views(Tenant, usize, oneshot::Sender<Vec<View>>),
    Forget(RowKey, oneshot::Sender<()>),
    Drain(oneshot::Sender<()>),
}

/// What the owner works with.
pub(super) struct Rooms {
    pub assembler: Assembler,
    pub journal: Journal,
    pub store: Store,
    pub deleted: Deletions,
    pub pool: Pool,
    pub mind: Mind,
    pub feeds: Feeds,
    pub requests: mpsc::Receiver<Command>,
    /// Rows above `stored_through` that are stored.
    pub stored: HashSet<Position>,
    pub suspects: Suspects,
    pub status: Arc<Mutex<PipelineStatus>>,
}

type Settlement = Option<(Box<Trace>, Box<Evaluation>)>;

/// A job that is done.
enum Finished {
    Judged { key: RowKey, previous: Option<Arc<Evaluation>>, settled: Result<Settlement, &'static str> },
    Loaded { key: RowKey, loaded: Result<Loaded, String> },
    Checkpointed(Result<(), store::Error>),
}

/// Where a lane stood when the pipeline started.
struct Start {
    acknowledged: u64,
    records: u64,
    /// Records taken that came after the start.
    taken: u64,
}

pub(super) struct Owner {
    rooms: Rooms,
    started: Instant,
    /// What the store will have of rows that are not on their way to it yet.
    packed: HashMap<Position, Packed>,
    outbox: VecDeque<(Write, Option<OwnedSemaphorePermit>)>,
    sending: Option<BoxFuture<'static, Result<(), store::Error>>>,
    jobs: FuturesUnordered<BoxFuture<'static, Finished>>,
    judgings: usize,
    loads: usize,
    checkpointing: bool,
    checkpoint_asked: Option<Instant>,
    /// Verdicts that wait for their commit.
    uncommitted: VecDeque<(u64, Judging)>,
    draining: Option<oneshot::Sender<()>>,
    starts: Vec<(Lane, Start)>,
    lanes: Vec<LaneLag>,
    /// The settled position last sent, when, and whether rows went to the store since.
    settled_sent: (Settled, Instant, bool),
    judged: u64,
    said: Said,
    rows: u64,
    unmapped: BTreeMap<&'static str, u64>,
    load_failures: u64,
    poisoned: u64,
}

impl Owner {
    pub(super) fn new(rooms: Rooms) -> Self {
        let status = rooms.journal.status();
        let mut starts = Vec::new();
        for lane in LANES {
            let of_lane = status.iter().find(|status| status.lane == lane);
            let (acknowledged, records) = of_lane.map_or((0, 0), |status| (status.acknowledged, status.records));
            starts.push((lane, Start { acknowledged, records, taken: 0 }));
        }
        let now = Instant::now();
        let settled = rooms.assembler.settled();
        Self {
            rooms,
            started: now,
            packed: HashMap::new(),
            outbox: VecDeque::new(),
            sending: None,
            jobs: FuturesUnordered::new(),
            judgings: 0,
            loads: 0,
            checkpointing: false,
            checkpoint_asked: None,
            uncommitted: VecDeque::new(),
            draining: None,
            starts,
            lanes: Vec::new(),
            settled_sent: (settled, now, false),
            judged: 0,
            said: Said::default(),
            rows: 0,
            unmapped: BTreeMap::new(),
            load_failures: 0,
            poisoned: 0,
        }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Runs until it is drained or the store is closed.
    pub(super) async fn run(mut self) {
        let mut committed = self.rooms.store.committed();
        let mut checkpointed = self.rooms.store.checkpointed();
        let mut round = tokio::time::interval(ROUND);
        round.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            self.send_next();
            if self.is_drained() {
                break;
            }
            let reads = self.draining.is_none()
                && self.outbox.len() < OUTBOX_READ_MAX
                && !self.rooms.assembler.is_over_limit()
                && !self.is_behind();
            let due = self.next_due();
            tokio::select! {
                biased;
                command = self.rooms.requests.recv() => match command {
                    Some(command) => self.answer(command),
                    None => break,
                },
                sent = sending(&mut self.sending) => {
                    self.sending = None;
                    if sent.is_err() {
                        tracing::error!("the store is closed: what is journalled waits for the next start");
                        self.publish(true);
                        return;
                    }
                }
                Some(finished) = self.jobs.next(), if !self.jobs.is_empty() => self.finish(finished),
                ticket = changed(&mut committed) => self.committed(ticket),
                through = changed(&mut checkpointed) => self.checkpointed(through),
                () = until(due) => self.tick(),
                arrived = self.rooms.feeds.next(), if reads => self.take(arrived),
                _ = round.tick() => self.round(),
            }
            self.publish(false);
        }
        if let Some(done) = self.draining.take() {
            // The one who asked has given up waiting.
            let _ = done.send(());
        }
    }

    /// Starts the next send when none is under way.
    fn send_next(&mut self) {
        if self.sending.is_some() {
            return;
        }
        if let Some((write, permit)) = self.outbox.pop_front() {
            let store = self.rooms.store.clone();
            self.sending = Some(Box::pin(async move { store.send_held(write, permit).await }));
        }
    }

    fn room(&self) -> Room {
        if self.outbox.len() >= OUTBOX_JUDGE_MAX {
            return Room { judgings: 0, loads: 0 };
        }
        Room { judgings: JUDGINGS_MAX - self.judgings, loads: LOADS_MAX - self.loads }
    }

    /// Traces that should be judged wait for the workers, or those in work or about to be hold the memory: what is read
    /// now would only fill it, be spilled, and have to be loaded again one by one. It waits in the journal instead.
    fn is_behind(&self) -> bool {
        let late = |due: Duration| due + BEHIND < self.now();
        let leaves = self.judgings > 0 || self.rooms.assembler.makes_room();
        (leaves && self.rooms.assembler.is_nearly_full())
            || (self.room().judgings == 0 && self.rooms.assembler.next_due().is_some_and(late))
    }

    fn next_due(&self) -> Option<Instant> {
        if self.room().judgings == 0 {
            return None;
        }
        self.rooms.assembler.next_due().map(|due| self.started + due)
    }

    fn tick(&mut self) {
        let effects = self.rooms.assembler.tick(self.now(), self.room());
        self.apply(effects, None);
    }

    fn is_drained(&mut self) -> bool {
        if self.draining.is_none() || !self.outbox.is_empty() || self.sending.is_some() || self.judgings > 0 {
            return false;
        }
        let now = self.now();
        if self.rooms.assembler.next_due().is_some_and(|due| due <= now) {
            return false;
        }
        // Loads are left: their traces are in the store and are found there by the next start.
        let (sent, _, rows) = self.settled_sent;
        if rows && sent != self.rooms.assembler.settled() {
            self.send_settled();
            return false;
        }
        true
    }

    fn answer(&mut self, command: Command) {
        // Whoever asked may have given up waiting.
        match command {
            Command::View(key, answer) => {
                let _ = answer.send(self.rooms.assembler.view(&key));
            }
            Command::Views(tenant, max, answer) => {
                let _ = answer.send(self.rooms.assembler.views(&tenant, max));
            }
            Command::Forget(key, answer) => {
                let effects = self.rooms.assembler.forget(&key);
                self.apply(effects, None);
                let _ = answer.send(());
            }
            Command::Drain(answer) => self.draining = Some(answer),
        }
    }

    /// Takes the next record of a lane.
    fn take(&mut self, arrived: Arrived) {
        let Arrived { decoded, permit } = arrived;
        let Decoded { lane, seq, arrived, content } = decoded;
        let now = self.now();
        self.note_lane(lane, seq, arrived);
        let (mut rows, mut tool) = (Vec::new(), None);
        match content {
            Content::Rows(all) => {
                let (stored, deleted) = (&mut self.rooms.stored, &self.rooms.deleted);
                let nothing_deleted = deleted.is_empty();
                for (row, packed) in all {
                    if !stored.remove(&row.position) && (nothing_deleted || !deleted.contains(&row.key())) {
                        self.packed.insert(row.position, packed);
                        rows.push(row);
                    }
                }
                for dialect in rows.iter().filter_map(|row| dialect::closest(&row.reading)) {
                    *self.unmapped.entry(dialect).or_default() += 1;
                }
            }
            Content::Tool(write) => {
                self.delete(&write);
                tool = Some(write);
            }
            Content::Nothing => {}
            Content::Unreadable(why) => self.set_aside(SetAside::Record { lane, seq, why }),
        }
        let holds = rows.len() + usize::from(tool.is_some());
        self.outbox.push_back((Write::Record { lane, seq, rows: u32::try_from(holds).unwrap_or(u32::MAX) }, None));
        if let Some(write) = tool {
            self.outbox.push_back((Write::Tool(write), None));
        }
        let effects = self.rooms.assembler.push(now, lane, seq, rows);
        self.apply(effects, Some(permit));
    }

    /// A deletion was met in the journal: it was made by a process that ended before it was done, or by this one.
    fn delete(&mut self, write: &store::ToolWrite) {
        if let Err(error) = write.remember(&self.rooms.deleted) {
            tracing::error!(%error, "a deletion could not be remembered; later spans of the trace will be stored");
        }
        for key in write.deletes() {
            let effects = self.rooms.assembler.forget(&key);
            self.apply(effects, None);
        }
    }

    fn note_lane(&mut self, lane: Lane, seq: u64, arrived: iris_core::model::Timestamp) {
        let mut replaying = false;
        if let Some((_, start)) = self.starts.iter_mut().find(|(of, _)| *of == lane) {
            start.taken += u64::from(seq > start.acknowledged);
            replaying = seq < start.acknowledged;
        }
        let taken = LaneLag { lane, read_through: seq, records: 1, arrived, lag: 0, replaying };
        match self.lanes.iter_mut().find(|known| known.lane == lane) {
            // What waits behind it is counted once a second.
            Some(known) => *known = LaneLag { records: known.records + 1, lag: known.lag.saturating_sub(1), ..taken },
            None => self.lanes.push(taken),
        }
    }

    /// Does what the Assembler asks for. The share of the window goes with the last write.
    fn apply(&mut self, effects: Vec<Effect>, permit: Option<OwnedSemaphorePermit>) {
        for effect in effects {
            match effect {
                Effect::Store(rows) => {
                    self.rows += rows.len() as u64;
                    self.settled_sent.2 = true;
                    let rows = rows.iter().filter_map(|row| self.packed.remove(&row.position)).collect();
                    self.outbox.push_back((Write::Rows(rows), None));
                }
                Effect::Drop { rows, why } => self.drop_rows(&rows, why),
                Effect::Settle(settling) => self.judge(settling),
                Effect::Load(key) => self.load(key),
                Effect::Spill(_) => {}
            }
        }
        if let Some(last) = self.outbox.back_mut()
            && last.1.is_none()
        {
            last.1 = permit;
        }
    }

    fn drop_rows(&mut self, rows: &[Position], why: Dropped) {
        tracing::trace!(rows = rows.len(), ?why, "rows are not stored");
        let mut counts = BTreeMap::new();
        for row in rows {
            self.packed.remove(row);
            *counts.entry((row.lane, row.seq)).or_insert(0_u32) += 1;
        }
        let writes = counts.into_iter().map(|((lane, seq), rows)| (Write::Dropped { lane, seq, rows }, None));
        self.outbox.extend(writes);
    }

    fn judge(&mut self, settling: Box<Settling>) {
        let (key, previous) = (settling.key.clone(), settling.previous.clone());
        let hash = suspects::hash(&key);
        self.judgings += 1;
        if self.rooms.suspects.is_aside(hash) {
            let settled = Err("the process ended while it was judged, time and again");
            self.jobs.push(Box::pin(std::future::ready(Finished::Judged { key, previous, settled })));
            return;
        }
        let alone = self.rooms.suspects.careful.get(&hash).copied();
        let task = Task { work: Some(Work::Trace { hash }), alone };
        let (pool, mind) = (self.rooms.pool.clone(), self.rooms.mind.clone());
        self.jobs.push(Box::pin(async move {
            let settled = match pool.submit(task, move || mind.settle(&settling)).await.await {
                Ok(settled) => settled.map_err(|_| "judging it panicked"),
                // The threads are gone: the process is stopping, and the trace must not count as judged.
                Err(_) => pending().await,
            };
            Finished::Judged { key, previous, settled }
        }));
    }

    fn load(&mut self, key: RowKey) {
        self.loads += 1;
        let (store, pool, mind) = (self.rooms.store.clone(), self.rooms.pool.clone(), self.rooms.mind.clone());
        self.jobs.push(Box::pin(async move {
            let loaded = async {
                let found = store.load(&key).await.map_err(|error| error.to_string())?;
                let (version, evaluation) = (found.version, found.evaluation.map(Arc::new));
                let again = move || read_again(found.rows, &mind);
                let rows = pool.submit(Task::QUESTION, again).await.await;
                let rows = rows.map_err(|_| "the workers have ended")?.map_err(|_| "reading its rows panicked")?;
                Ok(Loaded { rows, version, evaluation })
            };
            let loaded = loaded.await;
            Finished::Loaded { key, loaded }
        }));
    }

    fn finish(&mut self, finished: Finished) {
        match finished {
            Finished::Judged { key, previous, settled } => {
                self.judgings -= 1;
                self.rooms.suspects.clear(suspects::hash(&key));
                match settled {
                    Ok(Some((trace, evaluation))) => self.store_judged(key, previous, trace, evaluation),
                    Ok(None) => {
                        self.rooms.assembler.judged(&key, None);
                    }
                    Err(why) => {
                        self.set_aside(SetAside::Trace { trace_id: key.trace_id.to_string(), why: why.to_owned() });
                        self.rooms.assembler.judged(&key, None);
                    }
                }
            }
            Finished::Loaded { key, loaded } => {
                self.loads -= 1;
                let now = self.now();
                match loaded {
                    Ok(loaded) => {
                        let effects = self.rooms.assembler.loaded(now, &key, loaded);
                        self.apply(effects, None);
                    }
                    Err(why) => {
                        self.load_failures += 1;
                        tracing::warn!(why, "a trace could not be loaded and is asked for again");
                        self.rooms.assembler.load_failed(now, &key);
                    }
                }
            }
            Finished::Checkpointed(done) => {
                self.checkpointing = false;
                if let Err(error) = done {
                    tracing::warn!(%error, "a checkpoint that the journal waits for failed");
                }
            }
        }
    }

    fn store_judged(
        &mut self,
        key: RowKey,
        previous: Option<Arc<Evaluation>>,
        trace: Box<Trace>,
        evaluation: Box<Evaluation>,
    ) {
        let evaluation: Arc<Evaluation> = Arc::from(evaluation);
        let judged = self.rooms.assembler.judged(&key, Some(Arc::clone(&evaluation)));
        if self.rooms.mind.judged.is_some() {
            let run_spans = trace.runs.iter().filter_map(|run| run.span_id).collect();
            self.uncommitted
                .push_back((judged.ticket, Judging { key, run_spans, evaluation: Arc::clone(&evaluation), previous }));
        }
        self.judged += 1;
        self.said.add(&evaluation);
        self.settled_sent = (judged.settled_through, Instant::now(), false);
        let settled_through = through(judged.settled_through);
        self.outbox.push_back((Write::Judged { ticket: judged.ticket, trace, evaluation, settled_through }, None));
    }

    fn committed(&mut self, ticket: u64) {
        self.rooms.assembler.committed(ticket);
        while self.uncommitted.front().is_some_and(|(next, _)| *next <= ticket) {
            if let (Some((_, judging)), Some(tell)) = (self.uncommitted.pop_front(), &self.rooms.mind.judged) {
                tell(&judging);
            }
        }
    }

    fn checkpointed(&self, through: Through) {
        for lane in LANES {
            self.rooms.journal.stored(lane, through.of(lane));
        }
    }

    /// Once a second: what no event brings about.
    fn round(&mut self) {
        let (sent, at, rows) = self.settled_sent;
        if rows && at.elapsed() >= SETTLED_PAUSE && sent != self.rooms.assembler.settled() {
            self.send_settled();
        }
        let status = self.rooms.journal.status();
        for lag in &mut self.lanes {
            let of_lane = status.iter().find(|status| status.lane == lag.lane);
            let start = self.starts.iter().find(|(lane, _)| *lane == lag.lane);
            if let (Some(status), Some((_, start))) = (of_lane, start) {
                lag.lag = status.records.saturating_sub(start.records).saturating_sub(start.taken);
            }
        }
        // Segments go once a checkpoint is past them: a lane that fills up asks for one.
        let waits = status.iter().any(|status| {
            let taken = self.lanes.iter().find(|lag| lag.lane == status.lane).map_or(0, |lag| lag.read_through);
            status.bytes > status.bytes_max / 4 && taken > status.stored
        });
        let pause = |status: &LaneStatus| match status.refusing_ms {
            Some(_) => CHECKPOINT_PAUSE_FULL,
            None if status.unstored_bytes > status.bytes_max / 4 * 3 => CHECKPOINT_PAUSE_NEARLY_FULL,
            None => CHECKPOINT_PAUSE,
        };
        let pause = status.iter().map(pause).min().unwrap_or(CHECKPOINT_PAUSE);
        let lately = self.checkpoint_asked.is_some_and(|asked| asked.elapsed() < pause);
        if waits && !self.checkpointing && !lately {
            self.checkpointing = true;
            self.checkpoint_asked = Some(Instant::now());
            let store = self.rooms.store.clone();
            self.jobs.push(Box::pin(async move { Finished::Checkpointed(store.checkpoint().await) }));
        }
    }

    fn send_settled(&mut self) {
        let settled = self.rooms.assembler.settled();
        self.settled_sent = (settled, Instant::now(), false);
        self.outbox.push_back((Write::Settled { settled_through: through(settled) }, None));
    }

    fn set_aside(&mut self, what: SetAside) {
        tracing::error!(?what, "set aside");
        self.poisoned += 1;
        let mut status = self.rooms.status.lock().unwrap_or_else(PoisonError::into_inner);
        if status.set_aside.len() < NAMED_MAX {
            status.set_aside.push(what);
        }
    }

    fn publish(&self, failed: bool) {
        let mut status = self.rooms.status.lock().unwrap_or_else(PoisonError::into_inner);
        status.traces = self.rooms.assembler.counts();
        status.lanes.clone_from(&self.lanes);
        status.settled_through = self.rooms.assembler.settled();
        if status.judged != self.judged {
            status.said.clone_from(&self.said);
        }
        status.judged = self.judged;
        status.judging = self.judgings;
        status.outbox = self.outbox.len() + usize::from(self.sending.is_some());
        status.rows = self.rows;
        if status.unmapped != self.unmapped {
            status.unmapped.clone_from(&self.unmapped);
        }
        status.load_failures = self.load_failures;
        status.poisoned = self.poisoned;
        status.failed = failed;
    }
}

fn through(settled: Settled) -> store::Settled {
    Through { traces: settled.traces, logs: settled.logs, metrics: 0 }
}

/// The send under way; never, when there is none.
async fn sending(sending: &mut Option<BoxFuture<'static, Result<(), store::Error>>>) -> Result<(), store::Error> {
    match sending {
        Some(sending) => sending.await,
        None => pending().await,
    }
}

/// The next value of a watch; never, when the store is gone: the next send says so.
async fn changed<T: Copy>(watch: &mut watch::Receiver<T>) -> T {
    match watch.changed().await {
        Ok(()) => *watch.borrow_and_update(),
        Err(_) => pending().await,
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => pending().await,
    }
}
