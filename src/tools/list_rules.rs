//! `list_rules`: needs the rule file only, so it answers before the store is open.

use iris_core::contract::{Error, ListRulesArgs, ListRulesReply};
use iris_core::evaluate;
use serde_json::Value;

use super::{App, to_value};

impl App {
    pub(super) fn list_rules(&self, _args: &ListRulesArgs) -> Result<Value, Error> {
        let built_in = evaluate::roster(&self.rulebook.snapshot(), &self.settings);
        // Custom rules cannot be deployed yet, so every filter leaves none.
        to_value(
            self,
            &ListRulesReply { rules: Vec::new(), total: 0, enabled_count: 0, built_in, quarantined: Vec::new() },
        )
    }
}
