//! `delete_trace`: a trace goes from the store, from what is still to come, and in time from every byte here.

use iris_core::contract::{
    DeleteTraceArgs, DeleteTraceReply, Downstream, Erasure, ErasureBytes as Bytes, ErasureState, Error,
};
use iris_core::model::{Lane, Position, RowKey, Timestamp};
use serde_json::Value;

use super::{App, Caller, to_value, trace_id};
use crate::ingest::Eraser;
use crate::store::ToolWrite;

impl App {
    pub(super) async fn delete_trace(&self, args: DeleteTraceArgs, caller: &Caller) -> Result<Value, Error> {
        let trace_id = trace_id(&args.trace_id)?;
        let key = RowKey { tenant: caller.tenant.clone(), trace_id };
        let nothing = DeleteTraceReply { deleted: false, trace_id: trace_id.to_string(), erasure: None };
        if self.deleted.contains(&key) {
            return to_value(self, &DeleteTraceReply { erasure: Some(self.erasure()), ..nothing });
        }
        if !self.exists(&key).await? {
            return to_value(self, &nothing);
        }
        let position = Position { lane: Lane::Traces, seq: 0, ordinal: 0 };
        let write = ToolWrite::Deletion { tenant: key.tenant.clone(), trace_id, position };
        self.keep(write, caller).await?;
        let erasure = Some(self.erasure());
        to_value(self, &DeleteTraceReply { deleted: true, erasure, ..nothing })
    }

    async fn exists(&self, key: &RowKey) -> Result<bool, Error> {
        let backend = self.backend()?;
        let failed = |error| self.failed(&error);
        Ok(backend.store.has_trace(key).await.map_err(failed)?
            || backend.pipeline.open_trace(key).await.map_err(failed)?.is_some())
    }

    /// From here on nothing of what is deleted is taken, shown or sent, and what waits of it is let go.
    pub(super) async fn forget(&self, write: &ToolWrite) -> Result<(), Error> {
        if !write.is_deletion() {
            return Ok(());
        }
        let (deleted, added) = (self.deleted.clone(), write.clone());
        let added = tokio::task::spawn_blocking(move || added.remember(&deleted)).await;
        added.map_err(|error| self.unforeseen(&error))?.map_err(|error| self.unforeseen(&error))?;
        for key in write.deletes() {
            self.backend()?.pipeline.forget(&key).await;
        }
        Ok(())
    }

    /// Whether no byte of what was deleted is left.
    pub fn is_erased(&self) -> bool {
        let erasure = self.erasure();
        erasure.store.state == ErasureState::Done && erasure.journal.state == ErasureState::Done
    }

    /// Until when bytes of what was deleted may be where.
    pub fn erasure(&self) -> Erasure {
        let bytes = |due: Option<Timestamp>| match due {
            Some(due) => Bytes { state: ErasureState::Due, due_at: Some(due.to_string()) },
            None => Bytes { state: ErasureState::Done, due_at: None },
        };
        let store = self.backend.get().and_then(|backend| backend.store.status().erase_due);
        let journal = self.deleted.in_journal().map(|(oldest, _)| Eraser::due(oldest, self.facts.erase_within));
        let downstream = if self.facts.forwards { Downstream::Sent } else { Downstream::None };
        Erasure { store: bytes(store), journal: bytes(journal), downstream }
    }
}
