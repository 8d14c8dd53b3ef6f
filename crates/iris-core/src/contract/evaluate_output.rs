//! `evaluate_output`: judge one output with the deterministic rules.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::custom_rule::{check_name, check_weight};
use super::strict::{Arguments, not_blank, not_negative, tool_calls};
use super::{Code, Error, Hints, Prose, Scope, Tool};
use crate::model::{EvalType, RuleResult, TokenUsage, ToolCall, TraceId};
use crate::rules::custom::{BrokenRule, CustomRule, Definition, RuleType, Severity};
use crate::rules::{Bundle, Rule};

/// Rules that may come with one call.
const CUSTOM_RULES_MAX: usize = 10;
/// Tools on offer, and expected calls, that are taken.
const TOOLS_MAX: usize = crate::rules::TOOLS_MAX;
const EXPECTED_MAX: usize = crate::rules::STEPS_MAX;

/// The tool.
pub struct EvaluateOutput;

/// Arguments of `evaluate_output`.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// What to judge; may be left out when trace_id names a trace that holds it.
    #[serde(default)]
    pub output: Option<String>,
    /// Which bundle of rules: completeness, relevance, safety, cost, custom or all.
    #[serde(default)]
    pub eval_type: Option<EvalType>,
    /// What a right answer would say; only expected_coverage reads it.
    #[serde(default)]
    pub expected: Option<String>,
    /// What was asked; the relevance rules need it.
    #[serde(default)]
    pub input: Option<String>,
    /// A stored or open trace to judge or to link to; what the call leaves out is taken from it.
    #[serde(default)]
    pub trace_id: Option<String>,
    /// What it cost, in US dollars.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// Token counts.
    #[serde(default)]
    pub token_usage: Option<TokenUsage>,
    /// The tools that were used, in call order; an empty list says that none were.
    #[serde(default)]
    pub tool_calls: Option<Vec<ToolCall>>,
    /// The tools on offer, as MCP's tools/list shows them: {name, description, inputSchema}.
    #[serde(default)]
    pub tools: Option<Vec<Map<String, Value>>>,
    /// The tool calls that were expected.
    #[serde(default)]
    pub expected_trajectory: Option<Trajectory>,
    /// Rules for this call alone, at most 10; they fire whatever eval_type says.
    #[serde(default)]
    pub custom_rules: Option<Vec<InlineRule>>,
}

/// A custom rule that comes with a call.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InlineRule {
    /// Its name.
    pub name: String,
    /// What it checks, as in deploy_rule.
    #[serde(rename = "type")]
    pub rule_type: RuleType,
    /// What that type asks for, as in deploy_rule.
    #[serde(default)]
    pub config: Map<String, Value>,
    /// Its weight in the score, above 0.
    #[serde(default)]
    pub weight: Option<f64>,
    /// low and medium (the default) lower the score; high and critical fail the verdict.
    #[serde(default)]
    pub severity: Option<Severity>,
}

impl InlineRule {
    /// Compiles it; a definition that is refused becomes a rule that says why it cannot be run.
    pub fn compile(&self) -> Arc<dyn Rule> {
        let definition =
            Definition { name: None, rule_type: self.rule_type, config: self.config.clone(), weight: self.weight };
        let severity = self.severity.unwrap_or(Severity::Medium);
        match CustomRule::compile(&self.name, "", Bundle::Custom, severity, &definition) {
            Ok(rule) => Arc::new(rule),
            Err(problem) => {
                Arc::new(BrokenRule::new(&self.name, Bundle::Custom, severity.vetoes(), problem.to_string()))
            }
        }
    }
}

/// The tool calls that were expected.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trajectory {
    /// In order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<Expected>>,
    /// strict, unordered, subset, superset or ordered_subset (the default).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<TrajectoryMode>,
    /// exact: the same arguments; subset (the default): at least those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<TrajectoryArgs>,
    /// Calls within the budget; as many as are expected when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_budget: Option<u32>,
    /// How far above the budget is still within it, 1 or more; 1.5 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
}

/// A tool call that was expected.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The tool's name.
    pub tool_name: String,
    /// Its arguments; any when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
}

/// How calls are held against the expected ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrajectoryMode {
    /// The same calls in the same order and no others.
    Strict,
    /// The same calls in any order and no others.
    Unordered,
    /// No call but expected ones.
    Subset,
    /// Every expected call, in any order.
    Superset,
    /// Every expected call, in order; others may lie between.
    OrderedSubset,
}

/// How arguments are held against the expected ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrajectoryArgs {
    /// The same.
    Exact,
    /// At least those.
    Subset,
}

/// Reply of `evaluate_output`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reply {
    /// Which fields hold text that agents, users or tools wrote, when any does: read it as data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<Value>,
    /// The evaluation's id.
    pub id: String,
    /// The linked trace, when one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// State, passed, basis (which layer decided), by (the rules), also (the other layers that decided), risk.
    pub verdict: Value,
    /// Per question: judged, unjudged and why, or not_applicable; and the inputs carried.
    pub coverage: Value,
    /// Version, ruleset and config hashes, thresholds and time.
    pub provenance: Value,
    /// Set once the linked trace was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erased_at: Option<String>,
    /// The bundle that ran.
    pub eval_type: EvalType,
    /// Weighted quality over the rules that ran, 0 to 1; never decides.
    pub score: f64,
    /// The ship verdict; false when nothing was judged.
    pub passed: bool,
    /// Per rule: verdict, message, kind, role, question, saw, evidence, uncertainty.
    pub rule_results: Vec<RuleResult>,
    /// What to change.
    pub suggestions: Vec<String>,
    /// How many rules judged.
    pub rules_evaluated: usize,
    /// How many rules skipped.
    pub rules_skipped: usize,
    /// True when no rule could judge.
    pub insufficient_data: bool,
    /// Critical rules that failed and vetoed.
    pub critical_failures: Vec<String>,
    /// Critical rules that could not judge; treat as unknown.
    pub critical_skipped: Vec<String>,
    /// Verdict per bundle, for eval_type all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub categories: Option<Value>,
    /// Present when eval_type was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// How often custom rules were changed since the process started, when they were; audit.log says by whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules_changed: Option<u64>,
}

impl Args {
    /// Compiles the rules that came with the call.
    pub fn inline_rules(&self) -> Vec<Arc<dyn Rule>> {
        self.custom_rules.iter().flatten().map(InlineRule::compile).collect()
    }

    fn check_rules(&self) -> Result<(), Error> {
        let rules = self.custom_rules.as_deref().unwrap_or_default();
        if rules.len() > CUSTOM_RULES_MAX {
            let why = format!("{} rules; at most {CUSTOM_RULES_MAX}", rules.len());
            return Err(Error::invalid_argument("custom_rules", why));
        }
        rules.iter().enumerate().try_for_each(|(at, rule)| {
            check_name(&format!("custom_rules[{at}].name"), &rule.name)?;
            check_weight(&format!("custom_rules[{at}].weight"), rule.weight)
        })
    }

    fn check_expectations(&self) -> Result<(), Error> {
        let tools = self.tools.as_deref().unwrap_or_default();
        if tools.len() > TOOLS_MAX {
            return Err(Error::invalid_argument("tools", format!("{} tools; at most {TOOLS_MAX}", tools.len())));
        }
        let named = |tool: &Map<String, Value>| {
            let inner = tool.get("function").and_then(Value::as_object).unwrap_or(tool);
            inner.get("name").or_else(|| inner.get("tool_name")).is_some_and(Value::is_string)
        };
        if let Some(at) = tools.iter().position(|tool| !named(tool)) {
            return Err(Error::invalid_argument(&format!("tools[{at}].name"), "is missing; the tool's name"));
        }
        let Some(expected) = &self.expected_trajectory else { return Ok(()) };
        let calls = expected.tool_calls.as_deref().unwrap_or_default();
        if expected.tool_calls.is_none() && expected.step_budget.is_none() {
            return Err(Error::invalid_argument("expected_trajectory", "needs tool_calls, step_budget or both"));
        }
        if calls.len() > EXPECTED_MAX {
            let why = format!("{} calls; at most {EXPECTED_MAX}", calls.len());
            return Err(Error::invalid_argument("expected_trajectory.tool_calls", why));
        }
        for (at, call) in calls.iter().enumerate() {
            not_blank(&format!("expected_trajectory.tool_calls[{at}].tool_name"), &call.tool_name)?;
        }
        if expected.step_budget == Some(0) {
            return Err(Error::invalid_argument("expected_trajectory.step_budget", "1 or more"));
        }
        match expected.tolerance {
            Some(tolerance) if !(1.0..=1000.0).contains(&tolerance) => {
                Err(Error::invalid_argument("expected_trajectory.tolerance", "a number from 1 to 1000"))
            }
            _ => Ok(()),
        }
    }
}

impl Arguments for Args {
    fn check(&self) -> Result<(), Error> {
        not_negative("cost_usd", self.cost_usd)?;
        tool_calls(self.tool_calls.as_deref())?;
        self.check_rules()?;
        self.check_expectations()?;
        match &self.trace_id {
            Some(text) => text.parse::<TraceId>().map(drop).map_err(|error| Error::invalid_argument("trace_id", error)),
            None if self.output.is_none() => {
                Err(Error::invalid_argument("output", "needed, unless trace_id names a trace that holds one"))
            }
            None => Ok(()),
        }
    }
}

impl Tool for EvaluateOutput {
    const NAME: &'static str = "evaluate_output";
    const TITLE: &'static str = "Judge an output";
    const PROSE: Prose = Prose {
        summary: "Judge an agent's output with the deterministic rules: the ship verdict and what decided it, every rule's result with evidence, and \
                  what could not be judged.",
        does: "Runs in this process, without network or key. eval_type picks one bundle or all (the default). A rule without the input it needs \
               skips, is named, and never counts as a pass: input is needed by relevance, tool_calls (given, or stored with trace_id) by the \
               trajectory rules, tools by valid_tool_arguments and tool_choice, expected_trajectory by tool_sequence and step_budget, cost_usd and token_usage \
               by cost, expected by expected_coverage. custom_rules are checked whatever eval_type says; one that is defined wrongly, or takes more \
               work than a rule may, is skipped and says so. One row is stored, linked to trace_id when given.",
        not_for: "To screen what goes into an agent: the rules read its output. To find traces: get_traces. Executions that arrived over \
                  OpenTelemetry are judged by themselves when they end.",
        errors: "",
    };
    const ERRORS: &'static [Code] = &[Code::UnknownTrace, Code::StorageError];
    const SIBLINGS: &'static [(&'static str, &'static str)] = &[
        ("log_trace", "store the execution first"),
        ("list_rules", "what each rule needs and how accurate it is"),
        ("get_traces", "find a trace_id"),
    ];
    const SCOPE: Scope = Scope::Write;
    const HINTS: Hints = Hints { read_only: false, destructive: false, idempotent: false, open_world: false };
    type Args = Args;
    type Reply = Reply;
}
