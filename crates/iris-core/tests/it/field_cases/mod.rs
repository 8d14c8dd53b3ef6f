//! Faults that people met in the field, turned into requests and right answers, by the ids of the list they come from.
//!
//! Requests are OTLP/JSON as a program would send them, read by the same code. Every case is understood in the order it is
//! sent, backwards, and with every span in a request of its own, and must come out the same.

mod group2;
mod group3;
mod group4;
mod ids;

use std::collections::BTreeMap;
use std::sync::Arc;

use iris_core::assemble::understand;
use iris_core::dialect;
use iris_core::evaluate::{Ruleset, Settings, compose, judge_trace};
use iris_core::model::{Evaluation, Lane, Observation, Position, Row, RowKey, Tenant, Timestamp, Trace};
use iris_core::otlp::{self, Encoding};
use serde_json::{Value, json};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// Spans and log records of one trace, each with its scope.
#[derive(Default, Clone)]
struct Sent {
    spans: Vec<(String, Value)>,
    logs: Vec<Value>,
}

impl Sent {
    /// A span a millisecond after the one before; parent 0 is none.
    fn span(self, id: u8, parent: u8, name: &str, attributes: &Value) -> Self {
        let start = 1_000_000_000_000 + self.spans.len() as u64 * 1_000_000;
        self.timed(id, parent, name, start, start + 500_000, attributes)
    }

    fn timed(mut self, id: u8, parent: u8, name: &str, start: u64, end: u64, attributes: &Value) -> Self {
        let mut span = json!({
            "traceId": TRACE, "spanId": span_id(id), "name": name, "kind": 1,
            "startTimeUnixNano": start.to_string(), "endTimeUnixNano": end.to_string(),
            "attributes": attributes_of(attributes),
        });
        if parent > 0 {
            span["parentSpanId"] = json!(span_id(parent));
        }
        self.spans.push((String::new(), span));
        self
    }

    /// Changes the span added last.
    fn with(mut self, change: impl Fn(&mut Value)) -> Self {
        change(&mut self.spans.last_mut().unwrap().1);
        self
    }

    /// The instrumentation of the span added last.
    fn by(mut self, scope: &str) -> Self {
        scope.clone_into(&mut self.spans.last_mut().unwrap().0);
        self
    }

    fn event(self, name: &str, attributes: &Value) -> Self {
        self.with(|span| {
            let event = json!({"name": name, "timeUnixNano": "1", "attributes": attributes_of(attributes)});
            match span["events"].as_array_mut() {
                Some(events) => events.push(event),
                None => span["events"] = json!([event]),
            }
        })
    }

    fn log(mut self, id: u8, event_name: &str, attributes: &Value) -> Self {
        self.logs.push(json!({
            "traceId": TRACE, "spanId": span_id(id), "timeUnixNano": "2", "eventName": event_name,
            "attributes": attributes_of(attributes),
        }));
        self
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (seq, (scope, span)) in (1..).zip(&self.spans) {
            let body = json!({"resourceSpans": [{
                "resource": {"attributes": attributes_of(&json!({"service.name": "harbor"}))},
                "scopeSpans": [{"scope": {"name": scope}, "spans": [span]}],
            }]});
            for span in otlp::decode_spans(Encoding::Json, body.to_string().as_bytes()).unwrap() {
                rows.push(Row {
                    tenant: Tenant::local(),
                    position: Position { lane: Lane::Traces, seq, ordinal: 0 },
                    received: Timestamp::default(),
                    trace_id: span.trace_id,
                    span_id: span.span_id,
                    content_hash: otlp::content_hash_span(&span),
                    reading: dialect::read_span(&span),
                    observation: Observation::Span(span),
                });
            }
        }
        for (seq, log) in (1000..).zip(&self.logs) {
            let body = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [log]}]}]});
            for log in otlp::decode_logs(Encoding::Json, body.to_string().as_bytes()).unwrap() {
                rows.push(Row {
                    tenant: Tenant::local(),
                    position: Position { lane: Lane::Logs, seq, ordinal: 0 },
                    received: Timestamp::default(),
                    trace_id: log.trace_id.unwrap(),
                    span_id: log.span_id.unwrap(),
                    content_hash: otlp::content_hash_log(&log),
                    reading: dialect::read_log(&log).expect("a dialect reads it"),
                    observation: Observation::Log(log),
                });
            }
        }
        rows
    }

    /// What is understood, whatever the order.
    fn trace(&self) -> Trace {
        let rows: Vec<Arc<Row>> = self.rows().into_iter().map(Arc::new).collect();
        let key = RowKey { tenant: Tenant::local(), trace_id: TRACE.parse().unwrap() };
        let trace = understand(&key, 1, &rows).expect("a trace");
        let mut other = rows.clone();
        other.reverse();
        assert_eq!(understand(&key, 1, &other).as_ref(), Some(&trace), "backwards");
        let middle = other.len() / 2;
        other.rotate_left(middle);
        assert_eq!(understand(&key, 1, &other).as_ref(), Some(&trace), "turned around");
        trace
    }
}

fn span_id(id: u8) -> String {
    format!("{id:02x}000000000000aa")
}

/// Plain JSON as OTLP attributes.
fn attributes_of(plain: &Value) -> Value {
    let pair = |(key, value): (&String, &Value)| json!({"key": key, "value": any_value(value)});
    plain.as_object().unwrap().iter().map(pair).collect()
}

fn any_value(plain: &Value) -> Value {
    match plain {
        Value::String(text) => json!({"stringValue": text}),
        Value::Bool(truth) => json!({"boolValue": truth}),
        Value::Number(number) if number.is_f64() => json!({"doubleValue": number}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::Array(items) => json!({"arrayValue": {"values": items.iter().map(any_value).collect::<Vec<_>>()}}),
        Value::Object(_) => json!({"kvlistValue": {"values": attributes_of(plain)}}),
        Value::Null => json!({}),
    }
}

/// Attributes of a model call of the conventions, and more.
fn chat(more: &Value) -> Value {
    let mut attributes =
        json!({"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o"});
    attributes.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    attributes
}

fn counted(input: u64, output: u64) -> Value {
    chat(&json!({"gen_ai.usage.input_tokens": input, "gen_ai.usage.output_tokens": output}))
}

fn agent(name: &str) -> Value {
    json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name})
}

fn tool(name: &str, arguments: &Value) -> Value {
    json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.arguments": arguments.to_string()})
}

fn says(role: &str, text: &str) -> Value {
    json!([{"role": role, "parts": [{"type": "text", "content": text}]}])
}

fn tokens(trace: &Trace) -> (Option<u64>, Option<u64>) {
    let usage = trace.token_usage.unwrap_or_default();
    (usage.prompt_tokens, usage.completion_tokens)
}

fn tools(trace: &Trace) -> Vec<&str> {
    trace.tool_calls.iter().flatten().map(|call| call.tool_name.as_str()).collect()
}

fn evaluation(trace: &Trace) -> Evaluation {
    judge_trace(&Ruleset::built_in(), trace, &Settings::default(), Timestamp::default())
}

/// What each rule said of a trace, and why it was skipped.
fn results(trace: &Trace) -> BTreeMap<String, String> {
    let evaluation = evaluation(trace);
    evaluation.rule_results.iter().map(|result| (result.rule_name.to_string(), result.state.to_string())).collect()
}

/// State and basis of the verdict.
fn verdict(trace: &Trace) -> (String, String) {
    let verdict = serde_json::to_value(compose(&evaluation(trace))).unwrap();
    (verdict["state"].as_str().unwrap().to_owned(), verdict["basis"].as_str().unwrap().to_owned())
}

fn close(got: Option<f64>, want: f64) {
    let got = got.expect("a cost");
    assert!((got - want).abs() < 1e-9, "{got} is not {want}");
}
