//! From a subject to a verdict: picks the rules, runs them, stamps what each saw and how sure one can be, and composes.
//!
//! Owns [`Settings`], the stored form of a judging and everything derived from it: [`compose`] (verdict),
//! [`coverage`], [`categories`], [`roster`]. Never reads a clock, never stores, never sends. Subjects and traces enter,
//! [`Evaluation`]s leave; a stored evaluation composes to the same verdict for ever, because every setting that
//! mattered is written into it.

mod accuracy;
mod asked;
mod categories;
mod compose;
mod coverage;
mod engine;
mod inline;
mod moment;
mod prepared;
mod provenance;
mod record;
mod risk;
mod roster;
mod ruleset;
mod score;
mod settings;
mod stamp;
mod stand;

#[cfg(test)]
mod tests;

pub use accuracy::{Accuracy, Matrix, Measured, Source};
pub use asked::{Given as GivenTexts, Judged, Ruled, asked, without_words};
pub use categories::{Category, categories};
pub use compose::{Basis, Confidence, Deciding, Verdict, compose, critical_failures, critical_skipped, decide};
pub use coverage::{Coverage, QuestionCoverage, coverage};
pub use engine::{Identity, evaluate, evaluate_within};
pub use inline::{Given, conversation_within, judge_trace, judge_trace_within, provisional, provisional_within};
pub use moment::{Around, MomentKind, moment, rank};
pub use provenance::Provenance;
pub use record::{FileRecord, OwnCounts, Record, Run, SetCounts};
pub use risk::{Examined, Prior, Risk, risk};
pub use roster::{RosterEntry, is_conformance, roster};
pub use ruleset::{Dormant, Ruleset};
pub use settings::{Composer, OnCriticalSkipped, Settings};
pub use stand::stand;

pub use crate::rules::{Need, Subject};
