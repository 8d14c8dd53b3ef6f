//! A judge's answer, read strictly: the last object of its own counts, and what is cut, refused or ambiguous has no
//! score.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::Template;

/// Code points of a rationale that are kept.
const RATIONALE_CHARS_MAX: usize = 4_000;

/// Why an answer has no score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// There is no text.
    #[error("the answer is empty")]
    Empty,
    /// No JSON object stands in it.
    #[error("the answer holds no JSON object")]
    NoObject,
    /// It ends inside an object, or the model was stopped before it had finished.
    #[error("the answer is cut off")]
    Cut,
    /// The last thing that looks like an object is none.
    #[error("the last object of the answer is not valid JSON")]
    NotJson,
    /// The last object is not shaped as asked, or says the same thing twice.
    #[error("the last object of the answer is not shaped as asked")]
    Shape,
    /// The score, or the confidence, is no number from 0 to 1.
    #[error("the last object of the answer holds no number from 0 to 1 where one is asked for")]
    Range,
    /// The model would not judge.
    #[error("the model refused to judge")]
    Refused,
}

/// What a judge ruled.
#[derive(Debug, Clone, PartialEq)]
pub struct Ruling {
    /// 0 to 1, two decimals.
    pub score: f64,
    /// What the model said of passing; recorded, never obeyed.
    pub self_reported_pass: Option<bool>,
    /// Why, in its words.
    pub rationale: String,
    /// The dimensions it scored, 0 to 1.
    pub dimensions: BTreeMap<String, f64>,
}

impl Ruling {
    /// Whether the score reaches the template's threshold.
    pub fn reaches(&self, template: Template) -> bool {
        self.score >= template.threshold()
    }
}

/// What a judge said of one citation.
#[derive(Debug, Clone, PartialEq)]
pub struct Support {
    /// The source says what is claimed.
    pub supported: bool,
    /// How sure the judge is, 0 to 1, two decimals.
    pub confidence: f64,
    /// Why, in its words.
    pub rationale: String,
}

/// The object of a judgement. A name that stands twice is refused by the reader.
#[derive(Deserialize)]
struct RulingObject {
    score: Option<Value>,
    #[serde(default)]
    passed: Option<Value>,
    #[serde(default)]
    rationale: Option<Value>,
    #[serde(default)]
    dimensions: Option<Value>,
}

/// The object on a citation.
#[derive(Deserialize)]
struct SupportObject {
    supported: Option<bool>,
    confidence: Option<Value>,
    #[serde(default)]
    rationale: Option<Value>,
}

/// Objects that an answer may hold; one that quotes more is no answer.
const OBJECTS_MAX: usize = 64;

/// Reads a judgement. `judged` are the texts the judge read: an object that stands in one of them is a quote of it,
/// wherever in the answer it stands.
///
/// # Errors
/// See [`Malformed`]: there is never a default score.
pub fn read_ruling(text: &str, template: Template, judged: &[&str]) -> Result<Ruling, Malformed> {
    let object: RulingObject = serde_json::from_str(last_object(text, judged)?).map_err(|_| Malformed::Shape)?;
    let score = share(object.score.as_ref())?;
    let named = template.dimensions();
    let dimensions = match object.dimensions {
        Some(Value::Object(fields)) => fields
            .iter()
            .filter(|(name, _)| named.iter().any(|dimension| dimension.name == name.as_str()))
            .filter_map(|(name, value)| Some((name.clone(), share(Some(value)).ok()?)))
            .collect(),
        _ => BTreeMap::new(),
    };
    Ok(Ruling {
        score,
        self_reported_pass: object.passed.as_ref().and_then(Value::as_bool),
        rationale: rationale(object.rationale),
        dimensions,
    })
}

/// Reads what was said of a citation; `judged` as in [`read_ruling`].
///
/// # Errors
/// See [`Malformed`]: what cannot be read is never taken for unsupported.
pub fn read_support(text: &str, judged: &[&str]) -> Result<Support, Malformed> {
    let object: SupportObject = serde_json::from_str(last_object(text, judged)?).map_err(|_| Malformed::Shape)?;
    Ok(Support {
        supported: object.supported.ok_or(Malformed::Shape)?,
        confidence: share(object.confidence.as_ref())?,
        rationale: rationale(object.rationale),
    })
}

/// A number from 0 to 1 with two decimals.
fn share(value: Option<&Value>) -> Result<f64, Malformed> {
    let value = value.and_then(Value::as_f64).ok_or(Malformed::Range)?;
    if (0.0..=1.0).contains(&value) { Ok(rounded(value)) } else { Err(Malformed::Range) }
}

/// To two decimals.
pub fn rounded(value: f64) -> f64 {
    // Adding nought makes a nought of minus nought.
    (value * 100.0).round() / 100.0 + 0.0
}

fn rationale(value: Option<Value>) -> String {
    match value {
        Some(Value::String(text)) => text.chars().take(RATIONALE_CHARS_MAX).collect(),
        _ => String::new(),
    }
}

/// The last object at the top of a text that is not a quote of what was judged. An earlier object never stands in for
/// a last one that cannot be read, and nothing inside a broken object is taken out of it.
fn last_object<'a>(text: &'a str, judged: &[&str]) -> Result<&'a str, Malformed> {
    if text.trim().is_empty() {
        return Err(Malformed::Empty);
    }
    let judged: Vec<String> = judged.iter().map(|text| solid(text)).collect();
    let mut last = Err(Malformed::NoObject);
    for object in objects(text)? {
        let (Ok(slice) | Err(slice)) = object;
        let is_quote = !slice.is_empty() && judged.iter().any(|text| text.contains(&solid(slice)));
        if !is_quote {
            last = object.map_err(|_| Malformed::NotJson);
        }
    }
    last
}

/// Without white space, which a quote may change.
fn solid(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Every object at the top of a text, in order; as an error what only looks like one, empty for a brace that closes
/// nothing.
fn objects(text: &str) -> Result<Vec<Result<&str, &str>>, Malformed> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        if found.len() == OBJECTS_MAX {
            return Err(Malformed::NotJson);
        }
        let tail = rest.get(at..).unwrap_or_default();
        if tail.starts_with('}') {
            found.push(Err(""));
            rest = tail.get(1..).unwrap_or_default();
            continue;
        }
        let mut values = serde_json::Deserializer::from_str(tail).into_iter::<IgnoredAny>();
        let (end, is_json) = match values.next() {
            Some(Ok(_)) => (values.byte_offset(), true),
            Some(Err(error)) if error.is_eof() => return Err(Malformed::Cut),
            _ => (closing(tail).ok_or(Malformed::Cut)?, false),
        };
        let slice = tail.get(..end).unwrap_or_default();
        found.push(if is_json { Ok(slice) } else { Err(slice) });
        rest = tail.get(end..).unwrap_or_default();
    }
    Ok(found)
}

/// One past the brace that closes the first one, whatever stands between.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}
