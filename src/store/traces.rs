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
use super::beside::Beside;
use super::evaluations::Verdict;
use super::long::{self, Long, Values, Wide};
use super::spans::{micros, nanos_of, timestamp};
use super::track::lane_number;
use super::words;

/// The columns that [`Stored::read`] takes, in its order.
pub(super) const COLUMNS: &str =
    "input, output, tool_calls, metadata, runs, body, epoch_us(timestamp), nanos, long_id, long";

/// The same without `runs`, which no page shows.
pub(super) const PAGE_COLUMNS: &str =
    "input, output, tool_calls, metadata, '[]', body, epoch_us(timestamp), nanos, long_id, long";

/// The large fields, kept apart from the rest so that none is stored twice.
pub(super) const TEXTS: [&str; 2] = ["input", "output"];
/// All of them.
pub(super) const WIDE: [&str; 5] = ["input", "output", "tool_calls", "metadata", "runs"];
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

/// Appends one version, with the verdict of the evaluation that is appended beside it.
pub(super) fn append(
    appender: &mut Appender<'_>,
    trace: &Trace,
    verdict: Option<&Verdict>,
    position: Option<Position>,
    now: Timestamp,
    beside: &mut Beside,
) -> Result<(), Error> {
    let Parts { tool_calls: whole_calls, metadata: whole_metadata, runs, body } = parts(trace)?;
    let whole_calls = whole_calls.as_deref();
    let kept = beside.pieces.shorten(&[
        Wide::text("input", trace.input.as_deref()),
        Wide::text("output", trace.output.as_deref()),
        Wide::document("tool_calls", whole_calls),
        Wide::document("metadata", Some(&whole_metadata)),
        Wide::document("runs", Some(&runs)),
        Wide::document("body", Some(&body)),
    ])?;
    let [input, output, tool_calls, metadata, runs, body] = kept.values;
    // What the row keeps of a long document is searched too.
    let kept_documents = [tool_calls, metadata].map(|text| text.filter(|_| kept.long_id.is_some()));
    let words = words::of_row(trace, &[whole_calls, Some(&whole_metadata), kept_documents[0], kept_documents[1]]);
    let usage = trace.token_usage.unwrap_or_default();
    let row = params![
        trace.tenant.as_str(),
        trace.trace_id.as_bytes().as_slice(),
        trace.version,
        source(trace.source),
        long::name(&trace.agent_name),
        short(trace.framework.as_ref()),
        micros(trace.timestamp),
        nanos_of(trace.timestamp),
        trace.latency_ms,
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.total_tokens,
        trace.cost_usd,
        trace.cost_source.map(cost_source),
        short(trace.session_id.as_ref()),
        short(trace.user_id.as_ref()),
        short(trace.model.as_ref()),
        short(trace.provider.as_ref()),
        short(trace.environment.as_ref()),
        short(trace.service_version.as_ref()),
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
        metadata,
        runs,
        body,
        kept.long_id,
        kept.long,
        verdict.map(|verdict| verdict.created_at.clone()),
        verdict.map(|verdict| verdict.score),
        verdict.map(|verdict| verdict.state),
        verdict.map(|verdict| verdict.failed_rules.as_str()),
        words,
    ];
    appender.append_row(row).map_err(Error::engine)
}

const fn source(source: TraceSource) -> &'static str {
    match source {
        TraceSource::Otlp => "otlp",
        TraceSource::Tool => "tool",
    }
}

const fn cost_source(source: CostSource) -> &'static str {
    match source {
        CostSource::Reported => "reported",
        CostSource::Estimated => "estimated",
    }
}

fn short(name: Option<&String>) -> Option<&str> {
    name.map(|name| long::name(name))
}

fn unreadable(why: String) -> Error {
    Error::Unreadable { table: "traces", why }
}

/// A trace that was selected as [`COLUMNS`].
pub(super) struct Stored {
    texts: [Option<String>; 2],
    documents: [Option<String>; 3],
    body: String,
    time: Timestamp,
    pub long: Option<Long>,
}

impl Stored {
    pub fn read(row: &duckdb::Row<'_>) -> Result<Self, Error> {
        let columns = || -> duckdb::Result<Self> {
            Ok(Self {
                texts: [row.get(0)?, row.get(1)?],
                documents: [row.get(2)?, row.get(3)?, row.get(4)?],
                body: row.get(5)?,
                time: timestamp(row.get(6)?, row.get(7)?),
                long: Long::read(row, 8)?,
            })
        };
        columns().map_err(|error| unreadable(error.to_string()))
    }

    /// Bytes of a column's whole value.
    pub fn bytes(&self, field: &str) -> u64 {
        let in_row = |value: &Option<String>| value.as_ref().map_or(0, |value| value.len() as u64);
        let texts = TEXTS.into_iter().zip(&self.texts);
        let found = texts.chain(DOCUMENTS.into_iter().zip(&self.documents)).find(|(name, _)| *name == field);
        let long = self.long.as_ref().and_then(|long| long.bytes(field));
        long.unwrap_or_else(|| found.map_or(0, |(_, value)| in_row(value)))
    }

    /// With those of its long values that are `wanted`, and its body; of the others it has what the row keeps.
    pub fn parsed(mut self, values: &mut Values, wanted: &[&str]) -> Result<Parsed, Error> {
        let long = self.long.take();
        let fields = TEXTS.into_iter().zip(&mut self.texts).chain(DOCUMENTS.into_iter().zip(&mut self.documents));
        for (field, value) in fields.filter(|(field, _)| wanted.contains(field)) {
            values.put_optional(long.as_ref(), field, value).map_err(unreadable)?;
        }
        values.put(long.as_ref(), "body", &mut self.body).map_err(unreadable)?;
        let mut documents = [Value::Null, Value::Null, Value::Null];
        for (document, text) in documents.iter_mut().zip(self.documents) {
            *document = text
                .map_or(Ok(Value::Null), |text| serde_json::from_str(&text))
                .map_err(|error| unreadable(json_fault(error)))?;
        }
        Ok(Parsed { texts: self.texts, documents, body: self.body, time: self.time })
    }
}

/// A trace whose documents can still be cut.
pub(super) struct Parsed {
    texts: [Option<String>; 2],
    /// `tool_calls`, `metadata`, `runs`.
    pub documents: [Value; 3],
    body: String,
    time: Timestamp,
}

impl Parsed {
    pub fn trace(self) -> Result<Trace, Error> {
        let bad_json = |error: serde_json::Error| unreadable(json_fault(error));
        let mut fields: Map<String, Value> = serde_json::from_str(&self.body).map_err(bad_json)?;
        for (name, text) in TEXTS.into_iter().zip(self.texts) {
            fields.insert(name.to_owned(), text.map_or(Value::Null, Value::String));
        }
        for (name, document) in DOCUMENTS.into_iter().zip(self.documents) {
            fields.insert(name.to_owned(), document);
        }
        fill_runs(&mut fields);
        let mut trace: Trace = serde_json::from_value(Value::Object(fields)).map_err(bad_json)?;
        // The JSON form of a time keeps milliseconds only.
        trace.timestamp = self.time;
        Ok(trace)
    }
}

/// Names the kind of a JSON error without the text that caused it.
#[expect(clippy::needless_pass_by_value, reason = "shaped for map_err")]
pub(super) fn json_fault(error: serde_json::Error) -> String {
    format!("{:?} error in its JSON at column {}", error.classify(), error.column()).to_lowercase()
}
