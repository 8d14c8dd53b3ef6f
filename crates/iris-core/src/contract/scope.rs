//! What a key lets its holder do.

use serde::{Deserialize, Serialize};

/// One of four kinds of deed. A key has any number of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Finds and reads.
    Read,
    /// Stores and judges.
    Write,
    /// Changes rules, deletes, exports.
    Admin,
    /// Spends money or fetches from the network.
    Judge,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Admin, Self::Judge];

    /// Its name in the configuration and in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
            Self::Judge => "judge",
        }
    }
}
