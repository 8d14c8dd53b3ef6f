//! A custom rule as it is stored and shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Error;
use super::strict::printable;
use crate::rules::Bundle;
use crate::rules::custom::{CustomRule as Compiled, Definition, Problem, Severity};

/// Characters of a rule's name and of its description.
pub const NAME_CHARS_MAX: usize = 80;
pub const DESCRIPTION_CHARS_MAX: usize = 500;

/// A deployed rule. Its JSON is that of the rule file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomRule {
    /// `rule-` and lowercase hex digits.
    pub id: String,
    /// Its name, unique among the deployed.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// The bundle with which it fires.
    pub eval_type: Bundle,
    /// What its failure does.
    pub severity: Severity,
    /// What it checks.
    pub definition: Definition,
    /// Whether it fires.
    pub enabled: bool,
    /// When it was deployed, ISO 8601.
    pub created_at: String,
    /// When it was last changed, ISO 8601.
    pub updated_at: String,
    /// The version of this shape.
    pub version: u32,
    /// The trace it was made from, when it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_moment_id: Option<String>,
    /// What a later version wrote beside; kept.
    #[serde(flatten)]
    #[schemars(skip)]
    pub rest: Map<String, Value>,
}

impl CustomRule {
    /// Compiles it.
    ///
    /// # Errors
    /// What is wrong with its definition.
    pub fn compile(&self) -> Result<Compiled, Problem> {
        Compiled::compile(&self.name, &self.description, self.eval_type, self.severity, &self.definition)
    }

    /// What is wrong with it as a stored entry, in words; nothing when it can fire.
    pub fn fault(&self) -> Option<String> {
        if !is_id(&self.id) {
            return Some("id: must be rule- and lowercase letters or digits".to_owned());
        }
        check_name("name", &self.name)
            .and_then(|()| check_description(&self.description))
            .err()
            .map(|error| error.message)
    }
}

/// A stored entry that this version could not read. It does not fire and is kept as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Quarantined {
    /// Its place in the file, from 0.
    pub index: usize,
    /// Its id, when that can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its name, when that can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What is wrong with it.
    pub reason: String,
}

/// Whether a text is the id of a rule.
pub(super) fn is_id(text: &str) -> bool {
    let digits = text.strip_prefix("rule-").unwrap_or_default();
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    (1..=64).contains(&digits.len()) && digits.chars().all(plain)
}

/// Refuses a name that shows nothing, hides something or is too long.
pub(super) fn check_name(field: &str, name: &str) -> Result<(), Error> {
    super::strict::not_blank(field, name)?;
    if name.chars().any(char::is_control) || printable(name).is_empty() {
        return Err(Error::invalid_argument(field, "must have no control characters"));
    }
    match name.chars().count() {
        chars if chars > NAME_CHARS_MAX => {
            Err(Error::invalid_argument(field, format!("has {chars} characters; at most {NAME_CHARS_MAX}")))
        }
        _ => Ok(()),
    }
}

pub(super) fn check_description(text: &str) -> Result<(), Error> {
    match text.chars().count() {
        chars if chars > DESCRIPTION_CHARS_MAX => {
            let why = format!("has {chars} characters; at most {DESCRIPTION_CHARS_MAX}");
            Err(Error::invalid_argument("description", why))
        }
        _ => Ok(()),
    }
}

/// Refuses a weight that no rule can have.
pub(super) fn check_weight(field: &str, weight: Option<f64>) -> Result<(), Error> {
    let most = crate::rules::custom::WEIGHT_MAX;
    match weight {
        Some(weight) if !(weight > 0.0 && weight <= most) => {
            Err(Error::invalid_argument(field, format!("a number above 0 and at most {most}")))
        }
        _ => Ok(()),
    }
}
