//! The rules of one moment: built-in, deployed, and what was measured of them. Swapped whole, never changed.

use std::fmt::{self, Write as _};
use std::sync::{Arc, LazyLock, OnceLock};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::prepared::Prepared;
use super::{Accuracy, Record, Settings};
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

/// A deployed rule that vetoes and that this version could not read: it does not fire, and every evaluation says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Dormant {
    /// Its id; empty when that cannot be read either.
    pub rule_id: String,
    /// Its name; empty when that cannot be read either.
    pub name: String,
    /// Why it does not fire.
    pub reason: String,
}

/// Every rule that can fire, in order. Cheap to copy.
#[derive(Clone)]
pub struct Ruleset {
    custom: Arc<[Custom]>,
    dormant: Arc<[Dormant]>,
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
    /// The built-in rules, with what is published of their accuracy.
    pub fn built_in() -> Self {
        static PUBLISHED: LazyLock<Arc<Accuracy>> = LazyLock::new(|| Arc::new(Record::published().accuracy()));
        let bare = Self {
            custom: Arc::from([]),
            dormant: Arc::from([]),
            accuracy: PUBLISHED.clone(),
            version: Arc::from(env!("CARGO_PKG_VERSION")),
            hash: Arc::from(""),
            prepared: Arc::default(),
        };
        bare.anew()
    }

    /// The same rules with what was measured of them.
    #[must_use]
    pub fn with_accuracy(&self, accuracy: Accuracy) -> Self {
        Self { accuracy: Arc::new(accuracy), ..self.clone() }.anew()
    }

    /// The same rules, stamped with the version of the program that judges.
    #[must_use]
    pub fn with_version(&self, version: &str) -> Self {
        Self { version: Arc::from(version), ..self.clone() }.anew()
    }

    /// The same rules and those deployed, each by its id under its bundle.
    #[must_use]
    pub fn with_deployed(&self, rules: impl IntoIterator<Item = (String, Arc<dyn Rule>)>) -> Self {
        let deployed = |(id, rule): (String, Arc<dyn Rule>)| {
            let bundle = rule.meta().bundle;
            Custom { id: Some(id), bundle, always: false, rule }
        };
        self.with_custom(rules.into_iter().map(deployed).collect())
    }

    /// The same rules and those that came with a call: they fire whatever was asked for.
    #[must_use]
    pub fn with_inline(&self, rules: impl IntoIterator<Item = Arc<dyn Rule>>) -> Self {
        let inline = |rule| Custom { id: None, bundle: Bundle::Custom, always: true, rule };
        self.with_custom(rules.into_iter().map(inline).collect())
    }

    /// The same rules, and word of those that do not fire though they would veto.
    #[must_use]
    pub fn with_dormant(&self, dormant: Vec<Dormant>) -> Self {
        Self { dormant: Arc::from(dormant), ..self.clone() }.anew()
    }

    fn with_custom(&self, rules: Vec<Custom>) -> Self {
        if rules.is_empty() {
            return self.clone();
        }
        let custom = self.custom.iter().cloned().chain(rules).collect();
        Self { custom, ..self.clone() }.anew()
    }

    /// Works out the hash, and forgets what was worked out for other rules.
    fn anew(mut self) -> Self {
        self.prepared = Arc::default();
        let rules = self.pick(EvalType::All).map(|picked| {
            let meta = picked.rule.meta();
            let id = picked.custom.and_then(|custom| custom.id.as_deref());
            (meta.name.clone(), meta.version, meta.kind.as_str(), meta.critical, meta.weight.to_string(), id)
        });
        let listed: Vec<_> = rules.collect();
        let hash = hash(&serde_json::to_string(&listed).unwrap_or_default());
        self.hash = Arc::from(hash);
        self
    }

    /// First 16 hex digits of SHA-256 over every rule's name, version, kind, criticality, weight and id.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Rules that would veto and do not fire.
    pub fn dormant(&self) -> &[Dormant] {
        &self.dormant
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
