//! Which traces the file has, newest first, so that a start need not ask for every trace that comes.
//!
//! Reads narrow columns only, stretch by stretch from the end of the table, and stops at a number of traces or of
//! rows. Of all that are older only the ids of the judged ones are read, into a filter.

use std::collections::{HashMap, HashSet};

use duckdb::Connection;
use iris_core::assemble::{Forgotten, Known};
use iris_core::model::{RowKey, Tenant, Timestamp};

use super::Error;
use super::spans::{timestamp, trace_id};

/// Rows of one statement: some tens of megabytes in the engine when each is a trace of its own.
pub(super) const STRETCH_ROWS: i64 = 131_072;
/// Rows looked at, sixteen stretches: eight spans for each trace that can be remembered.
const ROWS_MAX: i64 = 16 * STRETCH_ROWS;

/// The newest traces of the file, at most so many, oldest first, and when the last row of any other arrived; the
/// beginning of time when there is none.
pub(super) fn known(connection: &Connection, max: usize) -> Result<(Vec<Known>, Timestamp), Error> {
    let mut found = Found::default();
    let (mut end, read_from) = last_rows(connection, "spans")?;
    while end >= read_from && found.traces.len() < max {
        let start = (end - STRETCH_ROWS + 1).max(read_from);
        found.stretch(connection, start, end)?;
        end = start - 1;
    }
    let mut horizon = last_before(connection, end)?;
    let versions = versions(connection, &mut found.names, max)?;
    let mut traces: Vec<Known> = found
        .traces
        .into_iter()
        .map(|(key, (agentic, last))| {
            let version = versions.get(&key).copied().unwrap_or_default();
            Known { agentic: agentic || version > 0, version, last, key }
        })
        .collect();
    traces.sort_unstable_by_key(|known| known.last);
    if traces.len() > max {
        let kept = traces.split_off(traces.len() - max);
        horizon = horizon.max(traces.last().map_or(horizon, |known| known.last));
        traces = kept;
    }
    Ok((traces, horizon))
}

/// Every trace that was judged and is kept, so many rows of the table at a time.
pub(super) fn judged(connection: &Connection, stretch_rows: i64) -> Result<Forgotten, Error> {
    let (mut forgotten, mut names) = (Forgotten::default(), HashSet::new());
    let (mut end, _) = last_rows(connection, "traces")?;
    while end >= 0 {
        let start = (end - stretch_rows + 1).max(0);
        let sql =
            format!("SELECT tenant, trace_id FROM traces WHERE rowid BETWEEN {start} AND {end} AND source = 'otlp'");
        let mut statement = connection.prepare(&sql).map_err(Error::engine)?;
        let mut rows = statement.query([]).map_err(Error::engine)?;
        while let Some(row) = rows.next().map_err(Error::engine)? {
            if let Some(key) = key(row, &mut names)? {
                forgotten.insert(&key);
            }
        }
        end = start - 1;
    }
    Ok(forgotten)
}

#[derive(Default)]
struct Found {
    /// Whether a row of it is agentic, and when its last one arrived.
    traces: HashMap<RowKey, (bool, Timestamp)>,
    names: HashSet<Tenant>,
}

impl Found {
    fn stretch(&mut self, connection: &Connection, start: i64, end: i64) -> Result<(), Error> {
        let sql = format!(
            "SELECT tenant, trace_id, coalesce(bool_or(role IN ('AGENT', 'LLM', 'TOOL', 'EMBEDDING')), false), \
             epoch_us(max(received)) FROM spans \
             WHERE rowid BETWEEN {start} AND {end} AND source <> 'tool' GROUP BY tenant, trace_id"
        );
        let mut statement = connection.prepare(&sql).map_err(Error::engine)?;
        let mut rows = statement.query([]).map_err(Error::engine)?;
        while let Some(row) = rows.next().map_err(Error::engine)? {
            let read = || -> duckdb::Result<(bool, i64)> { Ok((row.get(2)?, row.get(3)?)) };
            let (agentic, last) = read().map_err(Error::engine)?;
            // Rounded up: a row must not seem to have arrived before it did.
            let last = timestamp(last.saturating_add(1), 0);
            if let Some(key) = key(row, &mut self.names)? {
                let known = self.traces.entry(key).or_insert((agentic, last));
                *known = (known.0 || agentic, known.1.max(last));
            }
        }
        Ok(())
    }
}

/// The last row of a table, and the first that is looked at; a table without rows ends before it begins.
fn last_rows(connection: &Connection, table: &str) -> Result<(i64, i64), Error> {
    let last: i64 = connection
        .query_row(&format!("SELECT coalesce(max(rowid), -1) FROM {table}"), [], |row| row.get(0))
        .map_err(Error::engine)?;
    Ok((last, (last - ROWS_MAX + 1).max(0)))
}

/// When the last of the rows up to `end` arrived.
fn last_before(connection: &Connection, end: i64) -> Result<Timestamp, Error> {
    let sql = format!("SELECT epoch_us(max(received)) FROM spans WHERE rowid <= {end}");
    let last: Option<i64> = connection.query_row(&sql, [], |row| row.get(0)).map_err(Error::engine)?;
    Ok(last.map_or(Timestamp::default(), |last| timestamp(last.saturating_add(1), 0)))
}

/// The highest version of each of the last traces stored.
fn versions(connection: &Connection, names: &mut HashSet<Tenant>, max: usize) -> Result<HashMap<RowKey, u32>, Error> {
    let (mut end, read_from) = last_rows(connection, "traces")?;
    let mut found: HashMap<RowKey, u32> = HashMap::new();
    while end >= read_from && found.len() < max {
        let start = (end - STRETCH_ROWS + 1).max(read_from);
        let sql = format!(
            "SELECT tenant, trace_id, max(version) FROM traces \
             WHERE rowid BETWEEN {start} AND {end} AND source = 'otlp' GROUP BY tenant, trace_id"
        );
        let mut statement = connection.prepare(&sql).map_err(Error::engine)?;
        let mut rows = statement.query([]).map_err(Error::engine)?;
        while let Some(row) = rows.next().map_err(Error::engine)? {
            let version: u32 = row.get(2).map_err(Error::engine)?;
            if let Some(key) = key(row, names)? {
                let known = found.entry(key).or_default();
                *known = version.max(*known);
            }
        }
        end = start - 1;
    }
    Ok(found)
}

/// The row's trace; nothing when its id is none, which no start may fail for.
fn key(row: &duckdb::Row<'_>, names: &mut HashSet<Tenant>) -> Result<Option<RowKey>, Error> {
    let read = || -> duckdb::Result<(String, Vec<u8>)> { Ok((row.get(0)?, row.get(1)?)) };
    let (tenant, id) = read().map_err(Error::engine)?;
    let tenant = Tenant::new(&tenant);
    // One copy of a name for all its traces.
    let tenant = match names.get(&tenant) {
        Some(known) => known.clone(),
        None => {
            names.insert(tenant.clone());
            tenant
        }
    };
    Ok(trace_id(&id).ok().map(|trace_id| RowKey { tenant, trace_id }))
}
