//! What is left of a tool's write once traces and evaluations were deleted.

use iris_core::model::{RowKey, Timestamp};

use super::ToolWrite;
use super::erase::without_text;
use crate::deleted::Deletions;

/// What is left of a tool's write.
#[derive(Debug, Clone)]
pub enum Standing {
    /// All of it.
    All(Box<ToolWrite>),
    /// This.
    Part(Box<ToolWrite>),
    /// Nothing.
    Nothing,
}

impl ToolWrite {
    /// Nothing of a trace that was deleted, and no text of an evaluation of one.
    pub fn standing(mut self: Box<Self>, deleted: &Deletions, now: Timestamp) -> Standing {
        match self.as_mut() {
            Self::Trace { trace, .. } => {
                let key = RowKey { tenant: trace.tenant.clone(), trace_id: trace.trace_id };
                if deleted.contains(&key) { Standing::Nothing } else { Standing::All(self) }
            }
            Self::Evaluation { evaluation, .. } => {
                let Some(trace_id) = evaluation.trace_id else {
                    let is_gone = deleted.covers_evaluation(&evaluation.tenant, evaluation.created_at);
                    return if is_gone { Standing::Nothing } else { Standing::All(self) };
                };
                let key = RowKey { tenant: evaluation.tenant.clone(), trace_id };
                if evaluation.erased_at.is_some() || !deleted.contains(&key) {
                    return Standing::All(self);
                }
                *evaluation = without_text(evaluation.clone(), now);
                Standing::Part(self)
            }
            Self::Deletion { .. } | Self::Purge { .. } => Standing::All(self),
        }
    }

    /// The traces that it deletes.
    pub fn deletes(&self) -> Vec<RowKey> {
        match self {
            Self::Deletion { tenant, trace_id, .. } => vec![RowKey { tenant: tenant.clone(), trace_id: *trace_id }],
            Self::Purge { tenant, trace_ids, .. } => {
                let key = |trace_id: &_| RowKey { tenant: tenant.clone(), trace_id: *trace_id };
                trace_ids.iter().map(key).collect()
            }
            Self::Trace { .. } | Self::Evaluation { .. } => Vec::new(),
        }
    }

    /// Has what it deletes remembered; returns once that is on disk. Blocks.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn remember(&self, deleted: &Deletions) -> std::io::Result<()> {
        if let Self::Purge { tenant, evaluations_before: Some(before), .. } = self
            && !deleted.covers_evaluation(tenant, Timestamp::from_unix_nanos(before.as_unix_nanos().saturating_sub(1)))
        {
            deleted.add_evaluations(tenant, *before)?;
        }
        deleted.add_all(&self.deletes())
    }

    /// Whether it deletes anything.
    pub const fn is_deletion(&self) -> bool {
        matches!(self, Self::Deletion { .. } | Self::Purge { .. })
    }
}
