//! Removes traces whole: spans, every version, and the text of the evaluations that judged them.

use std::ops::AddAssign;

use duckdb::{Connection, ToSql};
use iris_core::model::{Evaluation, Position, RowKey, Tenant, Timestamp};

use super::beside::Beside;
use super::long::{self, Values};
use super::shapes::Known;
use super::spans::micros;
use super::track::lane_of;
use super::{Error, evaluations, group};

/// What stands in place of a message whose trace is gone.
const ERASED: &str = "erased with the trace";

/// How much went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Erased {
    pub spans: usize,
    pub traces: usize,
    pub evaluations: usize,
}

impl AddAssign for Erased {
    fn add_assign(&mut self, other: Self) {
        self.spans += other.spans;
        self.traces += other.traces;
        self.evaluations += other.evaluations;
    }
}

/// The traces as a condition, and what it binds.
struct Chosen<'a> {
    sql: String,
    names: Vec<(&'a str, &'a [u8])>,
}

impl<'a> Chosen<'a> {
    fn of(keys: &'a [RowKey]) -> Self {
        let sql = format!("(tenant, trace_id) IN (VALUES {})", vec!["(?, ?)"; keys.len()].join(", "));
        let name = |key: &'a RowKey| (key.tenant.as_str(), key.trace_id.as_bytes().as_slice());
        Self { sql, names: keys.iter().map(name).collect() }
    }

    fn bound(&self) -> Vec<&dyn ToSql> {
        self.names.iter().flat_map(|(tenant, id)| [tenant as &dyn ToSql, id as &dyn ToSql]).collect()
    }

    fn delete(&self, connection: &Connection, table: &str, filter: &str) -> Result<usize, Error> {
        let sql = format!("DELETE FROM {table} WHERE {}{filter}", self.sql);
        long::delete(connection, &sql, &self.bound())
    }
}

/// Deletes the traces with all that judged them inside the caller's transaction, and what judged no trace that is left
/// before that time.
pub(super) fn purge(
    connection: &Connection,
    keys: &[RowKey],
    tenant: &Tenant,
    evaluations_before: Option<Timestamp>,
) -> Result<Erased, Error> {
    let mut erased = Erased::default();
    if !keys.is_empty() {
        let chosen = Chosen::of(keys);
        erased.spans = chosen.delete(connection, "spans", "")?;
        erased.traces = chosen.delete(connection, "traces", "")?;
        erased.evaluations = chosen.delete(connection, "evaluations", "")?;
    }
    if let Some(before) = evaluations_before {
        let sql = "DELETE FROM evaluations WHERE tenant = ? AND created_at < ? AND (trace_id IS NULL OR NOT EXISTS \
                   (SELECT 1 FROM traces t WHERE t.tenant = evaluations.tenant AND t.trace_id = evaluations.trace_id))";
        erased.evaluations += long::delete(connection, sql, &[&tenant.as_str(), &micros(before)])?;
    }
    Ok(erased)
}

/// Deletes the traces inside the caller's transaction ([`group::transaction_beside`]), each table scanned once for all of them. Verdicts,
/// scores and offsets of their evaluations stay.
pub(super) fn erase(
    connection: &Connection,
    keys: &[RowKey],
    now: Timestamp,
    beside: &mut Beside,
) -> Result<Erased, Error> {
    if keys.is_empty() {
        return Ok(Erased::default());
    }
    let chosen = Chosen::of(keys);
    let spans = chosen.delete(connection, "spans", "")?;
    let traces = chosen.delete(connection, "traces", "")?;
    let linked = linked(connection, &chosen, &beside.shapes.known())?;
    if !linked.is_empty() {
        chosen.delete(connection, "evaluations", " AND NOT erased")?;
        group::table(connection, "evaluations", true, |appender| {
            linked.iter().try_for_each(|evaluation| {
                let kept = without_text(evaluation.clone(), now);
                evaluations::append(appender, &kept, kept.position, false, beside)
            })
        })?;
    }
    Ok(Erased { spans, traces, evaluations: linked.len() })
}

fn linked(connection: &Connection, chosen: &Chosen<'_>, shapes: &Known) -> Result<Vec<Evaluation>, Error> {
    let sql = format!(
        "SELECT {}, lane, seq, ordinal FROM evaluations WHERE {} AND NOT erased ORDER BY created_at, rowid",
        evaluations::COLUMNS_WITHOUT_TEXTS,
        chosen.sql
    );
    let mut statement = connection.prepare(&sql).map_err(Error::engine)?;
    let mut rows = statement.query(chosen.bound().as_slice()).map_err(Error::engine)?;
    let mut stored = Vec::new();
    while let Some(row) = rows.next().map_err(Error::engine)? {
        stored.push((evaluations::Stored::read(row)?, record(row).map_err(Error::engine)?));
    }
    let long = stored.iter().filter_map(|(stored, _)| stored.long.as_ref());
    let mut values = Values::read_for_writing(connection, long, evaluations::BODY)?;
    let mut found = Vec::new();
    for (stored, position) in stored {
        match stored.evaluation(&mut values, evaluations::BODY, shapes) {
            Ok(evaluation) => found.push(Evaluation { position, ..evaluation }),
            // Nothing of it can be kept, and what it says has to go.
            Err(error @ Error::Unreadable { .. }) => tracing::error!(%error, "an evaluation goes with its trace"),
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Which record a row is of, as its columns say, which follow those of the evaluation. Builds before 2026-12 wrote another into
/// its body.
fn record(row: &duckdb::Row<'_>) -> duckdb::Result<Option<Position>> {
    let (lane, seq, ordinal): (Option<u8>, Option<u64>, Option<u32>) =
        (row.get("lane")?, row.get("seq")?, row.get("ordinal")?);
    let lane = lane.and_then(lane_of);
    Ok(lane.zip(seq).zip(ordinal).map(|((lane, seq), ordinal)| Position { lane, seq, ordinal }))
}

/// The same evaluation without a word of what was judged.
pub(super) fn without_text(mut evaluation: Evaluation, now: Timestamp) -> Evaluation {
    evaluation.output_text = evaluation.output_text.map(|_| String::new());
    evaluation.expected_text = None;
    evaluation.suggestions.clear();
    for result in &mut evaluation.rule_results {
        ERASED.clone_into(&mut result.message);
        if result.skip_reason.is_some() {
            result.skip_reason = Some(ERASED.to_owned());
        }
    }
    evaluation.answered = evaluation.answered.map(iris_core::evaluate::without_words);
    evaluation.erased_at = Some(now);
    evaluation
}
