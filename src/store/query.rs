//! Questions about traces, spans and evaluations.

use std::collections::HashMap;

use duckdb::ToSql;
use duckdb::types::Value;
use iris_core::contract::SortBy;
use iris_core::model::{Evaluation, Row, RowKey, Tenant, Timestamp, Trace, TraceId, VerdictState};

use super::reader::Reader;
use super::spans::{Shared, micros};
use super::{Error, evaluations, spans, traces};

/// Which traces, in which order. Absent filters let everything pass.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TraceQuery {
    /// Exactly this trace.
    pub trace_id: Option<TraceId>,
    /// Exactly this agent.
    pub agent_name: Option<String>,
    /// Exactly this framework.
    pub framework: Option<String>,
    /// Began at this time or later.
    pub since: Option<Timestamp>,
    /// Began at this time or earlier.
    pub until: Option<Timestamp>,
    /// The latest evaluation scored at least this.
    pub min_score: Option<f64>,
    /// The latest evaluation scored at most this.
    pub max_score: Option<f64>,
    /// Exactly this conversation.
    pub session_id: Option<String>,
    /// The latest evaluation has this state.
    pub verdict: Option<VerdictState>,
    /// The latest evaluation failed this rule.
    pub rule: Option<String>,
    /// The order; traces that do not say come last.
    pub sort_by: SortBy,
    /// Smallest first instead of largest first.
    pub ascending: bool,
    /// At most this many; the contract allows 1 to 1000.
    pub limit: u32,
    /// How many to leave out first.
    pub offset: u64,
}

/// One page of traces, each with its latest evaluation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TracePage {
    /// The traces of the page.
    pub rows: Vec<(Trace, Option<Evaluation>)>,
    /// How many there are on all pages.
    pub total: u64,
}

/// What `load` gives back of a trace.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Loaded {
    /// Its spans and log records, each once, with empty readings.
    pub rows: Vec<Row>,
    /// Its highest version; 0 when it has no row yet.
    pub version: u32,
    /// Its newest inline evaluation.
    pub evaluation: Option<Evaluation>,
}

/// A growing WHERE with the values it binds.
struct Filter {
    sql: String,
    bound: Vec<Value>,
}

impl Filter {
    fn and(&mut self, sql: &str, value: Value) {
        self.sql.push_str(" AND ");
        self.sql.push_str(sql);
        self.bound.push(value);
    }

    fn params(&self) -> Vec<&dyn ToSql> {
        self.bound.iter().map(|value| value as &dyn ToSql).collect()
    }
}

const LATEST: &str = "LEFT JOIN (SELECT trace_id, score, state, failed_rules FROM evaluations \
     WHERE tenant = ? AND trace_id IS NOT NULL \
     QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY created_at DESC, rowid DESC) = 1) e \
     ON e.trace_id = t.trace_id";

/// FROM and WHERE of a query. Versions above the first are few, so the newest of each trace is found by a
/// join with those alone; the latest evaluations are looked up only when a filter asks for them.
fn filter(tenant: &Tenant, query: &TraceQuery) -> Filter {
    let text = |text: &str| Value::Text(text.to_owned());
    let judged =
        query.min_score.is_some() || query.max_score.is_some() || query.verdict.is_some() || query.rule.is_some();
    let mut filter = Filter {
        sql: format!(
            "FROM traces t LEFT JOIN (SELECT trace_id, max(version) AS newest FROM traces \
             WHERE tenant = ? AND version > 1 GROUP BY trace_id) n ON n.trace_id = t.trace_id {} \
             WHERE (n.newest IS NULL OR n.newest = t.version)",
            if judged { LATEST } else { "" }
        ),
        bound: vec![text(tenant.as_str())],
    };
    if judged {
        filter.bound.push(text(tenant.as_str()));
    }
    filter.and("t.tenant = ?", text(tenant.as_str()));
    if let Some(id) = &query.trace_id {
        filter.and("t.trace_id = ?", Value::Blob(id.as_bytes().to_vec()));
    }
    let names = [
        ("t.agent_name = ?", &query.agent_name),
        ("t.framework = ?", &query.framework),
        ("t.session_id = ?", &query.session_id),
    ];
    for (sql, name) in names {
        if let Some(name) = name {
            filter.and(sql, text(name));
        }
    }
    if let Some(since) = query.since {
        filter.and("t.timestamp >= ?", micros(since));
    }
    if let Some(until) = query.until {
        filter.and("t.timestamp <= ?", micros(until));
    }
    if let Some(score) = query.min_score {
        filter.and("e.score >= ?", Value::Double(score));
    }
    if let Some(score) = query.max_score {
        filter.and("e.score <= ?", Value::Double(score));
    }
    if let Some(state) = query.verdict {
        filter.and("e.state = ?", text(state.as_str()));
    }
    if let Some(rule) = &query.rule {
        filter.and("contains(e.failed_rules, ?)", Value::Text(serde_json::Value::from(rule.as_str()).to_string()));
    }
    filter
}

pub(super) fn page(reader: &Reader<'_>, tenant: &Tenant, query: &TraceQuery) -> Result<TracePage, Error> {
    let mut filter = filter(tenant, query);
    let total = reader
        .first(&format!("SELECT count(*) {}", filter.sql), &filter.params(), |row| row.get(0).map_err(Error::engine))?
        .unwrap_or_default();
    let direction = if query.ascending { "ASC" } else { "DESC" };
    let key = match query.sort_by {
        SortBy::Timestamp => "timestamp",
        SortBy::LatencyMs => "latency_ms",
        SortBy::CostUsd => "cost_usd",
    };
    let sql = format!(
        "SELECT t.rowid, t.trace_id {} ORDER BY t.{key} {direction} NULLS LAST, t.timestamp {direction}, t.trace_id \
         LIMIT ? OFFSET ?",
        filter.sql,
    );
    filter.bound.extend([Value::UInt(query.limit), Value::UBigInt(query.offset)]);
    let chosen: Vec<i64> = reader.rows(&sql, &filter.params(), |row| row.get(0).map_err(Error::engine))?;
    let mut found = fetch(reader, "traces", &traces::columns(""), &chosen, traces::read)?;
    let ids: Vec<TraceId> = found.values().map(|trace| trace.trace_id).collect();
    let mut latest = latest(reader, tenant, &ids)?;
    let rows = chosen
        .iter()
        .filter_map(|rowid| found.remove(rowid))
        .map(|trace| {
            let evaluation = latest.remove(&trace.trace_id);
            (trace, evaluation)
        })
        .collect();
    Ok(TracePage { rows, total })
}

fn latest(reader: &Reader<'_>, tenant: &Tenant, ids: &[TraceId]) -> Result<HashMap<TraceId, Evaluation>, Error> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let sql = format!(
        "SELECT arg_max(rowid, (created_at, rowid)) FROM evaluations WHERE tenant = ? AND trace_id IN ({}) \
         GROUP BY trace_id",
        vec!["?"; ids.len()].join(", ")
    );
    let tenant = tenant.as_str();
    let ids: Vec<&[u8]> = ids.iter().map(|id| id.as_bytes().as_slice()).collect();
    let mut bound: Vec<&dyn ToSql> = vec![&tenant];
    bound.extend(ids.iter().map(|id| id as &dyn ToSql));
    let chosen: Vec<i64> = reader.rows(&sql, &bound, |row| row.get(0).map_err(Error::engine))?;
    let found = fetch(reader, "evaluations", evaluations::COLUMNS, &chosen, evaluations::read)?;
    Ok(found.into_values().filter_map(|evaluation| Some((evaluation.trace_id?, evaluation))).collect())
}

/// Rows this near each other lie in one compressed vector: reading both costs as much as reading one.
const NEAR_ROWS: i64 = 2048;
/// Most stretches of a table that one statement reads.
const STRETCHES_MAX: usize = 64;

/// Reads rows by their numbers. Every stretch of a table is named by its ends: a list of numbers alone would have
/// all the compressed text between the first and the last unpacked.
fn fetch<T>(
    reader: &Reader<'_>,
    table: &str,
    columns: &str,
    rowids: &[i64],
    read: impl Fn(&duckdb::Row<'_>) -> Result<T, Error>,
) -> Result<HashMap<i64, T>, Error> {
    let mut found = HashMap::with_capacity(rowids.len());
    for stretches in stretches(rowids).chunks(STRETCHES_MAX) {
        let select = |stretch: &Vec<i64>| {
            let list = stretch.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
            let (first, last) = (stretch.first()?, stretch.last()?);
            Some(format!(
                "SELECT {columns}, rowid AS place FROM {table} WHERE rowid BETWEEN {first} AND {last} AND rowid IN ({list})"
            ))
        };
        let sql = stretches.iter().filter_map(select).collect::<Vec<_>>().join(" UNION ALL ");
        let rows = reader.rows(&sql, &[], |row| {
            let place = row.get::<_, i64>("place").map_err(Error::engine)?;
            Ok((place, read(row)?))
        })?;
        found.extend(rows);
    }
    Ok(found)
}

/// Sorts row numbers into groups without a wide gap.
fn stretches(rowids: &[i64]) -> Vec<Vec<i64>> {
    let mut sorted = rowids.to_vec();
    sorted.sort_unstable();
    let mut stretches: Vec<Vec<i64>> = Vec::new();
    for rowid in sorted {
        match stretches.last_mut() {
            Some(stretch) if stretch.last().is_some_and(|last| rowid - last < NEAR_ROWS) => stretch.push(rowid),
            _ => stretches.push(vec![rowid]),
        }
    }
    stretches
}

pub(super) fn trace(reader: &Reader<'_>, key: &RowKey) -> Result<Option<Trace>, Error> {
    let sql = format!(
        "SELECT {} FROM traces WHERE tenant = ? AND trace_id = ? ORDER BY version DESC, rowid DESC LIMIT 1",
        traces::columns("")
    );
    reader.first(&sql, &[&key.tenant.as_str(), &key.trace_id.as_bytes().as_slice()], traces::read)
}

/// Every observation of a trace once: a resend collapses, a conflicting span stays beside the first.
pub(super) fn rows(reader: &Reader<'_>, key: &RowKey) -> Result<Vec<Row>, Error> {
    let sql = format!(
        "SELECT {} FROM spans WHERE tenant = ? AND trace_id = ? \
         QUALIFY row_number() OVER (PARTITION BY span_id, content_hash ORDER BY lane, seq, ordinal) = 1 \
         ORDER BY start_time, seq, ordinal, lane",
        spans::COLUMNS
    );
    let mut shared = Shared::default();
    reader.rows(&sql, &[&key.tenant.as_str(), &key.trace_id.as_bytes().as_slice()], |row| spans::read(row, &mut shared))
}

pub(super) fn load(reader: &Reader<'_>, key: &RowKey) -> Result<Loaded, Error> {
    let bound: [&dyn ToSql; 2] = [&key.tenant.as_str(), &key.trace_id.as_bytes().as_slice()];
    let version = reader
        .first("SELECT coalesce(max(version), 0) FROM traces WHERE tenant = ? AND trace_id = ?", &bound, |row| {
            row.get(0).map_err(Error::engine)
        })?
        .unwrap_or_default();
    let sql = format!(
        "SELECT {} FROM evaluations WHERE tenant = ? AND trace_id = ? AND inline \
         ORDER BY created_at DESC, rowid DESC LIMIT 1",
        evaluations::COLUMNS
    );
    let evaluation = reader.first(&sql, &bound, evaluations::read)?;
    Ok(Loaded { rows: rows(reader, key)?, version, evaluation })
}

/// All evaluations of a trace, newest first.
pub(super) fn evaluations(reader: &Reader<'_>, key: &RowKey) -> Result<Vec<Evaluation>, Error> {
    let sql = format!(
        "SELECT {} FROM evaluations WHERE tenant = ? AND trace_id = ? ORDER BY created_at DESC, rowid DESC",
        evaluations::COLUMNS
    );
    reader.rows(&sql, &[&key.tenant.as_str(), &key.trace_id.as_bytes().as_slice()], evaluations::read)
}

pub(super) fn evaluation(reader: &Reader<'_>, tenant: &Tenant, id: &str) -> Result<Option<Evaluation>, Error> {
    let sql = format!(
        "SELECT {} FROM evaluations WHERE tenant = ? AND id = ? ORDER BY created_at DESC, rowid DESC LIMIT 1",
        evaluations::COLUMNS
    );
    reader.first(&sql, &[&tenant.as_str(), &id], evaluations::read)
}
