//! Group 2: assembling traces. When a trace counts as finished (G2-01, G2-02, G2-05, G2-06) is tested with the state machine
//! itself, under the same ids.

use super::*;

/// Parents that never come are named. There is no synthetic root: orphans are spans of the trace like any other, judged
/// when it is given up, and the trace is `partial`.
#[test]
fn g2_01_orphans_are_spans_of_the_trace() {
    let sent = Sent::default().span(2, 0xaa, "execute_tool find", &tool("find", &json!({"q": 1}))).span(
        3,
        0xaa,
        "chat gpt-4o",
        &chat(&json!({"gen_ai.output.messages": says("assistant", "Found.")})),
    );
    let trace = sent.trace();
    assert_eq!((trace.output.as_deref(), tools(&trace), trace.span_count), (Some("Found."), vec!["find"], 2));
    let missing: Vec<String> = trace.notes.missing_parents.iter().map(ToString::to_string).collect();
    assert_eq!(missing, [span_id(0xaa)]);
    let remote = sent.span(4, 0xbb, "chat", &counted(1, 1)).with(|span| span["flags"] = json!(0x300));
    assert_eq!(remote.trace().notes.missing_parents.len(), 1, "a parent in another process is no lack");
}

#[test]
fn g2_03_a_plain_span_between_breaks_no_ancestry() {
    let mut rollup = agent("Guide");
    rollup["gen_ai.usage.input_tokens"] = json!(110);
    rollup["gen_ai.usage.output_tokens"] = json!(11);
    let trace = Sent::default()
        .span(1, 0, "invoke_agent Guide", &rollup)
        .span(2, 1, "HTTP POST", &json!({"http.request.method": "POST"}))
        .span(3, 2, "chat gpt-4o", &counted(110, 11))
        .span(4, 3, "HTTP POST", &json!({"http.request.method": "POST"}))
        .span(5, 4, "chat gpt-4o", &counted(110, 11))
        .trace();
    assert_eq!((tokens(&trace), trace.runs.len()), ((Some(110), Some(11)), 1));
    assert_eq!((trace.agent_name.as_str(), trace.notes.doubled_calls), ("Guide", 1));
}

#[test]
fn g2_08_indices_are_numbers_and_holes_are_holes() {
    let call = |more: &Value| {
        let mut attributes = json!({"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o"});
        attributes.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Sent::default().span(1, 0, "ChatCompletion", &attributes).trace()
    };
    let unordered = call(&json!({
        "llm.input_messages.10.message.role": "user", "llm.input_messages.10.message.content": "Last?",
        "llm.input_messages.2.message.role": "user", "llm.input_messages.2.message.content": "Second?",
        "llm.input_messages.1.message.role": "user", "llm.input_messages.1.message.content": "First?",
        "llm.output_messages.1.message.role": "assistant", "llm.output_messages.1.message.content": "Told.",
        "llm.output_messages.0.message.role": "assistant",
    }));
    assert_eq!((unordered.input.as_deref(), unordered.output.as_deref()), (Some("Last?"), Some("Told.")));
    let far = call(
        &json!({"llm.output_messages.999999.message.role": "assistant", "llm.output_messages.999999.message.content": "Far."}),
    );
    assert_eq!(far.output.as_deref(), Some("Far."));
    let lost =
        call(&json!({"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Hi?"}));
    assert_eq!(lost.output, None);
    assert_ne!(verdict(&lost).0, "pass", "a missing output never passes");
}

/// The raw attributes are stored and forwarded as sent; what is judged, shown and given to a judge has no blob in it.
#[test]
fn g2_09_media_never_reach_rules_or_the_trace() {
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    png.extend((0..3_145_720_u32).map(|at| u8::try_from(at * 31 % 251).unwrap()));
    let data = base64(&png);
    let pdf = base64(&[b"%PDF-1.7 ".as_slice(), &[7; 4000]].concat());
    let input = json!([{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{data}")}},
        {"type": "input_audio", "input_audio": {"format": "wav", "data": data}},
        {"type": "text", "text": "What is this?"},
    ]}]);
    let trace = Sent::default()
        .span(1, 0, "invoke_agent Guide", &agent("Guide"))
        .span(2, 1, "chat gpt-4o", &chat(&json!({
            "gen_ai.input.messages": input.to_string(),
            "gen_ai.output.messages": says("assistant", &format!("A harbour, see data:image/png;base64,{data} above.")),
        })))
        .span(3, 1, "execute_tool read", &tool("read", &json!({"id": 1})))
        .with(|span| {
            let result = json!({"file": "a.pdf", "blob": pdf});
            let pair = json!({"key": "gen_ai.tool.call.result", "value": {"stringValue": result.to_string()}});
            span["attributes"].as_array_mut().unwrap().push(pair);
        })
        .trace();
    assert_eq!(trace.input.as_deref(), Some("What is this?"));
    let output = trace.output.clone().unwrap();
    assert!(
        output.starts_with("A harbour, see [image/png, 3145728 bytes, sha256=") && output.ends_with("] above."),
        "{output:.200}"
    );
    let text = serde_json::to_string(&trace).unwrap();
    assert!(text.len() < 5000 && text.contains("[application/pdf, 4009 bytes"), "{}", text.len());
    assert_eq!(results(&trace)["no_pii"], "pass", "nothing is left unread, and nothing is found in noise");
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// A duration below zero is not known rather than clamped to zero; the trace says that clocks disagree.
#[test]
fn g2_10_a_clock_that_is_late_changes_no_order() {
    const SECOND: u64 = 1_000_000_000;
    let at = |seconds: u64| (1_000 + seconds) * SECOND;
    let trace = Sent::default()
        .timed(1, 0, "invoke_agent A", at(0), at(20), &agent("A"))
        .timed(2, 1, "execute_tool before", at(1), at(2), &tool("before", &json!({})))
        .timed(3, 1, "HTTP POST", at(3), at(10), &json!({"http.request.method": "POST"}))
        .timed(4, 3, "invoke_agent B", at(4) - 90 * SECOND, at(3) - 90 * SECOND, &agent("B"))
        .timed(5, 4, "execute_tool within", at(5) - 90 * SECOND, at(6) - 90 * SECOND, &tool("within", &json!({})))
        .timed(6, 1, "execute_tool after", at(12), at(13), &tool("after", &json!({})))
        .trace();
    assert_eq!((trace.agent_name.as_str(), trace.runs.len()), ("A", 1));
    assert_eq!(trace.latency_ms, Some(20_000.0));
    assert_eq!(tools(&trace), ["before", "within", "after"]);
    assert!(trace.notes.clock_skew);
    let fine = Sent::default().span(1, 0, "invoke_agent A", &agent("A")).span(2, 1, "chat", &counted(1, 1)).trace();
    assert!(!fine.notes.clock_skew);
}

#[test]
fn g2_11_one_call_recorded_by_framework_and_client_counts_once() {
    let (outer, inner) = (
        json!({"openinference.span.kind": "LLM", "llm.model_name": "claude-sonnet-4-5", "llm.provider": "anthropic",
            "llm.token_count.prompt": 9844, "llm.token_count.completion": 30,
            "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "Done."}),
        json!({"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.request.model": "claude-sonnet-4-5",
            "gen_ai.usage.input_tokens": 2, "gen_ai.usage.cache_read.input_tokens": 9842, "gen_ai.usage.output_tokens": 30,
            "gen_ai.output.messages": says("assistant", "Done.")}),
    );
    let trace = Sent::default()
        .span(1, 0, "invoke_agent Guide", &agent("Guide"))
        .span(2, 1, "ChatAnthropic", &outer)
        .by("openinference.instrumentation.langchain")
        .span(3, 2, "chat claude", &inner)
        .by("opentelemetry.instrumentation.anthropic")
        .span(4, 1, "mcp__srv__find", &tool("mcp__srv__find", &json!({"q": "tide"})))
        .span(
            5,
            4,
            "tools/call find",
            &json!({"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "find", "gen_ai.tool.call.arguments": json!({"q": "tide"}).to_string()}),
        )
        .trace();
    assert_eq!(tokens(&trace), (Some(9844), Some(30)));
    close(trace.cost_usd, 2.0 * 3e-6 + 9842.0 * 0.3e-6 + 30.0 * 15e-6);
    assert_eq!(tools(&trace), ["mcp__srv__find"], "the adapter and the client behind it are one step");
    assert_eq!((trace.notes.doubled_calls, trace.notes.doubled_tools, trace.span_count), (1, 1, 5));
    assert_eq!(trace.cost_parts.unwrap().calls, 1);
}

#[test]
fn g2_12_siblings_with_one_answer_are_one_call_and_parallel_calls_are_two() {
    const MS: u64 = 1_000_000;
    let call = |id: &str| {
        chat(&json!({"gen_ai.response.id": id, "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 10}))
    };
    let sent = |second: &str| {
        Sent::default()
            .timed(1, 0, "invoke_agent Guide", 1000 * MS, 2000 * MS, &agent("Guide"))
            .timed(2, 1, "acompletion", 1010 * MS, 1900 * MS, &call("r-1"))
            .timed(3, 1, "chat gpt-4o", 1012 * MS, 1898 * MS, &call(second))
            .trace()
    };
    let doubled = sent("r-1");
    assert_eq!((tokens(&doubled), doubled.notes.doubled_calls), ((Some(100), Some(10)), 1));
    close(doubled.cost_usd, 100.0 * 2.5e-6 + 10.0 * 10e-6);
    let parallel = sent("r-2");
    assert_eq!((tokens(&parallel), parallel.notes.doubled_calls), ((Some(200), Some(20)), 0));
    close(parallel.cost_usd, 2.0 * (100.0 * 2.5e-6 + 10.0 * 10e-6));
}
