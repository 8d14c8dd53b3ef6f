//! How a text is looked at: as written, or folded so that a disguise no longer hides what it says.
//!
//! Owns the one unit in which evidence is counted (Unicode code points of the raw text) and the map from what a
//! rule read back to where it stands there. Never decides anything about what a text means: detectors and rules do.
//! Texts enter as `&str`; [`View`]s, [`TextSpan`]s and sentences leave. Everything here is linear in the text.

mod blank;
mod fold;
mod sentences;
mod span;
mod view;

pub use blank::is_blank;
pub use sentences::{Sentences, sentences};
pub use span::{TextSpan, head, tail};
pub use view::{TEXT_BYTES_MAX, View};

#[cfg(test)]
mod tests;
