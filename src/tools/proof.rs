//! What `iris://proof` says.

use iris_core::contract::{Error, Scope};
use iris_core::evaluate::Record;
use iris_core::proof;
use serde_json::Value;

use super::{App, Caller};

impl App {
    /// Everything that was measured of the rules, with its statistics.
    ///
    /// # Errors
    /// `IRIS_INVALID_ARGUMENT` for a caller that may not read.
    pub fn proof(&self, caller: &Caller) -> Result<Value, Error> {
        caller.check("proof", Scope::Read)?;
        Ok(proof::document(&Record::published()))
    }
}
