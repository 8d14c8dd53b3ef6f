mod by_hand;
mod libraries;
mod speed;

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::model::{Part, RawEvent, Resource, Role, Scope, SpanKind, Timestamp};

fn span(name: &str, scope: &str, attributes: &Value) -> RawSpan {
    RawSpan {
        trace_id: "0af7651916cd43dd8448eb211c80319c".parse().unwrap(),
        span_id: "00f067aa0ba902b7".parse().unwrap(),
        parent_span_id: None,
        flags: 0,
        trace_state: String::new(),
        name: name.to_owned(),
        kind: SpanKind::Internal,
        start: Timestamp::from_unix_nanos(1),
        end: Timestamp::from_unix_nanos(2),
        status: StatusCode::Unset,
        status_message: String::new(),
        attributes: attributes.as_object().unwrap().clone(),
        events: Vec::new(),
        links: Vec::new(),
        dropped: 0,
        resource: Arc::new(Resource::default()),
        scope: Arc::new(Scope { name: scope.to_owned(), ..Scope::default() }),
    }
}

fn log(event_name: &str, body: Value, attributes: &Value) -> RawLog {
    RawLog {
        trace_id: None,
        span_id: None,
        time: Timestamp::default(),
        severity: 0,
        event_name: event_name.to_owned(),
        body,
        attributes: attributes.as_object().unwrap().clone(),
        resource: Arc::new(Resource::default()),
        scope: Arc::new(Scope::default()),
    }
}

fn chat(more: &Value) -> RawSpan {
    let mut attributes = json!({
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o-mini",
        "gen_ai.response.model": "gpt-4o-mini-2024-07-18", "gen_ai.response.id": "chatcmpl-1",
        "gen_ai.response.finish_reasons": ["stop"], "gen_ai.usage.input_tokens": 26, "gen_ai.usage.output_tokens": 12,
    });
    attributes.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    span("chat gpt-4o-mini", "opentelemetry.instrumentation.openai_v2", &attributes)
}

#[test]
fn messages_are_read_in_every_shape() {
    let question = "Where is my order?";
    let shapes = [
        json!([{"role": "user", "parts": [{"type": "text", "content": question}]}]),
        json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]),
        json!({"messages": [{"role": "user", "content": [{"type": "text", "text": question}]}]}),
        json!({"messages": [[{"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": {"content": question, "type": "human"}}]]}),
        json!([{"type": "human", "data": {"content": question, "name": null}}]),
        json!([{"type": "human", "content": question}]),
        json!({"contents": [{"role": "user", "parts": [{"text": question}]}]}),
        json!([{"role": "user", "content": "[{\"text\": \"Where is my order?\"}]"}]),
        json!([{"message": {"role": "user", "contents": [{"message_content": {"type": "text", "text": question}}]}}]),
        json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": question}]}]),
        json!([{"role": "MessageRole.USER", "content": question}]),
    ];
    for shape in shapes {
        let read = messages::read(&shape).unwrap_or_else(|| panic!("{shape}"));
        assert_eq!(messages::question(&read).as_deref(), Some(question), "{shape}");
        let text = Value::String(shape.to_string());
        assert_eq!(messages::read(&text), Some(read), "as a text: {shape}");
    }
}

#[test]
fn calls_are_read_in_every_shape() {
    let arguments = json!({"city": "Porto Vell"});
    let as_text = arguments.to_string();
    let shapes = [
        json!([{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": arguments}]}]),
        json!([{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": as_text}}]}]),
        json!([{"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "get_weather", "input": arguments}]}]),
        json!([{"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "get_weather", "input": arguments}]}]),
        json!([{"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "get_weather", "input": arguments}}]}]),
        json!([{"role": "model", "parts": [{"function_call": {"id": "c1", "name": "get_weather", "args": arguments}}]}]),
        json!([{"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": as_text}]),
        json!([{"type": "ai", "data": {"content": "", "tool_calls": [{"name": "get_weather", "args": arguments, "id": "c1"}]}}]),
        json!([{"message": {"role": "assistant", "tool_calls": [{"tool_call": {"id": "c1", "function": {"name": "get_weather", "arguments": as_text}}}]}}]),
    ];
    for shape in shapes {
        let read = messages::read(&shape).unwrap_or_else(|| panic!("{shape}"));
        let want =
            Part::ToolCall { id: Some("c1".to_owned()), name: "get_weather".to_owned(), arguments: arguments.clone() };
        assert_eq!(read[0].parts, vec![want], "{shape}");
        assert!(messages::is_pending(&read), "{shape}");
        assert_eq!(messages::answer(&read), None, "{shape}");
    }
}

#[test]
fn results_are_read_in_every_shape() {
    let shapes = [
        json!([{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "18 C"}]}]),
        json!([{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "result": "18 C"}]}]),
        json!([{"role": "tool", "tool_call_id": "c1", "content": "18 C"}]),
        json!([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "18 C"}]}]}]),
        json!([{"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "status": "success", "content": [{"text": "18 C"}]}}]}]),
        json!([{"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "output": {"type": "text", "value": "18 C"}}]}]),
        json!([{"type": "function_call_output", "call_id": "c1", "output": "18 C"}]),
    ];
    for shape in shapes {
        let read = messages::read(&shape).unwrap_or_else(|| panic!("{shape}"));
        let [Part::ToolResult { id, result, .. }] = read[0].parts.as_slice() else { panic!("{shape} gave {read:?}") };
        assert_eq!((id.as_deref(), result), (Some("c1"), &json!("18 C")), "{shape}");
        assert_eq!(messages::question(&read), None, "a result is nobody's question: {shape}");
    }
}

#[test]
fn the_answer_is_what_was_said_after_the_last_call() {
    let whole_run = json!([
        {"role": "user", "parts": [{"type": "text", "content": "Weather?"}]},
        {"role": "assistant", "parts": [
            {"type": "text", "content": "Let me check."},
            {"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": {}},
            {"type": "text", "content": "It is 18 C."},
        ]},
    ]);
    assert_eq!(messages::answer(&messages::read(&whole_run).unwrap()).as_deref(), Some("It is 18 C."));
}

#[test]
fn media_is_named_and_never_copied() {
    let data = "QUJD".repeat(5000);
    let shapes = [
        json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{data}")}}]}]),
        json!([{"role": "user", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}]}]),
        json!([{"role": "user", "parts": [{"type": "blob", "mime_type": "image/png", "content": data}]}]),
        json!([{"role": "user", "parts": [{"inline_data": {"mime_type": "image/png", "data": data}}]}]),
    ];
    for shape in shapes {
        let read = messages::read(&shape).unwrap();
        let [Part::Other { what }] = read[0].parts.as_slice() else { panic!("{read:?}") };
        assert!(what.starts_with("image/png, 1"), "{what}");
    }
}

#[test]
fn cut_json_keeps_what_came_before_the_cut() {
    let whole = json!({"messages": [{"role": "user", "content": "What is the capital of Lindoria? Say \"it\" plainly."}], "n": 1}).to_string();
    for end in 1..whole.len() {
        salvage::json(&whole[..end]);
    }
    let cut = &whole[..60];
    assert_eq!(words::question(&json!(cut)).as_deref(), Some("What is the capital o"));
    assert_eq!(salvage::json("{\"a\": 1, \"b"), Some(json!({"a": 1})));
    assert_eq!(salvage::json("{\"a\": 1]"), None);
    assert_eq!(salvage::json("plain words"), None);
}

#[test]
fn python_literals_are_read_and_printed_objects_are_not_words() {
    assert_eq!(
        salvage::python("{'city': 'Porto \\'Vell', 'days': [1, None, True], \"n\": -2.5}"),
        Some(json!({"city": "Porto 'Vell", "days": [1, null, true], "n": -2.5}))
    );
    assert_eq!(salvage::python(&"[".repeat(10_000)), None);
    assert_eq!(salvage::python("{'a': object}"), None);
    assert!(salvage::is_repr("AgentInput(input=[ChatMessage(role=<MessageRole.USER: 'user'>)])"));
    assert!(salvage::is_repr("<Context object at 0x7fac88379990>"));
    assert!(!salvage::is_repr("Answer (in short): x=1"));
    assert!(!salvage::is_repr("It is 18 C (about 64 F = mild)."));
}

#[test]
fn indexed_keys_may_come_in_any_order_and_with_holes() {
    let attributes = json!({
        "llm.input_messages.10.message.content": "last", "llm.input_messages.10.message.role": "user",
        "llm.input_messages.2.message.role": "system", "llm.input_messages.2.message.content": "first",
        "llm.input_messages_count": 2, "other": 1,
    });
    let list = attributes::indexed(attributes.as_object().unwrap(), "llm.input_messages").unwrap();
    let read = messages::read(&list).unwrap();
    assert_eq!(read.iter().map(|message| message.role.as_str()).collect::<Vec<_>>(), ["system", "user"]);
    assert_eq!(messages::question(&read).as_deref(), Some("last"));
}

#[test]
fn structured_values_and_json_texts_read_the_same() {
    let asked = json!([{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]);
    let text = read_span(&chat(&json!({"gen_ai.input.messages": asked.to_string()})));
    let structured = read_span(&chat(&json!({"gen_ai.input.messages": asked})));
    assert_eq!(text, structured);
    assert_eq!(text.role, Some(Role::Llm));
    assert_eq!(text.sources["model"], "gen_ai.response.model");
}

#[test]
fn older_names_answer_where_the_current_are_missing() {
    let old = span(
        "openai.chat",
        "opentelemetry.instrumentation.openai.v1",
        &json!({
            "llm.request.type": "chat", "gen_ai.system": "OpenAI", "gen_ai.request.model": "gpt-4o-mini",
            "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Hi", "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": "Hello.", "gen_ai.usage.prompt_tokens": 5, "gen_ai.usage.completion_tokens": "2",
            "llm.usage.total_tokens": 7, "gen_ai.usage.cache_read_input_tokens": 1,
        }),
    );
    let reading = read_span(&old);
    assert_eq!((reading.role, reading.provider.as_deref()), (Some(Role::Llm), Some("openai")));
    assert_eq!((reading.usage.input, reading.usage.output, reading.usage.cache_read), (Some(5), Some(2), Some(1)));
    assert_eq!(answer(&reading.output_messages.unwrap()).as_deref(), Some("Hello."));
    assert_eq!(reading.sources["usage.input"], "gen_ai.usage.prompt_tokens");
}

#[test]
fn the_first_dialect_wins_field_by_field() {
    let both = chat(&json!({"openinference.span.kind": "AGENT", "llm.model_name": "oi-model", "agent.name": "Guide"}));
    let reading = read_span(&both);
    assert_eq!(reading.dialects, ["openinference", "gen_ai"]);
    assert_eq!(reading.role, Some(Role::Agent));
    assert_eq!((reading.model.as_deref(), reading.usage.input), (Some("oi-model"), Some(26)));
    assert_eq!(
        (&*reading.sources["model"], &*reading.sources["usage.input"]),
        ("llm.model_name", "gen_ai.usage.input_tokens")
    );
}

#[test]
fn zero_for_unknown_is_unknown() {
    let reading = read_span(&chat(
        &json!({"gen_ai.usage.input_tokens": 0, "gen_ai.usage.output_tokens": 0, "gen_ai.usage.total_tokens": 0}),
    ));
    assert_eq!(reading.usage, Usage::default());
    let cached = read_span(&chat(&json!({"gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 0})));
    assert_eq!((cached.usage.input, cached.usage.output), (Some(7), Some(0)));
}

#[test]
fn hidden_content_is_missing() {
    let reading = read_span(&span(
        "Guide",
        "app",
        &json!({"openinference.span.kind": "AGENT", "input.value": "__REDACTED__", "output.value": "__REDACTED__"}),
    ));
    assert_eq!((reading.role, reading.input, reading.output), (Some(Role::Agent), None, None));
}

#[test]
fn a_declared_json_type_is_not_trusted() {
    let plain = json!({"openinference.span.kind": "AGENT", "output.value": "It is 18 C.", "output.mime_type": "application/json"});
    assert_eq!(read_span(&span("run", "app", &plain)).output.as_deref(), Some("It is 18 C."));
    let state = json!({"messages": [{"type": "human", "data": {"content": "Hi"}}, {"type": "ai", "data": {"content": "It is 18 C."}}]});
    let state = json!({"openinference.span.kind": "CHAIN", "output.value": state.to_string(), "output.mime_type": "text/plain"});
    assert_eq!(read_span(&span("run", "app", &state)).output.as_deref(), Some("It is 18 C."));
}

#[test]
fn message_records_and_details_records_are_read() {
    let user = read_log(&log("gen_ai.user.message", json!({"content": "Hi"}), &json!({}))).unwrap();
    assert_eq!(question(&user.input_messages.unwrap()).as_deref(), Some("Hi"));
    let choice = json!({"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello."}});
    let choice = read_log(&log("gen_ai.choice", choice, &json!({}))).unwrap();
    assert_eq!(answer(&choice.output_messages.unwrap()).as_deref(), Some("Hello."));
    assert_eq!(read_log(&log("gen_ai.user.message", Value::Null, &json!({}))), None, "content is off");
    assert_eq!(read_log(&log("http.request", json!("GET /"), &json!({}))), None);
    assert!(!wants_log("http.request") && wants_log(DETAILS_EVENT));
    let details = json!({
        "gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 3,
        "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "Hello."}]}],
    });
    let details = read_log(&log(DETAILS_EVENT, Value::Null, &details)).unwrap();
    assert_eq!(details.usage.input, Some(3));
    assert_eq!(answer(&details.output_messages.unwrap()).as_deref(), Some("Hello."));
}

#[test]
fn span_events_carry_content() {
    let mut tool = span(
        "execute_tool lookup_order",
        "strands.telemetry.tracer",
        &json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup_order"}),
    );
    let event = |name: &str, attributes: Value| RawEvent {
        time: Timestamp::default(),
        name: name.to_owned(),
        attributes: attributes.as_object().unwrap().clone(),
    };
    tool.events.push(event("gen_ai.tool.message", json!({"role": "tool", "content": "{\"order_id\": \"Z-404\"}"})));
    tool.events.push(event("gen_ai.choice", json!({"message": "[{\"text\": \"Error: no such order\"}]"})));
    let reading = read_span(&tool);
    assert_eq!(reading.tool_arguments, Some(json!({"order_id": "Z-404"})));
    assert_eq!(reading.tool_result, Some(json!("Error: no such order")));
}

#[test]
fn other_spans_have_no_role() {
    for (scope, attributes) in [
        ("http", json!({"http.request.method": "GET", "session.id": "s"})),
        ("mcp-python-sdk", json!({"mcp.method.name": "tools/list"})),
        ("openai", json!({"gen_ai.operation.name": "create_agent", "gen_ai.agent.name": "a"})),
    ] {
        let role = read_span(&span("x", scope, &attributes)).role;
        assert!(matches!(role, None | Some(Role::Other)), "{scope} {role:?}");
    }
}
