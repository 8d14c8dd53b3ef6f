//! `get_traces`: stored traces by filter, open ones from memory, bounded replies.

use iris_core::contract::{Detail, Error, GetTracesArgs, GetTracesReply, SortBy, SortOrder, TraceRow, VerdictBrief};
use iris_core::evaluate;
use iris_core::model::{Evaluation, RowKey, Timestamp, Trace, TraceId};
use serde_json::Value;

use super::bounds::{Cuts, Measure};
use super::{App, Caller, trace_id, untrusted};
use crate::store::{Budget, Lost, PageRow, TraceQuery};

/// The largest page before values are cut, in bytes of text. Of a thousand traces that are cut as far as it goes,
/// some kilobytes each remain.
const PAGE_BYTES_MAX: usize = 1024 * 1024;

/// The largest reply about one trace that is asked for by its id, before its values are cut: what a page cuts is
/// fetched this way.
const TRACE_BYTES_MAX: usize = 8 * 1024 * 1024;

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

/// Words of one search.
const WORDS_MAX: usize = 16;

/// Length of one search, in bytes.
const SEARCH_BYTES_MAX: usize = 1024;

/// A day less a nanosecond: a date as an upper bound means its end.
const DAY_END: std::time::Duration = std::time::Duration::from_nanos(86_399_999_999_999);

impl App {
    pub(super) async fn get_traces(&self, args: GetTracesArgs, caller: &Caller) -> Result<Value, Error> {
        let query = query(&args)?;
        let backend = self.backend()?;
        let detail = args.detail.unwrap_or_default();
        let bytes_max = if query.trace_id.is_some() { TRACE_BYTES_MAX } else { PAGE_BYTES_MAX };
        let whole = if detail == Detail::Brief { 0 } else { bytes_max as u64 };
        let budget = Budget { bytes: whole, shrink: |document| Measure::CUT.cut_field(document) };
        let page = backend.store.traces(&caller.tenant, &query, budget).await.map_err(|error| self.failed(&error))?;
        let mut found = page.rows;
        if wants_open(&query) {
            let mut open = match query.trace_id {
                Some(trace_id) => {
                    let key = RowKey { tenant: caller.tenant.clone(), trace_id };
                    let found = backend.pipeline.open_trace(&key).await.map_err(|error| self.failed(&error))?;
                    found.into_iter().collect()
                }
                None => backend.pipeline.open_traces(&caller.tenant).await,
            };
            open.retain(|(trace, evaluation)| matches(&query, trace, evaluation));
            found.retain(|row| open.iter().all(|(one, _)| one.trace_id != row.trace.trace_id));
            let shown = |(trace, evaluation)| PageRow { trace, evaluation: Some(evaluation), lost: Lost::default() };
            let mut rows: Vec<_> = open.into_iter().map(shown).collect();
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
        // Composing and weighing megabytes is no work for the threads that sockets wait on.
        let written = tokio::task::spawn_blocking(move || written(reply, found, &page.unreadable, detail, bytes_max));
        written.await.map_err(|error| self.unforeseen(&error))?.map_err(|error| self.unforeseen(&error))
    }
}

/// Open traces stand on the first page, newest first; one that is asked for by its id, in any order.
fn wants_open(query: &TraceQuery) -> bool {
    let newest_first = query.sort_by == SortBy::Timestamp && !query.ascending;
    query.words.is_empty() && query.offset == 0 && (newest_first || query.trace_id.is_some())
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
        words: args.q.as_deref().map(words).transpose()?.unwrap_or_default(),
        sort_by: args.sort_by.unwrap_or_default(),
        ascending: args.sort_order.unwrap_or_default() == SortOrder::Asc,
        limit: u32::try_from(limit).unwrap_or(u32::MAX),
        offset,
    })
}

/// The words of a search as the store compares them. Nothing in it is an operator but quotes, and the asterisk after a
/// word, which changes nothing: a word is found inside longer ones anyway.
fn words(text: &str) -> Result<Vec<String>, Error> {
    let mut words = Vec::new();
    for (place, part) in text.split('"').enumerate() {
        match place % 2 {
            0 => words.extend(part.split_whitespace().map(|word| word.trim_end_matches('*').to_owned())),
            _ => words.push(part.split_whitespace().collect::<Vec<_>>().join(" ")),
        }
    }
    words.retain(|word| word.chars().any(char::is_alphanumeric));
    if words.is_empty() {
        return Err(Error::invalid_argument("q", "there is no word in it"));
    }
    if words.len() > WORDS_MAX || text.len() > SEARCH_BYTES_MAX {
        return Err(Error::invalid_argument("q", format!("at most {WORDS_MAX} words and {SEARCH_BYTES_MAX} bytes")));
    }
    Ok(words)
}

fn within(field: &str, value: i64, low: i64, high: i64) -> Result<u64, Error> {
    match u64::try_from(value) {
        Ok(number) if (low..=high).contains(&value) => Ok(number),
        _ if high == i64::MAX => Err(Error::invalid_argument(field, format!("{value}; a whole number from {low}"))),
        _ => Err(Error::invalid_argument(field, format!("{value}; a whole number from {low} to {high}"))),
    }
}

pub(super) fn bound_time(field: &str, text: &str, date_means: std::time::Duration) -> Result<Timestamp, Error> {
    if let Some(time) = Timestamp::parse(text) {
        return Ok(time);
    }
    let date = (text.len() == 10).then(|| Timestamp::parse(&format!("{text}T00:00:00Z"))).flatten();
    let date = date.ok_or_else(|| {
        Error::invalid_argument(field, "an ISO 8601 timestamp with an offset or Z, or a date such as 2026-12-01")
    })?;
    Ok(date.after(date_means))
}

/// What a date as an upper bound means beyond its beginning.
pub(super) const fn day_end() -> std::time::Duration {
    DAY_END
}

fn row(trace: Trace, evaluation: Option<Evaluation>) -> TraceRow {
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
    let verdict = evaluate::decide(evaluation);
    VerdictBrief { state: verdict.state, basis: verdict.basis.as_str().to_owned(), by: verdict.by }
}

/// The reply, cut when the caller wants it brief or when it would grow too large; every cut is named, and so is
/// every trace of the page that could not be read.
fn written(
    mut reply: GetTracesReply,
    found: Vec<PageRow>,
    unreadable: &[TraceId],
    detail: Detail,
    bytes_max: usize,
) -> Result<Value, serde_json::Error> {
    let mut rows = Vec::with_capacity(found.len());
    let mut all_lost = Vec::with_capacity(found.len());
    for PageRow { trace, evaluation, lost } in found {
        rows.push(serde_json::to_value(row(trace, evaluation))?);
        all_lost.push(lost);
    }
    let most = match detail {
        Detail::Brief => Some(Measure::BRIEF),
        Detail::Full if all_lost.iter().any(|lost| *lost != Lost::default()) => Some(Measure::CUT),
        Detail::Full => None,
    };
    let measure = Measure::fitting(&rows.iter().collect::<Vec<_>>(), bytes_max, most);
    let mut cuts = Cuts::default();
    for (index, (row, lost)) in rows.iter_mut().zip(all_lost).enumerate() {
        let lost = [
            ("input", lost.input),
            ("output", lost.output),
            ("tool_calls", lost.tool_calls.into()),
            ("metadata", lost.metadata.into()),
        ];
        measure.cut_further(row, &format!("traces[{index}]"), &mut cuts, &lost);
    }
    for id in unreadable {
        cuts.push(format!("trace {id}: left out, its stored row cannot be read"));
    }
    reply.truncated = cuts.into_names();
    let mut value = serde_json::to_value(reply)?;
    value["traces"] = Value::Array(rows);
    Ok(value)
}
