//! What is odd about the spans of a trace, so that nobody has to guess why a number is what it is.

use std::collections::BTreeSet;

use super::tools;
use super::tree::{Node, SKEW_NANOS, Tree};
use super::usage::Used;
use crate::model::{Notes, Role, SpanId};

/// How many missing parents are named.
const PARENTS_MAX: usize = 16;

/// Everything odd about some places of a tree; `bare` when no run of an agent is among them.
pub fn of(tree: &Tree<'_>, places: &[usize], used: &Used, bare: bool) -> Notes {
    Notes {
        missing_parents: missing_parents(tree),
        clock_skew: tree.nodes.iter().any(|node| is_skewed(tree, node)),
        doubled_calls: doubled_calls(tree, places, used),
        doubled_tools: tools::doubled(tree, places),
        usage_mismatch: used.is_contradicted(tree, places),
        bare,
    }
}

/// Parents that are named and are not here. A parent in another process may never be sent to us: that is no lack.
fn missing_parents(tree: &Tree<'_>) -> Vec<SpanId> {
    let here: BTreeSet<_> = tree.nodes.iter().map(|node| node.span.span_id).collect();
    let named = tree.nodes.iter().filter(|node| !node.span.is_local_root()).filter_map(|node| node.span.parent_span_id);
    let missing: BTreeSet<_> = named.filter(|id| !here.contains(id)).collect();
    missing.into_iter().take(PARENTS_MAX).collect()
}

/// Whether the times of a span cannot be: it ended before it began, or began well before its parent.
fn is_skewed(tree: &Tree<'_>, node: &Node<'_>) -> bool {
    let (start, end) = (node.span.start, node.span.end);
    let parent = node.parent.and_then(|parent| tree.get(parent)).map(|parent| parent.span.start);
    let early = |parent: u64| start.as_unix_nanos().saturating_add(SKEW_NANOS) < parent;
    (end.as_unix_nanos() > 0 && end < start) || parent.is_some_and(|parent| early(parent.as_unix_nanos()))
}

/// Spans of model calls around or beside the one that counts.
fn doubled_calls(tree: &Tree<'_>, places: &[usize], used: &Used) -> u32 {
    let owners = &used.owners;
    let is_double = |at: usize| {
        let call = matches!(tree.role(at), Some(Role::Llm | Role::Embedding));
        call && !owners.calls.contains(&at) && owners.knows(tree, at)
    };
    u32::try_from(places.iter().filter(|at| is_double(**at)).count()).unwrap_or(u32::MAX)
}
