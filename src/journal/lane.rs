//! What the parts of one lane share: its segments, how far each follower is, and when a segment may go.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use iris_core::model::Lane;
use tokio::sync::watch;

use super::disk::{Disk, DiskFile};
use super::files::Cursor;
use super::frame::Key;
use super::scan::{Bodies, Scanner, Step};

/// Places of damage remembered a lane, so that none is counted twice.
const DAMAGE_PLACES_MAX: usize = 4096;

/// One file of a lane. What is at or after `end` is not acknowledged and never read.
pub(super) struct Segment {
    /// The seq of its opening; also its name.
    pub(super) first: u64,
    pub(super) path: PathBuf,
    /// Bytes that may be read.
    pub(super) end: AtomicU64,
    /// The highest seq before `end`.
    pub(super) last: AtomicU64,
    /// Records before `end`.
    pub(super) records: AtomicU64,
    /// Bytes it takes on disk.
    pub(super) size: AtomicU64,
    /// Nothing will be appended any more.
    pub(super) sealed: AtomicBool,
    /// Another file stands in its place.
    replaced: AtomicBool,
}

impl Segment {
    pub(super) fn new(dir: &Path, first: u64, size: u64) -> Self {
        Self {
            first,
            path: dir.join(format!("{first:016x}.seg")),
            end: AtomicU64::new(0),
            last: AtomicU64::new(first),
            records: AtomicU64::new(0),
            size: AtomicU64::new(size),
            sealed: AtomicBool::new(false),
            replaced: AtomicBool::new(false),
        }
    }

    /// The first seq of a file's name; `None` for files that are not ours.
    pub(super) fn parse_name(name: &str) -> Option<u64> {
        let digits = name.strip_suffix(".seg")?;
        let plain = digits.len() == 16 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        plain.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
    }

    pub(super) fn last(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    pub(super) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    pub(super) fn is_sealed(&self) -> bool {
        self.sealed.load(Ordering::Acquire)
    }

    /// Whether another file stands in its place: offsets in it mean nothing there.
    pub(super) fn is_replaced(&self) -> bool {
        self.replaced.load(Ordering::Acquire)
    }
}

/// What readers wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Visible {
    /// The highest acknowledged seq.
    pub(super) seq: u64,
    /// Nothing will be appended any more.
    pub(super) closed: bool,
}

#[derive(Default)]
pub(super) struct State {
    /// In rising order; the last may be open.
    pub(super) segments: VecDeque<Arc<Segment>>,
    /// Released, but could not be deleted yet.
    doomed: Vec<Arc<Segment>>,
    pub(super) stored: u64,
    pub(super) forwarded: u64,
    /// Everything up to here that the forwarder had not passed was dropped for it.
    pub(super) dropped_through: u64,
}

/// Counters since the start, for `status`.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) records: AtomicU64,
    pub(super) syncs: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) refused_full: AtomicU64,
    pub(super) damaged: AtomicU64,
    pub(super) dropped_records: AtomicU64,
    pub(super) dropped_segments: AtomicU64,
    /// When an append failed or found the lane full with none taken since, in milliseconds after `born`; 0: none.
    refused_at_ms: AtomicU64,
}

pub(super) struct LaneShared {
    pub(super) lane: Lane,
    pub(super) dir: PathBuf,
    pub(super) bytes_max: u64,
    pub(super) segment_bytes: u64,
    pub(super) forwarding: bool,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) key: Arc<Key>,
    pub(super) state: Mutex<State>,
    /// Held while files are deleted: one at a time, and space counts as free only when it is.
    reclaiming: Mutex<()>,
    /// Held while a file takes another's place, and while one is opened.
    replacing: Mutex<()>,
    pub(super) visible: watch::Sender<Visible>,
    pub(super) counters: Counters,
    born: Instant,
    /// A later sync of the open segment failed: it must not be written any more (`sync = interval`).
    pub(super) abandoned: AtomicBool,
    /// The open segment, when it was written after its last sync (`sync = interval`).
    unsynced: Mutex<Option<Arc<dyn DiskFile>>>,
    damage_places: Mutex<BTreeSet<(u64, u64)>>,
}

impl LaneShared {
    pub(super) fn new(lane: Lane, dir: PathBuf, limits: Limits, disk: Arc<dyn Disk>, key: Arc<Key>) -> Self {
        Self {
            lane,
            dir,
            bytes_max: limits.bytes_max,
            segment_bytes: limits.segment_bytes,
            forwarding: limits.forwarding,
            disk,
            key,
            state: Mutex::default(),
            reclaiming: Mutex::default(),
            replacing: Mutex::default(),
            visible: watch::Sender::new(Visible { seq: 0, closed: false }),
            counters: Counters::default(),
            born: Instant::now(),
            abandoned: AtomicBool::new(false),
            unsynced: Mutex::default(),
            damage_places: Mutex::default(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An append was not taken.
    pub(super) fn refused(&self) {
        self.counters.refused_at_ms.store(self.since_born_ms().max(1), Ordering::Relaxed);
    }

    /// An append was taken.
    pub(super) fn taken(&self) {
        self.counters.refused_at_ms.store(0, Ordering::Relaxed);
    }

    /// How long ago an append was not taken, when none was taken since.
    pub(super) fn refusing_ms(&self) -> Option<u64> {
        let at = self.counters.refused_at_ms.load(Ordering::Relaxed);
        (at > 0).then(|| self.since_born_ms().saturating_sub(at))
    }

    fn since_born_ms(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Metrics are only ever forwarded: no store follows that lane.
    pub(super) fn is_stored(&self) -> bool {
        self.lane != Lane::Metrics
    }

    pub(super) fn leave_unsynced(&self, file: &Arc<dyn DiskFile>) {
        let mut unsynced = self.unsynced.lock().unwrap_or_else(PoisonError::into_inner);
        unsynced.get_or_insert_with(|| file.clone());
    }

    pub(super) fn take_unsynced(&self) -> Option<Arc<dyn DiskFile>> {
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn sync_unsynced(&self) {
        let Some(file) = self.take_unsynced() else { return };
        if let Err(error) = file.sync() {
            tracing::error!(lane = self.lane.as_str(), %error, "the journal cannot be synced");
            self.counters.failures.fetch_add(1, Ordering::Relaxed);
            self.abandoned.store(true, Ordering::Release);
        } else {
            self.counters.syncs.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        let state = self.state();
        state.segments.iter().chain(&state.doomed).map(|segment| segment.size.load(Ordering::Relaxed)).sum()
    }

    pub(super) fn cursor(&self) -> Cursor {
        let forwarded = self.state().forwarded;
        Cursor { forwarded, acknowledged: self.visible.borrow().seq }
    }

    /// Opens a segment for walking from a place in it.
    pub(super) fn scanner(&self, segment: &Segment, at: u64) -> io::Result<Scanner> {
        let _whole = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        if segment.is_replaced() {
            return Err(io::Error::other("the segment was written anew"));
        }
        let file = self.disk.open(&segment.path)?;
        Ok(Scanner::new(file, self.lane, self.key.clone(), at))
    }

    /// Counts and logs damage, once a place.
    pub(super) fn report_damage(&self, segment: u64, at: u64, bytes: u64) {
        let mut places = self.damage_places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() < DAMAGE_PLACES_MAX && places.insert((segment, at)) {
            self.counters.damaged.fetch_add(1, Ordering::Relaxed);
            let lane = self.lane.as_str();
            tracing::error!(lane, segment = format!("{segment:016x}"), at, bytes, "the journal has damaged bytes");
        }
    }

    /// Puts another file in a segment's place by this renaming; false when the segment has gone.
    pub(super) fn replace(
        &self,
        segment: &Arc<Segment>,
        by: Segment,
        rename: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<bool> {
        let _alone = self.reclaiming.lock().unwrap_or_else(PoisonError::into_inner);
        let _whole = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let place = self.state().segments.iter().position(|known| Arc::ptr_eq(known, segment));
        let Some(place) = place else { return Ok(false) };
        rename()?;
        segment.replaced.store(true, Ordering::Release);
        // Only what is deleted leaves from the front, and that is held up.
        if let Some(known) = self.state().segments.get_mut(place) {
            *known = Arc::new(by);
        }
        Ok(true)
    }

    /// Deletes what every follower is past, oldest first. Returns whether anything was deleted.
    pub(super) fn reclaim(&self) -> bool {
        let _alone = self.reclaiming.lock().unwrap_or_else(PoisonError::into_inner);
        let mut deleted = false;
        while let Some(segment) = self.take_released() {
            match self.disk.remove(&segment.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(lane = self.lane.as_str(), %error, "a journal segment cannot be deleted yet");
                    self.state().doomed.push(segment);
                    return deleted;
                }
                _ => deleted = true,
            }
            // One by one: after a crash the oldest may be back, but never with a younger one missing.
            if let Err(error) = self.disk.sync_dir(&self.dir) {
                tracing::warn!(lane = self.lane.as_str(), %error, "a deletion in the journal may not be durable");
            }
        }
        deleted
    }

    fn take_released(&self) -> Option<Arc<Segment>> {
        let mut state = self.state();
        if let Some(segment) = state.doomed.pop() {
            return Some(segment);
        }
        let front = state.segments.front()?;
        let released = front.is_sealed()
            && (!self.is_stored() || state.stored >= front.last())
            && (!self.forwarding || state.forwarded >= front.last());
        if released { state.segments.pop_front() } else { None }
    }

    /// Gives up the oldest segment for the forwarder, when only the forwarder still needs it.
    pub(super) fn drop_for_forwarder(&self) -> bool {
        let (front, forwarded) = {
            let state = self.state();
            let Some(front) = state.segments.front().cloned() else { return false };
            let only_forward = self.forwarding
                && front.is_sealed()
                && state.forwarded < front.last()
                && (!self.is_stored() || state.stored >= front.last());
            if !only_forward {
                return false;
            }
            (front, state.forwarded)
        };
        let lost = self.records_after(&front, forwarded);
        {
            let mut state = self.state();
            state.forwarded = state.forwarded.max(front.last());
            state.dropped_through = state.dropped_through.max(front.last());
        }
        self.counters.dropped_records.fetch_add(lost, Ordering::Relaxed);
        self.counters.dropped_segments.fetch_add(1, Ordering::Relaxed);
        self.wake_readers();
        self.reclaim()
    }

    /// Records of a segment that the forwarder is not past.
    fn records_after(&self, segment: &Segment, seq: u64) -> u64 {
        if seq < segment.first {
            return segment.records.load(Ordering::Relaxed);
        }
        let Ok(mut scanner) = self.scanner(segment, 0) else { return 0 };
        let mut count = 0;
        loop {
            match scanner.step(segment.end(), Bodies::Skip) {
                Step::End => return count,
                Step::Record { seq: found, .. } if found > seq => count += 1,
                _ => {}
            }
        }
    }

    pub(super) fn wake_readers(&self) {
        self.visible.send_modify(|_| {});
    }
}

/// What bounds a lane, and whether a forwarder follows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) bytes_max: u64,
    pub(super) segment_bytes: u64,
    pub(super) forwarding: bool,
}
