//! What the newest traces of each agent cost.

use iris_core::model::{Tenant, TraceId};

use super::Error;
use super::reader::Reader;
use super::spans::trace_id;

/// Rows that are looked at, from the newest, and traces of one agent.
const ROWS_MAX: i64 = 50_000;
const RUNS_MAX: u32 = 200;

/// What one stored trace cost.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceCost {
    /// Whose.
    pub tenant: Tenant,
    /// Who ran.
    pub agent_name: String,
    /// The trace.
    pub trace_id: TraceId,
    /// In USD.
    pub usd: f64,
}

/// Newest first; of a trace that was stored in several versions the newest comes first.
pub(super) fn costs(reader: &Reader<'_>) -> Result<Vec<TraceCost>, Error> {
    let sql = "SELECT tenant, agent_name, trace_id, cost_usd FROM traces \
               WHERE rowid > (SELECT coalesce(max(rowid), 0) - ? FROM traces) AND cost_usd IS NOT NULL \
               QUALIFY row_number() OVER (PARTITION BY tenant, agent_name ORDER BY rowid DESC) <= ? ORDER BY rowid DESC";
    reader.readable(sql, &[&ROWS_MAX, &RUNS_MAX], |row| {
        let read = || -> duckdb::Result<(String, String, Vec<u8>, f64)> {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        };
        let (tenant, agent_name, id, usd) = read().map_err(Error::engine)?;
        let trace_id = trace_id(&id).map_err(|why| Error::Unreadable { table: "traces", why })?;
        Ok(TraceCost { tenant: Tenant::new(&tenant), agent_name, trace_id, usd })
    })
}
