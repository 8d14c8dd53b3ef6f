//! The `traces` table: one row a version. Columns serve filters and people's SQL; the trace itself is read
//! back from JSON, so that a field added to it later needs no column.

use duckdb::{Appender, params};
use iris_core::model::{
    CostParts, CostSource, Notes, Position, Run, SpanId, Tenant, Timestamp, TokenUsage, ToolCall, Trace, TraceId,
    TraceSource,
};
use serde::Serialize;
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
    tool_calls: Option<String>,
    metadata: String,
    runs: String,
    body: String,
}

/// Every field of a trace without a column of its own text.
#[derive(Serialize)]
struct Body<'a> {
    tenant: &'a Tenant,
    trace_id: &'a TraceId,
    version: u32,
    source: TraceSource,
    agent_name: &'a str,
    framework: &'a Option<String>,
    latency_ms: Option<f64>,
    token_usage: &'a Option<TokenUsage>,
    cost_usd: Option<f64>,
    cost_source: Option<CostSource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_parts: &'a Option<CostParts>,
    timestamp: Timestamp,
    session_id: &'a Option<String>,
    user_id: &'a Option<String>,
    model: &'a Option<String>,
    provider: &'a Option<String>,
    environment: &'a Option<String>,
    service_version: &'a Option<String>,
    partial: bool,
    in_progress: bool,
    conflicting_spans: bool,
    span_count: u32,
    error_count: u32,
    #[serde(skip_serializing_if = "Notes::is_empty")]
    notes: &'a Notes,
    seen_through: u64,
}

/// A run as it is stored: what it shares with its trace is named instead of written again.
#[derive(Serialize)]
struct StoredRun<'a> {
    span_id: Option<SpanId>,
    agent_name: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<&'a [ToolCall]>,
    token_usage: &'a Option<TokenUsage>,
    cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_parts: &'a Option<CostParts>,
    latency_ms: Option<f64>,
    error: &'a Option<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    finish_reasons: &'a [String],
    #[serde(rename = "as_trace", skip_serializing_if = "Vec::is_empty")]
    shared: Vec<&'static str>,
}

impl<'a> StoredRun<'a> {
    fn new(run: &'a Run, trace: &'a Trace) -> Self {
        let Run {
            span_id,
            agent_name,
            input,
            output,
            tool_calls,
            token_usage,
            cost_usd,
            cost_parts,
            latency_ms,
            error,
            finish_reasons,
        } = run;
        let mut shared = Vec::new();
        let mut is_shared = |name, same: bool| {
            if same {
                shared.push(name);
            }
            same
        };
        let same_input = is_shared("input", input.is_some() && *input == trace.input);
        let same_output = is_shared("output", output.is_some() && *output == trace.output);
        let of_trace = trace.tool_calls.as_deref();
        let same_calls = is_shared("tool_calls", !tool_calls.is_empty() && of_trace == Some(tool_calls.as_slice()));
        Self {
            span_id: *span_id,
            agent_name,
            input: input.as_deref().filter(|_| !same_input),
            output: output.as_deref().filter(|_| !same_output),
            tool_calls: Some(tool_calls.as_slice()).filter(|calls| !same_calls && !calls.is_empty()),
            token_usage,
            cost_usd: *cost_usd,
            cost_parts,
            latency_ms: *latency_ms,
            error,
            finish_reasons,
            shared,
        }
    }
}

fn parts(trace: &Trace) -> Result<Parts, Error> {
    // Named one by one, so that a field added to a trace is not forgotten here.
    let Trace {
        tenant,
        trace_id,
        version,
        source,
        agent_name,
        framework,
        input: _,
        output: _,
        tool_calls,
        latency_ms,
        token_usage,
        cost_usd,
        cost_source,
        cost_parts,
        metadata,
        timestamp,
        session_id,
        user_id,
        model,
        provider,
        environment,
        service_version,
        runs,
        partial,
        in_progress,
        conflicting_spans,
        span_count,
        error_count,
        notes,
        seen_through,
    } = trace;
    let body = Body {
        tenant,
        trace_id,
        version: *version,
        source: *source,
        agent_name,
        framework,
        latency_ms: *latency_ms,
        token_usage,
        cost_usd: *cost_usd,
        cost_source: *cost_source,
        cost_parts,
        timestamp: *timestamp,
        session_id,
        user_id,
        model,
        provider,
        environment,
        service_version,
        partial: *partial,
        in_progress: *in_progress,
        conflicting_spans: *conflicting_spans,
        span_count: *span_count,
        error_count: *error_count,
        notes,
        seen_through: *seen_through,
    };
    let runs: Vec<StoredRun<'_>> = runs.iter().map(|run| StoredRun::new(run, trace)).collect();
    Ok(Parts {
        tool_calls: tool_calls.as_ref().map(json).transpose()?,
        metadata: json(metadata)?,
        runs: json(&runs)?,
        body: json(&body)?,
    })
}

fn json<T: Serialize + ?Sized>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::Engine(format!("a trace has no JSON form: {error}")))
}

/// Gives back to each run what it shares with its trace.
fn fill_runs(fields: &mut Map<String, Value>) {
    let Some(Value::Array(mut runs)) = fields.remove("runs") else { return };
    for run in &mut runs {
        let Value::Object(run) = run else { continue };
        let Some(Value::Array(shared)) = run.remove("as_trace") else { continue };
        for name in shared.iter().filter_map(Value::as_str) {
            let value = fields.get(name).cloned().unwrap_or_default();
            run.insert(name.to_owned(), value);
        }
    }
    fields.insert("runs".to_owned(), Value::Array(runs));
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
    let Parts { tool_calls, metadata, runs, body } = parts(trace)?;
    let usage = trace.token_usage.unwrap_or_default();
    let source = match trace.source {
        TraceSource::Otlp => "otlp",
        TraceSource::Tool => "tool",
    };
    let cost_source = trace.cost_source.map(|source| match source {
        CostSource::Reported => "reported",
        CostSource::Estimated => "estimated",
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
        trace.input,
        trace.output,
        tool_calls,
        metadata,
        runs,
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
    let mut parsed = [Value::Null, Value::Null, Value::Null];
    for (value, text) in parsed.iter_mut().zip(documents) {
        *value = text
            .map_or(Ok(Value::Null), |text| serde_json::from_str(&text))
            .map_err(|error| unreadable(json_fault(error)))?;
    }
    put_together(texts, parsed, &body, time)
}

/// The trace of its columns, the large ones in the order of [`columns`].
pub(super) fn put_together(
    texts: [Option<String>; 2],
    documents: [Value; 3],
    body: &str,
    time: Timestamp,
) -> Result<Trace, Error> {
    let bad_json = |error: serde_json::Error| Error::Unreadable { table: "traces", why: json_fault(error) };
    let mut fields: Map<String, Value> = serde_json::from_str(body).map_err(bad_json)?;
    for (name, text) in TEXTS.into_iter().zip(texts) {
        fields.insert(name.to_owned(), text.map_or(Value::Null, Value::String));
    }
    for (name, document) in DOCUMENTS.into_iter().zip(documents) {
        fields.insert(name.to_owned(), document);
    }
    fill_runs(&mut fields);
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
