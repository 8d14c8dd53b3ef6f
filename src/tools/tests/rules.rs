//! Custom rules and expectations as a caller sees them.

use super::*;

fn rule(name: &str, kind: &str, config: Value) -> Value {
    let mut rule = json!({ "name": name, "eval_type": "custom", "definition": { "type": kind } });
    rule["definition"]["config"] = config;
    rule
}

fn result<'a>(evaluation: &'a Value, name: &str) -> &'a Value {
    let results = evaluation["rule_results"].as_array().unwrap();
    results.iter().find(|result| result["ruleName"] == name).unwrap_or(&Value::Null)
}

/// Guarantees: the tools that need the rule file only answer before the store is open.
#[tokio::test(flavor = "multi_thread")]
async fn rules_can_be_changed_while_the_store_is_closed() {
    let home = tempfile::tempdir().unwrap();
    let stand = Stand { app: app(home.path()), _home: home };
    let deployed = stand.call("deploy_rule", rule("ours", "min_length", json!({ "min": 3 }))).await.unwrap();
    let id = deployed["rule"]["id"].as_str().unwrap();
    assert!(id.len() == 13 && id.starts_with("rule-"), "{id}");
    assert_eq!(deployed["rule"]["evalType"], "custom");
    assert_eq!((&deployed["rule"]["severity"], &deployed["rule"]["version"]), (&json!("medium"), &json!(1)));
    assert_eq!(deployed["rule"]["definition"]["name"], "ours", "the rule's own name");
    assert_eq!(deployed["rule"]["createdAt"], deployed["rule"]["updatedAt"]);
    let error = stand.call("evaluate_output", json!({ "output": "x" })).await.unwrap_err();
    assert_eq!((error.code, error.retryable), (Code::StorageError, true));
    let listed = stand.call("list_rules", json!({ "eval_type": "custom" })).await.unwrap();
    assert_eq!(listed["rules"][0], deployed["rule"]);
    let none = stand.call("list_rules", json!({ "eval_type": "safety" })).await.unwrap();
    let built_in = none["built_in"].as_array().unwrap().len();
    assert_eq!((&none["total"], built_in), (&json!(0), iris_core::rules::RULES.len()));
    stand.call("delete_rule", json!({ "rule_id": id, "enabled": false })).await.unwrap();
    let off = stand.call("list_rules", json!({})).await.unwrap();
    assert_eq!((&off["total"], &off["enabled_count"]), (&json!(1), &json!(0)));
    assert_eq!(stand.call("list_rules", json!({ "enabled_only": true })).await.unwrap()["total"], 0);
    let gone = stand.call("delete_rule", json!({ "rule_id": id })).await.unwrap();
    assert_eq!(gone, json!({ "deleted": true, "rule_id": id }));
    let gone = stand.call("delete_rule", json!({ "rule_id": id, "enabled": true })).await.unwrap();
    assert_eq!(gone, json!({ "deleted": false, "rule_id": id, "toggled": false }));
}

/// Guarantees: what the contract refuses before anything runs, and what it refuses of a definition, each by its key.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_deployed_is_refused_by_the_key_that_is_wrong() {
    let home = tempfile::tempdir().unwrap();
    let stand = Stand { app: app(home.path()), _home: home };
    let with = |key: &str, value: Value| {
        let mut rule = rule("ours", "json_schema", json!({}));
        rule[key] = value;
        rule
    };
    let definition = |definition: Value| with("definition", definition);
    for (arguments, code, field) in [
        (with("name", json!("n".repeat(81))), Code::InvalidArgument, "name"),
        (with("name", json!(" ")), Code::InvalidArgument, "name"),
        (with("name", json!("a\u{1b}b")), Code::InvalidArgument, "name"),
        (with("description", json!("d".repeat(501))), Code::InvalidArgument, "description"),
        (with("evalType", json!("custom")), Code::InvalidArgument, "evalType"),
        (with("eval_type", Value::Null), Code::InvalidArgument, "eval_type"),
        (with("eval_type", json!("all")), Code::InvalidArgument, "eval_type"),
        (with("severity", json!("fatal")), Code::InvalidArgument, "severity"),
        (with("sourceMomentId", json!("")), Code::InvalidArgument, "source_moment_id"),
        (definition(json!({ "type": "json_schema", "confg": {} })), Code::InvalidArgument, "definition.confg"),
        (definition(json!({ "type": "moon_phase" })), Code::InvalidArgument, "definition.type"),
        (definition(json!({ "type": "json_schema", "weight": 0 })), Code::InvalidArgument, "definition.weight"),
        (
            definition(json!({ "type": "regex_match", "config": { "pattern": "(a+)+$" } })),
            Code::InvalidRuleConfig,
            "definition.config.pattern",
        ),
        (
            definition(json!({ "type": "regex_match", "config": { "pattern": "x".repeat(1001) } })),
            Code::InvalidRuleConfig,
            "definition.config.pattern",
        ),
        (definition(json!({ "type": "cost_threshold" })), Code::InvalidRuleConfig, "definition.config.max_cost"),
    ] {
        let error = stand.call("deploy_rule", arguments.clone()).await.unwrap_err();
        assert_eq!((error.code, error.field.as_deref()), (code, Some(field)), "{arguments}: {error}");
        assert!(!error.recovery.is_empty());
    }
    for id in ["rule-", "rule-A", "17", "rule-0000000a; x"] {
        let error = stand.call("delete_rule", json!({ "rule_id": id })).await.unwrap_err();
        assert_eq!(error.field.as_deref(), Some("rule_id"), "{id}");
    }
    assert_eq!(stand.call("list_rules", json!({})).await.unwrap()["total"], 0);

    stand.call("deploy_rule", rule("ours", "json_schema", json!({}))).await.unwrap();
    let error = stand.call("deploy_rule", rule("ours", "json_schema", json!({}))).await.unwrap_err();
    assert_eq!((error.code, error.field.as_deref()), (Code::DuplicateRule, Some("name")));
    assert!(error.message.contains("eval_type custom, severity medium, enabled"), "{error}");
    let mut again = rule("ours", "min_length", json!({ "min_length": 5 }));
    again["replace"] = json!(true);
    let replaced = stand.call("deploy_rule", again).await.unwrap();
    assert_eq!(replaced["replaced"].as_array().map(Vec::len), Some(1));
    let retired = replaced["replaced"][0]["id"].as_str().unwrap();
    assert!(replaced["warning"].as_str().unwrap().contains(retired), "{replaced}");
}

/// Guarantees: deployed rules fire with their bundle and with all, rules of a call whatever is asked for; severity
/// decides what a failure does; a broken rule of a call is told of and never passes.
#[tokio::test(flavor = "multi_thread")]
async fn rules_fire_where_they_should() {
    let stand = stand().await;
    let mut deployed = rule("deployed", "excludes_keywords", json!({ "keywords": ["maybe"] }));
    deployed["eval_type"] = json!("safety");
    stand.call("deploy_rule", deployed).await.unwrap();
    let inline = |severity: &str| {
        json!([
            { "name": "inline", "type": "max_length", "config": { "max_length": 3 }, "severity": severity },
            { "name": "broken", "type": "regex_match", "config": { "pattern": null } },
        ])
    };
    let evaluate = async |eval_type: &str, severity: &str| {
        let arguments = json!({ "output": "Maybe so.", "eval_type": eval_type, "custom_rules": inline(severity) });
        stand.call("evaluate_output", arguments).await.unwrap()
    };
    for (eval_type, state) in
        [("safety", json!("fail")), ("all", json!("fail")), ("custom", Value::Null), ("cost", Value::Null)]
    {
        let evaluation = evaluate(eval_type, "medium").await;
        assert_eq!(result(&evaluation, "deployed")["state"], state, "{eval_type}");
        assert_eq!(result(&evaluation, "inline")["state"], "fail", "{eval_type}");
        let broken = result(&evaluation, "broken");
        assert_eq!((&broken["skipClass"], &broken["passed"]), (&json!("config_invalid"), &json!(false)));
        assert!(broken["skipReason"].as_str().unwrap().contains("config.pattern"), "{broken}");
    }
    let low = evaluate("custom", "low").await;
    assert_eq!(low["rules_changed"], 1, "since the start");
    assert_eq!((&low["verdict"]["state"], &low["score"]), (&json!("pass"), &json!(0.333)), "{}", low["verdict"]);
    let high = evaluate("custom", "high").await;
    assert_eq!((&high["verdict"]["basis"], &high["verdict"]["by"]), (&json!("policy_gate"), &json!(["inline"])));
    assert_eq!(high["critical_failures"], json!(["inline"]));
    assert!(high["suggestions"].as_array().unwrap().iter().any(|text| text.as_str().unwrap().starts_with("inline:")));

    let doubtful = json!([{ "name": "broken", "type": "regex_match", "config": {}, "severity": "critical" }]);
    let arguments = json!({ "output": "A fine answer.", "eval_type": "custom", "custom_rules": doubtful });
    let unknown = stand.call("evaluate_output", arguments).await.unwrap();
    assert_eq!(unknown["verdict"]["basis"], "critical_unknown", "{}", unknown["verdict"]);
    for (rules, field) in [
        (
            json!((0..11).map(|n| json!({ "name": format!("r{n}"), "type": "json_schema" })).collect::<Vec<_>>()),
            "custom_rules",
        ),
        (json!([{ "name": "r", "type": "json_schema", "extra": 1 }]), "custom_rules[0].extra"),
        (json!([{ "name": "", "type": "json_schema" }]), "custom_rules[0].name"),
        (json!([{ "name": "r", "type": "json_schema", "weight": -1 }]), "custom_rules[0].weight"),
    ] {
        let error = stand.call("evaluate_output", json!({ "output": "x", "custom_rules": rules })).await.unwrap_err();
        assert_eq!((error.code, error.field.as_deref()), (Code::InvalidArgument, Some(field)));
    }
}

/// Guarantees: a custom rule with a built-in rule's name is another rule: neither takes the other's advice or veto.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_a_built_in_rule_has_is_only_a_name() {
    let stand = stand().await;
    stand.call("deploy_rule", rule("no_pii", "min_length", json!({ "min_length": 500 }))).await.unwrap();
    let evaluation =
        stand.call("evaluate_output", json!({ "output": "A fine answer. It says enough." })).await.unwrap();
    let named: Vec<&Value> =
        evaluation["rule_results"].as_array().unwrap().iter().filter(|one| one["ruleName"] == "no_pii").collect();
    assert_eq!(named.iter().map(|one| &one["critical"]).collect::<Vec<_>>(), [&json!(true), &json!(false)]);
    let advice: Vec<&Value> = evaluation["suggestions"].as_array().unwrap().iter().collect();
    assert_eq!(
        advice.iter().filter(|text| text.as_str().unwrap().starts_with("no_pii:")).collect::<Vec<_>>(),
        [&&json!("no_pii: Say more.")]
    );
}

/// Guarantees: the tools on offer and the expected calls reach the rules that read them, and a slip in them is refused.
#[tokio::test(flavor = "multi_thread")]
async fn expectations_reach_their_rules() {
    let stand = stand().await;
    let find = json!({ "name": "find_order", "inputSchema": {
        "type": "object", "required": ["id"], "properties": { "id": { "type": "string" } } } });
    let calls = |input: Value| json!([{ "tool_name": "find_order", "input": input, "output": "found" }]);
    let ask = |input: Value, tools: Value, expected: Value| json!({ "output": "Your order arrived.", "input": "Find my order 17.", "tool_calls": calls(input), "tools": tools, "expected_trajectory": expected });
    let expected = json!({ "tool_calls": [{ "tool_name": "find_order", "input": { "id": "17" } }], "mode": "strict", "step_budget": 1, "tolerance": 1 });
    let good =
        stand.call("evaluate_output", ask(json!({ "id": "17" }), json!([find]), expected.clone())).await.unwrap();
    for rule in ["valid_tool_arguments", "tool_sequence", "step_budget"] {
        assert_eq!(result(&good, rule)["state"], "pass", "{rule}: {}", result(&good, rule));
    }
    assert_eq!(good["coverage"]["inputs"]["tools_catalogue"], true);
    assert_eq!(good["coverage"]["inputs"]["expected_trajectory"], true);
    let bad = stand.call("evaluate_output", ask(json!({ "id": 17 }), json!([find]), expected)).await.unwrap();
    for rule in ["valid_tool_arguments", "tool_sequence"] {
        assert_eq!(result(&bad, rule)["state"], "fail", "{rule}: {}", result(&bad, rule));
    }
    for (key, value, field) in [
        ("tools", json!([{}]), "tools[0].name"),
        ("tools", json!(vec![find.clone(); 201]), "tools"),
        ("expected_trajectory", json!({}), "expected_trajectory"),
        ("expected_trajectory", json!({ "tool_calls": [{ "name": "x" }] }), "expected_trajectory.tool_calls[0].name"),
        (
            "expected_trajectory",
            json!({ "tool_calls": [{ "tool_name": " " }] }),
            "expected_trajectory.tool_calls[0].tool_name",
        ),
        ("expected_trajectory", json!({ "step_budget": 0 }), "expected_trajectory.step_budget"),
        ("expected_trajectory", json!({ "step_budget": 1, "tolerance": 0.5 }), "expected_trajectory.tolerance"),
        ("expected_trajectory", json!({ "tool_calls": [], "mode": "loose" }), "expected_trajectory.mode"),
    ] {
        let error = stand.call("evaluate_output", json!({ "output": "x", key: value })).await.unwrap_err();
        assert_eq!((error.code, error.field.as_deref()), (Code::InvalidArgument, Some(field)), "{key}: {error}");
    }
}

/// Guarantees: after twenty runs of an agent one that costs far more is told of, after another start too; another
/// agent's history says nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_costs_far_more_than_this_agents_runs_is_told_of() {
    let stand = stand().await;
    for n in 0..20 {
        let cost = 0.01 + 0.0001 * f64::from(n);
        stand.log(json!({ "agent_name": "harbor", "output": "fine", "cost_usd": cost })).await;
    }
    let judge = async |stand: &Stand, agent: &str, cost: f64| {
        let logged = json!({ "agent_name": agent, "output": "fine", "cost_usd": cost, "evaluate": true });
        let reply = stand.call("log_trace", logged).await.unwrap();
        result(&reply["evaluation"], "cost_anomaly").clone()
    };
    assert_eq!(judge(&stand, "harbor", 0.011).await["state"], "pass");
    assert_eq!(judge(&stand, "harbor", 0.5).await["state"], "fail");
    assert_eq!(judge(&stand, "quay", 0.5).await["state"], "not_checked");
    let Stand { app, _home: home } = stand;
    let backend = app.backend.get().unwrap();
    backend.pipeline.drain(Duration::from_secs(5)).await;
    backend.store.close(Duration::from_secs(5)).await.unwrap();
    app.journal.close().await;
    drop(app);

    let stand = Stand { app: opened(home.path()).await, _home: home };
    let deadline = Instant::now() + Duration::from_secs(20);
    let probe =
        Trace { trace_id: iris_core::model::TraceId::from_bytes(&[9; 16]).unwrap(), ..any(&stand, "harbor").await };
    while stand.app.backend.get().unwrap().pipeline.costs().before(&probe).len() < 22 {
        assert!(Instant::now() < deadline, "what is stored was never learnt");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let told = judge(&stand, "harbor", 0.5).await;
    assert_eq!(told["state"], "fail", "{told}");
}

async fn any(stand: &Stand, agent: &str) -> Trace {
    let page = stand.call("get_traces", json!({ "agent_name": agent, "limit": 1 })).await.unwrap();
    let id = page["traces"][0]["trace_id"].as_str().unwrap().parse().unwrap();
    stand.app.backend.get().unwrap().store.trace(&Tenant::local(), id).await.unwrap().unwrap()
}

/// Guarantees: a preview says of each stored trace what the rule would have said, and writes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_preview_replays_stored_traces_and_writes_nothing() {
    let stand = stand().await;
    for n in 0..230 {
        let output = if n % 3 == 0 { "We guarantee it." } else { "We try." };
        stand.log(json!({ "agent_name": "harbor", "output": output })).await;
    }
    stand.log(json!({ "agent_name": "harbor" })).await;
    stand
        .log(json!({ "agent_name": "harbor", "output": "We guarantee it.", "timestamp": "2020-01-01T00:00:00Z" }))
        .await;
    let definition = json!({ "type": "excludes_keywords", "config": { "keywords": ["guarantee"] } });
    let preview = async |arguments: Value| stand.app.preview_rule(parse(arguments).unwrap(), &Caller::local()).await;
    let told = preview(json!({ "definition": definition, "sampleOutput": "No Guarantee." })).await.unwrap();
    assert_eq!(told["tracesEvaluated"], 231, "{told}");
    assert_eq!((&told["wouldPass"], &told["wouldFail"], &told["wouldSkip"]), (&json!(153), &json!(77), &json!(1)));
    assert_eq!(told["examples"].as_array().map(Vec::len), Some(5));
    assert_eq!(told["examples"][0]["outputPreview"], "We guarantee it.");
    assert_eq!((&told["sample"]["passed"], &told["complete"]), (&json!(false), &json!(true)));
    let few = preview(json!({ "definition": definition, "maxTraces": 101, "windowDays": 30 })).await.unwrap();
    assert_eq!(few["tracesEvaluated"], 101);
    let error =
        preview(json!({ "definition": { "type": "regex_match", "config": { "pattern": "(" } } })).await.unwrap_err();
    assert_eq!((error.code, error.field.as_deref()), (Code::InvalidRuleConfig, Some("definition.config.pattern")));
    for (arguments, field) in [
        (json!({ "definition": definition, "windowDays": 31 }), "windowDays"),
        (json!({ "definition": definition, "maxTraces": 0 }), "maxTraces"),
        (json!({ "definition": definition, "sampleOutput": "x".repeat(100_001) }), "sampleOutput"),
        (json!({ "definition": definition, "limit": 3 }), "limit"),
    ] {
        let error = parse::<iris_core::contract::PreviewRuleArgs>(arguments).unwrap_err();
        assert_eq!(error.field.as_deref(), Some(field));
    }
    assert_eq!(stand.call("list_rules", json!({})).await.unwrap()["total"], 0);
    assert!(!stand._home.path().join("custom-rules.json").exists());
}

/// Scenario: two hundred deployed rules with long keywords, read by a model.
/// Guarantees: the reply keeps within the bound, the built-in roster whole, and says what was cut; over HTTP all is whole.
#[tokio::test(flavor = "multi_thread")]
async fn many_rules_are_bounded_for_a_model_and_whole_otherwise() {
    let home = tempfile::tempdir().unwrap();
    let stand = Stand { app: app(home.path()), _home: home };
    for n in 0..200 {
        let keywords: Vec<String> =
            (0..20).map(|k| format!("keyword number {k} of rule {n} {}", "x".repeat(60))).collect();
        let named = rule(&format!("rule {n}"), "contains_keywords", json!({ "keywords": keywords }));
        stand.call("deploy_rule", named).await.unwrap();
    }
    let whole = stand.call("list_rules", json!({})).await.unwrap();
    assert_eq!((whole["rules"].as_array().unwrap().len(), whole.get("truncated")), (200, None));
    let model = Caller::local().with_model(48 * 1024);
    let bounded = stand.app.call("list_rules", json!({}), &model).await.unwrap();
    assert!(bounded.to_string().len() < 80_000, "{}", bounded.to_string().len());
    assert_eq!((&bounded["built_in"], &bounded["total"]), (&whole["built_in"], &json!(200)));
    let shown = bounded["rules"].as_array().unwrap();
    assert!(shown.len() > 10 && shown.iter().all(|rule| rule["id"].is_string() && rule["name"].is_string()));
    let truncated = names(&bounded["truncated"]);
    assert!(truncated.iter().any(|place| place.starts_with("rules[")), "{truncated:?}");
}
