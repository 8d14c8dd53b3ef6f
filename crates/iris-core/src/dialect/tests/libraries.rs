//! Habits of libraries of which no capture is kept with the repository.

use super::*;

#[test]
fn laminar_keeps_raw_messages_and_quoted_outputs() {
    let root = json!({"lmnr.span.type": "DEFAULT", "lmnr.span.input": "{\"question\": \"Hi?\"}", "lmnr.span.output": "\"Hello.\"",
        "lmnr.association.properties.session_id": "s-1", "lmnr.association.properties.user_id": "u-1"});
    let root = read_span(&span("harbor_agent", "lmnr.tracer", &root));
    assert_eq!((root.role, root.agent_name.as_deref()), (Some(Role::Chain), Some("harbor_agent")));
    assert_eq!((root.input.as_deref(), root.output.as_deref()), (Some("Hi?"), Some("Hello.")));
    assert_eq!((root.session_id.as_deref(), root.user_id.as_deref()), (Some("s-1"), Some("u-1")));
    let call = json!({"lmnr.span.type": "LLM", "gen_ai.system": "openai", "gen_ai.request.model": "m",
        "gen_ai.input.messages": "[{\"role\": \"user\", \"content\": \"Hi?\"}]",
        "gen_ai.output.messages": "[{\"index\": 0, \"message\": {\"role\": \"assistant\", \"content\": \"Hello.\"}, \"finish_reason\": \"stop\"}]"});
    let call = read_span(&span("openai.chat", "lmnr.tracer", &call));
    assert_eq!(answer(&call.output_messages.unwrap()).as_deref(), Some("Hello."));
    let tool = json!({"lmnr.span.type": "TOOL", "lmnr.span.input": "{\"city\": \"Porto Vell\"}", "lmnr.span.output": "\"18 C\""});
    let tool = read_span(&span("get_weather", "lmnr.tracer", &tool));
    assert_eq!((tool.tool_name.as_deref(), tool.tool_result), (Some("get_weather"), Some(json!("18 C"))));
}

#[test]
fn the_first_agent_development_kit_keeps_requests_and_replies_as_json() {
    let call = json!({
        "gen_ai.system": "gcp.vertex.agent", "gen_ai.request.model": "gemini-2.5-flash", "gcp.vertex.agent.session_id": "s-1",
        "gcp.vertex.agent.llm_request": "{\"model\": \"gemini-2.5-flash\", \"contents\": [{\"parts\": [{\"text\": \"Weather?\"}], \"role\": \"user\"}]}",
        "gcp.vertex.agent.llm_response": "{\"content\": {\"parts\": [{\"function_call\": {\"id\": \"c1\", \"name\": \"get_weather\", \"args\": {\"city\": \"Porto Vell\"}}}], \"role\": \"model\"}, \"usage_metadata\": {\"prompt_token_count\": 9, \"candidates_token_count\": 3}}",
    });
    let call = read_span(&span("call_llm", "gcp.vertex.agent", &call));
    assert_eq!((call.role, call.session_id.as_deref()), (Some(Role::Llm), Some("s-1")));
    assert_eq!(question(&call.input_messages.unwrap()).as_deref(), Some("Weather?"));
    assert!(is_pending(&call.output_messages.unwrap()));
    assert_eq!((call.usage.input, call.usage.output), (Some(9), Some(3)));
    let tool = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather",
        "gcp.vertex.agent.llm_request": "{}", "gcp.vertex.agent.llm_response": "{}",
        "gcp.vertex.agent.tool_call_args": "{\"city\": \"Porto Vell\"}", "gcp.vertex.agent.tool_response": "{\"result\": \"18 C\"}"});
    let tool = read_span(&span("execute_tool get_weather", "gcp.vertex.agent", &tool));
    assert_eq!(
        (tool.tool_arguments, tool.tool_result),
        (Some(json!({"city": "Porto Vell"})), Some(json!({"result": "18 C"})))
    );
    let off = read_span(&span(
        "call_llm",
        "gcp.vertex.agent",
        &json!({"gcp.vertex.agent.llm_request": "{}", "gcp.vertex.agent.llm_response": "{}"}),
    ));
    assert_eq!((off.input_messages, off.output_messages, off.output), (None, None, None));
}

#[test]
fn litellm_states_cost_and_caller_and_writes_zero_for_unknown() {
    let call = json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.cost.total_cost": 0.000_03,
        "gen_ai.usage.input_tokens": 0, "gen_ai.usage.output_tokens": 0, "metadata.user_api_key_user_id": "u-1"});
    let call = read_span(&span("litellm_request", "litellm", &call));
    assert_eq!((call.role, call.cost_usd, call.user_id.as_deref()), (Some(Role::Llm), Some(0.000_03), Some("u-1")));
    assert_eq!((call.usage.input, call.usage.output), (None, None));
}

#[test]
fn semantic_kernel_tools_lose_the_plugins_name() {
    let tool = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "Harbor-get_weather"});
    let tool = read_span(&span("execute_tool Harbor-get_weather", "semantic_kernel.functions.kernel_function", &tool));
    assert_eq!(tool.tool_name.as_deref(), Some("get_weather"));
    let message = read_log(&log(
        "gen_ai.choice",
        json!("{\"message\": {\"role\": \"assistant\", \"content\": \"Hello.\"}, \"index\": 0}"),
        &json!({}),
    ));
    assert_eq!(answer(&message.unwrap().output_messages.unwrap()).as_deref(), Some("Hello."));
}

#[test]
fn strands_marks_a_failed_tool_by_an_attribute_only() {
    let tool = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup", "tool.status": "error"});
    assert!(read_span(&span("execute_tool lookup", "strands.telemetry.tracer", &tool)).error.is_some());
    let fine = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup", "tool.status": "success"});
    assert_eq!(read_span(&span("execute_tool lookup", "strands.telemetry.tracer", &fine)).error, None);
}

#[test]
fn langfuse_counts_may_stand_beside_their_details() {
    let read = |details: &str| {
        let call = json!({"langfuse.observation.type": "generation", "langfuse.observation.usage_details": details});
        let usage = read_span(&span("ChatOpenAI", "langfuse-sdk", &call)).usage;
        (usage.input, usage.output)
    };
    assert_eq!(
        read("{\"input\": 211, \"output\": 11, \"total\": 232, \"input_cache_read\": 8, \"output_reasoning\": 2}"),
        (Some(219), Some(13))
    );
    assert_eq!(
        read("{\"input\": 219, \"output\": 13, \"total\": 232, \"input_cache_read\": 8}"),
        (Some(219), Some(13))
    );
    assert_eq!(read("{\"prompt_tokens\": 219, \"completion_tokens\": 13}"), (Some(219), Some(13)));
    assert_eq!(read("not json"), (None, None));
}

#[test]
fn openlit_tells_which_tool_was_asked_for_where_messages_are_off() {
    let call = json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.tool.name": "get_weather",
        "gen_ai.tool.call.id": "c1", "gen_ai.tool.args": "{\"city\": \"Porto Vell\"}"});
    let call = read_span(&span("chat m", "openlit.instrumentation.openai", &call));
    let asked = call.output_messages.unwrap();
    let want = Part::ToolCall {
        id: Some("c1".to_owned()),
        name: "get_weather".to_owned(),
        arguments: json!({"city": "Porto Vell"}),
    };
    assert_eq!(asked[0].parts, [want]);
    assert_eq!(call.tool_name, None, "the span is no tool");
}

#[test]
fn traceloop_decorators_record_calls_of_functions() {
    let agent = json!({"traceloop.span.kind": "agent", "traceloop.entity.name": "harbor_agent",
        "traceloop.entity.input": "{\"args\": [\"Hi?\"], \"kwargs\": {}}", "traceloop.entity.output": "\"Hello.\""});
    let agent = read_span(&span("harbor_agent.agent", "@traceloop/node-server-sdk", &agent));
    assert_eq!(
        (agent.agent_name.as_deref(), agent.input.as_deref(), agent.output.as_deref()),
        (Some("harbor_agent"), Some("Hi?"), Some("Hello."))
    );
    let tool = json!({"traceloop.span.kind": "tool", "traceloop.entity.name": "get_weather",
        "traceloop.entity.input": "{\"args\": [], \"kwargs\": {\"city\": \"Porto Vell\"}}", "traceloop.association.properties.userId": "u-1"});
    let tool = read_span(&span("get_weather.tool", "traceloop.tracer", &tool));
    assert_eq!((tool.tool_arguments, tool.user_id.as_deref()), (Some(json!({"city": "Porto Vell"})), Some("u-1")));
}

#[test]
fn scrubbed_results_are_no_answers() {
    let run = json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a", "final_result": "[Scrubbed due to 'SSN']"});
    assert_eq!(read_span(&span("invoke_agent a", "pydantic-ai", &run)).output, None);
}

#[test]
fn hostile_values_are_read_without_harm() {
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let wide = format!("[{}]", "{\"role\":\"user\",\"content\":\"x\"},".repeat(5000));
    for text in [deep.as_str(), wide.as_str(), "{\"messages\":", "[[[[[[[[", "{'a': {'b': ", "\u{0}\u{fffd}"] {
        for key in [
            "gen_ai.input.messages",
            "input.value",
            "traceloop.entity.input",
            "langfuse.observation.input",
            "mlflow.spanInputs",
            "ai.prompt",
            "lmnr.span.input",
            "gen_ai.prompt",
            "events",
            "gen_ai.tool.call.arguments",
        ] {
            let mut attributes = json!({"gen_ai.operation.name": "chat", "openinference.span.kind": "AGENT"});
            attributes[key] = json!(text);
            read_span(&span("x", "pydantic-ai", &attributes));
        }
    }
}

#[test]
fn a_crew_states_in_its_result_what_its_models_used() {
    let result = |usage: Value| json!({"raw": "Hello.", "tasks_output": [{"raw": "Hello."}], "token_usage": usage});
    let step = |kind: &str, output: &Value| {
        let attributes = json!({"openinference.span.kind": kind, "output.value": output.to_string()});
        read_span(&span("crew.kickoff", "openinference.instrumentation.crewai", &attributes))
    };
    let counts = json!({"total_tokens": 317, "prompt_tokens": 305, "cached_prompt_tokens": 8, "completion_tokens": 12,
        "reasoning_tokens": 2, "cache_creation_tokens": 0, "successful_requests": 1});
    let crew = step("CHAIN", &result(counts.clone()));
    let usage = crew.usage;
    assert_eq!((usage.input, usage.output, usage.total), (Some(305), Some(12), Some(317)));
    assert_eq!((usage.cache_read, usage.cache_write, usage.reasoning), (Some(8), Some(0), Some(2)));
    assert_eq!((crew.output.as_deref(), crew.sources["usage.input"].as_str()), (Some("Hello."), "output.value"));
    let none = [
        step("AGENT", &result(counts.clone())),
        step("CHAIN", &json!({"answer": "Hello.", "token_usage": counts})),
        step("CHAIN", &result(json!("305 tokens"))),
        step("CHAIN", &result(json!({"total_tokens": 0, "prompt_tokens": 0, "completion_tokens": 0}))),
        step("CHAIN", &json!("about token_usage, raw and tasks_output")),
    ];
    for reading in none {
        let usage = reading.usage;
        assert_eq!((usage.input, usage.output, usage.total), (None, None, None), "{reading:?}");
    }
}
