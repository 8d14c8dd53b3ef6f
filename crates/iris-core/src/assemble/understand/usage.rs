//! Tokens and cost, every model call once.

use std::collections::BTreeSet;

use super::tree::Tree;
use crate::model::{Role, TokenUsage};

/// What a stretch of a trace used.
#[derive(Default)]
pub struct Used {
    /// Its tokens; absent when nothing stated them.
    pub tokens: Option<TokenUsage>,
    /// Its cost in USD; absent when nothing stated it.
    pub cost_usd: Option<f64>,
}

/// The nearest model call above a node that is the same call: nothing but plain spans lies between.
pub fn call_above(tree: &Tree<'_>, at: usize) -> Option<usize> {
    let call = if tree.role(at) == Some(Role::Embedding) { Role::Embedding } else { Role::Llm };
    tree.ancestors(at)
        .take_while(|above| !matches!(tree.role(*above), Some(Role::Agent | Role::Tool)))
        .find(|above| tree.role(*above) == Some(call))
}

/// Adds up the model calls among some nodes. A call that two libraries recorded counts once: the innermost that states
/// its use, and one answer's id once. Only when no call states any is the agents' own count taken.
pub fn total(tree: &Tree<'_>, places: &[usize]) -> Used {
    let call = tree.call_role(places);
    let calls: Vec<usize> = places.iter().copied().filter(|at| tree.role(*at) == Some(call)).collect();
    let tokens = add_up(tree, &calls, |at| tokens_of(tree, at))
        .or_else(|| add_up(tree, &steps(tree, places, |at| tokens_of(tree, at).is_some()), |at| tokens_of(tree, at)));
    let cost = add_up(tree, &calls, |at| cost_of(tree, at));
    let cost =
        cost.or_else(|| add_up(tree, &steps(tree, places, |at| cost_of(tree, at).is_some()), |at| cost_of(tree, at)));
    Used { tokens: tokens.map(TokenUsage::from), cost_usd: cost.map(|cost| cost.0) }
}

/// The outermost agents and steps that state a number.
fn steps(tree: &Tree<'_>, places: &[usize], states: impl Fn(usize) -> bool) -> Vec<usize> {
    let is_step = |at: usize| matches!(tree.role(at), Some(Role::Agent | Role::Chain)) && states(at);
    let outermost = |at: &usize| is_step(*at) && !tree.ancestors(*at).any(is_step);
    places.iter().copied().filter(outermost).collect()
}

/// Something that can be added up.
trait Sum: Copy {
    fn plus(self, other: Self) -> Self;
}

/// The sum of what the places state, leaving out a place with a stating call below and an answer seen before.
fn add_up<T: Sum>(tree: &Tree<'_>, places: &[usize], of: impl Fn(usize) -> Option<T>) -> Option<T> {
    let mut covered = BTreeSet::new();
    for at in places.iter().copied().filter(|at| of(*at).is_some()) {
        let mut here = at;
        while let Some(above) = call_above(tree, here) {
            covered.insert(above);
            here = above;
        }
    }
    let mut answers = BTreeSet::new();
    places
        .iter()
        .copied()
        .filter(|at| !covered.contains(at))
        .filter_map(|at| Some((at, of(at)?)))
        .filter(|(at, _)| match tree.get(*at).and_then(|node| node.reading.response_id.as_deref()) {
            Some(id) => answers.insert(id),
            None => true,
        })
        .map(|(_, value)| value)
        .reduce(Sum::plus)
}

/// Tokens with each part known or not.
#[derive(Clone, Copy)]
struct Tokens {
    input: Option<u64>,
    output: Option<u64>,
    total: Option<u64>,
}

fn tokens_of(tree: &Tree<'_>, at: usize) -> Option<Tokens> {
    let usage = tree.get(at)?.reading.usage;
    let total = match (usage.input, usage.output) {
        (Some(input), Some(output)) => Some(input.saturating_add(output)),
        _ => usage.total,
    };
    (usage.input.is_some() || usage.output.is_some() || total.is_some()).then_some(Tokens {
        input: usage.input,
        output: usage.output,
        total,
    })
}

impl Sum for Tokens {
    fn plus(self, other: Self) -> Self {
        let add = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (Some(one), Some(two)) => Some(one.saturating_add(two)),
            (one, two) => one.or(two),
        };
        Self {
            input: add(self.input, other.input),
            output: add(self.output, other.output),
            total: add(self.total, other.total),
        }
    }
}

impl From<Tokens> for TokenUsage {
    fn from(tokens: Tokens) -> Self {
        Self { prompt_tokens: tokens.input, completion_tokens: tokens.output, total_tokens: tokens.total }
    }
}

/// USD.
#[derive(Clone, Copy)]
struct Cost(f64);

fn cost_of(tree: &Tree<'_>, at: usize) -> Option<Cost> {
    tree.get(at)?.reading.cost_usd.map(Cost)
}

impl Sum for Cost {
    fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}
