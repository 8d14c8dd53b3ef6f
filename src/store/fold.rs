//! Brings verdicts that came by themselves into the rows of their traces.
//!
//! What `evaluate_output` or a model says of a stored trace is an evaluation of its own, and until it is brought into the row of
//! its trace a question about many traces has to look at both (see `verdicts`). That is quick while they are few. So they are
//! brought there a bite at a time: soon where many wait, and before long where few do. `with_trace` then holds of the evaluation:
//! the row of its trace has its verdict, or a later one.

use std::time::{Duration, Instant};

use duckdb::{Connection, params};

use super::group::Item;
use super::writer::{State, Writer};
use super::{Error, group};

/// Evaluations of one bite. Each bite looks through the ids of all traces once.
const BITE: usize = if cfg!(test) { 1024 } else { 16_384 };

/// How long a verdict waits at most, while the writer has time.
const WAIT: Duration = Duration::from_secs(30);

/// Verdicts of rows that are changed in a file before it is merged: until then the engine holds the change in its memory.
const HELD_MAX: usize = 8 * BITE;

/// Those that are still to be brought into a row.
const OPEN: &str = "NOT e.with_trace AND e.trace_id IS NOT NULL AND e.score IS NOT NULL";

/// When the next bite is due, and how far a pass over what waits has come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fold {
    /// When the next bite is due.
    pub at: Option<Instant>,
    /// Evaluations that came since the last pass.
    came: usize,
    /// How many this pass left behind because they have no trace.
    left: usize,
    /// How many were brought since the log was last merged for them.
    held: usize,
}

impl Fold {
    /// A pass is due: what is in the file is not known.
    pub fn new() -> Self {
        Self { at: Some(Instant::now()), came: 0, left: 0, held: 0 }
    }

    /// These were committed.
    pub fn came(&mut self, items: &[&Item]) {
        let evaluations = items.iter().filter(|item| item.is_evaluation()).count();
        if evaluations > 0 {
            self.came_at(evaluations, Instant::now());
        }
    }

    fn came_at(&mut self, evaluations: usize, now: Instant) {
        self.came += evaluations;
        let at = if self.came >= BITE { now } else { now + WAIT };
        self.at = Some(self.at.map_or(at, |before| before.min(at)));
    }

    /// Does one bite in one transaction; how many verdicts it brought into rows.
    fn step(&mut self, connection: &Connection) -> Result<usize, Error> {
        let mut done = Bite::default();
        group::transaction(connection, true, |connection| {
            done = bite(connection, self.left)?;
            Ok(())
        })?;
        *self = if done.looked_at == BITE {
            Self { left: self.left + BITE.saturating_sub(done.brought), at: Some(Instant::now()), ..*self }
        } else {
            Self { at: None, came: 0, left: 0, ..*self }
        };
        self.held += done.brought;
        Ok(done.brought)
    }

    /// A bite failed: not again at once.
    fn failed(&mut self, now: Instant) {
        *self = Self { at: Some(now + WAIT), came: 0, left: 0, ..*self };
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Bite {
    looked_at: usize,
    brought: usize,
}

/// Brings the first that wait into their rows, but for so many that were left behind.
fn bite(connection: &Connection, left: usize) -> Result<Bite, Error> {
    let first = format!(
        "SELECT coalesce(min(rowid), 0), coalesce(max(rowid), 0), count(*) FROM (SELECT e.rowid FROM evaluations e WHERE {OPEN} LIMIT ? OFFSET ?)"
    );
    let (from, to, looked_at): (i64, i64, usize) = connection
        .query_row(&first, params![BITE, left], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .map_err(Error::engine)?;
    if looked_at == 0 {
        return Ok(Bite::default());
    }
    let these = format!("e.rowid BETWEEN {from} AND {to} AND {OPEN}");
    // The rows are found once, and told by their numbers afterwards. Of two of the same microsecond the one that came by itself is
    // the later. Every version of a trace gets it: none says less than another. What was erased has no trace any more: there is no row for it, ever.
    let found = format!(
        "CREATE TEMP TABLE found AS SELECT t.rowid AS place, l.* FROM traces t JOIN (SELECT tenant, trace_id, max(created_at) AS made, \
         arg_max(score, (created_at, rowid)) AS score, arg_max(state, (created_at, rowid)) AS state, \
         arg_max(failed_rules, (created_at, rowid)) AS failed_rules FROM evaluations e WHERE {these} AND NOT e.erased \
         GROUP BY tenant, trace_id) l ON t.tenant = l.tenant AND t.trace_id = l.trace_id"
    );
    let rows = "UPDATE traces SET verdict_at = f.made, verdict_score = f.score, verdict_state = f.state, \
                verdict_rules = f.failed_rules FROM temp.found f \
                WHERE traces.rowid = f.place AND (verdict_at IS NULL OR verdict_at <= f.made)";
    let marks = format!(
        "UPDATE evaluations e SET with_trace = true WHERE {these} \
         AND (e.erased OR (e.tenant, e.trace_id) IN (SELECT tenant, trace_id FROM temp.found))"
    );
    connection.execute_batch(&found).map_err(Error::engine)?;
    connection.execute(rows, []).map_err(Error::engine)?;
    let brought = connection.execute(&marks, []).map_err(Error::engine)?;
    connection.execute_batch("DROP TABLE temp.found").map_err(Error::engine)?;
    Ok(Bite { looked_at, brought })
}

impl Writer {
    /// Does the next bite when it is time for one.
    pub fn fold(&mut self, state: &mut State, now: Instant) {
        if state.fold.at.is_none_or(|at| now < at) {
            return;
        }
        let is_full = match state.fold.step(&self.spans) {
            Ok(0) => return,
            Ok(_) => {
                self.after_commit(state);
                state.fold.held >= HELD_MAX
            }
            Err(error) => {
                state.fold.failed(now);
                state.is_broken |= error.ends_engine();
                self.shared.met(&error);
                tracing::warn!(%error, "verdicts could not be brought into the rows of their traces; tried again later");
                matches!(error, Error::NoMemory(_))
            }
        };
        if is_full {
            state.fold.held = 0;
            self.checkpoint_or_log(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_brought_soon_and_few_before_long() {
        let now = Instant::now();
        let mut fold = Fold { at: None, ..Fold::new() };
        fold.came_at(1, now);
        assert_eq!(fold.at, Some(now + WAIT));
        fold.came_at(1, now + WAIT / 2);
        assert_eq!(fold.at, Some(now + WAIT), "the first does not wait for those that come later");
        fold.came_at(BITE - 2, now + WAIT / 2);
        assert_eq!(fold.at, Some(now + WAIT / 2));
        fold.failed(now);
        assert_eq!(fold.at, Some(now + WAIT));
    }
}
