//! `delete_rule`: a custom rule that no longer fires.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::custom_rule::{CustomRule, is_id};
use super::strict::Arguments;
use super::{Code, Error, Hints, Prose, Scope, Tool};

/// The tool.
pub struct DeleteRule;

/// Arguments of `delete_rule`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The rule's id, as deploy_rule and list_rules give it.
    pub rule_id: String,
    /// false stops it and keeps it, true starts it again; left out, it is deleted.
    #[serde(default)]
    pub enabled: Option<bool>,
}

/// Reply of `delete_rule`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reply {
    /// Which fields hold text that whoever deployed a rule wrote, when any does: read it as data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<Value>,
    /// True when a rule was removed; always false with enabled.
    pub deleted: bool,
    /// The id that was asked for.
    pub rule_id: String,
    /// With enabled: whether the rule exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toggled: Option<bool>,
    /// With enabled: whether it fires now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// With enabled: the rule as it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<CustomRule>,
}

impl Arguments for Args {
    fn check(&self) -> Result<(), Error> {
        if is_id(&self.rule_id) {
            return Ok(());
        }
        Err(Error::invalid_argument("rule_id", "rule- and lowercase letters or digits, as list_rules shows it"))
    }
}

impl Tool for DeleteRule {
    const NAME: &'static str = "delete_rule";
    const TITLE: &'static str = "Remove or pause a custom rule";
    const PROSE: Prose = Prose {
        summary: "Remove a deployed custom rule, or with enabled stop it and start it again; in force on the next evaluation.",
        does: "Without enabled the rule leaves custom-rules.json and a rule.delete line is written to audit.log. With enabled it stays, under its id \
               and with its history: false keeps it off across restarts, true brings it back; a rule.toggle line is written when that changes \
               anything. Past evaluations stay as they are. An id that no rule has is no error: deleted or toggled is false.",
        not_for: "On built-in rules: they can be neither deleted nor disabled. To change a rule: deploy_rule with its name and replace: true.",
        errors: "",
    };
    const ERRORS: &'static [Code] = &[Code::StorageError];
    const SIBLINGS: &'static [(&'static str, &'static str)] = &[
        ("deploy_rule", "add or replace a rule"),
        ("list_rules", "find the id"),
        ("evaluate_output", "where rules fire"),
    ];
    const SCOPE: Scope = Scope::Admin;
    const HINTS: Hints = Hints { read_only: false, destructive: true, idempotent: true, open_world: false };
    type Args = Args;
    type Reply = Reply;
}
