//! A page of traces: which ones first, from narrow columns, then their values in bounded bites.
//!
//! A long value is read whole only while all of the page's values fit the reply; otherwise the engine cuts the long
//! texts, and the long documents are cut as they come. `runs` is not read: no page shows it.

use std::collections::HashMap;

use duckdb::ToSql;
use duckdb::types::Value;
use iris_core::contract::SortBy;
use iris_core::model::{Evaluation, Tenant, Timestamp, Trace, TraceId};

use super::fetch::{bites, fetch};
use super::query::{TraceQuery, filter};
use super::reader::Reader;
use super::spans::{timestamp, trace_id};
use super::{Error, evaluations, traces};

/// A longer value is not read before it is known what of it is wanted, in bytes.
const LONG_BYTES: u64 = 16 * 1024;
/// Rows whose short values are read at a time: four values a row.
const ROWS_AT_A_TIME: usize = 128;
/// What is kept of a long text that the reply cuts, in characters.
const HEAD_CHARS: u64 = 4096;
/// An evaluation above this size is read without the text that it judged, in bytes.
const EVALUATION_BYTES: u64 = 64 * 1024;

/// How much the values of a page may be.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Bytes of text up to which every value is whole.
    pub bytes: u64,
    /// Cuts a long document of a page that is larger; true when it lost something.
    pub shrink: fn(&mut serde_json::Value) -> bool,
}

impl Budget {
    /// Everything whole.
    pub const WHOLE: Self = Self { bytes: u64::MAX, shrink: |_| false };
}

/// One page of traces, each with its latest evaluation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TracePage {
    /// The traces of the page.
    pub rows: Vec<PageRow>,
    /// How many there are on all pages.
    pub total: u64,
    /// Traces of the page that cannot be read.
    pub unreadable: Vec<TraceId>,
}

/// A trace of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct PageRow {
    /// The trace, without its `runs`.
    pub trace: Trace,
    /// Its latest evaluation; without the judged text, when that is long.
    pub evaluation: Option<Evaluation>,
    /// What it lost.
    pub lost: Lost,
}

/// What was cut from a trace as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lost {
    /// Characters of `input` beyond what is here.
    pub input: u64,
    /// Characters of `output` beyond what is here.
    pub output: u64,
    /// Something in `tool_calls`.
    pub tool_calls: bool,
    /// Something in `metadata`.
    pub metadata: bool,
}

pub(super) fn page(
    reader: &Reader<'_>,
    tenant: &Tenant,
    query: &TraceQuery,
    budget: Budget,
) -> Result<TracePage, Error> {
    let (chosen, total) = choose(reader, tenant, query)?;
    let places: Vec<i64> = chosen.iter().map(|(place, _)| *place).collect();
    let mut found = values(reader, &places, budget)?;
    let mut page = TracePage { total, ..TracePage::default() };
    for (place, id) in chosen {
        match found.remove(&place) {
            Some((trace, lost)) if id == Some(trace.trace_id) => {
                page.rows.push(PageRow { trace, evaluation: None, lost });
            }
            _ => page.unreadable.extend(id),
        }
    }
    let ids: Vec<TraceId> = page.rows.iter().map(|row| row.trace.trace_id).collect();
    let mut latest = latest(reader, tenant, &ids)?;
    for row in &mut page.rows {
        row.evaluation = latest.remove(&row.trace.trace_id);
    }
    Ok(page)
}

/// A row's number and its trace's id, where that is one.
type Place = (i64, Option<TraceId>);

/// Which rows, in order, and how many there are on all pages.
fn choose(reader: &Reader<'_>, tenant: &Tenant, query: &TraceQuery) -> Result<(Vec<Place>, u64), Error> {
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
    let chosen = reader.rows(&sql, &filter.params(), |row| {
        let read = || -> duckdb::Result<(i64, Vec<u8>)> { Ok((row.get(0)?, row.get(1)?)) };
        let (place, id) = read().map_err(Error::engine)?;
        Ok((place, trace_id(&id).ok()))
    })?;
    Ok((chosen, total))
}

/// The short values of a row, and how long the long ones are.
struct Short {
    texts: [Option<String>; 2],
    documents: [Option<String>; 2],
    body: Option<String>,
    time: Timestamp,
    /// Bytes of `input`, `output`, `tool_calls`, `metadata` and `body`.
    bytes: [u64; 5],
    /// Characters of a long `input` and `output`.
    chars: [u64; 2],
}

impl Short {
    fn shown_bytes(&self) -> u64 {
        self.bytes[..4].iter().sum()
    }

    /// The bytes that are still to be read.
    fn missing(&self, whole: bool) -> u64 {
        let wanted = if whole { &self.bytes[..] } else { &self.bytes[2..] };
        wanted.iter().filter(|bytes| **bytes > LONG_BYTES).sum()
    }
}

/// The columns that [`read_short`] takes, in its order.
fn short_columns() -> String {
    let text =
        |name: &str| format!("CASE WHEN strlen({name}) > {LONG_BYTES} THEN left({name}, {HEAD_CHARS}) ELSE {name} END");
    let document = |name: &str| format!("CASE WHEN strlen({name}) <= {LONG_BYTES} THEN {name} END");
    let bytes = |name: &str| format!("coalesce(strlen({name}), 0)");
    let chars = |name: &str| format!("CASE WHEN strlen({name}) > {LONG_BYTES} THEN length({name}) ELSE 0 END");
    [
        text("input"),
        text("output"),
        document("tool_calls"),
        document("metadata"),
        document("body"),
        "epoch_us(timestamp)".to_owned(),
        "nanos".to_owned(),
        bytes("input"),
        bytes("output"),
        bytes("tool_calls"),
        bytes("metadata"),
        bytes("body"),
        chars("input"),
        chars("output"),
    ]
    .join(", ")
}

fn read_short(row: &duckdb::Row<'_>) -> Result<Short, Error> {
    let read = || -> duckdb::Result<Short> {
        Ok(Short {
            texts: [row.get(0)?, row.get(1)?],
            documents: [row.get(2)?, row.get(3)?],
            body: row.get(4)?,
            time: timestamp(row.get(5)?, row.get(6)?),
            bytes: [row.get(7)?, row.get(8)?, row.get(9)?, row.get(10)?, row.get(11)?],
            chars: [row.get(12)?, row.get(13)?],
        })
    };
    read().map_err(|error| Error::Unreadable { table: "traces", why: error.to_string() })
}

/// The traces at these places, with what each lost.
fn values(reader: &Reader<'_>, places: &[i64], budget: Budget) -> Result<HashMap<i64, (Trace, Lost)>, Error> {
    let mut short = HashMap::with_capacity(places.len());
    for some in places.chunks(ROWS_AT_A_TIME) {
        short.extend(fetch(reader, "traces", &short_columns(), some, &mut read_short)?);
    }
    let sum = short.values().map(Short::shown_bytes).fold(0, u64::saturating_add);
    let whole = sum <= budget.bytes;
    let mut rest: Vec<(i64, u64)> = Vec::new();
    let mut found = HashMap::with_capacity(places.len());
    for place in places {
        let Some(row) = short.get(place) else { continue };
        match row.missing(whole) {
            0 => {
                let Some(row) = short.remove(place) else { continue };
                let lost = row.lost(whole);
                match row.trace() {
                    Ok(trace) => {
                        found.insert(*place, (trace, lost));
                    }
                    Err(error) => reader.leave_out(&error, 1),
                }
            }
            missing => rest.push((*place, missing)),
        }
    }
    let texts = if whole { "input, output" } else { "NULL::VARCHAR, NULL::VARCHAR" };
    let columns = format!("{texts}, tool_calls, metadata, body, rowid");
    for bite in bites(&rest) {
        let read = &mut |row: &duckdb::Row<'_>| {
            let place = row.get::<_, i64>(5).map_err(Error::engine)?;
            let short = short.remove(&place).ok_or_else(gone)?;
            short.completed(row, whole, budget)
        };
        found.extend(fetch(reader, "traces", &columns, &bite, read)?);
    }
    Ok(found)
}

impl Short {
    /// What of the texts is missing here.
    fn lost(&self, whole: bool) -> Lost {
        let beyond = |chars: u64| if whole { 0 } else { chars.saturating_sub(HEAD_CHARS) };
        Lost { input: beyond(self.chars[0]), output: beyond(self.chars[1]), ..Lost::default() }
    }

    fn trace(self) -> Result<Trace, Error> {
        let [tool_calls, metadata] = self.documents;
        let documents = [parsed(tool_calls)?, parsed(metadata)?, serde_json::json!([])];
        traces::put_together(self.texts, documents, self.body.as_deref().unwrap_or_default(), self.time)
    }

    /// With the long values of a row that was read a second time.
    fn completed(self, row: &duckdb::Row<'_>, whole: bool, budget: Budget) -> Result<(Trace, Lost), Error> {
        let read = || -> duckdb::Result<([Option<String>; 4], String)> {
            Ok(([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?], row.get(4)?))
        };
        let unreadable = |error: duckdb::Error| Error::Unreadable { table: "traces", why: error.to_string() };
        let ([input, output, tool_calls, metadata], body) = read().map_err(unreadable)?;
        let mut lost = self.lost(whole);
        let texts = if whole { [input, output] } else { self.texts };
        let mut documents = [parsed(tool_calls)?, parsed(metadata)?];
        if !whole {
            for ((document, bytes), lost) in
                documents.iter_mut().zip(&self.bytes[2..]).zip([&mut lost.tool_calls, &mut lost.metadata])
            {
                *lost = *bytes > LONG_BYTES && (budget.shrink)(document);
            }
        }
        let [tool_calls, metadata] = documents;
        let trace = traces::put_together(texts, [tool_calls, metadata, serde_json::json!([])], &body, self.time)?;
        Ok((trace, lost))
    }
}

fn gone() -> Error {
    Error::Unreadable { table: "traces", why: "it is another row by now".to_owned() }
}

fn parsed(document: Option<String>) -> Result<serde_json::Value, Error> {
    let Some(text) = document else { return Ok(serde_json::Value::Null) };
    serde_json::from_str(&text).map_err(|error| Error::Unreadable { table: "traces", why: traces::json_fault(error) })
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
    let found = evaluations(reader, &chosen)?;
    Ok(found.into_values().filter_map(|evaluation| Some((evaluation.trace_id?, evaluation))).collect())
}

/// Evaluations by their rows' numbers. From a large one the text that it judged is left out: it is the trace's own,
/// and no reply carries it twice.
pub(super) fn evaluations(reader: &Reader<'_>, places: &[i64]) -> Result<HashMap<i64, Evaluation>, Error> {
    let columns = evaluations::columns_without_text(EVALUATION_BYTES);
    let mut found = HashMap::with_capacity(places.len());
    for some in places.chunks(ROWS_AT_A_TIME) {
        found.extend(fetch(reader, "evaluations", &columns, some, &mut evaluations::read)?);
    }
    Ok(found)
}
