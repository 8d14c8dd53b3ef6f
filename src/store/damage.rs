//! What to do with a file that cannot be read: set aside as little as possible and go on without it. And with one of which a
//! part could not be read while it was in use: look all of it over before it is opened again.
//!
//! First only the write-ahead log: the journal still has everything that no checkpoint contains. Only when the
//! main file itself cannot be read is it replaced, by what can be read of it. A lock, a missing permission, a full disk
//! and a newer schema are never damage. What was set aside is kept for a day, for whoever wants to look, unless
//! something is deleted before.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use duckdb::Connection;
use iris_core::model::Timestamp;

use super::apart::Looked;
use super::open::{self, Paths};
use super::salvage::{self, Salvaged, salvage};
use super::{Config, Error, apart};

/// How long set-aside files are kept.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// Looks that may begin over one suspicion: a process that ends over each of them opens the file without.
const LOOKS_MAX: usize = 3;

/// Which part of the store could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The write-ahead log: what it held is replayed from the journal.
    Log,
    /// The main file.
    Main,
}

/// What could not be read, and what came of it.
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
    let folder = folder(home);
    remove_old(&folder);
    let mut damage: Vec<Damage> = Vec::new();
    damage.extend(look_over(home, config, &folder, now));
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

/// Something met damage in the file: before it is opened again all of it is looked over. This is on disk when it returns, so
/// that a process that ends meanwhile does not forget it.
///
/// # Errors
/// When it cannot be written.
pub fn suspect(home: &Path) -> Result<(), Error> {
    let path = suspicion(home);
    std::fs::create_dir_all(home.join("duckdb"))?;
    File::create(&path)?.sync_all()?;
    Ok(File::open(home.join("duckdb"))?.sync_all()?)
}

/// Where it stands, with a byte for every look that began.
fn suspicion(home: &Path) -> PathBuf {
    home.join("duckdb").join("suspect")
}

/// Looks the whole file over when something met damage in it, and puts what can be read in its place when there is any.
/// What stands in the way of that leaves the file as it is: it may serve in part, and the next who meets damage says so.
fn look_over(home: &Path, config: &Config, folder: &Path, now: Timestamp) -> Option<Damage> {
    let mark = suspicion(home);
    let looks = std::fs::metadata(&mark).ok()?.len();
    let looked = if looks < LOOKS_MAX as u64 {
        let begun = OpenOptions::new().append(true).open(&mark).and_then(|mut file| {
            file.write_all(b"x")?;
            file.sync_all()
        });
        begun.map_err(Error::from).and_then(|()| apart::look(home, config))
    } else {
        Ok(Looked::Hindered("processes ended over it".to_owned()))
    };
    let found = match looked {
        Ok(Looked::Damaged(why)) => {
            tracing::error!(%why, "the database is damaged; what can be read of it is put in a new file");
            match rebuild(home, config, folder) {
                Ok(salvaged) => {
                    salvaged.map(|salvaged| Damage { part: Part::Main, found_at: now, salvaged: Some(salvaged) })
                }
                Err(error) => {
                    tracing::error!(%error, "the damaged database could not be replaced; what it answers is answered");
                    None
                }
            }
        }
        Ok(Looked::Whole) => {
            tracing::info!("all of the database can be read");
            None
        }
        Ok(Looked::Hindered(why)) => {
            tracing::warn!(%why, "the database could not be looked over");
            None
        }
        Err(error) => {
            tracing::warn!(%error, "the database could not be looked over");
            None
        }
    };
    if let Some(damage) = &found {
        tracing::error!(salvaged = ?damage.salvaged, "a new database has what can be read of the damaged one");
    }
    // When it stays, the next start looks once more.
    let _ = std::fs::remove_file(mark);
    found
}

/// Sets the log aside, which the journal has, and puts what can be read of the main file in its place; `None` when there
/// is no file. For whoever holds the home and has no store open.
///
/// # Errors
/// When the new file cannot be made; the old one is then as it was.
pub fn repair(home: &Path, config: &Config) -> Result<Option<Salvaged>, Error> {
    rebuild(home, &config.within_share(), &folder(home))
}

fn rebuild(home: &Path, config: &Config, folder: &Path) -> Result<Option<Salvaged>, Error> {
    set_aside(folder, &log_files(&Paths::of(home)))?;
    replace(home, config, folder)
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

fn folder(home: &Path) -> PathBuf {
    home.join("duckdb").join("set-aside")
}

/// What was set aside takes.
pub(super) fn set_aside_bytes(home: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder(home)) else { return 0 };
    entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum()
}

/// What was set aside goes before its time: something has to have its room.
pub(super) fn remove_set_aside(home: &Path) {
    let Ok(entries) = std::fs::read_dir(folder(home)) else { return };
    for entry in entries.flatten() {
        tracing::warn!(file = ?entry.file_name(), "a damaged file that was set aside goes, because its room is needed");
        // Tried again at the next time.
        let _ = std::fs::remove_file(entry.path());
    }
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
