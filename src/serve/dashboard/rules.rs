//! The rules in force, how often each is right, and rules of one's own: tried, deployed, paused, removed.

use askama::Template;
use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use iris_core::contract::{Arguments, AuditArgs, CustomRule, DeleteRuleArgs, Error, parse};
use iris_core::evaluate::RosterEntry;
use serde_json::{Map, Value, json};

use super::form::{self, Fields};
use super::format::{self, count, count_of};
use super::markup::Markup;
use super::text::Words;
use super::{Frame, Room, Shared, Visitor, html, may_change};
use crate::tools::Caller;

const PATH: &str = "/rules";

/// The way by which changes come here, as the log of changes names it.
const USER: &str = "dashboard";

/// Lines of the log of changes.
const LOG_LINES: usize = 20;

/// Days of traces that a rule is tried on, and how many at most.
const TRIED_DAYS: u32 = 7;
const TRIED_MAX: u32 = 1000;

/// What was done, as an address says it.
const DONE: [(&str, &str); 5] = [
    ("deployed", "The rule is deployed: it fires on every later evaluation of its bundle."),
    ("paused", "The rule is paused: it fires no more until it is let go on."),
    ("resumed", "The rule fires again."),
    ("deleted", "The rule is removed."),
    ("gone", "No rule has that id any more; nothing was changed."),
];

struct BuiltIn {
    name: Words,
    description: Words,
    category: Words,
    needs: Words,
    kind: Words,
    is_critical: bool,
    is_configured: bool,
    precision: Option<String>,
    recall: Option<String>,
    source: &'static str,
}

struct Own {
    id: String,
    name: Words,
    description: Words,
    kind: String,
    config: Words,
    bundle: String,
    severity: String,
    is_enabled: bool,
    updated: Markup,
    source: Option<String>,
}

struct Choosable {
    value: &'static str,
    name: &'static str,
    is_chosen: bool,
}

/// What was entered, so that it is not lost.
struct Entered {
    types: Vec<Choosable>,
    bundles: Vec<Choosable>,
    severities: Vec<Choosable>,
    name: Words,
    description: Words,
    pattern: String,
    flags: String,
    length: String,
    keywords: String,
    threshold: String,
    schema: String,
    cost: String,
    allow: String,
    deny: String,
    source: Words,
    replaces: bool,
}

/// What a rule would have said.
struct Tried {
    evaluated: String,
    pass: String,
    fail: String,
    skip: String,
    is_complete: bool,
    examples: Vec<(String, Words, Words, Markup)>,
}

struct Change {
    when: Markup,
    action: String,
    user: String,
    rule: Words,
}

#[derive(Template)]
#[template(path = "rules.html")]
struct Page {
    frame: Frame,
    may_change: bool,
    done: Option<&'static str>,
    problem: Option<Words>,
    tried: Option<Tried>,
    built_in: Vec<BuiltIn>,
    own: Vec<Own>,
    enabled: usize,
    quarantined: Vec<(Words, Words)>,
    log: Vec<Change>,
    entered: Entered,
}

/// The page.
pub(super) async fn show(
    State(room): Shared,
    Extension(visitor): Extension<Visitor>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Response {
    let fields = Fields::of(query.as_deref());
    let done = DONE.iter().find(|(name, _)| fields.get("done") == Some(name)).map(|(_, told)| *told);
    match room.rules(&visitor, &caller, &fields).await {
        Ok(page) => html(&Page { done, ..page }),
        Err(error) => room.refused(&error, &visitor, &caller),
    }
}

impl Room {
    async fn rules(&self, visitor: &Visitor, caller: &Caller, entered: &Fields) -> Result<Page, Error> {
        let mut listed = self.app.call("list_rules", json!({}), caller).await?;
        let log = self.app.audit(AuditArgs { limit: Some(LOG_LINES), ..AuditArgs::default() }, caller).await?;
        let now = self.now();
        let mut taken = |name: &str| listed.get_mut(name).map(Value::take).unwrap_or_default();
        let built_in: Vec<RosterEntry> = serde_json::from_value(taken("built_in")).unwrap_or_default();
        let own: Vec<CustomRule> = serde_json::from_value(taken("rules")).unwrap_or_default();
        let quarantined = taken("quarantined");
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let entries = log.get("entries").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let change = |entry: &Value| Change {
            when: format::when_text(now, &text(entry, "ts")),
            action: text(entry, "action").replace("rule.", ""),
            user: text(entry, "user"),
            rule: Words::brief(&text(entry, "ruleName"), 80),
        };
        let left_out = |entry: &Value| {
            let name = [text(entry, "name"), text(entry, "id"), "an entry".to_owned()];
            let name = name.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
            (Words::brief(&name, 80), Words::brief(&text(entry, "reason"), 300))
        };
        Ok(Page {
            frame: self.frame("Rules", PATH, visitor, Some(caller)),
            may_change: may_change(caller) && !self.app.facts.read_only,
            done: None,
            problem: None,
            tried: None,
            built_in: built_in.iter().map(shown).collect(),
            enabled: own.iter().filter(|rule| rule.enabled).count(),
            own: own.iter().map(|rule| own_rule(rule, now)).collect(),
            quarantined: quarantined.as_array().into_iter().flatten().map(left_out).collect(),
            log: entries.iter().map(change).collect(),
            entered: as_entered(entered),
        })
    }

    /// The page again, with what is wrong or what was found.
    async fn again(
        &self,
        visitor: &Visitor,
        caller: &Caller,
        fields: &Fields,
        outcome: Result<Value, Error>,
    ) -> Response {
        let page = match self.rules(visitor, caller, fields).await {
            Ok(page) => page,
            Err(error) => return self.refused(&error, visitor, caller),
        };
        match outcome {
            Ok(found) => html(&Page { tried: Some(tried(&found, self.now())), ..page }),
            Err(error) => {
                let status = StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::BAD_REQUEST);
                let field = error.field.as_deref().filter(|field| !field.is_empty());
                let problem =
                    field.map_or_else(|| error.message.clone(), |field| format!("{field}: {}", error.message));
                (status, html(&Page { problem: Some(Words::of(&problem)), ..page })).into_response()
            }
        }
    }
}

fn shown(rule: &RosterEntry) -> BuiltIn {
    let proof = |name: &str| rule.proof.as_ref().and_then(|proof| proof.get(name));
    let figure = |name: &str| {
        let value = proof(name)?;
        let value = value.as_f64().or_else(|| value.get("value")?.as_f64())?;
        Some(format!("{value:.2}"))
    };
    BuiltIn {
        name: Words::of(&rule.name),
        description: Words::of(&rule.description),
        category: Words::of(&rule.category),
        needs: Words::of(&rule.needs.join(", ").replace('_', " ")),
        kind: Words::of(&rule.kind),
        is_critical: rule.critical,
        is_configured: rule.critical_source != "default",
        precision: figure("precision"),
        recall: figure("recall"),
        source: match proof("source").and_then(Value::as_str) {
            Some("independent") => "labelled by others",
            Some(_) => "own cases",
            None if matches!(rule.kind.as_str(), "measurement" | "policy") => "follows its definition",
            None => "not measured",
        },
    }
}

fn own_rule(rule: &CustomRule, now: iris_core::model::Timestamp) -> Own {
    let is_trace = |id: &&String| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    Own {
        id: rule.id.clone(),
        name: Words::of(&rule.name),
        description: Words::brief(&rule.description, 500),
        kind: rule.definition.rule_type.as_str().replace('_', " "),
        config: Words::brief(&serde_json::to_string(&rule.definition.config).unwrap_or_default(), 300),
        bundle: rule.eval_type.as_str().to_owned(),
        severity: rule.severity.as_str().to_owned(),
        is_enabled: rule.enabled,
        updated: format::when_text(now, &rule.updated_at),
        source: rule.source_moment_id.as_ref().filter(is_trace).map(|id| format!("/traces/{id}")),
    }
}

const TYPES: [(&str, &str); 9] = [
    ("regex_no_match", "matches a pattern nowhere"),
    ("regex_match", "matches a pattern"),
    ("excludes_keywords", "contains none of some words"),
    ("contains_keywords", "contains some words"),
    ("min_length", "has at least so many characters"),
    ("max_length", "has at most so many characters"),
    ("json_schema", "is JSON, and fits a schema"),
    ("cost_threshold", "cost at most so much"),
    ("action_policy", "called only tools that are allowed"),
];

const BUNDLES: [(&str, &str); 5] = [
    ("custom", "custom"),
    ("completeness", "completeness"),
    ("relevance", "relevance"),
    ("safety", "safety"),
    ("cost", "cost"),
];

const SEVERITIES: [(&str, &str); 4] = [
    ("medium", "medium: lowers the score"),
    ("low", "low: lowers the score"),
    ("high", "high: vetoes"),
    ("critical", "critical: vetoes"),
];

fn as_entered(fields: &Fields) -> Entered {
    let choose = |all: &[(&'static str, &'static str)], name: &str| {
        let choosable = |(value, shown): &(&'static str, &'static str)| Choosable {
            value,
            name: shown,
            is_chosen: fields.get(name) == Some(value),
        };
        all.iter().map(choosable).collect()
    };
    let text = |name: &str| fields.text(name).to_owned();
    Entered {
        types: choose(&TYPES, "type"),
        bundles: choose(&BUNDLES, "eval_type"),
        severities: choose(&SEVERITIES, "severity"),
        name: Words::of(fields.text("name")),
        description: Words::of(fields.text("description")),
        pattern: text("pattern"),
        flags: text("flags"),
        length: text("length"),
        keywords: text("keywords"),
        threshold: text("threshold"),
        schema: text("schema"),
        cost: text("max_cost"),
        allow: text("allow"),
        deny: text("deny"),
        source: Words::of(fields.text("source")),
        replaces: fields.get("replace").is_some(),
    }
}

/// The definition that was entered. What cannot be read is left as it is: the rule says what is wrong with it.
fn definition(fields: &Fields) -> Value {
    let kind = fields.text("type");
    let read = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
    let words = || Value::from_iter(fields.text("keywords").lines().map(str::trim).filter(|word| !word.is_empty()));
    let mut config = Map::new();
    let mut take = |key: &str, value: Option<Value>| config.extend(value.map(|value| (key.to_owned(), value)));
    let text = |name: &str| fields.get(name).map(|text| Value::String(text.to_owned()));
    let json = |name: &str| fields.get(name).map(read);
    match kind {
        "regex_match" | "regex_no_match" => {
            take("pattern", text("pattern"));
            take("flags", text("flags"));
        }
        "contains_keywords" => {
            take("keywords", Some(words()));
            take("threshold", json("threshold"));
        }
        "excludes_keywords" => take("keywords", Some(words())),
        "min_length" | "max_length" => take(kind, json("length")),
        "json_schema" => take("schema", json("schema")),
        "cost_threshold" => take("max_cost", json("max_cost")),
        "action_policy" => {
            take("allow", json("allow"));
            take("deny", json("deny"));
        }
        _ => {}
    }
    json!({ "type": kind, "config": config })
}

fn tried(found: &Value, now: iris_core::model::Timestamp) -> Tried {
    let number = |name: &str| count_of(found.get(name).and_then(Value::as_u64));
    let examples = found.get("examples").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let example = |one: &Value| {
        (
            format!("/traces/{}", text(one, "traceId")),
            Words::brief(&text(one, "agentName"), 60),
            Words::brief(&text(one, "outputPreview"), 200),
            format::when_text(now, &text(one, "timestamp")),
        )
    };
    Tried {
        evaluated: number("tracesEvaluated"),
        pass: number("wouldPass"),
        fail: number("wouldFail"),
        skip: number("wouldSkip"),
        is_complete: found.get("complete") != Some(&Value::Bool(false)),
        examples: examples.iter().map(example).collect(),
    }
}

/// Tries a rule on stored traces; nothing is written.
pub(super) async fn preview(
    State(room): Shared,
    Extension(visitor): Extension<Visitor>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let fields = match form::read(&room.gate, &visitor, &headers, body).await {
        Ok(fields) => fields,
        Err(refused) => return *refused,
    };
    let asked = json!({
        "definition": definition(&fields), "eval_type": fields.text("eval_type"),
        "windowDays": TRIED_DAYS, "maxTraces": TRIED_MAX,
    });
    let outcome = match room.app.admit("get_traces", &caller).and_then(|()| parse(asked)) {
        Ok(args) => room.app.preview_rule(args, &caller).await,
        Err(error) => Err(error),
    };
    room.again(&visitor, &caller, &fields, outcome).await
}

/// Deploys a rule.
pub(super) async fn deploy(
    State(room): Shared,
    Extension(visitor): Extension<Visitor>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let fields = match form::read(&room.gate, &visitor, &headers, body).await {
        Ok(fields) => fields,
        Err(refused) => return *refused,
    };
    let mut asked = json!({
        "name": fields.text("name").trim(), "definition": definition(&fields), "eval_type": fields.text("eval_type"),
        "severity": fields.text("severity"), "replace": fields.get("replace").is_some(),
    });
    for (field, name) in [("description", "description"), ("source", "source_moment_id")] {
        if let Some(text) = fields.get(field) {
            asked[name] = json!(text);
        }
    }
    let deployed = match room.app.admit("deploy_rule", &caller).and_then(|()| parse(asked)) {
        Ok(args) => room.app.deploy_rule(args, &caller, USER).await,
        Err(error) => Err(error),
    };
    match deployed {
        Ok(_) => Redirect::to("/rules?done=deployed").into_response(),
        Err(error) => room.again(&visitor, &caller, &fields, Err(error)).await,
    }
}

/// Pauses a rule, lets it go on, or removes it.
pub(super) async fn change(
    State(room): Shared,
    Extension(visitor): Extension<Visitor>,
    Extension(caller): Extension<Caller>,
    Path((rule_id, change)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    if let Err(refused) = form::read(&room.gate, &visitor, &headers, body).await {
        return *refused;
    }
    let (enabled, done) = match change.as_str() {
        "pause" => (Some(false), "paused"),
        "resume" => (Some(true), "resumed"),
        "delete" => (None, "deleted"),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    let args = DeleteRuleArgs { rule_id, enabled };
    let changed = match room.app.admit("delete_rule", &caller).and_then(|()| args.check()) {
        Ok(()) => room.app.delete_rule(args, &caller, USER).await,
        Err(error) => Err(error),
    };
    match changed {
        Ok(reply) if reply.deleted || reply.toggled == Some(true) => {
            Redirect::to(&format!("{PATH}?done={done}")).into_response()
        }
        Ok(_) => Redirect::to("/rules?done=gone").into_response(),
        Err(error) => room.refused(&error, &visitor, &caller),
    }
}

impl Page {
    fn total(&self) -> String {
        count(self.built_in.len() as u64)
    }
}
