//! Checking a value against a JSON Schema, as far as the arguments of tools need it: drafts 7 to 2020-12 without remote
//! references, formats and annotations. Bounded in every direction; the first fault is enough. [`misfit`] says what of a
//! schema could not be checked, before anything is checked by it.
//!
//! Source: <https://json-schema.org/draft/2020-12/json-schema-validation>.

mod misfit;

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::pattern::{Flags, Pattern};

pub(super) use misfit::{Misfit, misfit};

/// Nodes of a schema and checks of one value.
const STEPS_MAX: usize = 20_000;
/// How deep schemas and values are followed.
const DEPTH_MAX: usize = 24;
/// How many patterns are compiled for one value, and the bytes they read.
const PATTERNS_MAX: usize = 24;
const PATTERN_BYTES_MAX: usize = 4 << 20;

/// Where and by which keyword a value breaks its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// JSON Pointer into the value; the names in it are the schema's own, unknown names are left out.
    pub pointer: String,
    /// The keyword.
    pub keyword: &'static str,
}

/// Why a value could not be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unchecked;

/// The first fault of `value` under `schema`; nothing when it fits.
pub(super) fn check(schema: &Value, value: &Value) -> Result<Option<Fault>, Unchecked> {
    check_within(schema, value, STEPS_MAX)
}

/// The same in at most so many steps.
pub(super) fn check_within(schema: &Value, value: &Value, steps_max: usize) -> Result<Option<Fault>, Unchecked> {
    let mut checker =
        Checker { root: schema, steps: 0, steps_max, patterns: HashMap::new(), read: 0, path: Vec::new() };
    match checker.at(schema, value, 0) {
        Ok(()) => Ok(None),
        Err(Stop::Fault(fault)) => Ok(Some(fault)),
        Err(Stop::Unchecked) => Err(Unchecked),
    }
}

enum Stop {
    Fault(Fault),
    Unchecked,
}

struct Checker<'a> {
    root: &'a Value,
    steps: usize,
    steps_max: usize,
    patterns: HashMap<&'a str, Pattern>,
    /// Bytes that patterns have read.
    read: usize,
    path: Vec<String>,
}

type Checked = Result<(), Stop>;

impl<'a> Checker<'a> {
    fn fault(&self, keyword: &'static str) -> Checked {
        let pointer: String = self.path.iter().map(|part| format!("/{part}")).collect();
        Err(Stop::Fault(Fault { pointer, keyword }))
    }

    fn require(&self, holds: bool, keyword: &'static str) -> Checked {
        if holds { Ok(()) } else { self.fault(keyword) }
    }

    fn at(&mut self, schema: &'a Value, value: &Value, depth: usize) -> Checked {
        self.steps += 1;
        if self.steps > self.steps_max || depth > DEPTH_MAX {
            return Err(Stop::Unchecked);
        }
        let fields = match schema {
            Value::Bool(true) => return Ok(()),
            Value::Bool(false) => return self.fault("false"),
            Value::Object(fields) => fields,
            _ => return Err(Stop::Unchecked),
        };
        if ["$dynamicRef", "$recursiveRef"].iter().any(|key| fields.contains_key(*key)) {
            return Err(Stop::Unchecked);
        }
        if let Some(reference) = fields.get("$ref") {
            let target = reference.as_str().and_then(|path| path.strip_prefix('#')).ok_or(Stop::Unchecked)?;
            let target = self.root.pointer(&target.replace("%24", "$")).ok_or(Stop::Unchecked)?;
            self.at(target, value, depth + 1)?;
        }
        self.kind(fields, value)?;
        self.scalar(fields, value)?;
        match value {
            Value::Object(members) => self.object(fields, members, depth)?,
            Value::Array(items) => self.array(fields, items, depth)?,
            _ => {}
        }
        self.combined(fields, value, depth)
    }

    fn kind(&self, fields: &Map<String, Value>, value: &Value) -> Checked {
        let nullable = fields.get("nullable") == Some(&Value::Bool(true)) && value.is_null();
        match fields.get("type") {
            Some(Value::String(name)) => self.require(nullable || is(name, value), "type")?,
            Some(Value::Array(names)) => {
                let any = names.iter().filter_map(Value::as_str).any(|name| is(name, value));
                self.require(nullable || any, "type")?;
            }
            _ => {}
        }
        if let Some(Value::Array(allowed)) = fields.get("enum") {
            self.require(allowed.iter().any(|one| equal(one, value)), "enum")?;
        }
        match fields.get("const") {
            Some(only) => self.require(equal(only, value), "const"),
            None => Ok(()),
        }
    }

    fn scalar(&mut self, fields: &'a Map<String, Value>, value: &Value) -> Checked {
        let limit = |key: &str| fields.get(key).and_then(Value::as_f64);
        if let Some(number) = value.as_f64() {
            self.require(limit("minimum").is_none_or(|least| number >= least), "minimum")?;
            self.require(limit("maximum").is_none_or(|most| number <= most), "maximum")?;
            self.require(limit("exclusiveMinimum").is_none_or(|least| number > least), "exclusiveMinimum")?;
            self.require(limit("exclusiveMaximum").is_none_or(|most| number < most), "exclusiveMaximum")?;
            let part = limit("multipleOf").filter(|part| *part > 0.0);
            let whole = part.is_none_or(|part| {
                let times = number / part;
                (times - times.round()).abs() < 1e-9 * times.abs().max(1.0)
            });
            self.require(whole, "multipleOf")?;
        }
        let Some(text) = value.as_str() else { return Ok(()) };
        let count = |key: &str| fields.get(key).and_then(Value::as_f64);
        let length = super::measure::number(text.chars().count());
        self.require(count("minLength").is_none_or(|least| length >= least), "minLength")?;
        self.require(count("maxLength").is_none_or(|most| length <= most), "maxLength")?;
        match fields.get("pattern").and_then(Value::as_str) {
            Some(pattern) => {
                let matches = self.matches(pattern, text)?;
                self.require(matches, "pattern")
            }
            None => Ok(()),
        }
    }

    /// A pattern that cannot be read in linear time, or is too large, leaves the value unchecked.
    fn matches(&mut self, pattern: &'a str, text: &str) -> Result<bool, Stop> {
        self.read = self.read.saturating_add(text.len());
        if self.read > PATTERN_BYTES_MAX {
            return Err(Stop::Unchecked);
        }
        if !self.patterns.contains_key(pattern) {
            if self.patterns.len() >= PATTERNS_MAX {
                return Err(Stop::Unchecked);
            }
            let compiled = Pattern::new(pattern, Flags::default()).map_err(|_| Stop::Unchecked)?;
            self.patterns.insert(pattern, compiled);
        }
        let compiled = self.patterns.get(pattern).ok_or(Stop::Unchecked)?;
        compiled.is_in(text).map_err(|_| Stop::Unchecked)
    }

    fn object(&mut self, fields: &'a Map<String, Value>, members: &Map<String, Value>, depth: usize) -> Checked {
        let listed = |key: &str| fields.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for name in listed("required").iter().filter_map(Value::as_str) {
            self.require(members.contains_key(name), "required")?;
        }
        let size = super::measure::number(members.len());
        let limit = |key: &str| fields.get(key).and_then(Value::as_f64);
        self.require(limit("minProperties").is_none_or(|least| size >= least), "minProperties")?;
        self.require(limit("maxProperties").is_none_or(|most| size <= most), "maxProperties")?;
        let properties = fields.get("properties").and_then(Value::as_object);
        let patterns = fields.get("patternProperties").and_then(Value::as_object);
        for (name, member) in members {
            let mut known = false;
            if let Some(schema) = properties.and_then(|properties| properties.get(name)) {
                known = true;
                self.inside(name, |checker| checker.at(schema, member, depth + 1))?;
            }
            for (pattern, schema) in patterns.into_iter().flatten() {
                if self.matches(pattern, name)? {
                    known = true;
                    self.at(schema, member, depth + 1)?;
                }
            }
            match fields.get("additionalProperties") {
                Some(Value::Bool(false)) => self.require(known, "additionalProperties")?,
                Some(schema) if !known => self.at(schema, member, depth + 1)?,
                _ => {}
            }
            if let Some(schema) = fields.get("propertyNames") {
                self.at(schema, &Value::String(name.clone()), depth + 1)?;
            }
        }
        let dependent = fields.get("dependentRequired").and_then(Value::as_object);
        for (_, names) in dependent.into_iter().flatten().filter(|(name, _)| members.contains_key(*name)) {
            let names = names.as_array().map(Vec::as_slice).unwrap_or_default();
            let all = names.iter().filter_map(Value::as_str).all(|name| members.contains_key(name));
            self.require(all, "dependentRequired")?;
        }
        Ok(())
    }

    fn inside(&mut self, part: &str, check: impl FnOnce(&mut Self) -> Checked) -> Checked {
        self.path.push(part.replace('~', "~0").replace('/', "~1"));
        let checked = check(self);
        if checked.is_ok() {
            self.path.pop();
        }
        checked
    }

    fn array(&mut self, fields: &'a Map<String, Value>, items: &[Value], depth: usize) -> Checked {
        let size = super::measure::number(items.len());
        let limit = |key: &str| fields.get(key).and_then(Value::as_f64);
        self.require(limit("minItems").is_none_or(|least| size >= least), "minItems")?;
        self.require(limit("maxItems").is_none_or(|most| size <= most), "maxItems")?;
        if fields.get("uniqueItems") == Some(&Value::Bool(true)) {
            self.steps += items.len() * items.len() / 8;
            if self.steps > self.steps_max {
                return Err(Stop::Unchecked);
            }
            let repeats = |(at, one): (usize, &Value)| items.iter().take(at).any(|other| equal(one, other));
            self.require(!items.iter().enumerate().any(repeats), "uniqueItems")?;
        }
        let (head, rest) = match (fields.get("prefixItems"), fields.get("items")) {
            (Some(Value::Array(head)), rest) => (head.as_slice(), rest),
            // Before 2020-12.
            (None, Some(Value::Array(head))) => (head.as_slice(), fields.get("additionalItems")),
            (_, rest) => (&[][..], rest),
        };
        for (at, item) in items.iter().enumerate() {
            let Some(schema) = head.get(at).or(rest) else { continue };
            self.inside(&at.to_string(), |checker| checker.at(schema, item, depth + 1))?;
        }
        if let Some(schema) = fields.get("contains") {
            let (least, most) = (limit("minContains").unwrap_or(1.0), limit("maxContains"));
            let mut found = 0;
            for item in items {
                if most.is_none() && super::measure::number(found) >= least {
                    break;
                }
                found += usize::from(self.fits(schema, item, depth)?);
            }
            let found = super::measure::number(found);
            self.require(found >= least, "contains")?;
            self.require(most.is_none_or(|most| found <= most), "maxContains")?;
        }
        Ok(())
    }

    /// Whether a value fits, without keeping the fault.
    fn fits(&mut self, schema: &'a Value, value: &Value, depth: usize) -> Result<bool, Stop> {
        let path = self.path.clone();
        match self.at(schema, value, depth + 1) {
            Ok(()) => Ok(true),
            Err(Stop::Unchecked) => Err(Stop::Unchecked),
            Err(Stop::Fault(_)) => {
                self.path = path;
                Ok(false)
            }
        }
    }

    fn combined(&mut self, fields: &'a Map<String, Value>, value: &Value, depth: usize) -> Checked {
        let listed = |key: &str| fields.get(key).and_then(Value::as_array);
        for schema in listed("allOf").into_iter().flatten() {
            self.at(schema, value, depth + 1)?;
        }
        for (keyword, only) in [("anyOf", false), ("oneOf", true)] {
            let Some(schemas) = listed(keyword) else { continue };
            let mut fitting = 0;
            for schema in schemas {
                fitting += usize::from(self.fits(schema, value, depth)?);
            }
            self.require(if only { fitting == 1 } else { fitting > 0 }, if only { "oneOf" } else { "anyOf" })?;
        }
        if let Some(schema) = fields.get("not") {
            let fits = self.fits(schema, value, depth)?;
            self.require(!fits, "not")?;
        }
        let dependent = fields.get("dependentSchemas").and_then(Value::as_object);
        for (_, schema) in dependent.into_iter().flatten().filter(|(name, _)| value.get(name.as_str()).is_some()) {
            self.at(schema, value, depth + 1)?;
        }
        if let Some(condition) = fields.get("if") {
            let branch = if self.fits(condition, value, depth)? { "then" } else { "else" };
            if let Some(schema) = fields.get(branch) {
                self.at(schema, value, depth + 1)?;
            }
        }
        Ok(())
    }
}

fn is(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        // A name that no draft knows says nothing.
        _ => true,
    }
}

/// Equal as JSON values: `1` and `1.0` are.
pub(super) fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| other.get(name).is_some_and(|there| equal(value, there)))
        }
        _ => one == other,
    }
}
