//! The two small files beside the lanes: `cursors` (how far the forwarder is) and `seed` (the key of body
//! hashes). Both are replaced whole: a new file is written and synced, renamed over the old one, and the
//! directory synced.

use std::io::{self, IoSlice};
use std::path::Path;

use iris_core::model::Lane;
use serde::{Deserialize, Serialize};

use super::disk::Disk;
use super::frame::Key;

const CURSORS: &str = "cursors";
const SEED: &str = "seed";
/// Neither file comes near it.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// How far one lane has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursor {
    /// The forwarder is past every record up to here.
    pub(super) forwarded: u64,
    /// The highest seq known to be acknowledged: a journal that ends before it has lost something.
    pub(super) acknowledged: u64,
}

/// The cursors of all lanes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Cursors {
    traces: Cursor,
    logs: Cursor,
    metrics: Cursor,
}

impl Cursors {
    pub(super) fn get(&self, lane: Lane) -> Cursor {
        match lane {
            Lane::Traces => self.traces,
            Lane::Logs => self.logs,
            Lane::Metrics => self.metrics,
        }
    }

    pub(super) fn set(&mut self, lane: Lane, cursor: Cursor) {
        match lane {
            Lane::Traces => self.traces = cursor,
            Lane::Logs => self.logs = cursor,
            Lane::Metrics => self.metrics = cursor,
        }
    }

    /// The highest seq in it.
    pub(super) fn highest(&self) -> u64 {
        Lane::ALL.iter().map(|lane| self.get(*lane)).map(|it| it.forwarded.max(it.acknowledged)).max().unwrap_or(0)
    }

    pub(super) fn write(&self, disk: &dyn Disk, dir: &Path) -> io::Result<()> {
        let text = serde_json::to_vec(self).map_err(io::Error::other)?;
        replace(disk, dir, CURSORS, &text)
    }

    /// `Ok(None)` when there is none or it cannot be understood.
    pub(super) fn read(disk: &dyn Disk, dir: &Path) -> io::Result<Option<Self>> {
        Ok(content(disk, dir, CURSORS)?.and_then(|text| serde_json::from_slice(&text).ok()))
    }
}

impl Key {
    /// The key of this home, made when there is none. The flag says that it is new.
    pub(super) fn load(disk: &dyn Disk, dir: &Path) -> io::Result<(Self, bool)> {
        if let Some(Ok(secret)) = content(disk, dir, SEED)?.map(<[u8; Self::BYTES]>::try_from) {
            return Ok((Self(secret), false));
        }
        let mut secret = [0; Self::BYTES];
        getrandom::fill(&mut secret).map_err(io::Error::other)?;
        replace(disk, dir, SEED, &secret)?;
        Ok((Self(secret), true))
    }
}

/// A file's content without its checksum; `None` when it is missing or damaged.
fn content(disk: &dyn Disk, dir: &Path, name: &str) -> io::Result<Option<Vec<u8>>> {
    let file = match disk.open(&dir.join(name)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let size = file.size_bytes()?;
    if size > FILE_BYTES_MAX {
        return Ok(None);
    }
    let mut content = vec![0; usize::try_from(size).unwrap_or(0)];
    let count = file.read_at(0, &mut content)?;
    content.truncate(count);
    let Some((covered, checksum)) = content.split_last_chunk::<4>() else { return Ok(None) };
    let whole = crc32fast::hash(covered) == u32::from_le_bytes(*checksum);
    Ok(whole.then(|| covered.to_vec()))
}

fn replace(disk: &dyn Disk, dir: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let draft = dir.join(format!("{name}.new"));
    match disk.remove(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let checksum = crc32fast::hash(content).to_le_bytes();
    let file = disk.create(&draft, (content.len() + checksum.len()) as u64)?;
    file.write_at(0, &mut [IoSlice::new(content), IoSlice::new(&checksum)])?;
    file.sync()?;
    disk.rename(&draft, &dir.join(name))?;
    disk.sync_dir(dir)
}
