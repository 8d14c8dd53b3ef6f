//! Which traces were deleted. What of them still comes, from a late sender, a replayed journal or the queue to the
//! collector, goes nowhere.
//!
//! Owns `home/deleted.jsonl`, a line a deletion, oldest first. [`Deletions::add`] returns once the line is on disk, and
//! from then on every room that asks is told. The newest [`KEPT_MAX`] are kept: a trace deleted before as many others
//! may come back when a sender sends it again.

use std::collections::{HashSet, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use iris_core::model::{RowKey, Tenant, TraceId};
use serde::{Deserialize, Serialize};

/// Deletions that are remembered: some tens of megabytes.
pub const KEPT_MAX: usize = 262_144;
const FILE: &str = "deleted.jsonl";

#[derive(Serialize, Deserialize)]
struct Line {
    tenant: Tenant,
    trace_id: TraceId,
}

/// The deletions of a home; clones share one set. The default one remembers in memory only.
#[derive(Debug, Clone, Default)]
pub struct Deletions {
    known: Arc<RwLock<Known>>,
    file: Arc<Mutex<Option<File>>>,
}

#[derive(Debug, Default)]
struct Known {
    keys: HashSet<RowKey>,
    order: VecDeque<RowKey>,
}

impl Known {
    fn insert(&mut self, key: RowKey) -> bool {
        if !self.keys.insert(key.clone()) {
            return false;
        }
        self.order.push_back(key);
        if self.order.len() > KEPT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
        }
        true
    }
}

impl Deletions {
    /// Reads what a home remembers. A line that cannot be read, such as one that a crash cut, is left out.
    ///
    /// # Errors
    /// When the file can be neither read nor made.
    pub fn open(home: &Path) -> io::Result<Self> {
        let path = home.join(FILE);
        let mut known = Known::default();
        let text = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let (mut lines, mut unreadable) = (0_usize, 0_usize);
        for line in text.lines() {
            lines += 1;
            match serde_json::from_str::<Line>(line) {
                Ok(Line { tenant, trace_id }) => {
                    known.insert(RowKey { tenant, trace_id });
                }
                Err(_) => unreadable += 1,
            }
        }
        if unreadable > 0 {
            tracing::warn!(unreadable, "lines of the list of deleted traces cannot be read");
        }
        if unreadable > 0 || lines > known.order.len() || !text.ends_with('\n') {
            rewrite(&path, &known)?;
        }
        let file = append_to(&path)?;
        sync_folder(home)?;
        Ok(Self { known: Arc::new(RwLock::new(known)), file: Arc::new(Mutex::new(Some(file))) })
    }

    /// Remembers a deletion; returns once it is on disk. Blocks.
    ///
    /// # Errors
    /// When it cannot be written; it is then not remembered.
    pub fn add(&self, key: &RowKey) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if self.contains(key) {
            return Ok(());
        }
        if let Some(file) = file.as_mut() {
            let line = Line { tenant: key.tenant.clone(), trace_id: key.trace_id };
            let mut line = serde_json::to_vec(&line).map_err(io::Error::other)?;
            line.push(b'\n');
            file.write_all(&line)?;
            file.sync_data()?;
        }
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        Ok(())
    }

    /// Whether a trace was deleted.
    pub fn contains(&self, key: &RowKey) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).keys.contains(key)
    }

    /// Whether nothing was ever deleted, which saves asking for every row.
    pub fn is_empty(&self) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).keys.is_empty()
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Writes the list anew: beside the old one, then in its place.
fn rewrite(path: &Path, known: &Known) -> io::Result<()> {
    let beside: PathBuf = path.with_extension("jsonl.new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    let mut text = Vec::new();
    for key in &known.order {
        let line = Line { tenant: key.tenant.clone(), trace_id: key.trace_id };
        serde_json::to_writer(&mut text, &line).map_err(io::Error::other)?;
        text.push(b'\n');
    }
    file.write_all(&text)?;
    file.sync_all()?;
    fs::rename(&beside, path)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u8) -> RowKey {
        RowKey { tenant: Tenant::local(), trace_id: TraceId::from_bytes(&[n; 16]).unwrap() }
    }

    /// Scenario: deletions, a line cut by a crash, a line twice, another start.
    /// Guarantees: every whole line is remembered, the file is whole again, and goes on being written.
    #[test]
    fn deletions_outlive_the_process_and_a_cut_line() {
        let home = tempfile::tempdir().unwrap();
        let deletions = Deletions::open(home.path()).unwrap();
        assert!(deletions.is_empty());
        for n in [1, 2, 1] {
            deletions.add(&key(n)).unwrap();
        }
        let path = home.path().join(FILE);
        let mut text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 2);
        text.push_str("{\"tenant\":\"lo");
        fs::write(&path, text).unwrap();
        let again = Deletions::open(home.path()).unwrap();
        again.add(&key(3)).unwrap();
        let last = Deletions::open(home.path()).unwrap();
        assert!([1, 2, 3].into_iter().all(|n| last.contains(&key(n))));
        assert!(!last.contains(&key(4)));
        assert!(!last.contains(&RowKey { tenant: Tenant::new("other"), ..key(1) }));
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 3);
    }

    /// Scenario: one deletion more than is remembered.
    /// Guarantees: the oldest is forgotten.
    #[test]
    fn the_oldest_deletion_is_forgotten() {
        let mut known = Known::default();
        let numbered = |n: usize| {
            let mut bytes = [1; 16];
            bytes[..8].copy_from_slice(&(n as u64).to_be_bytes());
            RowKey { tenant: Tenant::local(), trace_id: TraceId::from_bytes(&bytes).unwrap() }
        };
        for n in 0..=KEPT_MAX {
            known.insert(numbered(n));
        }
        assert_eq!((known.keys.len(), known.order.len()), (KEPT_MAX, KEPT_MAX));
        assert!(!known.keys.contains(&numbered(0)) && known.keys.contains(&numbered(1)));
    }
}
