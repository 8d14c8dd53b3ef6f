//! The environment: one table of flat names, and `IRIS__SECTION__KEY` for every other key.

use serde_json::{Map, Value};

use super::keys;
use super::shape::Shape;

/// A flat name, the key it sets, and what it is for.
pub struct Flat {
    /// The variable.
    pub name: &'static str,
    /// The dotted key.
    pub key: &'static str,
    /// What it sets.
    pub doc: &'static str,
}

/// The flat names of the contract and our own.
pub const FLAT: &[Flat] = &[
    Flat { name: "IRIS_HOME", key: "home", doc: "where everything is kept" },
    Flat { name: "IRIS_API_KEY", key: "web.api_key", doc: "the key every caller of the web door needs" },
    Flat {
        name: "IRIS_OTEL_ENDPOINT",
        key: "export.endpoint",
        doc: "the collector that traces of `log_trace` are also sent to",
    },
    Flat { name: "IRIS_OTEL_SERVICE_NAME", key: "export.service_name", doc: "`service.name` of what is sent there" },
    Flat { name: "IRIS_OTEL_HEADERS", key: "export.headers", doc: "headers for it, `name=value,name=value`" },
    Flat { name: "IRIS_OTEL_TIMEOUT_MS", key: "export.timeout_ms", doc: "how long one request to it may take" },
    Flat {
        name: "IRIS_ANTHROPIC_API_KEY",
        key: "judge.anthropic_api_key",
        doc: "the key with which Anthropic's models are asked to judge",
    },
    Flat {
        name: "IRIS_OPENAI_API_KEY",
        key: "judge.openai_api_key",
        doc: "the key with which OpenAI's models are asked to judge",
    },
    Flat {
        name: "IRIS_LLM_JUDGE_MAX_COST_USD_PER_EVAL",
        key: "judge.default_usd_call",
        doc: "what one judgement may cost at worst, in US dollars, unless a call says otherwise",
    },
    Flat {
        name: "IRIS_CITATION_ALLOW_FETCH",
        key: "citations.fetch",
        doc: "`1`: the sources of citations are fetched unless a call says no",
    },
    Flat {
        name: "IRIS_CITATION_DOMAINS",
        key: "citations.allow_domains",
        doc: "hosts that may be fetched from, separated by commas",
    },
    Flat { name: "IRIS_LOG_LEVEL", key: "logging.level", doc: "debug, info, warn or error" },
];

/// Names of this family that other programs read; they are never ours and never a mistake.
const FOREIGN: &[&str] = &["IRIS_URL", "IRIS_REQUIRE"];

/// What the environment says.
pub struct Read {
    /// The tree of settings.
    pub tree: Value,
    /// Names that cannot be right.
    pub problems: Vec<String>,
    /// Names that are probably not right.
    pub warnings: Vec<String>,
}

/// Reads every `IRIS_*` variable.
pub fn read(env: &[(String, String)], defaults: &Value) -> Read {
    let mut read = Read { tree: Value::Object(Map::new()), problems: Vec::new(), warnings: Vec::new() };
    let mut nested = Vec::new();
    for (name, value) in env {
        if let Some(path) = name.strip_prefix("IRIS__") {
            nested.push((name, path.to_ascii_lowercase().replace("__", "."), value));
        } else if let Some(flat) = FLAT.iter().find(|flat| flat.name == name) {
            keys::set(&mut read.tree, flat.key, Shape::of(defaults).at(flat.key).1.typed(value));
        } else if name.starts_with("IRIS_") && !FOREIGN.contains(&name.as_str()) && !made_by_kubernetes(name) {
            let hint = meant(name, defaults).map_or_else(String::new, |near| format!("; did you mean {near}?"));
            read.warnings.push(format!("{name} is no setting of this program{hint}"));
        }
    }
    // A nested name is more exact than a flat one, so it wins.
    for (name, key, value) in nested {
        let (key, shape) = Shape::of(defaults).at(&key);
        let mut one = Value::Object(Map::new());
        keys::set(&mut one, &key, Value::Null);
        read.problems.extend(keys::unknown(defaults, &one).into_iter().map(|problem| format!("{name}: {problem}")));
        keys::set(&mut read.tree, &key, shape.typed(value));
    }
    read
}

/// The name that was probably meant: a key with single underscores, or the nearest flat name or key.
fn meant(name: &str, defaults: &Value) -> Option<String> {
    let mut paths = Vec::new();
    leaves(defaults, "IRIS", &mut paths);
    let flat: Vec<(String, &String)> = paths.iter().map(|path| (path.replace("__", "_"), path)).collect();
    if let Some((_, path)) = flat.iter().find(|(flat, _)| flat == name) {
        return Some((*path).clone());
    }
    let names = FLAT.iter().map(|flat| flat.name);
    let near = keys::nearest(name, names.chain(flat.iter().map(|(flat, _)| flat.as_str())))?;
    let path = flat.iter().find(|(flat, _)| flat == near).map(|(_, path)| (*path).clone());
    Some(if FLAT.iter().any(|flat| flat.name == near) { near.to_owned() } else { path? })
}

/// Every key as the variable that sets it.
fn leaves(tree: &Value, place: &str, found: &mut Vec<String>) {
    match tree {
        Value::Object(fields) if !fields.is_empty() => {
            fields
                .iter()
                .for_each(|(name, inner)| leaves(inner, &format!("{place}__{}", name.to_ascii_uppercase()), found));
        }
        _ => found.push(place.to_owned()),
    }
}

/// Kubernetes puts `NAME_SERVICE_HOST`, `NAME_PORT_...` for every Service into every pod.
fn made_by_kubernetes(name: &str) -> bool {
    let service = ["_SERVICE_HOST", "_SERVICE_PORT"].iter().any(|mark| name.contains(mark));
    service || name.ends_with("_PORT") || name.contains("_PORT_")
}
