//! The rules in force: one immutable set, swapped as a whole. One evaluation sees one set.

use std::sync::Arc;

use arc_swap::ArcSwap;
use iris_core::evaluate::Ruleset;

/// Shared by everything that judges.
#[derive(Clone)]
pub struct Rulebook {
    current: Arc<ArcSwap<Ruleset>>,
}

impl Rulebook {
    /// The built-in rules.
    pub fn built_in() -> Self {
        Self { current: Arc::new(ArcSwap::from_pointee(Ruleset::built_in().with_version(env!("CARGO_PKG_VERSION")))) }
    }

    /// The set in force now.
    pub fn snapshot(&self) -> Arc<Ruleset> {
        self.current.load_full()
    }
}
