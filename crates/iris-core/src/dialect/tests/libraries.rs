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
    assert_eq!((crew.output.as_deref(), &*crew.sources["usage.input"]), (Some("Hello."), "output.value"));
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

#[test]
fn langfuse_observations_without_a_type_are_known_by_what_they_have() {
    let call = json!({"langfuse.observation.model.name": "m", "langfuse.observation.input": "[{\"role\": \"user\", \"content\": \"Hi?\"}]",
        "langfuse.observation.output": "{\"role\": \"assistant\", \"content\": \"Hello.\"}",
        "langfuse.observation.usage_details": "{\"input\": 5, \"output\": 2, \"input_cached_tokens\": 3, \"output_reasoning_tokens\": 1, \"total\": 11}"});
    let call = read_span(&span("call", "langfuse-sdk", &call));
    assert_eq!((call.role, call.model.as_deref()), (Some(Role::Llm), Some("m")));
    assert_eq!((call.usage.input, call.usage.output), (Some(8), Some(3)));
    assert_eq!((call.usage.cache_read, call.usage.reasoning), (Some(3), Some(1)));
    let step = read_span(&span("step", "langfuse-sdk", &json!({"langfuse.observation.input": "Hi?"})));
    assert_eq!((step.role, step.input.as_deref()), (Some(Role::Chain), Some("Hi?")));
}

#[test]
fn openllmetry_is_read_in_its_first_names() {
    let call = json!({"llm.request.type": "chat", "llm.vendor": "OpenAI", "llm.request.model": "m", "llm.response.model": "m-1",
        "llm.prompts.0.role": "user", "llm.prompts.0.content": "Hi?", "llm.completions.0.role": "assistant",
        "llm.completions.0.content": "Hello.", "llm.usage.prompt_tokens": 5, "llm.usage.completion_tokens": 2});
    let call = read_span(&span("openai.chat", "opentelemetry.instrumentation.openai", &call));
    assert_eq!(
        (call.role, call.model.as_deref(), call.provider.as_deref()),
        (Some(Role::Llm), Some("m-1"), Some("openai"))
    );
    assert_eq!((call.usage.input, call.usage.output), (Some(5), Some(2)));
    assert_eq!(question(&call.input_messages.unwrap()).as_deref(), Some("Hi?"));
    assert_eq!(answer(&call.output_messages.unwrap()).as_deref(), Some("Hello."));
    let tool = json!({"traceloop.span.kind": "tool", "traceloop.entity.name": "get_weather",
        "traceloop.entity.input": "{\"tool_name\": \"get_weather\", \"arguments\": {\"city\": \"Porto Vell\"}}",
        "traceloop.entity.output": "{\"content\": [{\"type\": \"text\", \"text\": \"no such city\"}], \"isError\": true}"});
    let tool = read_span(&span("get_weather.tool", "opentelemetry.instrumentation.mcp", &tool));
    assert_eq!(
        (tool.tool_arguments, tool.tool_result),
        (Some(json!({"city": "Porto Vell"})), Some(json!("no such city")))
    );
    assert_eq!(tool.error.as_deref(), Some("no such city"));
}

#[test]
fn openinference_reads_completions_searches_and_older_calls() {
    let of = |attributes: Value| read_span(&span("x", "app", &attributes));
    let old = of(json!({"openinference.span.kind": "LLM", "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.function_call_name": "get_weather",
        "llm.output_messages.0.message.function_call_arguments_json": "{\"city\": \"Porto Vell\"}"}));
    assert!(is_pending(&old.output_messages.unwrap()));
    let completion = of(json!({"openinference.span.kind": "LLM", "llm.prompts.0.prompt.text": "Say hello.",
        "llm.choices.0.completion.text": "Hello."}));
    assert_eq!((completion.input.as_deref(), completion.output.as_deref()), (Some("Say hello."), Some("Hello.")));
    let search = of(json!({"openinference.span.kind": "RETRIEVER", "input.value": "ferry",
        "retrieval.documents.1.document.content": "two", "retrieval.documents.0.document.content": "one"}));
    assert_eq!(
        (search.role, search.input.as_deref(), search.output.as_deref()),
        (Some(Role::Retriever), Some("ferry"), Some("one\ntwo"))
    );
    let ranked =
        of(json!({"openinference.span.kind": "RERANKER", "reranker.query": "ferry", "reranker.model_name": "r",
        "reranker.output_documents.0.document.content": "best"}));
    assert_eq!(
        (ranked.input.as_deref(), ranked.output.as_deref(), ranked.model.as_deref()),
        (Some("ferry"), Some("best"), Some("r"))
    );
    let whole = of(
        json!({"openinference.span.kind": "LLM", "llm.input_messages": [{"message": {"role": "user", "content": "Hi?"}}]}),
    );
    assert_eq!(question(&whole.input_messages.unwrap()).as_deref(), Some("Hi?"));
    let guard = of(json!({"openinference.span.kind": "GUARDRAIL", "input.value": "Hi?", "output.value": "blocked"}));
    assert_eq!((guard.role, guard.output.as_deref()), (Some(Role::Guardrail), Some("blocked")));
}

#[test]
fn laminar_model_calls_without_messages_are_read_from_the_span() {
    let call = json!({"lmnr.span.type": "LLM", "gen_ai.request.model": "m", "lmnr.span.input": "[{\"role\": \"user\", \"content\": \"Hi?\"}]", "lmnr.span.output": "\"Hello.\""});
    let call = read_span(&span("call", "lmnr.tracer", &call));
    assert_eq!(question(&call.input_messages.unwrap()).as_deref(), Some("Hi?"));
    assert_eq!(call.output.as_deref(), Some("Hello."));
}

#[test]
fn langsmith_and_mlflow_state_models_counts_and_costs_in_several_places() {
    let call = json!({"langsmith.span.kind": "llm", "langsmith.metadata.ls_model_name": "m",
        "langsmith.usage_metadata": "{\"input_tokens\": 5, \"output_tokens\": 2}"});
    let call = read_span(&span("ChatOpenAI", "langsmith", &call));
    assert_eq!((call.request_model.as_deref(), call.usage.input, call.usage.output), (Some("m"), Some(5), Some(2)));
    let call = json!({"mlflow.spanType": "\"CHAT_MODEL\"", "mlflow.llm.cost": "{\"input_cost\": 0.1, \"output_cost\": 0.2, \"total_cost\": 0.3}"});
    assert_eq!(read_span(&span("call", "mlflow.tracing.provider", &call)).cost_usd, Some(0.3));
}

#[test]
fn strands_before_version_one_is_known_by_its_names() {
    let tool = json!({"tool.name": "lookup", "tool.id": "t1", "tool.parameters": "{\"order\": 7}", "tool.result": "[{\"text\": \"gone\"}]", "tool.status": "error"});
    let tool = read_span(&span("Tool: lookup", "strands-agents", &tool));
    assert_eq!(
        (tool.role, tool.tool_name.as_deref(), tool.tool_call_id.as_deref()),
        (Some(Role::Tool), Some("lookup"), Some("t1"))
    );
    assert!(tool.error.is_some() && tool.tool_arguments == Some(json!({"order": 7})));
    let agent = json!({"agent.name": "Guide", "gen_ai.prompt": "[{\"role\": \"user\", \"content\": [{\"text\": \"Hi?\"}]}]", "gen_ai.completion": "Hello."});
    let agent = read_span(&span("Guide", "strands-agents", &agent));
    assert_eq!((agent.role, agent.agent_name.as_deref()), (Some(Role::Agent), Some("Guide")));
    assert_eq!((agent.input.as_deref(), agent.output.as_deref()), (Some("Hi?"), Some("Hello.")));
}

#[test]
fn mcp_spans_run_a_tool_only_when_they_call_one() {
    let of = |name: &str, attributes: Value| read_span(&span(name, "mcp", &attributes));
    let call = of(
        "tools/call lookup",
        json!({"mcp.method.name": "tools/call", "mcp.session.id": "s", "gen_ai.tool.call.arguments": "{\"order\": 7}",
        "gen_ai.tool.call.result": "{\"content\": [{\"type\": \"text\", \"text\": \"gone\"}], \"isError\": true}"}),
    );
    assert_eq!(
        (call.role, call.tool_name.as_deref(), call.session_id.as_deref()),
        (Some(Role::Tool), Some("lookup"), Some("s"))
    );
    assert_eq!((call.tool_result, call.error.as_deref()), (Some(json!("gone")), Some("gone")));
    assert_eq!(of("prompts/get p", json!({"mcp.method.name": "prompts/get"})).role, Some(Role::Prompt));
    assert_eq!(of("tools/list", json!({"mcp.method.name": "tools/list"})).role, Some(Role::Other));
    let raw = of(
        "MCP request: tools/call",
        json!({"rpc.method": "tools/call", "request": "{\"method\": \"tools/call\", \"params\": {\"name\": \"lookup\", \"arguments\": {\"order\": 7}}}",
        "response": "{\"result\": {\"content\": [{\"type\": \"text\", \"text\": \"here\"}], \"isError\": false}}"}),
    );
    assert_eq!((raw.role, raw.tool_name.as_deref()), (Some(Role::Tool), Some("lookup")));
    assert_eq!((raw.tool_arguments, raw.tool_result), (Some(json!({"order": 7})), Some(json!("here"))));
    assert_eq!(read_span(&span("rpc", "grpc", &json!({"rpc.method": "tools/call"}))).role, None);
}

#[test]
fn events_keep_their_body_as_one_text_in_azures_sdks() {
    let mut call = span(
        "chat m",
        "azure.ai.inference",
        &json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.thread.id": "th-1"}),
    );
    for (name, body) in [
        ("gen_ai.user.message", "{\"role\": \"user\", \"content\": \"Hi?\"}"),
        ("gen_ai.choice", "{\"message\": {\"content\": \"Hello.\"}, \"finish_reason\": \"stop\", \"index\": 0}"),
    ] {
        let attributes =
            json!({"gen_ai.system": "az.ai.inference", "gen_ai.event.content": body}).as_object().unwrap().clone();
        call.events.push(RawEvent { time: Timestamp::default(), name: name.to_owned(), attributes });
    }
    let call = read_span(&call);
    assert_eq!(question(&call.input_messages.unwrap()).as_deref(), Some("Hi?"));
    assert_eq!(answer(&call.output_messages.unwrap()).as_deref(), Some("Hello."));
    assert_eq!(call.session_id.as_deref(), Some("th-1"));
}

#[test]
fn content_under_unknown_keys_is_named_and_never_copied() {
    let unread = json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.reply.body": "SECRET words",
        "vendor.outputText": "SECRET words", "vendor.input_text": "Hi?", "gen_ai.output.type": "text", "gen_ai.usage.output_tokens": 3,
        "http.response.body": "no", "gen_ai.response.finish_reasons": ["stop"], "gen_ai.response.id": "r-1"});
    let reading = read_span(&span("chat m", "app", &unread));
    assert_eq!(reading.unmapped, ["gen_ai.reply.body", "vendor.input_text", "vendor.outputText"]);
    assert_eq!(closest(&reading), Some("gen_ai"));
    assert!(!serde_json::to_string(&reading).unwrap().contains("SECRET"));
    let read = chat(&json!({"gen_ai.input.messages": [{"role": "user", "content": "Hi?"}],
        "gen_ai.output.messages": [{"role": "assistant", "content": "Hello."}], "vendor.output": "more"}));
    assert_eq!(read_span(&read).unmapped, Vec::<String>::new(), "nothing is missing");
    let off = span("chat m", "app", &json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}));
    assert_eq!((read_span(&off).unmapped, closest(&read_span(&off))), (Vec::new(), None), "content is off");
    let many: serde_json::Map<String, Value> = (0..99).map(|n| (format!("x{n:02}.result"), json!("words"))).collect();
    let mut many = Value::Object(many);
    many["gen_ai.operation.name"] = json!("execute_tool");
    assert_eq!(read_span(&span("execute_tool x", "app", &many)).unmapped.len(), 16);
}
