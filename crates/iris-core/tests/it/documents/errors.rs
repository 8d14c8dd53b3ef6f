//! `docs/errors.md` is the closed list of error codes, each with every message and its steps.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use iris_core::contract::{Code, CustomRule, Error, Scope};
use iris_core::judge::Kind;
use iris_core::model::TraceId;
use iris_core::rules::custom::Problem;
use serde_json::json;

use super::hold;

const INTRODUCTION: &str = "# Error codes

<!-- Written by `IRIS_BLESS=1 cargo test -p iris-core errors_are_documented` from the constructors of the errors. -->

A call of a tool that fails answers `{\"error\": {...}}` with the same fields at every door: `code` (one of those below, a closed
list), `message`, `recovery` (what to do, in order), `retryable` (whether the same call may succeed later), and where they say something `field` (the argument
at fault), `valid` (what would be right there), `kind` (how a provider failed), `retryAfterMs` and `see` (a resource that tells more). Over MCP the
reply has `isError: true`; over HTTP the status is that of the code, and 403 where a key lacks a scope. Numbers, names and ids below are examples.

These codes are of the tools alone. What the OTLP doors answer is in [troubleshooting.md](troubleshooting.md).
";

fn custom_rule() -> CustomRule {
    let rule = json!({
        "id": "rule-5f2c", "name": "no_prices", "evalType": "safety", "severity": "critical", "enabled": true, "version": 1,
        "definition": {"type": "regex_no_match", "config": {"pattern": "[0-9]+ EUR"}},
        "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z",
    });
    serde_json::from_value(rule).unwrap()
}

/// Every way to fail, with arguments that are made up.
fn all() -> Vec<Error> {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let trace: TraceId = serde_json::from_value(json!("0af7651916cd43dd8448eb211c80319c")).unwrap();
    let problem =
        Problem { field: "config.pattern".to_owned(), why: "missing".to_owned(), valid: names(&["pattern", "flags"]) };
    let provider = [
        (Kind::Auth, "invalid x-api-key"),
        (Kind::RateLimit, "too many requests"),
        (Kind::BadRequest, "model_not_found"),
        (Kind::ServerError, "overloaded"),
        (Kind::Timeout, ""),
        (Kind::MalformedResponse, "the answer was cut off"),
    ];
    let provider = provider.map(|(kind, words)| Error::provider_failed(kind, words, 0.0021, None));
    let mut all = vec![
        Error::unknown_argument(&names(&["limt"]), "", names(&["limit", "offset"])),
        Error::invalid_argument("limit", "a whole number from 1 to 1000"),
        Error::unknown_tool(names(&["get_traces", "list_rules"])),
        Error::crossed_range("min_score", "0.9", "max_score", "0.1"),
        Error::out_of_scope("delete_trace", Scope::Admin),
        Error::unknown_trace(&trace),
        Error::duplicate_rule(&custom_rule()),
        Error::invalid_rule("definition", &problem),
        Error::rules_full("200 rules are deployed, and no more can be"),
        Error::judge_not_enabled("no key for OpenAI reached this process"),
        Error::judge_unknown_model(names(&["claude-sonnet-4-5", "gpt-4o-mini"])),
        Error::budget_exceeded("max_cost_usd", 0.31, 0.25, Some("judge.default_usd_call")),
        Error::judge_failed(Some(Kind::ServerError), 2, "overloaded", 0.004),
        Error::storage_busy("it is being opened", 1000),
        Error::storage_failed("7d1c0e52"),
        Error::journalled("the trace", "7d1c0e52"),
        Error::rules_not_kept("7d1c0e52"),
        Error::rules_unreadable(Code::StorageError),
        Error::rules_unreadable(Code::InternalError),
        Error::internal("7d1c0e52"),
    ];
    all.extend(provider);
    all
}

fn page(all: &[Error]) -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n| code | HTTP | given when |\n|---|---|---|\n");
    for code in Code::ALL {
        let name = code.as_str();
        let _ = writeln!(page, "| [`{name}`](#{}) | {} | {} |", name.to_lowercase(), code.http_status(), code.when());
    }
    for code in Code::ALL {
        let _ = write!(page, "\n## {}\n", code.as_str());
        for error in all.iter().filter(|error| error.code == code) {
            let mut notes = Vec::new();
            notes.extend(error.kind.map(|kind| format!("`kind` {}", kind.as_str())));
            notes.extend((error.http_status() != code.http_status()).then(|| format!("HTTP {}", error.http_status())));
            notes.extend(error.retryable.then(|| "retryable".to_owned()));
            let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
            let _ = writeln!(page, "\n`{}`{notes}", error.message);
            for (at, step) in error.recovery.iter().enumerate() {
                let _ = writeln!(page, "{}. {step}", at + 1);
            }
        }
    }
    page
}

/// Guarantees: the page has every code, and every constructor of an error stands on it.
#[test]
fn errors_are_documented() {
    let all = all();
    let told: BTreeSet<Code> = all.iter().map(|error| error.code).collect();
    assert_eq!(told, Code::ALL.into_iter().collect(), "codes that no example has");
    let source = std::fs::read_to_string(super::root().join("crates/iris-core/src/contract/error.rs")).unwrap();
    let here = include_str!("errors.rs");
    for line in source.lines().filter_map(|line| line.trim().strip_prefix("pub fn ")) {
        let name = line.split('(').next().unwrap();
        assert!(name == "envelope" || here.contains(&format!("Error::{name}(")), "no example of Error::{name}");
    }
    hold("errors.md", &page(&all), "errors_are_documented");
}
