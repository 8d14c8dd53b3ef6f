//! How the open traces stand: for provisional verdicts, for the counts, and for those who push.

use std::sync::Arc;

use super::Assembler;
use super::open::Phase;
use crate::model::{Evaluation, Row, RowKey, Tenant};

/// An open trace as it stands, for a provisional verdict.
#[derive(Debug)]
pub struct View {
    /// Which.
    pub key: RowKey,
    /// The version it would have if it settled now, as far as is known here.
    pub version: u32,
    /// Its rows in memory.
    pub rows: Vec<Arc<Row>>,
    /// Rows that are only in the store, or on their way there; the store may have more than are known here. Nothing
    /// for a trace that is whole in memory.
    pub elsewhere: Option<usize>,
    /// It is judged as it stands, and its evaluation waits for the commit.
    pub judged: bool,
    /// Silent for `idle_ms` without having settled.
    pub provisional: bool,
    /// It has rows beyond these that are not looked at.
    pub cut: bool,
    /// The highest sequence number among its rows.
    pub seen_through: u64,
    /// Its last evaluation, when it was judged before.
    pub previous: Option<Arc<Evaluation>>,
}

/// How much there is, for `/readyz?full` and the metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Traces in memory, whatever their state.
    pub open: usize,
    /// Of these, not yet known to be an agent's.
    pub undecided: usize,
    /// Bytes of rows that wait undecided.
    pub undecided_bytes: usize,
    /// Bytes of rows of the other open traces.
    pub text_bytes: usize,
    /// Of these, of traces that nothing but a short silence keeps from being judged.
    pub closing_bytes: usize,
    /// Traces let go that are still remembered.
    pub remembered: usize,
    /// Traces handed out to be judged since the start.
    pub settled: u64,
    /// Of these, closed by time or by a limit.
    pub partial: u64,
    /// Of these, judged before.
    pub reopened: u64,
    /// Traces dropped without an agentic span.
    pub other: u64,
    /// Rows dropped as duplicates.
    pub duplicates: u64,
    /// Undecided traces whose rows were stored because time or memory ran out.
    pub plain: u64,
    /// Traces whose text was given up for memory.
    pub spilled: u64,
    /// Loads asked for.
    pub loads: u64,
}

impl Assembler {
    /// An open trace.
    pub fn view(&self, key: &RowKey) -> Option<View> {
        let open = self.open.get(key)?;
        let judged = matches!(open.phase, Phase::Judged(_));
        Some(View {
            key: key.clone(),
            version: open.version + u32::from(!judged),
            rows: open.rows.clone(),
            elsewhere: (!open.is_whole()).then(|| open.seen.len().saturating_sub(open.rows.len())),
            judged,
            provisional: open.provisional,
            cut: open.cut,
            seen_through: open.seen_through,
            previous: open.previous.clone(),
        })
    }

    /// The newest open traces of a tenant, newest first, at most `max`. Traces whose verdict is on its way to
    /// the store are among them until it is there.
    pub fn views(&self, tenant: &Tenant, max: usize) -> Vec<View> {
        let mine = self.opened.iter().rev().filter(|(_, key)| key.tenant == *tenant);
        mine.filter(|(serial, key)| self.open.get(key).is_some_and(|open| open.serial == *serial && open.agentic))
            .filter_map(|(_, key)| self.view(key))
            .take(max)
            .collect()
    }

    /// How much there is.
    pub fn counts(&self) -> Counts {
        Counts { open: self.open.len(), remembered: self.remembered.len(), ..self.counts }
    }

    /// Whether open traces beyond the limit wait to be closed: no more should be pushed until `tick` closed them.
    pub fn is_over_limit(&self) -> bool {
        self.open.len() > self.config.open_max.saturating_mul(2)
    }

    /// Whether open traces hold so much text that some will soon be spilled.
    pub const fn is_nearly_full(&self) -> bool {
        self.counts.text_bytes > self.settings.text_bytes_max / 4 * 3
    }

    /// Whether waiting makes room: much of the text belongs to traces that are whole and close within
    /// `settle_ms` when nothing is pushed.
    pub const fn makes_room(&self) -> bool {
        self.counts.closing_bytes > self.settings.text_bytes_max / 4
    }
}
