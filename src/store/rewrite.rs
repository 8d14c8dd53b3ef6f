//! Writes the file anew, so that what was deleted is in none of its bytes.
//!
//! The engine leaves the bytes of deleted rows in the file, through any number of checkpoints. So the rows that are left
//! are copied into a new file, which takes the old one's place. The engine is closed meanwhile: writes wait in the
//! journal, and questions for their deadline.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use duckdb::Connection;
use iris_core::model::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;

use super::open::{self, CATALOG, Paths};
use super::spans::timestamp;
use super::writer::{State, Writer};
use super::{Config, Error, boot};

/// Every table whose rows are kept. `erasures` is left behind: with the copy they are done.
const TABLES: [&str; 6] = ["spans", "traces", "evaluations", "positions", "shapes", "pieces"];
/// A rewriting that failed is tried again after this time.
const REWRITE_AGAIN: Duration = Duration::from_secs(60);
/// First and longest wait before the engine is opened again after that failed.
const REOPEN_FIRST: Duration = Duration::from_millis(500);
const REOPEN_LONGEST: Duration = Duration::from_secs(30);
/// The old file's name while both are open.
const OLD: &str = "old";

/// How soon bytes of what was deleted go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Erase {
    /// Minutes after a deletion within which no byte of what was deleted is left: the database file and the journal's
    /// segments that have it are written anew, whatever the collector does; all deletions until then share one
    /// rewriting. At most 1440; 0 rewrites at once, and is sure of it ten seconds later.
    pub within_minutes: u32,
}

impl Default for Erase {
    fn default() -> Self {
        Self { within_minutes: 60 }
    }
}

impl Erase {
    /// The longest wait that may be set, in minutes.
    pub(super) const MINUTES_MAX: u32 = 1440;

    /// The same as a duration.
    pub const fn within(&self) -> Duration {
        Duration::from_secs(self.within_minutes as u64 * 60)
    }
}

/// The engine is closed and could not be opened again yet.
pub(super) struct Closed {
    /// Keeps every reader waiting.
    all: OwnedSemaphorePermit,
    /// When it is tried again.
    pub again: Instant,
    wait: Duration,
    /// What stood in the way.
    pub why: Error,
}

/// When the oldest deletion was asked for of which bytes may still be in the file.
pub(super) fn asked(connection: &Connection) -> Result<Option<Timestamp>, Error> {
    let asked: Option<i64> = connection
        .query_row("SELECT epoch_us(min(asked)) FROM erasures", [], |row| row.get(0))
        .map_err(Error::engine)?;
    Ok(asked.map(|micros| timestamp(micros, 0)))
}

/// Copies the file and puts the copy in its place. The caller has closed every connection, after a CHECKPOINT.
pub(super) fn rewrite(home: &Path, config: &Config) -> Result<(), Error> {
    let paths = Paths::of(home);
    remove_leftover(&paths)?;
    if let Err(error) = copy(&paths, config) {
        // The old file is as it was.
        let _ = remove_leftover(&paths);
        return Err(error);
    }
    File::open(&paths.rewritten)?.sync_all()?;
    // Its rows are in the copy: a log without its file would be of another one.
    remove(&paths.wal)?;
    fs::rename(&paths.rewritten, &paths.database)?;
    File::open(home)?.sync_all()?;
    Ok(())
}

fn copy(paths: &Paths, config: &Config) -> Result<(), Error> {
    let connection = open::bare(paths, config)?;
    let (old, new) = (open::quoted(&paths.database)?, open::attach(&paths.rewritten)?);
    connection.execute_batch(&format!("ATTACH {old} AS {OLD} (READ_ONLY); {new}")).map_err(Error::engine)?;
    super::schema::migrate(&connection, super::schema::MIGRATIONS)?;
    for table in TABLES {
        connection
            .execute_batch(&format!("INSERT INTO {CATALOG}.main.{table} SELECT * FROM {OLD}.main.{table}"))
            .map_err(Error::engine)?;
        let differ: bool = connection
            .query_row(
                &format!(
                    "SELECT (SELECT count(*) FROM {CATALOG}.main.{table}) <> (SELECT count(*) FROM {OLD}.main.{table})"
                ),
                [],
                |row| row.get(0),
            )
            .map_err(Error::engine)?;
        if differ {
            return Err(Error::Engine(format!("the copy of {table} does not have as many rows")));
        }
    }
    connection
        .execute_batch(&format!("CHECKPOINT {CATALOG}; USE memory; DETACH {CATALOG}; DETACH {OLD};"))
        .map_err(Error::engine)
}

/// A copy that a crash left behind.
pub(super) fn remove_leftover(paths: &Paths) -> Result<(), Error> {
    let mut wal = paths.rewritten.clone().into_os_string();
    wal.push(".wal");
    remove(&paths.rewritten)?;
    remove(Path::new(&wal))
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

impl Writer {
    /// Something was deleted then: the file is to be written anew before long.
    pub fn erase_from(&self, state: &mut State, asked: Timestamp) {
        let (now, within) = ((self.now)(), self.config.erase.within());
        let nanos = u64::try_from(within.as_nanos()).unwrap_or(u64::MAX);
        let due = Timestamp::from_unix_nanos(asked.as_unix_nanos().saturating_add(nanos));
        // Half of the time is for what may be in the way.
        let wait = due.since(now) / 2;
        state.rewrite_at = Some(state.rewrite_at.unwrap_or_else(|| Instant::now() + wait));
        self.shared.erase_by(due);
    }

    /// Writes the file anew; after a failure tries again later.
    pub async fn rewrite(&mut self, state: &mut State) {
        let started = Instant::now();
        state.rewrite_at = Some(started + REWRITE_AGAIN);
        self.commit_soon(state);
        let committed = match self.commit_all(state) {
            // The copy is what gives room back; rows wait meanwhile.
            Err(Error::NoSpace(_)) => Ok(()),
            other => other,
        };
        if let Err(error) = committed.and_then(|()| self.checkpoint(state)) {
            self.shared.met(&error);
            tracing::warn!(%error, "the database could not be brought in order to be written anew; tried again later");
            return;
        }
        match self.makes_room_for_copy(state) {
            Ok(true) => {}
            Ok(false) => {
                if state.sweep.is_some() {
                    state.rewrite_at = Some(started);
                } else {
                    tracing::warn!("a copy of the database has no room; tried again later");
                }
                return;
            }
            Err(error) => {
                self.shared.met(&error);
                tracing::warn!(%error, "the size of the database could not be looked at; it is written anew later");
                return;
            }
        }
        let Some(all) = self.readers.suspend().await else { return };
        match self.without_connections(rewrite) {
            Ok(()) => {
                state.rewrite_at = None;
                self.shared.was_rewritten();
                tracing::info!(
                    ms = started.elapsed().as_millis(),
                    "the database was written anew without what was deleted"
                );
            }
            Err(error) => {
                self.shared.met(&error);
                tracing::warn!(%error, "the database could not be written anew; tried again later");
            }
        }
        // No commit is under way.
        state.unsure = None;
        state.closed = Some(Closed { all, again: Instant::now(), wait: REOPEN_FIRST, why: Error::Closed });
        self.reopen(state);
    }

    /// Closes an engine that gave up on the file, and opens it again.
    pub async fn open_anew(&mut self, state: &mut State) {
        let Some(all) = self.readers.suspend().await else { return };
        if let Err(error) = self.without_connections(|_, _| Ok(())) {
            tracing::error!(%error, "the database could not be closed");
        }
        state.closed = Some(Closed { all, again: Instant::now(), wait: REOPEN_FIRST, why: Error::Closed });
        self.reopen(state);
    }

    /// Opens the engine again when it is time for that; until it can be, everything waits in the journal. What only a
    /// start can heal ends the writer.
    pub fn reopen(&mut self, state: &mut State) {
        let Some(closed) = state.closed.take_if(|closed| Instant::now() >= closed.again) else { return };
        let opened = open::engine(&self.home, &self.config).and_then(|origin| {
            self.spans = open::clone_of(&origin)?;
            self.tools = open::clone_of(&origin)?;
            Ok((boot::positions(&origin)?, origin))
        });
        match opened {
            // What is missing was committed: only a start reads it from the journal again.
            Ok((on_file, _)) if !on_file.covers(self.positions) => {
                tracing::error!("the database lacks what it had");
                state.ending = true;
            }
            Err(error) if error.is_damage() => {
                tracing::error!(%error, "the database is damaged");
                state.ending = true;
            }
            Ok((on_file, origin)) => {
                self.readers.resume(origin, closed.all);
                self.shared.healed();
                state.retry = None;
                if let Some((count, positions)) = state.unsure.take()
                    && positions == on_file
                    && positions != self.positions
                {
                    state.scratch.beside.committed();
                    self.group_is_in(state, count, positions, 0, Instant::now());
                }
                self.look_at_size(state);
            }
            Err(error) => {
                if self.shared.set_failed(&error) {
                    tracing::error!(%error, "the database cannot be opened again yet; rows wait in the journal");
                }
                let (again, wait) = (Instant::now() + closed.wait, (closed.wait * 2).min(REOPEN_LONGEST));
                state.closed = Some(Closed { again, wait, why: error, ..closed });
            }
        }
    }

    /// Closes the engine and does something with its file.
    fn without_connections(&mut self, work: impl FnOnce(&Path, &Config) -> Result<(), Error>) -> Result<(), Error> {
        let nowhere = Connection::open_in_memory().map_err(Error::engine)?;
        self.tools = nowhere.try_clone().map_err(Error::engine)?;
        self.spans = nowhere;
        work(&self.home, &self.config)
    }
}
