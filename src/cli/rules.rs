//! `rules`: the rules in force, and those of one's own: deploy, try, pause, delete.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use axum::http::Method;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value, json};

use super::ask::Whom;
use super::text::{self, Align, Paint, Table};
use super::{Format, Stop};

/// The largest file of a rule, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// List rules, deploy, try, pause or delete one of your own.
#[derive(Debug, Args)]
pub(super) struct Rules {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the built-in rules and your own
    List(List),
    /// Deploy a rule from a file
    Deploy(Deploy),
    /// Try a rule on stored traces without deploying it
    Preview(Preview),
    /// Pause a deployed rule, by its id or name
    Pause(Named),
    /// Let a paused rule fire again
    Resume(Named),
    /// Delete a deployed rule
    Delete(Named),
}

#[derive(Debug, Args)]
struct List {
    /// Which
    #[arg(long, value_enum, default_value_t = Kind::All)]
    only: Kind,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    #[command(flatten)]
    whom: Whom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    All,
    BuiltIn,
    Custom,
}

#[derive(Debug, Args)]
struct Deploy {
    /// JSON with name, eval_type, severity and definition, as deploy_rule takes it; `-` for standard input
    file: String,
    /// Retire the deployed rule of that name, if there is one
    #[arg(long)]
    replace: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    #[command(flatten)]
    whom: Whom,
}

#[derive(Debug, Args)]
struct Preview {
    /// JSON with the rule, as deploy_rule takes it; `-` for standard input
    file: String,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    #[command(flatten)]
    whom: Whom,
}

#[derive(Debug, Args)]
struct Named {
    /// Its id (`rule-…`) or its name
    rule: String,
    #[command(flatten)]
    whom: Whom,
}

impl Rules {
    pub(super) fn run(&self) -> Result<ExitCode, Stop> {
        match &self.what {
            What::List(list) => list.run(),
            What::Deploy(deploy) => deploy.run(),
            What::Preview(preview) => preview.run(),
            What::Pause(named) => named.change(Change::Pause),
            What::Resume(named) => named.change(Change::Resume),
            What::Delete(named) => named.change(Change::Delete),
        }
    }
}

impl List {
    fn run(&self) -> Result<ExitCode, Stop> {
        let asked = self.whom.find()?;
        let rules = asked.get("/rules", &[]);
        asked.close();
        let mut rules = rules?;
        if let (Value::Object(fields), Kind::BuiltIn | Kind::Custom) = (&mut rules, self.only) {
            fields.remove(if self.only == Kind::Custom { "built_in" } else { "rules" });
        }
        let mut out = io::stdout().lock();
        text::printed(match self.format {
            Format::Json => text::json(&mut out, &rules),
            Format::Table => listed(&mut out, &rules, Paint::of_stdout()),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

fn listed(out: &mut impl Write, rules: &Value, paint: Paint) -> io::Result<()> {
    if let Some(built_in) = rules["built_in"].as_array() {
        let columns = [
            ("RULE", Align::Left),
            ("BUNDLE", Align::Left),
            ("VETOES", Align::Left),
            ("NEEDS", Align::Left),
            ("PRECISION", Align::Right),
            ("RECALL", Align::Right),
        ];
        let mut table = Table::new(&columns);
        for rule in built_in {
            let share =
                |name: &str| rule["proof"][name].as_f64().map_or_else(|| "-".to_owned(), |share| format!("{share:.3}"));
            table.row(vec![
                text::cell(&rule["name"], 40),
                text::cell(&rule["category"], 16),
                if rule["critical"] == true { "yes" } else { "no" }.to_owned(),
                text::names(&rule["needs"]),
                share("precision"),
                share("recall"),
            ]);
        }
        table.print(out, paint)?;
    }
    let Some(custom) = rules["rules"].as_array() else { return Ok(()) };
    if rules["built_in"].is_array() {
        writeln!(out)?;
    }
    if custom.is_empty() {
        return writeln!(out, "no custom rules; `iris-sidecar rules deploy FILE` adds one");
    }
    let columns = [
        ("CUSTOM RULE", Align::Left),
        ("ID", Align::Left),
        ("TYPE", Align::Left),
        ("BUNDLE", Align::Left),
        ("SEVERITY", Align::Left),
        ("STATE", Align::Left),
    ];
    let mut table = Table::new(&columns);
    for rule in custom {
        table.row(vec![
            text::cell(&rule["name"], 40),
            text::cell(&rule["id"], 20),
            text::cell(&rule["definition"]["type"], 20),
            text::cell(&rule["evalType"], 16),
            text::cell(&rule["severity"], 10),
            if rule["enabled"] == false { "paused" } else { "fires" }.to_owned(),
        ]);
    }
    table.print(out, paint)
}

/// A rule as a file holds it.
fn read(file: &str) -> Result<Value, Stop> {
    let unread = |error: io::Error| Stop::usage(format!("{file}: {error}"));
    let mut text = String::new();
    let read = match file {
        "-" => io::stdin().lock().take(FILE_BYTES_MAX + 1).read_to_string(&mut text),
        path => {
            fs::File::open(Path::new(path)).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text))
        }
    };
    read.map_err(unread)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(Stop::usage(format!("{file}: longer than {FILE_BYTES_MAX} bytes")));
    }
    serde_json::from_str(&text)
        .map_err(|error| Stop::usage(format!("{file}: not JSON: line {} column {}", error.line(), error.column())))
}

impl Deploy {
    fn run(&self) -> Result<ExitCode, Stop> {
        let mut rule = read(&self.file)?;
        if let (Value::Object(fields), true) = (&mut rule, self.replace) {
            fields.insert("replace".to_owned(), Value::Bool(true));
        }
        let asked = self.whom.find()?;
        let deployed = asked.send(&Method::POST, "/tools/deploy_rule", Some(&rule));
        asked.close();
        let deployed = deployed?;
        let mut out = io::stdout().lock();
        text::printed(match self.format {
            Format::Json => text::json(&mut out, &deployed),
            Format::Table => {
                let (name, id) = (text::cell(&deployed["rule"]["name"], 80), text::cell(&deployed["rule"]["id"], 40));
                writeln!(out, "{name} is deployed as {id} and fires on what is judged from now on")
            }
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Preview {
    fn run(&self) -> Result<ExitCode, Stop> {
        let rule = read(&self.file)?;
        // The name and the rest of a rule make no difference to what it would say.
        let named = ["definition", "eval_type", "evalType"].into_iter();
        let tried: Map<String, Value> =
            named.filter_map(|name| Some((name.to_owned(), rule.get(name)?.clone()))).collect();
        let rule = Value::Object(tried);
        let asked = self.whom.find()?;
        let told = asked.send(&Method::POST, "/rules/custom/preview", Some(&rule));
        asked.close();
        let told = told?;
        let mut out = io::stdout().lock();
        text::printed(match self.format {
            Format::Json => text::json(&mut out, &told),
            Format::Table => previewed(&mut out, &told, Paint::of_stdout()),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

fn previewed(out: &mut impl Write, told: &Value, paint: Paint) -> io::Result<()> {
    let count = |name: &str| told[name].as_u64().unwrap_or_default();
    writeln!(
        out,
        "of {} traces since {} it would pass {}, fail {} and skip {}",
        count("tracesEvaluated"),
        text::cell(&told["windowSinceIso"], 24),
        count("wouldPass"),
        count("wouldFail"),
        count("wouldSkip"),
    )?;
    let examples = told["examples"].as_array().map(Vec::as_slice).unwrap_or_default();
    if examples.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&[("TRACE", Align::Left), ("AGENT", Align::Left), ("OUTPUT", Align::Left)]);
    for example in examples {
        table.row(vec![
            text::cell(&example["traceId"], 32),
            text::cell(&example["agentName"], 24),
            text::cell(&example["outputPreview"], 80),
        ]);
    }
    table.print(out, paint)
}

/// What is done to a deployed rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Pause,
    Resume,
    Delete,
}

impl Named {
    fn change(&self, change: Change) -> Result<ExitCode, Stop> {
        let asked = self.whom.find()?;
        let done = asked.get("/rules/custom", &[]).and_then(|rules| {
            let id = self.id(&rules)?;
            let mut call = json!({ "rule_id": id });
            if change != Change::Delete {
                call["enabled"] = Value::Bool(change == Change::Resume);
            }
            asked.send(&Method::POST, "/tools/delete_rule", Some(&call)).map(|_| id)
        });
        asked.close();
        let id = text::inert(&done?);
        let told = match change {
            Change::Pause => "is paused",
            Change::Resume => "fires again",
            Change::Delete => "is deleted",
        };
        text::printed(writeln!(io::stdout(), "{id} {told}"))?;
        Ok(ExitCode::SUCCESS)
    }

    /// The id of the rule that was named by it or by its name.
    fn id(&self, rules: &Value) -> Result<String, Stop> {
        let all = rules["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
        let found = all.iter().find(|rule| rule["id"] == self.rule.as_str() || rule["name"] == self.rule.as_str());
        found.and_then(|rule| rule["id"].as_str()).map(str::to_owned).ok_or_else(|| {
            Stop::usage(format!(
                "no deployed rule has the id or the name {}; `rules list` shows them",
                text::inert(&self.rule)
            ))
        })
    }
}
