//! What a start needs to know: how far the journal is stored, what is stored beyond it, what to reopen.

use std::collections::HashSet;

use duckdb::{Connection, params};
use iris_core::assemble::{Forgotten, Known, Settings};
use iris_core::model::{Position, RowKey, Tenant, Timestamp};

use super::damage::Damage;
use super::group::Positions;
use super::spans::trace_id;
use super::track::{Through, lane_of};
use super::{Error, known};

/// How the file stood when it was opened.
#[derive(Debug, Clone, Default)]
pub struct Boot {
    /// Every record at or below is wholly stored or deliberately dropped.
    pub stored_through: Through,
    /// Every stored span at or below is covered by an evaluation.
    pub settled_through: Through,
    /// What is stored of the records above `stored_through`: not to be stored again.
    pub stored: HashSet<Position>,
    /// Traces with a span above `settled_through` that their newest inline evaluation did not see.
    pub reopen: Vec<RowKey>,
    /// The newest traces that the file has, oldest first: as many as can be remembered.
    pub known: Vec<Known>,
    /// The judged traces among all others, and some of these.
    pub forgotten: Forgotten,
    /// When the last row of any other trace arrived; the beginning of time when there is none.
    pub horizon: Timestamp,
    /// What could not be read and was set aside, in the order in which it was found.
    pub damage: Vec<Damage>,
}

/// Reads the file's state. The tool records of `stored` come apart too, for the writer.
pub(super) fn read(connection: &Connection) -> Result<(Boot, HashSet<Position>), Error> {
    let Positions { stored, settled } = positions(connection)?;
    let mut found = HashSet::new();
    let mut tools = HashSet::new();
    for (table, filter) in
        [("spans", "source <> 'tool'"), ("traces", "lane IS NOT NULL"), ("evaluations", "lane IS NOT NULL")]
    {
        for position in stored_beyond(connection, table, filter, stored)? {
            found.insert(position);
            if table != "spans" {
                tools.insert(position);
            }
        }
    }
    let reopen = reopen(connection, settled)?;
    let (known, horizon) = known::known(connection, Settings::default().remembered_max)?;
    let has_others = horizon != Timestamp::default();
    let forgotten = if has_others { known::judged(connection, known::STRETCH_ROWS)? } else { Forgotten::default() };
    let boot = Boot {
        stored_through: stored,
        settled_through: settled,
        stored: found,
        reopen,
        known,
        forgotten,
        horizon,
        damage: Vec::new(),
    };
    Ok((boot, tools))
}

/// The newest positions; every column only rises.
pub(super) fn positions(connection: &Connection) -> Result<Positions, Error> {
    connection
        .query_row(
            "SELECT coalesce(max(stored_traces), 0), coalesce(max(stored_logs), 0), coalesce(max(stored_metrics), 0), \
             coalesce(max(settled_traces), 0), coalesce(max(settled_logs), 0), coalesce(max(settled_metrics), 0) \
             FROM positions",
            [],
            |row| {
                Ok(Positions {
                    stored: Through { traces: row.get(0)?, logs: row.get(1)?, metrics: row.get(2)? },
                    settled: Through { traces: row.get(3)?, logs: row.get(4)?, metrics: row.get(5)? },
                })
            },
        )
        .map_err(Error::engine)
}

fn stored_beyond(connection: &Connection, table: &str, filter: &str, through: Through) -> Result<Vec<Position>, Error> {
    let sql = format!(
        "SELECT lane, seq, ordinal FROM {table} WHERE {filter} \
         AND ((lane = 0 AND seq > ?) OR (lane = 1 AND seq > ?) OR (lane = 2 AND seq > ?))"
    );
    let mut statement = connection.prepare(&sql).map_err(Error::engine)?;
    let rows = statement
        .query_map(params![through.traces, through.logs, through.metrics], |row| {
            Ok((row.get::<_, u8>(0)?, row.get(1)?, row.get(2)?))
        })
        .map_err(Error::engine)?;
    let mut found = Vec::new();
    for row in rows {
        let (lane, seq, ordinal) = row.map_err(Error::engine)?;
        // The filter lets no other lane pass.
        found.extend(lane_of(lane).map(|lane| Position { lane, seq, ordinal }));
    }
    Ok(found)
}

fn reopen(connection: &Connection, settled: Through) -> Result<Vec<RowKey>, Error> {
    let mut statement = connection
        .prepare(
            "WITH unsettled AS (
                 SELECT tenant, trace_id, max(seq) AS newest FROM spans
                 WHERE source <> 'tool' AND ((lane = 0 AND seq > ?) OR (lane = 1 AND seq > ?))
                 GROUP BY tenant, trace_id
             ), judged AS (
                 SELECT tenant, trace_id, max(seen_through) AS seen FROM evaluations
                 WHERE inline AND trace_id IS NOT NULL AND seen_through > least(?, ?)
                 GROUP BY tenant, trace_id
             )
             SELECT u.tenant, u.trace_id FROM unsettled u LEFT JOIN judged j
             ON j.tenant = u.tenant AND j.trace_id = u.trace_id
             WHERE j.seen IS NULL OR j.seen < u.newest
             -- Only damage takes a trace away from its evaluation.
             OR NOT EXISTS (SELECT 1 FROM traces t WHERE t.tenant = u.tenant AND t.trace_id = u.trace_id)
             ORDER BY u.newest",
        )
        .map_err(Error::engine)?;
    let rows = statement
        .query_map(params![settled.traces, settled.logs, settled.traces, settled.logs], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?))
        })
        .map_err(Error::engine)?;
    let mut keys = Vec::new();
    for row in rows {
        let (tenant, id) = row.map_err(Error::engine)?;
        match trace_id(&id) {
            Ok(trace_id) => keys.push(RowKey { tenant: Tenant::new(&tenant), trace_id }),
            Err(why) => tracing::error!(why, "spans of no trace are in the database and left alone"),
        }
    }
    Ok(keys)
}
