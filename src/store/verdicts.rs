//! Which version of a trace is the newest, and what its latest verdict is, for questions about many traces.
//!
//! The row of a trace has the verdict that was stored with it. Those for which it may not be the latest are few: traces with
//! more than one version, and traces with an evaluation that came by itself. They are odd, and for them alone the verdicts of
//! all their rows and of those evaluations are compared; everything else is answered by the rows of the traces, without a join
//! of all with all. That they stay few is the work of `fold`. Of two verdicts of the same microsecond the one that came by itself
//! is taken for the later.

use duckdb::types::Value;
use iris_core::model::{Tenant, Timestamp};

use super::spans::micros;

/// A column of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Score,
    State,
    FailedRules,
}

impl Column {
    /// Its name in an evaluation and in an odd trace.
    const fn name(self) -> &'static str {
        match self {
            Self::Score => "score",
            Self::State => "state",
            Self::FailedRules => "failed_rules",
        }
    }

    /// Its name in the row of a trace.
    const fn of_row(self) -> &'static str {
        match self {
            Self::Score => "verdict_score",
            Self::State => "verdict_state",
            Self::FailedRules => "verdict_rules",
        }
    }

    /// It, of the latest verdict, as a condition; `{}` stands for it.
    pub fn is(self, condition: &str) -> String {
        let of_row = condition.replace("{}", &format!("t.{}", self.of_row()));
        let of_odd = condition.replace("{}", &format!("o.{}", self.name()));
        format!("((o.trace_id IS NULL AND {of_row}) OR {of_odd})")
    }

    /// It, of the latest verdict since a time, which is to be bound.
    pub fn since(self) -> String {
        let (name, of_row) = (self.name(), self.of_row());
        format!("CASE WHEN o.trace_id IS NOT NULL THEN o.{name} WHEN t.verdict_at >= ? THEN t.{of_row} END AS {name}")
    }
}

/// A `WITH` that names the odd traces as `o`, with what it binds.
pub(super) struct Odd {
    pub sql: String,
    pub bound: Vec<Value>,
}

/// Joins the odd traces to the rows of the traces `t`, and leaves the newest version of each.
pub(super) const JOIN: &str =
    "LEFT JOIN o ON o.trace_id = t.trace_id WHERE (o.newest IS NULL OR o.newest = t.version) AND t.tenant = ?";

/// Evaluations that came by themselves.
const ALONE: &str =
    "FROM evaluations WHERE tenant = ? AND NOT with_trace AND trace_id IS NOT NULL AND score IS NOT NULL";

impl Odd {
    /// Those with another version. No verdict is looked at.
    pub fn versions(tenant: &Tenant) -> Self {
        let sql = "o AS (SELECT trace_id, max(version) AS newest FROM traces WHERE tenant = ? AND version > 1 GROUP BY trace_id)";
        Self { sql: sql.to_owned(), bound: vec![Value::Text(tenant.as_str().to_owned())] }
    }

    /// Those with another version or another evaluation, with columns of the latest verdict of each among those made since then.
    pub fn verdicts(tenant: &Tenant, columns: &[Column], since: Option<Timestamp>) -> Self {
        let each = |write: &dyn Fn(&Column) -> String| columns.iter().map(write).collect::<String>();
        let made = if since.is_some() { " FILTER (u.made >= ?)" } else { "" };
        let latest = each(&|column| {
            let name = column.name();
            format!(", arg_max(u.{name}, (u.made, u.turn)){made} AS {name}")
        });
        let of_rows = each(&|column| format!(", t.{} AS {}", column.of_row(), column.name()));
        let of_evaluations = each(&|column| format!(", {}", column.name()));
        let rows = format!(
            "SELECT t.trace_id, CASE WHEN t.version > 1 THEN t.version END AS newest, t.verdict_at AS made, t.version::BIGINT AS turn\
             {of_rows} FROM traces t WHERE t.tenant = ? AND t.trace_id IN"
        );
        // Every turn is positive: that it is asked for tells the engine that these are few, so that it does not make its table of
        // all the others. Nor does it where both kinds of odd traces are one list.
        let sql = format!(
            "o AS (SELECT u.trace_id, max(u.newest) AS newest{latest} FROM (\
             {rows} (SELECT trace_id FROM traces WHERE tenant = ? AND version > 1 GROUP BY trace_id) UNION ALL \
             {rows} (SELECT trace_id {ALONE} GROUP BY trace_id) UNION ALL \
             SELECT trace_id, NULL, created_at, 4294967296 + rowid{of_evaluations} {ALONE}) u \
             GROUP BY u.trace_id HAVING max(u.turn) >= 0)"
        );
        let since = std::iter::repeat_n(since.map(micros), columns.len()).flatten();
        let tenants = std::iter::repeat_n(Value::Text(tenant.as_str().to_owned()), 5);
        Self { sql, bound: since.chain(tenants).collect() }
    }
}
