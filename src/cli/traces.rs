//! `traces`: find traces, and show one as a tree with its verdict and the evidence.

mod tree;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::ask::{Asked, Whom};
use super::text::{self, Align, Paint, Table};
use super::{Format, Stop};

/// Fewest digits that stand for a trace.
const DIGITS_MIN: usize = 6;

/// Traces among which they are looked for.
const NEWEST: usize = 1000;

/// Find traces, or show one.
#[derive(Debug, Args)]
pub(super) struct Traces {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List traces, newest first; those in progress stand before the others
    List(List),
    /// Show one trace: its spans as a tree, its verdict, and what the failed rules saw
    Show(Show),
}

/// Which traces. Every filter narrows.
#[derive(Debug, Clone, Args)]
pub(super) struct Filter {
    /// Only of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only those that began at or after this time: ISO 8601, a date, or how long ago, such as 90m, 24h or 7d
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only those that began at or before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only those whose latest evaluation says so
    #[arg(long, value_enum)]
    verdict: Option<Verdict>,
    /// Only those whose latest evaluation failed this rule, as `rules list` names it
    #[arg(long, value_name = "NAME")]
    rule: Option<String>,
    /// Only of this conversation
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only those in which each of these words stands
    #[arg(long, value_name = "WORDS")]
    search: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Verdict {
    Pass,
    Fail,
    Unknown,
}

impl Filter {
    /// Whether it leaves out nothing.
    fn is_none(&self) -> bool {
        let texts = [&self.agent, &self.since, &self.until, &self.rule, &self.session, &self.search];
        self.verdict.is_none() && texts.iter().all(|text| text.is_none())
    }

    /// As the API takes it.
    ///
    /// # Errors
    /// When a time cannot be read.
    pub(super) fn query(&self) -> Result<Vec<(&'static str, String)>, Stop> {
        let now = crate::telemetry::now();
        let time = |text: &Option<String>| text.as_deref().map(|text| text::since(text, now)).transpose();
        let verdict = self.verdict.map(|verdict| {
            match verdict {
                Verdict::Pass => "pass",
                Verdict::Fail => "fail",
                Verdict::Unknown => "unknown",
            }
            .to_owned()
        });
        let given = [
            ("agent_name", self.agent.clone()),
            ("since", time(&self.since)?),
            ("until", time(&self.until)?),
            ("verdict", verdict),
            ("rule", self.rule.clone()),
            ("session_id", self.session.clone()),
            ("q", self.search.clone()),
        ];
        Ok(given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
    }
}

/// List traces.
#[derive(Debug, Args)]
struct List {
    #[command(flatten)]
    filter: Filter,
    /// How many, 1 to 1000
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// How many to pass over
    #[arg(long, default_value_t = 0)]
    offset: u64,
    /// What comes first: the newest, the slowest or the dearest
    #[arg(long, value_enum, default_value_t = Sort::Time)]
    sort: Sort,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    #[command(flatten)]
    whom: Whom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    Time,
    Latency,
    Cost,
}

/// Show one trace.
#[derive(Debug, Args)]
struct Show {
    /// The trace, 32 hexadecimal digits, or so many of the first that no other of the newest 1,000 traces begins with them
    trace_id: String,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    #[command(flatten)]
    whom: Whom,
}

impl Traces {
    pub(super) fn run(&self) -> Result<ExitCode, Stop> {
        match &self.what {
            What::List(list) => list.run(),
            What::Show(show) => show.run(),
        }
    }
}

impl List {
    fn run(&self) -> Result<ExitCode, Stop> {
        let mut query = self.filter.query()?;
        let sort = match self.sort {
            Sort::Time => "timestamp",
            Sort::Latency => "latency_ms",
            Sort::Cost => "cost_usd",
        };
        query.extend([
            ("limit", self.limit.to_string()),
            ("offset", self.offset.to_string()),
            ("sort_by", sort.to_owned()),
        ]);
        if self.format == Format::Table {
            query.push(("detail", "brief".to_owned()));
        }
        let asked = self.whom.find()?;
        let page = asked.get("/traces", &query).and_then(|page| {
            let is_empty = page["traces"].as_array().is_none_or(Vec::is_empty);
            match self.filter.rule.as_deref().filter(|_| is_empty) {
                Some(rule) => asked.knows_rule(rule).map(|()| page),
                None => Ok(page),
            }
        });
        let first_step = asked.first_step().to_owned();
        asked.close();
        let page = page?;
        let mut out = io::stdout().lock();
        text::printed(match self.format {
            Format::Json => text::json(&mut out, &page),
            Format::Table if self.filter.is_none() && page["total"] == 0 && page["traces"] == json!([]) => {
                writeln!(out, "no trace is here yet: {first_step}")
            }
            Format::Table => listed(&mut out, &page, Paint::of_stdout()),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

fn listed(out: &mut impl Write, page: &Value, paint: Paint) -> io::Result<()> {
    let rows = page["traces"].as_array().map(Vec::as_slice).unwrap_or_default();
    let unsearched = unsearched(page);
    if rows.is_empty() {
        let among = if unsearched.is_some() { " among those that were looked at" } else { "" };
        writeln!(out, "no trace matches{among}")?;
        return unsearched.map_or(Ok(()), |told| writeln!(out, "{}", paint.faint(&told)));
    }
    let mut table = Table::new(&[
        ("BEGAN (UTC)", Align::Left),
        ("VERDICT", Align::Left),
        ("AGENT", Align::Left),
        ("TRACE", Align::Left),
        ("TOOK", Align::Right),
        ("TOKENS", Align::Right),
        ("COST", Align::Right),
        ("BY", Align::Left),
    ]);
    for row in rows {
        let state = match (row["in_progress"].as_bool(), row["verdict"]["state"].as_str()) {
            (Some(true), _) => "in progress",
            (_, Some(state)) => state,
            (_, None) => "-",
        };
        let tokens = row["token_usage"]["total_tokens"].as_u64();
        table.row(vec![
            text::began(&row["timestamp"]),
            text::inert(state),
            text::cell(&row["agent_name"], 24),
            text::cell(&row["trace_id"], 32),
            text::took(row["latency_ms"].as_f64()),
            tokens.map_or_else(|| "-".to_owned(), |tokens| tokens.to_string()),
            text::dollars(row["cost_usd"].as_f64()),
            text::short(&text::names(&row["verdict"]["by"]), 60),
        ]);
    }
    table.print(out, paint)?;
    let (total, offset) = (page["total"].as_u64().unwrap_or_default(), page["offset"].as_u64().unwrap_or_default());
    let shown = rows.len() as u64;
    if total > offset + shown {
        let next = offset + shown;
        writeln!(out, "{}", paint.faint(&format!("{shown} of {total}; --offset {next} shows more")))?;
    }
    if let Some(told) = unsearched {
        writeln!(out, "{}", paint.faint(&told))?;
    }
    Ok(())
}

/// What a search did not look at.
pub(super) fn unsearched(page: &Value) -> Option<String> {
    let (traces, until) = (page["unsearched"]["traces"].as_u64()?, text::cell(&page["unsearched"]["until"], 32));
    Some(format!(
        "not all was searched: {traces} traces or more that began until {until} were not looked at in time; --until {until} goes on there"
    ))
}

/// The trace among the newest that begins with these digits.
fn begun_with(asked: &Asked, digits: &str) -> Result<String, Stop> {
    let page = asked.get("/traces", &[("limit", NEWEST.to_string()), ("detail", "brief".to_owned())])?;
    let ids = page["traces"].as_array().into_iter().flatten().filter_map(|row| row["trace_id"].as_str());
    let mut found = ids.filter(|id| id.starts_with(digits));
    match (found.next(), found.next()) {
        (Some(id), None) => Ok(id.to_owned()),
        (None, _) => {
            Err(Stop::usage(format!("none of the newest {NEWEST} traces begins with {digits}: write the whole id")))
        }
        (Some(one), Some(other)) => Err(Stop::usage(format!("{one} and {other} both begin with {digits}"))),
    }
}

impl Show {
    fn run(&self) -> Result<ExitCode, Stop> {
        let (digits, id) = (self.trace_id.len(), self.trace_id.to_ascii_lowercase());
        if !(DIGITS_MIN..=32).contains(&digits) || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Stop::usage(format!(
                "a trace id has 32 hexadecimal digits; its first {DIGITS_MIN} or more are valid too"
            )));
        }
        let asked = self.whom.find()?;
        let id = if digits == 32 { Ok(id) } else { begun_with(&asked, &id) };
        let detail = id.and_then(|id| asked.get(&format!("/traces/{id}"), &[]));
        asked.close();
        let detail = detail?;
        let mut out = io::stdout().lock();
        text::printed(match self.format {
            Format::Json => text::json(&mut out, &detail),
            Format::Table => tree::print(&mut out, &detail, Paint::of_stdout()),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_search_did_not_look_at_is_told_with_what_goes_on_there() {
        let page =
            json!({ "total": 0, "traces": [], "unsearched": { "traces": 38, "until": "2026-12-01T09:30:00.000Z" } });
        let mut out = Vec::new();
        listed(&mut out, &page, Paint::plain()).unwrap();
        let told = String::from_utf8(out).unwrap();
        assert!(told.contains("38 traces or more") && told.contains("--until 2026-12-01T09:30:00.000Z"), "{told}");
        assert_eq!(unsearched(&json!({ "total": 0, "traces": [] })), None);
    }
}
