//! `list_rules`: needs the rule file only, so it answers before the store is open.

use iris_core::contract::{CustomRule, Error, ListRulesArgs, ListRulesReply};
use iris_core::evaluate;
use serde_json::{Value, json};

use super::bounds::{Cuts, Measure};
use super::{App, Caller, marks, to_value};

/// How many cut places a reply names.
const NAMED_MAX: usize = 50;

impl App {
    pub(super) async fn list_rules(&self, args: &ListRulesArgs, caller: &Caller) -> Result<Value, Error> {
        let (rulebook, tenant) = (self.rulebook.clone(), caller.tenant.clone());
        let listing = tokio::task::spawn_blocking(move || rulebook.list(&tenant)).await;
        let listing = listing.map_err(|error| self.unforeseen(&error))?.map_err(|error| self.not_listed(error))?;
        let is_wanted = |rule: &CustomRule| {
            args.eval_type.is_none_or(|bundle| bundle == rule.eval_type)
                && (rule.enabled || !args.enabled_only.unwrap_or(false))
        };
        let mut rules: Vec<CustomRule> = listing.rules.into_iter().filter(is_wanted).collect();
        // What a later version wrote beside stays in the file: nobody here knows what it is.
        rules.iter_mut().for_each(|rule| rule.rest.clear());
        let mut marked = if rules.is_empty() { Vec::new() } else { marks::of_rule("rules[]") };
        if !listing.quarantined.is_empty() {
            marked.extend(marks::of_entry("quarantined[]"));
        }
        let reply = ListRulesReply {
            untrusted: (!marked.is_empty()).then(|| marks::untrusted(&marked)),
            total: rules.len(),
            enabled_count: rules.iter().filter(|rule| rule.enabled).count(),
            rules,
            built_in: evaluate::roster(&self.rulebook.snapshot(&caller.tenant), &self.settings),
            quarantined: listing.quarantined,
            truncated: Vec::new(),
        };
        let mut reply = to_value(self, &reply)?;
        if caller.is_model() {
            bound(&mut reply, caller.reply_bytes(usize::MAX));
        }
        Ok(reply)
    }
}

/// Cuts what operators wrote so that the reply has at most so many bytes of text; the built-in roster stays whole.
fn bound(reply: &mut Value, bytes_max: usize) {
    let mut left = bytes_max.saturating_sub(Measure::whole(&reply["built_in"]));
    let mut cuts = Cuts::naming(NAMED_MAX);
    for field in ["rules", "quarantined"] {
        let Some(Value::Array(rows)) = reply.get_mut(field) else { continue };
        let measure = Measure::fitting(&rows.iter().collect::<Vec<_>>(), left, None);
        let found = rows.len();
        let fitting = rows.iter().take_while(|row| {
            let size = measure.size(row);
            let fits = size <= left;
            left = left.saturating_sub(size);
            fits
        });
        rows.truncate(fitting.count());
        if rows.len() < found {
            cuts.push(format!("{field}[{}..{found}]: left out for their size", rows.len()));
        }
        for (index, row) in rows.iter_mut().enumerate() {
            measure.cut(row, &format!("{field}[{index}]"), &mut cuts);
        }
    }
    let names = cuts.into_names();
    if !names.is_empty() {
        reply["truncated"] = json!(names);
    }
}
