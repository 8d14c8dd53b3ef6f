//! A page of traces: which ones first, from narrow columns, then their values in bounded bites.
//!
//! Long values are read only while all of the page's values fit the reply; otherwise long texts stay as their row
//! keeps them, and the long documents are cut as they come. `runs` is not read: no page shows it.

use std::collections::HashMap;

use duckdb::types::Value;
use iris_core::contract::SortBy;
use iris_core::model::{Evaluation, Tenant, Trace, TraceId};

use super::fetch::{bites, fetch};
use super::long::Values;
use super::query::{Filter, TraceQuery, filter};
use super::reader::Reader;
use super::search::Unread;
use super::spans::trace_id;
use super::{Error, evaluations, newest, search, traces};

/// Rows that are read at a time, without their long values.
const ROWS_AT_A_TIME: usize = 128;

/// Rows beyond what is wanted that are looked for first.
const NEAR_SPARE: u64 = 400;

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
    /// What a search could not look at; nothing of it is on a page or counted.
    pub unread: Option<Unread>,
}

/// A trace of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct PageRow {
    /// The trace, without its `runs`.
    pub trace: Trace,
    /// Its latest evaluation; without the judged text, when that is long or the budget nothing.
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
    let Chosen { places: chosen, total, unread } = choose(reader, tenant, query)?;
    let places: Vec<i64> = chosen.iter().map(|(place, _)| *place).collect();
    let mut found = values(reader, &places, budget)?;
    let mut page = TracePage { total, unread, ..TracePage::default() };
    let mut shown = Vec::with_capacity(chosen.len());
    for (place, id) in chosen {
        match found.remove(&place) {
            Some((trace, lost)) if id == Some(trace.trace_id) => {
                shown.push((place, trace.trace_id));
                page.rows.push(PageRow { trace, evaluation: None, lost });
            }
            _ => page.unreadable.extend(id),
        }
    }
    // A page on which no text is whole has none of those that were judged.
    let columns = if budget.bytes == 0 { evaluations::COLUMNS_OF_VERDICT } else { evaluations::COLUMNS };
    let mut latest = latest(reader, tenant, &shown, columns)?;
    for row in &mut page.rows {
        row.evaluation = latest.remove(&row.trace.trace_id);
    }
    Ok(page)
}

/// A row's number and its trace's id, where that is one.
pub(super) type Place = (i64, Option<TraceId>);

/// The rows of a page, in order.
struct Chosen {
    places: Vec<Place>,
    /// How many there are on all pages.
    total: u64,
    unread: Option<Unread>,
}

fn choose(reader: &Reader<'_>, tenant: &Tenant, query: &TraceQuery) -> Result<Chosen, Error> {
    if let Some((places, total)) = newest::newest(reader, tenant, query)? {
        return Ok(Chosen { places, total, unread: None });
    }
    let (mut filter, mut unread) = (filter(tenant, query), None);
    if !query.words.is_empty() {
        unread = search::narrow(reader, &mut filter, &query.words)?;
        filter = search::few(reader, filter)?;
    }
    let (total, oldest, newest) = counted(reader, &filter)?;
    let wanted = query.offset.saturating_add(query.limit.into());
    let expected = total.saturating_sub(query.offset).min(query.limit.into());
    if expected == 0 {
        return Ok(Chosen { places: Vec::new(), total, unread });
    }
    let bound = match query.sort_by {
        SortBy::Timestamp => near(wanted, total, oldest, newest, query.ascending),
        SortBy::LatencyMs | SortBy::CostUsd => None,
    };
    let mut found = Vec::new();
    if bound.is_some() {
        found = ordered(reader, &mut filter, query, bound)?;
    }
    if (found.len() as u64) < expected {
        found = ordered(reader, &mut filter, query, None)?;
    }
    Ok(Chosen { places: found, total, unread })
}

/// How many there are, and when the first and the last of them began, in microseconds.
fn counted(reader: &Reader<'_>, filter: &Filter) -> Result<(u64, i64, i64), Error> {
    let sql = format!(
        "{} SELECT count(*), coalesce(epoch_us(min(t.timestamp)), 0), coalesce(epoch_us(max(t.timestamp)), 0) {}",
        filter.with, filter.sql
    );
    let read =
        |row: &duckdb::Row<'_>| -> duckdb::Result<(u64, i64, i64)> { Ok((row.get(0)?, row.get(1)?, row.get(2)?)) };
    Ok(reader.first(&sql, &filter.params(), |row| read(row).map_err(Error::engine))?.unwrap_or_default())
}

/// A time within which the first of many probably lie, were they spread evenly. The engine passes over all that lies beyond it,
/// and sorts the rest alone.
fn near(wanted: u64, total: u64, oldest: i64, newest: i64, ascending: bool) -> Option<i64> {
    let many = wanted.saturating_mul(4).saturating_add(NEAR_SPARE);
    if many.saturating_mul(2) > total {
        return None;
    }
    let reach = i128::from(newest.saturating_sub(oldest)) * i128::from(many) / i128::from(total);
    let reach = i64::try_from(reach).ok()?;
    Some(if ascending { oldest.saturating_add(reach) } else { newest.saturating_sub(reach) })
}

/// A page in order, within a time where one is given.
fn ordered(
    reader: &Reader<'_>,
    filter: &mut Filter,
    query: &TraceQuery,
    bound: Option<i64>,
) -> Result<Vec<Place>, Error> {
    let direction = if query.ascending { "ASC" } else { "DESC" };
    let key = match query.sort_by {
        SortBy::Timestamp => "timestamp",
        SortBy::LatencyMs => "latency_ms",
        SortBy::CostUsd => "cost_usd",
    };
    let within = match bound {
        Some(bound) if query.ascending => format!(" AND t.timestamp <= make_timestamp({bound})"),
        Some(bound) => format!(" AND t.timestamp >= make_timestamp({bound})"),
        None => String::new(),
    };
    let sql = format!(
        "{} SELECT t.rowid, t.trace_id {}{within} \
         ORDER BY t.{key} {direction} NULLS LAST, t.timestamp {direction}, t.trace_id LIMIT ? OFFSET ?",
        filter.with, filter.sql,
    );
    let conditions = filter.bound.len();
    filter.bound.extend([Value::UInt(query.limit), Value::UBigInt(query.offset)]);
    let found = reader.rows(&sql, &filter.params(), |row| {
        let read = || -> duckdb::Result<(i64, Vec<u8>)> { Ok((row.get(0)?, row.get(1)?)) };
        let (place, id) = read().map_err(Error::engine)?;
        Ok((place, trace_id(&id).ok()))
    });
    filter.bound.truncate(conditions);
    found
}

/// What a page shows of a row's wide columns; the documents alone once the page is too large.
const SHOWN: [&str; 4] = ["input", "output", "tool_calls", "metadata"];
const DOCUMENTS: [&str; 3] = ["tool_calls", "metadata", "body"];

/// The traces at these places, with what each lost.
fn values(reader: &Reader<'_>, places: &[i64], budget: Budget) -> Result<HashMap<i64, (Trace, Lost)>, Error> {
    let mut rows = HashMap::with_capacity(places.len());
    for some in places.chunks(ROWS_AT_A_TIME) {
        rows.extend(fetch(reader, "traces", traces::PAGE_COLUMNS, some, &mut traces::Stored::read)?);
    }
    let shown = |row: &traces::Stored| SHOWN.iter().map(|field| row.bytes(field)).sum::<u64>();
    let whole = rows.values().map(shown).fold(0, u64::saturating_add) <= budget.bytes;
    let wanted: &[&str] = if whole { &[SHOWN[0], SHOWN[1], SHOWN[2], SHOWN[3], "body"] } else { &DOCUMENTS };
    let sizes: Vec<(i64, u64)> =
        places.iter().filter_map(|place| Some((*place, missing(rows.get(place)?, wanted)))).collect();
    let mut found = HashMap::with_capacity(places.len());
    for bite in bites(&sizes) {
        let long = bite.iter().filter_map(|place| rows.get(place)?.long.as_ref());
        let mut values = Values::read(reader, long, wanted)?;
        for place in bite {
            let Some(row) = rows.remove(&place) else { continue };
            found.extend(reader.keep(shorter(row, &mut values, whole, budget))?.map(|shown| (place, shown)));
        }
    }
    Ok(found)
}

/// The bytes of a row that are still to be read.
fn missing(row: &traces::Stored, wanted: &[&str]) -> u64 {
    wanted.iter().filter_map(|field| row.long.as_ref()?.bytes(field)).fold(0, u64::saturating_add)
}

/// The trace as the page shows it: texts as the row keeps them and documents cut, unless all of it is `whole`.
fn shorter(row: traces::Stored, values: &mut Values, whole: bool, budget: Budget) -> Result<(Trace, Lost), Error> {
    if whole {
        return Ok((row.parsed(values, &SHOWN)?.trace()?, Lost::default()));
    }
    let long = row.long.clone().unwrap_or_default();
    let mut parsed = row.parsed(values, &DOCUMENTS)?;
    let mut lost = Lost::default();
    let [tool_calls, metadata, _] = &mut parsed.documents;
    lost.tool_calls = long.bytes("tool_calls").is_some() && (budget.shrink)(tool_calls);
    lost.metadata = long.bytes("metadata").is_some() && (budget.shrink)(metadata);
    let trace = parsed.trace()?;
    let beyond = |field: &str, kept: &Option<String>| {
        let kept = kept.as_ref().map_or(0, |text| text.chars().count() as u64);
        long.chars(field).map_or(0, |chars| chars.saturating_sub(kept))
    };
    lost.input = beyond("input", &trace.input);
    lost.output = beyond("output", &trace.output);
    Ok((trace, lost))
}

fn latest(
    reader: &Reader<'_>,
    tenant: &Tenant,
    traces: &[(i64, TraceId)],
    columns: &str,
) -> Result<HashMap<TraceId, Evaluation>, Error> {
    let chosen: Vec<i64> = newest::judged(reader, tenant, traces)?;
    let found = evaluations_of(reader, &chosen, columns)?;
    Ok(found.into_values().filter_map(|evaluation| Some((evaluation.trace_id?, evaluation))).collect())
}

/// Evaluations by their rows' numbers, without the texts that they judged where those are long: they are the trace's
/// own, and no reply carries them twice.
pub(super) fn evaluations(reader: &Reader<'_>, places: &[i64]) -> Result<HashMap<i64, Evaluation>, Error> {
    evaluations_of(reader, places, evaluations::COLUMNS)
}

fn evaluations_of(reader: &Reader<'_>, places: &[i64], columns: &str) -> Result<HashMap<i64, Evaluation>, Error> {
    let mut found = HashMap::with_capacity(places.len());
    for some in places.chunks(ROWS_AT_A_TIME) {
        let mut rows = fetch(reader, "evaluations", columns, some, &mut evaluations::Stored::read)?;
        let size =
            |row: &evaluations::Stored| row.long.as_ref().and_then(|long| long.bytes("body")).unwrap_or_default();
        let sizes: Vec<(i64, u64)> = some.iter().filter_map(|place| Some((*place, size(rows.get(place)?)))).collect();
        for bite in bites(&sizes) {
            let long = bite.iter().filter_map(|place| rows.get(place)?.long.as_ref());
            let mut values = Values::read(reader, long, evaluations::BODY)?;
            for place in bite {
                let Some(row) = rows.remove(&place) else { continue };
                found.extend(
                    reader
                        .keep(row.without_long_texts(&mut values, reader.shapes))?
                        .map(|evaluation| (place, evaluation)),
                );
            }
        }
    }
    Ok(found)
}
