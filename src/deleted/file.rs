//! The file of deletions: read whole, appended to, written anew when it has lines that say nothing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use iris_core::model::{Tenant, Timestamp, TraceId};
use serde::{Deserialize, Serialize};

use super::Known;

const FILE: &str = "deleted.jsonl";

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Line {
    /// A trace was deleted.
    Trace {
        tenant: Tenant,
        trace_id: TraceId,
        #[serde(default)]
        at: Timestamp,
    },
    /// Evaluations of no trace were deleted.
    Evaluations { tenant: Tenant, evaluations_before: Timestamp, at: Timestamp },
    /// The journal has nothing of what was asked for before.
    Journal { journal_rid_before: Timestamp },
}

/// The open file, at its end.
#[derive(Debug)]
pub(super) struct Lines(File);

impl Lines {
    /// Reads every line into `known`.
    pub(super) fn open(home: &Path, known: &mut Known) -> io::Result<Self> {
        let path = home.join(FILE);
        let text = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let (mut lines, mut unreadable) = (0_usize, 0_usize);
        for line in text.lines() {
            lines += 1;
            match serde_json::from_str::<Line>(line) {
                Ok(line) => known.take(line),
                Err(_) => unreadable += 1,
            }
        }
        if unreadable > 0 {
            tracing::warn!(unreadable, "lines of the list of deleted traces cannot be read");
        }
        let needed = known.lines().count();
        if unreadable > 0 || lines > needed.saturating_add(needed / 4 + 16) || !text.ends_with('\n') {
            rewrite(&path, known)?;
        }
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
        File::open(home)?.sync_all()?;
        Ok(Self(file))
    }

    /// Returns once the lines are on disk.
    pub(super) fn append(&mut self, lines: &[Line]) -> io::Result<()> {
        self.0.write_all(&written(lines.iter())?)?;
        self.0.sync_data()
    }
}

/// Writes the list anew: beside the old one, then in its place.
fn rewrite(path: &Path, known: &Known) -> io::Result<()> {
    let beside: PathBuf = path.with_extension("jsonl.new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    let lines: Vec<Line> = known.lines().collect();
    file.write_all(&written(lines.iter())?)?;
    file.sync_all()?;
    fs::rename(&beside, path)
}

fn written<'a>(lines: impl Iterator<Item = &'a Line>) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line).map_err(io::Error::other)?;
        text.push(b'\n');
    }
    Ok(text)
}
