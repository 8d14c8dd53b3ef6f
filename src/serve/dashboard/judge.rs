//! What asking models to judge cost.

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use iris_core::model::Evaluation;
use serde_json::Value;

use super::format::{self, count, usd, usd_of};
use super::markup::Markup;
use super::text::Words;
use super::{Frame, Shared, Visitor, html};
use crate::tools::Caller;

/// Lines of one page.
const LINES_MAX: usize = 50;

struct Line {
    when: Markup,
    tool: &'static str,
    model: Words,
    verdict: Markup,
    score: String,
    cost: String,
    rationale: Option<Words>,
    link: Option<String>,
}

#[derive(Template)]
#[template(path = "judge.html")]
struct Page {
    frame: Frame,
    providers: Vec<&'static str>,
    is_scripted: bool,
    is_unknown: bool,
    today: String,
    limits: Vec<(&'static str, String)>,
    /// How much of the day's limit is used, in percent.
    used: Option<String>,
    outcomes: Vec<(String, String)>,
    refused: String,
    /// Figures of the process are shown to whoever operates it.
    is_operator: bool,
    lines: Vec<Line>,
    sum: String,
}

/// The page.
pub(super) async fn show(
    State(room): Shared,
    Extension(visitor): Extension<Visitor>,
    Extension(caller): Extension<Caller>,
) -> Response {
    let spend = match room.app.spend(&caller).await {
        Ok(spend) => spend,
        Err(error) => return room.refused(&error, &visitor, &caller),
    };
    let now = room.now();
    let limit = |name, dollars: Option<f64>| (name, dollars.map_or_else(|| "none".to_owned(), usd));
    let cost = |one: &Evaluation| one.answered.as_ref()?.get("cost_usd").and_then(Value::as_f64);
    let is_omitted = room.app.facts.stored_text == crate::tools::StoredText::Omitted;
    let line = |one: &Evaluation| {
        let answered = |name: &str| one.answered.as_ref().and_then(|answered| answered.get(name));
        let text = |name: &str| answered(name).and_then(Value::as_str);
        Line {
            when: format::when(now, one.created_at),
            tool: if answered("citations").is_some() { "verify_citations" } else { "evaluate_with_llm_judge" },
            model: Words::brief(text("model").unwrap_or_default(), 80),
            verdict: format::verdict(if one.judged_nothing() { None } else { Some(one.state) }),
            score: if one.judged_nothing() { format::NONE.to_owned() } else { format!("{:.2}", one.score) },
            cost: usd_of(cost(one)),
            rationale: text("rationale").filter(|_| !is_omitted).map(|text| Words::brief(text, 300)),
            link: one.trace_id.map(|id| format!("/traces/{id}?evaluation={}", one.id)),
        }
    };
    let day = spend.ceiling_usd_day_tenant.or(spend.ceiling_usd_day).filter(|day| *day > 0.0);
    html(&Page {
        frame: room.live("Judge", "/judge", &visitor, &caller),
        is_scripted: spend.is_scripted,
        is_unknown: spend.is_unknown,
        today: usd(spend.today_usd),
        limits: vec![
            limit("A call (judge.ceiling_usd_call)", spend.ceiling_usd_call),
            limit("A day, each tenant (judge.ceiling_usd_day_tenant)", spend.ceiling_usd_day_tenant),
            limit("A day, all together (judge.ceiling_usd_day)", spend.ceiling_usd_day),
        ],
        used: day.map(|day| format!("{:.1}", (spend.today_usd / day * 100.0).clamp(0.0, 100.0))),
        outcomes: spend.outcomes.iter().map(|(name, times)| (name.replace('_', " "), count(*times))).collect(),
        refused: count(spend.refused),
        is_operator: caller.tenant.as_str() == "local",
        lines: spend.latest.iter().take(LINES_MAX).map(line).collect(),
        sum: usd(spend.latest.iter().filter_map(cost).sum()),
        providers: spend.providers,
    })
}
