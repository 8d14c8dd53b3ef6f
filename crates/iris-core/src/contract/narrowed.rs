//! What a reply says of an argument that asked for more than the operator allows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The one code of such a word.
pub const ARGUMENT_NARROWED: &str = "IRIS_ARGUMENT_NARROWED";

/// A word beside a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// For programs.
    pub code: String,
    /// The argument.
    pub field: String,
    /// The setting that bounds it.
    pub setting: String,
    /// For readers.
    pub message: String,
}

impl Warning {
    /// An argument that was cut to what a setting allows; `to` says to what.
    pub fn narrowed(field: &str, setting: &str, to: impl std::fmt::Display) -> Self {
        Self {
            code: ARGUMENT_NARROWED.to_owned(),
            field: field.to_owned(),
            setting: setting.to_owned(),
            message: format!("{field} asked for more than {setting} allows; the call went on with {to}"),
        }
    }
}
