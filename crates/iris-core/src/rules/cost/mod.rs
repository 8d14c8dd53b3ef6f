//! Did it cost too much: money, words or steps?

pub mod cost_anomaly;
pub mod cost_under_threshold;
pub mod max_steps;
pub mod no_tool_loop;
pub mod step_budget;
pub mod verbosity_ratio;
