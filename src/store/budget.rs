//! Keeps the file within its share of `retention.bytes_max`: the oldest goes, and a file that is mostly free is written
//! anew.
//!
//! The engine uses the blocks of what was deleted again but never gives them back. So the file stops growing where a copy
//! of its data still fits beside it; a copy that would not fit waits until rows have gone for it.

use std::time::{Duration, Instant};

use duckdb::Connection;
use iris_core::model::Timestamp;

use super::retention::{RECORD, Retention, Sweep, came};
use super::spans::timestamp;
use super::writer::{State, Writer};
use super::{Config, Error, damage};

/// Less free space than this is not worth a copy.
const REWRITE_FREE_MIN: u64 = 8 * 1024 * 1024;
/// What a copy needs beside its data.
const COPY_BESIDE: u64 = 1024 * 1024;
/// What a checkpoint may make the file grow by, beyond what is stored.
const GROWTH_MAX: u64 = 16 * 1024 * 1024;
/// How often rows go for one copy before it is put off.
const ROUNDS_MAX: u8 = 4;
/// The least time between two looks at the file.
const LOOK_PAUSE: Duration = Duration::from_millis(250);

/// What the store may take, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    /// The file, and a copy of it or what does not fit the engine's memory.
    pub most: u64,
    /// The file alone.
    pub file: u64,
    /// Data beyond this goes, the oldest first.
    pub full: u64,
    /// Until this is left.
    pub enough: u64,
    /// The write-ahead log is merged at this size.
    pub wal: u64,
    /// What does not fit the engine's memory.
    pub temp: u64,
}

impl Retention {
    /// The store's share: five eighths for its file and for a copy of it or what does not fit the engine's memory, which a
    /// checkpoint may need much of; a sixteenth for its log.
    pub(super) const fn share(&self) -> Share {
        let most = self.bytes_max / 8 * 5;
        // A checkpoint writes row groups anew before it gives the blocks of the old ones back.
        let beside = if most / 16 < GROWTH_MAX { most / 16 } else { GROWTH_MAX };
        let full = most / 16 * 7 - beside;
        let (file, enough, wal) = (most / 16 * 9 - beside, most / 8 * 3 - beside, self.bytes_max / 16);
        Share { most, file, full, enough, wal, temp: full }
    }

    /// The journal's share: a quarter.
    pub const fn journal_bytes_max(&self) -> u64 {
        self.bytes_max / 4
    }
}

impl Config {
    /// With what the whole folder may take in mind.
    pub(super) fn within_share(&self) -> Self {
        let share = self.retention.share();
        Self {
            // Together one transaction beyond the size at which the log is merged.
            checkpoint_wal_bytes: self.checkpoint_wal_bytes.min(share.wal / 2),
            group_bytes: self.group_bytes.min(usize::try_from(share.wal / 2).unwrap_or(usize::MAX)),
            temp_bytes: self.temp_bytes.min(share.temp),
            ..self.clone()
        }
    }
}

/// What is in the file, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    used: u64,
    free: u64,
}

impl Size {
    /// A copy takes about what is used, and some more until its last checkpoint.
    const fn copy(self) -> u64 {
        self.used + self.used / 32 + COPY_BESIDE
    }
}

fn size(connection: &Connection) -> Result<Size, Error> {
    connection
        .query_row(
            "SELECT (used_blocks * block_size)::UBIGINT, (free_blocks * block_size)::UBIGINT FROM pragma_database_size() \
             WHERE database_name = 'iris'",
            [],
            |row| Ok(Size { used: row.get(0)?, free: row.get(1)? }),
        )
        .map_err(Error::engine)
}

/// About when this part of the traces, and of the evaluations that belong to none, had come; just after it. By time and not by
/// place: a clock that jumped ahead for a while leaves rows of the future among the oldest. Spans and evaluations of a trace go
/// with it.
pub(super) fn end_of_oldest(connection: &Connection, part: f64) -> Result<Option<Timestamp>, Error> {
    let of = |table: &str, came: String| format!("SELECT {came} AS came FROM {table}");
    let evaluations = of("evaluations", came("created_at", RECORD));
    let whole = [
        format!("{} UNION ALL {evaluations} WHERE trace_id IS NULL OR erased", of("traces", came("stored_at", RECORD))),
        of("spans", came("received", "seq")),
        evaluations,
    ];
    for rows in whole {
        let sql = format!("SELECT approx_quantile(epoch_us(came), {part}) FROM ({rows})");
        let micros: Option<i64> = connection.query_row(&sql, [], |row| row.get(0)).map_err(Error::engine)?;
        if let Some(micros) = micros {
            return Ok(Some(timestamp(micros.saturating_add(1), 0)));
        }
    }
    Ok(None)
}

impl Writer {
    /// The file has changed: it is looked at soon.
    pub fn look_at_size(&self, state: &mut State) {
        let at = Instant::now() + LOOK_PAUSE;
        state.look_at = Some(state.look_at.map_or(at, |planned| planned.min(at)));
    }

    /// Begins to delete the oldest, or to write the file anew, when it is time for that.
    pub fn keep_within_share(&mut self, state: &mut State, now: Instant) {
        if state.sweep.is_some() || state.look_at.is_none_or(|at| now < at) {
            return;
        }
        state.look_at = None;
        let bytes = self.file_bytes();
        self.shared.status().file_bytes = bytes;
        let (share, log) = (self.config.retention.share(), self.log_bytes());
        if bytes + log < share.full.min(2 * REWRITE_FREE_MIN) {
            return;
        }
        let looked = size(&self.spans).and_then(|size| {
            if size.used + log > share.full {
                self.begin_to_free(state, size.used + log, share.enough)?;
            } else if size.free >= REWRITE_FREE_MIN && size.free >= size.used {
                state.rewrite_at = Some(now);
            }
            Ok(())
        });
        if let Err(error) = looked {
            self.shared.met(&error);
            tracing::warn!(%error, "the size of the database could not be looked at");
        }
    }

    /// Begins to delete the oldest until about so much is left.
    fn begin_to_free(&self, state: &mut State, used: u64, left: u64) -> Result<(), Error> {
        #[expect(clippy::cast_precision_loss, reason = "a part of some gigabytes")]
        let part = (1.0 - left as f64 / used.max(1) as f64).clamp(0.0, 1.0);
        state.sweep = end_of_oldest(&self.spans, part)?.map(Sweep::new);
        Ok(())
    }

    /// Refuses a commit for which the share has no room left.
    pub fn check_share(&self) -> Result<(), Error> {
        let share = self.config.retention.share();
        let room = share.most / 16 + self.log_bytes();
        if self.file_bytes() + room < share.file || size(&self.spans)?.used + room < share.file {
            return Ok(());
        }
        Err(Error::NoSpace("retention.bytes_max is reached".to_owned()))
    }

    /// Whether a copy of the file fits beside it. When it does not, what was set aside goes; and when that is not enough,
    /// the oldest rows begin to, and the copy is to be tried again once they have.
    pub fn makes_room_for_copy(&self, state: &mut State) -> Result<bool, Error> {
        let (most, size) = (self.config.retention.share().most, size(&self.spans)?);
        let file = self.file_bytes();
        if file + damage::set_aside_bytes(&self.home) + size.copy() > most {
            damage::remove_set_aside(&self.home);
        }
        if file + size.copy() <= most {
            state.freed_for_copy = 0;
            return Ok(true);
        }
        if state.freed_for_copy < ROUNDS_MAX {
            state.freed_for_copy += 1;
            let left = most.saturating_sub(file + COPY_BESIDE) / 33 * 31;
            tracing::warn!(file, used = size.used, left, "the oldest rows go, so that a copy of the database has room");
            self.begin_to_free(state, size.used, left)?;
        } else {
            state.freed_for_copy = 0;
        }
        Ok(false)
    }

    fn log_bytes(&self) -> u64 {
        std::fs::metadata(&self.wal).map_or(0, |file| file.len())
    }

    fn file_bytes(&self) -> u64 {
        std::fs::metadata(&self.database).map_or(0, |file| file.len())
    }
}
