//! `delete_rule`: needs the rule file only, so it answers before the store is open.

use iris_core::contract::{DeleteRuleArgs, DeleteRuleReply, Error};
use serde_json::Value;

use super::{App, Caller, marks, to_value};

impl App {
    /// Removes a rule, or stops or starts it; `user` is the way it came: `mcp`, `dashboard` or `local`.
    ///
    /// # Errors
    /// `IRIS_STORAGE_ERROR`; nothing has changed then.
    pub async fn delete_rule(
        &self,
        args: DeleteRuleArgs,
        caller: &Caller,
        user: &'static str,
    ) -> Result<DeleteRuleReply, Error> {
        let DeleteRuleArgs { rule_id, enabled } = args;
        let (rulebook, by, id) = (self.rulebook.clone(), self.by(caller, user), rule_id.clone());
        let done = tokio::task::spawn_blocking(move || match enabled {
            None => rulebook.delete(&by, &id).map(|deleted| (deleted, None)),
            Some(enabled) => rulebook.toggle(&by, &id, enabled).map(|rule| (false, rule)),
        });
        let done = done.await.map_err(|error| self.unforeseen(&error))?;
        let (deleted, mut rule) = done.map_err(|error| self.not_changed(error))?;
        rule.iter_mut().for_each(|rule| rule.rest.clear());
        Ok(DeleteRuleReply {
            untrusted: rule.as_ref().map(|_| marks::untrusted(&marks::of_rule("rule"))),
            deleted,
            rule_id,
            toggled: enabled.map(|_| rule.is_some()),
            enabled: rule.as_ref().map(|rule| rule.enabled),
            rule,
        })
    }

    pub(super) async fn delete_rule_by_name(&self, args: DeleteRuleArgs, caller: &Caller) -> Result<Value, Error> {
        let reply = self.delete_rule(args, caller, "mcp").await?;
        to_value(self, &reply)
    }
}
