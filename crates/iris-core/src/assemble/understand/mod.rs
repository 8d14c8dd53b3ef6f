//! From the rows of one trace to the agent's run: who ran, what was asked and answered, which tools, tokens and cost.
//!
//! Pure, and independent of the order of the rows: spans stand in the order of their start, log records in the order of
//! their time. Owns what needs more than one span: which span is a run, which model calls are the same call, which
//! tool spans are one step. Never reads an attribute of a library: that is [`crate::dialect`]. Rows enter and a
//! [`Trace`] leaves through [`understand`].

mod cost;
mod notes;
mod run;
mod tools;
mod tree;
mod usage;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::model::{Reading, Resource, Role, Row, RowKey, Run, Timestamp, Trace, TraceSource, UNMAPPED};
use crate::price::Prices;
use tree::{Node, Tree};

/// The name of an agent whose spans name neither agent nor service.
const NAMELESS: &str = "otel";
/// How many forms of conflicting spans are judged beside the first.
const VARIANTS_MAX: usize = 3;
/// The most keys that a trace names as carried and not read.
const UNMAPPED_MAX: usize = 16;
/// Attributes of the resource that are kept with the trace.
/// Source: <https://opentelemetry.io/docs/specs/semconv/resource/>.
const RESOURCE_KEYS: [&str; 9] = [
    "service.name",
    "service.namespace",
    "service.version",
    "service.instance.id",
    "deployment.environment.name",
    "deployment.environment",
    "k8s.pod.name",
    "telemetry.sdk.language",
    "telemetry.sdk.version",
];

/// The trace that the rows of one trace id make, or nothing when no agent, model call, embedding or tool is among them.
/// Model calls whose spans state no cost are priced by the list.
pub fn understand(key: &RowKey, version: u32, rows: &[Arc<Row>]) -> Option<Trace> {
    understand_with(key, version, rows, Prices::list())
}

/// The same with other prices.
pub fn understand_with(key: &RowKey, version: u32, rows: &[Arc<Row>], prices: &Prices) -> Option<Trace> {
    let tree = Tree::build(rows, 0, prices);
    let stretches = run::stretches(&tree);
    let (first, last) = (stretches.runs.first()?, stretches.runs.last()?);
    let mut runs = run::describe_all(&tree, &stretches);
    let whole = stretches.whole();
    let used = usage::Used::of(&tree, &whole);
    let cost = cost::total(&tree, &whole, &used);
    let head = first.head(&tree)?;
    let tool_calls = tools::whole(&tree, &stretches.runs);
    let (input, output) = (runs.first()?.input.clone(), runs.get(stretches.runs.len() - 1)?.output.clone());
    let agent_name = run::agent_name(&tree, first);
    let (session_id, user_id) = (
        tree.first_of(&whole, |reading| reading.session_id.clone()),
        tree.first_of(&whole, |reading| reading.user_id.clone()),
    );
    let model = model(&tree, &whole);
    let timestamp = first.start(&tree);
    let trace = Trace {
        tenant: key.tenant.clone(),
        trace_id: key.trace_id,
        version,
        source: TraceSource::Otlp,
        agent_name: agent_name.or_else(|| service_name(head)).unwrap_or_else(|| NAMELESS.to_owned()),
        framework: framework(&tree, &whole),
        input,
        output,
        tool_calls,
        latency_ms: span_ms(timestamp, last.end(&tree).max(first.end(&tree))),
        token_usage: used.tokens(),
        cost_usd: cost.usd,
        cost_source: cost.source,
        cost_parts: cost.parts,
        metadata: metadata(key, &tree, head, model.as_deref()),
        timestamp,
        session_id: session_id.or_else(|| tree.any_of(|reading| reading.session_id.clone())),
        user_id: user_id.or_else(|| tree.any_of(|reading| reading.user_id.clone())),
        provider: provider(&tree, &whole),
        model,
        environment: resource_text(&head.span.resource, &["deployment.environment.name", "deployment.environment"]),
        service_version: resource_text(&head.span.resource, &["service.version"]),
        runs: {
            add_variants(rows, tree.variants, prices, &mut runs);
            runs
        },
        partial: false,
        in_progress: false,
        conflicting_spans: tree.variants > 1,
        span_count: u32::try_from(tree.nodes.len()).unwrap_or(u32::MAX),
        error_count: tree.error_count(),
        notes: notes::of(&tree, &whole, &used, stretches.runs.iter().all(|run| run.top.is_none())),
        seen_through: rows.iter().map(|row| row.position.seq).max().unwrap_or(0),
    };
    Some(trace)
}

/// A span id that came with several contents is judged in each of them: the runs that differ are runs of their own.
fn add_variants(rows: &[Arc<Row>], variants: usize, prices: &Prices, runs: &mut Vec<Run>) {
    for variant in 1..variants.min(VARIANTS_MAX + 1) {
        let tree = Tree::build(rows, variant, prices);
        for other in run::describe_all(&tree, &run::stretches(&tree)) {
            if !runs.contains(&other) {
                runs.push(other);
            }
        }
    }
}

/// The model that answered, else the one asked for.
fn model(tree: &Tree<'_>, whole: &[usize]) -> Option<String> {
    of_calls_first(tree, whole, |reading| reading.model.clone().or_else(|| reading.request_model.clone()))
}

fn provider(tree: &Tree<'_>, whole: &[usize]) -> Option<String> {
    of_calls_first(tree, whole, |reading| reading.provider.clone())
}

/// What the first model call says, else an agent or step. An embedding that is no call itself never speaks for them.
fn of_calls_first(tree: &Tree<'_>, whole: &[usize], ask: impl Fn(&Reading) -> Option<String>) -> Option<String> {
    let call = tree.call_role(whole);
    let of = |is_call: bool| {
        let nodes = tree.of(whole).filter(move |node| (node.reading.role == Some(call)) == is_call);
        nodes
            .filter(move |node| is_call || node.reading.role != Some(Role::Embedding))
            .find_map(|node| ask(&node.reading))
    };
    of(true).or_else(|| of(false))
}

/// The library of the agent itself, rather than that of the client it calls models with.
fn framework(tree: &Tree<'_>, whole: &[usize]) -> Option<String> {
    let of_steps = tree
        .of(whole)
        .filter(|node| matches!(node.reading.role, Some(Role::Agent | Role::Chain)))
        .find_map(|node| node.reading.framework.clone());
    of_steps.or_else(|| tree.first_of(whole, |reading: &Reading| reading.framework.clone()))
}

/// The service's name, unless the SDK made it up.
fn service_name(node: &Node<'_>) -> Option<String> {
    resource_text(&node.span.resource, &["service.name"]).filter(|name| !name.starts_with("unknown_service"))
}

fn resource_text(resource: &Resource, keys: &[&str]) -> Option<String> {
    let of = |key: &&str| resource.attributes.get(*key).and_then(Value::as_str).filter(|text| !text.is_empty());
    keys.iter().find_map(of).map(str::to_owned)
}

/// Milliseconds between two times; none when the later is not known.
fn span_ms(start: Timestamp, end: Timestamp) -> Option<f64> {
    (end >= start && end.as_unix_nanos() > 0).then(|| end.since(start).as_secs_f64() * 1000.0)
}

/// What its spans carried and no dialect could read: the first keys in their order.
fn unmapped<'t>(tree: &'t Tree<'_>) -> Vec<&'t str> {
    let keys: BTreeSet<&str> = tree.nodes.iter().flat_map(|node| &node.reading.unmapped).map(String::as_str).collect();
    keys.into_iter().take(UNMAPPED_MAX).collect()
}

/// The model, and what sent the spans.
fn metadata(key: &RowKey, tree: &Tree<'_>, head: &Node<'_>, model: Option<&str>) -> Map<String, Value> {
    let mut metadata = Map::new();
    if let Some(model) = model {
        metadata.insert("model".to_owned(), json!(model));
    }
    let attributes = &head.span.resource.attributes;
    let resource: Map<String, Value> = RESOURCE_KEYS
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), attributes.get(*key).filter(|value| value.is_string())?.clone())))
        .collect();
    let scope = &head.span.scope;
    let scope = json!({ "name": scope.name, "version": scope.version });
    let mut otel = json!({ "trace_id": key.trace_id, "scope": scope, "resource": resource });
    let unmapped = unmapped(tree);
    if let (Some(otel), false) = (otel.as_object_mut(), unmapped.is_empty()) {
        otel.insert(UNMAPPED.to_owned(), json!(unmapped));
    }
    metadata.insert("otel".to_owned(), otel);
    metadata
}

#[cfg(test)]
mod tests;
