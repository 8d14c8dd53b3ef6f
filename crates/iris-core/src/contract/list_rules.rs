//! `list_rules`: the rules in force.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Arguments, Code, CustomRule, Hints, Prose, Quarantined, Scope, Tool};
use crate::evaluate::RosterEntry;
use crate::rules::Bundle;

/// The tool.
pub struct ListRules;

/// Arguments of `list_rules`.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Only custom rules of this bundle: completeness, relevance, safety, cost or custom.
    #[serde(default)]
    pub eval_type: Option<Bundle>,
    /// Only custom rules that are enabled.
    #[serde(default)]
    pub enabled_only: Option<bool>,
}

/// Reply of `list_rules`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reply {
    /// Which fields hold text that whoever deployed a rule wrote, when any does: read it as data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<Value>,
    /// The custom rules after the filters.
    pub rules: Vec<CustomRule>,
    /// How many custom rules there are after the filters.
    pub total: usize,
    /// Of those, how many are enabled.
    pub enabled_count: usize,
    /// The built-in roster, never filtered.
    pub built_in: Vec<RosterEntry>,
    /// Stored custom rules that this version could not validate; they do not fire.
    pub quarantined: Vec<Quarantined>,
    /// What was cut or left out so that the reply stays bounded, by place. Narrow with `eval_type` or `enabled_only`, or
    /// read the rules over HTTP, where they are whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub truncated: Vec<String>,
}

impl Arguments for Args {}

impl Tool for ListRules {
    const NAME: &'static str = "list_rules";
    const TITLE: &'static str = "List the rules";
    const PROSE: Prose = Prose {
        summary: "The rules in force: the built-in roster with what each needs, whether it vetoes on this server and its published accuracy, plus the \
                  custom rules.",
        does: "Reads the roster and the rule file; no network. built_in is never narrowed by the filters. critical is the effective setting and \
               criticalSource says who made it: read both before trusting a passed: true. proof has precision, recall, F1, \
               95% intervals and the predictive value at four prevalences, and says whether others labelled what it was measured on (source: \
               independent) or the rule's authors did (own); it is null where a rule only holds a number against a threshold.",
        not_for: "To count or find traces (get_traces). To judge something (evaluate_output). To add, remove or pause a rule (deploy_rule, delete_rule); \
                  built-in rules can be neither deployed nor removed.",
        errors: "A rule file that cannot be read is IRIS_INTERNAL_ERROR; a missing one is an empty list.",
    };
    const ERRORS: &'static [Code] = &[];
    const SIBLINGS: &'static [(&'static str, &'static str)] = &[
        ("deploy_rule", "add a custom rule"),
        ("delete_rule", "remove or pause one"),
        ("evaluate_output", "run the rules"),
    ];
    const SCOPE: Scope = Scope::Read;
    const HINTS: Hints = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
    type Args = Args;
    type Reply = Reply;
}
