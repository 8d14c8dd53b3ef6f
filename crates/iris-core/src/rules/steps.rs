//! The trajectory: which steps failed, and which of those were made good later.
//!
//! A failure is one that the step states: an error, an error-shaped result, an exit code. An empty result of a search
//! is not a failure.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::Case;
use crate::model::ToolCall;
use crate::text::is_blank;

/// How many steps are looked at.
pub const STEPS_MAX: usize = 500;

/// How much of a tool's result is read for the shape of an error, from either end.
const RESULT_BYTES_MAX: usize = 2048;
/// How large a text may be to be read as JSON.
const JSON_BYTES_MAX: usize = 1 << 18;

/// Compiled once; the pattern is a constant that a test compiles.
fn pattern(source: &'static str) -> Regex {
    #[expect(clippy::expect_used, reason = "every pattern is a constant, and a test compiles each")]
    Regex::new(source).expect("a constant pattern compiles")
}

static ERROR_HEAD: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)^[^A-Za-z0-9]{0,4}(?:[a-z_.]{0,60}(?:error|exception)(?-u:\b)\s?[:\-!(]|(?:error|fatal)\s(?:executing|calling|running|invoking|while|occurred)|fatal(?: error)?:|traceback \(most recent call last\)|panic:|uncaught |unhandled |segmentation fault|failed to |tool (?:execution|call) failed|http/[0-9](?:\.[0-9])? [45][0-9]{2}(?-u:\b)|(?:http(?: error)?|status(?: code)?)[ :=]{1,3}[45][0-9]{2}(?-u:\b)|[45][0-9]{2} (?:bad request|unauthorized|forbidden|not found|internal server error|bad gateway|service unavailable|gateway time-?out|too many requests))",
    )
});
static ERROR_INSIDE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)no such file or directory|command not found|permission denied|operation not permitted|cannot access|is not recognized as an internal or external command|connection (?:refused|timed out|reset by peer)|no such table|error executing tool|(?-u:\b)E(?:CONNREFUSED|TIMEDOUT|NOTFOUND|ACCES|NOENT)(?-u:\b)|rate limit exceeded|(?:exit(?:ed)?(?: with)?|exit code|exit status|returned) (?:code |status |exit code |exit status )?[1-9][0-9]{0,2}\s*$",
    )
});
static TEST_SUMMARY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?m)^(?:=*\s?FAILED(?-u:\b)|FAIL(?-u:\b)|--- FAIL|BUILD FAILED|FAILURE:|npm ERR!|npm error|make: \*\*\*|error\[E[0-9]+\]).{0,200}$|(?i:(?-u:\b)[1-9][0-9]{0,5} (?:tests? )?(?:failed|failures?|errors?)(?-u:\b))",
    )
});
static RUNS_COMMANDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?:^|[^a-z])(?:bash|shell|sh|zsh|powershell|cmd|terminal|exec|execute|command|run|tests?|build|lint|make|npm|pytest|cargo)(?:$|[^a-z])",
    )
});

/// Why a step failed: `error` when it says so itself, `result` when its result is an error, `command` when what it ran
/// reports a failure; nothing when it did not fail.
pub fn failure(step: &ToolCall) -> Option<&'static str> {
    if step.error.as_deref().is_some_and(|error| !is_blank(error)) {
        return Some("error");
    }
    let output = step.output.as_ref()?;
    let parsed;
    let output = match output {
        Value::String(text) if text.len() <= JSON_BYTES_MAX && text.trim_start().starts_with(['{', '[']) => {
            parsed = serde_json::from_str(text).unwrap_or_else(|_| output.clone());
            &parsed
        }
        other => other,
    };
    match output {
        Value::Object(fields) => is_error_object(bare(fields)).then_some("result"),
        Value::String(text) => error_text(step, text),
        Value::Array(items) => items.iter().take(8).find_map(|item| match item {
            // MCP content blocks.
            Value::Object(fields) => fields.get("text").and_then(Value::as_str).and_then(|text| error_text(step, text)),
            Value::String(text) => error_text(step, text),
            _ => None,
        }),
        _ => None,
    }
}

fn error_text(step: &ToolCall, text: &str) -> Option<&'static str> {
    let head = crate::text::head(text, RESULT_BYTES_MAX);
    let first = head.lines().find(|line| !is_blank(line)).unwrap_or("");
    let first_400 = crate::text::head(head, 400);
    if ERROR_HEAD.is_match(first) || ERROR_INSIDE.is_match(first_400) && !is_long(text) {
        return Some("result");
    }
    let ran = RUNS_COMMANDS.is_match(&step.tool_name)
        || step.input.as_ref().is_some_and(|input| {
            ["command", "cmd", "script"].iter().any(|key| input.get(key).is_some_and(Value::is_string))
        });
    (ran && (TEST_SUMMARY.is_match(head) || TEST_SUMMARY.is_match(crate::text::tail(text, RESULT_BYTES_MAX))))
        .then_some("command")
}

/// A page that was read may mention an error anywhere; a message is short.
fn is_long(text: &str) -> bool {
    text.len() > RESULT_BYTES_MAX
}

/// An object without the wrapper around it: `{"result": {...}}`.
fn bare(fields: &serde_json::Map<String, Value>) -> &serde_json::Map<String, Value> {
    let held = ["result", "response", "output"].iter().find_map(|key| fields.get(*key)?.as_object());
    held.filter(|_| fields.len() == 1).unwrap_or(fields)
}

/// What answers of GraphQL are: errors in place of data. Source: <https://spec.graphql.org/October2021/#sec-Errors>.
fn is_refused_query(fields: &serde_json::Map<String, Value>) -> bool {
    let told = fields.get("errors").and_then(Value::as_array).is_some_and(|errors| !errors.is_empty());
    told && fields.get("data").is_some_and(Value::is_null)
}

fn is_error_object(fields: &serde_json::Map<String, Value>) -> bool {
    let stated = |key: &str| match fields.get(key) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !is_blank(text) && !matches!(text.as_str(), "none" | "None" | "null"),
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(inner)) => !inner.is_empty(),
        Some(Value::Bool(true)) => true,
    };
    let is = |key: &str, value: bool| match fields.get(key) {
        Some(Value::Bool(said)) => *said == value,
        Some(Value::String(said)) => said.eq_ignore_ascii_case(if value { "true" } else { "false" }),
        _ => false,
    };
    let status = fields.get("status").is_some_and(|status| match status {
        Value::String(text) => {
            matches!(text.to_ascii_lowercase().as_str(), "error" | "failed" | "failure" | "timeout" | "timed_out")
        }
        Value::Number(number) => number.as_f64().is_some_and(|code| (400.0..600.0).contains(&code)),
        _ => false,
    });
    let http = ["status_code", "statusCode"]
        .iter()
        .any(|key| fields.get(*key).and_then(Value::as_f64).is_some_and(|code| (400.0..600.0).contains(&code)));
    let code = ["exit_code", "exitCode", "returncode", "return_code"]
        .iter()
        .any(|key| fields.get(*key).and_then(Value::as_f64).is_some_and(|code| code != 0.0));
    is_refused_query(fields)
        || stated("error")
        || stated("exception")
        || is("ok", false)
        || is("success", false)
        || is("isError", true)
        || is("is_error", true)
        || status
        || http
        || code
}

/// Whether the failure at `at` was made good: a later step of the same tool on the same target went right.
pub fn is_recovered(case: &Case<'_>, at: usize) -> bool {
    let steps = case.steps();
    let Some(failed) = steps.get(at) else { return false };
    let target = target(failed);
    steps.iter().enumerate().skip(at + 1).any(|(later_at, later)| {
        later.tool_name == failed.tool_name
            && case.failure(later_at).is_none()
            && (target.is_none() || self::target(later) == target || same_subject(failed, later))
    })
}

/// What a call is about: the first argument whose name says so.
pub fn target(step: &ToolCall) -> Option<String> {
    const NAMES: [&str; 16] = [
        "path",
        "file",
        "file_path",
        "filename",
        "url",
        "uri",
        "query",
        "command",
        "cmd",
        "pattern",
        "name",
        "id",
        "city",
        "location",
        "symbol",
        "host",
    ];
    let input = match step.input.as_ref()? {
        Value::String(text) => return Some(clip(text)),
        Value::Object(fields) => fields,
        _ => return None,
    };
    let named = NAMES.iter().find_map(|name| input.get(*name));
    let by_suffix =
        || input.iter().find(|(key, _)| key.ends_with("_id") || key.ends_with("Id")).map(|(_, value)| value);
    match named.or_else(by_suffix)? {
        Value::String(text) => Some(clip(text)),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn clip(text: &str) -> String {
    crate::text::head(text.trim(), 300).to_lowercase()
}

/// Whether the later call is the failed one corrected: every scalar argument comes back in it, or one that identifies.
fn same_subject(failed: &ToolCall, later: &ToolCall) -> bool {
    let (Some(Value::Object(failed)), Some(Value::Object(later))) = (&failed.input, &later.input) else { return false };
    let identifies = |key: &str| ["id", "Id", "number", "code", "key"].iter().any(|end| key.ends_with(end));
    let shared = failed.iter().any(|(key, value)| identifies(key) && later.get(key) == Some(value));
    let mut values = failed.values().filter(|value| value.is_string() || value.is_number()).peekable();
    shared || values.peek().is_some() && values.all(|value| later.values().any(|other| other == value))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::failure;
    use crate::model::ToolCall;

    fn why(output: Value) -> Option<&'static str> {
        failure(&ToolCall { tool_name: "look".to_owned(), output: Some(output), ..ToolCall::default() })
    }

    #[test]
    fn tells_a_failure_whether_it_comes_as_a_value_or_as_its_text() {
        for failed in [
            json!({"result": {"error": "boom"}}),
            json!({"errors": [{"message": "boom"}], "data": null}),
            json!([{"type": "text", "text": "Error: boom"}]),
            json!({"status": "TIMEOUT"}),
            json!({"success": "false"}),
        ] {
            assert_eq!(why(failed.clone()), Some("result"), "{failed}");
            assert_eq!(why(Value::String(failed.to_string())), Some("result"), "{failed} as text");
        }
        assert_eq!(why(json!("HTTP/1.1 503 Service Unavailable\nRetry-After: 3")), Some("result"));
        for fine in [
            json!({"result": {"error": null, "city": "Porto Vell"}}),
            json!({"errors": [], "data": null}),
            json!({"errors": [{"line": 3}], "data": {"checked": 12}}),
            json!({"result": {"error": "boom"}, "page": 2}),
            json!([{"type": "text", "text": "18 C"}]),
            json!([]),
            json!({"status": "ok", "timeout": 30}),
            json!({"success": "true"}),
            json!("HTTP/1.1 200 OK"),
        ] {
            assert_eq!(why(fine.clone()), None, "{fine}");
            assert_eq!(why(Value::String(fine.to_string())), None, "{fine} as text");
        }
    }
}
