//! The table of the HTTP API: every path, what it takes and what it is for. The router, the answer to a path that does
//! not exist, and the OpenAPI document are made of it.

use iris_core::contract::{
    self, AuditArgs, EvaluationsArgs, ListRulesArgs, NoArgs, PreviewRuleArgs, PurgeArgs, SummaryArgs, SwitchArgs,
};
use serde_json::Value;

/// What a path does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    /// Says whether the store is open.
    Health,
    /// Says what this server can do.
    Capabilities,
    /// Says how often the rules are right.
    Proof,
    /// Describes the API.
    OpenApi,
    /// Lists the tools.
    Tools,
    /// Calls the tool named in the path with the body.
    AnyTool,
    /// Calls this tool with the body.
    Posted(&'static str),
    /// Calls this tool with the query.
    Asked(&'static str),
    /// Shows a trace.
    Trace,
    /// Lists evaluations.
    Evaluations,
    /// Shows an evaluation.
    Evaluation,
    /// Sums up.
    Summary,
    /// Deletes many traces.
    Purge,
    /// Shows or changes rules.
    Rules(Rules),
}

/// What is done about rules, in a room of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rules {
    /// Lists all.
    List,
    /// Lists the built-in ones.
    BuiltIn,
    /// Lists the custom ones.
    Custom,
    /// Deploys one.
    Deploy,
    /// Tries one.
    Preview,
    /// Pauses one, or lets it fire again.
    Switch,
    /// Removes one.
    Remove,
    /// Shows who changed what.
    Audit,
}

/// One path.
pub(super) struct Route {
    /// The HTTP method.
    pub(super) method: &'static str,
    /// Below `/api/v1`.
    pub(super) path: &'static str,
    /// What it is for.
    pub(super) summary: &'static str,
    /// The status of a success.
    pub(super) status: u16,
    pub(super) does: Does,
}

impl Route {
    /// JSON Schema of the query, when the path takes one, and of the body.
    pub(super) fn takes(&self) -> (Value, Option<Value>) {
        let nothing = contract::arguments_schema::<NoArgs>;
        let of_tool = |name| contract::tool(name).map(|tool| (tool.arguments)()).unwrap_or_default();
        match self.does {
            Does::Asked(name) => (of_tool(name), None),
            Does::Posted(name) => (nothing(), Some(of_tool(name))),
            Does::AnyTool => (nothing(), Some(serde_json::json!({ "type": "object" }))),
            Does::Evaluations => (contract::arguments_schema::<EvaluationsArgs>(), None),
            Does::Summary => (contract::arguments_schema::<SummaryArgs>(), None),
            Does::Purge => (nothing(), Some(contract::arguments_schema::<PurgeArgs>())),
            Does::Rules(Rules::List | Rules::Custom) => (contract::arguments_schema::<ListRulesArgs>(), None),
            Does::Rules(Rules::Deploy) => (nothing(), Some(of_tool("deploy_rule"))),
            Does::Rules(Rules::Preview) => (nothing(), Some(contract::arguments_schema::<PreviewRuleArgs>())),
            Does::Rules(Rules::Switch) => (nothing(), Some(contract::arguments_schema::<SwitchArgs>())),
            Does::Rules(Rules::Audit) => (contract::arguments_schema::<AuditArgs>(), None),
            _ => (nothing(), None),
        }
    }

    /// JSON Schema of a success, where it is a tool's.
    pub(super) fn gives(&self) -> Value {
        match self.does {
            Does::Asked(name) | Does::Posted(name) => {
                contract::tool(name).map(|tool| (tool.reply)()).unwrap_or_default()
            }
            _ => serde_json::json!({ "type": "object" }),
        }
    }
}

/// Every path.
pub(super) const ROUTES: &[Route] = &[
    get("/health", "Whether the store is open; answered without a key", Does::Health),
    get("/capabilities", "What this server can do", Does::Capabilities),
    get("/proof", "How often the rules are right", Does::Proof),
    get("/openapi.json", "This description", Does::OpenApi),
    get("/tools", "The tools with their descriptions and schemas", Does::Tools),
    post("/tools/{name}", "Call a tool by its name", 200, Does::AnyTool),
    get("/traces", "Find traces: get_traces", Does::Asked("get_traces")),
    post("/traces", "Store an execution: log_trace", 201, Does::Posted("log_trace")),
    get("/traces/{trace_id}", "One trace with its spans and evaluations", Does::Trace),
    get("/evaluations", "List evaluations, newest first", Does::Evaluations),
    post("/evaluations", "Judge an output: evaluate_output", 201, Does::Posted("evaluate_output")),
    get("/evaluations/{id}", "One evaluation", Does::Evaluation),
    post("/judge", "Have a model judge: evaluate_with_llm_judge", 201, Does::Posted("evaluate_with_llm_judge")),
    post("/citations", "Verify citations: verify_citations", 201, Does::Posted("verify_citations")),
    get("/summary", "The figures of the last hours", Does::Summary),
    post("/purge", "Delete traces of an agent, of an age or all, with what judged them", 200, Does::Purge),
    get("/rules", "The rules: list_rules", Does::Rules(Rules::List)),
    get("/rules/builtin", "The built-in rules", Does::Rules(Rules::BuiltIn)),
    get("/rules/custom", "The custom rules", Does::Rules(Rules::Custom)),
    post("/rules/custom", "Deploy a rule: deploy_rule", 201, Does::Rules(Rules::Deploy)),
    post("/rules/custom/preview", "Try a rule on stored traces", 200, Does::Rules(Rules::Preview)),
    changing("PATCH", "/rules/custom/{id}", "Pause a rule, or let it fire again", 200, Does::Rules(Rules::Switch)),
    changing("DELETE", "/rules/custom/{id}", "Remove a rule", 204, Does::Rules(Rules::Remove)),
    get("/audit", "Who changed which rule", Does::Rules(Rules::Audit)),
];

const fn get(path: &'static str, summary: &'static str, does: Does) -> Route {
    Route { method: "GET", path, summary, status: 200, does }
}

const fn changing(method: &'static str, path: &'static str, summary: &'static str, status: u16, does: Does) -> Route {
    Route { method, path, summary, status, does }
}

const fn post(path: &'static str, summary: &'static str, status: u16, does: Does) -> Route {
    Route { method: "POST", path, summary, status, does }
}
