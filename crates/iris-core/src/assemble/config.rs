//! The waits and the budgets.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// `assembly.*`: when a trace counts as finished. All waits are measured from arrival, on the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// A trace with an ended root and no missing parent settles after this much silence, in milliseconds.
    pub quiet_ms: u64,
    /// The same when its spans come from several resources or a model span carries no messages, which may still
    /// come as log records: batching exporters send every 5 s.
    pub settle_ms: u64,
    /// The same when it was complete inside one request, content included.
    pub complete_ms: u64,
    /// How long spans of a trace without an agent, LLM or tool span wait in memory, in milliseconds.
    pub undecided_ms: u64,
    /// A trace that has not settled is called provisional after this much silence, in milliseconds.
    pub idle_ms: u64,
    /// A trace that has not settled is closed as partial after this much silence, in milliseconds.
    pub give_up_ms: u64,
    /// The most traces open at a time; the oldest is closed as partial when there are more.
    pub open_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            quiet_ms: 2_000,
            settle_ms: 7_000,
            complete_ms: 250,
            undecided_ms: 10_000,
            idle_ms: 30_000,
            give_up_ms: 600_000,
            open_max: 100_000,
        }
    }
}

impl Config {
    /// What could not work, a line a problem.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (key, value) in [
            ("quiet_ms", self.quiet_ms),
            ("settle_ms", self.settle_ms),
            ("complete_ms", self.complete_ms),
            ("undecided_ms", self.undecided_ms),
            ("idle_ms", self.idle_ms),
            ("give_up_ms", self.give_up_ms),
            ("open_max", self.open_max as u64),
        ] {
            if value == 0 {
                problems.push(format!("assembly.{key} is 0: at least 1 is valid"));
            }
        }
        if self.idle_ms > self.give_up_ms {
            problems.push(format!(
                "assembly.idle_ms is {} ms, longer than assembly.give_up_ms, {} ms: a trace is given up after it was called provisional",
                self.idle_ms, self.give_up_ms
            ));
        }
        problems
    }

    pub(super) const fn quiet(&self) -> Duration {
        Duration::from_millis(self.quiet_ms)
    }

    pub(super) const fn settle(&self) -> Duration {
        Duration::from_millis(self.settle_ms)
    }

    pub(super) const fn complete(&self) -> Duration {
        Duration::from_millis(self.complete_ms)
    }

    pub(super) const fn undecided(&self) -> Duration {
        Duration::from_millis(self.undecided_ms)
    }

    pub(super) const fn idle(&self) -> Duration {
        Duration::from_millis(self.idle_ms)
    }

    pub(super) const fn give_up(&self) -> Duration {
        Duration::from_millis(self.give_up_ms)
    }

    /// A trace that is never silent is closed as partial at this age, so that a worker that uses one trace id
    /// for its whole life cannot hold positions and memory for ever.
    pub(super) const fn age_max(&self) -> Duration {
        Duration::from_millis(self.give_up_ms.saturating_mul(6))
    }
}

/// What the caller fixes: budgets and policy that are not `assembly.*` keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of rows of open traces kept in memory; above, the longest silent are spilled.
    pub text_bytes_max: usize,
    /// Bytes of rows that wait undecided; above, the oldest are stored.
    pub undecided_bytes_max: usize,
    /// How many traces are remembered after they were let go.
    pub remembered_max: usize,
    /// How many rows of one trace are looked at. Later ones are stored, and the trace is partial.
    pub rows_max: usize,
    /// Store traces that settle without an agent, LLM or tool span.
    pub keep_other_traces: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            text_bytes_max: 16 << 20,
            undecided_bytes_max: 8 << 20,
            remembered_max: 262_144,
            rows_max: 20_000,
            keep_other_traces: false,
        }
    }
}
