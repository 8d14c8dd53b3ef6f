//! The spans of a trace as a tree, each joined with its log records.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::dialect::{self, DETAILS_EVENT};
use crate::model::{Observation, RawLog, RawSpan, Reading, Role, Row, SpanId, StatusCode, Timestamp, Usage};
use crate::price::Prices;

/// How many ancestors of a span are looked at; a chain of spans deeper than this is no program's.
const ANCESTORS_MAX: usize = 256;
/// How much earlier than its parent a span may begin, in nanoseconds, before its clock is taken to be late: clocks of one
/// machine differ by less.
pub const SKEW_NANOS: u64 = 1_000_000_000;

/// One span with what it means.
pub struct Node<'a> {
    pub span: &'a RawSpan,
    pub reading: Cow<'a, Reading>,
    /// When it began, by the clock of the first process.
    pub begun: Timestamp,
    pub parent: Option<usize>,
    pub children: Vec<usize>,
}

/// All spans of a trace in the order of their start.
pub struct Tree<'a> {
    pub nodes: Vec<Node<'a>>,
    /// The spans without a parent among them.
    pub roots: Vec<usize>,
    /// The most different contents that one span id came with.
    pub variants: usize,
    /// What model calls cost.
    pub prices: &'a Prices,
}

impl<'a> Tree<'a> {
    /// Puts the rows together. Where a span id came with several contents, takes the one numbered `variant`, or the
    /// last.
    pub fn build(rows: &'a [Arc<Row>], variant: usize, prices: &'a Prices) -> Self {
        let mut spans: BTreeMap<SpanId, Vec<(&Row, &RawSpan)>> = BTreeMap::new();
        let mut logs: BTreeMap<SpanId, Vec<(&Row, &RawLog)>> = BTreeMap::new();
        for row in rows {
            match &row.observation {
                Observation::Span(span) => spans.entry(row.span_id).or_default().push((row, span)),
                Observation::Log(log) => logs.entry(row.span_id).or_default().push((row, log)),
            }
        }
        let mut variants = 1;
        let mut nodes = Vec::with_capacity(spans.len());
        for (id, versions) in spans {
            let versions = contents(versions);
            variants = variants.max(versions.len());
            let Some((row, span)) = versions.get(variant.min(versions.len().saturating_sub(1))).copied() else {
                continue;
            };
            let reading = match logs.remove(&id) {
                Some(logs) => Cow::Owned(joined(&row.reading, logs)),
                None => Cow::Borrowed(&row.reading),
            };
            nodes.push(Node { span, reading, begun: span.start, parent: None, children: Vec::new() });
        }
        nodes.sort_by_key(|node| (node.span.start, node.span.span_id));
        let mut tree = Self { nodes, roots: Vec::new(), variants, prices };
        tree.link();
        if let Some(starts) = tree.corrected_starts() {
            tree.reorder(&starts);
        }
        tree
    }

    /// When each span began by the clock of the first process, or nothing when clocks agree. A span that began well
    /// before its parent, and all below it, was timed by a clock that is late by at least that much.
    fn corrected_starts(&self) -> Option<Vec<u64>> {
        let raw = |at: usize| self.get(at).map_or(0, |node| node.span.start.as_unix_nanos());
        let mut late = vec![0_u64; self.nodes.len()];
        let mut is_late = false;
        let mut open = self.roots.clone();
        while let Some(at) = open.pop() {
            let by = late.get(at).copied().unwrap_or(0);
            let start = raw(at).saturating_add(by);
            for child in self.get(at).map(|node| node.children.as_slice()).unwrap_or_default() {
                let begun = raw(*child).saturating_add(by);
                let missing = start.saturating_sub(begun);
                let late_by = by.saturating_add(if missing > SKEW_NANOS { missing } else { 0 });
                is_late |= late_by > 0;
                if let Some(slot) = late.get_mut(*child) {
                    *slot = late_by;
                }
                open.push(*child);
            }
        }
        is_late.then(|| late.iter().enumerate().map(|(at, by)| raw(at).saturating_add(*by)).collect())
    }

    /// Puts the spans in the order of other starts and links them anew. A parent stays before its children.
    fn reorder(&mut self, starts: &[u64]) {
        let depth = |at: usize| self.ancestors(at).count();
        let mut keys: Vec<(u64, usize, SpanId, usize)> = Vec::with_capacity(self.nodes.len());
        for (at, node) in self.nodes.iter().enumerate() {
            keys.push((starts.get(at).copied().unwrap_or(0), depth(at), node.span.span_id, at));
        }
        keys.sort_unstable();
        let mut taken: Vec<Option<Node<'a>>> = std::mem::take(&mut self.nodes).into_iter().map(Some).collect();
        let in_order = keys.iter().filter_map(|(begun, .., at)| Some((*begun, taken.get_mut(*at)?.take()?)));
        self.nodes = in_order
            .map(|(begun, node)| Node {
                begun: Timestamp::from_unix_nanos(begun),
                parent: None,
                children: Vec::new(),
                ..node
            })
            .collect();
        self.roots.clear();
        self.link();
    }

    /// Finds every span's parent and children; a span that would be its own ancestor is a root.
    fn link(&mut self) {
        let at: BTreeMap<SpanId, usize> =
            self.nodes.iter().enumerate().map(|(at, node)| (node.span.span_id, at)).collect();
        let parents: Vec<Option<usize>> =
            self.nodes.iter().map(|node| node.span.parent_span_id.and_then(|id| at.get(&id).copied())).collect();
        // 0 not seen, 1 on the way up, 2 leads to a root.
        let mut seen = vec![0_u8; parents.len()];
        for start in 0..parents.len() {
            let mut way = Vec::new();
            let mut at = Some(start);
            while let Some(here) = at {
                match seen.get_mut(here) {
                    Some(state @ 0) => *state = 1,
                    _ => break,
                }
                way.push(here);
                at = parents.get(here).copied().flatten();
            }
            let in_circle = at.is_some_and(|here| seen.get(here) == Some(&1));
            for here in &way {
                if let Some(state) = seen.get_mut(*here) {
                    *state = 2;
                }
            }
            for here in way {
                let parent = parents.get(here).copied().flatten().filter(|_| !(in_circle && here == start));
                self.attach(here, parent);
            }
        }
        for node in &mut self.nodes {
            node.children.sort_unstable();
        }
        self.roots.sort_unstable();
    }

    fn attach(&mut self, child: usize, parent: Option<usize>) {
        if let Some(node) = self.nodes.get_mut(child) {
            node.parent = parent;
        }
        match parent.and_then(|parent| self.nodes.get_mut(parent)) {
            Some(node) => node.children.push(child),
            None => self.roots.push(child),
        }
    }

    /// The node at an index; every index comes from this tree.
    pub fn get(&self, at: usize) -> Option<&Node<'a>> {
        self.nodes.get(at)
    }

    /// The role of a node.
    pub fn role(&self, at: usize) -> Option<Role> {
        self.get(at).and_then(|node| node.reading.role)
    }

    /// The nodes at some indices.
    pub fn of<'t, 'p>(&'t self, places: &'p [usize]) -> impl Iterator<Item = &'t Node<'a>> + use<'t, 'p, 'a> {
        places.iter().filter_map(|at| self.nodes.get(*at))
    }

    /// The role of the model calls among some places. An embedding is one only where nothing else runs: beside an
    /// agent, a model that answers or a tool it is a means to their end.
    pub fn call_role(&self, places: &[usize]) -> Role {
        let runs = |node: &Node<'_>| matches!(node.reading.role, Some(Role::Agent | Role::Llm | Role::Tool));
        if self.of(places).any(runs) { Role::Llm } else { Role::Embedding }
    }

    /// The first reading among some that answers.
    pub fn first_of<T>(&self, places: &[usize], ask: impl Fn(&Reading) -> Option<T>) -> Option<T> {
        self.of(places).find_map(|node| ask(&node.reading))
    }

    /// The first reading of all that answers.
    pub fn any_of<T>(&self, ask: impl Fn(&Reading) -> Option<T>) -> Option<T> {
        self.nodes.iter().find_map(|node| ask(&node.reading))
    }

    /// The ancestors of a node, nearest first.
    pub fn ancestors(&self, at: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.get(at).and_then(|node| node.parent), |at| {
            self.get(*at).and_then(|node| node.parent)
        })
        .take(ANCESTORS_MAX)
    }

    /// A node and everything below it, in the order of start.
    pub fn below(&self, at: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let mut open = vec![at];
        while let Some(here) = open.pop() {
            found.push(here);
            if let Some(node) = self.get(here) {
                open.extend(&node.children);
            }
        }
        found.sort_unstable();
        found
    }

    /// How many spans ended in an error.
    pub fn error_count(&self) -> u32 {
        let count = self.nodes.iter().filter(|node| node.span.status == StatusCode::Error).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

/// The different contents of a span id, in the order they arrived. An unended form is replaced by an ended one.
fn contents<'a>(mut versions: Vec<(&'a Row, &'a RawSpan)>) -> Vec<(&'a Row, &'a RawSpan)> {
    versions.sort_by_key(|(row, _)| row.position);
    let mut hashes = BTreeSet::new();
    versions.retain(|(row, _)| hashes.insert(row.content_hash));
    let ended = |(_, span): &(&Row, &RawSpan)| span.end.as_unix_nanos() > 0;
    if versions.iter().any(ended) {
        versions.retain(ended);
    } else if let Some(newest) = versions.pop() {
        versions = vec![newest];
    }
    versions
}

/// What a span says, filled up with what its log records say.
fn joined(reading: &Reading, mut logs: Vec<(&Row, &RawLog)>) -> Reading {
    logs.sort_by_key(|(row, log)| (log.time, row.position));
    let mut hashes = BTreeSet::new();
    logs.retain(|(row, _)| hashes.insert(row.content_hash));
    let mut reading = reading.clone();
    let mut events = Reading::default();
    let mut calls: Vec<&Reading> = Vec::new();
    for (row, log) in logs {
        if log.event_name == DETAILS_EVENT {
            calls.push(&row.reading);
            continue;
        }
        let read = &row.reading;
        if let Some(messages) = &read.input_messages {
            events.input_messages.get_or_insert_default().extend(messages.iter().cloned());
        }
        if let Some(messages) = &read.output_messages {
            events.output_messages.get_or_insert_default().extend(messages.iter().cloned());
        }
        events.error = events.error.or_else(|| read.error.clone());
        events.sources.extend(read.sources.iter().map(|(field, key)| (field.clone(), key.clone())));
    }
    if let [_, _, ..] = calls.as_slice() {
        several(&calls, &mut reading);
    }
    for call in calls.iter().take(1).chain(calls.last()) {
        dialect::merge(&mut reading, (*call).clone());
    }
    dialect::merge(&mut reading, events);
    reading
}

/// Several details records on one span are several model calls: the span itself tells of one only.
fn several(calls: &[&Reading], reading: &mut Reading) {
    let sum =
        |of: fn(&Usage) -> Option<u64>| calls.iter().filter_map(|call| of(&call.usage)).reduce(u64::saturating_add);
    let usage = Usage {
        input: sum(|usage| usage.input),
        output: sum(|usage| usage.output),
        total: sum(|usage| usage.total),
        cache_read: sum(|usage| usage.cache_read),
        cache_write: sum(|usage| usage.cache_write),
        reasoning: sum(|usage| usage.reasoning),
        input_audio: sum(|usage| usage.input_audio),
        output_audio: sum(|usage| usage.output_audio),
    };
    if usage.input.is_some() || usage.output.is_some() {
        reading.usage = usage;
    }
    if reading.output_messages.is_none() {
        reading.output_messages = calls.iter().rev().find_map(|call| call.output_messages.clone());
    }
}
