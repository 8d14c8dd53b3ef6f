//! Which traces were deleted. What of them still comes, from a late sender, a replayed journal or the queue to the
//! collector, goes nowhere.
//!
//! Owns `home/deleted.jsonl`, a line a deletion, oldest first, and among them the lines that say up to where the journal
//! is rid of them. [`Deletions::add`] returns once the line is on disk, and from then on every room that asks is told.
//! The newest [`KEPT_MAX`] are kept: a trace deleted before as many others may come back when a sender sends it again.

mod file;
mod left;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use iris_core::model::{RowKey, Tenant, Timestamp};
use tokio::sync::watch;

pub use left::Left;

use file::{Line, Lines};

/// Deletions that are remembered: some tens of megabytes.
pub const KEPT_MAX: usize = 262_144;

/// The deletions of a home; clones share one set. The default one remembers in memory only.
#[derive(Debug, Clone, Default)]
pub struct Deletions {
    known: Arc<RwLock<Known>>,
    file: Arc<Mutex<Option<Lines>>>,
    asked: Arc<watch::Sender<u64>>,
}

#[derive(Debug, Default)]
struct Known {
    keys: HashSet<RowKey>,
    /// Each with when it was asked for.
    order: VecDeque<(RowKey, Timestamp)>,
    /// Evaluations of a tenant that are of no trace and were made before the first time are gone; and when that was
    /// asked for.
    evaluations: HashMap<Tenant, (Timestamp, Timestamp)>,
    /// The journal has nothing of what was asked for before this time.
    journal_rid_before: Timestamp,
    /// When the oldest and the newest deletion were asked for of which bytes may be in the journal.
    in_journal: Option<(Timestamp, Timestamp)>,
}

impl Known {
    fn take(&mut self, line: Line) {
        match line {
            Line::Trace { tenant, trace_id, at } => self.insert(RowKey { tenant, trace_id }, at),
            Line::Evaluations { tenant, evaluations_before, at } => {
                let known = self.evaluations.entry(tenant).or_default();
                *known = (known.0.max(evaluations_before), known.1.max(at));
                self.wait_for_journal(at);
            }
            Line::Journal { journal_rid_before } => {
                self.journal_rid_before = self.journal_rid_before.max(journal_rid_before);
                self.look_at_journal();
            }
        }
    }

    fn insert(&mut self, key: RowKey, at: Timestamp) {
        if !self.keys.insert(key.clone()) {
            return;
        }
        self.order.push_back((key, at));
        if self.order.len() > KEPT_MAX
            && let Some((oldest, _)) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
        }
        self.wait_for_journal(at);
    }

    fn wait_for_journal(&mut self, at: Timestamp) {
        if at >= self.journal_rid_before {
            let (oldest, newest) = self.in_journal.unwrap_or((at, at));
            self.in_journal = Some((oldest.min(at), newest.max(at)));
        }
    }

    fn look_at_journal(&mut self) {
        self.in_journal = None;
        let traces = self.order.iter().map(|(_, at)| *at);
        let all: Vec<Timestamp> = traces.chain(self.evaluations.values().map(|(_, at)| *at)).collect();
        all.into_iter().for_each(|at| self.wait_for_journal(at));
    }

    /// The same as lines.
    fn lines(&self) -> impl Iterator<Item = Line> {
        let traces = self.order.iter().map(|(key, at)| Line::Trace {
            tenant: key.tenant.clone(),
            trace_id: key.trace_id,
            at: *at,
        });
        let evaluations = self.evaluations.iter().map(|(tenant, (before, at))| Line::Evaluations {
            tenant: tenant.clone(),
            evaluations_before: *before,
            at: *at,
        });
        traces.chain(evaluations).chain([Line::Journal { journal_rid_before: self.journal_rid_before }])
    }
}

impl Deletions {
    /// Reads what a home remembers. A line that cannot be read, such as one that a crash cut, is left out.
    ///
    /// # Errors
    /// When the file can be neither read nor made.
    pub fn open(home: &Path) -> io::Result<Self> {
        let mut known = Known::default();
        let file = Lines::open(home, &mut known)?;
        Ok(Self { known: Arc::new(RwLock::new(known)), file: Arc::new(Mutex::new(Some(file))), asked: Arc::default() })
    }

    /// Remembers a deletion; returns once it is on disk. Blocks.
    ///
    /// # Errors
    /// When it cannot be written; it is then not remembered.
    pub fn add(&self, key: &RowKey) -> io::Result<()> {
        self.add_all(std::slice::from_ref(key))
    }

    /// Remembers deletions with one write; returns once all are on disk. Blocks.
    ///
    /// # Errors
    /// When they cannot be written; none is then remembered, until the next start.
    pub fn add_all(&self, keys: &[RowKey]) -> io::Result<()> {
        let at = now();
        let mut file = self.file();
        let line = |key: &RowKey| Line::Trace { tenant: key.tenant.clone(), trace_id: key.trace_id, at };
        let new = keys.iter().filter(|key| !self.contains(key)).map(line).collect();
        self.remember(&mut file, new)
    }

    /// Remembers that evaluations of a tenant which are of no trace and were made before then are gone; returns once
    /// that is on disk. Blocks.
    ///
    /// # Errors
    /// When it cannot be written; it is then not remembered.
    pub fn add_evaluations(&self, tenant: &Tenant, before: Timestamp) -> io::Result<()> {
        let mut file = self.file();
        let at = now();
        let line = Line::Evaluations { tenant: tenant.clone(), evaluations_before: before, at };
        self.remember(&mut file, vec![line])
    }

    fn remember(&self, file: &mut Option<Lines>, lines: Vec<Line>) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        if let Some(file) = file {
            file.append(&lines)?;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        lines.into_iter().for_each(|line| known.take(line));
        drop(known);
        self.asked.send_modify(|times| *times += 1);
        Ok(())
    }

    /// Whether a trace was deleted.
    pub fn contains(&self, key: &RowKey) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).keys.contains(key)
    }

    /// Whether an evaluation that is of no trace was deleted.
    pub fn covers_evaluation(&self, tenant: &Tenant, created: Timestamp) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.evaluations.get(tenant).is_some_and(|(before, _)| created < *before)
    }

    /// Whether nothing was ever deleted, which saves asking for every row.
    pub fn is_empty(&self) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.keys.is_empty() && known.evaluations.is_empty()
    }

    /// Changes with every deletion.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.asked.subscribe()
    }

    /// When the oldest and the newest deletion were asked for of which bytes may be in the journal.
    pub fn in_journal(&self) -> Option<(Timestamp, Timestamp)> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).in_journal
    }

    /// The journal has no byte any more of what was deleted before this time. Blocks.
    ///
    /// # Errors
    /// When it cannot be written; then the journal is searched again after a restart.
    pub fn rid_journal(&self, before: Timestamp) -> io::Result<()> {
        let mut file = self.file();
        let line = Line::Journal { journal_rid_before: before };
        if let Some(file) = file.as_mut() {
            file.append(std::slice::from_ref(&line))?;
        }
        self.known.write().unwrap_or_else(PoisonError::into_inner).take(line);
        Ok(())
    }

    fn file(&self) -> MutexGuard<'_, Option<Lines>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// In whole milliseconds, as a line holds it.
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_nanos(u64::try_from(since.as_millis()).unwrap_or_default().saturating_mul(1_000_000))
}
