//! Which version of a trace is the newest, and what its latest verdict is, for questions about many traces.
//!
//! The row of a trace has the verdict that was stored with it. Those for which it may not be the latest are few: traces with
//! more than one version, and traces with an evaluation that came by itself. They are odd, and of them alone the evaluations
//! are read; everything else is answered by the rows of the traces, without a join of all with all.

use duckdb::types::Value;
use iris_core::model::{Tenant, Timestamp};

use super::spans::micros;

/// A `WITH` that names the odd traces as `o`, with what it binds.
pub(super) struct Odd {
    pub sql: String,
    pub bound: Vec<Value>,
}

/// Joins the odd traces to the rows of the traces `t`, and leaves the newest version of each.
pub(super) const JOIN: &str =
    "LEFT JOIN o ON o.trace_id = t.trace_id WHERE (o.newest IS NULL OR o.newest = t.version) AND t.tenant = ?";

impl Odd {
    /// Those with another version. No verdict is looked at.
    pub fn versions(tenant: &Tenant) -> Self {
        let sql = "o AS (SELECT trace_id, max(version) AS newest FROM traces WHERE tenant = ? AND version > 1 GROUP BY trace_id)";
        Self { sql: sql.to_owned(), bound: vec![Value::Text(tenant.as_str().to_owned())] }
    }

    /// Those with another version or another evaluation, each with its latest verdict among those made since then.
    pub fn verdicts(tenant: &Tenant, since: Option<Timestamp>) -> Self {
        let made = if since.is_some() { " AND e.created_at >= ?" } else { "" };
        let sql = format!(
            "u AS MATERIALIZED (SELECT trace_id, max(version) AS newest FROM (\
             SELECT trace_id, version FROM traces WHERE tenant = ? AND version > 1 UNION ALL \
             SELECT trace_id, NULL FROM evaluations WHERE tenant = ? AND NOT with_trace AND trace_id IS NOT NULL AND score IS NOT NULL\
             ) GROUP BY trace_id), \
             l AS (SELECT e.trace_id, arg_max(e.score, (e.created_at, e.rowid)) AS score, \
             arg_max(e.state, (e.created_at, e.rowid)) AS state, arg_max(e.failed_rules, (e.created_at, e.rowid)) AS failed_rules \
             FROM evaluations e WHERE e.tenant = ? AND e.score IS NOT NULL{made} AND e.trace_id IN (SELECT trace_id FROM u) \
             GROUP BY e.trace_id), \
             o AS (SELECT u.trace_id, u.newest, l.score, l.state, l.failed_rules FROM u LEFT JOIN l ON l.trace_id = u.trace_id)"
        );
        let tenant = Value::Text(tenant.as_str().to_owned());
        let mut bound = vec![tenant.clone(), tenant.clone(), tenant];
        bound.extend(since.map(micros));
        Self { sql, bound }
    }
}

/// A column of the latest verdict: of the odd ones as their evaluations say, of the others as the row says.
pub(super) fn column(name: &str) -> String {
    let of_row = match name {
        "failed_rules" => "t.verdict_rules".to_owned(),
        name => format!("t.verdict_{name}"),
    };
    format!("CASE WHEN o.trace_id IS NULL THEN {of_row} ELSE o.{name} END")
}

/// The same, of verdicts since a time, which is to be bound.
pub(super) fn column_since(name: &str) -> String {
    let of_row = match name {
        "failed_rules" => "t.verdict_rules".to_owned(),
        name => format!("t.verdict_{name}"),
    };
    format!("CASE WHEN o.trace_id IS NOT NULL THEN o.{name} WHEN t.verdict_at >= ? THEN {of_row} END")
}
