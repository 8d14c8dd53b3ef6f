//! What the newest runs of each agent cost: what a new one is held against.
//!
//! Filled from the store at the start and by every trace that is judged or logged after. Bounded in runs and agents;
//! an agent that has been silent longest makes room.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use iris_core::model::{Tenant, Trace, TraceId};

use crate::store::TraceCost;

/// Runs kept of an agent, as many as the rule looks at.
pub const RUNS_MAX: usize = 200;
/// Agents kept.
const AGENTS_MAX: usize = 2000;
/// A longer name is not kept.
const NAME_BYTES_MAX: usize = 256;

/// Shared by everything that judges.
#[derive(Clone, Default)]
pub struct Costs {
    inner: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    agents: HashMap<(Tenant, String), Agent>,
    /// Rises with every change, so that the agent silent longest is known.
    turn: u64,
}

#[derive(Default)]
struct Agent {
    /// The newest last.
    runs: VecDeque<(TraceId, f64)>,
    turn: u64,
}

impl Costs {
    /// What earlier runs of a trace's agent cost, the oldest first, without the trace itself.
    pub fn before(&self, trace: &Trace) -> Vec<f64> {
        let kept = self.lock();
        let agent = kept.agents.get(&(trace.tenant.clone(), trace.agent_name.clone()));
        let runs = agent.into_iter().flat_map(|agent| &agent.runs);
        runs.filter(|(id, _)| *id != trace.trace_id).map(|(_, usd)| *usd).collect()
    }

    /// Remembers a trace that has ended. One that was remembered before gets its new cost where it stands.
    pub fn remember(&self, trace: &Trace) {
        let Some(usd) = trace.cost_usd else { return };
        let (tenant, agent_name) = (trace.tenant.clone(), trace.agent_name.clone());
        let cost = TraceCost { tenant, agent_name, trace_id: trace.trace_id, usd };
        self.lock().add(cost, true);
    }

    /// Puts what the store knows, newest first, before what was remembered since.
    pub fn learn(&self, stored: Vec<TraceCost>) {
        let mut kept = self.lock();
        for cost in stored {
            kept.add(cost, false);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn add(&mut self, cost: TraceCost, is_newest: bool) {
        let usable = cost.usd.is_finite() && cost.usd >= 0.0 && cost.agent_name.len() <= NAME_BYTES_MAX;
        if !usable {
            return;
        }
        let key = (cost.tenant, cost.agent_name);
        if self.agents.len() >= AGENTS_MAX && !self.agents.contains_key(&key) {
            if !is_newest {
                return;
            }
            let silent = self.agents.iter().min_by_key(|(_, agent)| agent.turn).map(|(key, _)| key.clone());
            silent.map(|key| self.agents.remove(&key));
        }
        self.turn += 1;
        let agent = self.agents.entry(key).or_default();
        if is_newest {
            agent.turn = self.turn;
        }
        let known = agent.runs.iter().position(|(id, _)| *id == cost.trace_id);
        let run = (cost.trace_id, cost.usd);
        if let Some(known) = known.and_then(|at| agent.runs.get_mut(at)) {
            if is_newest {
                *known = run;
            }
        } else if is_newest {
            agent.runs.push_back(run);
            if agent.runs.len() > RUNS_MAX {
                agent.runs.pop_front();
            }
        } else if agent.runs.len() < RUNS_MAX {
            agent.runs.push_front(run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(agent: &str, n: u32, usd: f64) -> TraceCost {
        let mut id = [1; 16];
        id[..4].copy_from_slice(&n.to_be_bytes());
        let trace_id = TraceId::from_bytes(&id).unwrap();
        TraceCost { tenant: Tenant::local(), agent_name: agent.to_owned(), trace_id, usd }
    }

    fn known(costs: &Costs, agent: &str) -> Vec<f64> {
        let kept = costs.lock();
        let agent = kept.agents.get(&(Tenant::local(), agent.to_owned()));
        agent.into_iter().flat_map(|agent| &agent.runs).map(|(_, usd)| *usd).collect()
    }

    #[test]
    fn what_is_stored_stands_before_what_came_since_and_no_trace_counts_twice() {
        let costs = Costs::default();
        costs.lock().add(cost("a", 3, 3.0), true);
        costs.learn(vec![cost("a", 3, 0.3), cost("a", 2, 2.0), cost("a", 1, 1.0), cost("b", 9, 9.0)]);
        assert_eq!(known(&costs, "a"), [1.0, 2.0, 3.0]);
        costs.lock().add(cost("a", 2, 2.5), true);
        assert_eq!(known(&costs, "a"), [1.0, 2.5, 3.0], "a late span changes the cost, not the order");
        costs.lock().add(cost("a", 4, f64::NAN), true);
        costs.lock().add(cost("a", 5, -1.0), true);
        assert_eq!(known(&costs, "a").len(), 3);
    }

    #[test]
    fn runs_and_agents_are_bounded() {
        let costs = Costs::default();
        for n in 0..(RUNS_MAX as u32 + 50) {
            costs.lock().add(cost("a", n, f64::from(n)), true);
        }
        let runs = known(&costs, "a");
        assert_eq!((runs.len(), runs[0], runs[RUNS_MAX - 1]), (RUNS_MAX, 50.0, 249.0));
        for n in 0..AGENTS_MAX as u32 {
            costs.lock().add(cost(&format!("agent {n}"), n, 1.0), true);
        }
        assert_eq!(costs.lock().agents.len(), AGENTS_MAX);
        assert!(known(&costs, "a").is_empty(), "the one silent longest made room");
        costs.learn(vec![cost("old", 1, 1.0)]);
        assert!(known(&costs, "old").is_empty(), "what is stored pushes nobody out");
        costs.lock().add(cost(&"n".repeat(300), 1, 1.0), true);
        assert_eq!(costs.lock().agents.len(), AGENTS_MAX);
    }
}
