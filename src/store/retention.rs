//! What is too old goes, a bounded batch at a time, so that the writer is never away for long.

use std::time::Duration;

use duckdb::{Connection, params};
use iris_core::model::{RowKey, Tenant, Timestamp};
use serde::{Deserialize, Serialize};

use super::erase::erase;
use super::long;
use super::packed::Scratch;
use super::spans::{micros, trace_id};
use super::{Error, boot, group};

/// Traces of one batch: their ids stand in one statement a table.
const TRACES_BATCH: usize = 512;
/// Rows of one batch where no trace is involved.
const ROWS_BATCH: usize = 16_384;

/// How long things are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Traces and evaluations that came more than this many days ago are deleted, whenever they say they began; 0
    /// keeps them for ever.
    pub days: u32,
    /// Hours between two sweeps; 0 sweeps at the start only.
    #[serde(alias = "sweepIntervalHours")]
    pub sweep_interval_hours: u32,
    /// Most bytes that everything in `home` may take, at least 128 MiB: at most a quarter for the journal, five eighths
    /// for the database and a copy of it, an eighth for all else. The oldest traces go before their time when data takes
    /// two fifths of their share, or when a copy would not fit beside the file.
    pub bytes_max: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { days: 30, sweep_interval_hours: 24, bytes_max: 2 << 30 }
    }
}

impl Retention {
    /// The smallest `bytes_max`.
    pub(super) const BYTES_MIN: u64 = 128 * 1024 * 1024;

    /// Everything before this time is too old.
    pub(super) fn cutoff(&self, now: Timestamp) -> Option<Timestamp> {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let age = DAY.checked_mul(self.days)?;
        let kept = u64::try_from(age.as_nanos()).ok()?;
        (self.days > 0).then(|| Timestamp::from_unix_nanos(now.as_unix_nanos().saturating_sub(kept)))
    }

    pub(super) fn interval(&self) -> Option<Duration> {
        (self.sweep_interval_hours > 0).then(|| Duration::from_secs(u64::from(self.sweep_interval_hours) * 60 * 60))
    }
}

/// The sequence number of the record that a trace or an evaluation is of, or was made after, in SQL. Some builds before 2026-12
/// wrote 0 for that of an evaluation that was erased.
pub(super) const RECORD: &str = "coalesce(nullif(seq, 0), seen_through)";

/// When a row came, in SQL: as the clock said, unless that is before this program was there, as a clock says that was
/// never set. Then it came after the process began that gave out its sequence number, whose upper bits are seconds.
pub(super) fn came(column: &str, seq: &str) -> String {
    format!(
        "CASE WHEN {column} < TIMESTAMP '2026-01-01' THEN make_timestamp(({seq} >> 20)::BIGINT * 1000000) \
         ELSE {column} END"
    )
}

/// Where a sweep stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Traces,
    Spans,
    Evaluations,
    Positions,
}

/// One sweep under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sweep {
    cutoff: Timestamp,
    stage: Stage,
    /// Rows deleted so far.
    pub deleted: usize,
}

impl Sweep {
    pub const fn new(cutoff: Timestamp) -> Self {
        Self { cutoff, stage: Stage::Traces, deleted: 0 }
    }

    /// Does one batch in one transaction; false once the sweep is over.
    pub fn step(&mut self, connection: &Connection, now: Timestamp, scratch: &mut Scratch) -> Result<bool, Error> {
        let cutoff = micros(self.cutoff);
        let (deleted, next) = match self.stage {
            Stage::Traces => (self.traces(connection, now, scratch)?, Stage::Spans),
            // Spans of a trace that is kept stay with it; these belong to none.
            Stage::Spans => (
                batch(
                    connection,
                    &format!(
                        "DELETE FROM spans WHERE rowid IN (SELECT s.rowid FROM spans s WHERE {} < ? AND NOT EXISTS \
                         (SELECT 1 FROM traces t WHERE t.tenant = s.tenant AND t.trace_id = s.trace_id) LIMIT ?)",
                        came("s.received", "s.seq")
                    ),
                    &cutoff,
                )?,
                Stage::Evaluations,
            ),
            Stage::Evaluations => {
                let old = format!("SELECT rowid FROM evaluations WHERE {} < ? LIMIT ?", came("created_at", RECORD));
                (evaluations(connection, &old, &cutoff)?, Stage::Positions)
            }
            Stage::Positions => {
                prune_positions(connection)?;
                return Ok(false);
            }
        };
        self.deleted += deleted;
        if deleted == 0 {
            self.stage = next;
        }
        Ok(true)
    }

    fn traces(&self, connection: &Connection, now: Timestamp, scratch: &mut Scratch) -> Result<usize, Error> {
        let keys = doomed(connection, self.cutoff)?;
        let mut rows = 0;
        if !keys.is_empty() {
            group::transaction_beside(connection, true, scratch, |connection, scratch| {
                let erased = erase(connection, &keys, now, &mut scratch.beside)?;
                rows = erased.spans + erased.traces;
                Ok(())
            })?;
        }
        Ok(rows)
    }
}

/// A trace is as old as the arrival of its newest version, whatever it says of itself: an old capture that is sent
/// today is kept as long as anything else that came today.
fn doomed(connection: &Connection, cutoff: Timestamp) -> Result<Vec<RowKey>, Error> {
    let mut statement = connection
        .prepare(&format!(
            "SELECT tenant, trace_id FROM traces GROUP BY tenant, trace_id HAVING max({}) < ? LIMIT ?",
            came("stored_at", RECORD)
        ))
        .map_err(Error::engine)?;
    let rows = statement
        .query_map(params![micros(cutoff), TRACES_BATCH], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?))
        })
        .map_err(Error::engine)?;
    let mut keys = Vec::new();
    for row in rows {
        let (tenant, id) = row.map_err(Error::engine)?;
        match trace_id(&id) {
            Ok(trace_id) => keys.push(RowKey { tenant: Tenant::new(&tenant), trace_id }),
            Err(why) => tracing::error!(why, "a trace without an id is in the database and left alone"),
        }
    }
    Ok(keys)
}

fn batch(connection: &Connection, sql: &str, cutoff: &duckdb::types::Value) -> Result<usize, Error> {
    let mut deleted = 0;
    group::transaction(connection, true, |connection| {
        deleted = long::delete(connection, sql, &[cutoff, &ROWS_BATCH])?;
        Ok(())
    })?;
    Ok(deleted)
}

/// Deletes evaluations. A trace that is kept loses the verdict of its row, and its other evaluations are asked again.
fn evaluations(connection: &Connection, old: &str, cutoff: &duckdb::types::Value) -> Result<usize, Error> {
    let mut deleted = 0;
    group::transaction(connection, true, |connection| {
        let traces = format!(
            "(tenant, trace_id) IN (SELECT tenant, trace_id FROM evaluations WHERE with_trace AND NOT erased AND rowid IN ({old}))"
        );
        for update in [
            "traces SET verdict_at = NULL, verdict_score = NULL, verdict_state = NULL, verdict_rules = NULL WHERE",
            "evaluations SET with_trace = false WHERE with_trace AND",
        ] {
            connection
                .execute(&format!("UPDATE {update} {traces}"), params![cutoff, ROWS_BATCH])
                .map_err(Error::engine)?;
        }
        let sql = format!("DELETE FROM evaluations WHERE rowid IN ({old})");
        deleted = long::delete(connection, &sql, &[cutoff, &ROWS_BATCH])?;
        Ok(())
    })?;
    Ok(deleted)
}

/// The newest line says everything the older ones did.
fn prune_positions(connection: &Connection) -> Result<(), Error> {
    let lines: u64 =
        connection.query_row("SELECT count(*) FROM positions", [], |row| row.get(0)).map_err(Error::engine)?;
    if lines <= 1 {
        return Ok(());
    }
    let newest = boot::positions(connection)?;
    group::transaction(connection, true, |connection| {
        connection.execute_batch("DELETE FROM positions").map_err(Error::engine)?;
        group::append_positions(connection, newest)
    })
}
