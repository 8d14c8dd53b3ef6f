//! Who changed which rule: a line of JSON for every change, in `audit.log` in the home folder.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use iris_core::model::Tenant;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A log that is larger is put aside before the next line, and so many of them are kept.
const LOG_BYTES_MAX: u64 = 8 << 20;
const LOGS_KEPT: usize = 4;
/// Bytes, from the newest, that a question reads.
const READ_BYTES_MAX: u64 = 8 << 20;

/// What was done to a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// It was deployed.
    #[serde(rename = "rule.deploy")]
    Deploy,
    /// It was removed.
    #[serde(rename = "rule.delete")]
    Delete,
    /// It was stopped or started.
    #[serde(rename = "rule.toggle")]
    Toggle,
}

impl Action {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deploy => "rule.deploy",
            Self::Delete => "rule.delete",
            Self::Toggle => "rule.toggle",
        }
    }

    /// Every action.
    pub const ALL: [Self; 3] = [Self::Deploy, Self::Delete, Self::Toggle];
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// When, ISO 8601.
    pub ts: String,
    /// Whose rules.
    pub tenant_id: String,
    /// What was done.
    pub action: Action,
    /// By which way: `mcp`, `dashboard` or `local`.
    pub user: String,
    /// The rule.
    pub rule_id: String,
    /// Its name.
    pub rule_name: String,
    /// Severity and what it replaces, or the new state.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

/// Which lines.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Only this action.
    pub action: Option<Action>,
    /// At or after, ISO 8601 in UTC as written in the log.
    pub since: Option<String>,
    /// Part of the rule's name or id, in either case.
    pub search: Option<String>,
    /// At most so many.
    pub limit: usize,
    /// So many are passed over.
    pub offset: usize,
}

/// The log.
#[derive(Debug, Clone)]
pub(super) struct Audit {
    path: PathBuf,
}

impl Audit {
    pub fn at(home: &Path) -> Self {
        Self { path: home.join("audit.log") }
    }

    /// Appends lines and makes them durable.
    pub fn append(&self, lines: &[Line]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        self.turn_over()?;
        let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&self.path)?;
        let before = file.metadata()?.len();
        let mut text = if is_torn(&mut file)? { String::from("\n") } else { String::new() };
        for line in lines {
            text.push_str(&serde_json::to_string(line)?);
            text.push('\n');
        }
        if let Err(error) = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()) {
            // No line must tell of a change that is then refused.
            let _ = file.set_len(before);
            return Err(error);
        }
        super::file::sync_folder(&self.path)
    }

    /// The lines of a tenant, newest first, and how many there are in what was read.
    pub fn read(&self, tenant: &Tenant, wanted: &Wanted) -> io::Result<(Vec<Line>, usize)> {
        let search = wanted.search.as_ref().map(|search| search.to_lowercase());
        let is_wanted = |line: &Line| {
            let within =
                |text: &str| search.as_ref().is_none_or(|search| text.to_lowercase().contains(search.as_str()));
            line.tenant_id == tenant.as_str()
                && wanted.action.is_none_or(|action| action == line.action)
                && wanted.since.as_ref().is_none_or(|since| line.ts >= *since)
                && (within(&line.rule_name) || within(&line.rule_id))
        };
        let (mut found, mut total, mut left) = (Vec::new(), 0, READ_BYTES_MAX);
        let logs = std::iter::once(self.path.clone()).chain((1..=LOGS_KEPT).map(|at| self.kept(at)));
        for path in logs {
            if left == 0 {
                break;
            }
            let text = end_of(&path, left)?;
            left = left.saturating_sub(text.len() as u64);
            // A line that cannot be read, such as one that a crash cut, tells nothing.
            let lines = text.lines().rev().filter_map(|line| serde_json::from_str::<Line>(line).ok());
            for line in lines.filter(is_wanted) {
                if total >= wanted.offset && found.len() < wanted.limit {
                    found.push(line);
                }
                total += 1;
            }
        }
        Ok((found, total))
    }

    fn kept(&self, at: usize) -> PathBuf {
        self.path.with_extension(format!("log.{at}"))
    }

    fn turn_over(&self) -> io::Result<()> {
        match fs::metadata(&self.path) {
            Ok(found) if found.is_file() && found.len() >= LOG_BYTES_MAX => {}
            _ => return Ok(()),
        }
        for at in (1..LOGS_KEPT).rev() {
            match fs::rename(self.kept(at), self.kept(at + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(&self.path, self.kept(1))
    }
}

/// Whether the last line has no end.
fn is_torn(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// The end of a file, at most so many bytes; nothing when it does not exist.
fn end_of(path: &Path, bytes_max: u64) -> io::Result<String> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(error),
    };
    let from = file.metadata()?.len().saturating_sub(bytes_max);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    // What was cut at its beginning is no line.
    Ok(match text.split_once('\n') {
        Some((_, whole)) if from > 0 => whole.to_owned(),
        _ => text,
    })
}
