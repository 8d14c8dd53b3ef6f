//! What may end a process is done in another one: opening a file that a process died over, and reading a damaged one.

use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::salvage::Salvaged;
use super::{Config, Error};

/// The subcommand that does it.
pub const COMMAND: &str = "store-apart";
/// Its exit code for a damaged file.
pub const DAMAGED: u8 = 3;
/// Its exit code for an error that is no damage.
pub const HINDERED: u8 = 4;
/// How long a file may take to open.
const PROBE_MAX: Duration = Duration::from_secs(120);
/// How long one may be read.
const SALVAGE_MAX: Duration = Duration::from_secs(900);
/// How many processes may die over one file before it is given up.
const DEATHS_MAX: usize = 64;
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// More a child never says.
const SAID_MAX: u64 = 64 * 1024;
const ABORT: i32 = 6;
const BUS: i32 = 7;
const FLOATING: i32 = 8;
const SEGMENT: i32 = 11;

/// How a child ended.
enum Ended {
    /// By itself, with what it said.
    Exit(u8, String),
    /// Over the file.
    Died,
    /// By another's hand, or not in time: that says nothing about the file.
    Stopped,
}

/// Whether a file can be opened, asked in a process of its own; always, where there is none.
pub(super) fn probe(home: &Path, config: &Config) -> Result<(), Error> {
    let Some(child) = start(home, config, "probe")? else { return Ok(()) };
    match wait(child, PROBE_MAX)? {
        Ended::Exit(0, _) | Ended::Stopped => Ok(()),
        Ended::Exit(DAMAGED, said) => Err(Error::Corrupt(said)),
        Ended::Exit(_, said) => Err(Error::Engine(format!("IO Error: {said}"))),
        Ended::Died => Err(Error::Corrupt("opening it ended a process".to_owned())),
    }
}

/// What a look at the whole file found.
pub(super) enum Looked {
    /// Every value of it can be read.
    Whole,
    /// Why not.
    Damaged(String),
    /// It could not be looked at, and why.
    Hindered(String),
}

/// Looks the whole file over in a process of its own; in this one, where there is no other.
pub(super) fn look(home: &Path, config: &Config) -> Result<Looked, Error> {
    let Some(child) = start(home, config, "look")? else {
        return Ok(match super::look(home, config) {
            Ok(()) => Looked::Whole,
            Err(error) if error.is_damage() => Looked::Damaged(error.to_string()),
            Err(error) => Looked::Hindered(error.to_string()),
        });
    };
    Ok(match wait(child, SALVAGE_MAX)? {
        Ended::Exit(0, _) => Looked::Whole,
        Ended::Exit(DAMAGED, said) => Looked::Damaged(said),
        Ended::Died => Looked::Damaged("reading it ended a process".to_owned()),
        Ended::Exit(_, said) => Looked::Hindered(said),
        Ended::Stopped => Looked::Hindered("it took too long, or was stopped".to_owned()),
    })
}

/// Reads a damaged file in processes of their own, as many as it takes; in this one where there is no other.
pub(super) fn salvage(
    home: &Path,
    config: &Config,
    here: impl FnOnce() -> Result<Salvaged, Error>,
) -> Result<Salvaged, Error> {
    let until = Instant::now() + SALVAGE_MAX;
    for _ in 0..DEATHS_MAX {
        let Some(child) = start(home, config, "salvage")? else { return here() };
        match wait(child, until.saturating_duration_since(Instant::now()))? {
            Ended::Exit(0, said) => {
                let last = said.lines().last().unwrap_or_default();
                return serde_json::from_str(last).map_err(|error| Error::Io(error.to_string()));
            }
            Ended::Exit(DAMAGED, said) => return Err(Error::Corrupt(said)),
            Ended::Exit(_, said) => return Err(Error::from_message(&said)),
            Ended::Died => tracing::warn!("a process that read the damaged database died; the next one goes on behind"),
            Ended::Stopped => break,
        }
    }
    Err(Error::Corrupt("it could not be read in time".to_owned()))
}

fn start(home: &Path, config: &Config, what: &str) -> Result<Option<Child>, Error> {
    let Some(program) = &config.program else { return Ok(None) };
    let from = config.journal_from;
    let numbers = [config.memory_bytes, config.temp_bytes, from.traces, from.logs].map(|number| number.to_string());
    let child = Command::new(program)
        .args([COMMAND, what])
        .arg(home)
        .args(numbers)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()?;
    Ok(Some(child))
}

fn wait(mut child: Child, within: Duration) -> Result<Ended, Error> {
    let until = Instant::now() + within;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if Instant::now() >= until {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(LOOK_EVERY);
    };
    let Some(status) = status else { return Ok(Ended::Stopped) };
    let mut said = String::new();
    if let Some(out) = child.stdout.take() {
        out.take(SAID_MAX).read_to_string(&mut said)?;
    }
    Ok(ended(status, said.trim().to_owned()))
}

fn ended(status: ExitStatus, said: String) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Exit(u8::try_from(code).unwrap_or(u8::MAX), said),
        (None, Some(ABORT | BUS | FLOATING | SEGMENT)) => Ended::Died,
        _ => Ended::Stopped,
    }
}
