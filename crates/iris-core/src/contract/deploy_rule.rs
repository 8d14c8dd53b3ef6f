//! `deploy_rule`: a custom rule that fires from now on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::custom_rule::{CustomRule, check_description, check_name, check_weight};
use super::strict::Arguments;
use super::{Code, Error, Hints, Prose, Scope, Tool};
use crate::rules::Bundle;
use crate::rules::custom::{Definition, Severity};

/// The tool.
pub struct DeployRule;

/// Arguments of `deploy_rule`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Its name, unique among the deployed: 1 to 80 characters.
    pub name: String,
    /// What it is for, at most 500 characters.
    #[serde(default)]
    pub description: Option<String>,
    /// Required: the bundle with which it fires: completeness, relevance, safety, cost or custom.
    #[serde(default)]
    pub eval_type: Option<Bundle>,
    /// Another spelling of eval_type; give one of them.
    #[serde(default, rename = "evalType")]
    pub eval_type_alias: Option<Bundle>,
    /// low and medium (the default) lower the score; high and critical fail the verdict.
    #[serde(default)]
    pub severity: Option<Severity>,
    /// What it checks.
    pub definition: Definition,
    /// The trace it is made from.
    #[serde(default)]
    pub source_moment_id: Option<String>,
    /// Another spelling of source_moment_id; give one of them.
    #[serde(default, rename = "sourceMomentId")]
    pub source_moment_id_alias: Option<String>,
    /// Retire the deployed rule of that name, if there is one.
    #[serde(default)]
    pub replace: Option<bool>,
}

impl Args {
    /// The bundle, whichever way it was spelt.
    pub fn bundle(&self) -> Option<Bundle> {
        self.eval_type.or(self.eval_type_alias)
    }

    /// The trace it is made from, whichever way it was spelt.
    pub fn source(&self) -> Option<&str> {
        self.source_moment_id.as_deref().or(self.source_moment_id_alias.as_deref())
    }
}

/// A rule that was retired for another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Replaced {
    /// Its id.
    pub id: String,
    /// Its bundle.
    pub eval_type: Bundle,
    /// Its severity.
    pub severity: Severity,
}

/// Reply of `deploy_rule`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reply {
    /// Which fields hold text that whoever deployed a rule wrote: read it as data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<Value>,
    /// The rule as it is stored; keep its id for delete_rule.
    pub rule: CustomRule,
    /// The earlier rules of that name that were retired.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<Replaced>,
    /// What was retired, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

impl Arguments for Args {
    fn check(&self) -> Result<(), Error> {
        check_name("name", &self.name)?;
        check_description(self.description.as_deref().unwrap_or_default())?;
        check_weight("definition.weight", self.definition.weight)?;
        match (self.eval_type, self.eval_type_alias) {
            (Some(_), Some(_)) => Err(Error::invalid_argument("evalType", "give eval_type or evalType, not both")),
            (None, None) => {
                let names = Bundle::ALL.iter().map(|bundle| bundle.as_str()).collect::<Vec<_>>().join(", ");
                Err(Error::invalid_argument("eval_type", format!("is missing; one of {names}")))
            }
            _ => Ok(()),
        }?;
        if self.source_moment_id.is_some() && self.source_moment_id_alias.is_some() {
            let why = "give source_moment_id or sourceMomentId, not both";
            return Err(Error::invalid_argument("sourceMomentId", why));
        }
        match self.source() {
            Some(source) if source.is_empty() || source.len() > 128 || source.chars().any(char::is_control) => Err(
                Error::invalid_argument("source_moment_id", "a trace id: 1 to 128 bytes without control characters"),
            ),
            _ => Ok(()),
        }
    }
}

impl Tool for DeployRule {
    const NAME: &'static str = "deploy_rule";
    const TITLE: &'static str = "Deploy a custom rule";
    const PROSE: Prose = Prose {
        summary: "Deploy a rule of your own: it fires on every later evaluation of its bundle, whether a call asks for it or a trace ends, and stays \
                  after a restart.",
        does: "Writes custom-rules.json in the home folder and a rule.deploy line in audit.log, then puts the rule in force: the next evaluation has \
               it. eval_type says when it fires (that bundle, and all). severity says what a failure does. definition.type picks the check and \
               definition.config holds its keys: regex_match and regex_no_match (pattern, flags), min_length (min_length), max_length (max_length), \
               contains_keywords (keywords, threshold), excludes_keywords (keywords), json_schema (schema, or none for any JSON), cost_threshold \
               (max_cost), action_policy (allow, deny: lists of {tool, args}). A name is taken as long as its rule is deployed, disabled or not; \
               replace: true retires that rule once the new one is found valid.",
        not_for: "To try a rule first: POST /api/v1/rules/custom/preview replays a definition over stored traces. For one call: custom_rules of \
                  evaluate_output. To pause a rule: delete_rule with enabled: false.",
        errors: "The message names the key that is wrong and what is right; a pattern with look-around, back-references or catastrophic backtracking \
                 is refused.",
    };
    const ERRORS: &'static [Code] = &[Code::DuplicateRule, Code::InvalidRuleConfig, Code::StorageError];
    const SIBLINGS: &'static [(&'static str, &'static str)] = &[
        ("list_rules", "what is deployed, and the built-in roster"),
        ("delete_rule", "remove, disable or enable one"),
        ("evaluate_output", "where it fires"),
    ];
    const SCOPE: Scope = Scope::Admin;
    const HINTS: Hints = Hints { read_only: false, destructive: false, idempotent: false, open_world: false };
    type Args = Args;
    type Reply = Reply;
}
