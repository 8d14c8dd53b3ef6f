//! The rules: what can be wrong with an agent's answer, one file and one page of examples each.
//!
//! A rule is a value with prose. It reads a [`Case`] (the subject and the views of its texts), never waits, never
//! fails, and says pass, fail or skip with evidence that is offsets and labels. It decides nothing about a verdict:
//! `evaluate` does. [`RULES`] is the roster; its order is the order of every list of rules.
//!
//! Adding one: `rules/<bundle>/<name>.rs` and `.toml`, and a line in [`RULES`].

mod ask;
mod case;
mod catalogue;
mod claims;
mod code;
pub mod completeness;
pub mod cost;
pub mod custom;
mod directive;
mod disguise;
mod frames;
mod knobs;
mod measure;
mod meta;
mod outcome;
mod pattern;
mod phrases;
mod provenance;
pub mod relevance;
mod run;
pub mod safety;
mod schema;
mod sightings;
mod steps;
mod subject;

#[cfg(test)]
mod tests;

pub use case::Case;
pub use catalogue::TOOLS_MAX;
pub use knobs::{Knob, Knobs, LISTS, ThresholdSource, canonical};
pub use meta::{Bundle, FailureClass, Kind, Mechanism, Question, RuleMeta};
pub use outcome::{EVIDENCE_MAX, Finding, Outcome, SkipClass, count};
pub use run::run;
pub use steps::{STEPS_MAX, failure};
pub use subject::{Need, Subject};

/// One rule.
pub trait Rule: Send + Sync {
    /// What it is.
    fn meta(&self) -> &RuleMeta;

    /// Judges a case that carries every need of the rule; whoever calls has checked that.
    fn judge(&self, case: &Case<'_>, knobs: &Knobs) -> Outcome;
}

/// Every built-in rule, in the order in which all lists show them.
pub const RULES: &[&dyn Rule] = &[
    &completeness::min_output_length::MinOutputLength,
    &completeness::non_empty_output::NonEmptyOutput,
    &completeness::sentence_count::SentenceCount,
    &completeness::expected_coverage::ExpectedCoverage,
    &completeness::valid_tool_arguments::ValidToolArguments,
    &completeness::ask_coverage::AskCoverage,
    &completeness::tool_sequence::ToolSequence,
    &completeness::says_something::SaysSomething,
    &completeness::not_truncated::NotTruncated,
    &relevance::keyword_overlap::KeywordOverlap,
    &relevance::topic_consistency::TopicConsistency,
    &relevance::tool_choice::ToolChoice,
    &relevance::answers_the_ask::AnswersTheAsk,
    &safety::no_pii::NoPii,
    &safety::no_blocklist_words::NoBlocklistWords,
    &safety::no_injection_patterns::NoInjectionPatterns,
    &safety::no_stub_output::NoStubOutput,
    &safety::no_hallucination_markers::NoHallucinationMarkers,
    &safety::no_silent_tool_failure::NoSilentToolFailure,
    &safety::grounded_in_reads::GroundedInReads,
    &safety::no_injection_compliance::NoInjectionCompliance,
    &cost::cost_under_threshold::CostUnderThreshold,
    &cost::verbosity_ratio::VerbosityRatio,
    &cost::no_tool_loop::NoToolLoop,
    &cost::max_steps::MaxSteps,
    &cost::cost_anomaly::CostAnomaly,
    &cost::step_budget::StepBudget,
];
