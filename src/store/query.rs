//! Questions about traces, spans and evaluations.

use duckdb::ToSql;
use duckdb::types::Value;
use iris_core::contract::SortBy;
use iris_core::model::{Evaluation, Row, RowKey, Tenant, Timestamp, Trace, TraceId, VerdictState};

use super::fetch::{bites, fetch};
use super::long::{self, Long, Values};
use super::reader::Reader;
use super::spans::{Shared, micros};
use super::verdicts::{self, Column, Odd};
use super::{Error, evaluations, page, spans, traces};

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
    /// Each of these stands in a text of the trace, whatever the case and accents of either.
    pub words: Vec<String>,
    /// The order; traces that do not say come last.
    pub sort_by: SortBy,
    /// Smallest first instead of largest first.
    pub ascending: bool,
    /// At most this many; the contract allows 1 to 1000.
    pub limit: u32,
    /// How many to leave out first.
    pub offset: u64,
}

/// How much of something to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// At most so many rows.
    pub items: usize,
    /// No further row once so many bytes of text were read.
    pub bytes: u64,
}

impl Bounds {
    /// Everything there is.
    pub const WHOLE: Self = Self { items: usize::MAX, bytes: u64::MAX };
}

/// Some of the rows that belong to something.
#[derive(Debug, Clone, PartialEq)]
pub struct Part<T> {
    /// Those within the bounds that could be read.
    pub items: Vec<T>,
    /// How many there are.
    pub total: usize,
    /// How many within the bounds could not be read.
    pub left_out: usize,
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
#[derive(Clone)]
pub(super) struct Filter {
    /// What stands before SELECT.
    pub with: String,
    pub sql: String,
    pub bound: Vec<Value>,
}

impl Filter {
    pub fn and(&mut self, sql: &str, value: Value) {
        self.sql.push_str(" AND ");
        self.sql.push_str(sql);
        self.bound.push(value);
    }

    pub fn params(&self) -> Vec<&dyn ToSql> {
        self.bound.iter().map(|value| value as &dyn ToSql).collect()
    }
}

/// What stands before SELECT, and FROM and WHERE of a query. The newest version and the latest verdict of each trace are
/// looked up for the odd ones alone; verdicts only when a filter asks for them.
pub(super) fn filter(tenant: &Tenant, query: &TraceQuery) -> Filter {
    let text = |text: &str| Value::Text(text.to_owned());
    let mut columns = Vec::new();
    if query.min_score.is_some() || query.max_score.is_some() {
        columns.push(Column::Score);
    }
    columns.extend(query.verdict.map(|_| Column::State));
    columns.extend(query.rule.as_ref().map(|_| Column::FailedRules));
    let odd = if columns.is_empty() { Odd::versions(tenant) } else { Odd::verdicts(tenant, &columns, None) };
    let mut filter = Filter {
        with: format!("WITH {}", odd.sql),
        sql: format!("FROM traces t {}", verdicts::JOIN),
        bound: odd.bound,
    };
    filter.bound.push(text(tenant.as_str()));
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
            filter.and(sql, text(long::name(name)));
        }
    }
    if let Some(since) = query.since {
        filter.and("t.timestamp >= ?", micros(since));
    }
    if let Some(until) = query.until {
        filter.and("t.timestamp <= ?", micros(until));
    }
    // Each is bound twice: for the row of the trace, and for what is odd.
    let mut is = |column: Column, condition: &str, value: Value| {
        filter.bound.push(value.clone());
        filter.and(&column.is(condition), value);
    };
    if let Some(score) = query.min_score {
        is(Column::Score, "{} >= ?", Value::Double(score));
    }
    if let Some(score) = query.max_score {
        is(Column::Score, "{} <= ?", Value::Double(score));
    }
    if let Some(state) = query.verdict {
        is(Column::State, "{} = ?", text(state.as_str()));
    }
    if let Some(rule) = &query.rule {
        is(Column::FailedRules, "contains({}, ?)", Value::Text(serde_json::Value::from(rule.as_str()).to_string()));
    }
    filter
}

pub(super) fn has_trace(reader: &Reader<'_>, key: &RowKey) -> Result<bool, Error> {
    let sql = "SELECT 1 FROM traces WHERE tenant = ? AND trace_id = ? LIMIT 1";
    let found = reader.first(sql, &[&key.tenant.as_str(), &key.trace_id.as_bytes().as_slice()], |_| Ok(()))?;
    Ok(found.is_some())
}

pub(super) fn trace(reader: &Reader<'_>, key: &RowKey) -> Result<Option<Trace>, Error> {
    let newest = "SELECT rowid FROM traces WHERE tenant = ? AND trace_id = ? ORDER BY version DESC, rowid DESC LIMIT 1";
    let place: Option<i64> =
        reader.first(newest, &[&key.tenant.as_str(), &key.trace_id.as_bytes().as_slice()], |row| {
            row.get(0).map_err(Error::engine)
        })?;
    let Some(place) = place else { return Ok(None) };
    let sql = format!("SELECT {} FROM traces WHERE rowid = {place}", traces::COLUMNS);
    let Some(stored) = reader.first(&sql, &[], traces::Stored::read)? else { return Ok(None) };
    let mut values = Values::read(reader, &stored.long, &[])?;
    stored.parsed(&mut values, &traces::WIDE)?.trace().map(Some)
}

/// Every observation of a trace once, by start: a resend collapses, a conflicting span stays beside the first.
pub(super) fn rows(reader: &Reader<'_>, key: &RowKey, bounds: Bounds) -> Result<Part<Row>, Error> {
    let sql = "SELECT rowid, strlen(attributes) + strlen(rest), long_id, long FROM spans WHERE tenant = ? AND trace_id = ? \
         QUALIFY row_number() OVER (PARTITION BY span_id, content_hash ORDER BY lane, seq, ordinal) = 1 \
         ORDER BY start_time, seq, ordinal, lane";
    let mut places: Vec<(i64, u64)> =
        reader.rows(sql, &[&key.tenant.as_str(), &key.trace_id.as_bytes().as_slice()], |row| {
            let read = || -> duckdb::Result<(i64, u64)> {
                let long = Long::read(row, 2)?.map_or(0, |long| long.all_bytes());
                Ok((row.get(0)?, row.get::<_, u64>(1)?.saturating_add(long)))
            };
            read().map_err(Error::engine)
        })?;
    let total = places.len();
    let mut bytes = 0_u64;
    let fitting = places.iter().take(bounds.items).take_while(|(_, size)| {
        let before = bytes;
        bytes = bytes.saturating_add(*size);
        before < bounds.bytes
    });
    let fitting = fitting.count();
    places.truncate(fitting);
    let mut shared = Shared::default();
    let mut items = Vec::with_capacity(places.len());
    for bite in bites(&places) {
        let mut found = fetch(reader, "spans", spans::COLUMNS, &bite, &mut spans::Stored::read)?;
        let mut values = Values::read(reader, found.values().filter_map(|stored| stored.long.as_ref()), &[])?;
        for stored in bite.iter().filter_map(|place| found.remove(place)) {
            items.extend(reader.keep(stored.whole(&mut values, &mut shared))?);
        }
    }
    let left_out = places.len() - items.len();
    Ok(Part { items, total, left_out })
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
    let evaluation = match reader.readable(&sql, &bound, evaluations::Stored::read)?.pop() {
        Some(stored) => {
            let mut values = Values::read(reader, &stored.long, evaluations::ALL)?;
            reader.keep(stored.evaluation(&mut values, evaluations::ALL, reader.shapes))?
        }
        None => None,
    };
    Ok(Loaded { rows: rows(reader, key, Bounds::WHOLE)?.items, version, evaluation })
}

/// The evaluations of a trace, newest first; the text that was judged is left out of those that are large for it.
pub(super) fn evaluations(reader: &Reader<'_>, key: &RowKey, bounds: Bounds) -> Result<Part<Evaluation>, Error> {
    let sql = "SELECT rowid FROM evaluations WHERE tenant = ? AND trace_id = ? ORDER BY created_at DESC, rowid DESC";
    let mut places: Vec<i64> =
        reader.rows(sql, &[&key.tenant.as_str(), &key.trace_id.as_bytes().as_slice()], |row| {
            row.get(0).map_err(Error::engine)
        })?;
    let total = places.len();
    places.truncate(bounds.items);
    let mut found = page::evaluations(reader, &places)?;
    let items: Vec<Evaluation> = places.iter().filter_map(|place| found.remove(place)).collect();
    let left_out = places.len() - items.len();
    Ok(Part { items, total, left_out })
}

pub(super) fn evaluation(reader: &Reader<'_>, tenant: &Tenant, id: &str) -> Result<Option<Evaluation>, Error> {
    let sql = format!(
        "SELECT {} FROM evaluations WHERE tenant = ? AND id = ? ORDER BY created_at DESC, rowid DESC LIMIT 1",
        evaluations::COLUMNS
    );
    let Some(stored) = reader.first(&sql, &[&tenant.as_str(), &id], evaluations::Stored::read)? else {
        return Ok(None);
    };
    let mut values = Values::read(reader, &stored.long, evaluations::ALL)?;
    stored.evaluation(&mut values, evaluations::ALL, reader.shapes).map(Some)
}
