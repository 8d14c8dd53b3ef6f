//! What a stretch of a trace cost: what spans state, else tokens at list price, every model call once. A cost of which a
//! part is not known is not known.

use std::collections::BTreeSet;

use super::tree::{Node, Tree};
use super::usage::{self, Owners, Used};
use crate::model::{CostPart, CostParts, CostSource, Role, UNPRICED_MAX, Usage};
use crate::price::{Ask, Charge};

/// A cost and what it is made of.
#[derive(Default)]
pub struct Cost {
    /// USD; none when not all calls have a cost.
    pub usd: Option<f64>,
    /// Whether any part of it was worked out.
    pub source: Option<CostSource>,
    /// What it is made of; none where no model was called.
    pub parts: Option<CostParts>,
}

/// The cost of the model calls among some places, of which `used` says what they used.
pub fn total(tree: &Tree<'_>, places: &[usize], used: &Used) -> Cost {
    let reports = Owners::of(tree, places, |at| stated(tree, at).is_some_and(|_| !used.contradicts(tree, at)));
    let mut sum = Sum::default();
    for at in reports.calls.iter().chain(&reports.steps) {
        sum.report(stated(tree, *at).unwrap_or(0.0));
    }
    for (at, usage) in &used.each {
        sum.parts.calls += 1;
        if is_covered(tree, &reports, *at) {
            sum.parts.priced_calls += 1;
        } else {
            sum.estimate(tree, *at, usage);
        }
    }
    // Calls that state what they cost and not what they used.
    let bare = reports.calls.iter().filter(|at| !is_counted(tree, used, **at)).count();
    let steps = reports.steps.iter().filter(|step| !is_counted(tree, used, **step)).count();
    let stated_alone = u32::try_from(bare + steps).unwrap_or(u32::MAX);
    sum.parts.calls = sum.parts.calls.saturating_add(stated_alone);
    sum.parts.priced_calls = sum.parts.priced_calls.saturating_add(stated_alone);
    sum.parts.calls_without_usage = silent(tree, places, used, &reports);
    sum.parts.calls = sum.parts.calls.saturating_add(sum.parts.calls_without_usage);
    sum.into_cost()
}

/// What a span says it cost. Price tables that do not know a model write 0.
fn stated(tree: &Tree<'_>, at: usize) -> Option<f64> {
    tree.get(at)?.reading.cost_usd.filter(|cost| *cost > 0.0)
}

/// Whether what a span used is part of what was reported.
fn is_covered(tree: &Tree<'_>, reports: &Owners, at: usize) -> bool {
    reports.knows(tree, at) || reports.is_in_step(tree, at) || reports.above_steps.contains(&at)
}

/// Whether what a span cost is that of a call or step that was counted.
fn is_counted(tree: &Tree<'_>, used: &Used, at: usize) -> bool {
    used.owners.knows(tree, at) || used.owners.is_in_step(tree, at) || used.is_around(at)
}

/// How many calls answered and tell neither what they used nor what they cost. A call that failed is not charged for.
fn silent(tree: &Tree<'_>, places: &[usize], used: &Used, reports: &Owners) -> u32 {
    let call = tree.call_role(places);
    let owners = [&used.owners, reports];
    let is_known = |at: usize| owners.iter().any(|owners| owners.knows(tree, at) || owners.is_in_step(tree, at));
    let says = |node: &Node<'_>| {
        let reading = &node.reading;
        let content = reading.output_messages.is_some() || reading.output.is_some();
        content || reading.response_id.is_some() || !reading.finish_reasons.is_empty() || used.each.is_empty()
    };
    let mut answers = BTreeSet::new();
    let mut count = 0_u32;
    for at in places.iter().copied().filter(|at| tree.role(*at) == Some(call)) {
        if !tree.get(at).is_some_and(|node| node.reading.error.is_none() && says(node)) {
            continue;
        }
        let outermost = usage::call_above(tree, at).is_none();
        let first = usage::answer_id(tree, at).is_none_or(|id| answers.insert(id));
        if outermost && first && !is_known(at) {
            count = count.saturating_add(1);
        }
    }
    count
}

/// A cost in the making.
#[derive(Default)]
struct Sum {
    reported: Option<f64>,
    charge: Option<Charge>,
    parts: CostParts,
}

impl Sum {
    fn report(&mut self, usd: f64) {
        self.reported = Some(self.reported.unwrap_or(0.0) + usd);
    }

    /// Works out what a call cost, or notes that it cannot be known.
    fn estimate(&mut self, tree: &Tree<'_>, at: usize, usage: &Usage) {
        let models = Models::of(tree, at);
        let Some(rates) = models.ask().and_then(|ask| tree.prices.of(&ask)) else {
            let name = models.named();
            if let Some(name) = name.filter(|name| !self.parts.unpriced_models.iter().any(|known| known == name))
                && self.parts.unpriced_models.len() < UNPRICED_MAX
            {
                self.parts.unpriced_models.push(name.to_owned());
            }
            return;
        };
        let Some(charge) = rates.charge(usage) else { return };
        self.parts.priced_calls += 1;
        self.add(usage, &charge);
    }

    fn add(&mut self, usage: &Usage, charge: &Charge) {
        let (read, written) = (usage.cache_read.unwrap_or(0), usage.cache_write.unwrap_or(0));
        let sent = usage.input.unwrap_or(0).saturating_sub(read).saturating_sub(written);
        add_part(&mut self.parts.input, sent, charge.input_usd);
        add_part(&mut self.parts.cached_read, read, charge.cached_read_usd);
        add_part(&mut self.parts.cache_write, written, charge.cache_write_usd);
        add_part(&mut self.parts.output, usage.output.unwrap_or(0), charge.output_usd);
        if let Some(thoughts) = usage.reasoning {
            let before = self.parts.reasoning_tokens.unwrap_or(0);
            self.parts.reasoning_tokens = Some(before.saturating_add(thoughts));
        }
        let sum = self.charge.get_or_insert_default();
        sum.input_usd += charge.input_usd;
        sum.cached_read_usd += charge.cached_read_usd;
        sum.cache_write_usd += charge.cache_write_usd;
        sum.output_usd += charge.output_usd;
    }

    fn into_cost(mut self) -> Cost {
        if self.parts.calls == 0 {
            return Cost::default();
        }
        self.parts.reported_usd = self.reported;
        let estimated = self.charge.map(|charge| charge.total_usd());
        let known = self.parts.priced_calls == self.parts.calls;
        let usd = match (self.reported, estimated) {
            _ if !known => None,
            (Some(one), Some(two)) => Some(one + two),
            (one, two) => one.or(two),
        };
        let source = usd.map(|_| if estimated.is_some() { CostSource::Estimated } else { CostSource::Reported });
        Cost { usd, source, parts: Some(self.parts) }
    }
}

fn add_part(part: &mut Option<CostPart>, tokens: u64, usd: f64) {
    if tokens > 0 {
        let part = part.get_or_insert_default();
        part.tokens = part.tokens.saturating_add(tokens);
        part.usd += usd;
    }
}

/// Who answered a call, as the spans that record it tell together.
#[derive(Default)]
struct Models<'t> {
    provider: Option<&'t str>,
    model: Option<&'t str>,
    request_model: Option<&'t str>,
    /// A step whose calls went to several models: no one price is theirs.
    several: bool,
}

impl<'t> Models<'t> {
    fn of(tree: &'t Tree<'_>, at: usize) -> Self {
        let mut models = Self::default();
        for at in std::iter::once(at).chain(usage::calls_above(tree, at)) {
            models.hear(tree, at);
        }
        if matches!(tree.role(at), Some(Role::Agent | Role::Chain)) {
            for below in tree.below(at) {
                let Some(node) = tree.get(below) else { continue };
                let name = node.reading.model.as_deref().or(node.reading.request_model.as_deref());
                let known = models.model.or(models.request_model);
                models.several |= known.zip(name).is_some_and(|(one, two)| one != two);
                models.hear(tree, below);
            }
        }
        models
    }

    fn hear(&mut self, tree: &'t Tree<'_>, at: usize) {
        let Some(node) = tree.get(at) else { return };
        let nothing = self.model.is_none() && self.request_model.is_none();
        if nothing {
            self.model = node.reading.model.as_deref();
            self.request_model = node.reading.request_model.as_deref();
        }
        self.provider = self.provider.or(node.reading.provider.as_deref());
    }

    fn ask(&self) -> Option<Ask<'t>> {
        let ask = Ask { provider: self.provider, model: self.model, request_model: self.request_model };
        (!self.several).then_some(ask)
    }

    fn named(&self) -> Option<&'t str> {
        self.model.or(self.request_model)
    }
}
