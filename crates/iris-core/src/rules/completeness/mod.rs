//! Is the answer all there?

pub mod non_empty_output;
