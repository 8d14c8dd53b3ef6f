//! What failed, the most telling first.

use askama::Template;
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use iris_core::evaluate::MomentKind;
use iris_core::model::{Timestamp, VerdictState};

use super::form::Fields;
use super::format::{self, count, millis_of, usd_of};
use super::markup::Markup;
use super::overview::{Choice, period_of, periods};
use super::text::Words;
use super::{Frame, Shared, Visitor, html, story};
use crate::tools::{Caller, Moment};

const PATH: &str = "/failures";

/// Cards of one page.
const CARDS_MAX: usize = 50;

/// Characters of a text on a card.
const PREVIEW_CHARS: usize = 220;

const KINDS: [MomentKind; 6] = [
    MomentKind::SafetyViolation,
    MomentKind::CostSpike,
    MomentKind::NovelPattern,
    MomentKind::RuleCollision,
    MomentKind::Fail,
    MomentKind::Partial,
];

struct Card {
    link: String,
    agent: Words,
    kind: &'static str,
    kind_name: String,
    reason: &'static str,
    verdict: Markup,
    why: String,
    when: Markup,
    input: Option<Words>,
    output: Option<Words>,
    failed: Vec<Words>,
    passed: usize,
    skipped: usize,
    latency: String,
    cost: String,
}

#[derive(Template)]
#[template(path = "failures.html")]
struct Page {
    frame: Frame,
    periods: Vec<Choice>,
    period: &'static str,
    kinds: Vec<(String, String, bool)>,
    cards: Vec<Card>,
    shown: usize,
    found: usize,
    total: String,
    is_cut: bool,
}

/// The page.
pub(super) async fn show(
    State(room): Shared,
    Extension(visitor): Extension<Visitor>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Response {
    let fields = Fields::of(query.as_deref());
    let failures = match room.app.failures(period_of(&fields), &caller).await {
        Ok(failures) => failures,
        Err(error) => return room.refused(&error, &visitor, &caller),
    };
    let now = room.now();
    let wanted = fields.get("kind");
    let of = |kind: MomentKind| failures.moments.iter().filter(|one| one.kind == kind).count();
    let mut kinds = vec![(fields.link(PATH, &[("kind", "")]), "all".to_owned(), wanted.is_none())];
    kinds.extend(KINDS.iter().filter(|kind| of(**kind) > 0).map(|kind| {
        let name = format!("{} ({})", kind.as_str().replace('-', " "), of(*kind));
        (fields.link(PATH, &[("kind", kind.as_str())]), name, wanted == Some(kind.as_str()))
    }));
    let chosen = failures.moments.iter().filter(|one| wanted.is_none_or(|wanted| one.kind.as_str() == wanted));
    let chosen: Vec<&Moment> = chosen.collect();
    html(&Page {
        frame: room.live("Failures", PATH, &visitor, &caller),
        periods: periods(&fields, PATH, failures.period),
        period: failures.period.as_str(),
        kinds,
        shown: chosen.len().min(CARDS_MAX),
        found: chosen.len(),
        cards: chosen.into_iter().take(CARDS_MAX).map(|moment| card(moment, now, room.app.facts.stored_text)).collect(),
        is_cut: failures.total > failures.moments.len() as u64,
        total: count(failures.total),
    })
}

fn card(moment: &Moment, now: Timestamp, stored_text: crate::tools::StoredText) -> Card {
    let trace = &moment.trace;
    let is_omitted = stored_text == crate::tools::StoredText::Omitted;
    let brief =
        |text: &Option<String>| text.as_deref().filter(|_| !is_omitted).map(|text| Words::brief(text, PREVIEW_CHARS));
    Card {
        link: format!("/traces/{}", trace.trace_id),
        agent: Words::brief(&trace.agent_name, 80),
        kind: moment.kind.as_str(),
        kind_name: moment.kind.as_str().replace('-', " "),
        reason: moment.kind.reason(),
        verdict: format::verdict(Some(VerdictState::Fail)),
        why: story::why(&moment.verdict),
        when: format::when(now, trace.timestamp),
        input: brief(&trace.input),
        output: brief(&trace.output),
        failed: moment.failed.iter().map(|name| Words::brief(name, 80)).collect(),
        passed: moment.passed,
        skipped: moment.skipped,
        latency: millis_of(trace.latency_ms),
        cost: usd_of(trace.cost_usd),
    }
}
