//! What a start finds: the segments of a lane, what is damaged in them, and the newest message hashes.
//!
//! The last segment is checked whole, because only it can be torn. In the others headers are walked and bodies
//! are checked when they are read, so that a full journal does not hold up the start. Bytes that are not zero
//! are never cut off: they may be records of a newer version.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use iris_core::model::Lane;

use super::disk::DiskFile;
use super::files::Cursor;
use super::lane::{LaneShared, Segment};
use super::scan::{Bodies, Step};

/// Hashes of accepted messages given back at a start, for the duplicate window.
pub const RECENT_HASHES_MAX: usize = 65_536;
/// Places of damage listed in [`Recovered`]; more are only counted.
const DAMAGE_LISTED_MAX: usize = 1000;

/// What the journal found when it was opened.
#[derive(Debug, Clone, Default)]
pub struct Recovered {
    /// The first seq that can be given out: above everything ever given out.
    pub next_seq: u64,
    /// Whole records on disk.
    pub records: u64,
    /// Records on disk that this program cannot read, kept for one that can.
    pub unknown: u64,
    /// Hashes of the newest OTLP messages and verdicts, oldest first, at most [`RECENT_HASHES_MAX`].
    pub recent: Vec<u128>,
    /// Damaged places, at most 1,000.
    pub damage: Vec<Damage>,
    /// How many damaged places there are.
    pub damaged: u64,
    /// The key of message hashes is new though there are segments: `recent` is empty.
    pub key_renewed: bool,
}

/// One damaged place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Whose segment.
    pub lane: Lane,
    /// The first seq of the segment, which is its name.
    pub segment: u64,
    /// Where in it, in bytes.
    pub offset: u64,
    /// How many bytes cannot be read.
    pub bytes: u64,
    /// What they were.
    pub kind: DamageKind,
}

/// What damaged bytes were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DamageKind {
    /// A record with whole ones after it: an acknowledged record is lost. Its seq, when the header is whole.
    Record {
        /// The lost record.
        seq: Option<u64>,
    },
    /// The end of a segment: usually a write that a crash cut short, which nobody was told of.
    TornTail,
    /// The file ends before its last acknowledged record.
    MissingTail {
        /// The highest acknowledged seq that should be there.
        through: u64,
    },
}

/// A lane as found.
pub(super) struct Found {
    /// The highest seq seen, openings included.
    pub(super) last: u64,
    /// The highest seq in a segment that was kept.
    acknowledged: u64,
    pub(super) records: u64,
    pub(super) unknown: u64,
    pub(super) recent: VecDeque<(u64, u128)>,
    pub(super) damage: Vec<Damage>,
    pub(super) damaged: u64,
}

/// One segment as found.
struct Walk {
    /// Where the last whole frame ends.
    end: u64,
    last: u64,
    records: u64,
    previous: Option<u64>,
    torn: bool,
    is_empty: bool,
}

/// Reads a lane's directory and fills its state.
pub(super) fn recover(lane: &LaneShared, cursor: Cursor) -> io::Result<Found> {
    lane.disk.make_dir(&lane.dir)?;
    let names = lane.disk.list(&lane.dir)?;
    for draft in names.iter().filter(|name| name.ends_with(super::rid::DRAFT)) {
        lane.disk.remove(&lane.dir.join(draft))?;
    }
    let mut firsts: Vec<u64> = names.iter().filter_map(|name| Segment::parse_name(name)).collect();
    firsts.sort_unstable();
    let mut found = Found {
        last: 0,
        acknowledged: 0,
        records: 0,
        unknown: 0,
        recent: VecDeque::new(),
        damage: Vec::new(),
        damaged: 0,
    };
    let mut walks: Vec<(u64, Walk)> = Vec::with_capacity(firsts.len());
    for (index, first) in firsts.iter().enumerate() {
        let is_last = index + 1 == firsts.len();
        let segment = Segment::new(&lane.dir, *first, 0);
        let file = lane.disk.open(&segment.path)?;
        if is_last {
            // A killed process may have left whole records that only the page cache holds.
            file.sync()?;
        }
        let size = file.size_bytes()?;
        let walk = walk(lane, &segment, &file, size, if is_last { Bodies::Check } else { Bodies::Skip }, &mut found);
        if let Some(previous) = walk.previous {
            missing_tail(lane, &walks, previous, &mut found);
        }
        keep(lane, segment, &*file, size, &walk)?;
        found.last = found.last.max(walk.last);
        if !walk.is_empty {
            found.acknowledged = walk.last;
        }
        walks.push((*first, walk));
    }
    missing_tail(lane, &walks, cursor.acknowledged, &mut found);
    lane.disk.sync_dir(&lane.dir)?;
    lane.state().forwarded = cursor.forwarded;
    lane.visible.send_modify(|visible| visible.seq = found.acknowledged);
    Ok(found)
}

fn walk(
    lane: &LaneShared,
    segment: &Segment,
    file: &Arc<dyn DiskFile>,
    size: u64,
    bodies: Bodies,
    found: &mut Found,
) -> Walk {
    let mut scanner = super::scan::Scanner::new(file.clone(), lane.lane, lane.key.clone(), 0);
    let mut walk = Walk { end: 0, last: segment.first, records: 0, previous: None, torn: false, is_empty: true };
    // Damage since the last whole frame; what kind it is shows when the next one comes, or none.
    let mut pending: Vec<(u64, u64, Option<u64>)> = Vec::new();
    loop {
        let step = scanner.step(size, bodies);
        match &step {
            Step::End => break,
            Step::Damaged { at, bytes, seq } => {
                walk.last = walk.last.max(seq.unwrap_or(0));
                walk.is_empty = false;
                pending.push((*at, *bytes, *seq));
                continue;
            }
            Step::Opening { previous } => walk.previous = Some(*previous),
            Step::Unknown { seq } => {
                walk.last = walk.last.max(*seq);
                walk.is_empty = false;
                found.unknown += 1;
            }
            Step::Record { seq, meta, .. } => {
                walk.last = walk.last.max(*seq);
                walk.is_empty = false;
                walk.records += 1;
                if meta.may_come_again() {
                    found.recent.push_back((*seq, meta.hash));
                    if found.recent.len() > RECENT_HASHES_MAX {
                        found.recent.pop_front();
                    }
                }
            }
        }
        for (offset, bytes, seq) in pending.drain(..) {
            found.report(lane, segment.first, offset, bytes, DamageKind::Record { seq });
        }
        walk.end = scanner.at().min(size);
    }
    for (offset, bytes, _) in pending.drain(..) {
        walk.torn = true;
        found.report(lane, segment.first, offset, bytes, DamageKind::TornTail);
    }
    found.records += walk.records;
    walk
}

/// An opening, or the cursors, say that everything up to `through` was acknowledged: the segment that should hold
/// it is looked at. Earlier ones may have been deleted in order.
fn missing_tail(lane: &LaneShared, walks: &[(u64, Walk)], through: u64, found: &mut Found) {
    let Some((segment, walk)) = walks.iter().rev().find(|(first, _)| *first <= through) else { return };
    if !walk.torn && walk.last < through {
        found.report(lane, *segment, walk.end, 0, DamageKind::MissingTail { through });
    }
}

/// Takes a segment into the lane, or deletes it when there is nothing in it.
fn keep(lane: &LaneShared, segment: Segment, file: &dyn DiskFile, size: u64, walk: &Walk) -> io::Result<()> {
    if walk.is_empty {
        return lane.disk.remove(&segment.path);
    }
    let mut size = size;
    if !walk.torn && size > walk.end && file.truncate(walk.end).is_ok() {
        size = walk.end;
    }
    segment.end.store(walk.end, Ordering::Relaxed);
    segment.last.store(walk.last, Ordering::Relaxed);
    segment.records.store(walk.records, Ordering::Relaxed);
    segment.size.store(size, Ordering::Relaxed);
    segment.sealed.store(true, Ordering::Relaxed);
    lane.state().segments.push_back(Arc::new(segment));
    Ok(())
}

impl Found {
    fn report(&mut self, lane: &LaneShared, segment: u64, offset: u64, bytes: u64, kind: DamageKind) {
        self.damaged += 1;
        lane.report_damage(segment, offset, bytes);
        if self.damage.len() < DAMAGE_LISTED_MAX {
            self.damage.push(Damage { lane: lane.lane, segment, offset, bytes, kind });
        }
    }
}
