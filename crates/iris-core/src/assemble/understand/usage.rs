//! Tokens, every model call once: which spans own a call's numbers, and what they add up to.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::Tree;
use crate::model::{Role, TokenUsage, Usage};

/// The nearest model call above a node that is the same call: nothing but plain spans lies between.
pub fn call_above(tree: &Tree<'_>, at: usize) -> Option<usize> {
    let call = if tree.role(at) == Some(Role::Embedding) { Role::Embedding } else { Role::Llm };
    tree.ancestors(at)
        .take_while(|above| !matches!(tree.role(*above), Some(Role::Agent | Role::Tool)))
        .find(|above| tree.role(*above) == Some(call))
}

/// All spans above a model call that record the same call, nearest first.
pub fn calls_above<'t>(tree: &'t Tree<'_>, at: usize) -> impl Iterator<Item = usize> + use<'t> {
    std::iter::successors(call_above(tree, at), |at| call_above(tree, *at))
}

/// The provider's id of an answer.
pub fn answer_id<'t>(tree: &'t Tree<'_>, at: usize) -> Option<&'t str> {
    tree.get(at)?.reading.response_id.as_deref()
}

/// The spans that own a number: model calls, each once, and steps that state it for calls of which no span tells.
#[derive(Default)]
pub struct Owners {
    /// Of calls that several libraries recorded the innermost, of spans with one answer's id the first. In order of start.
    pub calls: BTreeSet<usize>,
    /// The outermost agents and steps without a stating call in or around them.
    pub steps: BTreeSet<usize>,
    /// Everything above those steps.
    pub above_steps: BTreeSet<usize>,
    /// The answers of the calls.
    answers: BTreeSet<String>,
    /// Spans around owners that record the same call, with how many owners they are around.
    pub around: BTreeMap<usize, u32>,
    /// Spans that state the number again under an answer's id that has been seen.
    pub again: BTreeSet<usize>,
}

impl Owners {
    /// Finds who owns what `states` says is stated.
    pub fn of(tree: &Tree<'_>, places: &[usize], states: impl Fn(usize) -> bool) -> Self {
        let call = tree.call_role(places);
        let stating: Vec<usize> =
            places.iter().copied().filter(|at| tree.role(*at) == Some(call) && states(*at)).collect();
        let mut owners = Self::default();
        let covered: BTreeSet<usize> = stating.iter().flat_map(|at| calls_above(tree, *at)).collect();
        for at in stating.iter().copied().filter(|at| !covered.contains(at)) {
            if answer_id(tree, at).is_none_or(|id| owners.answers.insert(id.to_owned())) {
                owners.calls.insert(at);
                for above in calls_above(tree, at) {
                    *owners.around.entry(above).or_default() += 1;
                }
            } else {
                owners.again.insert(at);
                owners.again.extend(calls_above(tree, at));
            }
        }
        owners.steps = steps(tree, places, &stating, states);
        owners.above_steps = owners.steps.iter().flat_map(|step| tree.ancestors(*step)).collect();
        owners
    }

    /// Whether a span records a call that has an owner.
    pub fn knows(&self, tree: &Tree<'_>, at: usize) -> bool {
        let direct = |at: usize| self.calls.contains(&at) || self.around.contains_key(&at) || self.again.contains(&at);
        let same_answer = || answer_id(tree, at).is_some_and(|id| self.answers.contains(id));
        direct(at) || calls_above(tree, at).any(|above| self.calls.contains(&above)) || same_answer()
    }

    /// Whether a span is one of the owning steps, or below one.
    pub fn is_in_step(&self, tree: &Tree<'_>, at: usize) -> bool {
        !self.steps.is_empty() && std::iter::once(at).chain(tree.ancestors(at)).any(|at| self.steps.contains(&at))
    }
}

/// The outermost agents and steps that state a number, each only where no call states it: neither in it nor beside it in
/// a step around it, where a library that loses the parent of its calls leaves them.
fn steps(tree: &Tree<'_>, places: &[usize], stating: &[usize], states: impl Fn(usize) -> bool) -> BTreeSet<usize> {
    let is_step = |at: usize| matches!(tree.role(at), Some(Role::Agent | Role::Chain));
    let holder = |call: usize| tree.ancestors(call).find(|at| is_step(*at));
    let holders: BTreeSet<Option<usize>> = stating.iter().map(|call| holder(*call)).collect();
    if holders.contains(&None) {
        return BTreeSet::new();
    }
    let above_calls: BTreeSet<usize> = stating.iter().flat_map(|call| tree.ancestors(*call)).collect();
    let stands = |at: usize| {
        is_step(at)
            && states(at)
            && !above_calls.contains(&at)
            && !tree.ancestors(at).any(|above| holders.contains(&Some(above)))
    };
    let standing: BTreeSet<usize> = places.iter().copied().filter(|at| stands(*at)).collect();
    standing.iter().copied().filter(|at| !tree.ancestors(*at).any(|above| standing.contains(&above))).collect()
}

/// What the spans of a stretch used.
pub struct Used {
    /// Who owns the tokens.
    pub owners: Owners,
    /// What each owner used, calls before steps.
    pub each: Vec<(usize, Usage)>,
    /// Input and output of all owners below a span.
    below: BTreeMap<usize, (Option<u64>, Option<u64>)>,
}

/// The sum of what is known.
fn add(one: Option<u64>, two: Option<u64>) -> Option<u64> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.saturating_add(two)),
        (one, two) => one.or(two),
    }
}

impl Used {
    /// Finds the owners of tokens among some places, and what each used.
    pub fn of(tree: &Tree<'_>, places: &[usize]) -> Self {
        let owners = Owners::of(tree, places, |at| states_tokens(tree, at));
        let calls = owners.calls.iter().map(|at| (*at, counts(tree, *at, &owners)));
        let own = |at: usize| tree.get(at).map(|node| node.reading.usage).unwrap_or_default();
        let each: Vec<(usize, Usage)> = calls.chain(owners.steps.iter().map(|at| (*at, own(*at)))).collect();
        let mut below: BTreeMap<usize, (Option<u64>, Option<u64>)> = BTreeMap::new();
        for (at, usage) in &each {
            for above in tree.ancestors(*at) {
                let sum = below.entry(above).or_default();
                *sum = (add(sum.0, usage.input), add(sum.1, usage.output));
            }
        }
        Self { owners, each, below }
    }

    /// Their sum; none when nothing stated any.
    pub fn tokens(&self) -> Option<TokenUsage> {
        self.each.iter().map(|(_, usage)| plain(usage)).reduce(|one, two| TokenUsage {
            prompt_tokens: add(one.prompt_tokens, two.prompt_tokens),
            completion_tokens: add(one.completion_tokens, two.completion_tokens),
            total_tokens: add(one.total_tokens, two.total_tokens),
        })
    }

    /// Whether an agent or step states other totals than the calls in it add up to.
    pub fn is_contradicted(&self, tree: &Tree<'_>, places: &[usize]) -> bool {
        let is_step = |at: &usize| matches!(tree.role(*at), Some(Role::Agent | Role::Chain));
        places.iter().copied().filter(is_step).any(|step| self.contradicts(tree, step))
    }

    /// Whether a step states other totals than the calls in it add up to.
    pub fn contradicts(&self, tree: &Tree<'_>, step: usize) -> bool {
        let Some((input, output)) = self.below.get(&step) else { return false };
        let Some(stated) = tree.get(step).map(|node| node.reading.usage) else { return false };
        let differ = |one: Option<u64>, two: Option<u64>| matches!((one, two), (Some(one), Some(two)) if one != two);
        differ(stated.input, *input) || differ(stated.output, *output)
    }

    /// Whether something that counts lies below a span.
    pub fn is_around(&self, at: usize) -> bool {
        self.below.contains_key(&at)
    }
}

/// The counts of the contract. A stated total is used only where its parts are not stated.
fn plain(usage: &Usage) -> TokenUsage {
    let total = match (usage.input, usage.output) {
        (Some(input), Some(output)) => Some(input.saturating_add(output)),
        _ => usage.total,
    };
    TokenUsage { prompt_tokens: usage.input, completion_tokens: usage.output, total_tokens: total }
}

fn states_tokens(tree: &Tree<'_>, at: usize) -> bool {
    let usage = tree.get(at).map(|node| node.reading.usage).unwrap_or_default();
    usage.input.is_some() || usage.output.is_some() || usage.total.is_some()
}

/// What a call used: what its owner states, with the parts that only a span around it knows.
fn counts(tree: &Tree<'_>, at: usize, owners: &Owners) -> Usage {
    let own = tree.get(at).map(|node| node.reading.usage).unwrap_or_default();
    if own.cache_read.is_some() || own.cache_write.is_some() {
        return own;
    }
    let alone = calls_above(tree, at).filter(|above| owners.around.get(above) == Some(&1));
    let told = alone.filter_map(|above| Some(tree.get(above)?.reading.usage));
    let Some(outer) = told
        .filter(|outer| outer.output == own.output || own.output.is_none())
        .find(|outer| outer.cache_read.is_some() || outer.cache_write.is_some())
    else {
        return own;
    };
    let cached = outer.cache_read.unwrap_or(0).saturating_add(outer.cache_write.unwrap_or(0));
    if own.input.is_none() || outer.input == own.input.map(|input| input.saturating_add(cached)) {
        return outer;
    }
    let parts = Usage { cache_read: outer.cache_read, cache_write: outer.cache_write, ..own };
    if outer.input == own.input { parts } else { own }
}
