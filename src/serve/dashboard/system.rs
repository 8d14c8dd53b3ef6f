//! How the process does: the journal, the forwarder, the store, and what was refused or dropped and why.

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use serde_json::Value;

use super::format::{self, bytes, count};
use super::text::Words;
use super::{Counter, Frame, Shared, Start, Visitor, html};
use crate::tools::Caller;

/// Parts of names of counters that rise when something was not taken, not kept or not sent.
const LOSSES: [&str; 17] = [
    "refused",
    "failed",
    "rejected",
    "dropped",
    "not_accepted",
    "lost",
    "unkept",
    "damaged",
    "failures",
    "set_aside",
    "unreadable",
    "poisoned",
    "panics",
    "ignored",
    "evicted",
    "quarantined",
    "restarts",
];

/// Counters that such names have although nothing was lost.
const NO_LOSSES: [&str; 2] = ["iris_rules_failed", "iris_judge_refused_calls"];

struct Meter {
    name: Words,
    value: String,
    of: String,
    /// In percent.
    width: String,
    is_high: bool,
}

struct Lane {
    name: Words,
    cells: Vec<String>,
}

struct Loss {
    name: &'static str,
    help: &'static str,
    labels: Words,
    value: String,
}

#[derive(Template)]
#[template(path = "system.html")]
struct Page {
    frame: Frame,
    /// What is told of the process is told to whoever operates it.
    is_operator: bool,
    state: &'static str,
    uptime: String,
    meters: Vec<Meter>,
    journal: Vec<Lane>,
    forward: Option<Vec<Lane>>,
    store: Vec<(&'static str, Words)>,
    pipeline: Vec<(&'static str, Words)>,
    losses: Vec<Loss>,
    all: Vec<Loss>,
    start: Start,
    ops: Option<String>,
    retention: String,
}

fn number(value: &Value, path: &str) -> u64 {
    value.pointer(path).and_then(Value::as_u64).unwrap_or_default()
}

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// The page.
pub(super) async fn show(
    State(room): Shared,
    Extension(visitor): Extension<Visitor>,
    Extension(caller): Extension<Caller>,
) -> Response {
    if let Err(error) = room.app.admit("get_traces", &caller) {
        return room.refused(&error, &visitor, &caller);
    }
    let is_operator = caller.tenant.as_str() == "local";
    let frame = room.live("System", "/system", &visitor, &caller);
    let start = room.start();
    let days = room.app.facts.retention_days;
    let retention = if days == 0 { "for ever".to_owned() } else { format!("{days} days") };
    let uptime = room.now().since(room.app.started);
    let is_open = room.app.backend.get().is_some();
    let around = room.around.clone();
    // Sizes of files are looked at on the way.
    let told = tokio::task::spawn_blocking(move || match is_operator {
        true => ((around.state)(), (around.counters)(), around.doors.ops),
        false => (Value::Null, Vec::new(), None),
    });
    let (state, counters, ops) = told.await.unwrap_or_default();
    html(&Page {
        frame,
        is_operator,
        state: if is_open { "open" } else { "opening" },
        uptime: format::millis(uptime.as_secs_f64() * 1000.0),
        meters: meters(&state),
        journal: journal(&state),
        forward: forward(&state),
        store: store(&state),
        pipeline: pipeline(&state),
        losses: counters.iter().filter(|counter| counter.value > 0 && is_loss(counter.name)).map(loss).collect(),
        all: counters.iter().map(loss).collect(),
        start,
        ops,
        retention,
    })
}

fn is_loss(name: &str) -> bool {
    LOSSES.iter().any(|part| name.contains(part)) && !NO_LOSSES.contains(&name)
}

fn loss(counter: &Counter) -> Loss {
    let labels: Vec<String> = counter.labels.iter().map(|(name, value)| format!("{name} {value}")).collect();
    Loss {
        name: counter.name,
        help: counter.help,
        labels: Words::brief(&labels.join(", "), 160),
        value: count(counter.value),
    }
}

fn meter(name: &str, used: u64, most: u64) -> Meter {
    let share = if most == 0 { 0.0 } else { (used as f64 / most as f64 * 100.0).min(100.0) };
    Meter {
        name: Words::of(name),
        value: bytes(used),
        of: if most == 0 { String::new() } else { format!("of {}", bytes(most)) },
        width: format!("{share:.1}"),
        is_high: share >= 85.0,
    }
}

fn meters(state: &Value) -> Vec<Meter> {
    if state.is_null() {
        return Vec::new();
    }
    let (free, most) = (number(state, "/admission/bytes_free"), number(state, "/admission/bytes_max"));
    let mut all = vec![
        meter("Everything in the home folder", number(state, "/home/bytes"), number(state, "/home/bytes_max")),
        meter("Requests under way", most.saturating_sub(free), most),
    ];
    for lane in state.get("journal").and_then(Value::as_array).into_iter().flatten() {
        let name = format!("Journal, {}", text(lane, "/lane"));
        all.push(meter(&name, number(lane, "/bytes"), number(lane, "/bytes_max")));
    }
    all
}

fn lane(lane: &Value, cells: &[&str]) -> Lane {
    Lane {
        name: Words::of(text(lane, "/lane")),
        cells: cells
            .iter()
            .map(|path| match lane.pointer(path) {
                Some(Value::String(word)) => Words::brief(word, 60).to_string(),
                Some(Value::Number(_)) if path.ends_with("bytes") => bytes(number(lane, path)),
                Some(Value::Number(_)) => count(number(lane, path)),
                _ => format::NONE.to_owned(),
            })
            .collect(),
    }
}

fn journal(state: &Value) -> Vec<Lane> {
    let cells = ["/records", "/unstored_bytes", "/refused_full", "/failures", "/damaged", "/dropped_records"];
    state.get("journal").and_then(Value::as_array).into_iter().flatten().map(|one| lane(one, &cells)).collect()
}

fn forward(state: &Value) -> Option<Vec<Lane>> {
    let cells = ["/state", "/sent", "/lag_records", "/failed", "/dropped", "/rejected_items", "/last_error_class"];
    let lanes = state.get("forward").and_then(Value::as_array)?;
    Some(lanes.iter().map(|one| lane(one, &cells)).collect())
}

fn store(state: &Value) -> Vec<(&'static str, Words)> {
    if state.is_null() {
        return Vec::new();
    }
    let one = |path: &str| number(state, path);
    let mut all = vec![
        ("State", text(state, "/store/state").to_owned()),
        ("Database file", bytes(one("/store/file_bytes"))),
        ("Write-ahead log", bytes(one("/store/wal_bytes"))),
        ("Rows stored since the start", count(one("/store/rows"))),
        ("Rows that could not be stored", count(one("/store/set_aside"))),
        ("Rows that cannot be read", count(one("/store/unreadable"))),
        ("Rows deleted because they were too old", count(one("/store/swept"))),
        ("Disk left", bytes(one("/home/disk_free_bytes"))),
    ];
    let failed = text(state, "/store/failed");
    if !failed.is_empty() {
        all.push(("Why commits fail", failed.to_owned()));
    }
    if let Some(damage) = state.pointer("/store/damage").and_then(Value::as_array) {
        all.push(("Damage found at the start", count(damage.len() as u64)));
    }
    all.into_iter().map(|(name, value)| (name, Words::brief(&value, 300))).collect()
}

fn pipeline(state: &Value) -> Vec<(&'static str, Words)> {
    if state.pointer("/pipeline").is_none_or(Value::is_null) {
        return Vec::new();
    }
    let behind = state.pointer("/pipeline/lanes").and_then(Value::as_array).into_iter().flatten();
    let behind: u64 = behind.map(|lane| number(lane, "/lag")).sum();
    let one = |path: &str| count(number(state, path));
    let all = [
        ("Traces that have not ended", one("/pipeline/open")),
        ("Traces judged since the start", one("/pipeline/judged")),
        ("Records not yet understood", count(behind)),
        ("Panics caught", one("/pipeline/panics")),
        ("Records and traces set aside", one("/pipeline/poisoned")),
    ];
    all.into_iter().map(|(name, value)| (name, Words::of(&value))).collect()
}
