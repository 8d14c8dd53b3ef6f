//! What rules say again and again is stored once, in the table `shapes`.
//!
//! An evaluation has a result of every rule, and all but a few words of most of them were in the evaluation before: the
//! rule's name, kind, question, classes, weight and what is known of its accuracy. Those words are a shape. An
//! evaluation's row names the shapes and keeps what was said of its own output.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, PoisonError, RwLock};

use duckdb::{Appender, Connection, params};
use iris_core::model::{Evidence, RuleResult};
use serde::Serialize;
use serde_json::{Map, Value};

use super::Error;

/// Shapes of a file; a result of one more is stored whole.
const SHAPES_MAX: usize = 8192;

/// A result without what was said of one output.
fn shape_of(result: &RuleResult) -> RuleResult {
    RuleResult {
        score: 0.0,
        message: String::new(),
        skip_reason: None,
        evidence: Vec::new(),
        value: None,
        stands: false,
        seen_in_version: None,
        ..result.clone()
    }
}

/// The fields that [`shape_of`] leaves out.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Said<'a> {
    shape: u32,
    score: f64,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    skip_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    evidence: &'a [Evidence],
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stands: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen_in_version: Option<u32>,
}

/// A result as it is stored.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Stored<'a> {
    Said(Said<'a>),
    Whole(&'a RuleResult),
}

fn is_shaped(result: &RuleResult, shape: &RuleResult) -> bool {
    // Named one by one, so that a field added to a result is not forgotten here.
    let RuleResult {
        rule_name,
        rule_id,
        category,
        critical,
        critical_source,
        state,
        passed,
        score: _,
        message: _,
        skipped,
        skip_reason: _,
        skip_class,
        kind,
        role,
        question,
        classes,
        rule_version,
        origin,
        saw,
        uncertainty,
        evidence: _,
        value: _,
        weight,
        stands: _,
        seen_in_version: _,
    } = result;
    *rule_name == shape.rule_name
        && *rule_id == shape.rule_id
        && *category == shape.category
        && (*critical, *passed, *skipped) == (shape.critical, shape.passed, shape.skipped)
        && *critical_source == shape.critical_source
        && *state == shape.state
        && *skip_class == shape.skip_class
        && *kind == shape.kind
        && *role == shape.role
        && *question == shape.question
        && *classes == shape.classes
        && *rule_version == shape.rule_version
        && *origin == shape.origin
        && *saw == shape.saw
        && *uncertainty == shape.uncertainty
        && weight.to_bits() == shape.weight.to_bits()
}

/// The shapes of a file, for the writer, which adds to them, and for readers.
#[derive(Debug, Clone, Default)]
pub(super) struct Known(Arc<RwLock<HashMap<u32, Map<String, Value>>>>);

impl Known {
    /// A stored result as JSON, whole again.
    pub fn whole(&self, result: Value) -> Result<Value, String> {
        let Value::Object(mut said) = result else { return Err("a result that is no object".to_owned()) };
        let Some(shape) = said.remove("shape") else { return Ok(Value::Object(said)) };
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let number = shape.as_u64().and_then(|number| u32::try_from(number).ok());
        let shape = number.and_then(|number| known.get(&number));
        let mut whole = shape.ok_or_else(|| "a result of a shape that is not there".to_owned())?.clone();
        whole.extend(said);
        Ok(Value::Object(whole))
    }

    fn insert(&self, number: u32, shape: Map<String, Value>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(number, shape);
    }

    fn remove(&self, number: u32) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&number);
    }
}

/// Numbers shapes and collects the new ones until they are appended.
#[derive(Default)]
pub(super) struct Shapes {
    last: u32,
    /// How many there are: numbers may be left out.
    count: usize,
    by_name: HashMap<u64, Vec<(RuleResult, u32)>>,
    hasher: RandomState,
    /// Not yet committed.
    fresh: Vec<(u32, u64, String)>,
    /// How many of them are appended.
    appended: usize,
    known: Known,
}

impl Shapes {
    /// The shapes that the file has.
    pub fn of(connection: &Connection) -> Result<Self, Error> {
        let mut shapes = Self::default();
        let mut statement = connection.prepare("SELECT id, body FROM shapes ORDER BY id").map_err(Error::engine)?;
        let mut rows = statement.query([]).map_err(Error::engine)?;
        while let Some(row) = rows.next().map_err(Error::engine)? {
            let read = || -> duckdb::Result<(u32, String)> { Ok((row.get(0)?, row.get(1)?)) };
            let (number, body) = read().map_err(Error::engine)?;
            shapes.last = shapes.last.max(number);
            shapes.count += 1;
            // One that no longer parses is not used again; results of it are unreadable, and nothing else is.
            if let (Ok(shape), Ok(Value::Object(object))) = (serde_json::from_str(&body), serde_json::from_str(&body)) {
                shapes.by_name.entry(shapes.key(&shape)).or_default().push((shape, number));
                shapes.known.insert(number, object);
            }
        }
        Ok(shapes)
    }

    /// For readers.
    pub fn known(&self) -> Known {
        self.known.clone()
    }

    /// Candidates of one key are compared field by field.
    fn key(&self, result: &RuleResult) -> u64 {
        let mut state = self.hasher.build_hasher();
        (&result.rule_name, &result.state, result.saw.len()).hash(&mut state);
        std::hash::Hasher::finish(&state)
    }

    /// The results as they are stored.
    pub fn results<'a>(&mut self, results: &'a [RuleResult]) -> Result<Vec<Stored<'a>>, Error> {
        results.iter().map(|result| self.result(result)).collect()
    }

    fn result<'a>(&mut self, result: &'a RuleResult) -> Result<Stored<'a>, Error> {
        let key = self.key(result);
        let found = self.by_name.get(&key).and_then(|shapes| shapes.iter().find(|(shape, _)| is_shaped(result, shape)));
        let shape = match found {
            Some((_, number)) => *number,
            None if self.count >= SHAPES_MAX => return Ok(Stored::Whole(result)),
            None => self.add(key, shape_of(result))?,
        };
        Ok(Stored::Said(Said {
            shape,
            score: result.score,
            message: &result.message,
            skip_reason: result.skip_reason.as_deref(),
            evidence: &result.evidence,
            value: result.value.as_ref(),
            stands: result.stands,
            seen_in_version: result.seen_in_version,
        }))
    }

    fn add(&mut self, key: u64, shape: RuleResult) -> Result<u32, Error> {
        let bad = |error: serde_json::Error| Error::Engine(format!("a rule's result has no JSON form: {error}"));
        let object: Map<String, Value> =
            serde_json::from_value(serde_json::to_value(&shape).map_err(bad)?).map_err(bad)?;
        let body = serde_json::to_string(&object).map_err(bad)?;
        self.last += 1;
        self.count += 1;
        self.known.insert(self.last, object);
        self.by_name.entry(key).or_default().push((shape, self.last));
        self.fresh.push((self.last, key, body));
        Ok(self.last)
    }

    /// Whether there is nothing to append.
    pub const fn is_empty(&self) -> bool {
        self.fresh.len() == self.appended
    }

    /// Appends the new ones.
    pub fn append(&mut self, appender: &mut Appender<'_>) -> Result<(), Error> {
        for (number, _, body) in self.fresh.iter().skip(self.appended) {
            appender.append_row(params![number, body]).map_err(Error::engine)?;
        }
        self.appended = self.fresh.len();
        Ok(())
    }

    /// The transaction of the new ones was committed.
    pub fn committed(&mut self) {
        self.appended = 0;
        self.fresh.clear();
    }

    /// Their transaction was not committed: the file does not have them.
    pub fn forget(&mut self) {
        self.appended = 0;
        for (number, key, _) in self.fresh.drain(..) {
            self.known.remove(number);
            self.count -= 1;
            if let Some(shapes) = self.by_name.get_mut(&key) {
                shapes.retain(|(_, of)| *of != number);
            }
        }
    }
}
