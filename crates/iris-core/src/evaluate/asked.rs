//! The row of a judgement that a model was asked for, or of citations that were verified: one result, which gates.
//!
//! A call that judged nothing leaves a row that says so: no verdict, never a pass.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::engine::{Identity, finish, inputs};
use super::ruleset::hash;
use super::{Provenance, Ruleset, Settings};
use crate::model::{EvalType, Evaluation, Name, RuleResult, Timestamp, VerdictState};
use crate::rules::{Bundle, Kind, Need, Question, SkipClass};

/// What a model was asked, and what came of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Judged {
    /// Names the row's one result: tool, template and model.
    pub rule: String,
    /// A judgment or a verification.
    pub kind: Kind,
    /// The question it answers.
    pub question: Question,
    /// What it came to.
    pub ruled: Ruled,
    /// One sentence, without a word of what was judged or of what the model said.
    pub message: String,
    /// Model, settings and narrowed arguments, for the provenance.
    pub judge: Value,
    /// The tool's reply, to be read again.
    pub answered: Value,
}

/// What a judgement came to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ruled {
    /// A score from 0 to 1 and whether it is enough.
    Scored(f64, bool),
    /// Nothing was judged.
    Nothing,
}

/// What was judged.
#[derive(Debug, Clone, Copy, Default)]
pub struct Given<'a> {
    /// The output.
    pub output: &'a str,
    /// What was asked of whoever wrote it.
    pub input: Option<&'a str>,
    /// What was expected.
    pub expected: Option<&'a str>,
}

/// Makes the row.
pub fn asked(
    ruleset: &Ruleset,
    settings: &Settings,
    judged: Judged,
    given: Given<'_>,
    identity: Identity,
    now: Timestamp,
) -> Evaluation {
    let carries = |need: Need| match need {
        Need::Output => true,
        Need::Input => given.input.is_some(),
        Need::Expected => given.expected.is_some(),
        _ => false,
    };
    let saw = Need::ALL.iter().filter(|need| carries(**need)).map(|need| Name::Borrowed(need.as_str())).collect();
    let result = result(&judged, saw);
    // What other evaluations must have seen is nothing that a model was asked about.
    let composer = settings.composer(&[]);
    let mut provenance = Provenance::template(ruleset, settings, &composer);
    let ran = json!([[result.rule_name, result.rule_version, result.kind, result.critical, result.weight.to_string()]]);
    provenance.ruleset_hash = hash(&ran.to_string());
    provenance.judged_at = now.to_string();
    let mut provenance = provenance.into_value();
    if let Some(fields) = provenance.as_object_mut() {
        fields.insert("judge".to_owned(), judged.judge);
    }
    let mut answered = judged.answered;
    if let Some(fields) = answered.as_object_mut() {
        fields.insert("id".to_owned(), json!(identity.id));
        match &identity.trace_id {
            Some(id) => fields.insert("trace_id".to_owned(), json!(id)),
            None => fields.shift_remove("trace_id"),
        };
    }
    let mut evaluation = Evaluation {
        id: identity.id,
        tenant: identity.tenant,
        trace_id: identity.trace_id,
        trace_version: identity.trace_version,
        eval_type: EvalType::Custom,
        created_at: now,
        inline: identity.inline,
        seen_through: identity.seen_through,
        position: identity.position,
        output_text: Some(given.output.to_owned()),
        expected_text: given.expected.map(str::to_owned),
        score: 0.0,
        passed: false,
        state: VerdictState::Unknown,
        rule_results: vec![result],
        inputs: inputs(carries),
        suggestions: Vec::new(),
        provenance,
        answered: Some(answered),
        erased_at: None,
    };
    finish(&mut evaluation, &composer);
    evaluation
}

fn result(asked: &Judged, saw: Vec<Name>) -> RuleResult {
    let (state, passed, score) = match asked.ruled {
        Ruled::Scored(score, true) => ("pass", true, score),
        Ruled::Scored(score, false) => ("fail", false, score),
        Ruled::Nothing => ("not_checked", false, 0.0),
    };
    let skipped = asked.ruled == Ruled::Nothing;
    let why = match asked.kind {
        Kind::Verification => "the check is as good as the source it reads",
        _ => "a model's judgment has no error rate of its own",
    };
    RuleResult {
        rule_name: asked.rule.clone().into(),
        rule_id: None,
        category: Bundle::Custom.as_str().into(),
        critical: false,
        critical_source: "default".into(),
        state: state.into(),
        passed,
        score,
        message: asked.message.clone(),
        skipped,
        skip_reason: skipped.then(|| asked.message.clone()),
        skip_class: skipped.then(|| SkipClass::NotApplicable.as_str().into()),
        kind: asked.kind.as_str().into(),
        role: None,
        question: asked.question.as_str().into(),
        classes: Vec::new(),
        rule_version: 1,
        origin: None,
        saw,
        uncertainty: (!skipped).then(|| Arc::new(json!({ "basis": "unmeasured", "why": why }))),
        evidence: Vec::new(),
        value: None,
        weight: 1.0,
        stands: false,
        seen_in_version: None,
    }
}

/// Names whose values are words of this program or of its configuration, whatever was judged.
const OUR_WORDS: [&str; 11] = [
    "id",
    "trace_id",
    "model",
    "provider",
    "template",
    "kind",
    "resolve_status",
    "raw_response_id",
    "code",
    "field",
    "setting",
];

/// What a tool answered without a word of what was judged, of its sources or of the model: numbers stay.
pub fn without_words(answered: Value) -> Value {
    match answered {
        Value::String(_) => Value::String(String::new()),
        Value::Array(items) => items.into_iter().map(without_words).collect(),
        Value::Object(fields) => {
            let keep = |(name, value): (String, Value)| {
                let is_ours = value.is_string() && OUR_WORDS.contains(&name.as_str());
                (name, if is_ours { value } else { without_words(value) })
            };
            Value::Object(fields.into_iter().map(keep).collect::<Map<String, Value>>())
        }
        other => other,
    }
}
