//! The one writer of a lane, a thread of its own: it takes what waits, writes it with one call, syncs once, and
//! only then answers everybody in it. Requests that come meanwhile are the next group.

use std::io::{self, IoSlice};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::disk::DiskFile;
use super::frame::{self, OPENING_BYTES};
use super::keeper::Keeper;
use super::lane::{LaneShared, Segment};
use super::{AppendError, Record, Sync};

/// Records in one write. Twice as many parts and one stay under the 1,024 that Linux takes at once.
const GROUP_RECORDS_MAX: usize = 256;
/// Requests that may wait for a lane; more wait for room. Their bytes are bounded by admission.
pub(super) const QUEUE_RECORDS_MAX: usize = 512;
/// A failure that goes on is told this often.
const TELL_EVERY: Duration = Duration::from_secs(10);
/// Bodies up to this size are copied beside their header: cheaper than a part of their own.
const COPY_BYTES_MAX: usize = 4096;
/// What a refused sender is told to wait.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A record on its way to disk.
pub(super) struct Job {
    pub(super) record: Record,
    pub(super) hash: u128,
    pub(super) checksum: u32,
    /// Absent when nobody waits.
    pub(super) reply: Option<oneshot::Sender<Result<u64, AppendError>>>,
}

impl Job {
    fn stride(&self) -> u64 {
        frame::stride(self.record.tenant.as_str(), self.record.body.len())
    }

    fn answer(self, result: Result<u64, AppendError>) {
        if let Some(reply) = self.reply {
            // Nobody there any more: the record stays, and its sender asks again.
            let _ = reply.send(result);
        }
    }
}

pub(super) enum Command {
    Append(Job),
    /// Ends the open segment, so that it can be deleted once the followers are past it.
    Rotate(oneshot::Sender<()>),
    Close,
}

struct Active {
    segment: Arc<Segment>,
    file: Arc<dyn DiskFile>,
    /// Bytes written and acknowledged.
    written: u64,
    size: u64,
}

pub(super) struct Appender {
    lane: Arc<LaneShared>,
    keeper: Arc<Keeper>,
    seqs: Arc<AtomicU64>,
    sync: Sync,
    commands: mpsc::Receiver<Command>,
    active: Option<Active>,
    /// Headers and small bodies of the group.
    scratch: Vec<u8>,
    /// Where in `scratch` a large body, by its place in the group, stands in between.
    cuts: Vec<(usize, usize)>,
    acknowledged: u64,
    /// When a failure was last told.
    told: Option<Instant>,
}

impl Appender {
    pub(super) fn new(
        lane: Arc<LaneShared>,
        keeper: Arc<Keeper>,
        seqs: Arc<AtomicU64>,
        sync: Sync,
        commands: mpsc::Receiver<Command>,
    ) -> Self {
        let acknowledged = lane.visible.borrow().seq;
        let (active, scratch, cuts, told) = (None, Vec::new(), Vec::new(), None);
        Self { lane, keeper, seqs, sync, commands, active, scratch, cuts, acknowledged, told }
    }

    /// Runs until closed or until nobody can append any more.
    pub(super) fn run(mut self) {
        let mut group = Vec::with_capacity(GROUP_RECORDS_MAX);
        let mut batch = Vec::with_capacity(GROUP_RECORDS_MAX);
        while self.commands.blocking_recv_many(&mut group, GROUP_RECORDS_MAX) > 0 {
            let mut batch_bytes = 0;
            for command in group.drain(..) {
                match command {
                    Command::Append(job) => {
                        let stride = job.stride();
                        if !self.fits(batch_bytes + stride) {
                            self.flush(&mut batch);
                            batch_bytes = 0;
                            if let Err(error) = self.rotate(stride) {
                                job.answer(Err(error));
                                continue;
                            }
                        }
                        batch_bytes += stride;
                        batch.push(job);
                    }
                    Command::Rotate(reply) => {
                        self.flush(&mut batch);
                        batch_bytes = 0;
                        self.seal();
                        let _ = reply.send(());
                    }
                    Command::Close => self.commands.close(),
                }
            }
            self.flush(&mut batch);
        }
        self.seal();
    }

    fn fits(&self, bytes: u64) -> bool {
        self.active.as_ref().is_some_and(|active| active.written.max(OPENING_BYTES) + bytes <= active.size)
    }

    /// Writes, syncs, publishes, answers.
    fn flush(&mut self, batch: &mut Vec<Job>) {
        if batch.is_empty() {
            return;
        }
        let first = self.seqs.fetch_add(batch.len() as u64, Ordering::Relaxed);
        match self.write(batch, first) {
            Ok(()) => {
                self.lane.taken();
                for (seq, job) in (first..).zip(batch.drain(..)) {
                    job.answer(Ok(seq));
                }
            }
            Err(error) => {
                self.lane.counters.failures.fetch_add(1, Ordering::Relaxed);
                self.lane.refused();
                self.tell(&error, "the journal cannot be written");
                // First what was not acknowledged is cut off, then its senders are told to try again.
                self.abandon();
                for job in batch.drain(..) {
                    job.answer(Err(AppendError::Disk(same(&error))));
                }
            }
        }
    }

    /// Says that something fails, and while it goes on says so now and then: the log may be on the same full disk.
    fn tell(&mut self, error: &io::Error, what: &str) {
        if self.told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
            self.told = Some(Instant::now());
            tracing::error!(lane = self.lane.lane.as_str(), %error, "{what}");
        }
    }

    fn write(&mut self, batch: &[Job], first: u64) -> io::Result<()> {
        self.scratch.clear();
        self.cuts.clear();
        let Some(active) = &mut self.active else { return Err(io::Error::other("no open segment")) };
        if self.lane.abandoned.swap(false, Ordering::AcqRel) {
            return Err(io::Error::other("an earlier sync of this segment failed"));
        }
        if active.written == 0 {
            let (lane, key) = (self.lane.lane, &self.lane.key);
            frame::push_opening(&mut self.scratch, active.segment.first, self.acknowledged, lane, key);
        }
        for (index, (seq, job)) in (first..).zip(batch).enumerate() {
            let body = &job.record.body;
            frame::push_header(&mut self.scratch, seq, &job.record, job.hash, job.checksum);
            if body.len() <= COPY_BYTES_MAX {
                self.scratch.extend_from_slice(body);
            } else {
                self.cuts.push((self.scratch.len(), index));
            }
            let padding = frame::padding(frame::HEADER_MIN + job.record.tenant.as_str().len() + body.len());
            self.scratch.resize(self.scratch.len() + padding, 0);
        }
        let mut parts = Vec::with_capacity(self.cuts.len() * 2 + 1);
        let mut from = 0;
        let mut bytes = self.scratch.len() as u64;
        for (cut, index) in &self.cuts {
            let body = &batch[*index].record.body;
            parts.push(IoSlice::new(&self.scratch[from..*cut]));
            parts.push(IoSlice::new(body));
            from = *cut;
            bytes += body.len() as u64;
        }
        parts.push(IoSlice::new(&self.scratch[from..]));
        active.file.write_at(active.written, &mut parts)?;
        match self.sync {
            Sync::Always => {
                active.file.sync()?;
                self.lane.counters.syncs.fetch_add(1, Ordering::Relaxed);
            }
            Sync::Interval => self.lane.leave_unsynced(&active.file),
            Sync::Off => {}
        }
        active.written += bytes;
        let last = first + batch.len() as u64 - 1;
        self.acknowledged = last;
        active.segment.records.fetch_add(batch.len() as u64, Ordering::Relaxed);
        active.segment.last.store(last, Ordering::Release);
        active.segment.end.store(active.written, Ordering::Release);
        self.lane.counters.records.fetch_add(batch.len() as u64, Ordering::Relaxed);
        self.lane.visible.send_modify(|visible| visible.seq = last);
        self.keeper.touch();
        Ok(())
    }

    /// Ends the open segment and starts one with room for a frame of this many bytes.
    fn rotate(&mut self, stride: u64) -> Result<(), AppendError> {
        self.seal();
        let least = OPENING_BYTES + stride;
        let size = match self.room(least, least.max(self.lane.segment_bytes)) {
            ControlFlow::Break(size) => size,
            ControlFlow::Continue(()) => {
                self.lane.counters.refused_full.fetch_add(1, Ordering::Relaxed);
                self.lane.refused();
                return Err(AppendError::Full { retry_after: RETRY_AFTER });
            }
        };
        self.create(size).map_err(|error| {
            self.lane.counters.failures.fetch_add(1, Ordering::Relaxed);
            self.lane.refused();
            self.tell(&error, "the journal cannot start a segment");
            AppendError::Disk(error)
        })
    }

    /// Finds room for a segment: deletes what is released, takes a smaller one, gives up what only the forwarder
    /// needs, in this order.
    fn room(&self, least: u64, wanted: u64) -> ControlFlow<u64> {
        loop {
            let free = self.lane.bytes_max.saturating_sub(self.lane.bytes());
            if free >= wanted {
                return ControlFlow::Break(wanted);
            }
            if self.lane.reclaim() {
                continue;
            }
            if free >= least {
                return ControlFlow::Break(free);
            }
            if !self.lane.drop_for_forwarder() {
                return ControlFlow::Continue(());
            }
        }
    }

    fn create(&mut self, size: u64) -> io::Result<()> {
        let first = self.seqs.fetch_add(1, Ordering::Relaxed);
        let segment = Arc::new(Segment::new(&self.lane.dir, first, size));
        let file = match self.lane.disk.create(&segment.path, size) {
            // Somebody removed the folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.lane.disk.make_dir(&self.lane.dir)?;
                self.lane.disk.create(&segment.path, size)?
            }
            made => made?,
        };
        if self.sync != Sync::Off
            && let Err(error) = self.lane.disk.sync_dir(&self.lane.dir)
        {
            let _ = self.lane.disk.remove(&segment.path);
            return Err(error);
        }
        self.lane.state().segments.push_back(segment.clone());
        self.active = Some(Active { segment, file, written: 0, size });
        Ok(())
    }

    /// Ends the open segment in good order.
    fn seal(&mut self) {
        let Some(active) = &self.active else { return };
        if self.sync == Sync::Interval && active.written > 0 {
            self.lane.take_unsynced();
            match active.file.sync() {
                Ok(()) => self.lane.counters.syncs.fetch_add(1, Ordering::Relaxed),
                Err(_) => self.lane.counters.failures.fetch_add(1, Ordering::Relaxed),
            };
        }
        self.lane.abandoned.store(false, Ordering::Release);
        self.finish(false);
    }

    /// Ends the open segment after a failed write or sync: what was acknowledged in it stays, the rest is cut off.
    fn abandon(&mut self) {
        self.finish(true);
    }

    fn finish(&mut self, failed: bool) {
        let Some(active) = self.active.take() else { return };
        let Active { segment, file, written, .. } = active;
        if written == 0 {
            // Nothing acknowledged is in it. Should the deletion fail, the next start does it.
            self.lane.state().segments.retain(|other| other.first != segment.first);
            let _ = self.lane.disk.remove(&segment.path);
            return;
        }
        // Best effort: zeros after the end do no harm, and unacknowledged records are at worst sent twice.
        if file.truncate(written).is_ok() {
            segment.size.store(written, Ordering::Relaxed);
        }
        if failed {
            let _ = file.sync();
        }
        segment.sealed.store(true, Ordering::Release);
        self.lane.wake_readers();
        self.keeper.touch();
    }
}

impl Drop for Appender {
    fn drop(&mut self) {
        // Also after a panic: nobody shall wait for records that cannot come.
        self.lane.visible.send_modify(|visible| visible.closed = true);
    }
}

fn same(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| io::Error::new(error.kind(), error.to_string()), io::Error::from_raw_os_error)
}
