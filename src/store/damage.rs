//! What to do with a file that cannot be read: set aside as little as possible and go on without it.
//!
//! First only the write-ahead log: the journal still has everything that no checkpoint contains. Only when the
//! main file itself cannot be read is it replaced. A lock, a missing permission, a full disk and a newer schema
//! are never damage. What was set aside is kept for a day, for whoever wants to look.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use duckdb::Connection;

use super::open::{self, Paths};
use super::{Config, Error};

/// How long set-aside files are kept.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// Which part of the store could not be read at a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Damage {
    /// The write-ahead log: what it held is replayed from the journal.
    Log,
    /// The main file: its history is gone except for what the journal still holds.
    Main,
}

/// Opens the file, setting aside what is damaged.
pub(super) fn engine(home: &Path, config: &Config) -> Result<(Connection, Vec<Damage>), Error> {
    let paths = Paths::of(home);
    let folder = home.join("duckdb").join("set-aside");
    remove_old(&folder);
    let mut damage = Vec::new();
    let stages = [(Damage::Log, log_files(&paths)), (Damage::Main, vec![paths.database.clone()])];
    for (what, files) in stages {
        match open::engine(home, config) {
            Err(Error::Corrupt(why)) => {
                if set_aside(&folder, &files)? {
                    tracing::error!(?what, why, "the database was damaged and what could not be read was set aside");
                    damage.push(what);
                }
            }
            opened => return opened.map(|connection| (connection, damage)),
        }
    }
    open::engine(home, config).map(|connection| (connection, damage))
}

/// The engine's own names for a log, for one being merged, and for one being recovered.
fn log_files(paths: &Paths) -> Vec<PathBuf> {
    ["", ".checkpoint", ".recovery"]
        .map(|ending| {
            let mut name = paths.wal.clone().into_os_string();
            name.push(ending);
            PathBuf::from(name)
        })
        .to_vec()
}

/// Moves the files that exist; false when there is none.
fn set_aside(folder: &Path, files: &[PathBuf]) -> Result<bool, Error> {
    let stamp = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    let mut moved = false;
    for file in files.iter().filter(|file| file.exists()) {
        std::fs::create_dir_all(folder)?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        std::fs::rename(file, folder.join(format!("{stamp}-{name}")))?;
        moved = true;
    }
    Ok(moved)
}

fn remove_old(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        // The time of the move is in the name; a file whose name was changed is not ours to remove.
        let moved = entry.file_name().to_string_lossy().split('-').next().and_then(|stamp| stamp.parse::<u64>().ok());
        let old = moved.is_some_and(|millis| {
            let age = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + Duration::from_millis(millis));
            age.is_ok_and(|age| age > KEPT)
        });
        if old {
            // Tried again at the next start.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
