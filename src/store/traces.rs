//! The `traces` table: one row a version. Columns serve filters and people's SQL; the trace itself is read
//! back from JSON, so that a field added to it later needs no column.

use duckdb::{Appender, params};
use iris_core::model::{Position, Timestamp, Trace};
use serde_json::{Map, Value};

use super::Error;
use super::spans::{micros, nanos_of, timestamp};
use super::track::lane_number;

/// The columns that [`read`] takes, in its order, each behind `prefix` such as `t.`.
pub(super) fn columns(prefix: &str) -> String {
    ["input", "output", "tool_calls", "metadata", "runs", "body", "epoch_us(timestamp)", "nanos"]
        .map(|column| match column.strip_suffix("(timestamp)") {
            Some(function) => format!("{function}({prefix}timestamp)"),
            None => format!("{prefix}{column}"),
        })
        .join(", ")
}

/// The large fields, kept apart from the rest so that none is stored twice.
const TEXTS: [&str; 2] = ["input", "output"];
const DOCUMENTS: [&str; 3] = ["tool_calls", "metadata", "runs"];

struct Parts {
    texts: [Option<String>; 2],
    documents: [Option<String>; 3],
    body: String,
}

fn parts(trace: &Trace) -> Result<Parts, Error> {
    let no_json = |error: serde_json::Error| Error::Engine(format!("a trace has no JSON form: {error}"));
    let Value::Object(mut fields) = serde_json::to_value(trace).map_err(no_json)? else {
        return Err(Error::Engine("a trace is not a JSON object".to_owned()));
    };
    let texts = TEXTS.map(|name| match fields.shift_remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    });
    let documents = DOCUMENTS
        .map(|name| fields.shift_remove(name).filter(|document| !document.is_null()).map(|found| found.to_string()));
    Ok(Parts { texts, documents, body: Value::Object(fields).to_string() })
}

/// Whether anything in it ended in an error; a failed tool call counts even where no span says so.
pub(super) fn has_failed(trace: &Trace) -> bool {
    trace.error_count > 0
        || trace.tool_calls.iter().flatten().any(|call| call.error.is_some())
        || trace.runs.iter().any(|run| run.error.is_some())
}

/// Appends one version.
pub(super) fn append(
    appender: &mut Appender<'_>,
    trace: &Trace,
    position: Option<Position>,
    now: Timestamp,
) -> Result<(), Error> {
    let Parts { texts: [input, output], documents: [tool_calls, metadata, runs], body } = parts(trace)?;
    let usage = trace.token_usage.unwrap_or_default();
    let source = match trace.source {
        iris_core::model::TraceSource::Otlp => "otlp",
        iris_core::model::TraceSource::Tool => "tool",
    };
    let cost_source = trace.cost_source.map(|source| match source {
        iris_core::model::CostSource::Reported => "reported",
        iris_core::model::CostSource::Estimated => "estimated",
    });
    let row = params![
        trace.tenant.as_str(),
        trace.trace_id.as_bytes().as_slice(),
        trace.version,
        source,
        trace.agent_name,
        trace.framework,
        micros(trace.timestamp),
        nanos_of(trace.timestamp),
        trace.latency_ms,
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.total_tokens,
        trace.cost_usd,
        cost_source,
        trace.session_id,
        trace.user_id,
        trace.model,
        trace.provider,
        trace.environment,
        trace.service_version,
        trace.partial,
        trace.conflicting_spans,
        has_failed(trace),
        trace.span_count,
        trace.error_count,
        trace.seen_through,
        position.map(|position| lane_number(position.lane)),
        position.map(|position| position.seq),
        position.map(|position| position.ordinal),
        micros(now),
        input,
        output,
        tool_calls,
        metadata.unwrap_or_else(|| "{}".to_owned()),
        runs.unwrap_or_else(|| "[]".to_owned()),
        body,
    ];
    appender.append_row(row).map_err(Error::engine)
}

/// Reads a trace that was selected as [`columns`].
pub(super) fn read(row: &duckdb::Row<'_>) -> Result<Trace, Error> {
    let unreadable = |why: String| Error::Unreadable { table: "traces", why };
    let fetch = || -> duckdb::Result<_> {
        let texts: [Option<String>; 2] = [row.get(0)?, row.get(1)?];
        let documents: [Option<String>; 3] = [row.get(2)?, row.get(3)?, row.get(4)?];
        let (body, time, nanos): (String, i64, u32) = (row.get(5)?, row.get(6)?, row.get(7)?);
        Ok((texts, documents, body, timestamp(time, nanos)))
    };
    let (texts, documents, body, time) = fetch().map_err(|error| unreadable(error.to_string()))?;
    let bad_json = |error: serde_json::Error| unreadable(json_fault(error));
    let mut fields: Map<String, Value> = serde_json::from_str(&body).map_err(bad_json)?;
    for (name, text) in TEXTS.into_iter().zip(texts) {
        fields.insert(name.to_owned(), text.map_or(Value::Null, Value::String));
    }
    for (name, document) in DOCUMENTS.into_iter().zip(documents) {
        let value = document.map_or(Ok(Value::Null), |text| serde_json::from_str(&text)).map_err(bad_json)?;
        fields.insert(name.to_owned(), value);
    }
    let mut trace: Trace = serde_json::from_value(Value::Object(fields)).map_err(bad_json)?;
    // The JSON form of a time keeps milliseconds only.
    trace.timestamp = time;
    Ok(trace)
}

/// Names the kind of a JSON error without the text that caused it.
#[expect(clippy::needless_pass_by_value, reason = "shaped for map_err")]
pub(super) fn json_fault(error: serde_json::Error) -> String {
    format!("{:?} error in its JSON at column {}", error.classify(), error.column()).to_lowercase()
}
