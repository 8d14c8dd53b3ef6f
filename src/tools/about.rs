//! What the server says of itself, and everything that is read by address.

use std::time::Duration;

use iris_core::contract::{
    CAPABILITIES, ENABLE_JUDGE, EVALUATION, Error, EvaluationsArgs, ListRulesArgs, PROMPT_NAME, PROOF, RESOURCES,
    SUMMARY, Scope, SummaryArgs, TRACE,
};
use iris_core::evaluate;
use iris_core::rules::Question;
use serde_json::{Value, json};

use super::get_traces::{bound_time, day_end};
use super::judging::read_again;
use super::{App, Caller, evaluation_value, mark_evaluations, marks, trace_id};
use crate::store::EvaluationQuery;

/// Hours of a summary when none are named.
const HOURS: u32 = 24;

/// The longest id of an evaluation that is looked for, in bytes.
const ID_BYTES_MAX: usize = 128;

/// What is known of this process beyond the tools themselves.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// How clients reach it: `stdio`, or `http` with the web door's address.
    pub web: Option<String>,
    /// Days that traces are kept; 0 for ever.
    pub retention_days: u32,
    /// Hours between two sweeps.
    pub sweep_interval_hours: u32,
    /// Requests a minute that a caller may make at `/mcp`; 0: no limit.
    pub mcp_per_minute: u32,
    /// Write and paid tools are left out.
    pub read_only: bool,
    /// `query_sql` is offered.
    pub sql: bool,
    /// Takes what `log_trace` stored and sends it to a collector of its own.
    pub export: Option<crate::forward::Exporter>,
    /// Traces are sent on to a collector.
    pub forwards: bool,
    /// Text that others wrote, as replies carry it.
    pub stored_text: super::StoredText,
    /// The text of a reply that a model reads, in bytes; 0: no bound of its own.
    pub reply_bytes_max: usize,
    /// How soon bytes of what was deleted are gone.
    pub erase_within: std::time::Duration,
    /// Takes personal data and credentials out of what callers send, when that is configured.
    pub redactor: Option<std::sync::Arc<iris_core::redact::Redactor>>,
}

/// Why a resource cannot be read.
#[derive(Debug)]
pub enum NotRead {
    /// Nothing has that address, or what had it is not this caller's.
    Unknown,
    /// It failed.
    Failed(Error),
}

impl From<Error> for NotRead {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl App {
    /// Reads one of [`RESOURCES`].
    ///
    /// # Errors
    /// See [`NotRead`].
    pub async fn read_resource(&self, uri: &str, caller: &Caller) -> Result<Value, NotRead> {
        let found = RESOURCES.iter().find_map(|one| Some((one.name, one.matches(uri)?)));
        let (name, id) = found.ok_or(NotRead::Unknown)?;
        caller.check("resources", Scope::Read)?;
        match name {
            _ if name == CAPABILITIES.name => Ok(self.capabilities(caller).await?),
            _ if name == PROOF.name => Ok(self.proof(caller)?),
            _ if name == SUMMARY.name => Ok(self.summary(&SummaryArgs { hours: Some(1) }, caller).await?),
            _ if name == TRACE.name => {
                if trace_id(id).is_err() {
                    return Err(NotRead::Unknown);
                }
                match self.trace_detail(id, caller).await {
                    Err(error) if error.code == iris_core::contract::Code::UnknownTrace => Err(NotRead::Unknown),
                    answer => Ok(answer?),
                }
            }
            _ if name == EVALUATION.name => self.evaluation(id, caller).await?.ok_or(NotRead::Unknown),
            _ => Err(NotRead::Unknown),
        }
    }

    /// One evaluation as the tool that made it answered. `None` when there is none of that id, or it is another
    /// tenant's.
    ///
    /// # Errors
    /// `IRIS_STORAGE_ERROR`.
    pub async fn evaluation(&self, id: &str, caller: &Caller) -> Result<Option<Value>, Error> {
        caller.check("evaluations", Scope::Read)?;
        if id.len() > ID_BYTES_MAX {
            return Ok(None);
        }
        let found = self.backend()?.store.evaluation(&caller.tenant, id).await.map_err(|error| self.failed(&error))?;
        let found =
            found.map(|found| read_again(&found, caller)).transpose().map_err(|error| self.unforeseen(&error))?;
        Ok(found.map(|found| self.shown(found)))
    }

    /// A page of evaluations, newest first.
    ///
    /// # Errors
    /// `IRIS_INVALID_ARGUMENT`, `IRIS_STORAGE_ERROR`.
    pub async fn evaluations(&self, args: &EvaluationsArgs, caller: &Caller) -> Result<Value, Error> {
        caller.check("evaluations", Scope::Read)?;
        let query = EvaluationQuery {
            eval_type: args.eval_type,
            passed: args.passed,
            by_call: false,
            since: args.since.as_deref().map(|text| bound_time("since", text, Duration::ZERO)).transpose()?,
            until: args.until.as_deref().map(|text| bound_time("until", text, day_end())).transpose()?,
            limit: u32::try_from(args.limit.unwrap_or(50)).unwrap_or(u32::MAX),
            offset: u64::try_from(args.offset.unwrap_or(0)).unwrap_or(u64::MAX),
        };
        if let (Some(low), Some(high)) = (query.since, query.until)
            && low > high
        {
            return Err(Error::crossed_range("since", &low.to_string(), "until", &high.to_string()));
        }
        let store = &self.backend()?.store;
        let page = store.evaluation_page(&caller.tenant, &query).await.map_err(|error| self.failed(&error))?;
        let results = page.items.iter().map(evaluation_value).collect::<Result<Vec<_>, _>>();
        let mut reply = json!({
            "results": results.map_err(|error| self.unforeseen(&error))?,
            "total": page.total, "limit": query.limit, "offset": query.offset,
        });
        if page.left_out > 0 {
            reply["truncated"] =
                json!([format!("results: {} left out, their stored rows cannot be read", page.left_out)]);
        }
        mark_evaluations(&mut reply, "results[]");
        Ok(self.shown(reply))
    }

    /// The figures of the last hours.
    ///
    /// # Errors
    /// `IRIS_STORAGE_ERROR`.
    pub async fn summary(&self, args: &SummaryArgs, caller: &Caller) -> Result<Value, Error> {
        caller.check("summary", Scope::Read)?;
        let hours = args.hours.map_or(HOURS, |hours| u32::try_from(hours).unwrap_or(u32::MAX));
        let now = (self.world.now)();
        let window = Duration::from_secs(u64::from(hours) * 3600);
        let window = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
        let since = iris_core::model::Timestamp::from_unix_nanos(now.as_unix_nanos().saturating_sub(window));
        let store = &self.backend()?.store;
        let mut summary = store.summary(&caller.tenant, since, now).await.map_err(|error| self.failed(&error))?;
        summary.judge_usd_today = self.judge_usd_today(caller);
        let mut reply = json!({ "untrusted": super::untrusted(&["top_agents[].agent_name"]) });
        if let (Some(reply), Ok(Value::Object(fields))) = (reply.as_object_mut(), serde_json::to_value(summary)) {
            reply.extend(fields);
        }
        Ok(self.shown(reply))
    }

    /// What this server can do: names and numbers, never a key.
    ///
    /// # Errors
    /// As `list_rules`.
    pub async fn capabilities(&self, caller: &Caller) -> Result<Value, Error> {
        caller.check("capabilities", Scope::Read)?;
        let rules = self.list_rules(&ListRulesArgs::default(), caller).await?;
        let roster = evaluate::roster(&self.rulebook.snapshot(&caller.tenant), &self.settings);
        let questions: Vec<Value> = Question::ALL
            .iter()
            .map(|question| {
                let answered: Vec<&str> = roster
                    .iter()
                    .filter(|rule| rule.question == question.as_str())
                    .map(|rule| rule.name.as_str())
                    .collect();
                json!({ "id": question.as_str(), "text": question_text(*question), "answeredBy": answered })
            })
            .collect();
        let off = || {
            (
                json!({ "enabled": false, "provider": null, "providers": [], "costCapUsd": null }),
                json!({ "fetchAllowed": false, "domainsRestricted": false }),
            )
        };
        let (mut judge, citations) = self.judging.as_ref().map_or_else(off, |judging| judging.capabilities());
        judge["howToEnable"] = json!(ENABLE_JUDGE);
        let mut reply = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "transport": if self.facts.web.is_some() { "http" } else { "stdio" },
            "questions": questions,
            "rules": rules["built_in"],
            "customRules": {
                "count": rules["total"], "enabled": rules["enabled_count"], "quarantined": rules["quarantined"],
            },
            "judge": judge,
            "citations": citations,
            "dashboard": { "enabled": self.facts.web.is_some(), "url": self.facts.web, "mode": "real" },
            "limits": {
                "customRulesPerCall": 10, "regexBudgetMs": 100, "citationsPerCall": 50,
                "httpRateLimitPerMin": self.facts.mcp_per_minute,
            },
            "retention": {
                "days": self.facts.retention_days, "sweepIntervalHours": self.facts.sweep_interval_hours,
            },
            "tools": self.offered().map(|tool| tool.name).collect::<Vec<_>>(),
            "resources": RESOURCES.iter().map(|one| one.uri).collect::<Vec<_>>(),
            "prompts": [PROMPT_NAME],
        });
        if rules["quarantined"].as_array().is_some_and(|entries| !entries.is_empty()) {
            marks::mark(&mut reply, &marks::of_entry("customRules.quarantined[]"));
        }
        Ok(self.shown(reply))
    }
}

/// A question in words.
const fn question_text(question: Question) -> &'static str {
    match question {
        Question::SafeOutput => "Is the output safe?",
        Question::Grounded => "Does it rest on what was read?",
        Question::Complete => "Is it whole?",
        Question::Relevant => "Does it speak to what was asked?",
        Question::TaskCompleted => "Was the task done?",
        Question::ToolUseCorrect => "Were the tools used correctly?",
        Question::WithinBudget => "Did it stay within the budget?",
    }
}
