//! Spans of programs that say little: a few keys set by hand, and shapes that only the documentation of a library shows.

use super::*;

#[expect(clippy::needless_pass_by_value, reason = "attributes are written in place")]
fn of(attributes: Value) -> Reading {
    read_span(&span("step", "app", &attributes))
}

fn with_event(mut read: RawSpan, name: &str, attributes: &Value) -> RawSpan {
    let attributes = attributes.as_object().unwrap().clone();
    read.events.push(RawEvent { time: Timestamp::default(), name: name.to_owned(), attributes });
    read
}

#[test]
fn the_products_own_keys_make_a_run() {
    let run = of(
        json!({"iris.input": "Where is it?", "iris.output": "Here.", "iris.agent_name": "harbor", "iris.framework": "own",
        "iris.cost_usd": 0.01, "iris.prompt_tokens": 10, "iris.completion_tokens": 5, "iris.total_tokens": 15}),
    );
    assert_eq!((run.role, run.agent_name.as_deref()), (Some(Role::Agent), Some("harbor")));
    assert_eq!((run.input.as_deref(), run.output.as_deref()), (Some("Where is it?"), Some("Here.")));
    assert_eq!((run.framework.as_deref(), run.cost_usd), (Some("own"), Some(0.01)));
    assert_eq!((run.usage.input, run.usage.output, run.usage.total), (Some(10), Some(5), Some(15)));
    assert!(!is_guessed(&run));
    let tool = of(
        json!({"iris.span_kind": "TOOL", "tool.name": "lookup", "input.value": "{\"id\": 7}", "output.value": "ok"}),
    );
    assert_eq!((tool.role, tool.tool_name.as_deref()), (Some(Role::Tool), Some("lookup")));
    assert_eq!((tool.tool_arguments, tool.tool_result), (Some(json!({"id": 7})), Some(json!("ok"))));
    assert_eq!(of(json!({"iris.span_kind": "SERVER"})).role, None);
    assert_eq!(of(json!({"iris.evaluate": true})).role, None);
    let mut named = span("step", "app", &json!({"iris.output": "Here."}));
    named.resource =
        Arc::new(Resource { attributes: json!({"iris.agent_name": "of the service"}).as_object().unwrap().clone() });
    assert_eq!(read_span(&named).agent_name.as_deref(), Some("of the service"));
    // First of all keys on the same span.
    let both = of(json!({"iris.output": "Ours.", "openinference.span.kind": "AGENT", "output.value": "Theirs."}));
    assert_eq!(both.output.as_deref(), Some("Ours."));
}

#[test]
fn content_without_a_role_is_that_of_a_run() {
    for (input, output) in [
        ("input.value", "output.value"),
        ("traceloop.entity.input", "traceloop.entity.output"),
        ("ai.prompt", "ai.response.text"),
        ("gen_ai.prompt", "gen_ai.completion"),
    ] {
        let run = of(json!({input: "Where is it?", output: "Here."}));
        assert_eq!((run.role, is_guessed(&run)), (Some(Role::Agent), true), "{input}");
        assert_eq!((run.input.as_deref(), run.output.as_deref()), (Some("Where is it?"), Some("Here.")), "{input}");
    }
    let messages = of(json!({"gen_ai.input.messages": [{"role": "user", "content": "Where?"}],
        "gen_ai.output.messages": [{"role": "assistant", "content": "Here."}]}));
    assert_eq!((messages.role, is_guessed(&messages)), (Some(Role::Agent), true));
    assert_eq!(answer(&messages.output_messages.unwrap()).as_deref(), Some("Here."));
    let call =
        of(json!({"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Where?",
        "llm.output_messages.0.message.content": "Here.", "llm.output_messages.0.message.role": "assistant"}));
    assert_eq!((call.role, answer(&call.output_messages.unwrap()).as_deref()), (Some(Role::Llm), Some("Here.")));
    // A bare word for it says too little to make a run, and enough where the role is known.
    assert_eq!(of(json!({"input": "x", "output": "y"})).role, None);
    let known = of(json!({"gen_ai.operation.name": "invoke_agent", "input": "Where?", "output": "Here."}));
    assert_eq!((known.input.as_deref(), known.output.as_deref()), (Some("Where?"), Some("Here.")));
    let tool = of(
        json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "f", "input.value": "{\"a\": 1}", "output.value": "b"}),
    );
    assert_eq!((tool.tool_arguments, tool.tool_result), (Some(json!({"a": 1})), Some(json!("b"))));
    for other in
        [json!({"http.request.method": "GET"}), json!({"db.query.text": "select 1"}), json!({"input.value": ""})]
    {
        assert_eq!(of(other.clone()).role, None, "{other}");
    }
}

#[test]
fn events_without_attributes_are_a_models() {
    let call = with_event(
        span("call", "app", &json!({})),
        "gen_ai.content.prompt",
        &json!({"gen_ai.prompt": "[{\"role\": \"user\", \"content\": \"Hi?\"}]"}),
    );
    let call = with_event(
        call,
        "gen_ai.content.completion",
        &json!({"gen_ai.completion": "[{\"role\": \"assistant\", \"content\": \"Hello.\"}]"}),
    );
    let call = read_span(&call);
    assert_eq!(call.role, Some(Role::Llm));
    assert_eq!(answer(&call.output_messages.unwrap()).as_deref(), Some("Hello."));
    let run = span("run", "app", &json!({"gen_ai.operation.name": "process_thread_run", "gen_ai.agent.name": "h"}));
    let run = with_event(
        run,
        "gen_ai.user.message",
        &json!({"gen_ai.event.content": "{\"content\": \"Hi?\", \"role\": \"user\"}"}),
    );
    let run = with_event(
        run,
        "gen_ai.assistant.message",
        &json!({"gen_ai.event.content": "{\"content\": {\"text\": {\"value\": \"Hello.\"}}, \"role\": \"assistant\"}"}),
    );
    let run = read_span(&run);
    assert_eq!(question(&run.input_messages.unwrap()).as_deref(), Some("Hi?"));
    assert_eq!(
        answer(&run.output_messages.unwrap()).as_deref(),
        Some("Hello."),
        "an agent's last words are its answer"
    );
}

#[test]
fn geminis_content_stands_inside_the_body_of_a_record() {
    let asked = read_log(&log(
        "gen_ai.user.message",
        json!({"content": {"parts": [{"text": "Hi?"}], "role": "user"}}),
        &json!({}),
    ))
    .unwrap();
    assert_eq!(question(&asked.input_messages.unwrap()).as_deref(), Some("Hi?"));
    let body =
        json!({"index": 0, "content": {"parts": [{"text": "Hello."}], "role": "model"}, "finish_reason": "STOP"});
    let said = read_log(&log("gen_ai.choice", body, &json!({}))).unwrap();
    assert_eq!(answer(&said.output_messages.unwrap()).as_deref(), Some("Hello."));
}

#[test]
fn openinference_as_its_specification_writes_it() {
    let call = of(json!({"openinference.span.kind": "LLM", "llm.cost.prompt": 0.01, "llm.cost.completion": 0.02,
        "llm.input_messages": "[{\"message.role\": \"user\", \"message.content\": \"Hi?\"}]",
        "llm.output_messages": "[{\"message.role\": \"assistant\", \"message.tool_calls\": [{\"tool_call.function.name\": \"f\", \"tool_call.function.arguments\": \"{\\\"a\\\": 1}\"}]}]"}));
    assert_eq!(question(&call.input_messages.unwrap()).as_deref(), Some("Hi?"));
    let asked = call.output_messages.unwrap().remove(0).parts;
    assert!(
        matches!(&asked[..], [Part::ToolCall { name, arguments, .. }] if name == "f" && *arguments == json!({"a": 1})),
        "{asked:?}"
    );
    assert!((call.cost_usd.unwrap() - 0.03).abs() < 1e-9);
    let tool = |parameters: Value| {
        of(json!({"openinference.span.kind": "TOOL", "tool.name": "f", "tool.parameters": parameters})).tool_arguments
    };
    assert_eq!(tool(json!("{\"id\": 7}")), Some(json!({"id": 7})));
    for schema in
        [json!({"type": "object", "properties": {}}), json!("{\"id\": {\"type\": \"integer\"}}"), json!("words")]
    {
        assert_eq!(tool(schema.clone()), None, "{schema}");
    }
}

#[test]
fn spring_tells_its_steps_apart_by_its_own_kind() {
    let tool = of(
        json!({"gen_ai.operation.name": "framework", "gen_ai.system": "spring_ai", "spring.ai.kind": "tool_call",
        "spring.ai.tool.definition.name": "lookup", "spring.ai.tool.call.arguments": "{\"id\": 7}", "spring.ai.tool.call.result": "\"found\""}),
    );
    assert_eq!((tool.role, tool.tool_name.as_deref()), (Some(Role::Tool), Some("lookup")));
    assert_eq!((tool.tool_arguments, tool.tool_result), (Some(json!({"id": 7})), Some(json!("found"))));
    let client = of(json!({"gen_ai.operation.name": "framework", "spring.ai.kind": "chat_client"}));
    assert_eq!(client.role, Some(Role::Chain));
}

#[test]
fn pydantic_ai_before_its_first_release_named_its_spans_only() {
    let of = |name: &str, attributes: Value| read_span(&span(name, "pydantic-ai", &attributes));
    let run = of(
        "agent run",
        json!({"agent_name": "h", "model_name": "gpt-4o", "final_result": "Here.",
        "all_messages_events": "[{\"role\": \"user\", \"content\": \"Where?\"}, {\"role\": \"assistant\", \"content\": \"Here.\"}]"}),
    );
    assert_eq!((run.role, run.agent_name.as_deref()), (Some(Role::Agent), Some("h")));
    assert_eq!((run.input.as_deref(), run.output.as_deref()), (Some("Where?"), Some("Here.")));
    assert_eq!(of("running 2 tools", json!({"tools": ["a", "b"]})).role, Some(Role::Chain));
    assert_eq!(of("running tool", json!({"gen_ai.tool.name": "a", "tool_arguments": "{}"})).role, Some(Role::Tool));
    let raw = read_span(&span(
        "Chat",
        "logfire.openai",
        &json!({"gen_ai.request.model": "m", "gen_ai.system": "openai",
        "response_data": "{\"message\": {\"role\": \"assistant\", \"content\": \"Hi\"}, \"usage\": {\"prompt_tokens\": 4, \"completion_tokens\": 2}}"}),
    ));
    assert_eq!((raw.usage.input, raw.usage.output), (Some(4), Some(2)));
}

#[test]
fn an_mcp_result_is_its_words_however_short_its_wrapper() {
    let call = of(json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "f",
        "gen_ai.tool.call.result": "{\"content\": [{\"type\": \"text\", \"text\": \"found\"}]}"}));
    assert_eq!(call.tool_result, Some(json!("found")));
}
