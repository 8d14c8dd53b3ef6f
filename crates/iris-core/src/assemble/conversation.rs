//! Calls of models that a program makes without an agent around them come as one trace each. Those of one conversation are
//! put together here, so that what was done over all of them can be judged as one trajectory.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::model::{CostParts, CostSource, Run, Timestamp, TokenUsage, ToolCall, Trace, TraceId, TraceSource};

/// The most traces that make one conversation, the newest.
pub const TRACES_MAX: usize = 100;
/// The most tool calls of one conversation.
const TOOLS_MAX: usize = 10_000;

/// The bare traces of one conversation as one.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// What they share.
    pub session_id: String,
    /// Which, in order of start.
    pub trace_ids: Vec<TraceId>,
    /// Everything they say together: the first question, the last answer, every tool call once, sums of tokens and cost.
    /// It has the id of the last.
    pub trace: Trace,
}

/// Whether no agent or workflow stands around what the trace tells: a program called models by itself.
pub fn is_bare(trace: &Trace) -> bool {
    trace.source == TraceSource::Otlp && trace.notes.bare
}

/// Puts the bare traces of a conversation together, whatever their order. None when fewer than two traces are bare and
/// share a tenant and a conversation with the first that does.
pub fn conversation(traces: &[Trace]) -> Option<Conversation> {
    let mut bare: Vec<&Trace> = traces.iter().filter(|trace| is_bare(trace) && trace.session_id.is_some()).collect();
    let (tenant, session) = (bare.first()?.tenant.clone(), bare.first()?.session_id.clone()?);
    bare.retain(|trace| trace.tenant == tenant && trace.session_id.as_ref() == Some(&session));
    // Of several versions of a trace the highest is the trace.
    bare.sort_by_key(|trace| (trace.trace_id, Reverse(trace.version)));
    bare.dedup_by_key(|trace| trace.trace_id);
    bare.sort_by_key(|trace| (trace.timestamp, trace.trace_id));
    let skip = bare.len().saturating_sub(TRACES_MAX);
    let bare = bare.get(skip..).unwrap_or_default();
    let ([first, _, ..], Some(last)) = (bare, bare.last()) else { return None };
    let cost = cost(bare);
    let run = Run {
        agent_name: Some(first.agent_name.clone()),
        input: bare.iter().find_map(|trace| trace.input.clone()),
        output: last.output.clone(),
        tool_calls: tool_calls(bare).unwrap_or_default(),
        token_usage: tokens(bare),
        cost_usd: cost.0,
        cost_parts: cost.2.clone(),
        latency_ms: latency_ms(first.timestamp, last),
        error: last.runs.first().and_then(|run| run.error.clone()),
        ..Run::default()
    };
    let trace = Trace {
        input: run.input.clone(),
        output: run.output.clone(),
        tool_calls: tool_calls(bare),
        latency_ms: run.latency_ms,
        token_usage: run.token_usage,
        cost_usd: cost.0,
        cost_source: cost.1,
        cost_parts: cost.2,
        timestamp: first.timestamp,
        partial: bare.iter().any(|trace| trace.partial),
        in_progress: bare.iter().any(|trace| trace.in_progress),
        conflicting_spans: bare.iter().any(|trace| trace.conflicting_spans),
        span_count: sum(bare, |trace| trace.span_count),
        error_count: sum(bare, |trace| trace.error_count),
        seen_through: bare.iter().map(|trace| trace.seen_through).max().unwrap_or(0),
        runs: vec![run],
        ..Trace::clone(last)
    };
    Some(Conversation { session_id: session, trace_ids: bare.iter().map(|trace| trace.trace_id).collect(), trace })
}

fn sum(traces: &[&Trace], of: impl Fn(&Trace) -> u32) -> u32 {
    traces.iter().map(|trace| of(trace)).fold(0, u32::saturating_add)
}

fn latency_ms(start: Timestamp, last: &Trace) -> Option<f64> {
    Some(last.timestamp.since(start).as_secs_f64() * 1000.0 + last.latency_ms?)
}

/// Every tool call once. A call repeats what was called before it, with the results that it was told.
fn tool_calls(traces: &[&Trace]) -> Option<Vec<ToolCall>> {
    let mut known: Option<Vec<ToolCall>> = None;
    let mut by_id: HashMap<String, usize> = HashMap::new();
    for trace in traces {
        let Some(told) = trace.tool_calls.as_deref() else { continue };
        let calls = known.get_or_insert_default();
        let repeated = repeated(calls, told);
        for (at, call) in told.iter().enumerate() {
            let same = match &call.call_id {
                Some(id) => by_id.get(id).copied(),
                None => Some(at).filter(|at| *at < repeated),
            };
            if let Some(before) = same.and_then(|at| calls.get_mut(at)) {
                fill(before, call);
            } else if calls.len() < TOOLS_MAX {
                if let Some(id) = &call.call_id {
                    by_id.insert(id.clone(), calls.len());
                }
                calls.push(call.clone());
            }
        }
    }
    known
}

/// How many calls at the beginning of a list are those that were made before.
fn repeated(before: &[ToolCall], told: &[ToolCall]) -> usize {
    let same = |(one, two): &(&ToolCall, &ToolCall)| one.tool_name == two.tool_name && one.input == two.input;
    let count = before.iter().zip(told).take_while(same).count();
    if count == before.len() { count } else { 0 }
}

fn fill(before: &mut ToolCall, call: &ToolCall) {
    before.output = before.output.take().or_else(|| call.output.clone());
    before.error = before.error.take().or_else(|| call.error.clone());
    before.input = before.input.take().or_else(|| call.input.clone());
    before.latency_ms = before.latency_ms.or(call.latency_ms);
}

fn add(one: Option<u64>, two: Option<u64>) -> Option<u64> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.saturating_add(two)),
        (one, two) => one.or(two),
    }
}

fn tokens(traces: &[&Trace]) -> Option<TokenUsage> {
    traces.iter().filter_map(|trace| trace.token_usage).reduce(|one, two| TokenUsage {
        prompt_tokens: add(one.prompt_tokens, two.prompt_tokens),
        completion_tokens: add(one.completion_tokens, two.completion_tokens),
        total_tokens: add(one.total_tokens, two.total_tokens),
    })
}

/// The sum of all costs, unless one is not known.
fn cost(traces: &[&Trace]) -> (Option<f64>, Option<CostSource>, Option<CostParts>) {
    let parts = traces.iter().filter_map(|trace| trace.cost_parts.clone()).reduce(CostParts::plus);
    let usd: Option<f64> = traces.iter().map(|trace| trace.cost_usd).sum();
    let estimated = traces.iter().any(|trace| trace.cost_source == Some(CostSource::Estimated));
    (usd, usd.map(|_| if estimated { CostSource::Estimated } else { CostSource::Reported }), parts)
}

#[cfg(test)]
mod tests;
