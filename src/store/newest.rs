//! The newest of a large table, found near its end.
//!
//! Rows come in nearly the order of time, so the end of a table says how new a row must be to stand on the first pages;
//! the engine passes over every group of rows that is older. What is found is the same as by sorting everything.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};

use duckdb::ToSql;
use duckdb::types::Value;
use iris_core::contract::SortBy;
use iris_core::model::{Tenant, TraceId};

use super::Error;
use super::page::Place;
use super::query::TraceQuery;
use super::reader::Reader;
use super::spans::trace_id;

/// Rows at the end of a table that are looked at first.
const END_ROWS: i64 = if cfg!(test) { 256 } else { 16_384 };

/// Traces of the first pages; what lies further back is sorted whole.
const FIRST_MAX: u64 = 1200;

/// Rows beyond what a page needs, for versions that a newer one replaces: so many, and as many more as a quarter of the
/// page.
const SPARE_ROWS: u64 = 64;

/// The newest traces and how many there are, when nothing else is asked for and they stand near the end.
pub(super) fn newest(
    reader: &Reader<'_>,
    tenant: &Tenant,
    query: &TraceQuery,
) -> Result<Option<(Vec<Place>, u64)>, Error> {
    let wanted = query.offset.saturating_add(query.limit.into());
    let plain = TraceQuery { limit: query.limit, offset: query.offset, ..TraceQuery::default() };
    if *query != plain || query.sort_by != SortBy::Timestamp || wanted > FIRST_MAX {
        return Ok(None);
    }
    let tenant = tenant.as_str();
    let candidates = wanted + wanted / 4 + SPARE_ROWS;
    let Some((from, to)) = end(reader, "traces", &reader.ends.traces)? else { return Ok(None) };
    let sql = format!(
        "SELECT min(timestamp), count(*) FROM (SELECT timestamp FROM traces WHERE rowid BETWEEN {from} AND {to} AND tenant = ? \
         ORDER BY timestamp DESC LIMIT {candidates})"
    );
    let bound = reader.first(&sql, &[&tenant], |row| {
        let read = || -> duckdb::Result<(Value, u64)> { Ok((row.get(0)?, row.get(1)?)) };
        read().map_err(Error::engine)
    })?;
    let Some((oldest, _)) = bound.filter(|(_, rows)| *rows == candidates) else { return Ok(None) };
    let sql = format!(
        "SELECT rowid, trace_id, version FROM traces WHERE tenant = ? AND timestamp >= ? \
         ORDER BY timestamp DESC, trace_id LIMIT {candidates}"
    );
    let rows: Vec<(i64, Vec<u8>, u32)> = reader.rows(&sql, &[&tenant, &oldest], |row| {
        let read = || -> duckdb::Result<(i64, Vec<u8>, u32)> { Ok((row.get(0)?, row.get(1)?, row.get(2)?)) };
        read().map_err(Error::engine)
    })?;
    if rows.is_empty() {
        return Ok(None);
    }
    let replaced = versions(reader, tenant, &rows)?;
    let standing = |(_, id, version): &&(i64, Vec<u8>, u32)| replaced.get(id).is_none_or(|newest| newest == version);
    let found: Vec<Place> = rows.iter().filter(standing).map(|(place, id, _)| (*place, trace_id(id).ok())).collect();
    if (found.len() as u64) < wanted {
        return Ok(None);
    }
    let skip = usize::try_from(query.offset).unwrap_or(usize::MAX);
    let take = usize::try_from(query.limit).unwrap_or(usize::MAX);
    Ok(Some((found.into_iter().skip(skip).take(take).collect(), total(reader, tenant)?)))
}

/// How many traces there are: those with a first version, and the few that came back after theirs had been deleted or lost.
fn total(reader: &Reader<'_>, tenant: &str) -> Result<u64, Error> {
    let first = "FROM traces WHERE tenant = ? AND version = 1";
    let sql = format!(
        "SELECT (SELECT count(*) {first}) + (SELECT count(*) FROM (SELECT DISTINCT trace_id FROM traces WHERE tenant = ? AND version > 1) l \
         ANTI JOIN (SELECT trace_id {first}) f ON f.trace_id = l.trace_id)"
    );
    Ok(reader.first(&sql, &[&tenant, &tenant, &tenant], |row| row.get(0).map_err(Error::engine))?.unwrap_or_default())
}

/// The latest evaluation of a trace: its row, and when it was made, in microseconds.
type Latest = (i64, i64);

/// The rows of the latest evaluations of these traces: those at the end of the table first, and the whole of it only for traces
/// without one there, and for those of which the row knows a later verdict: evaluations stand nearly in the order of time, but
/// not after a salvage, or while a clock was ahead.
pub(super) fn judged(reader: &Reader<'_>, tenant: &Tenant, traces: &[(i64, TraceId)]) -> Result<Vec<i64>, Error> {
    if traces.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<TraceId> = traces.iter().map(|(_, id)| *id).collect();
    let Some((from, to)) = end(reader, "evaluations", &reader.ends.evaluations)? else { return Ok(Vec::new()) };
    let mut found = latest(reader, tenant, &ids, &format!(" AND rowid BETWEEN {from} AND {to}"))?;
    if from > 0 {
        let known = known(reader, traces)?;
        let is_last = |id: &TraceId| {
            let known = known.get(id.as_bytes().as_slice()).copied().unwrap_or(i64::MIN);
            found.get(id.as_bytes().as_slice()).is_some_and(|(_, made)| *made >= known)
        };
        let further: Vec<TraceId> = ids.into_iter().filter(|id| !is_last(id)).collect();
        found.extend(latest(reader, tenant, &further, "")?);
    }
    Ok(found.into_values().map(|(place, _)| place).collect())
}

/// When the verdicts were made that the rows of traces have.
fn known(reader: &Reader<'_>, traces: &[(i64, TraceId)]) -> Result<HashMap<Vec<u8>, i64>, Error> {
    let places: Vec<String> = traces.iter().map(|(place, _)| place.to_string()).collect();
    let sql = format!(
        "SELECT trace_id, epoch_us(verdict_at) FROM traces WHERE rowid IN ({}) AND verdict_at IS NOT NULL",
        places.join(", ")
    );
    let read = |row: &duckdb::Row<'_>| -> duckdb::Result<(Vec<u8>, i64)> { Ok((row.get(0)?, row.get(1)?)) };
    let rows: Vec<(Vec<u8>, i64)> = reader.rows(&sql, &[], |row| read(row).map_err(Error::engine))?;
    Ok(rows.into_iter().collect())
}

fn latest(
    reader: &Reader<'_>,
    tenant: &Tenant,
    ids: &[TraceId],
    where_else: &str,
) -> Result<HashMap<Vec<u8>, Latest>, Error> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let sql = format!(
        "SELECT trace_id, arg_max(rowid, (created_at, rowid)), epoch_us(max(created_at)) FROM evaluations \
         WHERE tenant = ? AND score IS NOT NULL AND trace_id IN ({}){where_else} GROUP BY trace_id",
        vec!["?"; ids.len()].join(", ")
    );
    let tenant = tenant.as_str();
    let ids: Vec<&[u8]> = ids.iter().map(|id| id.as_bytes().as_slice()).collect();
    let mut bound: Vec<&dyn ToSql> = vec![&tenant];
    bound.extend(ids.iter().map(|id| id as &dyn ToSql));
    let read =
        |row: &duckdb::Row<'_>| -> duckdb::Result<(Vec<u8>, Latest)> { Ok((row.get(0)?, (row.get(1)?, row.get(2)?))) };
    let rows: Vec<(Vec<u8>, Latest)> = reader.rows(&sql, &bound, |row| read(row).map_err(Error::engine))?;
    Ok(rows.into_iter().collect())
}

/// The newest version of those that have more than one.
fn versions(reader: &Reader<'_>, tenant: &str, rows: &[(i64, Vec<u8>, u32)]) -> Result<HashMap<Vec<u8>, u32>, Error> {
    let sql = format!(
        "SELECT trace_id, max(version) FROM traces WHERE tenant = ? AND version > 1 AND trace_id IN ({}) GROUP BY trace_id",
        vec!["?"; rows.len()].join(", ")
    );
    let mut bound: Vec<&dyn ToSql> = vec![&tenant];
    bound.extend(rows.iter().map(|(_, id, _)| id as &dyn ToSql));
    let found: Vec<(Vec<u8>, u32)> = reader.rows(&sql, &bound, |row| {
        let read = || -> duckdb::Result<(Vec<u8>, u32)> { Ok((row.get(0)?, row.get(1)?)) };
        read().map_err(Error::engine)
    })?;
    Ok(found.into_iter().collect())
}

/// The numbers of the rows at the end of a table; nothing where it is empty.
fn end(reader: &Reader<'_>, table: &str, known: &AtomicI64) -> Result<Option<(i64, i64)>, Error> {
    let last_from = |from: i64| -> Result<Option<i64>, Error> {
        let sql = format!("SELECT max(rowid) FROM {table} WHERE rowid >= {from}");
        Ok(reader.first(&sql, &[], |row| row.get(0).map_err(Error::engine))?.flatten())
    };
    let from = known.load(Ordering::Relaxed);
    let last = match last_from(from)? {
        None if from > 0 => last_from(0)?,
        last => last,
    };
    known.store(last.unwrap_or_default(), Ordering::Relaxed);
    Ok(last.map(|last| ((last - END_ROWS).max(0), last)))
}
