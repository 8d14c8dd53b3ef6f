//! What `iris://proof` says.

use iris_core::evaluate::Record;
use iris_core::proof;
use serde_json::Value;

use super::App;

impl App {
    /// Everything that was measured of the rules, with its statistics.
    pub fn proof(&self) -> Value {
        proof::document(&Record::published())
    }
}
