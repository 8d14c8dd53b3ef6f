//! The list of traces: what `get_traces` finds, page by page, under addresses that can be kept.

use askama::Template;
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use iris_core::contract;
use iris_core::model::{Timestamp, VerdictState};
use serde_json::Value;

use super::form::Fields;
use super::format::{self, count, millis_of, usd_of, verdict};
use super::markup::Markup;
use super::text::Words;
use super::{Frame, Shared, Start, Visitor, html};
use crate::serve::api::query_json;
use crate::tools::Caller;

const PATH: &str = "/traces";

/// Rows of a page unless another number is asked for.
const ROWS: u64 = 50;

/// Characters of an input and of an output in the list.
const PREVIEW_CHARS: usize = 160;

/// Rules that a row names.
const RULES_MAX: usize = 3;

struct Line {
    link: String,
    id: String,
    agent: Words,
    model: Words,
    verdict: Markup,
    by: Vec<Words>,
    more: usize,
    input: Option<Words>,
    output: Option<Words>,
    latency: String,
    tokens: String,
    cost: String,
    when: Markup,
    is_open: bool,
}

/// A field of the filter.
struct Field {
    name: &'static str,
    label: &'static str,
    hint: &'static str,
    value: Words,
}

struct Choosable {
    value: &'static str,
    name: &'static str,
    is_chosen: bool,
}

struct Select {
    name: &'static str,
    label: &'static str,
    options: Vec<Choosable>,
}

#[derive(Template)]
#[template(path = "traces.html")]
struct Page {
    frame: Frame,
    search: Words,
    selects: Vec<Select>,
    fields: Vec<Field>,
    is_filtered: bool,
    /// A rule's name narrows it.
    has_rule: bool,
    /// Fields beyond the first line are in use.
    is_narrow: bool,
    lines: Vec<Line>,
    total: String,
    from: String,
    to: String,
    previous: Option<String>,
    next: Option<String>,
    unsearched: Option<Unsearched>,
    start: Start,
}

/// What a search did not look at.
struct Unsearched {
    traces: String,
    until: Markup,
    /// The same search there.
    further: String,
}

impl Unsearched {
    fn of(fields: &Fields, reply: &Value, now: Timestamp) -> Option<Self> {
        let until = reply.pointer("/unsearched/until")?.as_str()?;
        Some(Self {
            traces: count(reply.pointer("/unsearched/traces")?.as_u64()?),
            until: format::when_text(now, until),
            further: fields.link(PATH, &[("until", until), ("offset", "")]),
        })
    }
}

/// The page.
pub(super) async fn show(
    State(room): Shared,
    Extension(visitor): Extension<Visitor>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Response {
    let mut fields = Fields::of(query.as_deref());
    // As the overview calls it.
    fields.rename("agent", "agent_name");
    let mut asked = fields.link("", &[("detail", "brief"), ("include_summary", ""), ("part", ""), ("part_offset", "")]);
    if fields.get("limit").is_none() {
        asked.push_str(&format!("&limit={ROWS}"));
    }
    let schema = contract::tool("get_traces").map(|tool| (tool.arguments)()).unwrap_or_default();
    let args = query_json(asked.trim_start_matches('?'), &schema);
    let reply = match args {
        Ok(args) => room.app.call("get_traces", args, &caller).await,
        Err(error) => Err(error),
    };
    match reply {
        Ok(reply) => {
            let frame = room.live("Traces", PATH, &visitor, &caller);
            html(&page(frame, &fields, &reply, room.now(), room.start()))
        }
        Err(error) => room.refused(&error, &visitor, &caller),
    }
}

fn page(frame: Frame, fields: &Fields, reply: &Value, now: Timestamp, start: Start) -> Page {
    let number = |name: &str| reply.get(name).and_then(Value::as_u64);
    let rows = reply.get("traces").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let (total, offset) = (number("total").unwrap_or_default(), number("offset").unwrap_or_default());
    let limit = number("limit").unwrap_or(ROWS).max(1);
    let shown = offset + rows.len() as u64;
    let next = number("next_offset").or_else(|| (shown < total).then_some(offset + limit));
    let narrow = ["framework", "session_id", "trace_id", "min_score", "max_score", "sort_by", "sort_order"];
    Page {
        frame,
        search: Words::of(fields.text("q")),
        selects: selects(fields),
        fields: inputs(fields),
        is_filtered: fields.iter().any(|(name, _)| !matches!(name, "offset" | "limit")),
        has_rule: fields.get("rule").is_some(),
        is_narrow: narrow.iter().any(|name| fields.get(name).is_some()),
        lines: rows.iter().map(|row| line(row, now)).collect(),
        // Open traces stand before the stored ones, which alone are counted.
        total: count(total.max(rows.len() as u64)),
        from: count(if rows.is_empty() { 0 } else { offset + 1 }),
        to: count(shown),
        previous: (offset > 0).then(|| {
            let before = offset.saturating_sub(limit).to_string();
            fields.link(PATH, &[("offset", if before == "0" { "" } else { &before })])
        }),
        next: next.map(|next| fields.link(PATH, &[("offset", &next.to_string())])),
        unsearched: Unsearched::of(fields, reply, now),
        start,
    }
}

fn selects(fields: &Fields) -> Vec<Select> {
    let select = |name: &'static str, label, options: &[(&'static str, &'static str)]| Select {
        name,
        label,
        options: options
            .iter()
            .map(|(value, shown)| Choosable { value, name: shown, is_chosen: fields.text(name) == *value })
            .collect(),
    };
    vec![
        select("verdict", "Verdict", &[("", "any"), ("pass", "pass"), ("fail", "fail"), ("unknown", "unknown")]),
        select("sort_by", "Sort by", &[("", "time"), ("latency_ms", "latency"), ("cost_usd", "cost")]),
        select("sort_order", "Order", &[("", "largest or newest first"), ("asc", "smallest or oldest first")]),
    ]
}

fn inputs(fields: &Fields) -> Vec<Field> {
    let all = [
        ("agent_name", "Agent", ""),
        ("rule", "Failed rule", "no_pii"),
        ("since", "Since", "2026-12-01"),
        ("until", "Until", "2026-12-31"),
        ("framework", "Framework", ""),
        ("session_id", "Session", ""),
        ("trace_id", "Trace id", "32 hex digits"),
        ("min_score", "Score from", "0"),
        ("max_score", "Score to", "1"),
    ];
    all.into_iter()
        .map(|(name, label, hint)| Field { name, label, hint, value: Words::of(fields.text(name)) })
        .collect()
}

/// The state that a row's verdict has.
pub(super) fn state_of(verdict: &Value) -> Option<VerdictState> {
    serde_json::from_value(verdict.get("state")?.clone()).ok()
}

fn line(row: &Value, now: Timestamp) -> Line {
    let text = |name: &str| row.get(name).and_then(Value::as_str);
    let brief = |name: &str| text(name).map(|text| Words::brief(text, PREVIEW_CHARS));
    let id = text("trace_id").unwrap_or_default().to_owned();
    let usage = row.get("token_usage");
    let tokens = |name: &str| usage.and_then(|usage| usage.get(name)).and_then(Value::as_u64);
    let tokens = tokens("total_tokens")
        .or_else(|| Some(tokens("prompt_tokens")?.saturating_add(tokens("completion_tokens").unwrap_or(0))));
    let by = row.pointer("/verdict/by").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    Line {
        link: format!("{PATH}/{id}"),
        id: id.chars().take(8).collect(),
        agent: Words::brief(text("agent_name").unwrap_or_default(), 60),
        model: Words::brief(text("model").unwrap_or_default(), 60),
        verdict: verdict(row.get("verdict").and_then(state_of)),
        by: by.iter().take(RULES_MAX).filter_map(Value::as_str).map(|name| Words::brief(name, 60)).collect(),
        more: by.len().saturating_sub(RULES_MAX),
        input: brief("input"),
        output: brief("output"),
        latency: millis_of(row.get("latency_ms").and_then(Value::as_f64)),
        tokens: tokens.map_or_else(|| format::NONE.to_owned(), count),
        cost: usd_of(row.get("cost_usd").and_then(Value::as_f64)),
        when: format::when_text(now, text("timestamp").unwrap_or_default()),
        is_open: row.get("in_progress") == Some(&Value::Bool(true)),
    }
}
