//! What the HTTP API takes about rules beside the tools: a preview, the log, a switch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Error;
use super::custom_rule::check_weight;
use super::strict::Arguments;
use crate::model::Timestamp;
use crate::rules::Bundle;
use crate::rules::custom::Definition;

/// Characters of an output that a preview is tried on.
const SAMPLE_CHARS_MAX: usize = 100_000;
/// Characters that the log is searched for.
const SEARCH_CHARS_MAX: usize = 200;
/// The actions that the log knows.
const ACTIONS: [&str; 3] = ["rule.deploy", "rule.delete", "rule.toggle"];

/// Body of `POST /api/v1/rules/custom/preview`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewArgs {
    /// What to check.
    pub definition: Definition,
    /// The bundle it would fire with; custom when left out.
    #[serde(default)]
    pub eval_type: Option<Bundle>,
    /// Another spelling of eval_type; give one of them.
    #[serde(default, rename = "evalType")]
    pub eval_type_alias: Option<Bundle>,
    /// How many days back, 1 to 30; 7 when left out.
    #[serde(default, rename = "windowDays")]
    #[schemars(range(min = 1, max = 30))]
    pub window_days: Option<u32>,
    /// At most so many traces, 1 to 5000, the newest first; 1000 when left out.
    #[serde(default, rename = "maxTraces")]
    #[schemars(range(min = 1, max = 5000))]
    pub max_traces: Option<u32>,
    /// An output to try it on, at most 100000 characters.
    #[serde(default, rename = "sampleOutput")]
    pub sample_output: Option<String>,
}

impl PreviewArgs {
    /// The bundle, whichever way it was spelt.
    pub fn bundle(&self) -> Option<Bundle> {
        self.eval_type.or(self.eval_type_alias)
    }

    /// How many days back.
    pub fn window_days(&self) -> u32 {
        self.window_days.unwrap_or(7)
    }

    /// At most so many traces.
    pub fn max_traces(&self) -> u32 {
        self.max_traces.unwrap_or(1000)
    }
}

impl Arguments for PreviewArgs {
    fn check(&self) -> Result<(), Error> {
        check_weight("definition.weight", self.definition.weight)?;
        if self.eval_type.is_some() && self.eval_type_alias.is_some() {
            return Err(Error::invalid_argument("evalType", "give eval_type or evalType, not both"));
        }
        if !(1..=30).contains(&self.window_days()) {
            return Err(Error::invalid_argument("windowDays", "a whole number from 1 to 30"));
        }
        if !(1..=5000).contains(&self.max_traces()) {
            return Err(Error::invalid_argument("maxTraces", "a whole number from 1 to 5000"));
        }
        match self.sample_output.as_ref().map(|output| output.chars().count()) {
            Some(chars) if chars > SAMPLE_CHARS_MAX => Err(Error::invalid_argument(
                "sampleOutput",
                format!("has {chars} characters; at most {SAMPLE_CHARS_MAX}"),
            )),
            _ => Ok(()),
        }
    }
}

/// Query of `GET /api/v1/audit`.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditArgs {
    /// Only rule.deploy, rule.delete or rule.toggle.
    #[serde(default)]
    pub action: Option<String>,
    /// At or after: ISO 8601 timestamp with an offset or Z.
    #[serde(default)]
    pub since: Option<String>,
    /// Part of the rule's name or id, at most 200 characters.
    #[serde(default)]
    pub search: Option<String>,
    /// Lines a page, 1 to 1000; 100 when left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<usize>,
    /// Lines to pass over.
    #[serde(default)]
    pub offset: Option<usize>,
}

impl AuditArgs {
    /// Since when.
    ///
    /// # Errors
    /// `IRIS_INVALID_ARGUMENT` when it is no time.
    pub fn since_utc(&self) -> Result<Option<Timestamp>, Error> {
        let wrong = || Error::invalid_argument("since", "an ISO 8601 timestamp with an offset or Z");
        self.since.as_deref().map(|text| Timestamp::parse(text).ok_or_else(wrong)).transpose()
    }
}

impl Arguments for AuditArgs {
    fn check(&self) -> Result<(), Error> {
        if self.action.as_deref().is_some_and(|action| !ACTIONS.contains(&action)) {
            return Err(Error::invalid_argument("action", format!("one of {}", ACTIONS.join(", "))));
        }
        self.since_utc()?;
        if self.search.as_ref().is_some_and(|search| search.chars().nth(SEARCH_CHARS_MAX).is_some()) {
            return Err(Error::invalid_argument("search", format!("at most {SEARCH_CHARS_MAX} characters")));
        }
        if !(1..=1000).contains(&self.limit.unwrap_or(100)) {
            return Err(Error::invalid_argument("limit", "a whole number from 1 to 1000"));
        }
        Ok(())
    }
}

/// Body of `PATCH /api/v1/rules/custom/{id}`.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchArgs {
    /// Whether it fires.
    pub enabled: bool,
}

impl Arguments for SwitchArgs {}
