//! `get_traces`: stored traces by filter, open ones from memory, bounded replies.

use iris_core::contract::{
    Detail, Error, GetTracesArgs, GetTracesReply, SortBy, SortOrder, Summary, TraceRow, Unsearched, VerdictBrief,
};
use iris_core::evaluate;
use iris_core::model::{Evaluation, RowKey, Timestamp, Trace, TraceId};
use iris_core::text::View;
use serde_json::Value;

use super::bounds::{Cuts, Measure};
use super::{App, Caller, marks, part, trace_id, untrusted};
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

/// What a row takes beside its values: the quotes and commas between them.
const ROW_BYTES: usize = 120;

/// Words of one search.
const WORDS_MAX: usize = 16;

/// Length of one search, in bytes.
const SEARCH_BYTES_MAX: usize = 1024;

/// A day less a nanosecond: a date as an upper bound means its end.
const DAY_END: std::time::Duration = std::time::Duration::from_nanos(86_399_999_999_999);

/// Names of cut values in a reply that a model reads.
const NAMED_MAX: usize = 60;

impl App {
    pub(super) async fn get_traces(&self, args: GetTracesArgs, caller: &Caller) -> Result<Value, Error> {
        let query = query(&args)?;
        let backend = self.backend()?;
        let part = match (query.trace_id, args.part.clone()) {
            (Some(id), Some(pointer)) => {
                let offset = args.part_offset.and_then(|offset| u64::try_from(offset).ok()).unwrap_or_default();
                Some(self.part(id, pointer, offset, caller).await?)
            }
            _ => None,
        };
        let shape = Shape::of(&args, &query, caller);
        let whole = if shape.detail == Detail::Brief { 0 } else { shape.bytes_max as u64 };
        let budget = Budget { bytes: whole, shrink: |document| Measure::CUT.cut_field(document) };
        let page = backend.store.traces(&caller.tenant, &query, budget).await.map_err(|error| self.failed(&error))?;
        let open = if wants_open(&query) { self.open(&query, caller).await? } else { Vec::new() };
        let found = merged(open, page.rows, usize::try_from(query.limit).unwrap_or(usize::MAX));
        let summary = match args.include_summary.unwrap_or(false) {
            true => {
                let now = (self.world.now)();
                let since = Timestamp::from_unix_nanos(now.as_unix_nanos().saturating_sub(3_600_000_000_000));
                let summary = backend.store.summary(&caller.tenant, since, now).await;
                let summary = summary.map_err(|error| self.failed(&error))?;
                Some(Summary { judge_usd_today: self.judge_usd_today(caller), ..summary })
            }
            false => None,
        };
        let mut marked: Vec<String> = UNTRUSTED.iter().map(|field| (*field).to_owned()).collect();
        marked.extend(part.iter().flat_map(part::marked));
        let reply = GetTracesReply {
            untrusted: untrusted(&marked),
            traces: Vec::new(),
            total: page.total,
            limit: u64::from(query.limit),
            offset: query.offset,
            summary,
            truncated: Vec::new(),
            next_offset: None,
            retention_days: (page.total == 0 && found.is_empty()).then_some(self.facts.retention_days),
            unsearched: page.unread.map(|unread| Unsearched { traces: unread.traces, until: unread.until.to_string() }),
            part,
        };
        // Composing and weighing megabytes is no work for the threads that sockets wait on.
        let written = tokio::task::spawn_blocking(move || written(reply, found, &page.unreadable, shape));
        written.await.map_err(|error| self.unforeseen(&error))?.map_err(|error| self.unforeseen(&error))
    }

    /// The open traces that the query finds, newest first.
    async fn open(&self, query: &TraceQuery, caller: &Caller) -> Result<Vec<PageRow>, Error> {
        let pipeline = &self.backend()?.pipeline;
        let mut open = match query.trace_id {
            Some(trace_id) => {
                let key = RowKey { tenant: caller.tenant.clone(), trace_id };
                let found = pipeline.open_trace(&key).await.map_err(|error| self.failed(&error))?;
                found.into_iter().collect()
            }
            None => pipeline.open_traces(&caller.tenant).await,
        };
        open.retain(|(trace, evaluation)| matches(query, trace, evaluation));
        if !query.words.is_empty() && !open.is_empty() {
            // Long texts are no work for the threads that sockets wait on.
            let words = query.words.clone();
            let searched = tokio::task::spawn_blocking(move || {
                open.retain(|(trace, _)| holds(trace, &words));
                open
            });
            open = searched.await.map_err(|error| self.unforeseen(&error))?;
        }
        let shown = |(trace, evaluation)| PageRow { trace, evaluation: Some(evaluation), lost: Lost::default() };
        Ok(open.into_iter().map(shown).collect())
    }
}

/// Open traces before stored ones, each once. Where there are stored ones at least one of them is shown, so that the next
/// page begins elsewhere.
fn merged(mut open: Vec<PageRow>, mut stored: Vec<PageRow>, limit: usize) -> Vec<PageRow> {
    stored.retain(|row| open.iter().all(|one| one.trace.trace_id != row.trace.trace_id));
    if limit > 1 && !stored.is_empty() {
        open.truncate(limit - 1);
    }
    open.append(&mut stored);
    open.truncate(limit);
    open
}

/// How much of a page a reply may show.
#[derive(Debug, Clone, Copy)]
struct Shape {
    detail: Detail,
    bytes_max: usize,
    /// A page that is still too large has fewer rows.
    is_strict: bool,
}

impl Shape {
    fn of(args: &GetTracesArgs, query: &TraceQuery, caller: &Caller) -> Self {
        let bytes_max = caller.reply_bytes(if query.trace_id.is_some() { TRACE_BYTES_MAX } else { PAGE_BYTES_MAX });
        // Beside a part the trace itself is told in brief.
        let (detail, bytes_max) = match args.part {
            Some(_) => (Detail::Brief, bytes_max / 8),
            None => (args.detail.unwrap_or_default(), bytes_max),
        };
        Self { detail, bytes_max, is_strict: caller.is_model() }
    }
}

/// Open traces stand on the first page, newest first; one that is asked for by its id, in any order.
fn wants_open(query: &TraceQuery) -> bool {
    let newest_first = query.sort_by == SortBy::Timestamp && !query.ascending;
    query.offset == 0 && (newest_first || query.trace_id.is_some())
}

/// Whether each of the words stands in a text of the trace, as the store compares them.
fn holds(trace: &Trace, words: &[String]) -> bool {
    let folded = |text: &str| View::folded(text).text().to_lowercase();
    let documents = [serde_json::to_string(&trace.tool_calls), serde_json::to_string(&trace.metadata)];
    let texts = [trace.input.as_deref(), trace.output.as_deref()];
    let texts = texts.into_iter().flatten().chain(documents.iter().flatten().map(String::as_str));
    let texts: Vec<String> = texts.map(folded).collect();
    words.iter().all(|word| {
        let word = folded(word);
        texts.iter().any(|text| text.contains(&word))
    })
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
    shape: Shape,
) -> Result<Value, serde_json::Error> {
    let mut rows = Vec::with_capacity(found.len());
    let mut all_lost = Vec::with_capacity(found.len());
    let mut names_rules = false;
    let open = found.iter().filter(|row| row.trace.in_progress).count();
    for PageRow { trace, evaluation, lost } in found {
        let row = row(trace, evaluation);
        names_rules |= row.verdict.iter().flat_map(|verdict| &verdict.by).any(|name| !marks::is_ours(name));
        rows.push(serde_json::to_value(row)?);
        all_lost.push(lost);
    }
    let most = match shape.detail {
        Detail::Brief => Some(Measure::BRIEF),
        Detail::Full if all_lost.iter().any(|lost| *lost != Lost::default()) => Some(Measure::CUT),
        Detail::Full => None,
    };
    let measure = Measure::fitting(&rows.iter().collect::<Vec<_>>(), shape.bytes_max, most);
    let mut cuts = if shape.is_strict { Cuts::naming(NAMED_MAX) } else { Cuts::default() };
    let found = rows.len();
    if shape.is_strict {
        bare(&mut rows, &mut all_lost, measure, shape.bytes_max);
    }
    if rows.len() < found {
        cuts.push(format!("traces[{}..{found}]: left out for their size; next_offset shows them", rows.len()));
        reply.limit = rows.len() as u64;
    }
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
    let passed_over = if rows.len() < found { 0 } else { unreadable.len() };
    let next = reply.offset + (rows.len().saturating_sub(open) + passed_over).max(1) as u64;
    reply.next_offset = Some(next).filter(|next| *next < reply.total && !rows.is_empty());
    reply.truncated = cuts.into_names();
    let mut value = serde_json::to_value(reply)?;
    value["traces"] = Value::Array(rows);
    if names_rules {
        marks::mark(&mut value, &["traces[].verdict.by".to_owned()]);
    }
    Ok(value)
}

/// Takes free documents out of rows that are too large however far they are cut, and then rows from the end.
fn bare(rows: &mut Vec<Value>, lost: &mut [Lost], measure: Measure, bytes_max: usize) {
    let sum = |rows: &[Value]| rows.iter().map(|row| measure.size(row) + ROW_BYTES).sum::<usize>();
    if sum(rows) <= bytes_max {
        return;
    }
    for (row, lost) in rows.iter_mut().zip(lost) {
        if let Some(Value::Array(calls)) = row.get_mut("tool_calls") {
            lost.tool_calls |= !calls.is_empty();
            calls.clear();
        }
        if let Some(Value::Object(metadata)) = row.get_mut("metadata") {
            lost.metadata |= !metadata.is_empty();
            metadata.clear();
        }
    }
    let mut bytes = 0;
    let kept = rows.iter().take_while(|row| {
        bytes += measure.size(row) + ROW_BYTES;
        bytes <= bytes_max
    });
    let kept = kept.count().max(1);
    rows.truncate(kept);
}
