//! What `POST /api/v1/purge` takes.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Error;
use super::strict::Arguments;
use crate::model::Timestamp;

/// Which traces of the caller's tenant to delete, with all that judged them; all of them when nothing is given.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PurgeArgs {
    /// Only those of this agent.
    #[serde(default)]
    pub agent_name: Option<String>,
    /// Only those that came before: an ISO 8601 timestamp with an offset or Z.
    #[serde(default)]
    pub before: Option<String>,
    /// Only those that came so many days ago or earlier, 1 to 36500.
    #[serde(default)]
    #[schemars(range(min = 1, max = 36500))]
    pub older_than_days: Option<u32>,
}

impl PurgeArgs {
    /// The time before which what is deleted came.
    ///
    /// # Errors
    /// `IRIS_INVALID_ARGUMENT` when `before` is no time.
    pub fn before(&self, now: Timestamp) -> Result<Timestamp, Error> {
        const DAY: u64 = 24 * 60 * 60;
        if let Some(text) = &self.before {
            let wrong = || Error::invalid_argument("before", "an ISO 8601 timestamp with an offset or Z");
            return Timestamp::parse(text).ok_or_else(wrong);
        }
        let age = Duration::from_secs(DAY * u64::from(self.older_than_days.unwrap_or(0)));
        let nanos = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
        Ok(Timestamp::from_unix_nanos(now.as_unix_nanos().saturating_sub(nanos)))
    }
}

impl Arguments for PurgeArgs {
    fn check(&self) -> Result<(), Error> {
        self.before(Timestamp::default())?;
        if self.before.is_some() && self.older_than_days.is_some() {
            return Err(Error::invalid_argument("older_than_days", "give this or before, not both"));
        }
        if self.older_than_days.is_some_and(|days| !(1..=36_500).contains(&days)) {
            return Err(Error::invalid_argument("older_than_days", "a whole number from 1 to 36500"));
        }
        if self.agent_name.as_ref().is_some_and(String::is_empty) {
            return Err(Error::invalid_argument("agent_name", "a name, or leave it out"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::parse;
    use super::*;

    #[test]
    fn an_age_is_a_time_and_only_one_is_given() {
        let now = Timestamp::parse("2026-12-01T00:00:00Z").unwrap();
        let read = |value| parse::<PurgeArgs>(value);
        assert_eq!(read(json!({})).unwrap().before(now).unwrap(), now);
        let days = read(json!({"older_than_days": 1})).unwrap();
        assert_eq!(days.before(now).unwrap().to_string(), "2026-11-30T00:00:00.000Z");
        let time = read(json!({"before": "2026-01-01T01:00:00+01:00"})).unwrap();
        assert_eq!(time.before(now).unwrap().to_string(), "2026-01-01T00:00:00.000Z");
        for (wrong, field) in [
            (json!({"before": "soon"}), "before"),
            (json!({"older_than_days": 0}), "older_than_days"),
            (json!({"older_than_days": 1, "before": "2026-01-01T00:00:00Z"}), "older_than_days"),
            (json!({"agent_name": ""}), "agent_name"),
        ] {
            assert_eq!(read(wrong).unwrap_err().field.as_deref(), Some(field));
        }
    }
}
