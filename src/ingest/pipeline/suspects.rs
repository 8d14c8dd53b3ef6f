//! What an earlier process may have died of: tried alone first, set aside when that ends the process again and again.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

use iris_core::model::RowKey;

use super::super::worker::{ATTEMPTS_MAX, InWork, Pool, Suspect, Task, Work};
use super::decode::decode;
use super::{Careful, LANES, Mind};
use crate::journal::{Follower, Journal, Read};
use crate::store::Through;

/// What is to be treated with care.
pub(super) struct Suspects {
    in_work: Arc<InWork>,
    left: Vec<Suspect>,
    /// Set aside for good.
    pub aside: Arc<HashSet<Work>>,
    /// Traces to be judged alone.
    pub careful: Careful,
}

/// Decodes the suspect records one at a time. One that ends the process is found here again by the next start.
pub(super) async fn try_alone(
    suspects: Vec<Suspect>,
    journal: &Journal,
    pool: &Pool,
    mind: &Mind,
    in_work: Arc<InWork>,
    stored: Through,
) -> io::Result<Suspects> {
    let is_stored = |work: Work| matches!(work, Work::Record { lane, seq } if seq <= stored.of(lane));
    let mut left: Vec<Suspect> = suspects.into_iter().filter(|suspect| !is_stored(suspect.work)).collect();
    in_work.keep(&left)?;
    in_work.clear()?;
    for suspect in left.clone() {
        let Work::Record { lane, seq } = suspect.work else { continue };
        if suspect.attempts >= ATTEMPTS_MAX || !LANES.contains(&lane) {
            continue;
        }
        // Without the `await` of a record that is not there: deleted, or lost with what carried it.
        let mut reader = journal.reader(lane, Follower::Store, seq.saturating_sub(1));
        let entry = match reader.try_next() {
            Some(Read::Entry(entry)) if entry.seq == seq => Some(entry),
            _ => None,
        };
        if let Some(entry) = entry {
            let mind = mind.clone();
            let task = Task { work: Some(suspect.work), alone: Some(suspect.attempts) };
            // A panic is caught again when the record's turn comes.
            let _ = pool.submit(task, move || drop(decode(&entry, lane, &mind))).await.await;
        }
        left.retain(|other| other.work != suspect.work);
        in_work.keep(&left)?;
    }
    let aside = left.iter().filter(|suspect| suspect.attempts >= ATTEMPTS_MAX).map(|suspect| suspect.work).collect();
    let careful: HashMap<u64, u8> = left
        .iter()
        .filter(|suspect| suspect.attempts < ATTEMPTS_MAX)
        .filter_map(|suspect| match suspect.work {
            Work::Trace { hash } => Some((hash, suspect.attempts)),
            Work::Record { .. } => None,
        })
        .collect();
    Ok(Suspects { in_work, left, aside: Arc::new(aside), careful })
}

impl Suspects {
    /// A trace was judged and the process lives: it is no suspect any more.
    pub(super) fn clear(&mut self, hash: u64) {
        if self.careful.remove(&hash).is_some() {
            self.left.retain(|suspect| suspect.work != Work::Trace { hash });
            // At worst it is judged alone once more.
            let _ = self.in_work.keep(&self.left);
        }
    }

    /// Whether judging a trace ended the process too often.
    pub(super) fn is_aside(&self, hash: u64) -> bool {
        self.aside.contains(&Work::Trace { hash })
    }
}

/// A trace's name in the file.
pub(super) fn hash(key: &RowKey) -> u64 {
    let mut bytes = key.trace_id.as_bytes().to_vec();
    bytes.extend_from_slice(key.tenant.as_str().as_bytes());
    xxhash_rust::xxh3::xxh3_64(&bytes)
}
