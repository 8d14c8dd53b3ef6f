//! `list_rules`: needs the rule file only, so it answers before the store is open.

use iris_core::contract::{CustomRule, Error, ListRulesArgs, ListRulesReply};
use iris_core::evaluate;
use serde_json::Value;

use super::{App, Caller, marks, to_value};

impl App {
    pub(super) async fn list_rules(&self, args: &ListRulesArgs, caller: &Caller) -> Result<Value, Error> {
        let (rulebook, tenant) = (self.rulebook.clone(), caller.tenant.clone());
        let listing = tokio::task::spawn_blocking(move || rulebook.list(&tenant)).await;
        let listing = listing.map_err(|error| self.unforeseen(&error))?.map_err(|error| self.not_listed(error))?;
        let is_wanted = |rule: &CustomRule| {
            args.eval_type.is_none_or(|bundle| bundle == rule.eval_type)
                && (rule.enabled || !args.enabled_only.unwrap_or(false))
        };
        let mut rules: Vec<CustomRule> = listing.rules.into_iter().filter(is_wanted).collect();
        // What a later version wrote beside stays in the file: nobody here knows what it is.
        rules.iter_mut().for_each(|rule| rule.rest.clear());
        let mut marked = if rules.is_empty() { Vec::new() } else { marks::of_rule("rules[]") };
        if !listing.quarantined.is_empty() {
            marked.extend(marks::of_entry("quarantined[]"));
        }
        let reply = ListRulesReply {
            untrusted: (!marked.is_empty()).then(|| marks::untrusted(&marked)),
            total: rules.len(),
            enabled_count: rules.iter().filter(|rule| rule.enabled).count(),
            rules,
            built_in: evaluate::roster(&self.rulebook.snapshot(&caller.tenant), &self.settings),
            quarantined: listing.quarantined,
        };
        to_value(self, &reply)
    }
}
