//! `delete_trace`: a trace goes from the store, from what is still to come, and in time from every byte here.

use iris_core::contract::{
    DeleteTraceArgs, DeleteTraceReply, Downstream, Erasure, ErasureBytes as Bytes, ErasureState, Error,
};
use iris_core::model::{Lane, Position, RowKey};
use serde_json::Value;

use super::{App, Caller, to_value, trace_id};
use crate::store::ToolWrite;

impl App {
    pub(super) async fn delete_trace(&self, args: DeleteTraceArgs, caller: &Caller) -> Result<Value, Error> {
        let trace_id = trace_id(&args.trace_id)?;
        let key = RowKey { tenant: caller.tenant.clone(), trace_id };
        let nothing = DeleteTraceReply { deleted: false, trace_id: trace_id.to_string(), erasure: None };
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
        if self.deleted.contains(key) {
            return Ok(false);
        }
        let failed = |error| self.failed(&error);
        Ok(backend.store.has_trace(key).await.map_err(failed)?
            || backend.pipeline.open_trace(key).await.map_err(failed)?.is_some())
    }

    /// From here on nothing of the trace is taken, shown or sent, and what waits of it is let go.
    pub(super) async fn forget(&self, write: &ToolWrite) -> Result<(), Error> {
        let Some(key) = write.deletes() else { return Ok(()) };
        let (deleted, added) = (self.deleted.clone(), key.clone());
        let added = tokio::task::spawn_blocking(move || deleted.add(&added)).await;
        added.map_err(|error| self.unforeseen(&error))?.map_err(|error| self.unforeseen(&error))?;
        self.backend()?.pipeline.forget(&key).await;
        Ok(())
    }

    fn erasure(&self) -> Erasure {
        let due_at = self.backend.get().and_then(|backend| backend.store.status().erase_due).map(|due| due.to_string());
        let due = || Bytes { state: ErasureState::Due, due_at: due_at.clone() };
        if self.facts.forwards {
            let journal = Bytes { state: ErasureState::Waits, due_at: None };
            Erasure { store: due(), journal, downstream: Downstream::Sent }
        } else {
            Erasure { store: due(), journal: due(), downstream: Downstream::None }
        }
    }
}
