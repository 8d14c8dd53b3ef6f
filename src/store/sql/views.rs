//! What a caller's SELECT may read: three views of its tenant's rows.

use iris_core::model::Tenant;

use crate::store::open::CATALOG;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Its name.
    pub name: &'static str,
    /// What its rows are.
    pub about: &'static str,
    columns: &'static str,
    rest: &'static str,
}

/// All of them.
pub const VIEWS: [View; 3] = [
    View {
        name: "traces",
        about: "one row a stored trace; input, output, tool_calls and metadata hold the first kilobytes of long values; tool_calls and metadata \
                are JSON text",
        columns: "lower(hex(t.trace_id)) AS trace_id, t.version, t.source, t.agent_name, t.framework, t.timestamp, t.latency_ms, \
                  t.prompt_tokens, t.completion_tokens, t.total_tokens, t.cost_usd, t.cost_source, t.session_id, t.user_id, t.model, \
                  t.provider, t.environment, t.service_version, t.partial, t.failed, t.span_count, t.error_count, t.stored_at, t.input, \
                  t.output, t.tool_calls, t.metadata",
        rest: "traces t LEFT JOIN (SELECT trace_id, max(version) AS newest FROM {catalog}.main.traces WHERE tenant = {tenant} AND version > 1 \
               GROUP BY trace_id) n ON n.trace_id = t.trace_id WHERE (n.newest IS NULL OR n.newest = t.version) AND t.tenant = {tenant}",
    },
    View {
        name: "spans",
        about: "one row a span or log record as it arrived; a resend may stand twice; attributes is JSON text",
        columns: "lower(hex(trace_id)) AS trace_id, lower(hex(span_id)) AS span_id, lower(hex(parent_span_id)) AS parent_span_id, source, name, \
                  kind, start_time, end_time, status, role, agent_name, model, provider, tool_name, input_tokens, output_tokens, cost_usd, \
                  session_id, received, attributes",
        rest: "spans WHERE tenant = {tenant}",
    },
    View {
        name: "evaluations",
        about: "one row a judging; the newest with a score is a trace's verdict; failed_rules is a JSON array of names",
        columns: "id, lower(hex(trace_id)) AS trace_id, trace_version, eval_type, score, passed, state, failed_rules, created_at, inline, erased",
        rest: "evaluations WHERE tenant = {tenant}",
    },
];

/// The views as the beginning of a query. Names in them are whole, so that nothing a caller writes can stand in for them.
pub(super) fn with(tenant: &Tenant) -> String {
    let tenant = format!("'{}'", tenant.as_str().replace('\'', "''"));
    let one = |view: &View| {
        let rest = view.rest.replace("{tenant}", &tenant).replace("{catalog}", CATALOG);
        format!("{} AS NOT MATERIALIZED (SELECT {} FROM {CATALOG}.main.{rest})", view.name, view.columns)
    };
    format!("WITH {}", VIEWS.iter().map(one).collect::<Vec<_>>().join(", "))
}
