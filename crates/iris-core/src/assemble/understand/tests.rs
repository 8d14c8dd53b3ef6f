use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::dialect;
use crate::evaluate::{Ruleset, Settings, judge_trace};
use crate::model::{Lane, Observation, Position, RawSpan, Scope, SpanId, SpanKind, StatusCode, Tenant};

/// A trace under construction: spans a millisecond apart, in the order they are added.
#[derive(Default)]
struct Sketch {
    rows: Vec<Row>,
}

impl Sketch {
    #[expect(clippy::needless_pass_by_value, reason = "attributes are written in place")]
    fn span(mut self, id: u8, parent: u8, name: &str, attributes: Value) -> Self {
        let start = u64::try_from(self.rows.len()).unwrap() * 1_000_000 + 1_000_000_000;
        let span = RawSpan {
            trace_id: key().trace_id,
            span_id: span_id(id),
            parent_span_id: (parent > 0).then(|| span_id(parent)),
            flags: 0,
            trace_state: String::new(),
            name: name.to_owned(),
            kind: SpanKind::Internal,
            start: Timestamp::from_unix_nanos(start),
            end: Timestamp::from_unix_nanos(start + 500_000),
            status: StatusCode::Unset,
            status_message: String::new(),
            attributes: attributes.as_object().unwrap().clone(),
            events: Vec::new(),
            links: Vec::new(),
            dropped: 0,
            resource: Arc::new(Resource { attributes: json!({"service.name": "harbor"}).as_object().unwrap().clone() }),
            scope: Arc::new(Scope::default()),
        };
        self.rows.push(row(self.rows.len(), span));
        self
    }

    /// Changes the span added last.
    fn with(mut self, change: impl Fn(&mut RawSpan)) -> Self {
        let last = self.rows.pop().unwrap();
        let Observation::Span(mut span) = last.observation else { panic!("a log") };
        change(&mut span);
        self.rows.push(row(self.rows.len(), span));
        self
    }

    fn failed(self, message: &str) -> Self {
        self.with(|span| {
            span.status = StatusCode::Error;
            span.status_message = message.to_owned();
        })
    }

    fn trace(&self) -> Option<Trace> {
        let rows: Vec<Arc<Row>> = self.rows.iter().cloned().map(Arc::new).collect();
        let trace = understand(&key(), 1, &rows);
        let reversed: Vec<Arc<Row>> = rows.into_iter().rev().collect();
        assert_eq!(understand(&key(), 1, &reversed), trace, "the order of rows matters");
        trace
    }
}

fn key() -> RowKey {
    RowKey { tenant: Tenant::local(), trace_id: "0af7651916cd43dd8448eb211c80319c".parse().unwrap() }
}

fn span_id(id: u8) -> SpanId {
    SpanId::from_bytes(&[id, 0, 0, 0, 0, 0, 0, 1]).unwrap()
}

fn row(at: usize, span: RawSpan) -> Row {
    Row {
        tenant: Tenant::local(),
        position: Position { lane: Lane::Traces, seq: u64::try_from(at).unwrap() + 1, ordinal: 0 },
        received: Timestamp::default(),
        trace_id: span.trace_id,
        span_id: span.span_id,
        content_hash: crate::otlp::content_hash_span(&span),
        reading: dialect::read_span(&span),
        observation: Observation::Span(span),
    }
}

fn agent(name: &str) -> Value {
    json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name})
}

fn says(role: &str, text: &str) -> Value {
    json!([{"role": role, "parts": [{"type": "text", "content": text}]}])
}

fn chat(question: &str, answer: &str, id: &str) -> Value {
    json!({
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.response.id": id, "gen_ai.provider.name": "openai",
        "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2, "gen_ai.usage.cost": 0.5,
        "gen_ai.input.messages": says("user", question), "gen_ai.output.messages": says("assistant", answer),
    })
}

fn silent_chat(more: &Value) -> Value {
    let mut attributes = json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"});
    attributes.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    attributes
}

fn tool(name: &str, more: &Value) -> Value {
    let mut attributes = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name});
    attributes.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    attributes
}

fn names(trace: &Trace) -> Option<Vec<&str>> {
    Some(trace.tool_calls.as_ref()?.iter().map(|call| call.tool_name.as_str()).collect())
}

#[test]
fn an_agent_takes_question_and_answer_from_its_model_calls() {
    let trace = Sketch::default()
        .span(1, 0, "POST /chat", json!({"http.request.method": "POST"}))
        .span(2, 1, "invoke_agent Guide", agent("Guide"))
        .span(3, 2, "chat m", chat("Weather?", "It is 18 C.", "r1"))
        .trace()
        .unwrap();
    assert_eq!(
        (trace.agent_name.as_str(), trace.input.as_deref(), trace.output.as_deref()),
        ("Guide", Some("Weather?"), Some("It is 18 C."))
    );
    assert_eq!((trace.model.as_deref(), trace.provider.as_deref()), (Some("m"), Some("openai")));
    assert_eq!(
        (trace.latency_ms, trace.timestamp.as_unix_nanos()),
        (Some(0.5), 1_001_000_000),
        "of the agent, not of the request"
    );
    assert_eq!((trace.span_count, trace.seen_through, trace.runs.len()), (3, 3, 1));
    assert_eq!(trace.tool_calls, Some(Vec::new()), "the model's answers are known and ask for nothing");
}

#[test]
fn environment_and_version_are_those_of_the_agents_process() {
    let from = |attributes: Value| {
        let resource = Arc::new(Resource { attributes: attributes.as_object().unwrap().clone() });
        let gateway = Arc::new(Resource { attributes: json!({"service.version": "9"}).as_object().unwrap().clone() });
        let trace = Sketch::default()
            .span(1, 0, "POST /chat", json!({"http.request.method": "POST"}))
            .with(|span| span.resource = gateway.clone())
            .span(2, 1, "invoke_agent Guide", agent("Guide"))
            .with(|span| span.resource = resource.clone())
            .trace()
            .unwrap();
        (trace.environment, trace.service_version)
    };
    let text = |text: &str| Some(text.to_owned());
    let both =
        json!({"deployment.environment": "old", "deployment.environment.name": "prod", "service.version": "1.2"});
    assert_eq!(from(both), (text("prod"), text("1.2")));
    assert_eq!(from(json!({"deployment.environment": "old", "deployment.environment.name": ""})), (text("old"), None));
    assert_eq!(from(json!({"service.version": 3})), (None, None), "no text, no version");
}

#[test]
fn spans_without_agent_model_or_tool_are_no_trace() {
    let request = json!({"http.request.method": "POST", "server.address": "api.example.com"});
    assert_eq!(Sketch::default().span(1, 0, "POST", request.clone()).span(2, 1, "POST", request).trace(), None);
    let retrieval = json!({"gen_ai.operation.name": "retrieval", "gen_ai.request.model": "m"});
    assert_eq!(Sketch::default().span(1, 0, "retrieval docs", retrieval).trace(), None);
    let step = json!({"openinference.span.kind": "CHAIN", "output.value": "done"});
    assert_eq!(Sketch::default().span(1, 0, "step", step).trace(), None);
    assert_eq!(
        Sketch::default().span(1, 0, "create_agent a", json!({"gen_ai.operation.name": "create_agent"})).trace(),
        None
    );
    assert_eq!(Sketch::default().span(1, 0, "tools/list", json!({"mcp.method.name": "tools/list"})).trace(), None);
    assert_eq!(Sketch::default().trace(), None);
}

fn embedding(more: &Value) -> Value {
    let mut attributes = json!({"gen_ai.operation.name": "embeddings", "gen_ai.request.model": "small", "gen_ai.provider.name": "openai"});
    attributes.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    attributes
}

#[test]
fn embeddings_alone_are_one_run_that_answers_nothing() {
    let counted = embedding(&json!({"gen_ai.usage.input_tokens": 3}));
    let trace = Sketch::default()
        .span(1, 0, "POST /index", json!({"http.request.method": "POST"}))
        .span(2, 1, "embeddings small", counted.clone())
        .span(3, 2, "embeddings small", counted.clone())
        .span(4, 1, "embeddings small", counted)
        .trace()
        .unwrap();
    assert_eq!((trace.model.as_deref(), trace.provider.as_deref()), (Some("small"), Some("openai")));
    assert_eq!((trace.output.as_deref(), trace.tool_calls.as_deref(), trace.runs.len()), (None, None, 1));
    let usage = trace.token_usage.unwrap();
    assert_eq!((usage.prompt_tokens, usage.completion_tokens), (Some(6), None), "the inner span is the same call");
    let step = json!({"openinference.span.kind": "CHAIN", "agent.name": "Indexer"});
    let text = json!({"openinference.span.kind": "EMBEDDING", "embedding.model_name": "small",
        "embedding.embeddings.10.embedding.text": "Last", "embedding.embeddings.2.embedding.text": "Tide table",
        "embedding.embeddings.2.embedding.vector": [0.1, 0.2]});
    let trace = Sketch::default().span(1, 0, "index", step).span(2, 1, "CreateEmbeddings", text).trace().unwrap();
    assert_eq!((trace.agent_name.as_str(), trace.model.as_deref()), ("Indexer", Some("small")));
    assert_eq!((trace.input.as_deref(), trace.output), (Some("Tide table\nLast"), None));
}

#[test]
fn an_embedding_beside_other_calls_changes_nothing() {
    let counted = embedding(&json!({"gen_ai.usage.input_tokens": 3}));
    let agents = |sketch: Sketch| sketch.span(1, 0, "invoke_agent Guide", agent("Guide"));
    let bare = |sketch: Sketch| sketch.span(1, 0, "chat m", silent_chat(&json!({})));
    let tools = |sketch: Sketch| sketch.span(1, 0, "execute_tool t", tool("t", &json!({})));
    let cases: [(&str, &dyn Fn(Sketch) -> Sketch); 3] = [("agent", &agents), ("chat", &bare), ("tool", &tools)];
    for (name, make) in cases {
        let without = make(Sketch::default()).trace().unwrap();
        for parent in [0, 1] {
            let with = make(Sketch::default()).span(2, parent, "embeddings small", counted.clone()).trace().unwrap();
            let same = Trace {
                latency_ms: without.latency_ms,
                runs: with.runs.iter().map(|run| Run { latency_ms: without.latency_ms, ..run.clone() }).collect(),
                span_count: 1,
                seen_through: 1,
                ..with.clone()
            };
            assert_eq!(same, without, "{name} {parent}");
        }
    }
}

#[test]
fn a_call_recorded_twice_counts_once() {
    let trace = Sketch::default()
        .span(1, 0, "invoke_agent Guide", agent("Guide"))
        .span(2, 1, "chat m", chat("Hi", "Hello.", "r1"))
        .span(
            3,
            2,
            "messages.create",
            silent_chat(&json!({"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2})),
        )
        .span(4, 1, "openai.response", chat("Hi", "Hello.", "r1"))
        .span(5, 1, "chat m", chat("Hi", "Hello again.", "r2"))
        .trace()
        .unwrap();
    let usage = trace.token_usage.unwrap();
    assert_eq!((usage.prompt_tokens, usage.completion_tokens, usage.total_tokens), (Some(30), Some(6), Some(36)));
    assert_eq!(trace.output.as_deref(), Some("Hello again."));
}

#[test]
fn an_agents_own_count_is_used_only_when_no_call_states_one() {
    let mut counted = agent("Guide");
    counted["gen_ai.usage.input_tokens"] = json!(99);
    let with = Sketch::default().span(1, 0, "invoke_agent Guide", counted.clone()).span(
        2,
        1,
        "chat m",
        chat("Hi", "Hello.", "r1"),
    );
    assert_eq!(with.trace().unwrap().token_usage.unwrap().prompt_tokens, Some(10));
    let without =
        Sketch::default().span(1, 0, "invoke_agent Guide", counted).span(2, 1, "chat m", silent_chat(&json!({})));
    let trace = without.trace().unwrap();
    assert_eq!(trace.token_usage.unwrap().prompt_tokens, Some(99));
    assert_eq!((trace.cost_usd, trace.cost_source), (None, None));
}

#[test]
fn a_crews_count_is_never_added_to_that_of_its_calls() {
    let crew = json!({"openinference.span.kind": "CHAIN", "output.value":
        json!({"raw": "Hello.", "tasks_output": [], "token_usage": {"prompt_tokens": 99, "completion_tokens": 9}}).to_string()});
    let guide = json!({"openinference.span.kind": "AGENT", "agent.name": "Guide"});
    let alone =
        Sketch::default().span(1, 0, "crew.kickoff", crew.clone()).span(2, 1, "Guide._execute_core", guide.clone());
    let usage = alone.trace().unwrap().token_usage.unwrap();
    assert_eq!((usage.prompt_tokens, usage.completion_tokens, usage.total_tokens), (Some(99), Some(9), Some(108)));
    let flow = json!({"openinference.span.kind": "CHAIN"});
    let two = Sketch::default()
        .span(1, 0, "flow.kickoff", flow)
        .span(2, 1, "crew.kickoff", crew)
        .span(3, 2, "Guide._execute_core", guide)
        .span(4, 3, "ChatCompletion", chat("Hi", "Hello.", "r1"));
    let trace = two.trace().unwrap();
    let usage = trace.token_usage.unwrap();
    assert_eq!((usage.prompt_tokens, usage.completion_tokens, usage.total_tokens), (Some(10), Some(2), Some(12)));
    assert_eq!(trace.runs[0].token_usage, Some(usage));
}

#[test]
fn one_call_seen_by_several_tool_spans_is_one_step() {
    let trace = Sketch::default()
        .span(1, 0, "invoke_agent Guide", agent("Guide"))
        .span(2, 1, "tools/call get_weather", tool("get_weather", &json!({})))
        .span(3, 2, "tools/call get_weather", tool("get_weather", &json!({"gen_ai.tool.call.result": "18 C"})))
        .span(4, 1, "execute_tool (merged)", tool("(merged tools)", &json!({})))
        .span(5, 1, "handoff to Billing", tool("handoff to Billing", &json!({})))
        .span(6, 1, "execute_tool get_weather", tool("get_weather", &json!({})))
        .trace()
        .unwrap();
    assert_eq!(names(&trace), Some(vec!["get_weather", "get_weather"]));
    assert_eq!(trace.tool_calls.unwrap()[0].output, Some(json!("18 C")));
}

#[test]
fn a_bare_argument_is_completed_from_the_models_request() {
    let asks = json!({
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
        "gen_ai.output.messages": [{"role": "assistant", "parts": [
            {"type": "tool_call", "id": "c1", "name": "lookup", "arguments": {"order_id": "A-1"}},
            {"type": "tool_call", "id": "c2", "name": "lookup", "arguments": {"order_id": "Z-404"}},
        ]}],
    });
    let trace = Sketch::default()
        .span(1, 0, "chat m", asks)
        .span(2, 0, "lookup", json!({"openinference.span.kind": "TOOL", "tool.name": "lookup", "input.value": "Z-404"}))
        .failed("ValueError: gone")
        .trace()
        .unwrap();
    let calls = trace.tool_calls.unwrap();
    assert_eq!(calls.len(), 1);
    assert_eq!((calls[0].input.clone(), calls[0].call_id.as_deref()), (Some(json!({"order_id": "Z-404"})), Some("c2")));
    assert_eq!(calls[0].error.as_deref(), Some("ValueError: gone"));
}

#[test]
fn without_tool_spans_the_messages_tell_what_ran() {
    let call = json!({"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "lookup", "arguments": {"id": 1}}]});
    let first = json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
        "gen_ai.input.messages": says("user", "Where?"), "gen_ai.output.messages": [call]});
    let second = json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.output.messages": says("assistant", "Gone."),
        "gen_ai.input.messages": [says("user", "Where?")[0], call,
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "ERROR ValueError: no"}]}]});
    let trace = Sketch::default().span(1, 0, "chat m", first).span(2, 0, "chat m", second).trace().unwrap();
    let calls = trace.tool_calls.clone().unwrap();
    assert_eq!(names(&trace), Some(vec!["lookup"]));
    assert_eq!(calls[0].error.as_deref(), Some("ERROR ValueError: no"));
    assert_eq!((trace.output.as_deref(), trace.agent_name.as_str()), (Some("Gone."), "harbor"));
}

#[test]
fn silence_about_tools_is_not_their_absence() {
    let unknown =
        Sketch::default().span(1, 0, "chat m", silent_chat(&json!({"gen_ai.response.finish_reasons": ["tool_calls"]})));
    assert_eq!(unknown.trace().unwrap().tool_calls, None);
    let stopped =
        Sketch::default().span(1, 0, "chat m", silent_chat(&json!({"gen_ai.response.finish_reasons": ["stop"]})));
    assert_eq!(stopped.trace().unwrap().tool_calls, Some(Vec::new()));
}

#[test]
fn a_run_ends_for_the_reason_of_its_last_call() {
    let ended = |reason: &str| silent_chat(&json!({"gen_ai.response.finish_reasons": [reason]}));
    let trace = Sketch::default().span(1, 0, "chat m", ended("tool_calls")).span(2, 0, "chat m", ended("length"));
    assert_eq!(trace.trace().unwrap().runs[0].finish_reasons, ["length"]);
}

#[test]
fn an_error_is_never_an_answer() {
    let failed =
        json!({"openinference.span.kind": "AGENT", "agent.name": "Guide", "output.value": "Rate limit reached"});
    let trace = Sketch::default()
        .span(1, 0, "Guide.run", failed)
        .failed("Rate limit reached")
        .span(2, 1, "chat m", silent_chat(&json!({"gen_ai.input.messages": says("user", "Hi")})))
        .failed("RateLimitError: Rate limit reached")
        .trace()
        .unwrap();
    assert_eq!((trace.output.as_deref(), trace.input.as_deref()), (None, Some("Hi")));
    assert_eq!((trace.runs[0].error.as_deref(), trace.error_count), (Some("Rate limit reached"), 2));
}

#[test]
fn several_agents_below_one_request_are_several_runs() {
    let trace = Sketch::default()
        .span(1, 0, "POST /", json!({"http.request.method": "POST"}))
        .span(2, 1, "invoke_agent One", agent("One"))
        .span(3, 2, "chat m", chat("First?", "First.", "r1"))
        .span(4, 1, "invoke_agent Two", agent("Two"))
        .span(5, 4, "chat m", chat("Second?", "Second.", "r2"))
        .trace()
        .unwrap();
    let runs: Vec<_> = trace.runs.iter().map(|run| (run.agent_name.as_deref(), run.output.as_deref())).collect();
    assert_eq!(runs, [(Some("One"), Some("First.")), (Some("Two"), Some("Second."))]);
    assert_eq!((trace.input.as_deref(), trace.output.as_deref()), (Some("First?"), Some("Second.")));
    assert_eq!(trace.token_usage.unwrap().prompt_tokens, Some(20));
}

#[test]
fn what_a_model_answers_beside_an_agent_is_judged_too() {
    let trace = Sketch::default()
        .span(1, 0, "invoke_agent Guide", agent("Guide"))
        .span(2, 1, "chat m", chat("First?", "First.", "r1"))
        .span(3, 0, "chat m", chat("Title?", "SSN 536-22-8716", "r2"))
        .span(4, 0, "chat m", chat("First?", "First.", "r3"))
        .span(5, 0, "chat m", silent_chat(&json!({})))
        .span(6, 0, "execute_tool t", tool("t", &json!({})))
        .failed("gone")
        .trace()
        .unwrap();
    assert_eq!((trace.input.as_deref(), trace.output.as_deref()), (Some("First?"), Some("First.")), "the agent's own");
    let [only, beside] = trace.runs.as_slice() else { panic!("{:?}", trace.runs) };
    assert_eq!((beside.input.as_deref(), beside.output.as_deref()), (Some("Title?"), Some("SSN 536-22-8716")));
    assert_eq!((beside.span_id, beside.agent_name.as_deref()), (Some(span_id(3)), None));
    assert_eq!((only.token_usage, only.cost_usd), (trace.token_usage, trace.cost_usd), "so that sums are judged whole");
    assert_eq!((Some(&only.tool_calls), names(&trace)), (trace.tool_calls.as_ref(), Some(vec!["t"])));
    let evaluation = judge_trace(&Ruleset::built_in(), &trace, &Settings::default(), Timestamp::default());
    let unsafe_ones =
        evaluation.rule_results.iter().filter(|result| result.state == "fail" && result.category == "safety");
    let named: Vec<_> = unsafe_ones.map(|result| &*result.rule_name).collect();
    assert_eq!(named, ["no_pii", "no_silent_tool_failure"], "a leak beside, and a failure the agent does not admit");
}

#[test]
fn calls_beside_agents_are_judged_up_to_a_limit() {
    let mut sketch = Sketch::default().span(1, 0, "invoke_agent Guide", agent("Guide"));
    for id in 2..100 {
        sketch = sketch.span(id, 0, "chat m", chat("Hi", &format!("Hello {id}."), &id.to_string()));
    }
    let trace = sketch.trace().unwrap();
    assert_eq!((trace.runs.len(), trace.output), (33, None));
    assert_eq!(trace.runs[32].output.as_deref(), Some("Hello 33."));
}

#[test]
fn an_ended_form_updates_and_another_content_conflicts() {
    let open =
        Sketch::default().span(1, 0, "chat m", chat("Hi", "Hel", "r1")).with(|span| span.end = Timestamp::default());
    let ended = open.span(1, 0, "chat m", chat("Hi", "Hello.", "r1"));
    let trace = ended.trace().unwrap();
    assert_eq!((trace.conflicting_spans, trace.output.as_deref(), trace.span_count), (false, Some("Hello."), 1));
    let forged = ended.span(1, 0, "chat m", chat("Hi", "Something else.", "r1"));
    let trace = forged.trace().unwrap();
    assert_eq!((trace.conflicting_spans, trace.output.as_deref()), (true, Some("Hello.")));
    let outputs: Vec<_> = trace.runs.iter().map(|run| run.output.as_deref()).collect();
    assert_eq!(outputs, [Some("Hello."), Some("Something else.")], "both are judged");
}

#[test]
fn circles_and_strangers_do_no_harm() {
    let trace = Sketch::default()
        .span(1, 2, "invoke_agent Guide", agent("Guide"))
        .span(2, 1, "chat m", chat("Hi", "Hello.", "r1"))
        .span(3, 3, "execute_tool t", tool("t", &json!({})))
        .span(4, 99, "execute_tool u", tool("u", &json!({})))
        .trace()
        .unwrap();
    assert_eq!((trace.output.as_deref(), trace.span_count), (Some("Hello."), 4));
}

mod blank;
mod content;
mod owning;
