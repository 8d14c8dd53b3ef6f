//! What of a schema could not be checked: keywords whose values make no sense, references that lead out or nowhere,
//! patterns that are refused, and keywords that would be passed over though they demand something.

use serde_json::Value;

use super::super::pattern::{Flags, Pattern};
use super::{DEPTH_MAX, PATTERNS_MAX};

/// Schemas within one.
const NODES_MAX: usize = 2000;
/// Schemas that are met while references are followed.
const WALKED_MAX: usize = 50_000;

/// Keywords that demand something and are not checked here.
const UNCHECKED: [&str; 6] =
    ["unevaluatedProperties", "unevaluatedItems", "dependencies", "$dynamicRef", "$recursiveRef", "disallow"];
/// Keywords that hold one schema, a list of them, and schemas by name.
const ONE: [&str; 9] =
    ["additionalProperties", "additionalItems", "propertyNames", "contains", "not", "if", "then", "else", "items"];
const SEVERAL: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const NAMED: [&str; 5] = ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];
/// Keywords whose schemas judge the same value, not one inside it.
const IN_PLACE: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
/// Keywords that hold a number.
const NUMBERS: [&str; 13] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minContains",
    "maxContains",
];
const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];

/// Why a schema is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::rules) struct Misfit {
    /// The keyword, where one is at fault.
    pub keyword: String,
    /// What is wrong with it.
    pub why: String,
}

/// The first thing in a schema that could not be checked.
pub(in crate::rules) fn misfit(schema: &Value) -> Option<Misfit> {
    let mut look = Look { root: schema, nodes: 0, patterns: 0, walked: 0 };
    look.at(schema, 0).err().map(|misfit| *misfit)
}

struct Look<'a> {
    root: &'a Value,
    nodes: usize,
    patterns: usize,
    /// Schemas met while references were followed.
    walked: usize,
}

type Looked = Result<(), Box<Misfit>>;

fn wrong(keyword: &str, why: impl Into<String>) -> Looked {
    Err(Box::new(Misfit { keyword: keyword.to_owned(), why: why.into() }))
}

impl Look<'_> {
    fn at(&mut self, schema: &Value, depth: usize) -> Looked {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return wrong("", format!("has more than {NODES_MAX} schemas within it"));
        }
        if depth > DEPTH_MAX {
            return wrong("", format!("is nested deeper than {DEPTH_MAX} levels"));
        }
        let fields = match schema {
            Value::Bool(_) => return Ok(()),
            Value::Object(fields) => fields,
            _ => return wrong("", "a schema must be an object, true or false"),
        };
        for (keyword, value) in fields {
            self.keyword(keyword, value, depth)?;
        }
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str)
            && self.circles(reference, &mut Vec::new())
        {
            return wrong(
                "$ref",
                "leads back to itself without a step into the value, or by more ways than can be followed",
            );
        }
        Ok(())
    }

    fn keyword(&mut self, keyword: &str, value: &Value, depth: usize) -> Looked {
        if UNCHECKED.contains(&keyword) {
            return wrong(keyword, "is not checked here; say it with other keywords");
        }
        if NUMBERS.contains(&keyword) {
            return match value.as_f64() {
                Some(number) if keyword != "multipleOf" || number > 0.0 => Ok(()),
                _ => wrong(keyword, "must be a number; multipleOf one above 0"),
            };
        }
        let each = |look: &mut Self, schemas: Vec<&Value>| {
            schemas.into_iter().try_for_each(|schema| look.at(schema, depth + 1))
        };
        match (keyword, value) {
            ("items", Value::Array(schemas)) => each(self, schemas.iter().collect()),
            (keyword, Value::Array(schemas)) if SEVERAL.contains(&keyword) => each(self, schemas.iter().collect()),
            (keyword, Value::Object(schemas)) if NAMED.contains(&keyword) => {
                if keyword == "patternProperties" {
                    schemas.keys().try_for_each(|pattern| self.pattern(keyword, pattern))?;
                }
                each(self, schemas.values().collect())
            }
            (keyword, schema) if ONE.contains(&keyword) => self.at(schema, depth + 1),
            (keyword, _) if SEVERAL.contains(&keyword) => wrong(keyword, "must be a list of schemas"),
            (keyword, _) if NAMED.contains(&keyword) => wrong(keyword, "must be an object of schemas by name"),
            ("pattern", Value::String(pattern)) => self.pattern(keyword, pattern),
            ("pattern", _) => wrong(keyword, "must be a regular expression"),
            ("type", value) => kinds(value),
            ("enum", Value::Array(_)) => Ok(()),
            ("enum", _) => wrong(keyword, "must be a list of values"),
            ("required", Value::Array(names)) if names.iter().all(Value::is_string) => Ok(()),
            ("required", _) => wrong(keyword, "must be a list of names"),
            ("dependentRequired", Value::Object(_)) => Ok(()),
            ("dependentRequired", _) => wrong(keyword, "must be an object of lists of names"),
            ("uniqueItems" | "nullable", Value::Bool(_)) => Ok(()),
            ("uniqueItems" | "nullable", _) => wrong(keyword, "must be true or false"),
            ("$ref", Value::String(reference)) => match target(self.root, reference) {
                Some(_) => Ok(()),
                None if reference.starts_with('#') => {
                    wrong(keyword, "names no place in this schema; write #/$defs/name")
                }
                None => wrong(keyword, "must stay within this schema (#/...): nothing is fetched"),
            },
            ("$ref", _) => wrong(keyword, "must be a text such as #/$defs/name"),
            _ => Ok(()),
        }
    }

    fn pattern(&mut self, keyword: &str, pattern: &str) -> Looked {
        self.patterns += 1;
        if self.patterns > PATTERNS_MAX {
            return wrong(keyword, format!("more than {PATTERNS_MAX} patterns"));
        }
        match Pattern::new(pattern, Flags::default()) {
            Ok(_) => Ok(()),
            Err(why) => wrong(keyword, why),
        }
    }

    /// Whether a reference comes back to itself over schemas that judge the same value.
    fn circles(&mut self, reference: &str, seen: &mut Vec<String>) -> bool {
        if seen.len() > DEPTH_MAX || seen.iter().any(|one| one == reference) {
            return true;
        }
        seen.push(reference.to_owned());
        let root = self.root;
        let circles = target(root, reference).is_some_and(|schema| self.circles_in(schema, seen, 0));
        seen.pop();
        circles
    }

    fn circles_in(&mut self, schema: &Value, seen: &mut Vec<String>, depth: usize) -> bool {
        self.walked += 1;
        if self.walked > WALKED_MAX {
            return true;
        }
        let Some(fields) = schema.as_object().filter(|_| depth <= DEPTH_MAX) else { return false };
        let next = fields.get("$ref").and_then(Value::as_str);
        if next.is_some_and(|next| self.circles(next, seen)) {
            return true;
        }
        IN_PLACE.iter().filter_map(|keyword| fields.get(*keyword)).any(|inner| match inner {
            Value::Array(several) => several.iter().any(|one| self.circles_in(one, seen, depth + 1)),
            one => self.circles_in(one, seen, depth + 1),
        })
    }
}

/// The schema that a reference names.
fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(&reference.strip_prefix('#')?.replace("%24", "$"))
}

fn kinds(value: &Value) -> Looked {
    let known = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
    let fits = match value {
        Value::Array(names) => !names.is_empty() && names.iter().all(known),
        name => known(name),
    };
    if fits { Ok(()) } else { wrong("type", format!("must be one or several of {}", TYPES.join(", "))) }
}
