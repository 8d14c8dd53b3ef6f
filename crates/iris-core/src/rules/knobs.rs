//! Numbers and lists that a deployment or a call may set, and who set them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A number that a rule lets others set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knob {
    /// Its key in the configuration.
    pub name: &'static str,
    /// What it is when nobody says.
    pub default: f64,
    /// The least that makes sense.
    pub lowest: f64,
    /// The most that makes sense.
    pub highest: f64,
}

/// Who set a threshold. Never guessed by comparing values: a deployment that writes the shipped number has set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThresholdSource {
    /// Shipped.
    #[default]
    Default,
    /// The deployment's configuration.
    Config,
    /// The call.
    Call,
    /// The rule itself; it cannot be set.
    Rule,
}

impl ThresholdSource {
    /// The name as it stands in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Config => "config",
            Self::Call => "call",
            Self::Rule => "rule",
        }
    }
}

/// Other names that thresholds go by, and the names they stand for.
const ALIASES: &[(&str, &str)] = &[("min_length", "min_output_length")];

/// The name of a threshold, whatever it was called.
pub fn canonical(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, meant)| meant)
}

/// Lists that a deployment may set: each one's key in the configuration, the most entries that are read, and the most
/// bytes of one.
pub const LISTS: [(&str, usize, usize); 3] =
    [("blocklist", 10_000, 1000), ("stub_markers", 100, 1000), ("injection_compliance_trusted_tools", 1000, 1000)];

/// The numbers and lists of one judging.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Knobs {
    /// Set numbers by name.
    pub numbers: BTreeMap<String, (f64, ThresholdSource)>,
    /// Set lists by name, such as `blocklist`.
    pub lists: BTreeMap<String, Vec<String>>,
}

impl Knobs {
    /// What a knob is set to, and by whom.
    pub fn number(&self, knob: &Knob) -> (f64, ThresholdSource) {
        self.numbers.get(knob.name).copied().unwrap_or((knob.default, ThresholdSource::Default))
    }

    /// A list, when one was set.
    pub fn list(&self, name: &str) -> Option<&[String]> {
        self.lists.get(name).map(Vec::as_slice)
    }
}
