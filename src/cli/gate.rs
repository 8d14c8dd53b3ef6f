//! `gate`: whether the traces of a window may pass, for continuous integration: an exit code, a table, JUnit XML.

mod junit;

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::ask::{Asked, Whom};
use super::text::{self, Align, Paint, Table};
use super::{Format, Stop};

/// Traces that are asked for at a time.
const PAGE: usize = 200;

/// The most traces that one run looks at.
const TRACES_MAX: usize = 100_000;

/// Fail when agents failed: looks at the latest verdict of every trace that ended in the window.
#[derive(Debug, Args)]
pub(super) struct Gate {
    /// Traces that began at or after this time: ISO 8601, a date, or how long ago, such as 90m, 24h or 7d
    #[arg(long, value_name = "TIME", default_value = "1h")]
    since: String,
    /// Traces that began at or before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only of this conversation
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// What makes it fail: a verdict of fail, or one of unknown too
    #[arg(long, value_enum, default_value_t = FailOn::Fail)]
    fail_on: FailOn,
    /// Count only what these rules say, as `rules list` names them; may be repeated [default: every rule]
    #[arg(long, value_name = "NAME")]
    rule: Vec<String>,
    /// Fail when fewer traces than this ended in the window: nothing that ran is nothing that passed
    #[arg(long, value_name = "N", default_value_t = 1)]
    min_traces: usize,
    /// Write the result of every trace to this file as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    #[command(flatten)]
    whom: Whom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// Something is wrong
    Fail,
    /// It cannot be said, or something is wrong
    Unknown,
}

/// One trace as the gate sees it.
#[derive(Debug, Clone, PartialEq)]
struct Looked {
    trace_id: String,
    agent: String,
    timestamp: String,
    latency_ms: Option<f64>,
    /// pass, fail or unknown.
    state: String,
    /// What decided.
    basis: String,
    /// The rules, needs or classes that speak against it, those of other layers too.
    by: Vec<String>,
    /// What its failed rules said.
    messages: Vec<String>,
    trips: bool,
}

/// Everything that was looked at.
#[derive(Debug, Default)]
struct Window {
    looked: Vec<Looked>,
    /// Traces that have not ended: their verdicts may change.
    open: usize,
    /// There are more traces than one run looks at.
    is_cut: bool,
}

impl Gate {
    pub(super) fn run(&self) -> Result<ExitCode, Stop> {
        let now = crate::telemetry::now();
        let since = text::since(&self.since, now)?;
        let until = self.until.as_deref().map(|text| text::since(text, now)).transpose()?;
        let asked = self.whom.find()?;
        // A name that no rule has would let everything pass.
        let known = self.rule.iter().try_for_each(|rule| asked.knows_rule(rule));
        let window = known.and_then(|()| self.window(&asked, &since, until.as_deref()));
        asked.close();
        let window = window?;
        let shut = self.shut(&window);
        if let Some(path) = &self.junit {
            let report = junit::report(&window.looked, &since, shut.as_deref())?;
            std::fs::write(path, report).map_err(|error| Stop::usage(format!("{}: {error}", path.display())))?;
        }
        let tripped = window.looked.iter().filter(|one| one.trips).count();
        let may_pass = tripped == 0 && shut.is_none();
        let mut out = io::stdout().lock();
        text::printed(match self.format {
            Format::Json => text::json(&mut out, &self.told(&window, &since, may_pass)),
            Format::Table => self.printed(&mut out, &window, &since, Paint::of_stdout()),
        })?;
        Ok(if may_pass { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Why the gate is shut whatever the traces say.
    fn shut(&self, window: &Window) -> Option<String> {
        let (looked, least) = (window.looked.len(), self.min_traces);
        if looked < least {
            return Some(format!("{looked} traces ended in the window, fewer than --min-traces {least}"));
        }
        window.is_cut.then(|| format!("there are more than the {TRACES_MAX} traces that one run looks at"))
    }

    fn window(&self, asked: &Asked, since: &str, until: Option<&str>) -> Result<Window, Stop> {
        let (mut window, mut seen) = (Window::default(), HashSet::new());
        let progress = super::progress("traces");
        // Newest last, so that traces that come meanwhile do not move the pages.
        let fixed = [("since", Some(since)), ("until", until), ("agent_name", self.agent.as_deref())];
        let fixed = fixed.into_iter().chain([("session_id", self.session.as_deref())]);
        let fixed: Vec<(&str, String)> = fixed.filter_map(|(name, value)| Some((name, value?.to_owned()))).collect();
        let mut offset = 0_u64;
        loop {
            let mut query = fixed.clone();
            query.extend([
                ("limit", PAGE.to_string()),
                ("offset", offset.to_string()),
                ("sort_order", "asc".to_owned()),
                ("detail", "brief".to_owned()),
            ]);
            let page = asked.get("/traces", &query)?;
            for row in page["traces"].as_array().map(Vec::as_slice).unwrap_or_default() {
                if row["in_progress"] == true {
                    window.open += 1;
                } else if seen.insert(row["trace_id"].as_str().unwrap_or_default().to_owned()) {
                    window.looked.push(self.look(asked, row)?);
                }
            }
            progress.set_position(window.looked.len() as u64);
            match page["next_offset"].as_u64() {
                Some(next) if window.looked.len() < TRACES_MAX => offset = next,
                next => {
                    window.is_cut = next.is_some();
                    return Ok(window);
                }
            }
        }
    }

    fn look(&self, asked: &Asked, row: &Value) -> Result<Looked, Stop> {
        let string = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (mut state, mut basis) = (string(&row["verdict"]["state"]), string(&row["verdict"]["basis"]));
        if state.is_empty() {
            (state, basis) = ("unknown".to_owned(), "not_judged".to_owned());
        }
        let (mut by, mut messages) = (strings(&row["verdict"]["by"]), Vec::new());
        // A verdict that something else decided may hold a failure too, in `also`.
        if let (true, Some(id)) = (state != "pass", row["evaluation_id"].as_str()) {
            let evaluation = asked.get(&format!("/evaluations/{id}"), &[])?;
            for layer in evaluation["verdict"]["also"].as_array().map(Vec::as_slice).unwrap_or_default() {
                if layer["state"] == "fail" && state != "fail" {
                    state = "fail".to_owned();
                    basis = string(&layer["basis"]);
                }
                by.extend(strings(&layer["by"]));
            }
            let results = evaluation["rule_results"].as_array().map(Vec::as_slice).unwrap_or_default();
            let failed = results.iter().filter(|result| result["state"] == "fail" && self.counts(&result["ruleName"]));
            messages.extend(
                failed.map(|result| format!("{}: {}", string(&result["ruleName"]), string(&result["message"]))),
            );
            if !self.rule.is_empty() && messages.is_empty() {
                (state, basis, by) = ("pass".to_owned(), "other_rules".to_owned(), Vec::new());
            }
        }
        let trips = state == "fail" || state == "unknown" && self.fail_on == FailOn::Unknown;
        Ok(Looked {
            trace_id: string(&row["trace_id"]),
            agent: string(&row["agent_name"]),
            timestamp: string(&row["timestamp"]),
            latency_ms: row["latency_ms"].as_f64(),
            state,
            basis,
            by,
            messages,
            trips,
        })
    }

    fn counts(&self, rule: &Value) -> bool {
        self.rule.is_empty() || self.rule.iter().any(|name| rule == name.as_str())
    }

    fn told(&self, window: &Window, since: &str, may_pass: bool) -> Value {
        let one = |one: &Looked| {
            json!({
                "trace_id": one.trace_id, "agent_name": one.agent, "timestamp": one.timestamp, "state": one.state,
                "basis": one.basis, "by": one.by, "messages": one.messages, "trips": one.trips,
            })
        };
        json!({
            "passed": may_pass, "since": since, "traces": window.looked.len(), "in_progress": window.open,
            "min_traces": self.min_traces, "more": window.is_cut,
            "tripped": window.looked.iter().filter(|one| one.trips).map(one).collect::<Vec<_>>(),
        })
    }

    fn printed(&self, out: &mut impl Write, window: &Window, since: &str, paint: Paint) -> io::Result<()> {
        let tripped: Vec<&Looked> = window.looked.iter().filter(|one| one.trips).collect();
        if !tripped.is_empty() {
            let columns = [("BEGAN (UTC)", Align::Left), ("VERDICT", Align::Left), ("AGENT", Align::Left)];
            let mut table = Table::new(&[&columns[..], &[("TRACE", Align::Left), ("BY", Align::Left)]].concat());
            for one in &tripped {
                table.row(vec![
                    text::began(&Value::from(one.timestamp.as_str())),
                    one.state.clone(),
                    text::short(&text::inert(&one.agent), 24),
                    text::inert(&one.trace_id),
                    text::short(&text::inert(&one.by.join(", ")), 80),
                ]);
            }
            table.print(out, paint)?;
            writeln!(out)?;
        }
        let (looked, open) = (window.looked.len(), window.open);
        let still = if open > 0 { format!(", {open} still in progress and not counted") } else { String::new() };
        writeln!(out, "{} of {looked} traces since {since} stop the gate{still}", tripped.len())?;
        if looked == 0 {
            let whose = self.agent.as_deref().map(|agent| format!(" of the agent {}", text::inert(agent)));
            let whose = whose.unwrap_or_default();
            writeln!(out, "no trace{whose} began then and has ended; `iris-sidecar traces list` shows what there is")?;
        }
        if looked < self.min_traces {
            writeln!(out, "that is fewer than --min-traces {}: the gate is closed", self.min_traces)?;
        }
        if window.is_cut {
            writeln!(out, "there are more than the {TRACES_MAX} that one run looks at: narrow --since or --agent")?;
        }
        Ok(())
    }
}

fn strings(list: &Value) -> Vec<String> {
    let all = list.as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
