//! The `evaluations` table: hot columns for filters, the whole [`Evaluation`] as JSON.

use duckdb::{Appender, params};
use iris_core::model::{Evaluation, Position};

use super::Error;
use super::spans::{micros, nanos_of, timestamp};
use super::traces::json_fault;
use super::track::lane_number;

/// The columns that [`read`] takes, in its order.
pub(super) const COLUMNS: &str = "body, epoch_us(created_at), nanos";

/// As [`COLUMNS`], without the texts that were judged in a body above so many bytes.
pub(super) fn columns_without_text(above: u64) -> String {
    // A quote inside a string is written with a backslash, so that this is only ever found where the key stands.
    let without =
        |body: &str, key: &str| format!(r#"regexp_replace({body}, '"{key}":"(?:[^"\\]|\\.)*"', '"{key}":""')"#);
    let stripped = without(&without("body", "output_text"), "expected_text");
    format!("CASE WHEN strlen(body) > {above} THEN {stripped} ELSE body END, epoch_us(created_at), nanos")
}

/// The names of the rules that failed, as a JSON array.
fn failed_rules(evaluation: &Evaluation) -> String {
    let failed = evaluation.rule_results.iter().filter(|result| !result.passed && !result.skipped);
    serde_json::Value::from_iter(failed.map(|result| &*result.rule_name)).to_string()
}

/// Appends one row.
pub(super) fn append(
    appender: &mut Appender<'_>,
    evaluation: &Evaluation,
    position: Option<Position>,
) -> Result<(), Error> {
    let body = serde_json::to_string(evaluation)
        .map_err(|error| Error::Engine(format!("an evaluation has no JSON form: {error}")))?;
    if !evaluation.score.is_finite() {
        return Err(Error::Engine("an evaluation with a score that is no number; 0 to 1 is valid".to_owned()));
    }
    let row = params![
        evaluation.id,
        evaluation.tenant.as_str(),
        evaluation.trace_id.as_ref().map(|id| id.as_bytes().as_slice()),
        evaluation.trace_version,
        evaluation.eval_type.as_str(),
        evaluation.score,
        evaluation.passed,
        evaluation.state.as_str(),
        failed_rules(evaluation),
        micros(evaluation.created_at),
        nanos_of(evaluation.created_at),
        evaluation.inline,
        evaluation.seen_through,
        position.map(|position| lane_number(position.lane)),
        position.map(|position| position.seq),
        position.map(|position| position.ordinal),
        evaluation.erased_at.is_some(),
        body,
    ];
    appender.append_row(row).map_err(Error::engine)
}

/// Reads a row that was selected as [`COLUMNS`].
pub(super) fn read(row: &duckdb::Row<'_>) -> Result<Evaluation, Error> {
    let unreadable = |why: String| Error::Unreadable { table: "evaluations", why };
    let fetch = || -> duckdb::Result<(String, i64, u32)> { Ok((row.get(0)?, row.get(1)?, row.get(2)?)) };
    let (body, time, nanos) = fetch().map_err(|error| unreadable(error.to_string()))?;
    let mut evaluation: Evaluation = serde_json::from_str(&body).map_err(|error| unreadable(json_fault(error)))?;
    // The JSON form of a time keeps milliseconds only.
    evaluation.created_at = timestamp(time, nanos);
    Ok(evaluation)
}
