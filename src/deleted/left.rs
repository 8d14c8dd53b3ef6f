//! What is left of a message once what was deleted is taken out.

use iris_core::dialect;
use iris_core::model::{Lane, RowKey, Tenant, TraceId};
use iris_core::otlp::{self, Encoding, Refusal, Walked};

use super::Deletions;

/// What is left of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// All of it.
    All,
    /// Nothing.
    Nothing,
    /// This.
    Part(Vec<u8>),
}

impl Deletions {
    /// What is left of an accepted OTLP message without spans and records of deleted traces, those of sessions whose
    /// records name no trace included. A message that cannot be read is left as it is.
    pub fn left_of(&self, tenant: &Tenant, lane: Lane, encoding: Encoding, body: &[u8]) -> Left {
        // Metrics are of no trace.
        if lane == Lane::Metrics || self.is_empty() {
            return Left::All;
        }
        match self.walk(tenant, lane, encoding, body) {
            Ok(Walked { rewritten: None, .. }) | Err(_) => Left::All,
            Ok(Walked { items: 0, .. }) => Left::Nothing,
            Ok(Walked { rewritten: Some(body), .. }) => Left::Part(body),
        }
    }

    fn walk(&self, tenant: &Tenant, lane: Lane, encoding: Encoding, body: &[u8]) -> Result<Walked, Refusal> {
        let mut gone = |trace_id: TraceId| self.contains(&RowKey { tenant: tenant.clone(), trace_id });
        // To decode records costs much more than to look for their ids.
        if lane == Lane::Logs && otlp::has_log_event(encoding, body, &mut dialect::wants_log)? {
            return otlp::without_records(encoding, body, &mut |log| dialect::trace_of(log).is_some_and(&mut gone));
        }
        otlp::without(lane, encoding, body, &mut gone)
    }
}
