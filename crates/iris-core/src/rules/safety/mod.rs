//! Does the answer harm?

pub mod grounded_in_reads;
pub mod no_blocklist_words;
pub mod no_hallucination_markers;
pub mod no_injection_compliance;
pub mod no_injection_patterns;
pub mod no_pii;
pub mod no_silent_tool_failure;
pub mod no_stub_output;
