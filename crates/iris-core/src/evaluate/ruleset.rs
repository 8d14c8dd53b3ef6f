//! The rules of one moment: built-in, deployed, and what was measured of them. Swapped whole, never changed.

use std::fmt::{self, Write as _};
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};

use super::prepared::Prepared;
use super::{Accuracy, Settings};
use crate::model::EvalType;
use crate::rules::{Bundle, Need, RULES, Rule};

/// A deployed or inline rule.
#[derive(Clone)]
pub(super) struct Custom {
    pub id: Option<String>,
    pub bundle: Bundle,
    /// Fires whatever was asked for: it came with the call.
    pub always: bool,
    pub rule: Arc<dyn Rule>,
}

/// Every rule that can fire, in order. Cheap to copy.
#[derive(Clone)]
pub struct Ruleset {
    custom: Arc<[Custom]>,
    accuracy: Arc<Accuracy>,
    version: Arc<str>,
    hash: Arc<str>,
    /// What was worked out for the settings under which the first trace was judged, and for the first call.
    prepared: Arc<[OnceLock<Arc<Prepared>>; 2]>,
}

/// On whose behalf something is judged. The settings of either kind hardly ever change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occasion {
    /// A trace that settled.
    Trace,
    /// Somebody asked.
    Call,
}

impl fmt::Debug for Ruleset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ruleset").field("hash", &self.hash).field("custom", &self.custom.len()).finish_non_exhaustive()
    }
}

/// One rule picked for a judging.
#[derive(Clone, Copy)]
pub(super) struct Picked<'a> {
    /// Its place among all rules.
    pub at: usize,
    pub rule: &'a dyn Rule,
    pub bundle: Bundle,
    pub custom: Option<&'a Custom>,
}

impl Ruleset {
    /// The built-in rules, nothing measured.
    pub fn built_in() -> Self {
        Self::assemble(Arc::from([]), Arc::default(), Arc::from(env!("CARGO_PKG_VERSION")))
    }

    /// The same rules with what was measured of them.
    #[must_use]
    pub fn with_accuracy(&self, accuracy: Accuracy) -> Self {
        Self::assemble(self.custom.clone(), Arc::new(accuracy), self.version.clone())
    }

    /// The same rules, stamped with the version of the program that judges.
    #[must_use]
    pub fn with_version(&self, version: &str) -> Self {
        Self::assemble(self.custom.clone(), self.accuracy.clone(), Arc::from(version))
    }

    /// The same rules and one deployed under a bundle, by its id.
    #[must_use]
    pub fn with_deployed(&self, id: &str, bundle: Bundle, rule: Arc<dyn Rule>) -> Self {
        self.add(Custom { id: Some(id.to_owned()), bundle, always: false, rule })
    }

    /// The same rules and one that came with the call: it fires whatever was asked for.
    #[must_use]
    pub fn with_inline(&self, rule: Arc<dyn Rule>) -> Self {
        self.add(Custom { id: None, bundle: Bundle::Custom, always: true, rule })
    }

    fn add(&self, rule: Custom) -> Self {
        let custom = self.custom.iter().cloned().chain([rule]).collect();
        Self::assemble(custom, self.accuracy.clone(), self.version.clone())
    }

    fn assemble(custom: Arc<[Custom]>, accuracy: Arc<Accuracy>, version: Arc<str>) -> Self {
        let mut ruleset = Self { custom, accuracy, version, hash: Arc::from(""), prepared: Arc::default() };
        let rules = ruleset.pick(EvalType::All).map(|picked| {
            let meta = picked.rule.meta();
            let id = picked.custom.and_then(|custom| custom.id.as_deref());
            (meta.name.clone(), meta.version, meta.kind.as_str(), meta.critical, meta.weight.to_string(), id)
        });
        let listed: Vec<_> = rules.collect();
        ruleset.hash = Arc::from(hash(&serde_json::to_string(&listed).unwrap_or_default()));
        ruleset
    }

    /// First 16 hex digits of SHA-256 over every rule's name, version, kind, criticality, weight and id.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// What was measured.
    pub fn accuracy(&self) -> &Accuracy {
        &self.accuracy
    }

    /// The version of the program that judges.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// What follows from these rules and settings, worked out once for most.
    pub(super) fn prepared(&self, occasion: Occasion, settings: &Settings, required: &[Need]) -> Arc<Prepared> {
        let fresh = || Arc::new(Prepared::of(self, settings, required));
        let Some(kept) = self.prepared.get(occasion as usize).filter(|_| settings.call_thresholds.is_empty()) else {
            return fresh();
        };
        let kept = kept.get_or_init(fresh);
        if kept.is_of(settings, required) { Arc::clone(kept) } else { fresh() }
    }

    /// The rules of a bundle, or of all, in order: built-in by bundle, then deployed, then those of the call.
    pub(super) fn pick(&self, eval_type: EvalType) -> impl Iterator<Item = Picked<'_>> {
        let wants = move |bundle: Bundle| eval_type == EvalType::All || eval_type.as_str() == bundle.as_str();
        let built_in = RULES
            .iter()
            .enumerate()
            .map(|(at, rule)| Picked { at, rule: *rule, bundle: rule.meta().bundle, custom: None })
            .filter(move |picked| wants(picked.bundle));
        let custom =
            self.custom.iter().zip(RULES.len()..).filter(move |(custom, _)| custom.always || wants(custom.bundle)).map(
                |(custom, at)| Picked { at, rule: custom.rule.as_ref(), bundle: custom.bundle, custom: Some(custom) },
            );
        built_in.chain(custom)
    }
}

/// The first 16 hex digits of the SHA-256 of a text.
pub(super) fn hash(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()), 8)
}

/// The first bytes of a digest in hex.
pub(super) fn hex(digest: &[u8], bytes: usize) -> String {
    digest.iter().take(bytes).fold(String::with_capacity(2 * bytes), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
