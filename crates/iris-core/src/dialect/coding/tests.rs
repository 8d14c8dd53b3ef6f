use std::sync::Arc;

use serde_json::{Value, json};

use crate::dialect::{DETAILS_EVENT, answer, read_log, read_span, step_of, trace_of, wants_log};
use crate::model::{RawLog, RawSpan, Reading, Resource, Role, Scope, SpanId, StatusCode, Timestamp, TraceId};

fn log(service: &str, event_name: &str, body: &str, attributes: &Value) -> RawLog {
    let resource = Resource { attributes: json!({ "service.name": service }).as_object().unwrap().clone() };
    RawLog {
        trace_id: None,
        span_id: None,
        time: Timestamp::from_unix_nanos(1_772_000_000_000_000_000),
        severity: 9,
        event_name: event_name.to_owned(),
        body: Value::String(body.to_owned()),
        attributes: attributes.as_object().unwrap().clone(),
        resource: Arc::new(resource),
        scope: Arc::new(Scope::default()),
    }
}

fn read(log: &RawLog) -> (RawSpan, Reading) {
    let span = step_of(log).unwrap_or_else(|| panic!("no step: {log:?}"));
    let reading = read_span(&span);
    (span, reading)
}

fn prompt() -> RawLog {
    let attributes = json!({"event.name": "user_prompt", "session.id": "s-1", "prompt.id": "p-1", "prompt": "Hi?"});
    log("claude-code", "user_prompt", "claude_code.user_prompt", &attributes)
}

#[test]
fn records_of_one_prompt_meet_in_one_trace() {
    let call = json!({"event.name": "api_request", "session.id": "s-1", "prompt.id": "p-1", "model": "m",
        "input_tokens": 2, "output_tokens": "30", "cache_read_tokens": 80, "cache_creation_tokens": "10", "cost_usd": "0.012",
        "duration_ms": "1500", "request_id": "req-1"});
    let call = log("claude-code", "api_request", "claude_code.api_request", &call);
    let ((run, asked), (span, reading)) = (read(&prompt()), read(&call));
    assert_eq!((asked.role, asked.input.as_deref()), (Some(Role::Agent), Some("Hi?")));
    assert_eq!((run.parent_span_id, span.parent_span_id), (None, Some(run.span_id)));
    assert_eq!(run.trace_id, span.trace_id);
    assert_eq!(span.end.since(span.start).as_millis(), 1500);
    assert_eq!(reading.role, Some(Role::Llm));
    assert_eq!((reading.usage.input, reading.usage.output, reading.usage.cache_read), (Some(92), Some(30), Some(80)));
    assert_eq!((reading.cost_usd, reading.session_id.as_deref()), (Some(0.012), Some("s-1")));
    assert_eq!(step_of(&call).unwrap().span_id, span.span_id, "a resend is the same span");
    let mut other = call.clone();
    other.attributes.insert("prompt.id".to_owned(), json!("p-2"));
    assert_ne!(step_of(&other).unwrap().trace_id, span.trace_id, "another prompt is another trace");
    let mut elsewhere = call;
    elsewhere.resource = log("claude-code-2", "", "", &json!({})).resource;
    assert_ne!(step_of(&elsewhere).unwrap().trace_id, span.trace_id, "another service is another trace");
}

#[test]
fn names_arrive_in_full_or_without_the_agents() {
    for (event_name, body, attribute) in [
        ("claude_code.api_request", "", "claude_code.api_request"),
        ("api_request", "claude_code.api_request", "api_request"),
        ("claude_code.api_request", "anything", "api_request"),
    ] {
        let attributes = json!({"event.name": attribute, "session.id": "s-1", "cost_usd": 0.012, "input_tokens": 5});
        let record = log("claude-code", event_name, body, &attributes);
        assert!(wants_log(event_name));
        let (span, reading) = read(&record);
        assert_eq!((span.name.as_str(), reading.usage.input), ("claude_code.api_request", Some(5)), "{event_name}");
    }
    // The short names are anybody's.
    let other = log("shop", "user_prompt", "a prompt", &json!({"session.id": "s-1", "prompt": "Hi?"}));
    assert_eq!(step_of(&other), None);
    assert_eq!(step_of(&log("claude-code", "user_prompt", "claude_code.user_prompt", &json!({}))), None, "no session");
}

#[test]
fn a_record_inside_a_span_only_adds_words_to_it() {
    let mut inside = prompt();
    inside.trace_id = TraceId::from_bytes(&[7; 16]);
    inside.span_id = SpanId::from_bytes(&[7; 8]);
    assert_eq!(step_of(&inside), None);
    let reading = read_log(&inside).unwrap();
    assert_eq!((reading.role, reading.input.as_deref()), (None, Some("Hi?")));
    inside.span_id = None;
    assert_eq!(step_of(&inside).unwrap().trace_id.as_bytes(), &[7; 16], "a trace that is named is kept");
    assert_eq!(trace_of(&inside), inside.trace_id);
    assert_eq!(trace_of(&prompt()), step_of(&prompt()).map(|step| step.trace_id));
    assert!(trace_of(&prompt()).is_some());
}

#[test]
fn tools_that_fail_say_so_and_tools_of_servers_have_their_names() {
    let attributes = json!({"event.name": "tool_result", "session.id": "s-1", "tool_name": "mcp_tool", "tool_use_id": "t-1",
        "success": "false", "error": "unknown crate", "tool_input": "{\"crate\": \"harbr\"}",
        "tool_parameters": "{\"mcp_server_name\": \"docs\", \"mcp_tool_name\": \"lookup\"}"});
    let (span, reading) = read(&log("claude-code", "tool_result", "claude_code.tool_result", &attributes));
    assert_eq!(span.status, StatusCode::Error);
    assert_eq!((reading.role, reading.tool_name.as_deref()), (Some(Role::Tool), Some("mcp__docs__lookup")));
    assert_eq!(
        (reading.tool_arguments, reading.error.as_deref()),
        (Some(json!({"crate": "harbr"})), Some("unknown crate"))
    );
}

#[test]
fn helpers_words_are_no_answer() {
    for (source, answers) in
        [("repl_main_thread", true), ("", true), ("generate_session_title", false), ("subagent", false)]
    {
        let attributes = json!({"event.name": "assistant_response", "session.id": "s-1", "query_source": source,
            "response": "Hello.", "request_id": "r"});
        let (_, reading) =
            read(&log("claude-code", "assistant_response", "claude_code.assistant_response", &attributes));
        assert_eq!(reading.output_messages.is_some(), answers, "{source}");
    }
    let redacted = json!({"event.name": "assistant_response", "session.id": "s-1", "response": "<REDACTED>"});
    let (_, reading) = read(&log("claude-code", "assistant_response", "claude_code.assistant_response", &redacted));
    assert_eq!(reading.output_messages, None);
}

#[test]
fn spans_of_claude_code_are_read_like_its_records() {
    let span = |name: &str, attributes: Value| {
        let record = prompt();
        let mut span = step_of(&record).unwrap();
        name.clone_into(&mut span.name);
        span.attributes = attributes.as_object().unwrap().clone();
        read_span(&span)
    };
    let run = span("claude_code.interaction", json!({"session.id": "s", "user_prompt": "Hi?"}));
    assert_eq!(
        (run.role, run.input.as_deref(), run.agent_name.as_deref()),
        (Some(Role::Agent), Some("Hi?"), Some("claude-code"))
    );
    let call = span(
        "claude_code.llm_request",
        json!({"model": "m", "gen_ai.system": "anthropic", "gen_ai.request.model": "m",
        "input_tokens": 2, "output_tokens": 1200, "cache_read_tokens": 84562, "cache_creation_tokens": 7096, "stop_reason": "tool_use"}),
    );
    assert_eq!((call.role, call.usage.input, call.usage.output), (Some(Role::Llm), Some(91_660), Some(1200)));
    let tool = span("claude_code.tool", json!({"tool_name": "Bash", "gen_ai.tool.call.id": "toolu_1"}));
    assert_eq!(
        (tool.role, tool.tool_name.as_deref(), tool.tool_call_id.as_deref()),
        (Some(Role::Tool), Some("Bash"), Some("toolu_1"))
    );
    assert_eq!(span("claude_code.tool.execution", json!({"success": true})).role, Some(Role::Other));
}

#[test]
fn of_codex_streams_only_what_completes_or_fails_is_a_step() {
    let event = |attributes: Value| log("codex_cli_rs", "codex.sse_event", "", &attributes);
    let kind = |kind: &str| {
        event(json!({"conversation.id": "c", "event.kind": kind, "output_token_count": "7", "input_token_count": "9",
        "cached_token_count": 3, "reasoning_token_count": 2, "model": "gpt"}))
    };
    assert_eq!(step_of(&kind("response.created")), None);
    let (_, reading) = read(&kind("response.completed"));
    assert_eq!(
        (reading.role, reading.model.as_deref(), reading.session_id.as_deref()),
        (Some(Role::Llm), Some("gpt"), Some("c"))
    );
    assert_eq!((reading.usage.input, reading.usage.output, reading.usage.reasoning), (Some(9), Some(7), Some(2)));
    let (span, _) = read(&event(json!({"conversation.id": "c", "error.message": "idle timeout waiting for SSE"})));
    assert_eq!(span.status, StatusCode::Error);
    let request = |status: u16| {
        log(
            "codex_cli_rs",
            "codex.api_request",
            "",
            &json!({"conversation.id": "c", "http.response.status_code": status}),
        )
    };
    assert_eq!(step_of(&request(200)), None, "it is told again when it completes");
    assert_eq!(read(&request(503)).1.error.as_deref(), Some("status 503"));
}

#[test]
fn gemini_counts_thoughts_beside_its_output() {
    let attributes = json!({"session.id": "s", "prompt_id": "p", "model": "gemini-2.5-pro", "input_token_count": 800,
        "output_token_count": 10, "cached_content_token_count": 400, "thoughts_token_count": 5, "response_text": "It builds."});
    let (_, reading) = read(&log("gemini-cli", "gemini_cli.api_response", "", &attributes));
    assert_eq!((reading.usage.input, reading.usage.output, reading.usage.reasoning), (Some(800), Some(15), Some(5)));
    assert_eq!(answer(&reading.output_messages.unwrap()).as_deref(), Some("It builds."));
    let mut streamed = attributes;
    streamed["response_text"] = json!(
        "[{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"It \"}]}}]},{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"builds.\"}]}}]}]"
    );
    let (_, reading) = read(&log("gemini-cli", "gemini_cli.api_response", "", &streamed));
    assert_eq!(answer(&reading.output_messages.unwrap()).as_deref(), Some("It builds."));
    let failed = json!({"session.id": "s", "prompt_id": "p", "function_name": "read_file", "function_args": "{\"path\":\"x\"}", "success": false, "error": "no such file"});
    let (_, reading) = read(&log("gemini-cli", "gemini_cli.tool_call", "", &failed));
    assert_eq!((reading.tool_arguments, reading.error.as_deref()), (Some(json!({"path": "x"})), Some("no such file")));
}

#[test]
fn other_records_are_no_steps() {
    assert!(!wants_log("gemini_cli.config") && !wants_log("codex.tool_decision"));
    assert_eq!(step_of(&log("app", DETAILS_EVENT, "", &json!({"session.id": "s"}))), None);
    assert_eq!(step_of(&log("gemini-cli", "gemini_cli.config", "", &json!({"session.id": "s"}))), None);
}
