//! Conversations: the traces that share a session.

use askama::Template;
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::Response;

use super::form::Fields;
use super::format::{self, count, share, short, usd_of};
use super::markup::Markup;
use super::overview::{Choice, period_of, periods};
use super::text::Words;
use super::{Frame, Shared, Visitor, html};
use crate::store::SessionRow;
use crate::tools::{Caller, SESSIONS_PAGE};

const PATH: &str = "/sessions";

struct Line {
    link: String,
    session: Words,
    agent: Words,
    more_agents: u64,
    traces: String,
    passed: String,
    failed: String,
    unknown: String,
    tokens: String,
    cost: String,
    first: Markup,
    last: Markup,
}

#[derive(Template)]
#[template(path = "sessions.html")]
struct Page {
    frame: Frame,
    periods: Vec<Choice>,
    period: &'static str,
    lines: Vec<Line>,
    previous: Option<String>,
    next: Option<String>,
}

/// The page.
pub(super) async fn show(
    State(room): Shared,
    Extension(visitor): Extension<Visitor>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Response {
    let fields = Fields::of(query.as_deref());
    let offset = fields.number("offset").unwrap_or_default().min(1_000_000_000);
    let (period, rows, is_more) = match room.app.sessions(period_of(&fields), offset, &caller).await {
        Ok(found) => found,
        Err(error) => return room.refused(&error, &visitor, &caller),
    };
    let now = room.now();
    let line = |row: SessionRow| Line {
        link: Fields::default().link("/traces", &[("session_id", &row.session_id), ("sort_order", "asc")]),
        session: Words::brief(&row.session_id, 80),
        agent: Words::brief(&row.agent_name, 60),
        more_agents: row.agents.saturating_sub(1),
        traces: count(row.figures.traces),
        passed: share(row.figures.passed, row.figures.passed + row.figures.failed + row.figures.unknown),
        failed: count(row.figures.failed),
        unknown: count(row.figures.unknown),
        tokens: match (row.figures.input_tokens, row.figures.output_tokens) {
            (None, None) => format::NONE.to_owned(),
            (input, output) => short(input.unwrap_or(0) as f64 + output.unwrap_or(0) as f64),
        },
        cost: usd_of(row.figures.cost_usd),
        first: format::when(now, row.first),
        last: format::when(now, row.last),
    };
    let page = u64::from(SESSIONS_PAGE);
    let before = offset.saturating_sub(page).to_string();
    html(&Page {
        frame: room.live("Sessions", PATH, &visitor, &caller),
        periods: periods(&fields, PATH, period),
        period: period.as_str(),
        lines: rows.into_iter().map(line).collect(),
        previous: (offset > 0).then(|| fields.link(PATH, &[("offset", if before == "0" { "" } else { &before })])),
        next: is_more.then(|| fields.link(PATH, &[("offset", &(offset + page).to_string())])),
    })
}
