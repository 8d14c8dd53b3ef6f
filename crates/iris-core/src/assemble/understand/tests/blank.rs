//! An output that was sent and shows nothing reaches the trace; one that was not sent does not.

use super::*;

fn states(trace: &Trace) -> (Option<&str>, String) {
    let evaluation = judge_trace(&Ruleset::built_in(), trace, &Settings::default(), Timestamp::default());
    let result = evaluation.rule_results.iter().find(|result| result.rule_name == "non_empty_output").unwrap();
    (trace.output.as_deref(), result.state.to_string())
}

fn step(kind: &str, output: &Value) -> Value {
    let mut attributes = json!({"openinference.span.kind": kind, "input.value": "Weather?"});
    if !output.is_null() {
        attributes["output.value"] = output.clone();
    }
    attributes
}

#[test]
fn a_blank_answer_of_a_model_is_a_blank_output() {
    for text in ["  \n", ""] {
        let trace = Sketch::default()
            .span(1, 0, "invoke_agent Guide", agent("Guide"))
            .span(2, 1, "chat m", chat("Weather?", text, "r1"))
            .trace()
            .unwrap();
        assert_eq!(states(&trace), (Some(text), "fail".to_owned()), "{text:?}");
        let alone = Sketch::default().span(1, 0, "chat m", chat("Weather?", text, "r1")).trace().unwrap();
        assert_eq!(states(&alone), (Some(text), "fail".to_owned()), "{text:?}");
    }
}

#[test]
fn a_blank_output_value_is_a_blank_output() {
    for kind in ["AGENT", "LLM"] {
        for sent in ["  ", "", "\"  \""] {
            let trace = Sketch::default().span(1, 0, "run", step(kind, &json!(sent))).trace().unwrap();
            let (output, state) = states(&trace);
            // What is recorded as data of a step stays as it stands.
            assert!(
                output.is_some_and(|output| output.trim_matches('"').trim().is_empty()),
                "{kind} {sent:?}: {output:?}"
            );
            assert_eq!(state, "fail", "{kind} {sent:?}");
        }
    }
    let above = Sketch::default()
        .span(1, 0, "graph", step("CHAIN", &json!("")))
        .span(2, 1, "model", step("LLM", &json!(" ")))
        .trace()
        .unwrap();
    assert_eq!(states(&above), (Some(""), "fail".to_owned()));
}

#[test]
fn what_was_not_sent_stays_missing_and_words_win() {
    for output in [Value::Null, json!("__REDACTED__"), json!("[REDACTED]")] {
        for kind in ["AGENT", "LLM"] {
            let trace = Sketch::default().span(1, 0, "run", step(kind, &output)).trace().unwrap();
            assert_eq!(trace.output, None, "{kind} {output}");
        }
    }
    let off = Sketch::default()
        .span(1, 0, "invoke_agent Guide", agent("Guide"))
        .span(2, 1, "chat m", silent_chat(&json!({})))
        .trace()
        .unwrap();
    assert_eq!(off.output, None);
    let failed = Sketch::default().span(1, 0, "run", step("AGENT", &json!(""))).failed("boom").trace().unwrap();
    assert_eq!(failed.output, None);
    let said = Sketch::default()
        .span(1, 0, "run", step("AGENT", &json!("")))
        .span(2, 1, "chat m", chat("Weather?", "It is 18 C.", "r1"))
        .trace()
        .unwrap();
    assert_eq!(states(&said), (Some("It is 18 C."), "pass".to_owned()));
}

#[test]
fn a_call_for_tools_beside_blank_words_is_no_answer() {
    let parts =
        json!([{"type": "text", "content": ""}, {"type": "tool_call", "id": "c1", "name": "look", "arguments": {}}]);
    let asks = json!({"gen_ai.output.messages": [{"role": "assistant", "parts": parts}]});
    let stops = json!({"gen_ai.output.messages": [{"role": "assistant", "finish_reason": "tool_call", "parts": [{"type": "text", "content": ""}]}]});
    for more in [asks, stops] {
        let trace = Sketch::default().span(1, 0, "chat m", silent_chat(&more)).trace().unwrap();
        assert_eq!(trace.output, None, "{more}");
    }
}
