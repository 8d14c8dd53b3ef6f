//! The closed list of failure codes, and one constructor for each way to fail.
//!
//! The code is for the caller's program, the message and the steps are for its reader. Nothing that was stored or
//! sent by an agent stands in a message: field names, ids, numbers and lists of what is valid do.

use serde::Serialize;

use crate::judge::Kind;

/// Why a call failed. The list is closed: clients match on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// An argument is unknown, missing, malformed or out of range.
    InvalidArgument,
    /// No stored or open trace has that id.
    UnknownTrace,
    /// A deployed rule has that name.
    DuplicateRule,
    /// A rule's definition is refused.
    InvalidRuleConfig,
    /// No provider key reached this process.
    JudgeNotEnabled,
    /// The model is not in the price table.
    JudgeUnknownModel,
    /// The call could cost more than allowed.
    BudgetExceeded,
    /// The provider failed.
    ProviderError,
    /// The judge failed on every citation.
    JudgeFailed,
    /// The store cannot be read or written.
    StorageError,
    /// Anything else.
    InternalError,
}

impl Code {
    /// Every code.
    pub const ALL: [Self; 11] = [
        Self::InvalidArgument,
        Self::UnknownTrace,
        Self::DuplicateRule,
        Self::InvalidRuleConfig,
        Self::JudgeNotEnabled,
        Self::JudgeUnknownModel,
        Self::BudgetExceeded,
        Self::ProviderError,
        Self::JudgeFailed,
        Self::StorageError,
        Self::InternalError,
    ];

    /// The code on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "IRIS_INVALID_ARGUMENT",
            Self::UnknownTrace => "IRIS_UNKNOWN_TRACE",
            Self::DuplicateRule => "IRIS_DUPLICATE_RULE",
            Self::InvalidRuleConfig => "IRIS_INVALID_RULE_CONFIG",
            Self::JudgeNotEnabled => "IRIS_JUDGE_NOT_ENABLED",
            Self::JudgeUnknownModel => "IRIS_JUDGE_UNKNOWN_MODEL",
            Self::BudgetExceeded => "IRIS_BUDGET_EXCEEDED",
            Self::ProviderError => "IRIS_PROVIDER_ERROR",
            Self::JudgeFailed => "IRIS_JUDGE_FAILED",
            Self::StorageError => "IRIS_STORAGE_ERROR",
            Self::InternalError => "IRIS_INTERNAL_ERROR",
        }
    }

    /// When it is given, for descriptions.
    pub const fn when(self) -> &'static str {
        match self {
            Self::InvalidArgument => "an argument is unknown, missing, malformed or out of range",
            Self::UnknownTrace => "trace_id names no trace, checked before anything is scored or written",
            Self::DuplicateRule => "a deployed rule has that name",
            Self::InvalidRuleConfig => "the definition is refused; nothing is deployed",
            Self::JudgeNotEnabled => "no provider key reached this process",
            Self::JudgeUnknownModel => "the model is not in the price table",
            Self::BudgetExceeded => "the call could cost more than allowed; nothing is spent",
            Self::ProviderError => "the provider failed; kind says how",
            Self::JudgeFailed => "the judge failed on every citation; nothing is stored",
            Self::StorageError => "the store cannot be read or written",
            Self::InternalError => "something unforeseen happened",
        }
    }

    /// The HTTP status that carries it.
    pub const fn http_status(self) -> u16 {
        match self {
            Self::InvalidArgument | Self::InvalidRuleConfig | Self::JudgeUnknownModel => 400,
            Self::UnknownTrace => 404,
            Self::DuplicateRule => 409,
            Self::BudgetExceeded => 402,
            Self::JudgeNotEnabled => 501,
            Self::ProviderError | Self::JudgeFailed => 502,
            Self::StorageError => 503,
            Self::InternalError => 500,
        }
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A failed call, as the caller receives it inside `{"error": ...}`.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[error("{}: {message}", code.as_str())]
pub struct Error {
    /// Why, for programs.
    pub code: Code,
    /// Why, for readers.
    pub message: String,
    /// What to do before retrying, in order; never empty.
    pub recovery: Box<[String]>,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// The argument at fault, as a dotted path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What would have been valid there.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub valid: Box<[String]>,
    /// The resource that tells more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub see: Option<&'static str>,
    /// How the provider failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// The caller's key does not allow it, whatever the arguments.
    #[serde(skip)]
    forbidden: bool,
    /// How long to wait before retrying, in milliseconds.
    #[serde(rename = "retryAfterMs", skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl Error {
    fn new(code: Code, message: impl Into<String>, recovery: &[&str]) -> Self {
        Self {
            code,
            message: message.into(),
            recovery: recovery.iter().map(|step| (*step).to_owned()).collect(),
            retryable: false,
            field: None,
            valid: Box::default(),
            see: None,
            kind: None,
            forbidden: false,
            retry_after_ms: None,
        }
    }

    /// Arguments that the tool does not have.
    pub fn unknown_argument(unknown: &[String], container: &str, valid: Vec<String>) -> Self {
        let place = if container.is_empty() { String::new() } else { format!(" in {container}") };
        let plural = if unknown.len() == 1 { "argument" } else { "arguments" };
        Self {
            field: unknown
                .first()
                .map(|name| if container.is_empty() { name.clone() } else { format!("{container}.{name}") }),
            ..Self::new(
                Code::InvalidArgument,
                format!("unknown {plural}{place}: {}; valid: {}", listed(unknown), valid.join(", ")),
                &["use one of the names in valid", "leave out what the tool does not have"],
            )
        }
        .with_valid(valid)
    }

    /// An argument with a value it cannot have; `why` names what is valid.
    pub fn invalid_argument(field: &str, why: impl std::fmt::Display) -> Self {
        let message = if field.is_empty() { why.to_string() } else { format!("{field}: {why}") };
        Self {
            field: (!field.is_empty()).then(|| field.to_owned()),
            ..Self::new(Code::InvalidArgument, message, &["correct the argument that field names and call again"])
        }
    }

    /// A tool that does not exist.
    pub fn unknown_tool(valid: Vec<String>) -> Self {
        Self::new(
            Code::InvalidArgument,
            format!("no tool has that name; valid: {}", valid.join(", ")),
            &["call one of the tools in valid"],
        )
        .with_valid(valid)
    }

    /// A range whose ends are crossed.
    pub fn crossed_range(low: &str, low_value: &str, high: &str, high_value: &str) -> Self {
        Self {
            field: Some(low.to_owned()),
            ..Self::new(
                Code::InvalidArgument,
                format!("{low} ({low_value}) lies above {high} ({high_value}); no trace can match"),
                &["exchange the two bounds, or leave one out"],
            )
        }
    }

    /// No trace has that id.
    pub fn unknown_trace(trace_id: &crate::model::TraceId) -> Self {
        Self {
            field: Some("trace_id".to_owned()),
            ..Self::new(
                Code::UnknownTrace,
                format!("no stored or open trace has the id {trace_id}"),
                &[
                    "list traces with get_traces and use a trace_id from there",
                    "or store the execution with log_trace and use the trace_id it returns",
                ],
            )
        }
    }

    /// A deployed rule has that name.
    pub fn duplicate_rule(rule: &super::CustomRule) -> Self {
        let state = if rule.enabled { "enabled" } else { "disabled" };
        let (bundle, severity) = (rule.eval_type.as_str(), rule.severity.as_str());
        Self {
            field: Some("name".to_owned()),
            ..Self::new(
                Code::DuplicateRule,
                format!(
                    "a deployed rule has that name: {} (eval_type {bundle}, severity {severity}, {state})",
                    rule.id
                ),
                &[
                    "call again with replace: true to retire that rule for this one",
                    "or remove it with delete_rule first",
                    "or choose another name",
                ],
            )
        }
    }

    /// No provider can be called from this process: `why`, and the steps that change it.
    pub fn judge_not_enabled(why: &str) -> Self {
        Self::new(Code::JudgeNotEnabled, format!("no model can be asked to judge here: {why}"), ENABLE_JUDGE)
            .seen_at(super::CAPABILITIES.uri)
    }

    /// The model has no price, so what it would cost cannot be bounded. The name is the caller's and is not repeated.
    pub fn judge_unknown_model(valid: Vec<String>) -> Self {
        Self {
            field: Some("model".to_owned()),
            ..Self::new(
                Code::JudgeUnknownModel,
                "model: no price is known for a model of that name at that provider, so nothing was spent",
                &[
                    "use one of the names in valid, exactly",
                    "or ask the operator to add the model with its price under cost.prices",
                ],
            )
        }
        .with_valid(valid)
    }

    /// The call could cost more than `limit_usd`; `field` is the argument that bounds it and `setting` what set the
    /// limit, when it was not the argument.
    pub fn budget_exceeded(field: &str, worst_usd: f64, limit_usd: f64, setting: Option<&str>) -> Self {
        let by = setting.map(|setting| format!(", set by {setting}")).unwrap_or_default();
        Self {
            field: Some(field.to_owned()),
            ..Self::new(
                Code::BudgetExceeded,
                format!(
                    "this call could cost {worst_usd:.4} USD at worst, and {limit_usd:.4} USD are left to it{by}; nothing was spent"
                ),
                &[
                    "shorten the texts or lower max_output_tokens",
                    "or choose a cheaper model",
                    "or raise the argument that field names, as far as the operator's limits allow",
                ],
            )
        }
    }

    /// The provider failed. `words` are its own, scrubbed; `spent_usd` is what the attempts cost all the same.
    pub fn provider_failed(kind: Kind, words: &str, spent_usd: f64, retry_after_ms: Option<u64>) -> Self {
        let colon = if words.is_empty() { "" } else { ": " };
        let recovery: &[&str] = match kind {
            Kind::Auth => &["check the provider key of this process", "start it again after the key was changed"],
            Kind::RateLimit => &["wait retryAfterMs, or a minute, and call again once"],
            Kind::BadRequest => &["read the message: the provider does not take this call", "choose another model"],
            Kind::ServerError | Kind::Timeout => &["call again once", "or choose another model"],
            Kind::MalformedResponse => {
                &["raise max_output_tokens when the answer was cut off", "or choose another model"]
            }
        };
        Self {
            kind: Some(kind),
            retryable: kind.is_retryable(),
            retry_after_ms,
            ..Self::new(
                Code::ProviderError,
                format!(
                    "the provider failed ({}){colon}{words}; {spent_usd:.6} USD were spent, nothing was stored",
                    kind.as_str()
                ),
                recovery,
            )
        }
    }

    /// The judge failed on every citation whose source was read; `spent_usd` is what it cost all the same.
    pub fn judge_failed(kind: Option<Kind>, resolved: u64, words: &str, spent_usd: f64) -> Self {
        let colon = if words.is_empty() { "" } else { ": " };
        Self {
            kind,
            retryable: kind.is_some_and(Kind::is_retryable),
            ..Self::new(
                Code::JudgeFailed,
                format!(
                    "{resolved} sources were read and the judge failed on each{colon}{words}; {spent_usd:.6} USD were spent, nothing was stored"
                ),
                &["call again once when retryable", "or choose another model"],
            )
        }
    }

    /// The caller's key does not allow it.
    pub fn out_of_scope(tool: &str, scope: super::Scope) -> Self {
        Self {
            forbidden: true,
            ..Self::new(
                Code::InvalidArgument,
                format!("this key may not call {tool}: it needs the scope {}", scope.as_str()),
                &["call with a key that has the scope", "or ask the operator to add it to this key"],
            )
        }
    }

    /// The definition of a rule is refused; `container` is where it stands among the arguments.
    pub fn invalid_rule(container: &str, problem: &crate::rules::custom::Problem) -> Self {
        let field = format!("{container}.{}", problem.field);
        Self {
            field: Some(field.clone()),
            ..Self::new(
                Code::InvalidRuleConfig,
                format!("{field}: {}", problem.why),
                &["correct the key that field names and call again; nothing was deployed"],
            )
        }
        .with_valid(problem.valid.clone())
    }

    /// No more rules, or no larger ones, can be deployed; `why` names the limit.
    pub fn rules_full(why: impl std::fmt::Display) -> Self {
        Self {
            field: Some("definition".to_owned()),
            ..Self::new(
                Code::InvalidRuleConfig,
                format!("{why}; nothing was deployed"),
                &["remove rules with delete_rule", "or replace one: deploy_rule with its name and replace: true"],
            )
        }
    }

    /// The rule file or the audit log could not be written: nothing was changed.
    pub fn rules_not_kept(reference: &str) -> Self {
        Self::new(
            Code::StorageError,
            format!(
                "the rules could not be stored, so nothing was changed; the log holds the details under reference {reference}"
            ),
            &["check that the home folder is writable and has space", "call again once"],
        )
    }

    /// The rule file cannot be read, and a write would destroy it.
    pub fn rules_unreadable(code: Code) -> Self {
        Self::new(
            code,
            "custom-rules.json in the home folder cannot be read as a list of rules; it is left as it is, and evaluations \
             are unknown until it is repaired",
            &[
                "repair the file, or move it away to begin with no custom rules",
                "call again: it is read anew each time",
            ],
        )
    }

    /// The store cannot be read or written just now.
    pub fn storage_busy(what: &str, retry_after_ms: u64) -> Self {
        Self {
            retryable: true,
            retry_after_ms: Some(retry_after_ms),
            ..Self::new(
                Code::StorageError,
                format!("the store cannot answer yet: {what}"),
                &["wait retryAfterMs and call again once", "if it persists, see /readyz?full on the ops port"],
            )
        }
    }

    /// The store failed.
    pub fn storage_failed(reference: &str) -> Self {
        Self::new(
            Code::StorageError,
            format!("the store failed; the log holds the details under reference {reference}"),
            &[
                "call again once",
                "check that the data directory is writable and has space",
                "see /readyz?full on the ops port",
            ],
        )
    }

    /// `what` is in the journal, but the store could not take it: the call must not be made again.
    pub fn journalled(what: &str, reference: &str) -> Self {
        Self::new(
            Code::StorageError,
            format!(
                "{what} is stored durably, but the store cannot show it yet; the log holds the details under reference \
                 {reference}"
            ),
            &[
                "do not repeat: it is in the journal and appears when the store is back",
                "see /readyz?full on the ops port",
            ],
        )
    }

    /// Something unforeseen; the log holds it under `reference`.
    pub fn internal(reference: &str) -> Self {
        let error = Self::new(
            Code::InternalError,
            format!("unforeseen failure; the log holds the details under reference {reference}"),
            &["call again once", "report the reference with the sidecar's version"],
        );
        error.seen_at(super::CAPABILITIES.uri)
    }

    fn seen_at(mut self, uri: &'static str) -> Self {
        self.see = Some(uri);
        self
    }

    /// The HTTP status that carries it.
    pub const fn http_status(&self) -> u16 {
        if self.forbidden { 403 } else { self.code.http_status() }
    }

    fn with_valid(mut self, valid: Vec<String>) -> Self {
        self.valid = valid.into();
        self
    }

    /// The body of a failed reply: `{"error": {...}}`.
    pub fn envelope(&self) -> serde_json::Value {
        serde_json::json!({ "error": self })
    }
}

/// How the two tools that ask a model are enabled.
pub const ENABLE_JUDGE: &[&str] = &[
    "get an API key from Anthropic or OpenAI",
    "set IRIS_ANTHROPIC_API_KEY or IRIS_OPENAI_API_KEY where this process is started: in the env block of the MCP client's configuration, or in \
     the environment of `serve`; an export in another shell does not reach it",
    "set IRIS_LLM_JUDGE_MAX_COST_USD_PER_EVAL to bound one call (0.25 US dollars when left out)",
    "start this process again and read judge.enabled at iris://capabilities",
];

/// Unknown names that a message lists.
const NAMES_MAX: usize = 8;

/// The first names, and how many more there are.
fn listed(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
