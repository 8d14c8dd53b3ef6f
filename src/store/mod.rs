//! Keeps spans, traces and evaluations in an embedded DuckDB file, `home/iris.duckdb`.
//!
//! Owns the file, its schema, its one writing thread and its reading connections. Rows enter through
//! [`Store::send`], grouped and committed together with the journal positions they complete, and through
//! [`Store::write`], committed at once. Answers leave through the reading methods, each one READ ONLY
//! transaction with a deadline.
//!
//! Nothing here reads the journal, decodes OTLP, reads a dialect or composes a verdict; a stored row gives back
//! exactly the span or log record that was sent. Everything is append-only: a newer version of a trace or a newer
//! evaluation is a new row, and only retention deletes.

mod apart;
mod beside;
mod boot;
mod budget;
mod check;
mod config;
mod costs;
mod damage;
mod erase;
mod error;
mod evaluations;
mod fetch;
mod fold;
mod group;
mod known;
mod listing;
mod long;
mod mend;
mod newest;
mod open;
mod packed;
mod page;
mod pending;
mod purge;
mod query;
mod reader;
mod retention;
mod rewrite;
mod salvage;
mod schema;
mod search;
mod series;
mod shapes;
mod soon;
mod spans;
mod sql;
mod standing;
mod status;
mod summary;
#[cfg(test)]
mod tests;
mod traces;
mod track;
mod verdicts;
mod words;
mod writer;

#[cfg(any(test, fuzzing))]
pub(crate) use sql::fuzzed as fuzzed_sql;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use iris_core::contract::Summary;
use iris_core::model::{Evaluation, Lane, Position, RawSpan, Row, RowKey, Tenant, Timestamp, Trace, TraceId};
use tokio::sync::{mpsc, oneshot, watch};

use crate::deleted::Deletions;

pub use apart::{COMMAND as APART, DAMAGED, HINDERED};
pub use boot::Boot;
pub use check::{Checked, check, look, probe};
pub use config::Config;
pub use costs::TraceCost;
pub use damage::{Damage, Part as DamagedPart, repair, suspect};
pub use error::Error;
pub use listing::{EvaluationQuery, Judged};
pub use packed::Packed;
pub use page::{Budget, Lost, PageRow, TracePage};
pub use query::{Bounds, Loaded, Part, TraceQuery};
pub use retention::Retention;
pub use rewrite::Erase;
pub use salvage::{Salvaged, salvage};
pub use search::Unread;
pub use series::{By, Figures, NAMES_MAX, POINTS_MAX, Said, Series, SessionRow, Step, Window};
pub use sql::{FUNCTIONS as SQL_FUNCTIONS, Found, VIEWS as SQL_VIEWS, View};
pub use standing::Standing;
pub use status::Status;
pub use track::{Settled, Through};

use beside::Beside;
use reader::Readers;
use writer::{Command, Writer};

/// Messages that wait for the writer before senders do.
const ORDINARY_MAX: usize = 128;
/// Awaited writes that wait for the writer before their callers wait for a place.
const AWAITED_MAX: usize = 64;

/// A share of what may be in memory, given back when it is dropped.
pub type Held = Option<tokio::sync::OwnedSemaphorePermit>;

/// A write on its way to the writer.
struct Sent {
    write: Write,
    /// Given back once the writer has taken the write.
    _held: Held,
}

/// Something for the writer. The order within the channel matters.
#[derive(Debug, Clone)]
pub enum Write {
    /// A journal record was read; sent in the order of its lane. It holds this many rows; 0: nothing to store.
    Record {
        /// Its lane.
        lane: Lane,
        /// Its sequence number.
        seq: u64,
        /// Rows, or tool writes, that it holds.
        rows: u32,
    },
    /// Store these.
    Rows(Vec<Packed>),
    /// That many rows of that record will never be stored, or are stored already.
    Dropped {
        /// Its lane.
        lane: Lane,
        /// Its sequence number.
        seq: u64,
        /// How many.
        rows: u32,
    },
    /// A tool's record was met while reading the journal: store it unless its position is stored already.
    Tool(Box<ToolWrite>),
    /// A trace settled and was judged.
    Judged {
        /// Comes back through [`Store::committed`].
        ticket: u64,
        /// The trace's new version.
        trace: Box<Trace>,
        /// Its evaluation, shared with whoever goes on assembling the trace.
        evaluation: Arc<Evaluation>,
        /// Every stored span at or below is covered by an evaluation, this one included.
        settled_through: Settled,
    },
    /// Nothing was judged, but the settled position moved.
    Settled {
        /// Every stored span at or below is covered by an evaluation.
        settled_through: Settled,
    },
}

/// What a tool writes, stored exactly once by its position, whichever way it comes first. Its JSON is the body of
/// its journal record.
#[expect(clippy::large_enum_variant, reason = "it always stands in a box of its own")]
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub enum ToolWrite {
    /// A trace given to `log_trace`.
    Trace {
        /// The trace.
        trace: Trace,
        /// Its spans.
        spans: Vec<RawSpan>,
        /// Its journal record.
        position: Position,
    },
    /// An evaluation made by a tool.
    Evaluation {
        /// The evaluation.
        evaluation: Evaluation,
        /// Its journal record.
        position: Position,
    },
    /// A trace is deleted.
    Deletion {
        /// Whose.
        tenant: Tenant,
        /// Which.
        trace_id: TraceId,
        /// Its journal record.
        position: Position,
    },
    /// Traces are deleted together with their evaluations.
    Purge {
        /// Whose.
        tenant: Tenant,
        /// Which.
        trace_ids: Vec<TraceId>,
        /// And every evaluation of no trace that is left, made before this time.
        evaluations_before: Option<Timestamp>,
        /// Its journal record.
        position: Position,
    },
}

impl ToolWrite {
    /// The journal record it came from.
    pub const fn position(&self) -> Position {
        match self {
            Self::Trace { position, .. }
            | Self::Evaluation { position, .. }
            | Self::Deletion { position, .. }
            | Self::Purge { position, .. } => *position,
        }
    }

    /// Sets the journal record, which is known only once it is written.
    pub const fn place(&mut self, record: Position) {
        match self {
            Self::Evaluation { evaluation, position } => {
                // The evaluation is written again from itself when its trace is deleted.
                evaluation.position = Some(record);
                *position = record;
            }
            Self::Trace { position, .. } | Self::Deletion { position, .. } | Self::Purge { position, .. } => {
                *position = record;
            }
        }
    }

    fn spans(&self) -> &[RawSpan] {
        match self {
            Self::Trace { spans, .. } => spans,
            Self::Evaluation { .. } | Self::Deletion { .. } | Self::Purge { .. } => &[],
        }
    }
}

/// The store. Clones are handles to the same one; it ends when it is closed or the last handle goes.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    ordinary: mpsc::Sender<Sent>,
    awaited: mpsc::Sender<Command>,
    readers: Arc<Readers>,
    shared: status::Shared,
    writer: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Store {
    /// Opens or creates `home/iris.duckdb` and starts the writer. Blocks: call it on a thread of its own.
    ///
    /// # Errors
    /// [`Error::Locked`], [`Error::Newer`], [`Error::NoPermission`] and [`Error::NoSpace`] say that the file is
    /// whole but cannot be had: try again later. A damaged file is no error: see [`Boot::damage`].
    ///
    /// Nothing of a trace among the `deleted` is stored any more.
    pub fn open(home: &Path, config: &Config, deleted: Deletions) -> Result<(Self, Boot), Error> {
        Self::open_at(home, config, deleted, wall_clock)
    }

    fn open_at(
        home: &Path,
        config: &Config,
        deleted: Deletions,
        now: fn() -> Timestamp,
    ) -> Result<(Self, Boot), Error> {
        config.check()?;
        let config = &config.within_share();
        let (origin, found, damage) = damage::open(home, config, now(), |connection| {
            let (boot, tools) = boot::read(connection)?;
            Ok((boot, tools, Beside::of(connection)?, rewrite::asked(connection)?))
        })?;
        let (boot, tools, beside, erase_asked) = found;
        let boot = Boot { damage, ..boot };
        let (ordinary, ordinary_end) = mpsc::channel(ORDINARY_MAX);
        let (awaited, awaited_end) = mpsc::channel(AWAITED_MAX);
        let shared = status::Shared {
            status: Arc::new(Mutex::new(Status {
                stored_through: boot.stored_through,
                settled_through: boot.settled_through,
                damage: boot.damage.clone(),
                ..Status::default()
            })),
            committed: watch::Sender::new(0),
            rewritten: watch::Sender::new(0),
            soon: Arc::default(),
            damaged: watch::Sender::new(false),
            checkpointed: watch::Sender::new(Through::default()),
        };
        let shapes = beside.shapes.known();
        let (for_spans, for_tools) = (open::clone_of(&origin)?, open::clone_of(&origin)?);
        let deadline = Duration::from_millis(config.read_deadline_ms);
        let readers = Readers::new(origin, shapes, shared.clone(), config.readers, deadline)?;
        let writer = Writer {
            spans: for_spans,
            tools: for_tools,
            readers: Arc::clone(&readers),
            home: home.to_owned(),
            erase_asked,
            ordinary: ordinary_end,
            awaited: awaited_end,
            config: config.clone(),
            wal: open::Paths::of(home).wal,
            database: open::Paths::of(home).database,
            tracker: track::Tracker::new(boot.stored_through, tools),
            positions: group::Positions { stored: boot.stored_through, settled: boot.settled_through },
            shared: shared.clone(),
            beside,
            deleted,
            now,
        };
        // Only to wait for two channels and a clock at once: nothing else runs on it.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let thread =
            std::thread::Builder::new().name("iris-store".to_owned()).spawn(move || runtime.block_on(writer.run()))?;
        let inner = Inner { ordinary, awaited, readers, shared, writer: Mutex::new(Some(thread)) };
        Ok((Self { inner: Arc::new(inner) }, boot))
    }

    /// Hands over a write and waits for a place in the queue. Not for tasks: see [`Store::send_async`].
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn send(&self, write: Write) -> Result<(), Error> {
        self.inner.ordinary.blocking_send(Sent { write, _held: None }).map_err(|_| Error::Closed)
    }

    /// Hands over a write and waits for a place in the queue.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub async fn send_async(&self, write: Write) -> Result<(), Error> {
        self.send_held(write, None).await
    }

    /// The same; what is `held` for the write is given back once the writer has taken it, in a form that is smaller.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub async fn send_held(&self, write: Write, held: Held) -> Result<(), Error> {
        self.inner.ordinary.send(Sent { write, _held: held }).await.map_err(|_| Error::Closed)
    }

    /// Stores what a tool wrote and returns after its COMMIT: the next read sees it.
    ///
    /// # Errors
    /// Whatever kept it from being committed; it is then not stored by this call.
    pub async fn write(&self, write: ToolWrite) -> Result<(), Error> {
        self.ask(|done| Command::Write(Box::new(write), done)).await
    }

    /// Commits everything sent so far.
    ///
    /// # Errors
    /// Whatever kept it from being committed.
    pub async fn flush(&self) -> Result<(), Error> {
        self.ask(Command::Flush).await
    }

    /// Commits everything sent so far and runs CHECKPOINT: asked for when much of a lane is stored but not yet
    /// behind one.
    ///
    /// # Errors
    /// Whatever kept it from being done.
    pub async fn checkpoint(&self) -> Result<(), Error> {
        self.ask(Command::Checkpoint).await
    }

    async fn ask(&self, command: impl FnOnce(oneshot::Sender<Result<(), Error>>) -> Command) -> Result<(), Error> {
        let (done, answer) = oneshot::channel();
        self.inner.awaited.send(command(done)).await.map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
    }

    /// The highest ticket of a [`Write::Judged`] that is committed.
    pub fn committed(&self) -> watch::Receiver<u64> {
        self.inner.shared.committed.subscribe()
    }

    /// The stored position that a completed CHECKPOINT contains, 0 until the first of this process.
    pub fn checkpointed(&self) -> watch::Receiver<Through> {
        self.inner.shared.checkpointed.subscribe()
    }

    /// How often the file was written anew since the start: nothing that was deleted before is in it.
    pub fn rewritten(&self) -> watch::Receiver<u64> {
        self.inner.shared.rewritten.subscribe()
    }

    /// Reads a trace's committed observations back, to go on assembling it.
    ///
    /// # Errors
    /// See [`Error`]; the same for every reading method.
    pub async fn load(&self, key: &RowKey) -> Result<Loaded, Error> {
        let key = key.clone();
        self.read(move |reader| query::load(reader, &key)).await
    }

    /// One page of traces, each with its latest evaluation. A trace that cannot be read is named beside the others.
    pub async fn traces(&self, tenant: &Tenant, query: &TraceQuery, budget: Budget) -> Result<TracePage, Error> {
        let (tenant, query) = (tenant.clone(), query.clone());
        self.read(move |reader| page::page(reader, &tenant, &query, budget)).await
    }

    /// Whether there is a row of a trace.
    ///
    /// # Errors
    /// As every reading method.
    pub async fn has_trace(&self, key: &RowKey) -> Result<bool, Error> {
        let key = key.clone();
        self.read(move |reader| query::has_trace(reader, &key)).await
    }

    /// The highest version of a trace.
    pub async fn trace(&self, tenant: &Tenant, trace_id: TraceId) -> Result<Option<Trace>, Error> {
        let key = RowKey { tenant: tenant.clone(), trace_id };
        self.read(move |reader| query::trace(reader, &key)).await
    }

    /// A trace's first observations, each once, by start; their readings are empty.
    pub async fn spans(&self, tenant: &Tenant, trace_id: TraceId, bounds: Bounds) -> Result<Part<Row>, Error> {
        let key = RowKey { tenant: tenant.clone(), trace_id };
        self.read(move |reader| query::rows(reader, &key, bounds)).await
    }

    /// A trace's last evaluations, newest first; from a large one the text that it judged is left out.
    pub async fn evaluations(
        &self,
        tenant: &Tenant,
        trace_id: TraceId,
        bounds: Bounds,
    ) -> Result<Part<Evaluation>, Error> {
        let key = RowKey { tenant: tenant.clone(), trace_id };
        self.read(move |reader| query::evaluations(reader, &key, bounds)).await
    }

    /// One evaluation by its id.
    pub async fn evaluation(&self, tenant: &Tenant, id: &str) -> Result<Option<Evaluation>, Error> {
        let (tenant, id) = (tenant.clone(), id.to_owned());
        self.read(move |reader| query::evaluation(reader, &tenant, &id)).await
    }

    /// A page of evaluations, newest first; from a large one the text that it judged is left out.
    pub async fn evaluation_page(&self, tenant: &Tenant, query: &EvaluationQuery) -> Result<Part<Evaluation>, Error> {
        let (tenant, query) = (tenant.clone(), query.clone());
        self.read(move |reader| listing::list(reader, &tenant, &query)).await
    }

    /// The evaluations that were made by themselves between two times, of all tenants, oldest first: at most so many,
    /// behind the one with the id `after`.
    pub async fn judged_between(
        &self,
        times: (Timestamp, Timestamp),
        after: &str,
        most: usize,
    ) -> Result<Vec<Judged>, Error> {
        let after = after.to_owned();
        self.read(move |reader| listing::judged_between(reader, times, &after, most)).await
    }

    /// The figures of a window; both ends belong to it.
    pub async fn summary(&self, tenant: &Tenant, since: Timestamp, now: Timestamp) -> Result<Summary, Error> {
        let tenant = tenant.clone();
        self.read(move |reader| summary::summary(reader, &tenant, since, now)).await
    }

    /// Answers one SELECT that a caller wrote from views of its tenant's rows: at most so many rows, and so many
    /// characters in all values together.
    ///
    /// # Errors
    /// [`Error::Statement`] for what is not taken, and as every reading method.
    pub async fn sql(&self, tenant: &Tenant, text: &str, rows_max: usize, chars_max: usize) -> Result<Found, Error> {
        let (tenant, text) = (tenant.clone(), text.to_owned());
        self.settle().await?;
        self.inner.readers.read_apart(move |reader| sql::run(reader, &tenant, &text, rows_max, chars_max)).await
    }

    /// The columns of each of [`SQL_VIEWS`] with their types.
    ///
    /// # Errors
    /// As every reading method.
    pub async fn sql_columns(&self, tenant: &Tenant) -> Result<Vec<Vec<(String, String)>>, Error> {
        let tenant = tenant.clone();
        self.settle().await?;
        self.inner.readers.read_apart(move |reader| sql::tables(reader, &tenant)).await
    }

    /// What the newest traces of each agent cost, newest first, for those that have a cost.
    pub async fn costs(&self) -> Result<Vec<TraceCost>, Error> {
        self.read(costs::costs).await
    }

    /// How the store is doing.
    pub fn status(&self) -> Status {
        Status { unreadable: self.inner.readers.unreadable(), ..self.inner.shared.status().clone() }
    }

    /// Commits what waits, runs CHECKPOINT if the deadline leaves time for it, and closes the file. Every later
    /// call on any handle answers [`Error::Closed`].
    ///
    /// # Errors
    /// Whatever kept the last rows from being committed; they are in the journal. [`Error::Deadline`] when the
    /// writer did not end in time.
    pub async fn close(&self, deadline: Duration) -> Result<(), Error> {
        let until = Instant::now() + deadline;
        self.inner.readers.close();
        let closed = tokio::time::timeout(deadline, self.ask(|done| Command::Close { until, done }))
            .await
            .unwrap_or(Err(Error::Deadline(deadline)));
        let thread = self.inner.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let (Some(thread), false) = (thread, matches!(closed, Err(Error::Deadline(_)))) {
            // It ends by itself now; a panic in it was logged as it happened.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
        closed
    }

    /// Waits until the writer has ended: because it was told to, or because it cannot go on with the file and the store
    /// has to be opened as at a start.
    pub async fn ended(&self) {
        self.inner.ordinary.closed().await;
    }

    /// Waits until a question, a commit or a checkpoint meets damage in the file: it is to be looked over, which only a
    /// store that is opened anew does, once [`suspect`] was called.
    pub async fn damaged(&self) {
        let mut damaged = self.inner.shared.damaged.subscribe();
        // The sender lives as long as the store.
        let _ = damaged.wait_for(|met| *met).await;
    }

    /// As if the engine had given up on the file.
    #[cfg(test)]
    pub(crate) async fn break_engine(&self) {
        let _ = self.inner.awaited.send(Command::Break).await;
    }

    /// Ends the writer, if it has not ended, without committing anything, and waits until nothing here has the file open.
    pub async fn release(&self) {
        // An error says that it has ended.
        let _ = self.inner.awaited.send(Command::Abandon).await;
        let thread = self.inner.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A panic in it was logged as it happened.
        let _ = tokio::task::spawn_blocking(move || thread.map(std::thread::JoinHandle::join)).await;
        // Waits for the questions under way; there is nothing to wait for when it was closed.
        let _ = self.inner.readers.suspend().await;
        self.inner.readers.close();
    }
}

fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}
