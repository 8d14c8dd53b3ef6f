//! A purge: traces of a tenant go, of one agent or all, by age or all, with everything that judged them.

use std::time::{Duration, Instant};

use iris_core::contract::{Error, PurgeArgs, Scope};
use iris_core::model::{Lane, Position, Timestamp, TraceId};
use serde_json::{Value, json};

use super::{App, Caller};
use crate::store::ToolWrite;

/// Traces that are looked for at once.
const FOUND_MAX: u32 = 8192;
/// Traces of one journal record and one transaction.
const BATCH: usize = 256;
/// How long one call goes on.
const CALL_MAX: Duration = Duration::from_secs(20);

impl App {
    /// Deletes what the arguments say, in batches; `more` says that the time for one call was not enough.
    ///
    /// # Errors
    /// `IRIS_INVALID_ARGUMENT` for a caller that may not; `IRIS_STORAGE_ERROR`: what was deleted before stays so.
    pub async fn purge(&self, args: &PurgeArgs, caller: &Caller) -> Result<Value, Error> {
        caller.check("purge", Scope::Admin)?;
        if self.facts.read_only {
            return Err(Error::invalid_argument("", "this server only reads"));
        }
        let (started, before) = (Instant::now(), args.before((self.world.now)())?);
        let backend = self.backend()?;
        backend.store.flush().await.map_err(|error| self.failed(&error))?;
        let mut purged = 0;
        loop {
            let found = self.purgeable(args, before, caller).await?;
            if found.is_empty() {
                break;
            }
            for batch in found.chunks(BATCH) {
                self.purge_batch(batch.to_vec(), None, caller).await?;
                purged += batch.len();
                if started.elapsed() > CALL_MAX {
                    return Ok(self.purge_reply(purged, true));
                }
            }
        }
        if args.agent_name.is_none() {
            self.purge_batch(Vec::new(), Some(before), caller).await?;
        }
        tracing::info!(traces = purged, tenant = caller.tenant.as_str(), "traces were purged");
        Ok(self.purge_reply(purged, false))
    }

    fn purge_reply(&self, purged: usize, more: bool) -> Value {
        json!({ "traces": purged, "more": more, "erasure": self.erasure() })
    }

    async fn purgeable(&self, args: &PurgeArgs, before: Timestamp, caller: &Caller) -> Result<Vec<TraceId>, Error> {
        let (backend, agent_name) = (self.backend()?, args.agent_name.as_deref());
        let stored = backend.store.purgeable(&caller.tenant, agent_name, before, FOUND_MAX).await;
        let mut found = stored.map_err(|error| self.failed(&error))?;
        let wanted = |trace: &iris_core::model::Trace| {
            agent_name.is_none_or(|name| trace.agent_name == name) && trace.timestamp < before
        };
        for (trace, _) in backend.pipeline.open_traces(&caller.tenant).await {
            if wanted(&trace) && !found.contains(&trace.trace_id) {
                found.push(trace.trace_id);
            }
        }
        Ok(found)
    }

    async fn purge_batch(
        &self,
        trace_ids: Vec<TraceId>,
        evaluations_before: Option<Timestamp>,
        caller: &Caller,
    ) -> Result<(), Error> {
        let position = Position { lane: Lane::Traces, seq: 0, ordinal: 0 };
        let tenant = caller.tenant.clone();
        self.keep(ToolWrite::Purge { tenant, trace_ids, evaluations_before, position }, caller).await
    }
}
