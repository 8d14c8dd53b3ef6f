//! Which stretches of a trace are runs of an agent, and what each was asked and answered.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::{Node, Tree};
use super::{cost, span_ms, tools, usage};
use crate::dialect;
use crate::model::{Message, Reading, Role, Run, SpanId, Timestamp};

/// How many model calls beside the runs are judged, the first.
const BESIDE_MAX: usize = 32;

/// One run: the span that is the run, when there is one, and everything in it.
pub struct Stretch {
    /// The agent's or workflow's span; absent when a program calls models without one.
    pub top: Option<usize>,
    /// Its spans, itself included, in the order of start.
    pub places: Vec<usize>,
    /// What lies beside all runs and is put down to this one: its tools, tokens and cost, never what it was asked or
    /// answered.
    pub taken: Vec<usize>,
}

/// All AI spans of a trace.
pub struct Stretches {
    /// The top-most runs in the order of start.
    pub runs: Vec<Stretch>,
    /// Model calls and tools beside the runs.
    pub beside: Vec<usize>,
}

impl Stretches {
    /// Every place of every run, and those beside them.
    pub fn whole(&self) -> Vec<usize> {
        let mut whole: Vec<usize> = self.runs.iter().flat_map(|run| &run.places).chain(&self.beside).copied().collect();
        whole.sort_unstable();
        whole.dedup();
        whole
    }
}

impl Stretch {
    /// Its spans and those that are put down to it, in the order of start.
    pub fn all(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self.places.iter().chain(&self.taken).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The span that stands for the run.
    pub fn head<'t, 'a>(&self, tree: &'t Tree<'a>) -> Option<&'t Node<'a>> {
        tree.get(self.top.or_else(|| self.places.first().copied())?)
    }

    /// When it began.
    pub fn start(&self, tree: &Tree<'_>) -> Timestamp {
        self.head(tree).map(|node| node.span.start).unwrap_or_default()
    }

    /// When it ended; zero when it has not. A run that was sent as the moment of its beginning lasts as long as what
    /// belongs to it.
    pub fn end(&self, tree: &Tree<'_>) -> Timestamp {
        let end = match self.top.and_then(|top| tree.get(top)).filter(|node| node.span.end != node.span.start) {
            Some(node) => Some(node.span.end),
            None => tree.of(&self.places).map(|node| node.span.end).max(),
        };
        end.unwrap_or_default()
    }
}

/// Finds the runs: top-most agents and workflows that hold an agent, a model call or a tool. Without any, all model
/// calls and tools together are one run; without those, all embeddings and the steps around them; without any, the top-most
/// steps that hold one which was asked something and answered.
pub fn stretches(tree: &Tree<'_>) -> Stretches {
    let mut tops = Vec::new();
    let mut beside = Vec::new();
    let mut embeddings = Vec::new();
    let mut open = tree.roots.clone();
    while let Some(at) = open.pop() {
        match tree.role(at) {
            Some(Role::Agent | Role::Chain) => tops.push(at),
            Some(Role::Llm | Role::Tool) => beside.extend(tree.below(at)),
            role => {
                embeddings.extend((role == Some(Role::Embedding)).then_some(at));
                open.extend(tree.get(at).map(|node| node.children.as_slice()).unwrap_or_default());
            }
        }
    }
    tops.sort_unstable();
    beside.sort_unstable();
    let states = |top: usize| {
        let is_step = |node: &Node<'_>| matches!(node.reading.role, Some(Role::Agent | Role::Llm | Role::Tool));
        tree.of(&tree.below(top)).any(|node| is_step(node) && !dialect::is_guessed(&node.reading))
    };
    let guessed = |top: usize| tree.get(top).is_some_and(|node| dialect::is_guessed(&node.reading));
    if tops.iter().any(|top| guessed(*top)) && tops.iter().any(|top| states(*top)) {
        // Beside runs that say what they are, a span that merely carries content is none.
        tops.retain(|top| states(*top));
    }
    let mut runs = Vec::new();
    let mut steps = Vec::new();
    for top in tops {
        let places = tree.below(top);
        if tree.call_role(&places) == Role::Llm {
            runs.push(Stretch { top: Some(top), places, taken: Vec::new() });
        } else if tree.of(&places).any(|node| node.reading.role == Some(Role::Embedding)) {
            embeddings.extend(places);
        } else if tree.of(&places).any(|node| node.reading.is_answered_step()) {
            steps.push(Stretch { top: Some(top), places, taken: Vec::new() });
        }
    }
    embeddings.sort_unstable();
    if runs.is_empty() && beside.is_empty() && embeddings.is_empty() {
        runs = steps;
    }
    if runs.is_empty() && !(beside.is_empty() && embeddings.is_empty()) {
        let places = if beside.is_empty() { embeddings } else { std::mem::take(&mut beside) };
        runs.push(Stretch { top: None, places, taken: Vec::new() });
    }
    put_down(tree, &mut runs, &beside);
    Stretches { runs, beside }
}

/// Puts what lies beside the runs down to one of them each: the one that has the same answer, else the one during which
/// it began, else the last one that began before it, else the first.
fn put_down(tree: &Tree<'_>, runs: &mut [Stretch], beside: &[usize]) {
    let mut answers: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, run) in runs.iter().enumerate() {
        for id in run.places.iter().filter_map(|place| usage::answer_id(tree, *place)) {
            answers.entry(id).or_insert(at);
        }
    }
    let times: Vec<(Timestamp, Timestamp)> = runs.iter().map(|run| (run.start(tree), run.end(tree))).collect();
    let mut owner: BTreeMap<usize, usize> = BTreeMap::new();
    for place in beside.iter().copied() {
        // What stands in something that lies beside goes with it. Parents stand before their children.
        let with = tree.get(place).and_then(|node| node.parent).and_then(|parent| owner.get(&parent).copied());
        let start = tree.get(place).map(|node| node.span.start).unwrap_or_default();
        let during = || times.iter().rposition(|(from, to)| *from <= start && start <= *to);
        let before = || times.iter().rposition(|(from, _)| *from <= start);
        let same = usage::answer_id(tree, place).and_then(|id| answers.get(id).copied());
        let run = with.or(same).or_else(during).or_else(before).unwrap_or(0);
        owner.insert(place, run);
        if let Some(run) = runs.get_mut(run) {
            run.taken.push(place);
        }
    }
}

/// Everything that is judged: the runs, then what models answered beside them. What else lies beside the runs is put down
/// to one of them, so that every tool, token and cost of the trace is in one run.
pub fn describe_all(tree: &Tree<'_>, stretches: &Stretches) -> Vec<Run> {
    let mut runs: Vec<Run> = stretches.runs.iter().map(|run| describe(tree, run, &run.all())).collect();
    let most = runs.len() + BESIDE_MAX;
    for call in calls(tree, &stretches.beside) {
        let output = call.words().filter(|text| !text.trim().is_empty());
        // A library that loses the parent of its calls repeats in them what the run answered.
        if runs.len() < most && output.is_some() && !runs.iter().any(|run| run.output == output) {
            let (span_id, input) = (Some(call.order.1), call.asked.and_then(dialect::question));
            runs.push(Run { span_id, input, output, ..Run::default() });
        }
    }
    runs
}

/// Everything about one run, with the tools, tokens and cost of some places.
fn describe(tree: &Tree<'_>, stretch: &Stretch, places: &[usize]) -> Run {
    let used = usage::Used::of(tree, places);
    let cost = cost::total(tree, places, &used);
    let output = output(tree, stretch);
    let head = stretch.head(tree);
    let tool_calls = tools::trajectory(tree, places).map(tools::calls).unwrap_or_default();
    let error = head.and_then(|node| node.reading.error.clone()).filter(|error| {
        // Some libraries let a tool's failure colour everything above it although the run went on and answered.
        output.is_none() || !tool_calls.iter().any(|call| call.error.as_ref() == Some(error))
    });
    Run {
        span_id: stretch.top.and_then(|top| tree.get(top)).map(|node| node.span.span_id),
        agent_name: agent_name(tree, stretch),
        input: input(tree, stretch),
        output,
        tool_calls,
        token_usage: used.tokens(),
        cost_usd: cost.usd,
        cost_parts: cost.parts,
        latency_ms: span_ms(stretch.start(tree), stretch.end(tree)),
        error,
        finish_reasons: finish_reasons(tree, stretch),
    }
}

/// How many reasons of one call are kept: one a choice.
const REASONS_MAX: usize = 8;

/// Why the last model call of a run stopped, as it said.
fn finish_reasons(tree: &Tree<'_>, stretch: &Stretch) -> Vec<String> {
    let calls = tree.of(&stretch.places).filter(|node| node.reading.role == Some(Role::Llm));
    let last = calls.max_by_key(|node| (node.span.end, node.span.start, node.span.span_id));
    last.map(|node| node.reading.finish_reasons.iter().take(REASONS_MAX).cloned().collect()).unwrap_or_default()
}

/// Who ran: the run's own name, else the first agent's in it, else a span's name, else whoever a call names.
pub fn agent_name(tree: &Tree<'_>, stretch: &Stretch) -> Option<String> {
    let stated = |reading: &Reading| {
        reading.agent_name.clone().filter(|_| reading.sources.get("agent_name").is_none_or(|key| key != "name"))
    };
    let agents = || tree.of(&stretch.places).filter(|node| node.reading.role == Some(Role::Agent));
    let own = stretch.top.and_then(|top| tree.get(top)).and_then(|node| stated(&node.reading));
    own.or_else(|| agents().find_map(|node| stated(&node.reading)))
        .or_else(|| agents().find_map(|node| node.reading.agent_name.clone()))
        .or_else(|| tree.first_of(&stretch.places, stated))
}

/// The part a span plays within a run: one that merely carries content is a step, wherever it stands.
fn part(node: &Node<'_>) -> Option<Role> {
    if dialect::is_guessed(&node.reading) { Some(Role::Chain) } else { node.reading.role }
}

/// What the run was asked: its own words, else the first agent's in it, else what the first model call was asked, else
/// a step's words, else data as it stands.
fn input(tree: &Tree<'_>, stretch: &Stretch) -> Option<String> {
    let own = |node: &Node<'_>| {
        let reading = &node.reading;
        words(reading.input.as_ref()).or_else(|| dialect::question(reading.input_messages.as_deref()?))
    };
    let of = |role: Role| tree.of(&stretch.places).filter(move |node| part(node) == Some(role));
    let top = stretch.top.and_then(|top| tree.get(top));
    top.and_then(own)
        .or_else(|| of(Role::Agent).find_map(own))
        .or_else(|| {
            of(tree.call_role(&stretch.places)).find_map(|node| {
                let asked = node.reading.input_messages.as_deref().and_then(dialect::question);
                asked.or_else(|| words(node.reading.input.as_ref()))
            })
        })
        .or_else(|| of(Role::Chain).find_map(own))
        .or_else(|| top.and_then(|node| node.reading.input.clone()))
}

/// What the run answered: its own words, else the last agent's in it, else the last model call's, else a step's words,
/// else data as it stands, else nothing to see when that is what the run, its last agent or its last model call sent.
/// The text of a failure is no answer.
fn output(tree: &Tree<'_>, stretch: &Stretch) -> Option<String> {
    let own = |node: &Node<'_>| {
        let reading = &node.reading;
        let stated = words(reading.output.as_ref());
        let said = || {
            // A failed run that only asked for tools has not answered.
            let said = reading
                .output_messages
                .as_deref()
                .filter(|said| reading.error.is_none() || !dialect::is_pending(said))?;
            dialect::answer(said)
        };
        stated.clone().filter(|text| is_shown(text)).or_else(said).or(stated)
    };
    let seen = |node: &Node<'_>| own(node).filter(|text| is_shown(text));
    let latest = |role: Role| {
        let mut nodes: Vec<&Node<'_>> = tree.of(&stretch.places).filter(|node| part(node) == Some(role)).collect();
        nodes.sort_by_key(|node| std::cmp::Reverse((node.span.end, node.span.start)));
        nodes
    };
    let top = stretch.top.and_then(|top| tree.get(top));
    let failed = top.is_some_and(|node| node.reading.error.is_some());
    let last = || last_call(&calls(tree, &stretch.places), failed);
    let unseen = || {
        top.and_then(own).or_else(|| latest(Role::Agent).into_iter().find_map(own)).or_else(last).filter(|_| !failed)
    };
    let answer = top
        .and_then(seen)
        .or_else(|| latest(Role::Agent).into_iter().find_map(seen))
        .or_else(|| last().filter(|text| is_shown(text)))
        .or_else(|| {
            let of_step =
                |node: &Node<'_>| words(node.reading.output.as_ref()).filter(|text| !failed && is_shown(text));
            latest(Role::Chain).into_iter().find_map(of_step)
        })
        .or_else(|| top.and_then(|node| node.reading.output.clone()).filter(|text| is_shown(text)))
        .or_else(unseen);
    answer.filter(|answer| !is_failure(tree, stretch, answer))
}

/// Whether there is more in a text than white space.
fn is_shown(text: &str) -> bool {
    !text.trim().is_empty()
}

/// One model call, as the spans that recorded it tell together.
pub struct Call<'t> {
    /// When it began, and what breaks ties.
    order: (Timestamp, SpanId),
    /// What it was asked.
    pub asked: Option<&'t [Message]>,
    /// What it answered.
    pub answered: Option<&'t [Message]>,
    /// Its answer in words, where no messages were kept.
    text: Option<&'t str>,
    failed: bool,
    response_id: Option<&'t str>,
}

impl Call<'_> {
    fn says(&self) -> bool {
        self.answered.is_some() || self.text.is_some()
    }

    /// Its answer in words, whether or not it also asks for tools.
    fn words(&self) -> Option<String> {
        let answer = self.answered.and_then(dialect::answer).or_else(|| self.text.map(str::to_owned));
        answer.filter(|text| !dialect::is_repr(text))
    }
}

/// The model calls among some places, once each, in the order of start. Of spans that recorded the same call the
/// outermost that has the answer speaks for it.
pub fn calls<'t>(tree: &'t Tree<'_>, places: &[usize]) -> Vec<Call<'t>> {
    let reading = |at: usize| tree.get(at).map(|node| node.reading.as_ref());
    let says = |at: usize| {
        reading(at).is_some_and(|read| read.output_messages.is_some() || read.output.as_deref().is_some_and(is_shown))
    };
    let calls: Vec<usize> = places.iter().copied().filter(|at| tree.role(*at) == Some(Role::Llm)).collect();
    let above = |at: usize| std::iter::successors(usage::call_above(tree, at), |at| usage::call_above(tree, *at));
    let spoken_for: BTreeSet<usize> = calls.iter().copied().filter(|at| says(*at)).flat_map(above).collect();
    let mut found: Vec<Call<'t>> = Vec::new();
    let mut answers: BTreeMap<&str, usize> = BTreeMap::new();
    for at in calls {
        let doubled =
            if says(at) { above(at).any(says) } else { spoken_for.contains(&at) || above(at).next().is_some() };
        let Some(node) = tree.get(at).filter(|_| !doubled) else { continue };
        let read = node.reading.as_ref();
        let outer = || above(at).find_map(|at| reading(at)?.input_messages.as_deref());
        let call = Call {
            order: (node.span.start, node.span.span_id),
            asked: read.input_messages.as_deref().or_else(outer),
            answered: read.output_messages.as_deref(),
            text: read.output.as_deref(),
            failed: read.error.is_some(),
            response_id: read.response_id.as_deref(),
        };
        match call.response_id.and_then(|id| answers.get(id)).and_then(|at| found.get_mut(*at)) {
            Some(known) if !known.says() && call.says() => *known = call,
            Some(_) => {}
            None => {
                if let Some(id) = call.response_id {
                    answers.insert(id, found.len());
                }
                found.push(call);
            }
        }
    }
    found
}

/// The answer of the last model call. Earlier words were not the last; a call for tools is no answer.
fn last_call(calls: &[Call<'_>], failed: bool) -> Option<String> {
    let last = calls.iter().filter(|call| call.says() || call.failed).max_by_key(|call| call.order)?;
    let pending = last.answered.is_some_and(dialect::is_pending);
    last.words().filter(|_| !(failed && pending))
}

/// Words that were recorded as such: no data, no printed object.
fn words(text: Option<&String>) -> Option<String> {
    text.filter(|text| !is_data(text) && !dialect::is_repr(text)).cloned()
}

fn is_data(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Whether an answer is only the text of the error with which every model call ended.
fn is_failure(tree: &Tree<'_>, stretch: &Stretch, answer: &str) -> bool {
    let mut calls = tree.of(&stretch.places).filter(|node| node.reading.role == Some(Role::Llm)).peekable();
    let all_failed = calls.peek().is_some()
        && calls.all(|node| node.reading.error.is_some() && node.reading.output_messages.is_none());
    let own = tree.of(&stretch.places).filter_map(|node| node.reading.error.as_deref());
    let mut errors = own.filter(|error| !error.is_empty());
    all_failed && errors.any(|error| error.contains(answer) || answer.contains(error))
}
