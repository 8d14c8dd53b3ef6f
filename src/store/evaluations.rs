//! The `evaluations` table: hot columns for filters, the texts that were judged, the rest of the [`Evaluation`] as JSON.

use duckdb::{Appender, params};
use iris_core::model::{EvalType, Evaluation, Position, Tenant, Timestamp, Trace, TraceId, VerdictState};
use serde::Serialize;
use serde_json::{Map, Value};

use super::Error;
use super::beside::Beside;
use super::long::{Long, Values, Wide};
use super::shapes::{self, Known};
use super::spans::{micros, nanos_of, timestamp};
use super::traces::json_fault;
use super::track::lane_number;

/// The columns that [`Stored::read`] takes, in its order.
pub(super) const COLUMNS: &str = "body, output_text, expected_text, epoch_us(created_at), nanos, long_id, long";

/// The same with an empty text wherever one was judged.
pub(super) const COLUMNS_WITHOUT_TEXTS: &str = "body, CASE WHEN output_text IS NOT NULL THEN '' END, \
     CASE WHEN expected_text IS NOT NULL THEN '' END, epoch_us(created_at), nanos, long_id, long";

/// The same without a text at all, which then need not be read.
pub(super) const COLUMNS_OF_VERDICT: &str = "body, NULL, NULL, epoch_us(created_at), nanos, long_id, long";

/// The wide columns: everything of a row, and what is read where the texts are not wanted.
pub(super) const ALL: &[&str] = &["body", "output_text", "expected_text"];
pub(super) const BODY: &[&str] = &["body"];

const TEXTS: [&str; 2] = ["output_text", "expected_text"];

/// The names of the rules that failed, as a JSON array.
fn failed_rules(evaluation: &Evaluation) -> String {
    let failed = evaluation.rule_results.iter().filter(|result| !result.passed && !result.skipped);
    serde_json::Value::from_iter(failed.map(|result| &*result.rule_name)).to_string()
}

/// The columns of a verdict, as the row of a trace has them too.
pub(super) struct Verdict {
    pub score: f64,
    pub state: &'static str,
    pub failed_rules: String,
    pub created_at: duckdb::types::Value,
}

impl Verdict {
    /// What an evaluation says of a trace; nothing where it ruled on nothing, or judged another.
    pub fn of(trace: &Trace, evaluation: &Evaluation) -> Option<Self> {
        let is_its = evaluation.trace_id == Some(trace.trace_id) && evaluation.tenant == trace.tenant;
        (is_its && !evaluation.judged_nothing()).then(|| Self {
            score: evaluation.score,
            state: evaluation.state.as_str(),
            failed_rules: failed_rules(evaluation),
            created_at: micros(evaluation.created_at),
        })
    }
}

/// Appends one row; `with_trace` when the row of its trace that is appended beside it has its verdict.
pub(super) fn append(
    appender: &mut Appender<'_>,
    evaluation: &Evaluation,
    position: Option<Position>,
    with_trace: bool,
    beside: &mut Beside,
) -> Result<(), Error> {
    if !evaluation.score.is_finite() {
        return Err(Error::Engine("an evaluation with a score that is no number; 0 to 1 is valid".to_owned()));
    }
    let body = body(evaluation, beside)?;
    let kept = beside.pieces.shorten(&[
        Wide::text("output_text", evaluation.output_text.as_deref()),
        Wide::text("expected_text", evaluation.expected_text.as_deref()),
        Wide::document("body", Some(&body)),
    ])?;
    let [output_text, expected_text, body] = kept.values;
    let row = params![
        evaluation.id,
        evaluation.tenant.as_str(),
        evaluation.trace_id.as_ref().map(|id| id.as_bytes().as_slice()),
        evaluation.trace_version,
        evaluation.eval_type.as_str(),
        (!evaluation.judged_nothing()).then_some(evaluation.score),
        (!evaluation.judged_nothing()).then_some(evaluation.passed),
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
        output_text,
        expected_text,
        body,
        kept.long_id,
        kept.long,
        with_trace,
    ];
    appender.append_row(row).map_err(Error::engine)
}

/// Every field of an evaluation but the texts, which have columns.
#[derive(Serialize)]
struct Body<'a> {
    id: &'a str,
    tenant: &'a Tenant,
    trace_id: Option<TraceId>,
    trace_version: Option<u32>,
    eval_type: EvalType,
    created_at: Timestamp,
    inline: bool,
    seen_through: u64,
    position: Option<Position>,
    score: f64,
    passed: bool,
    state: VerdictState,
    rule_results: Vec<shapes::Stored<'a>>,
    inputs: &'a Map<String, Value>,
    suggestions: &'a [String],
    provenance: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    answered: &'a Option<Value>,
    erased_at: Option<Timestamp>,
}

fn body(evaluation: &Evaluation, beside: &mut Beside) -> Result<String, Error> {
    // Named one by one, so that a field added to an evaluation is not forgotten here.
    let Evaluation {
        id,
        tenant,
        trace_id,
        trace_version,
        eval_type,
        created_at,
        inline,
        seen_through,
        position,
        output_text: _,
        expected_text: _,
        score,
        passed,
        state,
        rule_results,
        inputs,
        suggestions,
        provenance,
        answered,
        erased_at,
    } = evaluation;
    let body = Body {
        id,
        tenant,
        trace_id: *trace_id,
        trace_version: *trace_version,
        eval_type: *eval_type,
        created_at: *created_at,
        inline: *inline,
        seen_through: *seen_through,
        position: *position,
        score: *score,
        passed: *passed,
        state: *state,
        rule_results: beside.shapes.results(rule_results)?,
        inputs,
        suggestions,
        provenance,
        answered,
        erased_at: *erased_at,
    };
    serde_json::to_string(&body).map_err(|error| Error::Engine(format!("an evaluation has no JSON form: {error}")))
}

fn unreadable(why: String) -> Error {
    Error::Unreadable { table: "evaluations", why }
}

/// A row that was selected as [`COLUMNS`], [`COLUMNS_WITHOUT_TEXTS`] or [`COLUMNS_OF_VERDICT`].
pub(super) struct Stored {
    body: String,
    texts: [Option<String>; 2],
    created_at: Timestamp,
    pub long: Option<Long>,
}

impl Stored {
    pub fn read(row: &duckdb::Row<'_>) -> Result<Self, Error> {
        let columns = || -> duckdb::Result<Self> {
            Ok(Self {
                body: row.get(0)?,
                texts: [row.get(1)?, row.get(2)?],
                created_at: timestamp(row.get(3)?, row.get(4)?),
                long: Long::read(row, 5)?,
            })
        };
        columns().map_err(|error| unreadable(error.to_string()))
    }

    /// The evaluation with nothing of a long text.
    pub fn without_long_texts(mut self, values: &mut Values, shapes: &Known) -> Result<Evaluation, Error> {
        for (field, text) in TEXTS.into_iter().zip(&mut self.texts) {
            if text.is_some() && self.long.as_ref().is_some_and(|long| long.bytes(field).is_some()) {
                *text = Some(String::new());
            }
        }
        self.evaluation(values, BODY, shapes)
    }

    /// The evaluation, with those of its long values that are `wanted`.
    pub fn evaluation(mut self, values: &mut Values, wanted: &[&str], shapes: &Known) -> Result<Evaluation, Error> {
        let long = self.long.as_ref();
        values.put(long, "body", &mut self.body).map_err(unreadable)?;
        for (field, text) in TEXTS.into_iter().zip(&mut self.texts) {
            if wanted.contains(&field) {
                values.put_optional(long, field, text).map_err(unreadable)?;
            }
        }
        let bad_json = |error: serde_json::Error| unreadable(json_fault(error));
        let mut fields: Map<String, Value> = serde_json::from_str(&self.body).map_err(bad_json)?;
        if let Some(Value::Array(results)) = fields.get_mut("rule_results") {
            for result in results {
                *result = shapes.whole(result.take()).map_err(unreadable)?;
            }
        }
        let mut evaluation: Evaluation = serde_json::from_value(Value::Object(fields)).map_err(bad_json)?;
        // The JSON form of a time keeps milliseconds only.
        evaluation.created_at = self.created_at;
        [evaluation.output_text, evaluation.expected_text] = self.texts;
        Ok(evaluation)
    }
}
