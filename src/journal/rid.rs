//! Takes records out of segments that are already closed: what is left is copied into a new file, which takes the old
//! one's place. A record that goes leaves its frame without a body, so that no sequence number is missing.

use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::disk::DiskFile;
use super::frame;
use super::lane::{LaneShared, Segment};
use super::scan::{Bodies, Scanner, Step};
use super::{Entry, Journal, Kind, Record, reader};
use crate::deleted::Left;

/// Bytes copied at once.
const COPY_BYTES: usize = 256 * 1024;
/// The name of a copy under way, which a start removes.
pub(super) const DRAFT: &str = "seg.new";

/// What was taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rid {
    /// Segments written anew.
    pub segments: u64,
    /// Records that went, or became smaller.
    pub records: u64,
}

/// Says what of a record stays.
pub type Asked<'a> = &'a dyn Fn(iris_core::model::Lane, &Entry) -> Left;

impl Journal {
    /// Takes out of every closed segment what is not left, on disk when this returns. Readers go on where they were;
    /// what they have read ahead, at most a chunk, they still give out. Damaged bytes stay. Blocks.
    ///
    /// # Errors
    /// When a segment could not be written anew; it is then as it was, and the others are done all the same.
    pub fn rid(&self, asked: Asked<'_>) -> io::Result<Rid> {
        let mut rid = Rid::default();
        let mut failed = Ok(());
        for lane in &self.inner.lanes {
            let lane = &*lane.shared;
            let closed: Vec<Arc<Segment>> =
                lane.state().segments.iter().filter(|segment| segment.is_sealed()).cloned().collect();
            for segment in closed {
                match rid_segment(lane, &segment, asked) {
                    Ok(0) => {}
                    Ok(records) => {
                        rid.segments += 1;
                        rid.records += records;
                    }
                    // Every follower was past it.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => failed = Err(error),
                }
            }
        }
        failed.map(|()| rid)
    }
}

/// How many records of a segment went or became smaller.
fn rid_segment(lane: &LaneShared, segment: &Arc<Segment>, asked: Asked<'_>) -> io::Result<u64> {
    if !has_any(lane, segment, asked)? {
        return Ok(0);
    }
    let path = segment.path.with_extension(DRAFT);
    remove(lane, &path)?;
    let draft = lane.disk.create(&path, segment.end())?;
    let mut copy = Copy {
        lane,
        from: lane.disk.open(&segment.path)?,
        to: draft,
        written: 0,
        pending: 0..0,
        records: 0,
        buffer: Vec::new(),
    };
    let swapped = copy.all(segment, asked).and_then(|()| swap(lane, segment, &path, copy.written));
    match swapped {
        Ok(true) => Ok(copy.records),
        Ok(false) => remove(lane, &path).map(|()| 0),
        Err(error) => {
            // A start removes it otherwise.
            let _ = remove(lane, &path);
            Err(error)
        }
    }
}

fn has_any(lane: &LaneShared, segment: &Segment, asked: Asked<'_>) -> io::Result<bool> {
    let mut scanner = lane.scanner(segment, 0)?;
    loop {
        match scanner.step(segment.end(), Bodies::Read) {
            Step::End => return Ok(false),
            Step::Record { seq, meta, body }
                if left(lane, reader::entry(seq, meta.clone(), body.clone()), asked) != Left::All =>
            {
                return Ok(true);
            }
            _ => {}
        }
    }
}

fn left(lane: &LaneShared, entry: Option<Entry>, asked: Asked<'_>) -> Left {
    match entry {
        Some(entry) if entry.record.kind != Kind::Erased => asked(lane.lane, &entry),
        _ => Left::All,
    }
}

fn remove(lane: &LaneShared, path: &Path) -> io::Result<()> {
    match lane.disk.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Puts the copy in the segment's place; false when the segment has gone meanwhile.
fn swap(lane: &LaneShared, segment: &Arc<Segment>, draft: &Path, bytes: u64) -> io::Result<bool> {
    let copied = Segment::new(&lane.dir, segment.first, bytes);
    copied.end.store(bytes, Ordering::Relaxed);
    copied.last.store(segment.last(), Ordering::Relaxed);
    copied.records.store(segment.records.load(Ordering::Relaxed), Ordering::Relaxed);
    copied.sealed.store(true, Ordering::Relaxed);
    if !lane.replace(segment, copied, || lane.disk.rename(draft, &segment.path))? {
        return Ok(false);
    }
    lane.wake_readers();
    lane.disk.sync_dir(&lane.dir)?;
    Ok(true)
}

/// One segment being copied.
struct Copy<'a> {
    lane: &'a LaneShared,
    from: Arc<dyn DiskFile>,
    to: Arc<dyn DiskFile>,
    written: u64,
    /// Bytes that stay as they are and are not copied yet.
    pending: std::ops::Range<u64>,
    records: u64,
    buffer: Vec<u8>,
}

impl Copy<'_> {
    fn all(&mut self, segment: &Segment, asked: Asked<'_>) -> io::Result<()> {
        let end = segment.end();
        let mut scanner = Scanner::new(self.from.clone(), self.lane.lane, self.lane.key.clone(), 0);
        loop {
            let at = scanner.at();
            let step = scanner.step(end, Bodies::Read);
            let next = scanner.at().min(end);
            let (seq, meta, body) = match step {
                Step::End => break,
                Step::Record { seq, meta, body } => (seq, meta, body),
                _ => {
                    self.keep(at, next)?;
                    continue;
                }
            };
            let entry = reader::entry(seq, meta, body);
            match left(self.lane, entry.clone(), asked) {
                Left::All => self.keep(at, next)?,
                Left::Part(body) => self.change(entry, body.into(), None)?,
                Left::Nothing => self.change(entry, Bytes::new(), Some(Kind::Erased))?,
            }
        }
        self.flush()?;
        self.to.truncate(self.written)?;
        self.to.sync()
    }

    fn keep(&mut self, at: u64, next: u64) -> io::Result<()> {
        if self.pending.end != at {
            self.flush()?;
            self.pending.start = at;
        }
        self.pending.end = next;
        Ok(())
    }

    /// Writes a record with another body in its old one's place.
    fn change(&mut self, entry: Option<Entry>, body: Bytes, kind: Option<Kind>) -> io::Result<()> {
        self.flush()?;
        let Some(Entry { seq, record, .. }) = entry else { return Ok(()) };
        let record = Record { kind: kind.unwrap_or(record.kind), body, ..record };
        let hash = self.lane.key.hash(record.tenant.as_str(), self.lane.lane, &record.body);
        self.buffer.clear();
        frame::push_header(&mut self.buffer, seq, &record, hash, crc32fast::hash(&record.body));
        self.buffer.extend_from_slice(&record.body);
        frame::pad(&mut self.buffer);
        self.records += 1;
        self.write()
    }

    /// Copies what stays as it is. An unreadable byte ends the copying: it may be readable the next time.
    fn flush(&mut self) -> io::Result<()> {
        while !self.pending.is_empty() {
            let bytes = usize::try_from(self.pending.end - self.pending.start).unwrap_or(usize::MAX).min(COPY_BYTES);
            self.buffer.resize(bytes, 0);
            if self.from.read_at(self.pending.start, &mut self.buffer)? < bytes {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.pending.start += bytes as u64;
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        self.to.write_at(self.written, &mut [IoSlice::new(&self.buffer)])?;
        self.written += self.buffer.len() as u64;
        Ok(())
    }
}
