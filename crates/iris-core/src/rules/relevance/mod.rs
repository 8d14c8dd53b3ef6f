//! Does the answer speak to what was asked?

pub mod answers_the_ask;
pub mod keyword_overlap;
mod measures;
pub mod tool_choice;
pub mod topic_consistency;
