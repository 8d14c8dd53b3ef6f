//! `get_traces`: stored traces by filter, open ones from memory, bounded replies.

use iris_core::contract::{Detail, Error, GetTracesArgs, GetTracesReply, SortBy, SortOrder, TraceRow, VerdictBrief};
use iris_core::evaluate;
use iris_core::model::{Evaluation, Timestamp, Trace};
use serde_json::Value;

use super::bounds::{Cuts, Measure};
use super::{App, Caller, trace_id, untrusted};
use crate::store::TraceQuery;

/// The largest reply before values are cut, in bytes of text. Of a thousand traces that are cut as far as it goes,
/// some kilobytes each remain.
const REPLY_BYTES_MAX: usize = 1024 * 1024;

/// The fields that hold text that others wrote.
const UNTRUSTED: &[&str] = &[
    "traces[].agent_name",
    "traces[].framework",
    "traces[].input",
    "traces[].output",
    "traces[].tool_calls",
    "traces[].metadata",
    "traces[].session_id",
    "traces[].model",
    "traces[].provider",
    "summary.top_agents[].agent_name",
];

/// A day less a nanosecond: a date as an upper bound means its end.
const DAY_END: std::time::Duration = std::time::Duration::from_nanos(86_399_999_999_999);

impl App {
    pub(super) async fn get_traces(&self, args: GetTracesArgs, caller: &Caller) -> Result<Value, Error> {
        let query = query(&args)?;
        let backend = self.backend()?;
        let page = backend.store.traces(&caller.tenant, &query).await.map_err(|error| self.failed(&error))?;
        let mut found = page.rows;
        if wants_open(&query) {
            let mut open = backend.pipeline.open_traces(&caller.tenant).await;
            open.retain(|(trace, evaluation)| matches(&query, trace, evaluation));
            found.retain(|(trace, _)| open.iter().all(|(one, _)| one.trace_id != trace.trace_id));
            let mut rows: Vec<_> = open.into_iter().map(|(trace, evaluation)| (trace, Some(evaluation))).collect();
            rows.append(&mut found);
            rows.truncate(usize::try_from(query.limit).unwrap_or(usize::MAX));
            found = rows;
        }
        let summary = match args.include_summary.unwrap_or(false) {
            true => {
                let now = (self.world.now)();
                let since = Timestamp::from_unix_nanos(now.as_unix_nanos().saturating_sub(3_600_000_000_000));
                Some(backend.store.summary(&caller.tenant, since, now).await.map_err(|error| self.failed(&error))?)
            }
            false => None,
        };
        let reply = GetTracesReply {
            untrusted: untrusted(UNTRUSTED),
            traces: Vec::new(),
            total: page.total,
            limit: u64::from(query.limit),
            offset: query.offset,
            summary,
            truncated: Vec::new(),
        };
        let detail = args.detail.unwrap_or_default();
        // Composing and weighing megabytes is no work for the threads that sockets wait on.
        let written = tokio::task::spawn_blocking(move || written(reply, found, detail));
        written.await.map_err(|error| self.unforeseen(&error))?.map_err(|error| self.unforeseen(&error))
    }
}

/// Open traces stand on the first page, newest first.
fn wants_open(query: &TraceQuery) -> bool {
    query.offset == 0 && query.sort_by == SortBy::Timestamp && !query.ascending
}

/// Whether an open trace passes the filters that the store applies to its own.
fn matches(query: &TraceQuery, trace: &Trace, evaluation: &Evaluation) -> bool {
    let is =
        |wanted: &Option<String>, found: Option<&str>| wanted.as_deref().is_none_or(|wanted| found == Some(wanted));
    is(&query.agent_name, Some(&trace.agent_name))
        && is(&query.framework, trace.framework.as_deref())
        && is(&query.session_id, trace.session_id.as_deref())
        && query.trace_id.is_none_or(|id| id == trace.trace_id)
        && query.since.is_none_or(|since| trace.timestamp >= since)
        && query.until.is_none_or(|until| trace.timestamp <= until)
        && query.min_score.is_none_or(|low| evaluation.score >= low)
        && query.max_score.is_none_or(|high| evaluation.score <= high)
        && query.verdict.is_none_or(|state| evaluation.state == state)
        && query.rule.as_deref().is_none_or(|rule| {
            evaluation.rule_results.iter().any(|result| result.rule_name == rule && !result.skipped && !result.passed)
        })
}

fn query(args: &GetTracesArgs) -> Result<TraceQuery, Error> {
    let limit = within("limit", args.limit.unwrap_or(50), 1, 1000)?;
    let offset = within("offset", args.offset.unwrap_or(0), 0, i64::MAX)?;
    for (field, score) in [("min_score", args.min_score), ("max_score", args.max_score)] {
        if score.is_some_and(|score| !(0.0..=1.0).contains(&score)) {
            return Err(Error::invalid_argument(field, "a number from 0 to 1"));
        }
    }
    if let (Some(low), Some(high)) = (args.min_score, args.max_score)
        && low > high
    {
        return Err(Error::crossed_range("min_score", &low.to_string(), "max_score", &high.to_string()));
    }
    let since = args.since.as_deref().map(|text| bound_time("since", text, std::time::Duration::ZERO)).transpose()?;
    let until = args.until.as_deref().map(|text| bound_time("until", text, DAY_END)).transpose()?;
    if let (Some(low), Some(high)) = (since, until)
        && low > high
    {
        return Err(Error::crossed_range("since", &low.to_string(), "until", &high.to_string()));
    }
    Ok(TraceQuery {
        agent_name: args.agent_name.clone(),
        framework: args.framework.clone(),
        since,
        until,
        min_score: args.min_score,
        max_score: args.max_score,
        trace_id: args.trace_id.as_deref().map(trace_id).transpose()?,
        session_id: args.session_id.clone(),
        verdict: args.verdict,
        rule: args.rule.clone(),
        sort_by: args.sort_by.unwrap_or_default(),
        ascending: args.sort_order.unwrap_or_default() == SortOrder::Asc,
        limit: u32::try_from(limit).unwrap_or(u32::MAX),
        offset,
    })
}

fn within(field: &str, value: i64, low: i64, high: i64) -> Result<u64, Error> {
    match u64::try_from(value) {
        Ok(number) if (low..=high).contains(&value) => Ok(number),
        _ if high == i64::MAX => Err(Error::invalid_argument(field, format!("{value}; a whole number from {low}"))),
        _ => Err(Error::invalid_argument(field, format!("{value}; a whole number from {low} to {high}"))),
    }
}

fn bound_time(field: &str, text: &str, date_means: std::time::Duration) -> Result<Timestamp, Error> {
    if let Some(time) = Timestamp::parse(text) {
        return Ok(time);
    }
    let date = (text.len() == 10).then(|| Timestamp::parse(&format!("{text}T00:00:00Z"))).flatten();
    let date = date.ok_or_else(|| {
        Error::invalid_argument(field, "an ISO 8601 timestamp with an offset or Z, or a date such as 2026-12-01")
    })?;
    Ok(date.after(date_means))
}

fn row((trace, evaluation): (Trace, Option<Evaluation>)) -> TraceRow {
    TraceRow {
        trace_id: trace.trace_id.to_string(),
        agent_name: trace.agent_name,
        framework: trace.framework,
        input: trace.input,
        output: trace.output,
        tool_calls: trace.tool_calls,
        latency_ms: trace.latency_ms,
        token_usage: trace.token_usage,
        cost_usd: trace.cost_usd,
        metadata: trace.metadata,
        timestamp: trace.timestamp.to_string(),
        in_progress: trace.in_progress,
        session_id: trace.session_id,
        model: trace.model,
        provider: trace.provider,
        verdict: evaluation.as_ref().map(brief),
        evaluation_id: evaluation.filter(|_| !trace.in_progress).map(|evaluation| evaluation.id),
    }
}

fn brief(evaluation: &Evaluation) -> VerdictBrief {
    let verdict = evaluate::compose(evaluation);
    VerdictBrief { state: verdict.state, basis: verdict.basis.as_str().to_owned(), by: verdict.by }
}

/// The reply, cut when the caller wants it brief or when it would grow too large; every cut is named.
fn written(
    mut reply: GetTracesReply,
    found: Vec<(Trace, Option<Evaluation>)>,
    detail: Detail,
) -> Result<Value, serde_json::Error> {
    let mut rows =
        found.into_iter().map(|one| serde_json::to_value(row(one))).collect::<Result<Vec<_>, serde_json::Error>>()?;
    let most = (detail == Detail::Brief).then_some(Measure::BRIEF);
    let measure = Measure::fitting(&rows.iter().collect::<Vec<_>>(), REPLY_BYTES_MAX, most);
    let mut cuts = Cuts::default();
    for (index, row) in rows.iter_mut().enumerate() {
        measure.cut(row, &format!("traces[{index}]"), &mut cuts);
    }
    reply.truncated = cuts.into_names();
    let mut value = serde_json::to_value(reply)?;
    value["traces"] = Value::Array(rows);
    Ok(value)
}
