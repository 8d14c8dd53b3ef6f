//! What a walk finds: how much there is, what is wrong, and which bytes have to go.
//!
//! Both encodings share it. A *unit* is what can be rejected alone: a span, a log record, a data point, or the
//! metric, scope or resource around them. A fault inside a unit rejects the unit; the innermost one counts.

use std::fmt;

use super::schema::Unit;
use super::wire::put_varint;
use super::{DEPTH_MAX, Limits, Stop, Walked};
use crate::model::TraceId;

/// What is to go of a body that was accepted.
pub(super) enum Unwanted<'a> {
    /// Spans and records of the traces of which this says so.
    Of(&'a mut dyn FnMut(TraceId) -> bool),
    /// Items by their place among the items of the body.
    At(&'a [bool]),
    /// Resources by their place among those of the body.
    Resources(&'a [bool]),
}

impl Unwanted<'_> {
    /// Whether a unit is to go by its place.
    fn has(&self, unit: Unit, index: u64) -> bool {
        let places = match self {
            Self::At(places) if unit.is_item() => places,
            Self::Resources(places) if unit == Unit::Resource => places,
            _ => return false,
        };
        usize::try_from(index).ok().and_then(|index| places.get(index)).copied().unwrap_or(false)
    }
}

/// The running account of one walk.
pub(super) struct Tally<'a> {
    limits: Limits,
    unwanted: Option<Unwanted<'a>>,
    /// Whether a fault stops everything instead of rejecting its unit.
    strict: bool,
    counted: usize,
    accepted: u64,
    rejected: u64,
    message: Option<String>,
    /// Units met so far, by kind: the index of the next one.
    met: [u64; Unit::COUNT],
    /// The unit being read.
    unit: Option<(Unit, u64)>,
    /// Whether it has a fault.
    faulty: bool,
    edits: Vec<Edit>,
}

/// How things stood when a unit was opened.
pub(super) struct Opened {
    unit: Option<(Unit, u64)>,
    faulty: bool,
    accepted: u64,
    edits: usize,
}

/// Bytes of the body that go, replaced by a length or by nothing.
#[derive(Clone, Copy)]
struct Edit {
    start: u32,
    end: u32,
    length: Option<u32>,
}

impl<'a> Tally<'a> {
    /// A tally that rejects units.
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            unwanted: None,
            strict: false,
            counted: 0,
            accepted: 0,
            rejected: 0,
            message: None,
            met: [0; Unit::COUNT],
            unit: None,
            faulty: false,
            edits: Vec::new(),
        }
    }

    /// A tally for a body that was accepted: any fault stops.
    pub(super) fn strict() -> Self {
        Self { strict: true, ..Self::new(Limits { items_max: usize::MAX, ..Limits::default() }) }
    }

    /// A tally that rejects what is unwanted, for a body that was accepted.
    pub(super) fn without(unwanted: Unwanted<'a>) -> Self {
        let limits = Limits { items_max: usize::MAX, ..Limits::default() };
        Self { unwanted: Some(unwanted), ..Self::new(limits) }
    }

    /// The unit being read is of this trace.
    #[inline]
    pub(super) fn of_trace(&mut self, trace_id: impl FnOnce() -> Option<TraceId>) {
        if let Some(Unwanted::Of(unwanted)) = &mut self.unwanted
            && let Some(trace_id) = trace_id()
        {
            self.faulty |= unwanted(trace_id);
        }
    }

    /// Counts one repeated item.
    #[inline]
    pub(super) fn count(&mut self) -> Result<(), Stop> {
        self.counted += 1;
        if self.counted > self.limits.items_max {
            return Err(Stop::TooMany { items: self.counted, max: self.limits.items_max });
        }
        Ok(())
    }

    /// One level deeper into a value.
    #[inline]
    pub(super) fn deeper(&self, depth: usize) -> Result<usize, Stop> {
        let max = self.limits.depth_max.min(DEPTH_MAX);
        if depth >= max {
            return Err(Stop::TooDeep { max });
        }
        Ok(depth + 1)
    }

    /// A unit begins.
    pub(super) fn open(&mut self, unit: Unit) -> Opened {
        let opened = Opened { unit: self.unit, faulty: self.faulty, accepted: self.accepted, edits: self.edits.len() };
        let index = self.met.get_mut(unit as usize).map_or(0, |met| {
            *met += 1;
            *met - 1
        });
        self.unit = Some((unit, index));
        self.faulty = self.unwanted.as_ref().is_some_and(|unwanted| unwanted.has(unit, index));
        opened
    }

    /// A unit has ended. True when it was rejected, and with it what was accepted inside: then its bytes are to
    /// be cut.
    pub(super) fn close(&mut self, opened: &Opened) -> bool {
        let unit = self.unit;
        let rejected = self.faulty;
        self.unit = opened.unit;
        self.faulty = opened.faulty;
        let own = u64::from(unit.is_some_and(|(unit, _)| unit.is_item()));
        if !rejected {
            self.accepted += own;
            return false;
        }
        self.rejected += self.accepted - opened.accepted + own;
        self.accepted = opened.accepted;
        self.edits.truncate(opened.edits);
        true
    }

    /// Something is wrong with the unit being read, or with the body when there is none.
    pub(super) fn fault(&mut self, offset: usize, why: fmt::Arguments<'_>) -> Result<(), Stop> {
        let Some((unit, index)) = self.unit.filter(|_| !self.strict) else {
            return Err(Stop::Malformed { offset, why: "a field does not hold what OTLP says it does" });
        };
        self.faulty = true;
        self.message.get_or_insert_with(|| format!("{} {index}: {why}", unit.name()));
        Ok(())
    }

    /// Says something about a body of which nothing was rejected.
    pub(super) fn warn(&mut self, why: &str) {
        self.message.get_or_insert_with(|| why.to_owned());
    }

    /// Bytes that go.
    pub(super) fn cut(&mut self, start: usize, end: usize) {
        let (start, end) = (offset(start), offset(end));
        match self.edits.last_mut() {
            Some(last) if last.end == start && last.length.is_none() => last.end = end,
            _ => self.edits.push(Edit { start, end, length: None }),
        }
    }

    /// A length that changes.
    pub(super) fn relength(&mut self, start: usize, end: usize, length: usize) {
        self.edits.push(Edit { start: offset(start), end: offset(end), length: Some(offset(length)) });
    }

    /// The result, with the body rewritten when anything went.
    pub(super) fn finish(mut self, body: &[u8]) -> Walked {
        let rewritten = (!self.edits.is_empty()).then(|| {
            self.edits.sort_unstable_by_key(|edit| edit.start);
            apply(body, &self.edits)
        });
        Walked { items: self.accepted, rejected: self.rejected, message: self.message, rewritten }
    }
}

/// Offsets fit: [`walk`](super::walk) refuses a body of 4 GiB.
fn offset(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

fn apply(body: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    let mut at = 0;
    for edit in edits {
        out.extend_from_slice(body.get(at..edit.start as usize).unwrap_or_default());
        if let Some(length) = edit.length {
            put_varint(&mut out, u64::from(length));
        }
        at = edit.end as usize;
    }
    out.extend_from_slice(body.get(at..).unwrap_or_default());
    out
}
