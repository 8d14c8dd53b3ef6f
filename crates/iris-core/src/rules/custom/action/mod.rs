//! `action_policy`: which tools may be called, and with what.
//!
//! A call that an entry of `deny` covers fails; with a list `allow`, a call that no entry of it covers fails too. An
//! entry names a tool by a glob and, where it likes, values of its arguments: a JSON Pointer and a glob each. What is
//! denied is denied in every form in which the value can be meant, in either case and without disguises; what is
//! allowed must fit in all of its forms, as written. A text that cannot be looked at whole is never allowed.

mod glob;
mod value;

use serde_json::{Map, Value};

use self::glob::{Glob, TooMuch, Work};
use self::value::{Forms, folded};
use super::keys::field;
use super::{Check, Problem, RuleType, Type, defeated, problem};
use crate::model::{Evidence, ToolCall};
use crate::rules::{Case, EVIDENCE_MAX, FailureClass, Finding, Mechanism, Need, Outcome, Question};

/// Entries of both lists, arguments of one entry, characters of a glob or pointer.
const ENTRIES_MAX: usize = 100;
const ARGUMENTS_MAX: usize = 32;
const CHARS_MAX: usize = 512;
/// Elements that `-` stands for, and values within a list or object that are looked at.
const ELEMENTS_MAX: usize = 64;

pub(super) const TYPE: Type = Type {
    rule_type: RuleType::ActionPolicy,
    needs: &[Need::ToolCalls],
    mechanism: Mechanism::Pattern,
    question: Some(Question::ToolUseCorrect),
    classes: &[FailureClass::WrongTool],
    stands: true,
    suggestion: "Call only what the policy allows; the evidence names the calls.",
    compile: |config| Ok(Box::new(Policy::new(config)?)),
};

struct Policy {
    allow: Option<Vec<Entry>>,
    deny: Vec<Entry>,
}

struct Entry {
    tool: Pair,
    arguments: Vec<(Vec<String>, Pair)>,
}

/// A glob as written, and in small letters without disguises.
struct Pair {
    exact: Glob,
    folded: Glob,
}

impl Pair {
    fn new(text: &str, make: fn(&str) -> Glob) -> Self {
        let small: String = folded(text).into_iter().collect();
        Self { exact: make(text), folded: make(&small) }
    }
}

impl Policy {
    fn new(config: &Map<String, Value>) -> Result<Self, Problem> {
        if let Some(key) = config.keys().find(|key| !matches!(key.as_str(), "allow" | "deny")) {
            let key: String = key.chars().filter(|letter| !letter.is_control()).take(64).collect();
            let valid = vec!["allow".to_owned(), "deny".to_owned()];
            return Err(Problem { valid, ..problem(&field(&key), "is unknown here; valid: allow, deny") });
        }
        let allow = entries(config, "allow")?;
        let deny = entries(config, "deny")?;
        let count = allow.as_ref().map_or(0, Vec::len) + deny.as_ref().map_or(0, Vec::len);
        if count == 0 {
            let valid = vec!["allow".to_owned(), "deny".to_owned()];
            return Err(Problem { valid, ..problem("config", "must have at least one entry in allow or deny") });
        }
        if count > ENTRIES_MAX {
            return Err(problem("config", format!("has {count} entries in allow and deny; at most {ENTRIES_MAX}")));
        }
        Ok(Self { allow, deny: deny.unwrap_or_default() })
    }

    /// What is wrong with a call; nothing when it may be made.
    fn wrong(&self, call: &ToolCall, work: &Work) -> Result<Option<String>, TooMuch> {
        let arguments = call.input.as_ref().map(read);
        let arguments = arguments.as_ref().unwrap_or(&Value::Null);
        let exact: Vec<char> = call.tool_name.chars().collect();
        let small = folded(&call.tool_name);
        for (at, entry) in self.deny.iter().enumerate() {
            if entry.tool.folded.fits(&small, work)? && entry.is_denied(arguments, work)? {
                return Ok(Some(format!("deny[{at}]")));
            }
        }
        let Some(allow) = &self.allow else { return Ok(None) };
        for entry in allow {
            if entry.tool.exact.fits(&exact, work)? && entry.is_allowed(arguments, work)? {
                return Ok(None);
            }
        }
        Ok(Some("not allowed".to_owned()))
    }
}

impl Entry {
    fn is_denied(&self, arguments: &Value, work: &Work) -> Result<bool, TooMuch> {
        for (pointer, glob) in &self.arguments {
            let mut found = Vec::new();
            let whole = leaves(arguments, pointer, &mut found, work)?;
            let mut fits = false;
            for value in found {
                let forms = forms(value, work)?;
                for form in &forms.folded {
                    fits |= glob.folded.fits(form, work)?;
                }
                if !fits && !forms.whole {
                    return Err(TooMuch);
                }
            }
            if !fits {
                // What was not looked at may be what is denied.
                return if whole { Ok(false) } else { Err(TooMuch) };
            }
        }
        Ok(true)
    }

    fn is_allowed(&self, arguments: &Value, work: &Work) -> Result<bool, TooMuch> {
        for (pointer, glob) in &self.arguments {
            let mut found = Vec::new();
            let whole = elements(arguments, pointer, &mut found);
            if !whole || found.is_empty() {
                return Ok(false);
            }
            for value in found {
                if value.is_array() || value.is_object() {
                    return Ok(false);
                }
                let forms = forms(value, work)?;
                if !forms.whole {
                    return Ok(false);
                }
                for form in &forms.forms {
                    if !glob.exact.fits(form, work)? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }
}

impl Check for Policy {
    fn judge(&self, case: &Case<'_>) -> Outcome {
        let (work, mut evidence, mut wrong, mut left) = (Work::new(), Vec::new(), 0_usize, false);
        for (index, call) in case.steps().iter().enumerate() {
            match self.wrong(call, &work) {
                Ok(None) => {}
                Ok(Some(label)) => {
                    wrong += 1;
                    if evidence.len() < EVIDENCE_MAX {
                        evidence.push(Evidence::ToolCall { index, tool_name: call.tool_name.clone(), label });
                    }
                }
                Err(TooMuch) => left = true,
            }
        }
        let calls = case.steps().len();
        match (wrong, left) {
            (0, true) => defeated("the arguments of these calls are larger than can be held against the policy"),
            (0, false) => Outcome::Pass(Finding::new(1.0, format!("all {calls} tool calls are within the policy"))),
            _ => {
                let message = format!("{wrong} of {calls} tool calls are not within the policy");
                Outcome::Fail(Finding::new(0.0, message).with(evidence))
            }
        }
    }

    fn bytes(&self) -> usize {
        let entries = self.allow.iter().flatten().chain(&self.deny);
        entries.map(|entry| (1 + entry.arguments.len()) * CHARS_MAX * 16).sum()
    }
}

/// Arguments that came as a text of JSON, as some recorders write them.
fn read(input: &Value) -> Value {
    let text = input.as_str().filter(|text| text.trim_start().starts_with(['{', '[']));
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| input.clone())
}

fn forms(value: &Value, work: &Work) -> Result<Forms, TooMuch> {
    let forms = match value {
        Value::String(text) => Forms::of(text),
        other => Forms::of(&other.to_string()),
    };
    work.take(forms.forms.iter().map(Vec::len).sum::<usize>() * 2)?;
    Ok(forms)
}

/// The values at a pointer. False when there are more of them than are looked at.
fn elements<'v>(value: &'v Value, pointer: &[String], found: &mut Vec<&'v Value>) -> bool {
    let Some((name, rest)) = pointer.split_first() else {
        found.push(value);
        return found.len() <= ELEMENTS_MAX;
    };
    match value {
        Value::Object(fields) => fields.get(name).is_none_or(|inner| elements(inner, rest, found)),
        Value::Array(items) if name == "-" => {
            let all = items.iter().take(ELEMENTS_MAX).all(|item| elements(item, rest, found));
            all && items.len() <= ELEMENTS_MAX
        }
        Value::Array(items) => {
            let item = name.parse::<usize>().ok().and_then(|at| items.get(at));
            item.is_none_or(|item| elements(item, rest, found))
        }
        _ => true,
    }
}

/// The single values at and below a pointer. False when there are more of them than are looked at.
fn leaves<'v>(value: &'v Value, pointer: &[String], found: &mut Vec<&'v Value>, work: &Work) -> Result<bool, TooMuch> {
    let mut places = Vec::new();
    let mut whole = elements(value, pointer, &mut places);
    while let Some(place) = places.pop() {
        work.take(1)?;
        match place {
            Value::Array(items) => places.extend(items),
            Value::Object(fields) => places.extend(fields.values()),
            leaf if found.len() < ELEMENTS_MAX => found.push(leaf),
            _ => whole = false,
        }
    }
    Ok(whole)
}

fn entries(config: &Map<String, Value>, list: &str) -> Result<Option<Vec<Entry>>, Problem> {
    let Some(given) = config.get(list).filter(|given| !given.is_null()) else { return Ok(None) };
    let what = "must be a list of {tool, args}: a glob for the tool's name, and globs for arguments by JSON Pointer";
    let items = given.as_array().ok_or_else(|| problem(&field(list), what))?;
    items
        .iter()
        .enumerate()
        .map(|(at, item)| entry(&field(&format!("{list}[{at}]")), item))
        .collect::<Result<_, _>>()
        .map(Some)
}

fn entry(place: &str, item: &Value) -> Result<Entry, Problem> {
    if let Value::String(tool) = item {
        return Ok(Entry { tool: Pair::new(bounded(place, tool)?, Glob::of_name), arguments: Vec::new() });
    }
    let fields = item.as_object().ok_or_else(|| problem(place, "must be {tool, args} or the tool's glob alone"))?;
    let valid = || vec!["tool".to_owned(), "args".to_owned()];
    if fields.keys().any(|key| !matches!(key.as_str(), "tool" | "args")) {
        return Err(Problem { valid: valid(), ..problem(place, "has an unknown key; valid: tool, args") });
    }
    let tool = fields.get("tool").and_then(Value::as_str);
    let tool = tool.ok_or_else(|| Problem { valid: valid(), ..problem(place, "needs tool, a glob for its name") })?;
    let tool = Pair::new(bounded(&format!("{place}.tool"), tool)?, Glob::of_name);
    let place = format!("{place}.args");
    let empty = Map::new();
    let args = match fields.get("args") {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(args)) if args.len() <= ARGUMENTS_MAX => args,
        _ => {
            let what = format!(
                "must be an object of at most {ARGUMENTS_MAX} globs by JSON Pointer, such as {{\"/path\": \"/data/**\"}}"
            );
            return Err(problem(&place, what));
        }
    };
    let arguments = args.iter().map(|(at, glob)| {
        let glob = glob.as_str().ok_or_else(|| problem(&place, "every argument needs a glob, a text"))?;
        let glob = bounded(&place, glob)?.replace('\\', "/");
        Ok((pointer(&place, at)?, Pair::new(&glob, Glob::of_path)))
    });
    Ok(Entry { tool, arguments: arguments.collect::<Result<_, Problem>>()? })
}

fn bounded<'t>(place: &str, text: &'t str) -> Result<&'t str, Problem> {
    if text.is_empty() || text.chars().nth(CHARS_MAX).is_some() {
        return Err(problem(place, format!("globs and pointers have 1 to {CHARS_MAX} characters")));
    }
    Ok(text)
}

/// A JSON Pointer's parts. Source: <https://www.rfc-editor.org/rfc/rfc6901>.
fn pointer(place: &str, text: &str) -> Result<Vec<String>, Problem> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let rest = bounded(place, text)?.strip_prefix('/');
    let rest =
        rest.ok_or_else(|| problem(place, "arguments are named by JSON Pointers, such as /path or /files/-/name"))?;
    Ok(rest.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect())
}
