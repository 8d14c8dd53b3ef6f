//! Which tools ran: one trajectory, from the tools' own spans, else from what the models asked for and were told.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::tree::{Node, Tree};
use super::{run, span_ms};
use crate::dialect;
use crate::model::{Message, Part, Role, Timestamp, ToolCall};

/// One step and when it began, where a span says so.
pub type Step = (Option<Timestamp>, ToolCall);

/// The tools used among some places, in order. None when the spans cannot tell, empty when they say that none ran.
pub fn trajectory(tree: &Tree<'_>, places: &[usize]) -> Option<Vec<Step>> {
    let talk = Talk::of(tree, places);
    let seen = places.iter().any(|at| tree.role(*at) == Some(Role::Tool));
    if seen {
        return Some(from_spans(tree, places, &talk));
    }
    let calls = talk.requests.iter().filter(|request| !is_no_tool(request.name)).map(|request| request.step(&talk));
    let calls: Vec<Step> = calls.map(|step| (None, step)).collect();
    (!calls.is_empty() || talk.is_known).then_some(calls)
}

/// Steps without their times.
pub fn calls(steps: Vec<Step>) -> Vec<ToolCall> {
    steps.into_iter().map(|(_, step)| step).collect()
}

/// The tools of all runs, each in one: in order of start where all spans say when.
pub fn whole(tree: &Tree<'_>, runs: &[run::Stretch]) -> Option<Vec<ToolCall>> {
    let each: Vec<Vec<Step>> = runs.iter().filter_map(|run| trajectory(tree, &run.all())).collect();
    if each.is_empty() {
        return None;
    }
    let mut steps: Vec<Step> = each.into_iter().flatten().collect();
    if runs.len() > 1 && steps.iter().all(|(start, _)| start.is_some()) {
        steps.sort_by_key(|(start, _)| *start);
    }
    Some(calls(steps))
}

/// Spans of tools that record what a span around them records.
pub fn doubled(tree: &Tree<'_>, places: &[usize]) -> u32 {
    let is_double = |at: usize| tree.get(at).is_some_and(is_tool) && same_call_above(tree, at).is_some();
    u32::try_from(places.iter().filter(|at| is_double(**at)).count()).unwrap_or(u32::MAX)
}

/// Names of steps that models call like tools and that run nothing.
fn is_no_tool(name: &str) -> bool {
    name.is_empty()
        || name.starts_with("(merged")
        || name.starts_with("handoff to ")
        || name.starts_with("transfer_to_")
        || matches!(name, "final_answer" | "FinalAnswerTool")
}

fn is_tool(node: &Node<'_>) -> bool {
    let name = node.reading.tool_name.as_deref().unwrap_or(&node.span.name);
    let finish = name == "finish" && node.reading.framework.as_deref() == Some("dspy");
    node.reading.role == Some(Role::Tool) && !is_no_tool(name) && !is_no_tool(&node.span.name) && !finish
}

fn from_spans(tree: &Tree<'_>, places: &[usize], talk: &Talk<'_>) -> Vec<Step> {
    let mut steps: BTreeMap<usize, ToolCall> = BTreeMap::new();
    let mut used = BTreeSet::new();
    for at in places.iter().copied() {
        let Some(node) = tree.get(at).filter(|node| is_tool(node)) else { continue };
        if let Some(step) = same_call_above(tree, at).and_then(|outer| steps.get_mut(&outer)) {
            fill_from(step, node);
        } else {
            steps.insert(at, step(node));
        }
    }
    let mut ordered = Vec::with_capacity(steps.len());
    let mut all_asked = true;
    for (at, mut step) in steps {
        let request = talk.complete(&mut step, &mut used);
        all_asked &= request.is_some();
        if step.error.is_none() {
            step.error = step.output.as_ref().and_then(dialect::announced_error);
        }
        // Clocks of whole milliseconds let parallel calls start together: then the model's order counts.
        let start = tree.get(at).map(|node| node.begun);
        ordered.push((start, request.unwrap_or(usize::MAX), at, step));
    }
    ordered.sort_by_key(|(start, request, at, _)| (*start, *request, *at));
    if all_asked {
        add_unseen(talk, &used, &mut ordered);
    }
    ordered.into_iter().map(|(start, _, _, step)| (start, step)).collect()
}

/// Adds calls that left no span although the models were told their results: where every span of a tool was asked for,
/// what was asked for and answered beyond that ran too.
fn add_unseen(talk: &Talk<'_>, used: &BTreeSet<usize>, ordered: &mut Vec<(Option<Timestamp>, usize, usize, ToolCall)>) {
    if ordered.is_empty() {
        return;
    }
    for (number, request) in talk.requests.iter().enumerate() {
        let answered = request.id.is_some_and(|id| talk.results.contains_key(id));
        let has_span = || ordered.iter().any(|(_, _, _, step)| step.call_id.as_deref() == request.id);
        if used.contains(&number) || !answered || is_no_tool(request.name) || has_span() {
            continue;
        }
        // It stands behind what was asked for before it, and began no later than what follows.
        let place = ordered.iter().rposition(|(_, before, _, _)| *before < number).map_or(0, |at| at + 1);
        let start = place.checked_sub(1).and_then(|at| ordered.get(at)).or(ordered.first()).and_then(|step| step.0);
        ordered.insert(place, (start, number, usize::MAX, request.step(talk)));
    }
}

/// The outermost tool span that records the same call: same tool, no model call or agent between. An adapter puts the name
/// of a server in front of the tool's: `mcp__harbor__find` around `find`.
fn same_call_above(tree: &Tree<'_>, at: usize) -> Option<usize> {
    let node = tree.get(at)?;
    let id = |at: usize| tree.get(at).and_then(|node| node.reading.tool_call_id.as_deref());
    let differ = |above: usize| matches!((id(at), id(above)), (Some(one), Some(two)) if one != two);
    tree.ancestors(at)
        .take_while(|above| !matches!(tree.role(*above), Some(Role::Agent | Role::Llm)))
        .filter(|above| tree.get(*above).is_some_and(is_tool) && !differ(*above))
        .filter(|above| tree.get(*above).is_some_and(|outer| is_same_tool(outer, node)))
        .last()
}

fn is_same_tool(outer: &Node<'_>, inner: &Node<'_>) -> bool {
    let (outer, inner) = (&outer.reading, &inner.reading);
    if outer.tool_name == inner.tool_name {
        return true;
    }
    let (Some(adapter), Some(tool)) = (outer.tool_name.as_deref(), inner.tool_name.as_deref()) else { return false };
    let prefix = adapter.strip_suffix(tool).filter(|_| !tool.is_empty());
    let differ = matches!((&outer.tool_arguments, &inner.tool_arguments), (Some(one), Some(two)) if one != two);
    prefix.is_some_and(|prefix| prefix.ends_with(['_', '-', '.', '/', ':'])) && !differ
}

fn step(node: &Node<'_>) -> ToolCall {
    let reading = &node.reading;
    ToolCall {
        tool_name: reading.tool_name.clone().unwrap_or_else(|| node.span.name.clone()),
        input: reading.tool_arguments.clone().filter(|value| !value.is_null()),
        output: reading.tool_result.clone().filter(|value| !value.is_null()),
        latency_ms: span_ms(node.span.start, node.span.end),
        error: reading.error.clone(),
        call_id: reading.tool_call_id.clone(),
    }
}

/// Adds what an inner span of the same call knows.
fn fill_from(outer: &mut ToolCall, inner: &Node<'_>) {
    let inner = step(inner);
    outer.input = outer.input.take().or(inner.input);
    outer.output = outer.output.take().or(inner.output);
    outer.error = outer.error.take().or(inner.error);
    outer.call_id = outer.call_id.take().or(inner.call_id);
}

/// A call that a model asked for.
struct Request<'t> {
    id: Option<&'t str>,
    name: &'t str,
    arguments: &'t Value,
}

impl Request<'_> {
    fn step(&self, talk: &Talk<'_>) -> ToolCall {
        let output = self.id.and_then(|id| talk.results.get(id)).map(|result| (*result).clone());
        let output = output.filter(|value| !value.is_null());
        ToolCall {
            tool_name: self.name.to_owned(),
            input: Some(self.arguments.clone()).filter(|value| !value.is_null()),
            error: output.as_ref().and_then(dialect::announced_error),
            output,
            latency_ms: None,
            call_id: self.id.map(str::to_owned),
        }
    }
}

/// What models asked for and were told.
struct Talk<'t> {
    requests: Vec<Request<'t>>,
    results: BTreeMap<&'t str, &'t Value>,
    /// Whether the answers of the models are there to look at.
    is_known: bool,
}

impl<'t> Talk<'t> {
    fn of(tree: &'t Tree<'_>, places: &[usize]) -> Self {
        let mut talk = Self { requests: Vec::new(), results: BTreeMap::new(), is_known: false };
        let calls = run::calls(tree, places);
        let mut seen = BTreeSet::new();
        for call in &calls {
            let asked = call.asked.unwrap_or_default();
            talk.hear(asked, &mut seen, since_question(asked));
            talk.hear(call.answered.unwrap_or_default(), &mut seen, 0);
            talk.is_known |= call.answered.is_some();
        }
        if !talk.is_known {
            for node in tree.of(places).filter(|node| matches!(node.reading.role, Some(Role::Agent | Role::Chain))) {
                let Some(said) = node.reading.output_messages.as_deref() else { continue };
                talk.hear(said, &mut seen, since_question(said));
                talk.is_known = true;
            }
        }
        talk.is_known |= finished_without_tools(tree, places);
        talk
    }

    /// Takes requests from the messages starting at `from`, and results from all.
    fn hear(&mut self, messages: &'t [Message], seen: &mut BTreeSet<&'t str>, from: usize) {
        for (at, message) in messages.iter().enumerate() {
            for part in &message.parts {
                match part {
                    Part::ToolCall { id, name, arguments } if at >= from => match id.as_deref() {
                        Some(id) if !seen.insert(id) => {}
                        None if from > 0 => {}
                        id => self.requests.push(Request { id, name, arguments }),
                    },
                    Part::ToolResult { id: Some(id), result, .. } => {
                        self.results.entry(id.as_str()).or_insert(result);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Adds to a step what only the messages know: arguments where the span has a bare value, and the result.
    /// Says which request it was.
    fn complete(&self, step: &mut ToolCall, used: &mut BTreeSet<usize>) -> Option<usize> {
        let found = match step.call_id.as_deref() {
            Some(id) => self.requests.iter().position(|request| request.id == Some(id)),
            None => None,
        };
        let found = found.or_else(|| {
            self.requests.iter().enumerate().position(|(at, request)| {
                !used.contains(&at) && request.name == step.tool_name && holds(request.arguments, step.input.as_ref())
            })
        });
        let (at, request) = found.and_then(|at| Some((at, self.requests.get(at)?)))?;
        used.insert(at);
        if !step.input.as_ref().is_some_and(Value::is_object) && request.arguments.is_object() {
            step.input = Some(request.arguments.clone());
        }
        if step.call_id.is_none() {
            step.call_id = request.id.map(str::to_owned);
        }
        if step.output.is_none() {
            step.output = request
                .id
                .and_then(|id| self.results.get(id))
                .map(|result| (*result).clone())
                .filter(|value| !value.is_null());
        }
        Some(at)
    }
}

/// Where the current turn begins: after the last words of the user.
fn since_question(messages: &[Message]) -> usize {
    let asks = |message: &Message| message.role == "user" && dialect::text_of(&message.parts).is_some();
    messages.iter().rposition(asks).map_or(0, |at| at + 1)
}

/// Whether a request's arguments are what a step was run with, as far as its span tells.
fn holds(arguments: &Value, input: Option<&Value>) -> bool {
    match input {
        None => true,
        Some(Value::Object(_)) => input == Some(arguments),
        Some(bare) => {
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let bare = bare.as_array().map_or(std::slice::from_ref(bare), Vec::as_slice);
            let has = |bare: &Value| {
                arguments.as_object().is_some_and(|map| map.values().any(|value| text(value) == text(bare)))
            };
            bare.iter().all(has)
        }
    }
}

/// Whether every model call says why it stopped, and none stopped for a tool.
fn finished_without_tools(tree: &Tree<'_>, places: &[usize]) -> bool {
    let mut calls = tree.of(places).filter(|node| node.reading.role == Some(Role::Llm)).peekable();
    let for_tool = |reason: &String| {
        let reason = reason.to_ascii_lowercase();
        reason.contains("tool") || reason.contains("function")
    };
    calls.peek().is_some()
        && calls
            .all(|node| !node.reading.finish_reasons.is_empty() && !node.reading.finish_reasons.iter().any(for_tool))
}
