//! Answers questions: clones of the connection, one READ ONLY transaction a question, stopped at a deadline.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use duckdb::{Connection, InterruptHandle, ToSql};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::Error;
use super::open::clone_of;
use super::shapes::Known;
use super::status::Shared;

/// How often a query that ignored an interrupt is interrupted again: the first may fall between two statements.
const INTERRUPT_AGAIN: Duration = Duration::from_millis(20);

/// Ways in which one statement that reads may begin. Everything else is refused before the engine sees it.
const OPENINGS: [&str; 4] = ["SELECT", "WITH", "FROM", "VALUES"];

/// A bounded number of reading connections.
pub(super) struct Readers {
    idle: Mutex<Idle>,
    permits: Arc<Semaphore>,
    count: u32,
    deadline: Duration,
    shapes: Known,
    /// Rows left out because they could not be read.
    unreadable: AtomicU64,
    /// One statement of a caller at a time.
    apart: Arc<Semaphore>,
    /// Who is told of damage.
    shared: Shared,
    ends: Ends,
}

/// Numbers of rows that were the last of their tables when somebody looked: the end is looked for from there. Where rows
/// have gone since, nothing is found from there, and all are looked at.
#[derive(Debug, Default)]
pub(super) struct Ends {
    pub traces: AtomicI64,
    pub evaluations: AtomicI64,
}

/// What a question runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    /// One of the connections that are kept.
    Shared,
    /// A connection of its own that is closed afterwards.
    Apart,
}

#[derive(Debug)]
struct Idle {
    connections: Vec<Connection>,
    /// Clones replace connections that failed; gone once the store is closed.
    origin: Option<Connection>,
}

impl Readers {
    pub fn new(
        origin: Connection,
        shapes: Known,
        shared: Shared,
        count: usize,
        deadline: Duration,
    ) -> Result<Arc<Self>, Error> {
        let connections = (0..count).map(|_| clone_of(&origin)).collect::<Result<Vec<_>, _>>()?;
        Ok(Arc::new(Self {
            idle: Mutex::new(Idle { connections, origin: Some(origin) }),
            permits: Arc::new(Semaphore::new(count)),
            count: u32::try_from(count).unwrap_or(u32::MAX),
            deadline,
            shapes,
            unreadable: AtomicU64::new(0),
            apart: Arc::new(Semaphore::new(1)),
            shared,
            ends: Ends::default(),
        }))
    }

    /// Runs `work` on a blocking thread in a READ ONLY transaction of its own. Dropping the future stops it.
    ///
    /// # Errors
    /// [`Error::Busy`] when no reader was free in time, [`Error::Deadline`] when `work` was not done; whatever `work` says.
    pub async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Reader<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.read_on(On::Shared, Instant::now() + self.deadline, work).await
    }

    /// The same for what a caller wrote: on a connection of its own, whose own database is empty, so that only whole
    /// names reach the file; one at a time, so that a reader is left for the others.
    ///
    /// # Errors
    /// As [`Readers::read`].
    pub async fn read_apart<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Reader<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let ends = Instant::now() + self.deadline;
        let turn = tokio::time::timeout_at(ends, Arc::clone(&self.apart).acquire_owned());
        let turn = turn.await.map_err(|_| Error::Busy(self.deadline))?.map_err(|_| Error::Closed)?;
        // The turn ends with the work, also when nobody waits for it any more.
        let work = move |reader: &Reader<'_>| {
            let _turn = turn;
            work(reader)
        };
        self.read_on(On::Apart, ends, work).await
    }

    async fn read_on<T: Send + 'static>(
        self: &Arc<Self>,
        on: On,
        ends: Instant,
        work: impl FnOnce(&Reader<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let permit = tokio::time::timeout_at(ends, Arc::clone(&self.permits).acquire_owned())
            .await
            .map_err(|_| Error::Busy(self.deadline))?
            .map_err(|_| Error::Closed)?;
        let connection = self.take(on)?;
        let begun = Instant::now();
        let part_by = (begun + ends.saturating_duration_since(begun) / 2).into_std();
        let stop = Stop(Arc::new(Running {
            handle: connection.interrupt_handle(),
            stopped: AtomicBool::new(false),
            finished: Mutex::new(false),
        }));
        let running = Arc::clone(&stop.0);
        let readers = Arc::clone(self);
        let mut job = tokio::task::spawn_blocking(move || {
            let reader = Reader {
                connection: &connection,
                stopped: &running.stopped,
                unreadable: &readers.unreadable,
                shapes: &readers.shapes,
                shared: Some(&readers.shared),
                ends: &readers.ends,
                part_by,
            };
            let answer = reader.transaction(work);
            running.finish();
            readers.give_back(connection, answer.is_ok() && on == On::Shared);
            drop(permit);
            answer
        });
        let answer = match tokio::time::timeout_at(ends, &mut job).await {
            Ok(answer) => answer,
            Err(_) => loop {
                stop.0.interrupt();
                if let Ok(answer) = tokio::time::timeout(INTERRUPT_AGAIN, &mut job).await {
                    break answer;
                }
            },
        };
        let late = stop.0.stopped.load(Ordering::Relaxed);
        match answer {
            Ok(Err(_)) if late => Err(Error::Deadline(self.deadline)),
            Ok(answer) => answer,
            Err(_) => Err(Error::Engine("a query panicked".to_owned())),
        }
    }

    /// How long a question may take.
    pub const fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Rows left out of answers since the start because they could not be read.
    pub fn unreadable(&self) -> u64 {
        self.unreadable.load(Ordering::Relaxed)
    }

    /// Waits for the queries under way, lets none begin and closes every connection, until [`Readers::resume`]. `None`
    /// once the store is closed.
    pub async fn suspend(&self) -> Option<OwnedSemaphorePermit> {
        let all = Arc::clone(&self.permits).acquire_many_owned(self.count).await.ok()?;
        let mut idle = self.lock();
        idle.connections.clear();
        idle.origin = None;
        Some(all)
    }

    /// Goes on with clones of another connection.
    pub fn resume(&self, origin: Connection, all: OwnedSemaphorePermit) {
        self.lock().origin = Some(origin);
        drop(all);
    }

    /// Takes no further query and closes every idle connection; a running one closes its own when it ends.
    pub fn close(&self) {
        self.permits.close();
        let mut idle = self.lock();
        idle.connections.clear();
        idle.origin = None;
    }

    fn take(&self, on: On) -> Result<Connection, Error> {
        let mut idle = self.lock();
        if on == On::Apart {
            return idle.origin.as_ref().ok_or(Error::Closed)?.try_clone().map_err(Error::engine);
        }
        if let Some(connection) = idle.connections.pop() {
            return Ok(connection);
        }
        idle.origin.as_ref().ok_or(Error::Closed).and_then(clone_of)
    }

    fn give_back(&self, connection: Connection, healthy: bool) {
        let mut idle = self.lock();
        // A failed query may have left its transaction in any state: a new clone costs less than finding out.
        if healthy && idle.origin.is_some() {
            idle.connections.push(connection);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A query under way, as seen by whoever may want to stop it.
struct Running {
    handle: Arc<InterruptHandle>,
    stopped: AtomicBool,
    /// Held while interrupting: the connection must not have gone to another query in between.
    finished: Mutex<bool>,
}

impl Running {
    fn interrupt(&self) {
        let finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        if !*finished {
            self.stopped.store(true, Ordering::Relaxed);
            self.handle.interrupt();
        }
    }

    fn finish(&self) {
        *self.finished.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

/// Interrupts a query when its asker has gone.
struct Stop(Arc<Running>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.interrupt();
    }
}

/// One question's transaction.
pub(super) struct Reader<'a> {
    connection: &'a Connection,
    stopped: &'a AtomicBool,
    unreadable: &'a AtomicU64,
    /// What makes stored results whole.
    pub shapes: &'a Known,
    /// Who is told of damage.
    shared: Option<&'a Shared>,
    /// Where tables ended.
    pub ends: &'a Ends,
    /// When a question that can be answered in part goes on with what it has.
    pub part_by: std::time::Instant,
}

impl Reader<'_> {
    fn transaction<T>(&self, work: impl FnOnce(&Self) -> Result<T, Error>) -> Result<T, Error> {
        self.connection.execute_batch("BEGIN TRANSACTION READ ONLY").map_err(|error| self.failed(error))?;
        let answer = work(self);
        let end = if answer.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = self.connection.execute_batch(end).map_err(|error| self.failed(error));
        // A connection that closes with an open transaction rolls it back itself, and when the engine has given up on
        // the file that ends the process.
        answer.and_then(|answer| ended.map(|()| answer))
    }

    /// Runs one statement and reads every row of its result.
    ///
    /// # Errors
    /// [`Error::Refused`] for anything but one reading statement.
    pub fn rows<T>(
        &self,
        sql: &str,
        bound: &[&dyn ToSql],
        mut read: impl FnMut(&duckdb::Row<'_>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        one_statement(sql)?;
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Error::Closed);
        }
        let mut statement = self.connection.prepare(sql).map_err(|error| self.failed(error))?;
        let mut rows = statement.query(bound).map_err(|error| self.failed(error))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(|error| self.failed(error))? {
            found.push(read(row)?);
        }
        Ok(found)
    }

    /// What the engine says; of damage the rest of the process learns here, whatever becomes of the answer.
    fn failed(&self, error: duckdb::Error) -> Error {
        let error = Error::engine(error);
        if let Some(shared) = self.shared {
            shared.met(&error);
        }
        error
    }

    /// As [`Reader::rows`], without those that cannot be read: they are counted, and their neighbours stand.
    pub fn readable<T>(
        &self,
        sql: &str,
        bound: &[&dyn ToSql],
        mut read: impl FnMut(&duckdb::Row<'_>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let rows = self.rows(sql, bound, |row| self.keep(read(row)))?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// What was read, or nothing when it cannot be: it is counted, and its neighbours stand.
    pub fn keep<T>(&self, read: Result<T, Error>) -> Result<Option<T>, Error> {
        match read {
            Err(error @ Error::Unreadable { .. }) => {
                self.leave_out(&error, 1);
                Ok(None)
            }
            read => read.map(Some),
        }
    }

    /// Counts rows that are left out of an answer.
    pub fn leave_out(&self, error: &Error, rows: usize) {
        self.unreadable.fetch_add(rows as u64, Ordering::Relaxed);
        tracing::warn!(%error, rows, "left out of an answer");
    }

    /// Begins another transaction in place of one that a failed statement spoiled.
    pub fn begin_again(&self) -> Result<(), Error> {
        self.connection.execute_batch("ROLLBACK").map_err(Error::engine)?;
        self.connection.execute_batch("BEGIN TRANSACTION READ ONLY").map_err(Error::engine)
    }

    /// The first row, if any.
    pub fn first<T>(
        &self,
        sql: &str,
        bound: &[&dyn ToSql],
        read: impl FnMut(&duckdb::Row<'_>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        Ok(self.rows(sql, bound, read)?.into_iter().next())
    }
}

/// A question outside of any store, for fuzzers.
#[cfg(any(test, fuzzing))]
pub(super) fn fuzzed(connection: &Connection, work: impl FnOnce(&Reader<'_>)) {
    let (stopped, unreadable, shapes) = (AtomicBool::new(false), AtomicU64::new(0), Known::default());
    work(&Reader {
        connection,
        stopped: &stopped,
        unreadable: &unreadable,
        shapes: &shapes,
        shared: None,
        ends: &Ends::default(),
        part_by: std::time::Instant::now() + Duration::from_secs(1),
    });
}

/// The driver runs every statement of a text but the last while it prepares it, so a text is looked at before.
/// A semicolon anywhere is refused, inside a string too: to tell the two apart takes the engine's own lexer.
fn one_statement(sql: &str) -> Result<(), Error> {
    if sql.contains(';') {
        return Err(Error::Refused("a text with a semicolon"));
    }
    let word = sql.trim_start().split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default();
    if OPENINGS.iter().any(|opening| word.eq_ignore_ascii_case(opening)) {
        Ok(())
    } else {
        Err(Error::Refused("a statement that does not read"))
    }
}
