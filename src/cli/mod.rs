//! The command line: reads flags and files, calls the rooms, prints. Exit codes: 0 done, 1 failed or a verdict asked
//! for it, 2 the command line or a file it names is wrong, 64 the configuration is wrong.

mod ask;
mod check_config;
mod demo;
mod eval;
mod export;
mod gate;
mod generated;
mod mcp;
mod proof;
mod purge;
mod rules;
mod serve;
mod store_apart;
mod text;
mod traces;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use crate::config::{Config, Loaded, Problems, Sources, read_file};

/// Threads for work that blocks: large walks, judging for a call, reading the store.
const BLOCKING_THREADS: usize = 8;

/// The exit code for a wrong command line or input file.
const USAGE: u8 = 2;

/// The exit code for a wrong configuration.
const CONFIGURATION: u8 = 64;

/// Judges the traces of AI agents beside them: OTLP in, verdicts out.
#[derive(Debug, Parser)]
#[command(name = "iris-sidecar", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the sidecar: take OTLP, forward it, judge it, answer questions
    Serve(serve::Serve),
    /// Serve the tools over MCP on standard input and output
    Mcp(mcp::Mcp),
    /// Play captured agent traffic through a sidecar in a temporary folder and show the verdicts
    Demo(demo::Demo),
    /// Find traces, or show one with its verdict and the evidence
    Traces(traces::Traces),
    /// List rules, deploy, try, pause or delete one of your own
    Rules(rules::Rules),
    /// Fail when agents failed, for continuous integration
    Gate(gate::Gate),
    /// Write traces to a file, as JSON Lines or Parquet
    Export(export::Export),
    /// Judge outputs from JSON Lines, without a sidecar
    Eval(eval::Eval),
    /// Measure how often the rules are right, on the cases in this program and on labelled sets of your own
    Proof(proof::Proof),
    /// Delete traces and every byte of them, while no sidecar runs
    Purge(purge::Purge),
    /// Check every row of the database, while no sidecar runs
    StoreCheck(store_apart::StoreCheck),
    /// Not for people: the sidecar calls it
    #[command(name = crate::store::APART, hide = true)]
    StoreApart(store_apart::StoreApart),
    /// Check the configuration and print what is in effect
    CheckConfig(check_config::CheckConfig),
    /// Print what makes a shell complete this command line
    Completions(generated::Completions),
    /// Write the manual pages
    Man(generated::Man),
}

/// How a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Table,
    /// JSON, for programs
    Json,
}

/// Where settings come from.
#[derive(Debug, Args)]
struct Settings {
    /// Configuration file, YAML or JSON, or `env:NAME` for the variable that holds its text
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
    /// Folder that holds everything [default: ~/.iris]
    #[arg(long, value_name = "FOLDER")]
    home: Option<PathBuf>,
    /// Set one key, such as `assembly.quiet_ms=1500`; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// A command that cannot go on, and the exit code that says why.
#[derive(Debug)]
struct Stop {
    code: u8,
    message: String,
}

impl Stop {
    fn usage(message: impl Into<String>) -> Self {
        Self { code: USAGE, message: message.into() }
    }

    fn failed(error: impl std::fmt::Display) -> Self {
        Self { code: 1, message: format!("{error:#}") }
    }
}

impl From<Problems> for Stop {
    fn from(problems: Problems) -> Self {
        Self { code: CONFIGURATION, message: problems.to_string() }
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::failed(error)
    }
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    // One TLS provider for every client; a second call in one process changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let done = match Cli::parse_from(arguments()).command {
        Command::Serve(serve) => serve.run(),
        Command::Mcp(mcp) => mcp.run(),
        Command::Demo(demo) => demo.run(),
        Command::Traces(traces) => traces.run(),
        Command::Rules(rules) => rules.run(),
        Command::Gate(gate) => gate.run(),
        Command::Export(export) => export.run(),
        Command::Eval(eval) => eval.run(),
        Command::Proof(proof) => proof.run(),
        Command::Purge(purge) => purge.run(),
        Command::StoreCheck(check) => check.run(),
        Command::StoreApart(apart) => apart.run(),
        Command::CheckConfig(check) => check.run(),
        Command::Completions(completions) => completions.run(),
        Command::Man(man) => man.run(),
    };
    match done {
        Ok(code) => code,
        Err(stop) => {
            let _ = writeln!(io::stderr(), "iris-sidecar: {}", stop.message);
            ExitCode::from(stop.code)
        }
    }
}

/// As they were given; `--purge`, by which the command was known, is the command, and flags without a command, as a
/// collector gets them, are those of `serve`.
fn arguments() -> Vec<std::ffi::OsString> {
    let mut all: Vec<std::ffi::OsString> = std::env::args_os().collect();
    let first = all.get(1).map(|one| one.to_string_lossy().into_owned());
    match first.as_deref() {
        Some("--purge") => all[1] = "purge".into(),
        Some(flag) if ["--config", "--home", "--set"].contains(&flag.split('=').next().unwrap_or(flag)) => {
            all.insert(1, "serve".into());
        }
        _ => {}
    }
    all
}

impl Settings {
    /// Reads and checks the configuration; oddities go to standard error.
    fn load(&self) -> Result<Config, Stop> {
        let Loaded { config, warnings } = Config::load(&self.sources()?)?;
        for warning in warnings {
            let _ = writeln!(io::stderr(), "iris-sidecar: {warning}");
        }
        Ok(config)
    }

    fn sources(&self) -> Result<Sources, Stop> {
        let env: Vec<(String, String)> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let mut flags = Vec::new();
        for pair in &self.set {
            let (key, value) = pair.split_once('=').ok_or_else(|| Stop::usage("--set: write KEY=VALUE"))?;
            flags.push((key.to_owned(), value.to_owned()));
        }
        if let Some(home) = &self.home {
            flags.push(("home".to_owned(), home.display().to_string()));
        }
        let mut sources = Sources { file: None, env, flags };
        sources.file = self.file(&sources)?;
        Ok(sources)
    }

    /// The file that was named, else `config.yaml` or `config.json` in the home folder.
    fn file(&self, sources: &Sources) -> Result<Option<(String, String)>, Stop> {
        if let Some(named) = &self.config {
            if let Some(name) = named.strip_prefix("env:") {
                let text = sources.env.iter().find(|(one, _)| one == name).map(|(_, text)| text.clone());
                let text = text.ok_or_else(|| Stop::usage(format!("--config {named}: the variable is not set")))?;
                return Ok(Some((named.clone(), text)));
            }
            let text = read_file(named).map_err(|error| Stop::usage(format!("--config {named}: {error}")))?;
            return Ok(Some((named.clone(), text)));
        }
        let home = sources.home();
        for name in ["config.yaml", "config.json"] {
            let path = home.join(name);
            match read_file(&path) {
                Ok(text) => return Ok(Some((path.display().to_string(), text))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // The file is not what cannot be reached.
                Err(error) if std::fs::symlink_metadata(&path).is_err() => {
                    return Err(Stop::usage(format!(
                        "{} cannot be used as the home folder: {error}; choose another with --home or IRIS_HOME",
                        home.display()
                    )));
                }
                Err(error) => return Err(Stop::usage(format!("{}: {error}", path.display()))),
            }
        }
        Ok(None)
    }
}

/// A line on standard error that counts what is done, where a person looks at it.
fn progress(what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template(&format!("{{spinner}} {{pos}} {what}"));
    let bar = ProgressBar::new_spinner();
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// The runtime of a command that waits for sockets.
fn runtime() -> io::Result<tokio::runtime::Runtime> {
    let cpus = std::thread::available_parallelism().map_or(2, usize::from);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cpus.max(2))
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_name("iris-io")
        .enable_all()
        .build()
}
