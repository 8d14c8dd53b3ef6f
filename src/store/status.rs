//! What the writer tells the rest of the process.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;

use iris_core::model::Timestamp;

use super::group::Positions;
use super::track::Through;
use super::{Damage, Error};

/// How the store is doing.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Status {
    /// Rows of spans committed since the start.
    pub rows: u64,
    /// Transactions that committed them.
    pub groups: u64,
    /// Awaited writes committed since the start.
    pub awaited: u64,
    /// Rows the engine refused, left out and still in the journal.
    pub set_aside: u64,
    /// Rows left out of answers since the start because they could not be read.
    pub unreadable: u64,
    /// How long the last group took to commit, in milliseconds.
    pub commit_ms: f64,
    /// The longest of them since the start.
    pub commit_ms_max: f64,
    /// CHECKPOINTs since the start.
    pub checkpoints: u64,
    /// How long the last one took, in milliseconds.
    pub checkpoint_ms: f64,
    /// Bytes of the write-ahead log.
    pub wal_bytes: u64,
    /// Bytes of the database file when it was last looked at.
    pub file_bytes: u64,
    /// When bytes of what was deleted will have gone from the file; absent when there are none.
    pub erase_due: Option<Timestamp>,
    /// What could not be read at the start, and what came of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<Damage>,
    /// Rows deleted by retention since the start.
    pub swept: u64,
    /// Why the last commit failed; absent once one succeeded.
    pub failed: Option<String>,
    /// It failed because there was no space.
    pub no_space: bool,
    /// Why questions or commits say that the file is damaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage_met: Option<String>,
    /// As committed.
    pub stored_through: Through,
    /// As committed.
    pub settled_through: Through,
}

impl Status {
    fn succeeded(&mut self) {
        self.failed = None;
        self.no_space = false;
    }
}

/// The writer's side of what readers of the status see.
#[derive(Clone)]
pub(super) struct Shared {
    pub status: Arc<Mutex<Status>>,
    pub committed: watch::Sender<u64>,
    pub checkpointed: watch::Sender<Through>,
    pub rewritten: watch::Sender<u64>,
    /// Writes handed over that nobody waits for and that are in no transaction yet.
    pub soon: Arc<AtomicUsize>,
    /// Something met damage.
    pub damaged: watch::Sender<bool>,
}

impl Shared {
    pub fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn group_committed(&self, rows: usize, set_aside: usize, took: Duration) {
        let mut status = self.status();
        status.rows += rows as u64;
        status.groups += 1;
        status.set_aside += set_aside as u64;
        status.commit_ms = took.as_secs_f64() * 1e3;
        status.commit_ms_max = status.commit_ms_max.max(status.commit_ms);
        status.succeeded();
    }

    /// Bytes of what was deleted are to go by then.
    pub fn erase_by(&self, due: Timestamp) {
        let mut status = self.status();
        status.erase_due = Some(status.erase_due.map_or(due, |known| known.min(due)));
    }

    /// The file was written anew.
    pub fn was_rewritten(&self) {
        self.status().erase_due = None;
        self.rewritten.send_modify(|times| *times += 1);
    }

    pub fn awaited_committed(&self, writes: usize) {
        let mut status = self.status();
        status.awaited += writes as u64;
        status.succeeded();
    }

    pub fn now_holds(&self, wal_bytes: u64, positions: Positions) {
        let mut status = self.status();
        status.wal_bytes = wal_bytes;
        status.stored_through = positions.stored;
        status.settled_through = positions.settled;
    }

    /// So many writes that nobody waited for are in the file, or wait for the journal's reader.
    pub fn landed(&self, writes: usize) {
        self.soon.fetch_sub(writes, Ordering::SeqCst);
    }

    /// An error of a question, a commit or a checkpoint: when it tells of damage, whoever waits for that is told.
    pub fn met(&self, error: &Error) {
        if error.tells_of_damage() && self.damaged.send_if_modified(|met| !std::mem::replace(met, true)) {
            tracing::error!(%error, "the database seems to be damaged");
            self.status().damage_met = Some(error.to_string());
        }
    }

    /// True when this is news.
    pub fn set_failed(&self, error: &Error) -> bool {
        self.met(error);
        let message = error.to_string();
        let mut status = self.status();
        let news = status.failed.as_ref() != Some(&message);
        status.failed = Some(message);
        status.no_space = matches!(error, Error::NoSpace(_));
        news
    }

    /// It can be written again.
    pub fn healed(&self) {
        self.status().succeeded();
    }

    pub fn swept(&self, rows: usize) {
        self.status().swept += rows as u64;
    }

    pub fn checkpointed(&self, positions: Positions, wal_bytes: u64, took: Duration) {
        {
            let mut status = self.status();
            status.checkpoints += 1;
            status.checkpoint_ms = took.as_secs_f64() * 1e3;
        }
        self.now_holds(wal_bytes, positions);
        self.checkpointed.send_if_modified(|through| std::mem::replace(through, positions.stored) != positions.stored);
    }

    pub fn publish_ticket(&self, ticket: u64) {
        self.committed.send_if_modified(|highest| {
            let rises = ticket > *highest;
            *highest = ticket.max(*highest);
            rises
        });
    }
}
