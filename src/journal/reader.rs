//! Follows one lane: acknowledged records in order, each checked once more on its way out.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;

use super::frame::Meta;
use super::lane::{LaneShared, Segment, Visible};
use super::scan::{Bodies, Scanner, Step};
use super::{Entry, Follower, Read};

/// After a segment could not be opened (no file handle left, say) the next try waits this long.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// One follower's place in one lane. It keeps one chunk of a segment in memory and no body.
pub struct Reader {
    lane: Arc<LaneShared>,
    who: Follower,
    visible: watch::Receiver<Visible>,
    /// Everything up to here was handed out or is behind the follower.
    at: u64,
    place: Option<Place>,
    /// Segments that began at or before this seq are read to their end.
    finished: u64,
}

struct Place {
    segment: Arc<Segment>,
    offset: u64,
    /// Absent while another thread reads with it, for good when the wait was given up; then it is opened again.
    scanner: Option<Scanner>,
}

/// What one look gave.
enum Look {
    Found(Read),
    Nothing,
    /// The next frame is not in memory.
    NeedsDisk,
}

impl Reader {
    pub(super) fn new(lane: Arc<LaneShared>, who: Follower, after: u64) -> Self {
        let visible = lane.visible.subscribe();
        Self { lane, who, visible, at: after, place: None, finished: 0 }
    }

    /// The next record, as soon as there is one. May be given up and asked again: nothing is lost.
    /// Disk reads are done on the blocking pool.
    pub async fn next(&mut self) -> Read {
        loop {
            let closed = self.visible.borrow_and_update().closed;
            match self.look(false) {
                Ok(Look::Found(read)) => return read,
                Ok(Look::NeedsDisk) => {
                    if let Some(read) = self.look_at_disk().await {
                        return read;
                    }
                }
                Ok(Look::Nothing) if closed => return Read::Closed,
                Ok(Look::Nothing) => {
                    if self.visible.changed().await.is_err() {
                        return Read::Closed;
                    }
                }
                Err(_) if self.is_replaced() => {}
                Err(error) => {
                    tracing::warn!(lane = self.lane.lane.as_str(), %error, "a journal segment cannot be read yet");
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            }
        }
    }

    /// The next record if there is one now. Reads the disk on this thread.
    pub fn try_next(&mut self) -> Option<Read> {
        loop {
            let closed = self.visible.borrow_and_update().closed;
            match self.look(true) {
                Ok(Look::Found(read)) => return Some(read),
                Ok(_) => return closed.then_some(Read::Closed),
                Err(_) if self.is_replaced() => {}
                Err(error) => {
                    tracing::warn!(lane = self.lane.lane.as_str(), %error, "a journal segment cannot be read yet");
                    return None;
                }
            }
        }
    }

    /// Whether another file stands where the next record is looked for: it is then looked for there.
    fn is_replaced(&mut self) -> bool {
        let is_replaced = self.place.as_ref().is_some_and(|place| place.segment.is_replaced());
        if is_replaced {
            self.place = None;
        }
        is_replaced
    }

    async fn look_at_disk(&mut self) -> Option<Read> {
        let place = self.place.as_mut()?;
        let (lane, segment, offset, scanner) =
            (self.lane.clone(), place.segment.clone(), place.offset, place.scanner.take());
        let work = tokio::task::spawn_blocking(move || {
            let mut scanner = match scanner {
                Some(scanner) => scanner,
                None => open(&lane, &segment, offset)?,
            };
            let step = scanner.step(segment.end(), Bodies::Read);
            io::Result::Ok((scanner, step))
        });
        match work.await {
            Ok(Ok((scanner, step))) => {
                place.scanner = Some(scanner);
                self.take(step)
            }
            Ok(Err(error)) => {
                self.cannot_open(&error);
                if !self.is_replaced() {
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                None
            }
            // The runtime is shutting down; the caller's own wait ends with it.
            Err(_) => {
                tokio::time::sleep(RETRY_PAUSE).await;
                None
            }
        }
    }

    fn look(&mut self, may_read: bool) -> io::Result<Look> {
        loop {
            if let Some(gap) = self.gap() {
                return Ok(Look::Found(gap));
            }
            self.is_replaced();
            if self.at >= self.visible.borrow().seq || !self.find_place() {
                return Ok(Look::Nothing);
            }
            let Some(place) = self.place.as_mut() else { return Ok(Look::Nothing) };
            // Sealed before the end is read: whatever was appended last is then before it.
            let sealed = place.segment.is_sealed();
            let end = place.segment.end();
            if place.offset >= end {
                if !sealed {
                    return Ok(Look::Nothing);
                }
                self.finished = place.segment.first;
                self.place = None;
                continue;
            }
            if !may_read && place.scanner.as_ref().is_none_or(|scanner| !scanner.is_buffered(end)) {
                return Ok(Look::NeedsDisk);
            }
            let mut scanner = match place.scanner.take() {
                Some(scanner) => scanner,
                None => match open(&self.lane, &place.segment, place.offset) {
                    Ok(scanner) => scanner,
                    Err(error) => {
                        self.cannot_open(&error);
                        return Err(error);
                    }
                },
            };
            let step = scanner.step(end, Bodies::Read);
            place.scanner = Some(scanner);
            if let Some(read) = self.take(step) {
                return Ok(Look::Found(read));
            }
        }
    }

    /// What was dropped for the forwarder before it got there.
    fn gap(&mut self) -> Option<Read> {
        if self.who != Follower::Forward {
            return None;
        }
        let dropped = self.lane.state().dropped_through;
        if self.at >= dropped {
            return None;
        }
        let first = self.at + 1;
        self.at = dropped;
        if self.place.as_ref().is_some_and(|place| place.segment.last() <= dropped && place.segment.is_sealed()) {
            self.place = None;
        }
        Some(Read::Gap { first, last: dropped })
    }

    /// Stands in the first segment that may hold something new; false when there is none.
    fn find_place(&mut self) -> bool {
        if self.place.is_none() {
            let state = self.lane.state();
            let after = |segment: &&Arc<Segment>| segment.first > self.finished && segment.last() > self.at;
            let segment = state.segments.iter().find(after).cloned();
            self.place = segment.map(|segment| Place { segment, offset: 0, scanner: None });
        }
        self.place.is_some()
    }

    /// Moves past a step; a record that is new is handed out.
    fn take(&mut self, step: Step) -> Option<Read> {
        let place = self.place.as_mut()?;
        match &place.scanner {
            Some(scanner) if !matches!(step, Step::End) => place.offset = scanner.at(),
            _ => place.offset = place.segment.end(),
        }
        match step {
            Step::Record { seq, meta, body } if seq > self.at => {
                self.at = seq;
                entry(seq, meta, body).map(Read::Entry)
            }
            Step::Damaged { at, bytes, .. } => {
                self.lane.report_damage(place.segment.first, at, bytes);
                None
            }
            _ => None,
        }
    }

    /// A segment that is gone though it was not released is damage; anything else may pass.
    fn cannot_open(&mut self, error: &io::Error) {
        if error.kind() != io::ErrorKind::NotFound {
            return;
        }
        if let Some(place) = self.place.take() {
            self.finished = place.segment.first;
            let known = self.lane.state().segments.iter().any(|segment| segment.first == place.segment.first);
            if known {
                self.lane.report_damage(place.segment.first, 0, place.segment.end());
            }
        }
    }
}

fn open(lane: &LaneShared, segment: &Segment, offset: u64) -> io::Result<Scanner> {
    lane.scanner(segment, offset)
}

pub(super) fn entry(seq: u64, meta: Meta, body: Bytes) -> Option<Entry> {
    let body_hash = meta.hash;
    Some(Entry { seq, record: meta.record(body)?, body_hash })
}
