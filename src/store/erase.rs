//! Removes traces whole: spans, every version, and the text of the evaluations that judged them.

use duckdb::{Connection, ToSql};
use iris_core::model::{Evaluation, RowKey, Timestamp};

use super::beside::Beside;
use super::long::{self, Values};
use super::shapes::Known;
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
    let chosen = format!("(tenant, trace_id) IN (VALUES {})", vec!["(?, ?)"; keys.len()].join(", "));
    let names: Vec<(&str, &[u8])> =
        keys.iter().map(|key| (key.tenant.as_str(), key.trace_id.as_bytes().as_slice())).collect();
    let bound: Vec<&dyn ToSql> =
        names.iter().flat_map(|(tenant, id)| [tenant as &dyn ToSql, id as &dyn ToSql]).collect();
    let delete = |table: &str, filter: &str| {
        long::delete(connection, &format!("DELETE FROM {table} WHERE {chosen}{filter}"), &bound)
    };
    let spans = delete("spans", "")?;
    let traces = delete("traces", "")?;
    let linked = linked(connection, &chosen, &bound, &beside.shapes.known())?;
    if !linked.is_empty() {
        delete("evaluations", " AND NOT erased")?;
        group::table(connection, "evaluations", true, |appender| {
            linked.iter().try_for_each(|evaluation| {
                evaluations::append(appender, &without_text(evaluation.clone(), now), evaluation.position, beside)
            })
        })?;
    }
    Ok(Erased { spans, traces, evaluations: linked.len() })
}

fn linked(
    connection: &Connection,
    chosen: &str,
    bound: &[&dyn ToSql],
    shapes: &Known,
) -> Result<Vec<Evaluation>, Error> {
    let sql = format!(
        "SELECT {} FROM evaluations WHERE {chosen} AND NOT erased ORDER BY created_at, rowid",
        evaluations::COLUMNS_WITHOUT_TEXTS
    );
    let mut statement = connection.prepare(&sql).map_err(Error::engine)?;
    let mut rows = statement.query(bound).map_err(Error::engine)?;
    let mut stored = Vec::new();
    while let Some(row) = rows.next().map_err(Error::engine)? {
        stored.push(evaluations::Stored::read(row)?);
    }
    let long = stored.iter().filter_map(|stored| stored.long.as_ref());
    let mut values = Values::read_for_writing(connection, long, evaluations::BODY)?;
    let mut found = Vec::new();
    for stored in stored {
        match stored.evaluation(&mut values, evaluations::BODY, shapes) {
            Ok(evaluation) => found.push(evaluation),
            // Nothing of it can be kept, and what it says has to go.
            Err(error @ Error::Unreadable { .. }) => tracing::error!(%error, "an evaluation goes with its trace"),
            Err(error) => return Err(error),
        }
    }
    Ok(found)
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
    evaluation.erased_at = Some(now);
    evaluation
}
