//! Is the answer all there?

pub mod ask_coverage;
pub mod expected_coverage;
pub mod min_output_length;
pub mod non_empty_output;
pub mod not_truncated;
mod parts;
pub mod says_something;
pub mod sentence_count;
pub mod tool_sequence;
pub mod valid_tool_arguments;
