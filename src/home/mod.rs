//! The home folder: made private, held by one process, and described for others in `runtime.json`.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The folder, locked for this process as long as the value lives.
#[derive(Debug)]
pub struct Home {
    path: PathBuf,
    _lock: File,
}

/// Why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process holds it.
    #[error("{path} is held by another process{}: stop it, or choose another --home", pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Held {
        /// The folder.
        path: PathBuf,
        /// Who.
        pid: Option<u32>,
    },
    /// It is not safe to keep data there.
    #[error("{path} {why}")]
    Unsafe {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// It cannot be made.
    #[error("the home folder {path} cannot be made: {error}; choose another with --home or IRIS_HOME")]
    NotMade {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The system refused.
    #[error("{path}: {error}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// What a running sidecar tells others about itself: `runtime.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Runtime {
    /// Its process.
    pub pid: u32,
    /// When it started, ISO 8601.
    pub started_at: String,
    /// The web door's port.
    pub dashboard_port: Option<u16>,
    /// The OTLP/gRPC door's address.
    pub grpc: Option<String>,
    /// The OTLP/HTTP door's address.
    pub http: Option<String>,
    /// The web door's address.
    pub web: Option<String>,
    /// The ops door's address.
    pub ops: Option<String>,
}

impl Runtime {
    /// Whether it takes spans, as a sidecar does and a process that serves tools alone does not.
    pub fn takes_spans(&self) -> bool {
        self.grpc.is_some() || self.http.is_some()
    }
}

impl Home {
    /// Makes the folder private, refuses it when it is someone else's, and takes its lock.
    ///
    /// # Errors
    /// [`Error::Held`] with the holder's pid when another process has it.
    pub fn take(path: &Path) -> Result<Self, Error> {
        let failed = |error| Error::Io { path: path.to_owned(), error };
        if path.as_os_str().is_empty() || path.starts_with("~") {
            return Err(Error::Unsafe {
                path: path.to_owned(),
                why: "is no folder: set HOME, or IRIS_HOME to a folder",
            });
        }
        let not_made = |error| Error::NotMade { path: path.to_owned(), error };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(not_made)?;
        let found = fs::symlink_metadata(path).map_err(failed)?;
        if found.file_type().is_symlink() {
            return Err(Error::Unsafe { path: path.to_owned(), why: "is a symbolic link; name the folder itself" });
        }
        if found.uid() != rustix::process::geteuid().as_raw() {
            return Err(Error::Unsafe { path: path.to_owned(), why: "belongs to another user" });
        }
        if found.permissions().mode() & 0o077 != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(failed)?;
        }
        let lock = lock(path)?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Writes `runtime.json` of a home that this process holds, whole or not at all.
///
/// # Errors
/// When it cannot be written.
pub fn announce(home: &Path, runtime: &Runtime) -> Result<(), Error> {
    let path = home.join("runtime.json");
    let failed = |error| Error::Io { path: path.clone(), error };
    let draft = home.join("runtime.json.new");
    let text = serde_json::to_vec_pretty(runtime).map_err(|error| failed(error.into()))?;
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft).map_err(failed)?;
    file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed)?;
    fs::rename(&draft, &path).map_err(failed)
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.path.join("runtime.json"));
    }
}

/// What the sidecar in `home` says of itself, when one is running there.
pub fn runtime(home: &Path) -> Option<Runtime> {
    serde_json::from_slice(&fs::read(home.join("runtime.json")).ok()?).ok()
}

/// What the folder takes of its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    /// Bytes of all files in it.
    pub bytes: u64,
    /// Bytes that its disk has left for us; 0 when it does not say.
    pub disk_free_bytes: u64,
}

/// Files and folders that are looked at: more than a journal has segments at its largest.
const LOOKED_AT_MAX: usize = 16_384;

/// What the folder takes now. Files that come and go meanwhile may be in it or not.
pub fn used(home: &Path) -> Used {
    let (mut bytes, mut looked_at) = (0, 0);
    let mut folders = vec![home.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten().take(LOOKED_AT_MAX.saturating_sub(looked_at)) {
            looked_at += 1;
            // Not followed where it leads elsewhere.
            match entry.metadata() {
                Ok(found) if found.is_dir() => folders.push(entry.path()),
                Ok(found) if found.is_file() => bytes += found.blocks() * 512,
                _ => {}
            }
        }
    }
    let disk_free_bytes = rustix::fs::statvfs(home).map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    Used { bytes, disk_free_bytes }
}

fn lock(home: &Path) -> Result<File, Error> {
    let path = home.join("lock");
    let failed = |error| Error::Io { path: path.clone(), error };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let _ = Read::by_ref(&mut file).take(32).read_to_string(&mut text);
            return Err(Error::Held { path: home.to_owned(), pid: text.trim().parse().ok() });
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    file.set_len(0).map_err(failed)?;
    file.rewind().map_err(failed)?;
    writeln!(file, "{}", std::process::id()).map_err(failed)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_taker_is_told_who_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("home");
        let home = Home::take(&path).unwrap();
        let refused = Home::take(&path).unwrap_err().to_string();
        assert!(refused.contains(&format!("pid {}", std::process::id())), "{refused}");
        drop(home);
        Home::take(&path).unwrap();
    }

    #[test]
    fn what_it_takes_is_the_sum_of_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let before = used(folder.path());
        assert!(before.bytes == 0 && before.disk_free_bytes > 0, "{before:?}");
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        for file in ["one", "a/two", "a/b/three"] {
            fs::write(folder.path().join(file), vec![1; 65_536]).unwrap();
        }
        std::os::unix::fs::symlink("/", folder.path().join("a/elsewhere")).unwrap();
        let bytes = used(folder.path()).bytes;
        assert!((3 * 65_536..4 * 65_536).contains(&bytes), "{bytes}");
    }

    #[test]
    fn the_folder_is_private_and_a_link_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("home");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let _home = Home::take(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(Home::take(&link).unwrap_err().to_string().contains("symbolic link"));
    }
}
