//! A rule that stands for one that cannot be run: it always says so.

use std::borrow::Cow;

use super::asked;
use crate::rules::{Bundle, Case, Kind, Knobs, Mechanism, Outcome, Rule, RuleMeta, SkipClass};

/// See the module.
#[derive(Debug)]
pub struct BrokenRule {
    meta: RuleMeta,
    why: String,
}

impl BrokenRule {
    /// A rule that says why it cannot be run. One that vetoes leaves the verdict unknown.
    pub fn new(name: &str, bundle: Bundle, vetoes: bool, why: impl Into<String>) -> Self {
        let meta = RuleMeta {
            name: Cow::Owned(name.to_owned()),
            bundle,
            description: Cow::Borrowed("This rule cannot be run."),
            suggestion: Cow::Borrowed(""),
            weight: 1.0,
            kind: Kind::Policy,
            mechanism: Mechanism::Formula,
            needs: &[],
            reads: &[],
            question: asked(bundle),
            classes: &[],
            version: 1,
            critical: vetoes,
            stands: false,
            knobs: &[],
        };
        Self { meta, why: why.into() }
    }
}

impl Rule for BrokenRule {
    fn meta(&self) -> &RuleMeta {
        &self.meta
    }

    fn judge(&self, _: &Case<'_>, _: &Knobs) -> Outcome {
        Outcome::Skip { class: SkipClass::ConfigInvalid, why: self.why.clone() }
    }
}
