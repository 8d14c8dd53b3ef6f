//! Does the answer harm?

pub mod no_pii;
pub mod no_silent_tool_failure;
