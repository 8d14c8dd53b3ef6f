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
    for entry in every_tool() {
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

/// Walks every subschema, each with its path.
fn walk(
    schema: &serde_json::Value,
    path: &str,
    look: &mut dyn FnMut(&str, &serde_json::Map<String, serde_json::Value>),
) {
    let Some(fields) = schema.as_object() else { return };
    look(path, fields);
    for (name, inner) in fields.get("properties").and_then(|inner| inner.as_object()).into_iter().flatten() {
        walk(inner, &format!("{path}.{name}"), look);
    }
    for (index, inner) in fields.get("anyOf").and_then(|inner| inner.as_array()).into_iter().flatten().enumerate() {
        walk(inner, &format!("{path}|{index}"), look);
    }
    for name in ["items", "additionalProperties"] {
        walk(&fields.get(name).cloned().unwrap_or_default(), &format!("{path}.{name}"), look);
    }
}

#[test]
fn g5_04_argument_schemas_keep_to_what_every_client_reads() {
    for entry in every_tool() {
        let schema = (entry.arguments)();
        assert_eq!(
            (&schema["type"], &schema["additionalProperties"]),
            (&json!("object"), &json!(false)),
            "{}",
            entry.name
        );
        let text = schema.to_string();
        for word in ["$ref", "$defs", "$schema", "\"null\"", "oneOf", "allOf"] {
            assert!(!text.contains(word), "{}: {word} in {text}", entry.name);
        }
        walk(&schema, entry.name, &mut |path, fields| {
            assert!(!fields.get("type").is_some_and(serde_json::Value::is_array), "{path}: a list of types");
            assert!(
                fields.get("type").is_none_or(|kind| kind != "array") || fields.contains_key("items"),
                "{path}: no items"
            );
            for value in fields.get("enum").and_then(|values| values.as_array()).into_iter().flatten() {
                assert!(value.is_string(), "{path}: {value}");
            }
        });
        assert!(entry.name.len() <= 64 && entry.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
    }
}

/// A reply may hold null, so its schema has lists of types; nothing else that a client is known to stumble over.
#[test]
fn reply_schemas_are_objects_and_self_contained() {
    for entry in every_tool() {
        let schema = (entry.reply)();
        assert_eq!(schema["type"], json!("object"), "{}", entry.name);
        assert!(schema.get("additionalProperties").is_none(), "{}: a field may be added", entry.name);
        let text = schema.to_string();
        for word in ["$ref", "$defs", "$schema"] {
            assert!(!text.contains(word), "{}: {word}", entry.name);
        }
        let outline = (entry.outline)();
        assert_eq!((&outline["type"], &outline["required"]), (&json!("object"), &schema["required"]), "{}", entry.name);
        for schema in [&schema, &outline] {
            walk(schema, entry.name, &mut |path, fields| {
                assert!(
                    fields.get("type").is_none_or(|kind| kind != "array") || fields.contains_key("items"),
                    "{path}: no items"
                );
            });
        }
    }
}

/// Every session of an agent pays for the list, so it has a ceiling.
#[test]
fn g5_02_the_list_of_tools_is_bounded() {
    let sizes: Vec<(&str, usize)> = TOOLS
        .iter()
        .map(|entry| {
            let size =
                (entry.describe)().len() + (entry.arguments)().to_string().len() + (entry.outline)().to_string().len();
            (entry.name, size)
        })
        .collect();
    let bytes: usize = sizes.iter().map(|(_, size)| size).sum();
    assert!(bytes < 40_000, "{bytes}: {sizes:?}");
}

#[test]
fn siblings_exist_and_every_code_has_a_recovery() {
    for entry in every_tool() {
        assert!(!entry.siblings.is_empty(), "{}", entry.name);
        for (name, _) in entry.siblings {
            assert!(*name != entry.name && tool(name).is_some(), "{}: {name}", entry.name);
        }
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

#[test]
fn the_paid_tools_read_their_arguments_before_anything_else() {
    let asked = json!({"output": "x", "template": "accuracy", "model": "m"});
    parse::<EvaluateWithLlmJudgeArgs>(asked).unwrap();
    for (arguments, field) in [
        (json!({"output": " ", "template": "accuracy", "model": "m"}), "output"),
        (json!({"output": "x", "template": "taste", "model": "m"}), "template"),
        (json!({"output": "x", "template": "correctness", "model": "m"}), "expected"),
        (json!({"output": "x", "template": "faithfulness", "model": "m", "source_material": " "}), "source_material"),
        (json!({"output": "x", "template": "task_completed", "model": "m"}), "input"),
        (json!({"output": "x", "template": "relevance", "model": "m", "input": "\u{2060}"}), "input"),
        (json!({"output": "x", "template": "safety", "model": "m", "max_cost_usd": 0}), "max_cost_usd"),
        (json!({"output": "x", "template": "safety", "model": "m", "max_output_tokens": 4097}), "max_output_tokens"),
        (json!({"output": "x", "template": "safety", "model": "m", "temperature": 2.1}), "temperature"),
        (json!({"output": "x", "template": "safety", "model": "m", "timeout_ms": 0}), "timeout_ms"),
        (json!({"output": "x", "template": "safety", "model": "m", "trace_id": "xyz"}), "trace_id"),
    ] {
        let error = parse::<EvaluateWithLlmJudgeArgs>(arguments.clone()).unwrap_err();
        assert_eq!((error.code, error.field.as_deref()), (Code::InvalidArgument, Some(field)), "{arguments}");
    }
    for (arguments, field) in [
        (json!({"output": "x", "model": "m", "max_citations": 51}), "max_citations"),
        (json!({"output": "x", "model": "m", "max_cost_usd_total": -1}), "max_cost_usd_total"),
        (json!({"output": "x", "model": "m", "domain_allowlist": ["a.example", ""]}), "domain_allowlist[1]"),
        (json!({"output": "x", "model": "m", "per_source_max_bytes": 0}), "per_source_max_bytes"),
    ] {
        let error = parse::<VerifyCitationsArgs>(arguments.clone()).unwrap_err();
        assert_eq!((error.code, error.field.as_deref()), (Code::InvalidArgument, Some(field)), "{arguments}");
    }
    let error = Error::judge_not_enabled("no key");
    assert_eq!((error.code, error.see, error.recovery.len()), (Code::JudgeNotEnabled, Some("iris://capabilities"), 4));
}

/// Guarantees: what the paid tools fail with carries what a program needs to go on: kind, numbers, whether and when to
/// come back.
#[test]
fn a_failure_of_a_judge_says_how_and_what_it_cost() {
    use crate::judge::Kind;
    let value = Error::provider_failed(Kind::RateLimit, "slow down", 0.0, Some(20_000)).envelope();
    assert_eq!(
        (&value["error"]["kind"], &value["error"]["retryable"], &value["error"]["retryAfterMs"]),
        (&json!("rate_limit"), &json!(true), &json!(20_000))
    );
    let value = Error::provider_failed(Kind::MalformedResponse, "", 0.001_234, None).envelope();
    let message = value["error"]["message"].as_str().unwrap();
    assert!(message.contains("0.001234 USD were spent, nothing was stored"), "{message}");
    assert_eq!((&value["error"]["retryable"], value["error"].get("retryAfterMs")), (&json!(false), None));
    let error = Error::budget_exceeded("max_cost_usd", 0.5, 0.25, Some("judge.ceiling_usd_day"));
    for part in ["0.5000", "0.2500", "judge.ceiling_usd_day", "nothing was spent"] {
        assert!(error.message.contains(part), "{part}: {}", error.message);
    }
    let error = Error::judge_unknown_model(vec!["gpt-4o".to_owned()]);
    assert_eq!((error.field.as_deref(), error.valid.len(), error.http_status()), (Some("model"), 1, 400));
    let error = Error::judge_failed(Some(Kind::Auth), 3, "", 0.5);
    assert!(!error.retryable && error.message.starts_with("3 sources") && error.recovery.len() == 2);
    assert!(Error::judge_not_enabled("x").envelope()["error"].get("kind").is_none());
}

#[test]
fn an_address_belongs_to_one_resource() {
    for (uri, name, id) in [
        ("iris://capabilities", "capabilities", ""),
        ("iris://proof", "proof", ""),
        ("iris://dashboard/summary", "dashboard-summary", ""),
        ("iris://traces/0af7651916cd43dd8448eb211c80319c", "trace", "0af7651916cd43dd8448eb211c80319c"),
        ("iris://evaluations/x-1", "evaluation", "x-1"),
    ] {
        let found: Vec<_> = RESOURCES.iter().filter_map(|one| Some((one.name, one.matches(uri)?))).collect();
        assert_eq!(found, [(name, id)], "{uri}");
    }
    for uri in
        ["iris://traces/", "iris://traces", "iris://traces/a/b", "iris://capabilities/", "IRIS://capabilities", ""]
    {
        assert!(RESOURCES.iter().all(|one| one.matches(uri).is_none()), "{uri}");
    }
    assert_ne!(prompt("output", "1"), prompt("trace-file", "1"));
    assert_eq!(links("list_rules", &json!({ "rules": [] })), ["iris://proof"]);
}
