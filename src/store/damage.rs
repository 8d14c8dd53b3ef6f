//! What to do with a file that cannot be read: set aside as little as possible and go on without it.
//!
//! First only the write-ahead log: the journal still has everything that no checkpoint contains. Only when the
//! main file itself cannot be read is it replaced, by what can be read of it. A lock, a missing permission, a full disk
//! and a newer schema are never damage. What was set aside is kept for a day, for whoever wants to look, unless
//! something is deleted before.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use duckdb::Connection;
use iris_core::model::Timestamp;

use super::open::{self, Paths};
use super::salvage::{self, Salvaged, salvage};
use super::{Config, Error, apart};

/// How long set-aside files are kept.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// Which part of the store could not be read at a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The write-ahead log: what it held is replayed from the journal.
    Log,
    /// The main file.
    Main,
}

/// What could not be read at a start, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Damage {
    /// Where.
    pub part: Part,
    /// When it was found.
    pub found_at: Timestamp,
    /// What was read of the main file. What the journal has is stored again on top of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub salvaged: Option<Salvaged>,
}

/// Opens the file and reads what a start needs, setting aside what is damaged. After a start that did not get through
/// this, it is tried in another process first.
pub(super) fn open<T>(
    home: &Path,
    config: &Config,
    now: Timestamp,
    read: impl Fn(&Connection) -> Result<T, Error>,
) -> Result<(Connection, T, Vec<Damage>), Error> {
    let paths = Paths::of(home);
    let folder = home.join("duckdb").join("set-aside");
    remove_old(&folder);
    let mut damage: Vec<Damage> = Vec::new();
    let opening = home.join("duckdb").join("opening");
    let mut is_suspect = opening.exists();
    for part in [Part::Log, Part::Main] {
        let tried = if is_suspect { apart::probe(home, config) } else { Ok(()) };
        let opened = tried.and_then(|()| {
            std::fs::create_dir_all(home.join("duckdb"))?;
            File::create(&opening)?;
            let connection = open::engine(home, config)?;
            let found = read(&connection)?;
            Ok((connection, found))
        });
        // Whatever it says, the process lives.
        let _ = std::fs::remove_file(&opening);
        let why = match opened {
            Ok((connection, found)) => return Ok((connection, found, damage)),
            Err(error) if error.is_damage() => error,
            Err(error) => return Err(error),
        };
        is_suspect = true;
        let repaired = match part {
            Part::Log => set_aside(&folder, &log_files(&paths))?.then_some(None),
            Part::Main => replace(home, config, &folder)?.map(Some),
        };
        if let Some(salvaged) = repaired {
            tracing::error!(?part, %why, ?salvaged, "the database was damaged; what could not be read was set aside");
            damage.push(Damage { part, found_at: now, salvaged });
        }
    }
    let connection = open::engine(home, config)?;
    let found = read(&connection)?;
    Ok((connection, found, damage))
}

/// Sets the log aside, which the journal has, and puts what can be read of the main file in its place; `None` when there
/// is no file. For whoever holds the home and has no store open.
///
/// # Errors
/// When the new file cannot be made; the old one is then as it was.
pub fn repair(home: &Path, config: &Config) -> Result<Option<Salvaged>, Error> {
    let folder = home.join("duckdb").join("set-aside");
    set_aside(&folder, &log_files(&Paths::of(home)))?;
    replace(home, &config.within_share(), &folder)
}

/// Puts what can be read of the main file in its place; `None` when there is no file.
fn replace(home: &Path, config: &Config, folder: &Path) -> Result<Option<Salvaged>, Error> {
    let paths = Paths::of(home);
    if !paths.database.exists() {
        return Ok(None);
    }
    let salvaged = match apart::salvage(home, config, || salvage(home, config)) {
        Ok(salvaged) => Some(salvaged),
        // Of the new file, not of the old one.
        Err(error @ (Error::NoSpace(_) | Error::NoPermission(_) | Error::Newer { .. } | Error::Locked { .. })) => {
            return Err(error);
        }
        Err(error) => {
            tracing::error!(%error, "nothing of the damaged database can be read");
            None
        }
    };
    set_aside(folder, std::slice::from_ref(&paths.database))?;
    match &salvaged {
        Some(_) => std::fs::rename(&paths.rewritten, &paths.database)?,
        None => super::rewrite::remove_leftover(&paths)?,
    }
    File::open(home)?.sync_all()?;
    let _ = std::fs::remove_file(salvage::account(&paths));
    Ok(Some(salvaged.unwrap_or_else(Salvaged::nothing)))
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
