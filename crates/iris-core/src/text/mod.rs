//! How a text is looked at: as written, or folded so that a disguise no longer hides what it says.
//!
//! Owns the one unit in which evidence is counted (Unicode code points of the raw text) and the map from what a
//! rule read back to where it stands there. Never decides anything about what a text means: detectors and rules do.
//! Texts enter as `&str`; [`View`]s, [`TextSpan`]s and sentences leave. Everything here is linear in the text.

mod blank;
mod ending;
mod fold;
mod lexicon;
mod prose;
mod scan;
mod sentences;
mod span;
mod stop;
mod terms;
mod values;
mod view;
mod words;

pub use blank::is_blank;
pub use ending::{Cut, cut};
pub use lexicon::Lexicon;
pub use prose::{Stretch, is_item, stretches};
pub use scan::{position, single};
pub use sentences::{Sentences, placed_sentences, sentences};
pub use span::{TextSpan, head, tail};
pub use stop::language;
pub use terms::{Spread, Spreader, Term, TermSet, Wanted, term, terms};
pub use values::spoken;
pub use view::{TEXT_BYTES_MAX, View};
pub use words::{Word, WordKind, words};

#[cfg(test)]
mod tests;
