//! One open trace: what is known of its spans, and whether it is complete.

use std::collections::{HashMap, HashSet};
use std::hash::RandomState;
use std::sync::Arc;
use std::time::Duration;

use super::position::{Low, lower};
use super::weight::row_bytes;
use super::{Config, Loaded};
use crate::model::{Evaluation, Lane, Observation, Position, RawSpan, Reading, Resource, Role, Row, SpanId, Timestamp};

/// The longest wait for silence, however often a trace was reopened.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// Roots that are looked at although a trace has too many rows.
const ROOTS_BEYOND_MAX: usize = 64;

/// What becomes of a trace's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Not known yet: they wait.
    Held,
    /// They go to the writer as they come.
    Stored,
}

/// Where a trace is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// For more rows, or for silence.
    Waiting,
    /// The store was asked for its rows.
    Loading,
    /// It was handed out.
    Judging,
    /// Its evaluation waits for this commit.
    Judged(u64),
}

/// Whether the store may have rows or evaluations of it that are not in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Past {
    /// It is new as far as anybody knows.
    Unasked,
    /// It has one, of at least so many rows.
    Needed { rows: u32 },
    /// It had one, which was dropped: its root and parents will not come.
    Dropped,
    /// All of it is here, or was spilled.
    Known,
}

/// What makes a row the same as another of its trace.
pub(super) type RowId = (SpanId, u64);

#[derive(Debug, Default)]
struct Node {
    present: bool,
    ended: bool,
    root: bool,
    model: bool,
    content: bool,
}

#[derive(Debug)]
pub(super) struct Open {
    pub(super) serial: u64,
    pub(super) opened: Duration,
    /// When it last gained something.
    pub(super) last: Duration,
    pub(super) phase: Phase,
    pub(super) fate: Fate,
    pub(super) past: Past,
    /// It may be one that was judged and forgotten, whatever times its spans claim.
    pub(super) forgotten: bool,
    pub(super) agentic: bool,
    pub(super) rows: Vec<Arc<Row>>,
    /// Some rows are only in the store.
    pub(super) spilled: bool,
    pub(super) bytes: usize,
    pub(super) seen: HashSet<RowId>,
    nodes: HashMap<SpanId, Node>,
    missing: HashSet<SpanId>,
    roots: usize,
    roots_unended: usize,
    models_without_content: usize,
    resource: Option<Arc<Resource>>,
    several_resources: bool,
    request: Option<(crate::model::Lane, u64)>,
    several_requests: bool,
    /// Nothing but steps that were sent as log records: no root says that the run has ended.
    only_records: bool,
    earliest: Option<Timestamp>,
    pub(super) seen_through: u64,
    /// The last version judged; 0 for none.
    pub(super) version: u32,
    pub(super) previous: Option<Arc<Evaluation>>,
    /// It gained something since it was last handed out.
    pub(super) fresh: bool,
    /// It has rows that are not looked at, or lacks rows that it had.
    pub(super) cut: bool,
    pub(super) provisional: bool,
    /// Loaded in order to be closed: not to be spilled at once.
    pub(super) hot: bool,
    /// Close it as partial at the next opportunity.
    pub(super) forced: bool,
    pub(super) tries: u8,
    pub(super) retry: Option<Duration>,
    /// The lowest positions among rows that no evaluation covers.
    pub(super) uncovered: Low,
    /// The same of the rows that are being judged.
    pub(super) judging: Low,
    pub(super) queued: Option<Duration>,
}

impl Open {
    pub(super) fn new(serial: u64, now: Duration, hasher: &RandomState) -> Self {
        Self {
            serial,
            opened: now,
            last: now,
            phase: Phase::Waiting,
            fate: Fate::Held,
            past: Past::Unasked,
            forgotten: false,
            agentic: false,
            rows: Vec::new(),
            spilled: false,
            bytes: 0,
            seen: HashSet::with_hasher(hasher.clone()),
            nodes: HashMap::with_hasher(hasher.clone()),
            missing: HashSet::with_hasher(hasher.clone()),
            roots: 0,
            roots_unended: 0,
            models_without_content: 0,
            resource: None,
            several_resources: false,
            request: None,
            several_requests: false,
            only_records: true,
            earliest: None,
            seen_through: 0,
            version: 0,
            previous: None,
            fresh: false,
            cut: false,
            provisional: false,
            hot: false,
            forced: false,
            tries: 0,
            retry: None,
            uncovered: [None, None],
            judging: [None, None],
            queued: None,
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.phase == Phase::Waiting && !self.forced
    }

    pub(super) fn is_duplicate(&self, row: &Row) -> bool {
        self.seen.contains(&(row.span_id, row.content_hash))
    }

    /// Whether rows that come now keep `settled_through` back.
    pub(super) fn holds_position(&self) -> bool {
        self.fate == Fate::Held || self.agentic || matches!(self.past, Past::Needed { .. })
    }

    pub(super) fn cover_from(&mut self, position: Position) {
        lower(&mut self.uncovered, position);
    }

    /// Whether all its rows are in memory.
    pub(super) fn is_whole(&self) -> bool {
        !self.spilled && !matches!(self.past, Past::Needed { .. })
    }

    /// Whether the store may know of it although nobody here does.
    pub(super) fn is_suspect(&self, horizon: Timestamp) -> bool {
        self.past == Past::Unasked && (self.forgotten || self.earliest.is_some_and(|earliest| earliest < horizon))
    }

    /// Whether it is an orphan of a trace that nobody here knows.
    pub(super) fn is_orphaned(&self) -> bool {
        self.past == Past::Unasked && !self.missing.is_empty()
    }

    /// A local root has ended, every local root has, and no parent is missing.
    pub(super) fn is_ready(&self) -> bool {
        self.past == Past::Dropped
            || self.is_recorded()
            || (self.roots > 0 && self.roots_unended == 0 && self.missing.is_empty())
    }

    /// Whether only silence tells that it is over.
    fn is_recorded(&self) -> bool {
        self.only_records && !self.nodes.is_empty()
    }

    fn is_complete(&self) -> bool {
        self.agentic && self.version == 0 && self.past == Past::Unasked && !self.several_requests && self.is_ready()
    }

    /// How much silence settles it.
    pub(super) fn wait(&self, config: &Config) -> Duration {
        let late = self.several_resources || self.models_without_content > 0 || self.past == Past::Dropped;
        let base = if self.is_recorded() {
            config.idle()
        } else if late {
            config.settle()
        } else if self.is_complete() {
            config.complete()
        } else {
            config.quiet()
        };
        let doubled = base.saturating_mul(1 << self.version.min(16));
        doubled.min(WAIT_MAX.max(base))
    }

    /// Takes a row that is no duplicate. False: there are too many, and it is not looked at.
    pub(super) fn take(&mut self, row: &Arc<Row>, rows_max: usize) -> bool {
        let is_root = row.span().is_some_and(RawSpan::is_local_root);
        let max = if is_root { rows_max.saturating_add(ROOTS_BEYOND_MAX) } else { rows_max };
        self.seen_through = self.seen_through.max(row.position.seq);
        self.agentic |= row.reading.is_agentic();
        if self.seen.len() >= max {
            self.cut = true;
            return false;
        }
        self.seen.insert((row.span_id, row.content_hash));
        self.note(row);
        self.bytes += row_bytes(row);
        self.rows.push(row.clone());
        true
    }

    /// Puts what the store had beside what is here. False, and nothing done: it lacks rows that it must have,
    /// because the writer has not committed them yet. After too many tries the trace goes on without them.
    pub(super) fn merge(&mut self, loaded: Loaded, rows_max: usize, last_try: bool) -> bool {
        let mut here: HashSet<RowId> = self.rows.iter().map(|row| (row.span_id, row.content_hash)).collect();
        let mut stored: HashMap<RowId, u64> = HashMap::with_capacity(loaded.rows.len());
        for row in &loaded.rows {
            let seq = stored.entry((row.span_id, row.content_hash)).or_insert(row.position.seq);
            *seq = row.position.seq.min(*seq);
        }
        let expected = if let Past::Needed { rows } = self.past { rows as usize } else { 0 };
        let lacks = stored.len() < expected
            || (self.spilled && self.seen.iter().any(|id| !here.contains(id) && !stored.contains_key(id)));
        if lacks && !last_try {
            return false;
        }
        self.cut |= lacks;
        let unknown = matches!(self.past, Past::Needed { .. }) || (self.version == 0 && loaded.version > 0);
        if loaded.version > self.version || (self.previous.is_none() && loaded.evaluation.is_some()) {
            self.previous = loaded.evaluation;
        }
        self.version = self.version.max(loaded.version);
        if unknown {
            // An evaluation whose trace is missing, as only damage leaves it, covers nothing: the trace is made anew.
            let judged = self.previous.as_ref().filter(|_| self.version > 0);
            let covered = judged.map_or(0, |evaluation| evaluation.seen_through);
            let came_later = |row: &Arc<Row>| {
                stored.get(&(row.span_id, row.content_hash)).is_none_or(|seq| *seq >= row.position.seq)
            };
            self.fresh =
                self.rows.iter().any(came_later) || stored.iter().any(|(id, seq)| *seq > covered && !here.contains(id));
        }
        for row in loaded.rows {
            if !here.insert((row.span_id, row.content_hash)) {
                continue;
            }
            if self.seen.contains(&(row.span_id, row.content_hash)) {
                self.bytes += row_bytes(&row);
                self.rows.push(row);
            } else {
                self.take(&row, rows_max);
            }
        }
        true
    }

    /// Its text, when nothing but a short silence keeps it from being judged for the first time.
    pub(super) fn closing_bytes(&self) -> usize {
        let closes = self.agentic && self.version == 0 && self.is_whole() && self.roots > 0 && self.is_ready();
        if closes && !self.is_recorded() { self.bytes } else { 0 }
    }

    /// Gives up its text. Ids, parents and times stay.
    pub(super) fn spill(&mut self) {
        self.rows = Vec::new();
        self.bytes = 0;
        self.spilled = true;
    }

    fn note(&mut self, row: &Row) {
        let request = (row.position.lane, row.position.seq);
        self.several_requests |= self.request.is_some_and(|first| first != request);
        self.request.get_or_insert(request);
        self.only_records &= row.position.lane == Lane::Logs && row.span().is_some();
        let began = match &row.observation {
            Observation::Span(span) => span.start,
            Observation::Log(log) => log.time,
        };
        self.earliest = Some(self.earliest.map_or(began, |earliest| earliest.min(began)));
        let node = self.nodes.entry(row.span_id).or_default();
        let without_before = node.model && !node.content;
        node.content |= has_content(&row.reading);
        if let Observation::Span(span) = &row.observation {
            node.present = true;
            node.model |= row.reading.role == Some(Role::Llm);
            let unended_before = node.root && !node.ended;
            node.ended |= span.end != Timestamp::default();
            if !node.root && span.is_local_root() {
                node.root = true;
                self.roots += 1;
            }
            let unended = node.root && !node.ended;
            self.roots_unended += usize::from(unended);
            self.roots_unended -= usize::from(unended_before);
        }
        let without = node.model && !node.content;
        self.models_without_content += usize::from(without);
        self.models_without_content -= usize::from(without_before);
        if let Observation::Span(span) = &row.observation {
            self.note_parent(span);
            self.note_resource(&span.resource);
        }
    }

    fn note_parent(&mut self, span: &RawSpan) {
        self.missing.remove(&span.span_id);
        if span.is_local_root() {
            return;
        }
        if let Some(parent) = span.parent_span_id
            && !self.nodes.get(&parent).is_some_and(|node| node.present)
        {
            self.missing.insert(parent);
        }
    }

    fn note_resource(&mut self, resource: &Arc<Resource>) {
        match &self.resource {
            None => self.resource = Some(resource.clone()),
            Some(_) if self.several_resources => {}
            Some(first) => self.several_resources = !Arc::ptr_eq(first, resource) && first != resource,
        }
    }
}

fn has_content(reading: &Reading) -> bool {
    reading.input_messages.is_some()
        || reading.output_messages.is_some()
        || reading.input.is_some()
        || reading.output.is_some()
}
