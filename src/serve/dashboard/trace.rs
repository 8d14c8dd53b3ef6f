//! One trace: its verdict, what was said with the evidence marked, its spans, tool calls, tokens, cost and evaluations.

use askama::Template;
use axum::Extension;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use iris_core::evaluate;
use iris_core::model::{CostPart, CostSource, Evaluation, RawSpan, Reading, SpanId, Timestamp, Trace, VerdictState};

use super::form::Fields;
use super::format::{self, absolute, count, count_of, millis_of, usd_of};
use super::markup::Markup;
use super::spans::{self, Waterfall};
use super::story::{self, Call, Story, Turn};
use super::text::Words;
use super::{Frame, Shared, Visitor, html, may_change};
use crate::tools::{Caller, Whole};

/// Attributes of a span that a page shows.
const ATTRIBUTES_MAX: usize = 300;

/// A name and what stands behind it.
struct Fact {
    name: &'static str,
    value: Words,
    link: Option<String>,
}

struct Judgement {
    link: String,
    when: Markup,
    verdict: Markup,
    score: String,
    by: &'static str,
    bundle: &'static str,
    failed: usize,
    passed: usize,
    skipped: usize,
    is_chosen: bool,
}

/// A line of what tokens cost.
struct Cost {
    name: &'static str,
    tokens: String,
    usd: String,
}

/// An event of a span: its name, when it was, and its attributes.
type Event = (Words, String, Vec<(Words, Words)>);

/// The span that was chosen.
struct Chosen {
    name: Words,
    lane: spans::Lane,
    facts: Vec<(&'static str, Words)>,
    attributes: Vec<(Words, Words)>,
    resource: Vec<(Words, Words)>,
    events: Vec<Event>,
    cut: usize,
}

#[derive(Template)]
#[template(path = "trace.html")]
struct Page {
    frame: Frame,
    id: String,
    agent: Words,
    when: Markup,
    at: String,
    verdict: Markup,
    why: Option<String>,
    is_open: bool,
    is_omitted: bool,
    warnings: Vec<&'static str>,
    tiles: Vec<(&'static str, String)>,
    facts: Vec<Fact>,
    metadata: Option<Words>,
    story: Story,
    turns: Vec<Turn>,
    calls: Vec<Call>,
    calls_known: bool,
    calls_more: usize,
    waterfall: Waterfall,
    spans_total: usize,
    all_link: String,
    chosen: Option<Chosen>,
    costs: Vec<Cost>,
    cost_note: String,
    judgements: Vec<Judgement>,
    judgements_total: usize,
    judged: Option<String>,
    rule_link: Option<String>,
}

/// The page.
pub(super) async fn show(
    State(room): Shared,
    Extension(visitor): Extension<Visitor>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let fields = Fields::of(query.as_deref());
    let chosen: Option<SpanId> = fields.get("span").and_then(|span| span.parse().ok());
    match room.app.whole(&id, chosen, &caller).await {
        Err(error) => room.refused(&error, &visitor, &caller),
        Ok(whole) => {
            let mut frame = room.frame("Trace", "/traces", &visitor, Some(&caller));
            frame.is_live = whole.trace.in_progress;
            let now = room.now();
            let may = may_change(&caller);
            // Marking and drawing thousands of spans is no work for the threads that sockets wait on.
            let made = tokio::task::spawn_blocking(move || html(&page(frame, &fields, &whole, chosen, now, may)));
            made.await.unwrap_or_else(|error| {
                tracing::error!(%error, "a page could not be made");
                axum::response::IntoResponse::into_response(axum::http::StatusCode::INTERNAL_SERVER_ERROR)
            })
        }
    }
}

fn page(frame: Frame, fields: &Fields, whole: &Whole, chosen: Option<SpanId>, now: Timestamp, may: bool) -> Page {
    let trace = &whole.trace;
    let id = trace.trace_id.to_string();
    let path = format!("/traces/{id}");
    let wanted = fields.get("evaluation");
    let evaluation = match wanted {
        Some(wanted) => whole.evaluations.iter().find(|one| one.id == wanted),
        None => whole.evaluations.first(),
    };
    let verdict = evaluation.map(evaluate::compose);
    let shows_all = fields.get("spans") == Some("all");
    let (calls, calls_more) = story::calls(trace, evaluation);
    let (costs, cost_note) = costs(trace);
    Page {
        frame,
        agent: Words::brief(&trace.agent_name, 120),
        when: format::when(now, trace.timestamp),
        at: absolute(trace.timestamp),
        verdict: format::verdict(evaluation.map(|one| one.state)),
        why: verdict.as_ref().map(story::why),
        is_open: trace.in_progress,
        is_omitted: whole.is_omitted,
        warnings: warnings(trace, whole),
        tiles: tiles(trace, evaluation),
        facts: facts(trace),
        metadata: metadata(trace),
        story: story::story(trace, evaluation),
        turns: messages(whole),
        calls,
        calls_known: trace.tool_calls.is_some(),
        calls_more,
        waterfall: spans::waterfall(&id, &whole.spans, chosen, shows_all),
        spans_total: whole.spans_total,
        all_link: fields.link(&path, &[("spans", "all")]),
        chosen: chosen.and_then(|chosen| whole.spans.iter().find(|(span, _)| span.span_id == chosen)).map(opened),
        costs,
        cost_note,
        judgements: whole.evaluations.iter().map(|one| judgement(fields, &path, one, evaluation, now)).collect(),
        judgements_total: whole.evaluations_total,
        judged: evaluation.map(|one| absolute(one.created_at)),
        rule_link: may.then(|| Fields::default().link("/rules", &[("source", &id)]) + "#new"),
        id,
    }
}

fn warnings(trace: &Trace, whole: &Whole) -> Vec<&'static str> {
    let doubled = trace.notes.doubled_calls + trace.notes.doubled_tools > 0;
    let all = [
        (trace.in_progress, "Not ended yet: this verdict is provisional, and this page is fetched again by itself."),
        (trace.partial, "Closed before its end was seen: spans are missing."),
        (trace.conflicting_spans, "Two different spans came under one id; both are shown."),
        (trace.notes.clock_skew, "The clocks of its services disagree: times are only roughly right."),
        (!trace.notes.missing_parents.is_empty(), "Some parents never came: their children stand at the top."),
        (doubled, "Some calls are recorded by two spans each, as by two instrumentations: each counts once."),
        (trace.notes.usage_mismatch, "An agent states other token totals than its calls add up to: the calls count."),
        (whole.unreadable > 0, "Some stored rows of this trace cannot be read; they are left out."),
        (whole.is_omitted, "Stored text is left out, as mcp.stored_text says."),
    ];
    all.into_iter().filter(|(holds, _)| *holds).map(|(_, warning)| warning).collect()
}

fn tiles(trace: &Trace, evaluation: Option<&Evaluation>) -> Vec<(&'static str, String)> {
    let usage = trace.token_usage.unwrap_or_default();
    let part = |one: &Evaluation| if one.state == VerdictState::Unknown { " of what could be judged" } else { "" };
    let score = evaluation.filter(|one| !one.judged_nothing()).map(|one| format!("{:.2}{}", one.score, part(one)));
    vec![
        ("Score", score.unwrap_or_else(|| format::NONE.to_owned())),
        ("Latency", millis_of(trace.latency_ms)),
        ("Cost", usd_of(trace.cost_usd)),
        ("Tokens in", count_of(usage.prompt_tokens)),
        ("Tokens out", count_of(usage.completion_tokens)),
        ("Spans", count(trace.span_count.into())),
        ("Errors", count(trace.error_count.into())),
    ]
}

fn facts(trace: &Trace) -> Vec<Fact> {
    let fact = |name, value: Option<&str>, field: Option<&str>| {
        let value = value?;
        let link = field.map(|field| Fields::default().link("/traces", &[(field, value)]));
        Some(Fact { name, value: Words::brief(value, 160), link })
    };
    let all = [
        fact("Agent", Some(&trace.agent_name), Some("agent_name")),
        fact("Model", trace.model.as_deref(), None),
        fact("Provider", trace.provider.as_deref(), None),
        fact("Framework", trace.framework.as_deref(), Some("framework")),
        fact("Session", trace.session_id.as_deref(), Some("session_id")),
        fact("User", trace.user_id.as_deref(), None),
        fact("Environment", trace.environment.as_deref(), None),
        fact("Version", trace.service_version.as_deref(), None),
    ];
    all.into_iter().flatten().collect()
}

/// What was attached to a trace, when anything was.
fn metadata(trace: &Trace) -> Option<Words> {
    (!trace.metadata.is_empty()).then(|| story::value(&serde_json::Value::Object(trace.metadata.clone())))
}

/// The messages of the last model call, which carries the conversation before it.
fn messages(whole: &Whole) -> Vec<Turn> {
    let last = whole.spans.iter().rev().map(|(_, reading)| reading);
    let mut speaking = last.filter(|reading| {
        reading.output_messages.as_ref().is_some_and(|messages| !messages.is_empty())
            || reading.input_messages.as_ref().is_some_and(|messages| !messages.is_empty())
    });
    let Some(reading) = speaking.next() else { return Vec::new() };
    let all: Vec<_> = reading.input_messages.iter().chain(&reading.output_messages).flatten().cloned().collect();
    story::turns(&all)
}

fn opened((span, reading): &(RawSpan, Reading)) -> Chosen {
    let pairs = |attributes: &iris_core::model::Attributes| -> Vec<(Words, Words)> {
        let all = attributes.iter().take(ATTRIBUTES_MAX);
        all.map(|(name, value)| (Words::brief(name, 200), story::value(value))).collect()
    };
    let kind = serde_json::to_value(span.kind).ok();
    let status = serde_json::to_value(span.status).ok();
    let word = |value: &Option<serde_json::Value>| {
        value.as_ref().and_then(|value| value.as_str()).unwrap_or_default().to_lowercase()
    };
    let mut facts = vec![
        ("Span id", Words::of(&span.span_id.to_string())),
        ("Begins", Words::of(&absolute(span.start))),
        ("Takes", Words::of(&spans::took(span))),
        ("Kind", Words::of(&word(&kind))),
        ("Status", Words::of(&word(&status))),
        ("Read as", Words::of(&reading.dialects.join(", "))),
        ("Instrumentation", Words::brief(&format!("{} {}", span.scope.name, span.scope.version), 160)),
    ];
    if !span.status_message.is_empty() {
        facts.push(("Says", Words::brief(&span.status_message, story::VALUE_CHARS)));
    }
    if !reading.unmapped.is_empty() {
        facts.push(("Content nothing reads", Words::brief(&reading.unmapped.join(", "), 1000)));
    }
    let events = span.events.iter().take(ATTRIBUTES_MAX);
    Chosen {
        name: Words::brief(&span.name, 160),
        lane: spans::lane(reading.role),
        facts: facts.into_iter().filter(|(_, value)| !value.is_empty()).collect(),
        attributes: pairs(&span.attributes),
        resource: pairs(&span.resource.attributes),
        events: events
            .map(|event| (Words::brief(&event.name, 160), absolute(event.time), pairs(&event.attributes)))
            .collect(),
        cut: span.attributes.len().saturating_sub(ATTRIBUTES_MAX),
    }
}

fn costs(trace: &Trace) -> (Vec<Cost>, String) {
    let source = match trace.cost_source {
        Some(CostSource::Reported) => "The instrumentation reported what it cost.",
        Some(CostSource::Estimated) => "Estimated from tokens and list prices.",
        None => "What it cost is not known.",
    };
    let Some(parts) = &trace.cost_parts else { return (Vec::new(), source.to_owned()) };
    let line = |name, part: &Option<CostPart>| {
        part.as_ref().map(|part| Cost { name, tokens: count(part.tokens), usd: usd_of(Some(part.usd)) })
    };
    let mut lines: Vec<Cost> = [
        line("Input", &parts.input),
        line("Read from the provider's cache", &parts.cached_read),
        line("Written to the provider's cache", &parts.cache_write),
        line("Output", &parts.output),
    ]
    .into_iter()
    .flatten()
    .collect();
    if let Some(tokens) = parts.reasoning_tokens {
        lines.push(Cost { name: "Of the output: reasoning", tokens: count(tokens), usd: format::NONE.to_owned() });
    }
    if parts.reported_usd.is_some() {
        lines.push(Cost { name: "Reported", tokens: format::NONE.to_owned(), usd: usd_of(parts.reported_usd) });
    }
    let calls = format!("{} of {} model calls have a price.", parts.priced_calls, parts.calls);
    let unpriced: Vec<String> = parts.unpriced_models.iter().map(|model| Words::brief(model, 80).to_string()).collect();
    let lack =
        if unpriced.is_empty() { String::new() } else { format!(" No price is known for {}.", unpriced.join(", ")) };
    (lines, format!("{source} {calls}{lack}"))
}

fn judgement(fields: &Fields, path: &str, one: &Evaluation, chosen: Option<&Evaluation>, now: Timestamp) -> Judgement {
    let counted = |holds: fn(&iris_core::model::RuleResult) -> bool| {
        one.rule_results.iter().filter(|result| holds(result)).count()
    };
    Judgement {
        link: fields.link(path, &[("evaluation", &one.id)]) + "#rules",
        when: format::when(now, one.created_at),
        verdict: format::verdict(if one.judged_nothing() { None } else { Some(one.state) }),
        score: if one.judged_nothing() { format::NONE.to_owned() } else { format!("{:.2}", one.score) },
        by: match (one.answered.is_some(), one.inline) {
            (true, _) => "a model",
            (_, true) => "the sidecar",
            _ => "a call",
        },
        bundle: one.eval_type.as_str(),
        failed: counted(|result| !result.passed && !result.skipped),
        passed: counted(|result| result.passed),
        skipped: counted(|result| result.skipped),
        is_chosen: chosen.is_some_and(|chosen| chosen.id == one.id),
    }
}
