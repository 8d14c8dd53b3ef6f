//! A verdict as OTLP log records, for whoever has the spans already.
//!
//! Event `gen_ai.evaluation.result` on the ids of the span that was judged: one record for the verdict, one for each rule
//! that decided it. Scores, labels and the rules' own sentences; never a word of what was judged.
//! Source: <https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-events/#event-gen_aievaluationresult>.

use bytes::Bytes;
use iris_core::evaluate::{self, Verdict};
use iris_core::model::{Evaluation, RuleResult, SpanId, VerdictState};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;

/// The event's name.
pub const EVENT: &str = "gen_ai.evaluation.result";
/// The name under which the verdict itself is told.
pub const VERDICT: &str = "iris.verdict";
/// Who says it: `service.name` and scope.
const US: &str = "iris-sidecar";
/// Rules one verdict may name.
const RULES_MAX: usize = 64;

/// The request that tells of an evaluation of a trace; none when it is of no trace, or says what `previous` said.
pub fn request(evaluation: &Evaluation, previous: Option<&Evaluation>, span: Option<SpanId>) -> Option<Bytes> {
    let trace_id = evaluation.trace_id?;
    let verdict = evaluate::compose(evaluation);
    if previous.is_some_and(|previous| says_the_same(&evaluate::compose(previous), &verdict)) {
        return None;
    }
    let common = common(evaluation, previous);
    let record = |state: VerdictState, attributes: Vec<KeyValue>| LogRecord {
        time_unix_nano: evaluation.created_at.as_unix_nanos(),
        observed_time_unix_nano: evaluation.created_at.as_unix_nanos(),
        severity_number: severity(state).into(),
        event_name: EVENT.to_owned(),
        trace_id: trace_id.as_bytes().to_vec(),
        span_id: span.map(|span| span.as_bytes().to_vec()).unwrap_or_default(),
        attributes: attributes.into_iter().chain(common.iter().cloned()).collect(),
        ..LogRecord::default()
    };
    let mut records = vec![record(verdict.state, told(evaluation, &verdict))];
    let deciding = evaluation.rule_results.iter().filter(|result| verdict.by.iter().any(|by| *by == result.rule_name));
    records.extend(deciding.take(RULES_MAX).map(|result| record(verdict.state, said(result, verdict.state))));
    let scope = InstrumentationScope { name: US.to_owned(), version: version(), ..InstrumentationScope::default() };
    let scope_logs = vec![ScopeLogs { scope: Some(scope), log_records: records, ..ScopeLogs::default() }];
    let attributes = vec![text("service.name", US), text("service.version", &version())];
    let resource = Some(Resource { attributes, ..Resource::default() });
    let resource_logs = vec![ResourceLogs { resource, scope_logs, ..ResourceLogs::default() }];
    Some(ExportLogsServiceRequest { resource_logs }.encode_to_vec().into())
}

fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

fn says_the_same(one: &Verdict, other: &Verdict) -> bool {
    (one.state, one.basis, &one.by) == (other.state, other.basis, &other.by)
}

/// What every record of an evaluation carries.
fn common(evaluation: &Evaluation, previous: Option<&Evaluation>) -> Vec<KeyValue> {
    let mut attributes =
        vec![text("iris.evaluation.id", &evaluation.id), text("iris.tenant", evaluation.tenant.as_str())];
    attributes.extend(evaluation.trace_version.map(|version| number("iris.trace.version", version.into())));
    attributes.extend(previous.map(|previous| text("iris.evaluation.supersedes", &previous.id)));
    attributes
}

/// The verdict.
fn told(evaluation: &Evaluation, verdict: &Verdict) -> Vec<KeyValue> {
    let explanation = match verdict.by.is_empty() {
        true => verdict.basis.as_str().to_owned(),
        false => format!("{}: {}", verdict.basis.as_str(), verdict.by.join(", ")),
    };
    vec![
        text("gen_ai.evaluation.name", VERDICT),
        text("gen_ai.evaluation.score.label", verdict.state.as_str()),
        score(evaluation.score),
        text("gen_ai.evaluation.explanation", &explanation),
        text("iris.verdict.basis", verdict.basis.as_str()),
        attribute("iris.verdict.by", list(&verdict.by)),
    ]
}

/// What a rule said that decided it.
fn said(result: &RuleResult, state: VerdictState) -> Vec<KeyValue> {
    let label = if result.skipped { VerdictState::Unknown.as_str() } else { state.as_str() };
    let mut attributes = vec![
        text("gen_ai.evaluation.name", &result.rule_name),
        text("gen_ai.evaluation.score.label", label),
        text("gen_ai.evaluation.explanation", result.skip_reason.as_deref().unwrap_or(&result.message)),
        text("iris.rule.category", &result.category),
        number("iris.rule.version", result.rule_version.into()),
    ];
    attributes.extend((!result.skipped).then(|| score(result.score)));
    attributes
}

const fn severity(state: VerdictState) -> SeverityNumber {
    match state {
        VerdictState::Pass => SeverityNumber::Info,
        VerdictState::Fail | VerdictState::Unknown => SeverityNumber::Warn,
    }
}

fn score(score: f64) -> KeyValue {
    attribute("gen_ai.evaluation.score.value", Value::DoubleValue(score))
}

fn text(key: &str, text: &str) -> KeyValue {
    attribute(key, Value::StringValue(text.to_owned()))
}

fn number(key: &str, number: i64) -> KeyValue {
    attribute(key, Value::IntValue(number))
}

fn list(texts: &[String]) -> Value {
    let value = |text: &String| AnyValue { value: Some(Value::StringValue(text.clone())) };
    Value::ArrayValue(ArrayValue { values: texts.iter().map(value).collect() })
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}
