//! `json_schema`: the output is JSON and, when a schema is given, fits it.

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::keys::field;
use super::{Check, Problem, RuleType, Type, beyond, defeated, output, problem};
use crate::rules::schema::{Misfit, check_within, misfit};
use crate::rules::{Case, FailureClass, Finding, Mechanism, Need, Outcome};

/// Bytes of a schema, written out.
const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// Steps of one check: nodes of the schema times places in the value.
const STEPS_MAX: usize = 200_000;

pub(super) const TYPE: Type = Type {
    rule_type: RuleType::JsonSchema,
    needs: &[Need::Output],
    mechanism: Mechanism::Formula,
    question: None,
    classes: &[FailureClass::Format],
    stands: false,
    suggestion: "Answer in the JSON that is asked for, and in nothing else.",
    compile: |config| Ok(Box::new(Json { schema: schema(config)? })),
};

struct Json {
    schema: Option<Value>,
}

impl Check for Json {
    fn judge(&self, case: &Case<'_>) -> Outcome {
        let (text, end) = output(case);
        if end < text.len() {
            return beyond(text);
        }
        let text = text.trim_start_matches('\u{feff}');
        let unread = |error: &serde_json::Error| {
            let place = format!("line {} column {}", error.line(), error.column());
            Outcome::Fail(Finding::new(0.0, format!("the output is not JSON: it breaks off or goes wrong at {place}")))
        };
        let Some(schema) = &self.schema else {
            return match serde_json::from_str::<IgnoredAny>(text) {
                Ok(_) => Outcome::Pass(Finding::new(1.0, "the output is JSON")),
                Err(error) => unread(&error),
            };
        };
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => return unread(&error),
        };
        match check_within(schema, &value, STEPS_MAX) {
            Ok(None) => Outcome::Pass(Finding::new(1.0, "the output is JSON and fits the schema")),
            Ok(Some(fault)) => {
                let place =
                    if fault.pointer.is_empty() { "as a whole".to_owned() } else { format!("at {}", fault.pointer) };
                Outcome::Fail(Finding::new(
                    0.0,
                    format!("the output does not fit the schema {place}: {}", fault.keyword),
                ))
            }
            Err(_) => defeated("checking this output against the schema took more work than a rule may"),
        }
    }

    fn bytes(&self) -> usize {
        self.schema.as_ref().map_or(0, |schema| schema.to_string().len() * 4)
    }
}

fn schema(config: &Map<String, Value>) -> Result<Option<Value>, Problem> {
    let Some(schema) = config.get("schema").filter(|schema| !schema.is_null()) else { return Ok(None) };
    let at = field("schema");
    if !(schema.is_object() || schema.is_boolean()) {
        return Err(problem(&at, "must be a JSON Schema: an object, true or false"));
    }
    let bytes = schema.to_string().len();
    if bytes > SCHEMA_BYTES_MAX {
        return Err(problem(&at, format!("has {bytes} bytes; at most {SCHEMA_BYTES_MAX}")));
    }
    match misfit(schema) {
        None => Ok(Some(schema.clone())),
        Some(Misfit { keyword, why }) if keyword.is_empty() => Err(problem(&at, why)),
        Some(Misfit { keyword, why }) => Err(problem(&at, format!("{keyword} {why}"))),
    }
}
