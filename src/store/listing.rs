//! Pages of evaluations.

use duckdb::types::Value;
use iris_core::model::{EvalType, Evaluation, Tenant, Timestamp};

use super::query::{Filter, Part};
use super::reader::Reader;
use super::spans::{micros, timestamp};
use super::{Error, page};

/// Which evaluations, newest first. Absent filters let everything pass.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EvaluationQuery {
    /// Exactly this bundle.
    pub eval_type: Option<EvalType>,
    /// Passed, or did not.
    pub passed: Option<bool>,
    /// Made at this time or later.
    pub since: Option<Timestamp>,
    /// Made at this time or earlier.
    pub until: Option<Timestamp>,
    /// Only those that a call made, not the sidecar by itself.
    pub by_call: bool,
    /// At most this many.
    pub limit: u32,
    /// How many to leave out first.
    pub offset: u64,
}

/// An evaluation that the sidecar made by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// When, without what is below a microsecond.
    pub at: Timestamp,
    /// Its id.
    pub id: String,
    /// Whose.
    pub tenant: Tenant,
}

/// Those made between two times, oldest first, behind the one with the id `after` at the first of them.
pub(super) fn judged_between(
    reader: &Reader<'_>,
    (since, until): (Timestamp, Timestamp),
    after: &str,
    most: usize,
) -> Result<Vec<Judged>, Error> {
    let sql = format!(
        "SELECT epoch_us(created_at), id, tenant FROM evaluations WHERE inline AND created_at < ? \
         AND (created_at > ? OR (created_at = ? AND id > ?)) ORDER BY created_at, id LIMIT {most}"
    );
    let bound = [micros(until), micros(since), micros(since), Value::Text(after.to_owned())];
    let bound: Vec<&dyn duckdb::ToSql> = bound.iter().map(|value| value as &dyn duckdb::ToSql).collect();
    reader.rows(&sql, &bound, |row| {
        let read = || -> duckdb::Result<(i64, String, String)> { Ok((row.get(0)?, row.get(1)?, row.get(2)?)) };
        let (at, id, tenant) = read().map_err(Error::engine)?;
        Ok(Judged { at: timestamp(at, 0), id, tenant: Tenant::new(&tenant) })
    })
}

pub(super) fn list(reader: &Reader<'_>, tenant: &Tenant, query: &EvaluationQuery) -> Result<Part<Evaluation>, Error> {
    let tenant = Value::Text(tenant.as_str().to_owned());
    let mut filter =
        Filter { with: String::new(), sql: "FROM evaluations WHERE tenant = ?".to_owned(), bound: vec![tenant] };
    if let Some(eval_type) = query.eval_type {
        filter.and("eval_type = ?", Value::Text(eval_type.as_str().to_owned()));
    }
    if query.by_call {
        filter.sql.push_str(" AND NOT inline");
    }
    if let Some(passed) = query.passed {
        filter.and("passed = ?", Value::Boolean(passed));
    }
    if let Some(since) = query.since {
        filter.and("created_at >= ?", micros(since));
    }
    if let Some(until) = query.until {
        filter.and("created_at <= ?", micros(until));
    }
    let total: u64 = reader
        .first(&format!("SELECT count(*) {}", filter.sql), &filter.params(), |row| row.get(0).map_err(Error::engine))?
        .unwrap_or_default();
    let sql = format!(
        "SELECT rowid {} ORDER BY created_at DESC, rowid DESC LIMIT {} OFFSET {}",
        filter.sql, query.limit, query.offset
    );
    let places: Vec<i64> = reader.rows(&sql, &filter.params(), |row| row.get(0).map_err(Error::engine))?;
    let mut found = page::evaluations(reader, &places)?;
    let items: Vec<Evaluation> = places.iter().filter_map(|place| found.remove(place)).collect();
    let left_out = places.len() - items.len();
    Ok(Part { items, total: usize::try_from(total).unwrap_or(usize::MAX), left_out })
}
