//! What the HTTP API is asked beside the tools: query parameters, as strict as a tool's arguments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::strict::within;
use super::{Arguments, Error};
use crate::model::EvalType;

/// The longest window of a summary, in hours: a year.
const HOURS_MAX: i64 = 8760;

/// The largest page.
const PAGE_MAX: i64 = 1000;

/// Nothing at all.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoArgs {}

impl Arguments for NoArgs {}

/// Which evaluations to list.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvaluationsArgs {
    /// Only of this bundle: completeness, relevance, safety, cost, custom or all.
    #[serde(default)]
    pub eval_type: Option<EvalType>,
    /// Only those that passed, or only those that did not.
    #[serde(default)]
    pub passed: Option<bool>,
    /// Made at or after: ISO 8601 timestamp, or a date (00:00 UTC of that day).
    #[serde(default)]
    pub since: Option<String>,
    /// Made at or before: ISO 8601 timestamp, or a date (the end of that day, UTC).
    #[serde(default)]
    pub until: Option<String>,
    /// Evaluations a page, 1 to 1000; 50 when left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<i64>,
    /// Evaluations to pass over, from 0.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub offset: Option<i64>,
}

impl Arguments for EvaluationsArgs {
    fn check(&self) -> Result<(), Error> {
        within("limit", self.limit, 1, PAGE_MAX)?;
        within("offset", self.offset, 0, i64::MAX)
    }
}

/// Which window to sum up.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SummaryArgs {
    /// The last so many hours, 1 to 8760; 24 when left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 8760))]
    pub hours: Option<i64>,
}

impl Arguments for SummaryArgs {
    fn check(&self) -> Result<(), Error> {
        within("hours", self.hours, 1, HOURS_MAX)
    }
}
