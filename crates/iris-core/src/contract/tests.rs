use serde_json::json;

use super::*;

#[test]
fn an_unknown_argument_is_refused_with_the_valid_ones() {
    let error = parse::<EvaluateOutputArgs>(json!({"output": "x", "eval_typ": "safety"})).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    assert_eq!(error.field.as_deref(), Some("eval_typ"));
    assert!(error.valid.iter().any(|name| name == "eval_type"), "{error:?}");
}

#[test]
fn an_unknown_key_one_level_down_is_refused_with_its_place() {
    let error = parse::<LogTraceArgs>(json!({"agent_name": "a", "tool_calls": [{"tool_name": "t"}, {"tool": "t"}]}))
        .unwrap_err();
    assert_eq!(error.field.as_deref(), Some("tool_calls[1].tool"));
    assert!(error.valid.iter().any(|name| name == "tool_name"), "{error:?}");
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    parse::<LogTraceArgs>(json!({"agent_name": "a", "metadata": {"x": nested(62)}})).unwrap();
    let error = parse::<LogTraceArgs>(json!({"agent_name": "a", "metadata": {"x": nested(63)}})).unwrap_err();
    assert!(error.message.contains("64 levels"), "{error}");
}

#[test]
fn metadata_is_free() {
    parse::<LogTraceArgs>(json!({"agent_name": "a", "metadata": {"anything": {"goes": 1}}})).unwrap();
}

#[test]
fn a_wrong_type_names_the_field_and_does_not_echo_the_value() {
    let error = parse::<LogTraceArgs>(json!({"agent_name": "a", "cost_usd": "536-22-8716"})).unwrap_err();
    assert_eq!(error.field.as_deref(), Some("cost_usd"));
    assert!(!error.message.contains("536"), "{error}");
    let error = parse::<EvaluateOutputArgs>(json!({"eval_type": "536-22-8716"})).unwrap_err();
    assert!(!error.message.contains("536"), "{error}");
    assert!(error.message.contains("safety"), "{error}");
}

#[test]
fn a_missing_argument_is_named() {
    let error = parse::<LogTraceArgs>(json!({})).unwrap_err();
    assert!(error.message.contains("agent_name"), "{error}");
}

#[test]
fn a_value_that_cannot_be_meant_is_refused_by_its_field() {
    for (arguments, field) in [
        (json!({"agent_name": ""}), "agent_name"),
        (json!({"agent_name": " \t"}), "agent_name"),
        (json!({"agent_name": "\u{200b}"}), "agent_name"),
        (json!({"agent_name": "a", "cost_usd": -0.01}), "cost_usd"),
        (json!({"agent_name": "a", "latency_ms": -1}), "latency_ms"),
        (json!({"agent_name": "a", "token_usage": {"completion_tokens": -1}}), "token_usage.completion_tokens"),
        (json!({"agent_name": "a", "tool_calls": [{"tool_name": ""}]}), "tool_calls[0].tool_name"),
        (json!({"agent_name": "a", "tool_calls": [{"tool_name": "t", "latency_ms": -1}]}), "tool_calls[0].latency_ms"),
        (json!({"agent_name": "a", "evaluate": true}), "evaluate"),
    ] {
        let error = parse::<LogTraceArgs>(arguments.clone()).unwrap_err();
        assert_eq!((error.code, error.field.as_deref()), (Code::InvalidArgument, Some(field)), "{arguments}");
    }
    for (arguments, field) in [
        (json!({"output": "x", "cost_usd": -1}), "cost_usd"),
        (json!({"output": "x", "tool_calls": [{"tool_name": "\u{2060}"}]}), "tool_calls[0].tool_name"),
        (json!({"output": "x", "trace_id": "0AF7651916CD43DD8448EB211C80319C0"}), "trace_id"),
        (json!({"input": "x"}), "output"),
    ] {
        let error = parse::<EvaluateOutputArgs>(arguments.clone()).unwrap_err();
        assert_eq!((error.code, error.field.as_deref()), (Code::InvalidArgument, Some(field)), "{arguments}");
    }
    let usual = json!({"agent_name": "a", "cost_usd": 0, "latency_ms": 0, "token_usage": {"total_tokens": 0}, "tool_calls": []});
    assert!(parse::<LogTraceArgs>(usual).is_ok());
}

#[test]
fn every_description_has_the_five_parts_within_450_words_and_names_every_reply_field() {
    for entry in TOOLS {
        let text = (entry.describe)();
        for part in ["What it does. ", "When not to use it. ", "Returns. ", "Errors. ", "Siblings. "] {
            assert!(text.contains(part), "{}: {part}", entry.name);
        }
        assert!(text.split_whitespace().count() <= 450, "{}: {} words", entry.name, text.split_whitespace().count());
        let reply = (entry.reply)();
        for field in reply["properties"].as_object().unwrap().keys() {
            assert!(text.contains(&format!("{field} (")), "{}: {field}", entry.name);
        }
    }
}

#[test]
fn a_reply_field_that_may_be_left_out_is_not_required() {
    let required = |name: &str| {
        let schema = (tool(name).unwrap().reply)();
        schema["required"]
            .as_array()
            .unwrap()
            .iter()
            .map(|field| field.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert!(required("get_traces").contains(&"traces".to_owned()));
    assert!(!required("get_traces").contains(&"truncated".to_owned()));
    assert!(!required("evaluate_output").contains(&"note".to_owned()));
}

#[test]
fn argument_schemas_are_closed_and_self_contained() {
    for entry in TOOLS {
        let schema = (entry.arguments)();
        assert_eq!(schema["additionalProperties"], json!(false), "{}", entry.name);
        let text = schema.to_string();
        assert!(
            !text.contains("$ref") && !text.contains("\"null\"") && !text.contains("oneOf"),
            "{}: {text}",
            entry.name
        );
    }
}

#[test]
fn siblings_exist_and_every_code_has_a_recovery() {
    for (name, _) in TOOLS.iter().flat_map(|_| {
        let tools = [LogTrace::SIBLINGS, EvaluateOutput::SIBLINGS, GetTraces::SIBLINGS, ListRules::SIBLINGS];
        [tools.concat(), [DeployRule::SIBLINGS, DeleteRule::SIBLINGS].concat()].concat()
    }) {
        assert!(tool(name).is_some(), "{name}");
    }
    let names: std::collections::BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(names.len(), 11);
    let trace_id = "0af7651916cd43dd8448eb211c80319c".parse().unwrap();
    for error in
        [Error::unknown_trace(&trace_id), Error::internal("r"), Error::storage_failed("r"), Error::storage_busy("x", 1)]
    {
        assert!(!error.recovery.is_empty(), "{error}");
    }
}

#[test]
fn of_many_unknown_arguments_eight_are_listed() {
    let fields: serde_json::Map<_, _> = (0..500).map(|n| (format!("made_up_{n}"), json!(1))).collect();
    let error = parse::<GetTracesArgs>(serde_json::Value::Object(fields)).unwrap_err();
    assert_eq!(error.message.matches("made_up_").count(), 8, "{error}");
    assert!(error.message.contains(" and 492 more; valid: "), "{error}");
}

#[test]
fn what_is_in_the_journal_must_not_be_sent_again() {
    let error = Error::journalled("trace 0af7651916cd43dd8448eb211c80319c", "r");
    assert!(!error.retryable && error.retry_after_ms.is_none());
    assert!(error.message.contains("0af7651916cd43dd8448eb211c80319c is stored"), "{error}");
    assert!(error.recovery[0].starts_with("do not repeat"), "{error:?}");
}
