//! The housekeeper of all lanes, one thread: it deletes what every follower is past, writes the cursors at most
//! once a second, and with `sync = interval` syncs. It sleeps while nothing happens.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::disk::Disk;
use super::files::Cursors;
use super::lane::LaneShared;

/// Between two writes of the cursors.
const CURSORS_PERIOD: Duration = Duration::from_secs(1);

/// Wakes the housekeeper.
#[derive(Default)]
pub(super) struct Keeper {
    touched: AtomicBool,
    closed: Mutex<bool>,
    wake: Condvar,
}

impl Keeper {
    /// Something changed that may want a deletion, a sync or new cursors.
    pub(super) fn touch(&self) {
        if !self.touched.swap(true, Ordering::AcqRel) {
            // The lock closes the moment between its look at the flag and its sleep.
            let _guard = self.closed();
            self.wake.notify_all();
        }
    }

    /// One last round, then it ends.
    pub(super) fn close(&self) {
        *self.closed() = true;
        self.wake.notify_all();
    }

    fn closed(&self) -> MutexGuard<'_, bool> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until touched or closed; true when closed.
    fn wait_for_work(&self) -> bool {
        let idle = |closed: &mut bool| !*closed && !self.touched.load(Ordering::Acquire);
        *self.wake.wait_while(self.closed(), idle).unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps, unless closed.
    fn pause(&self, period: Duration) {
        let (_guard, _) = self
            .wake
            .wait_timeout_while(self.closed(), period, |closed| !*closed)
            .unwrap_or_else(PoisonError::into_inner);
    }
}

pub(super) struct Housekeeping {
    pub(super) keeper: Arc<Keeper>,
    pub(super) lanes: Vec<Arc<LaneShared>>,
    pub(super) disk: Arc<dyn Disk>,
    /// Where the cursors file lies.
    pub(super) dir: PathBuf,
    /// Between two rounds.
    pub(super) period: Duration,
    /// As on disk.
    pub(super) written: Cursors,
}

impl Housekeeping {
    /// Runs until closed.
    pub(super) fn run(mut self) {
        let mut next_write = Instant::now();
        loop {
            let closed = self.keeper.wait_for_work();
            self.keeper.touched.store(false, Ordering::Release);
            for lane in &self.lanes {
                lane.sync_unsynced();
                lane.reclaim();
            }
            if closed || Instant::now() >= next_write {
                self.write_cursors();
                next_write = Instant::now() + CURSORS_PERIOD;
            } else {
                self.keeper.touched.store(true, Ordering::Release);
            }
            if closed {
                return;
            }
            self.keeper.pause(self.period.min(CURSORS_PERIOD));
        }
    }

    fn write_cursors(&mut self) {
        let mut cursors = self.written;
        for lane in &self.lanes {
            cursors.set(lane.lane, lane.cursor());
        }
        if cursors == self.written {
            return;
        }
        match cursors.write(&*self.disk, &self.dir) {
            Ok(()) => self.written = cursors,
            Err(error) => {
                tracing::warn!(%error, "the journal's cursors cannot be written: some records may be sent twice");
            }
        }
    }
}
