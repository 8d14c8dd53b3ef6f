//! `store-check`: is the database whole? And `store-apart`, by which the sidecar does in another process what may end
//! one.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use super::{Settings, Stop};
use crate::config::Config;
use crate::home::Home;
use crate::journal::{Journal, RealDisk};
use crate::run::journal_from;
use crate::store;

/// Check every row of the database while no sidecar runs: exit code 0 whole, 3 damaged, 1 it could not be had. A start
/// repairs by itself what it meets.
#[derive(Debug, Args)]
pub(super) struct StoreCheck {
    /// Put what can be read in a new file; the old one is set aside, and the next start completes it from the journal
    #[arg(long)]
    repair: bool,
    #[command(flatten)]
    settings: Settings,
}

impl StoreCheck {
    pub(super) fn run(&self) -> Result<ExitCode, Stop> {
        let config = self.settings.load()?;
        crate::telemetry::start(&config.logging);
        let folder = config.home(std::env::var_os("HOME").as_deref());
        let home = Home::take(&folder).map_err(Stop::failed)?;
        let checked = store::check(home.path(), &config.store()).map_err(Stop::failed)?;
        let mut out = std::io::stdout();
        if checked.is_empty() {
            writeln!(
                out,
                "there is no database yet: the next start makes one, and reads from the journal what it has"
            )?;
        }
        for table in &checked {
            match &table.error {
                None => writeln!(out, "{:<12} {:>10} rows", table.name, table.rows)?,
                Some(why) => writeln!(out, "{:<12} damaged: {why}", table.name)?,
            }
        }
        let is_whole = checked.iter().all(|table| table.error.is_none());
        if self.repair && !is_whole {
            let salvaged = repair(&config, &home)?;
            writeln!(out, "{} rows read, {} lost; the old file is set aside", salvaged.rows, salvaged.lost_rows)?;
            return Ok(ExitCode::SUCCESS);
        }
        Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(store::DAMAGED) })
    }
}

fn repair(config: &Config, home: &Home) -> Result<store::Salvaged, Stop> {
    // What it has is what may be stored again.
    let (journal, _) = Journal::open(home.path(), &config.journal(), true, Arc::new(RealDisk)).map_err(Stop::failed)?;
    let journal_from = journal_from(&journal);
    let program = std::env::current_exe().ok();
    let settings = store::Config { journal_from, program, ..config.store() };
    let repaired = store::repair(home.path(), &settings).map_err(Stop::failed)?;
    Ok(repaired.unwrap_or_default())
}

/// What is done apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    Probe,
    Look,
    Salvage,
}

/// Not for people: the sidecar calls it.
#[derive(Debug, Args)]
pub(super) struct StoreApart {
    what: What,
    home: PathBuf,
    memory_bytes: u64,
    temp_bytes: u64,
    traces_from: u64,
    logs_from: u64,
}

impl StoreApart {
    pub(super) fn run(&self) -> Result<ExitCode, Stop> {
        crate::run::harden();
        let (memory_bytes, temp_bytes) = (self.memory_bytes, self.temp_bytes);
        let journal_from = store::Through { traces: self.traces_from, logs: self.logs_from, metrics: 0 };
        let config = store::Config { memory_bytes, temp_bytes, journal_from, ..store::Config::default() };
        let done = match self.what {
            What::Probe => store::probe(&self.home, &config).map(|()| String::new()),
            What::Look => store::look(&self.home, &config).map(|()| String::new()),
            What::Salvage => store::salvage(&self.home, &config).and_then(|salvaged| {
                serde_json::to_string(&salvaged).map_err(|error| store::Error::Io(error.to_string()))
            }),
        };
        let (code, said) = match done {
            Ok(said) => (0, said),
            Err(error) if error.is_damage() => (store::DAMAGED, error.to_string()),
            Err(error) => (store::HINDERED, error.to_string()),
        };
        writeln!(std::io::stdout(), "{said}")?;
        Ok(ExitCode::from(code))
    }
}
