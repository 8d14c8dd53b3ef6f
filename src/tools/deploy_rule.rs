//! `deploy_rule`: needs the rule file only, so it answers before the store is open.

use iris_core::contract::{Code, CustomRule, DeployRuleArgs, DeployRuleReply, Error, Replaced};
use iris_core::rules::Bundle;
use iris_core::rules::custom::{Definition, Severity};
use serde_json::Value;

use super::{App, Caller, marks, to_value};
use crate::rulebook::{self, By};

impl App {
    /// Deploys a rule; `user` is the way it came: `mcp`, `dashboard` or `local`.
    ///
    /// # Errors
    /// `IRIS_DUPLICATE_RULE`, `IRIS_INVALID_RULE_CONFIG`, `IRIS_STORAGE_ERROR`; nothing has changed then.
    pub async fn deploy_rule(
        &self,
        args: DeployRuleArgs,
        caller: &Caller,
        user: &'static str,
    ) -> Result<DeployRuleReply, Error> {
        let by = self.by(caller, user);
        let rule = CustomRule {
            id: self.new_rule_id(),
            name: args.name.clone(),
            description: args.description.clone().unwrap_or_default(),
            // Checked when the arguments were read.
            eval_type: args.bundle().unwrap_or(Bundle::Custom),
            severity: args.severity.unwrap_or(Severity::Medium),
            source_moment_id: args.source().map(str::to_owned),
            definition: Definition { name: Some(args.name), ..args.definition },
            enabled: true,
            created_at: by.at.clone(),
            updated_at: by.at.clone(),
            version: 1,
            rest: serde_json::Map::new(),
        };
        let replace = args.replace.unwrap_or(false);
        let (rulebook, deployed) = (self.rulebook.clone(), rule.clone());
        let done = tokio::task::spawn_blocking(move || rulebook.deploy(&by, deployed, replace)).await;
        let replaced = done.map_err(|error| self.unforeseen(&error))?.map_err(|error| self.not_changed(error))?;
        let warning = (!replaced.is_empty()).then(|| format!("retired for this rule: {}", listed(&replaced)));
        let untrusted = Some(marks::untrusted(&marks::of_rule("rule")));
        Ok(DeployRuleReply { untrusted, rule, replaced, warning })
    }

    pub(super) async fn deploy_rule_by_name(&self, args: DeployRuleArgs, caller: &Caller) -> Result<Value, Error> {
        let reply = self.deploy_rule(args, caller, "mcp").await?;
        to_value(self, &reply)
    }

    pub(super) fn by(&self, caller: &Caller, user: &'static str) -> By {
        By { tenant: caller.tenant.clone(), user, at: (self.world.now)().to_string() }
    }

    /// A refused change of the rules, in the contract's words.
    pub(super) fn not_changed(&self, error: rulebook::Error) -> Error {
        match error {
            rulebook::Error::Duplicate(rule) => Error::duplicate_rule(&rule),
            rulebook::Error::Invalid(problem) => Error::invalid_rule("definition", &problem),
            rulebook::Error::Full(why) => Error::rules_full(why),
            rulebook::Error::Unreadable(_) => Error::rules_unreadable(Code::StorageError),
            rulebook::Error::NotKept(error) => {
                let reference = self.reference();
                tracing::error!(%reference, %error, "a change of the rules could not be stored");
                Error::rules_not_kept(&reference)
            }
        }
    }

    /// The rules cannot be shown.
    pub(super) fn not_listed(&self, error: rulebook::Error) -> Error {
        match error {
            rulebook::Error::Unreadable(_) => Error::rules_unreadable(Code::InternalError),
            other => self.not_changed(other),
        }
    }

    fn new_rule_id(&self) -> String {
        let mut bytes = [0; 4];
        (self.world.random)(&mut bytes);
        format!("rule-{:08x}", u32::from_be_bytes(bytes))
    }
}

fn listed(replaced: &[Replaced]) -> String {
    let one = |rule: &Replaced| {
        format!("{} (eval_type {}, severity {})", rule.id, rule.eval_type.as_str(), rule.severity.as_str())
    };
    replaced.iter().map(one).collect::<Vec<_>>().join(", ")
}
