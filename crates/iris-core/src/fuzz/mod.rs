//! Every parser of the core that reads what strangers wrote, each as one function of bytes with what must hold of any
//! bytes whatever. Nothing but fuzzers (`fuzz/`) and the tests beside this calls it; no build of the product has it.
//!
//! A function returns when the bytes do no harm, and panics when a promise is broken.

#[cfg(test)]
pub mod run;
#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

use serde_json::Value;

use crate::citation::{self, Guard, Target};
use crate::dialect::{self, salvage};
use crate::evaluate::{self, Ruleset, Settings};
use crate::model::{Lane, Observation, Position, RawSpan, Row, RowKey, Tenant, Timestamp};
use crate::otlp::{self, Encoding, Limits};
use crate::{assemble, contract};

/// Longer bodies are judged only as far as the trace they make.
const JUDGED_BYTES_MAX: usize = 4096;

/// A body as OTLP/protobuf: what the walk takes decodes, counts the same again, and becomes a trace that is judged.
pub fn otlp_protobuf(data: &[u8]) {
    otlp(Encoding::Protobuf, data);
}

/// A body as OTLP/JSON: the same, and it means the same as the protobuf it is transcoded to.
pub fn otlp_json(data: &[u8]) {
    otlp(Encoding::Json, data);
    for lane in Lane::ALL {
        let Ok(walked) = otlp::walk(lane, Encoding::Json, data, &Limits::default()) else { continue };
        let taken = walked.rewritten.as_deref().unwrap_or(data);
        let protobuf = otlp::json_to_protobuf(lane, taken).expect("what is taken can be transcoded");
        match lane {
            Lane::Traces => assert_eq!(
                otlp::decode_spans(Encoding::Json, taken).expect("it was taken"),
                otlp::decode_spans(Encoding::Protobuf, &protobuf).expect("it was transcoded"),
            ),
            Lane::Logs => assert_eq!(
                otlp::decode_logs(Encoding::Json, taken).expect("it was taken"),
                otlp::decode_logs(Encoding::Protobuf, &protobuf).expect("it was transcoded"),
            ),
            Lane::Metrics => {}
        }
    }
}

fn otlp(encoding: Encoding, data: &[u8]) {
    for lane in Lane::ALL {
        let Ok(walked) = otlp::walk(lane, encoding, data, &Limits::default()) else { continue };
        assert!(walked.rejected == 0 || walked.rewritten.is_some(), "what is rejected is cut out");
        // A metric that cannot be read goes too when it has no point: nothing is rejected then, and it is named.
        assert!(walked.rewritten.is_none() || walked.message.is_some(), "what is cut out is named");
        let taken = walked.rewritten.as_deref().unwrap_or(data);
        if let Ok(again) = otlp::walk(lane, encoding, taken, &Limits::default()) {
            assert_eq!((again.items, again.rejected, again.rewritten), (walked.items, 0, None));
        } else {
            assert_eq!(walked.items, 0, "nothing but what nobody knows may be left");
        }
        let items = match lane {
            Lane::Traces => {
                let spans = otlp::decode_spans(encoding, taken).expect("what is taken decodes");
                let items = spans.len() as u64;
                understood(spans, data.len() <= JUDGED_BYTES_MAX);
                items
            }
            Lane::Logs => {
                let logs = otlp::decode_logs(encoding, taken).expect("what is taken decodes");
                for log in &logs {
                    let _ = (dialect::read_log(log), dialect::step_of(log));
                }
                logs.len() as u64
            }
            Lane::Metrics => walked.items,
        };
        assert_eq!(items, walked.items, "what is counted is what is decoded");
        let none = otlp::without(lane, encoding, taken, &mut |_| true);
        if lane == Lane::Traces && walked.items > 0 {
            assert_eq!(none.expect("it was taken").items, 0, "of unwanted traces nothing stays");
        }
    }
}

/// The traces that the spans make, and what the rules say of each.
fn understood(spans: Vec<RawSpan>, is_judged: bool) {
    static RULES: LazyLock<(Ruleset, Settings)> = LazyLock::new(|| (Ruleset::built_in(), Settings::default()));
    let rows: Vec<Arc<Row>> = spans
        .into_iter()
        .zip(0..)
        .map(|(span, ordinal)| {
            Arc::new(Row {
                tenant: Tenant::local(),
                position: Position { lane: Lane::Traces, seq: 1, ordinal },
                received: Timestamp::default(),
                trace_id: span.trace_id,
                span_id: span.span_id,
                content_hash: otlp::content_hash_span(&span),
                reading: dialect::read_span(&span),
                observation: Observation::Span(span),
            })
        })
        .collect();
    let Some(first) = rows.first() else { return };
    let key = RowKey { tenant: Tenant::local(), trace_id: first.trace_id };
    let own: Vec<Arc<Row>> = rows.iter().filter(|row| row.trace_id == key.trace_id).cloned().collect();
    let Some(trace) = assemble::understand(&key, 1, &own) else { return };
    let written = serde_json::to_string(&trace).expect("a trace has a JSON form");
    let read: crate::model::Trace = serde_json::from_str(&written).expect("it reads back");
    assert_eq!(serde_json::to_string(&read).expect("it has a JSON form"), written, "a stored trace is the trace");
    if is_judged {
        let (rules, settings) = &*RULES;
        let evaluation = evaluate::judge_trace(rules, &trace, settings, Timestamp::default());
        let written = serde_json::to_string(&evaluation).expect("an evaluation has a JSON form");
        let read: crate::model::Evaluation = serde_json::from_str(&written).expect("it reads back");
        assert_eq!(serde_json::to_string(&read).expect("it has a JSON form"), written);
    }
}

/// A text that may hold JSON, whole or cut: what comes out nests within the limit and reads back.
pub fn json_salvage(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some(value) = salvage::json(&text) {
        reads_back(&value);
    }
    let value = Value::String(text.into_owned());
    reads_back(&salvage::unwrapped(&value));
}

/// A text that may be how Python prints a value.
pub fn python_repr(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some(value) = salvage::python(&text) {
        assert!(value.is_object() || value.is_array());
        reads_back(&value);
    }
    let _ = (salvage::is_repr(&text), salvage::is_missing(&text));
    if let Some(field) = salvage::repr_field(&text, "content") {
        assert!(text.contains(field) && !field.contains('\''));
    }
}

/// Values are stored within others and must not grow past what the parser reads.
fn reads_back(value: &Value) {
    let inside = serde_json::json!({ "rows": [{ "trace": { "runs": [{ "tool_calls": [{ "input": value }] }] } }] });
    let written = inside.to_string();
    let read: Value = serde_json::from_str(&written).expect("what was read can be stored and read back");
    assert_eq!(read, inside);
}

/// A text that may cite sources: an address that is let through leads nowhere that is forbidden, however it is read again.
pub fn address(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let guard = Guard::default();
    let check = |target: &Target| {
        assert!(target.literal().is_none_or(|address| guard.refuses(address).is_none()), "{}", target.as_str());
        assert!(matches!(target.port(), 80 | 443));
        let again = Target::parse(target.as_str(), &guard).expect("what was let through is let through again");
        assert_eq!(&again, target);
    };
    if let Ok(target) = Target::parse(&text, &guard) {
        check(&target);
    }
    let from = Target::parse("https://public.example.org/a/b", &guard).expect("it is a public name");
    if let Ok(target) = from.redirected(&text, &guard) {
        check(&target);
        assert!(target.is_secure());
    }
    let length = text.chars().count();
    for citation in citation::find(&text).citations {
        assert!(
            citation.span.start() <= citation.span.end() && citation.span.end() <= length,
            "offsets are code points of the text"
        );
    }
}

/// The arguments of the tools that take more than a name.
pub fn tool_arguments(data: &[u8]) {
    let Ok(arguments) = serde_json::from_slice::<Value>(data) else { return };
    let _ = contract::parse::<contract::LogTraceArgs>(arguments.clone());
    let _ = contract::parse::<contract::EvaluateOutputArgs>(arguments.clone());
    let _ = contract::parse::<contract::GetTracesArgs>(arguments.clone());
    let _ = contract::parse::<contract::DeployRuleArgs>(arguments);
}
