//! The figures of a window of time.

use duckdb::ToSql;
use iris_core::contract::{HourCount, NameCount, Summary};
use iris_core::model::{Tenant, Timestamp};

use super::Error;
use super::reader::Reader;
use super::spans::{micros, timestamp};

/// Agents named in a summary.
const AGENTS_MAX: u32 = 10;

const WINDOW: &str = "FROM traces t LEFT JOIN (SELECT trace_id, max(version) AS newest FROM traces \
     WHERE tenant = ? AND version > 1 GROUP BY trace_id) n ON n.trace_id = t.trace_id \
     WHERE (n.newest IS NULL OR n.newest = t.version) AND t.tenant = ? AND t.timestamp >= ? AND t.timestamp <= ?";

pub(super) fn summary(
    reader: &Reader<'_>,
    tenant: &Tenant,
    since: Timestamp,
    until: Timestamp,
) -> Result<Summary, Error> {
    let (tenant, since, until) = (tenant.as_str(), micros(since), micros(until));
    let bound: [&dyn ToSql; 4] = [&tenant, &tenant, &since, &until];
    let mut summary = reader
        .first(
            &format!(
                "SELECT count(*), round(avg(t.latency_ms), 2), coalesce(sum(t.cost_usd), 0), \
                 coalesce(avg(t.failed::DOUBLE), 0) {WINDOW}"
            ),
            &bound,
            |row| {
                let read = || -> duckdb::Result<Summary> {
                    Ok(Summary {
                        total_traces: row.get(0)?,
                        avg_latency_ms: row.get(1)?,
                        total_cost_usd: row.get(2)?,
                        error_rate: row.get(3)?,
                        ..Summary::default()
                    })
                };
                read().map_err(Error::engine)
            },
        )?
        .unwrap_or_default();
    summary.eval_pass_rate = reader
        .first(
            "SELECT avg(passed::DOUBLE) FROM evaluations WHERE tenant = ? AND created_at >= ? AND created_at <= ?",
            &[&tenant, &since, &until],
            |row| row.get(0).map_err(Error::engine),
        )?
        .flatten();
    summary.traces_per_hour = reader.rows(
        &format!(
            "SELECT epoch_us(date_trunc('hour', t.timestamp)) AS hour, count(*) {WINDOW} GROUP BY hour ORDER BY hour"
        ),
        &bound,
        |row| {
            let read = || Ok(HourCount { hour: timestamp(row.get(0)?, 0).to_string(), count: row.get(1)? });
            read().map_err(Error::engine)
        },
    )?;
    summary.top_agents = reader.rows(
        &format!(
            "SELECT t.agent_name, count(*) AS traces {WINDOW} GROUP BY t.agent_name \
             ORDER BY traces DESC, t.agent_name LIMIT {AGENTS_MAX}"
        ),
        &bound,
        |row| {
            let read = || Ok(NameCount { agent_name: row.get(0)?, count: row.get(1)? });
            read().map_err(Error::engine)
        },
    )?;
    Ok(summary)
}
