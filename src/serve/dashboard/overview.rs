//! The first page: verdicts, cost, tokens and latency over time, the rules that fail, and the figures by name.

use askama::Template;
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use iris_core::model::Timestamp;

use super::chart::{Chart, Kind, Row, Unit};
use super::form::Fields;
use super::format::{self, count, count_of, millis_of, share, usd_of};
use super::markup::Markup;
use super::text::Words;
use super::{Frame, Shared, Start, Visitor, html};
use crate::store::{By, Figures, Step};
use crate::tools::{Caller, FiguresArgs, FiguresReply, Period};

/// Characters of a name in a table.
const NAME_CHARS: usize = 80;

/// What the table can tell traces apart by, with the field of the filter.
const BY: [(By, &str, &str); 4] = [
    (By::Agent, "agent", "Agent"),
    (By::Model, "model", "Model"),
    (By::Provider, "provider", "Provider"),
    (By::Version, "version", "Version"),
];

/// A way to look at the same page.
pub(super) struct Choice {
    pub link: String,
    pub name: &'static str,
    pub is_chosen: bool,
}

struct Tile {
    name: &'static str,
    value: String,
    note: String,
}

struct Line {
    name: Option<Words>,
    link: String,
    traces: String,
    passed: String,
    failed: String,
    unknown: String,
    cost: String,
    tokens: String,
    latency: String,
}

struct Failing {
    name: Words,
    link: String,
    times: String,
    /// In percent of the most frequent.
    width: String,
}

struct Filter {
    name: &'static str,
    label: &'static str,
    value: Words,
}

#[derive(Template)]
#[template(path = "overview.html")]
struct Page {
    frame: Frame,
    period: &'static str,
    periods: Vec<Choice>,
    steps: Vec<Choice>,
    by: Vec<Choice>,
    by_name: &'static str,
    by_field: &'static str,
    filters: Vec<Filter>,
    is_filtered: bool,
    tiles: Vec<Tile>,
    charts: Vec<Chart>,
    failing: Vec<Failing>,
    lines: Vec<Line>,
    /// Nothing in this window.
    is_empty: bool,
    newest: Option<Markup>,
    start: Start,
}

/// The period that an address names.
pub(super) fn period_of(fields: &Fields) -> Option<Period> {
    Period::ALL.into_iter().find(|period| fields.get("period") == Some(period.as_str()))
}

/// Every period as a link to the same page.
pub(super) fn periods(fields: &Fields, path: &str, chosen: Period) -> Vec<Choice> {
    let choice = |period: Period| Choice {
        link: fields.link(path, &[("period", period.as_str()), ("step", ""), ("offset", "")]),
        name: period.as_str(),
        is_chosen: period == chosen,
    };
    Period::ALL.into_iter().map(choice).collect()
}

const fn step_name(step: Step) -> &'static str {
    match step {
        Step::Hour => "hour",
        Step::Day => "day",
        Step::Week => "week",
    }
}

/// The page.
pub(super) async fn show(
    State(room): Shared,
    Extension(visitor): Extension<Visitor>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Response {
    let fields = Fields::of(query.as_deref());
    let chosen = BY.iter().find(|(_, field, _)| fields.get("by") == Some(field)).unwrap_or(&BY[0]);
    let named = |(by, field, _): &(By, &str, &str)| Some((*by, fields.get(field)?.to_owned()));
    let args = FiguresArgs {
        period: period_of(&fields),
        step: [Step::Hour, Step::Day, Step::Week].into_iter().find(|step| fields.get("step") == Some(step_name(*step))),
        by: chosen.0,
        names: BY.iter().filter_map(named).collect(),
    };
    let reply = match room.app.figures(args, &caller).await {
        Ok(reply) => reply,
        Err(error) => return room.refused(&error, &visitor, &caller),
    };
    let frame = room.live("Overview", "/", &visitor, &caller);
    html(&page(frame, &fields, *chosen, &reply, room.start()))
}

fn page(
    frame: Frame,
    fields: &Fields,
    (_, by_field, by_name): (By, &'static str, &'static str),
    reply: &FiguresReply,
    start: Start,
) -> Page {
    let total = &reply.series.total;
    let step = |step: &Step| Choice {
        link: fields.link("/", &[("period", reply.period.as_str()), ("step", step_name(*step))]),
        name: step_name(*step),
        is_chosen: *step == reply.step,
    };
    let filter = |(_, name, label): &(By, &'static str, &'static str)| Filter {
        name,
        label,
        value: Words::of(fields.text(name)),
    };
    Page {
        frame,
        period: reply.period.as_str(),
        periods: periods(fields, "/", reply.period),
        steps: reply.period.steps().iter().map(step).collect(),
        by: BY
            .iter()
            .map(|(_, field, name)| Choice {
                link: fields.link("/", &[("by", field)]),
                name,
                is_chosen: *field == by_field,
            })
            .collect(),
        by_name,
        by_field,
        filters: BY.iter().map(filter).collect(),
        is_filtered: BY.iter().any(|(_, field, _)| fields.get(field).is_some()),
        tiles: tiles(total),
        charts: charts(reply),
        failing: failing(reply),
        lines: reply
            .series
            .names
            .iter()
            .map(|(name, figures)| line(fields, by_field, name.as_deref(), figures))
            .collect(),
        is_empty: total.traces == 0,
        newest: reply.newest.map(|newest| format::when(reply.now, newest)),
        start,
    }
}

fn judged(figures: &Figures) -> u64 {
    figures.passed + figures.failed + figures.unknown
}

fn traces(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "trace" } else { "traces" })
}

fn tiles(total: &Figures) -> Vec<Tile> {
    let tokens = match (total.input_tokens, total.output_tokens) {
        (None, None) => None,
        (input, output) => Some(input.unwrap_or(0).saturating_add(output.unwrap_or(0))),
    };
    let tile = |name, value, note| Tile { name, value, note };
    vec![
        tile("Traces", count(total.traces), format!("{} with an error", count(total.errors))),
        tile(
            "Pass",
            share(total.passed, judged(total)),
            format!("{} of {} judged", count(total.passed), count(judged(total))),
        ),
        tile("Fail", share(total.failed, judged(total)), traces(total.failed)),
        tile("Unknown", share(total.unknown, judged(total)), traces(total.unknown)),
        tile("Cost", usd_of(total.cost_usd), "as far as it is known".to_owned()),
        tile(
            "Tokens",
            tokens.map_or_else(|| format::NONE.to_owned(), |tokens| format::short(tokens as f64)),
            format!("{} in, {} out", count_of(total.input_tokens), count_of(total.output_tokens)),
        ),
        tile(
            "Latency",
            millis_of(total.latency_ms_p50),
            format!("median; 95 of 100 below {}", millis_of(total.latency_ms_p95)),
        ),
    ]
}

/// A step's beginning on the axis and in the table.
fn labels(step: Step, time: Timestamp) -> (String, String) {
    let text = format::absolute(time);
    let (date, clock) = (text.get(5..10).unwrap_or_default(), text.get(11..16).unwrap_or_default());
    match step {
        Step::Hour => (clock.to_owned(), text.get(..16).unwrap_or(&text).to_owned()),
        Step::Day => (date.to_owned(), text.get(..10).unwrap_or(&text).to_owned()),
        Step::Week => (date.to_owned(), format!("week of {}", text.get(..10).unwrap_or(&text))),
    }
}

fn charts(reply: &FiguresReply) -> Vec<Chart> {
    let points = &reply.series.points;
    let steps: Vec<(String, String)> = points.iter().map(|(time, _)| labels(reply.step, *time)).collect();
    let row = |name, class, sign, value: &dyn Fn(&Figures) -> Option<f64>| Row {
        name,
        class,
        sign,
        values: points.iter().map(|(_, figures)| value(figures)).collect(),
    };
    let share = |figures: &Figures| {
        let judged = judged(figures);
        (judged > 0).then(|| figures.passed as f64 / judged as f64)
    };
    let number = |number: Option<u64>| number.map(|number| number as f64);
    let chart = |id, title, unit, kind, rows| Chart { id, title, unit, kind, steps: steps.clone(), rows };
    vec![
        chart(
            "verdicts",
            "Verdicts",
            Unit::Count("traces"),
            Kind::Stack,
            vec![
                row("pass", "pass", "■", &|one| Some(one.passed as f64)),
                row("unknown", "unknown", "□", &|one| Some(one.unknown as f64)),
                row("fail", "fail", "▲", &|one| Some(one.failed as f64)),
            ],
        ),
        chart("pass-rate", "Pass rate", Unit::Share, Kind::Lines, vec![row("pass", "pass", "●", &share)]),
        chart("cost", "Cost", Unit::Usd, Kind::Stack, vec![row("cost", "accent", "■", &|one| one.cost_usd)]),
        chart(
            "tokens",
            "Tokens",
            Unit::Count("tokens"),
            Kind::Stack,
            vec![
                row("input", "accent", "■", &|one| number(one.input_tokens)),
                row("output", "second", "▲", &|one| number(one.output_tokens)),
            ],
        ),
        chart(
            "latency",
            "Latency",
            Unit::Millis,
            Kind::Lines,
            vec![
                row("median", "accent", "●", &|one| one.latency_ms_p50),
                row("95th percentile", "second", "▲", &|one| one.latency_ms_p95),
            ],
        ),
    ]
}

fn failing(reply: &FiguresReply) -> Vec<Failing> {
    let most = reply.series.rules.first().map_or(1, |(_, times)| *times).max(1);
    let since =
        reply.now.as_unix_nanos().saturating_sub(u64::try_from(reply.period.length().as_nanos()).unwrap_or(u64::MAX));
    let since = Timestamp::from_unix_nanos(since).to_string();
    let line = |(rule, times): &(String, u64)| Failing {
        name: Words::brief(rule, NAME_CHARS),
        link: Fields::default().link("/traces", &[("rule", rule), ("since", &since)]),
        times: count(*times),
        width: format!("{:.1}", *times as f64 / most as f64 * 100.0),
    };
    reply.series.rules.iter().take(12).map(line).collect()
}

fn line(fields: &Fields, by: &str, name: Option<&str>, figures: &Figures) -> Line {
    let tokens = figures.input_tokens.unwrap_or(0).saturating_add(figures.output_tokens.unwrap_or(0));
    let is_known = figures.input_tokens.is_some() || figures.output_tokens.is_some();
    Line {
        name: name.map(|name| Words::brief(name, NAME_CHARS)),
        link: fields.link("/", &[(by, name.unwrap_or_default())]),
        traces: count(figures.traces),
        passed: share(figures.passed, judged(figures)),
        failed: count(figures.failed),
        unknown: count(figures.unknown),
        cost: usd_of(figures.cost_usd),
        tokens: if is_known { format::short(tokens as f64) } else { format::NONE.to_owned() },
        latency: millis_of(figures.latency_ms_p50),
    }
}
