//! Who changed which rule, from the log beside the rule file.

use iris_core::contract::{AuditArgs, Error};
use serde_json::{Value, json};

use super::{App, Caller};
use crate::rulebook::{Action, Wanted};

/// Lines of a page unless more are wanted.
const LINES: usize = 100;

impl App {
    /// The lines of the log about the caller's rules, newest first.
    ///
    /// # Errors
    /// `IRIS_STORAGE_ERROR` when the log cannot be read.
    pub async fn audit(&self, args: AuditArgs, caller: &Caller) -> Result<Value, Error> {
        let action = args.action.as_deref();
        let (limit, offset) = (args.limit.unwrap_or(LINES), args.offset.unwrap_or(0));
        let wanted = Wanted {
            action: Action::ALL.into_iter().find(|one| Some(one.as_str()) == action),
            since: args.since_utc()?.map(|since| since.to_string()),
            search: args.search,
            limit,
            offset,
        };
        let (rulebook, tenant) = (self.rulebook.clone(), caller.tenant.clone());
        let read = tokio::task::spawn_blocking(move || rulebook.audit(&tenant, &wanted)).await;
        let (entries, total) = read.map_err(|error| self.unforeseen(&error))?.map_err(|error| {
            let reference = self.reference();
            tracing::error!(%reference, %error, "the audit log cannot be read");
            Error::storage_failed(&reference)
        })?;
        let mut reply = json!({ "entries": entries, "total": total, "limit": limit, "offset": offset });
        if !entries.is_empty() {
            let fields = ["entries[].ruleName", "entries[].details.sourceMomentId"];
            super::marks::mark(&mut reply, &fields.map(str::to_owned));
        }
        Ok(self.shown(reply))
    }
}
