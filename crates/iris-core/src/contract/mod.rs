//! The tool contract: every word and shape of every tool, and nothing of what the tools do.
//!
//! A tool is one file: its arguments and reply as types whose doc comments are the published documentation, its
//! prose, its error codes, its siblings. [`TOOLS`] lists them in the order in which clients see them. Everything
//! else (the MCP description and schemas, the HTTP routes, the documentation) is derived from that table.

mod custom_rule;
mod delete_rule;
mod delete_trace;
mod deploy_rule;
mod error;
mod evaluate_output;
mod evaluate_with_llm_judge;
mod get_traces;
mod list_rules;
mod log_trace;
mod narrowed;
mod plain;
mod purge;
mod query_sql;
mod readings;
mod resources;
mod rule_routes;
mod scope;
mod strict;
mod verify_citations;

use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use schemars::generate::SchemaSettings;
use serde_json::Value;

pub use custom_rule::{CustomRule, Quarantined};
pub use delete_rule::{Args as DeleteRuleArgs, DeleteRule, Reply as DeleteRuleReply};
pub use delete_trace::{
    Args as DeleteTraceArgs, Bytes as ErasureBytes, BytesState as ErasureState, DeleteTrace, Downstream, Erasure,
    Reply as DeleteTraceReply,
};
pub use deploy_rule::{Args as DeployRuleArgs, DeployRule, Replaced, Reply as DeployRuleReply};
pub use error::{Code, ENABLE_JUDGE, Error};
pub use evaluate_output::{Args as EvaluateOutputArgs, EvaluateOutput, InlineRule, Reply as EvaluateOutputReply};
pub use evaluate_with_llm_judge::{
    Args as EvaluateWithLlmJudgeArgs, EvaluateWithLlmJudge, Reply as EvaluateWithLlmJudgeReply,
};
pub use get_traces::{
    Args as GetTracesArgs, Detail, GetTraces, HourCount, NameCount, Part, PartEntry, Reply as GetTracesReply,
    Row as TraceRow, SortBy, SortOrder, Summary, Unsearched, VerdictBrief,
};
pub use list_rules::{Args as ListRulesArgs, ListRules, Reply as ListRulesReply};
pub use log_trace::{Args as LogTraceArgs, Event, LogTrace, Reply as LogTraceReply, Span};
pub use narrowed::{ARGUMENT_NARROWED, Warning};
pub use plain::{expected as plain_expected, reason as plain_reason};
pub use purge::PurgeArgs;
pub use query_sql::{Args as QuerySqlArgs, Column as SqlColumn, QuerySql, Reply as QuerySqlReply, Table as SqlTable};
pub use readings::{EvaluationsArgs, NoArgs, SummaryArgs};
pub use resources::{
    CAPABILITIES, EVALUATION, PROMPT_ARGUMENT, PROMPT_ARGUMENT_DESCRIPTION, PROMPT_CHOICES, PROMPT_DESCRIPTION,
    PROMPT_NAME, PROMPT_TITLE, PROOF, RESOURCES, Resource, SUMMARY, TRACE, links, prompt,
};
pub use rule_routes::{AuditArgs, PreviewArgs as PreviewRuleArgs, SwitchArgs};
pub use scope::Scope;
pub use strict::{Arguments, parse, printable};
pub use verify_citations::{
    Args as VerifyCitationsArgs, Checked as CheckedCitation, Citation as CitedAt, Failure as CitationFailure,
    Reply as VerifyCitationsReply, ResolveStatus, Ruling as CitationRuling, Source as CitedSource, VerifyCitations,
};

/// What a tool says of itself in words. Returns, errors and siblings are generated.
pub struct Prose {
    /// One sentence that stands first.
    pub summary: &'static str,
    /// What it does.
    pub does: &'static str,
    /// When another way is better.
    pub not_for: &'static str,
    /// Sentences on errors that the codes alone do not tell.
    pub errors: &'static str,
}

/// MCP annotations: hints to a client about what a call may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// Changes nothing.
    pub read_only: bool,
    /// May remove something.
    pub destructive: bool,
    /// Calling twice is the same as calling once.
    pub idempotent: bool,
    /// Reaches beyond this process.
    pub open_world: bool,
}

/// One tool of the contract.
pub trait Tool {
    /// Its name on the wire.
    const NAME: &'static str;
    /// Its title for people.
    const TITLE: &'static str;
    /// Its prose.
    const PROSE: Prose;
    /// The codes with which its own work may fail; `IRIS_INVALID_ARGUMENT` and `IRIS_INTERNAL_ERROR` go without saying.
    const ERRORS: &'static [Code];
    /// The tools that stand beside it, each with what it is for.
    const SIBLINGS: &'static [(&'static str, &'static str)];
    /// What a key must allow to call it.
    const SCOPE: Scope;
    /// Hints for clients.
    const HINTS: Hints;
    /// Its arguments.
    type Args: serde::de::DeserializeOwned + schemars::JsonSchema + Arguments + 'static;
    /// Its reply.
    type Reply: serde::Serialize + schemars::JsonSchema;
}

/// A tool as a value: what clients are told of it.
pub struct Entry {
    /// Its name on the wire.
    pub name: &'static str,
    /// Its title for people.
    pub title: &'static str,
    /// Hints for clients.
    pub hints: Hints,
    /// What a key must allow to call it.
    pub scope: Scope,
    /// The tools beside it, each with what it is for.
    pub siblings: &'static [(&'static str, &'static str)],
    /// The codes its work may fail with.
    pub errors: &'static [Code],
    /// The description, in the contract's parts.
    pub describe: fn() -> String,
    /// JSON Schema of the arguments; `additionalProperties: false`.
    pub arguments: fn() -> Value,
    /// JSON Schema of the reply; unknown fields allowed.
    pub reply: fn() -> Value,
    /// The same to the depth of its fields, without words: what every session of an agent is told.
    pub outline: fn() -> Value,
}

/// Every tool, in the order in which clients see them.
pub const TOOLS: &[Entry] = &[
    entry::<LogTrace>(),
    entry::<EvaluateOutput>(),
    entry::<GetTraces>(),
    entry::<ListRules>(),
    entry::<DeployRule>(),
    entry::<DeleteRule>(),
    entry::<DeleteTrace>(),
    entry::<EvaluateWithLlmJudge>(),
    entry::<VerifyCitations>(),
];

/// The tool that stands beside those of [`TOOLS`] where the operator allows it.
pub const QUERY_SQL: &Entry = &entry::<QuerySql>();

/// Every tool there is, offered or not.
pub fn every_tool() -> impl Iterator<Item = &'static Entry> {
    TOOLS.iter().chain([QUERY_SQL])
}

/// The tool of that name.
pub fn tool(name: &str) -> Option<&'static Entry> {
    every_tool().find(|entry| entry.name == name)
}

const fn entry<T: Tool>() -> Entry {
    Entry {
        name: T::NAME,
        title: T::TITLE,
        hints: T::HINTS,
        scope: T::SCOPE,
        siblings: T::SIBLINGS,
        errors: T::ERRORS,
        describe: describe::<T>,
        arguments: schema::<T::Args>,
        reply: reply_schema::<T::Reply>,
        outline: outline::<T::Reply>,
    }
}

/// JSON Schema of what is asked beside the tools.
pub fn arguments_schema<A: schemars::JsonSchema + Arguments + 'static>() -> Value {
    schema_once::<A>().as_ref().clone()
}

/// The same schema as [`schema`], made once a type: making it takes longer than reading the arguments by it.
fn schema_once<T: schemars::JsonSchema + 'static>() -> Arc<Value> {
    static MADE: Mutex<BTreeMap<TypeId, Arc<Value>>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(made.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(schema::<T>())))
}

/// JSON Schema of what a tool takes.
pub(crate) fn schema<T: schemars::JsonSchema>() -> Value {
    let mut schema = bare::<T>(SchemaSettings::draft2020_12());
    plain(&mut schema);
    schema
}

/// The same schema without `null` beside a type, without lists of types and without choices of one kind of constant:
/// clients are known to refuse or drop tools that have them. An argument that is null is still taken as left out.
fn plain(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(plain),
        Value::Object(fields) => {
            if let Some(Value::Array(types)) = fields.get_mut("type") {
                types.retain(|one| one != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    fields.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(choices)) = fields.get_mut("anyOf") {
                choices.retain(|one| one.get("type").is_none_or(|kind| kind != "null"));
                if let [Value::Object(only)] = choices.as_slice() {
                    let only = only.clone();
                    fields.remove("anyOf");
                    for (name, value) in only {
                        fields.entry(name).or_insert(value);
                    }
                }
            }
            let constants: Option<Vec<Value>> = fields
                .get("oneOf")
                .and_then(Value::as_array)
                .and_then(|choices| choices.iter().map(|one| one.get("const").cloned()).collect());
            if let Some(constants) = constants {
                fields.remove("oneOf");
                fields.insert("type".to_owned(), Value::String("string".to_owned()));
                fields.insert("enum".to_owned(), Value::Array(constants));
            }
            if fields.get("default") == Some(&Value::Null) {
                fields.remove("default");
            }
            fields.values_mut().for_each(plain);
        }
        _ => {}
    }
}

/// JSON Schema of what a tool answers: a field that may be left out is not required.
fn reply_schema<T: schemars::JsonSchema>() -> Value {
    bare::<T>(SchemaSettings::draft2020_12().for_serialize())
}

/// The schema of a reply with its fields' types alone: the description says what they mean, and a client that checks
/// replies needs no more.
fn outline<T: schemars::JsonSchema>() -> Value {
    let schema = reply_schema::<T>();
    let mut fields = serde_json::Map::new();
    for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        fields.insert(name.clone(), kind(field));
    }
    let mut outline = serde_json::Map::new();
    outline.insert("type".to_owned(), Value::from("object"));
    outline.insert("properties".to_owned(), Value::Object(fields));
    if let Some(required) = schema.get("required") {
        outline.insert("required".to_owned(), required.clone());
    }
    Value::Object(outline)
}

/// The type of a value, and of a list's items; nothing where it may be anything.
fn kind(schema: &Value) -> Value {
    let mut kept = serde_json::Map::new();
    if let Some(name) = schema.get("type") {
        kept.insert("type".to_owned(), name.clone());
    } else if let Some(choices) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
        let mut names: Vec<Value> = Vec::new();
        for choice in choices {
            match kind(choice).get("type").cloned() {
                Some(name) if !names.contains(&name) => names.push(name),
                Some(_) => {}
                None => return Value::Object(kept),
            }
        }
        let name = if let [only] = names.as_slice() { only.clone() } else { Value::Array(names) };
        kept.insert("type".to_owned(), name);
    }
    if let Some(items) = schema.get("items") {
        kept.insert("items".to_owned(), kind(items));
    }
    Value::Object(kept)
}

/// JSON Schema 2020-12 with every subschema in place, so that a reader needs no references.
fn bare<T: schemars::JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
        object.remove("description");
    }
    schema
}

/// The description a client reads, in the contract's parts.
fn describe<T: Tool>() -> String {
    let prose = T::PROSE;
    let mut text =
        format!("{}\n\nWhat it does. {}\n\nWhen not to use it. {}\n\n", prose.summary, prose.does, prose.not_for);
    text.push_str("Returns. JSON with ");
    text.push_str(&returns(&reply_schema::<T::Reply>()));
    text.push_str(".\n\nErrors. ");
    if !prose.errors.is_empty() {
        text.push_str(prose.errors);
        text.push(' ');
    }
    for code in T::ERRORS {
        text.push_str(&format!("{} when {}. ", code.as_str(), code.when()));
    }
    text.push_str(
        "An unknown or malformed argument is refused before anything runs (IRIS_INVALID_ARGUMENT, naming the valid ones). \
         Every failure is {\"error\":{\"code\",\"message\",\"recovery\":[]}} with isError true; follow recovery before retrying.\n\nSiblings. ",
    );
    let siblings: Vec<String> = T::SIBLINGS.iter().map(|(name, what)| format!("{name}: {what}")).collect();
    text.push_str(&siblings.join("; "));
    text.push('.');
    text
}

/// `name (doc), name (doc)` over the fields of a reply, in their order.
fn returns(schema: &Value) -> String {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return String::new() };
    let fields: Vec<String> = properties
        .iter()
        .map(|(name, field)| match field.get("description").and_then(Value::as_str) {
            Some(doc) => format!("{name} ({})", first_sentence(doc)),
            None => name.clone(),
        })
        .collect();
    fields.join("; ")
}

fn first_sentence(doc: &str) -> String {
    let line = doc.split("\n\n").next().unwrap_or(doc).replace('\n', " ");
    let line = line.trim_end_matches('.').trim();
    let mut letters = line.chars();
    match letters.next() {
        Some(first) if !letters.as_str().starts_with(|next: char| next.is_uppercase()) => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests;
