use super::*;

fn call(tool: &str, input: Value) -> ToolCall {
    ToolCall { tool_name: tool.to_owned(), input: Some(input), ..ToolCall::default() }
}

fn policy(config: Value, tool: &str, input: Value) -> Outcome {
    let calls = [call("fine", json!({})), call(tool, input)];
    let calls = if config.get("allow").is_some() { &calls[1..] } else { &calls[..] };
    judge("action_policy", config, &Subject { tool_calls: Some(calls), ..Subject::default() })
}

#[test]
fn what_is_denied_is_denied_however_it_is_written() {
    let deny = json!({"deny": [{"tool": "write_*", "args": {"/path": "/etc/**"}}]});
    for path in [
        "/etc/passwd",
        "/ETC/passwd",
        "/data/../etc/passwd",
        "/data/%2e%2e/etc/passwd",
        "\\etc\\passwd",
        "//etc//passwd",
        "/./etc/passwd",
        "/\u{ff45}tc/passwd",
        "/e\u{200b}tc/passwd",
    ] {
        let outcome = policy(deny.clone(), "Write_File", json!({"path": path}));
        assert_eq!(word(&outcome), "fail", "{path:?}");
        let Evidence::ToolCall { index, label, .. } = &finding(&outcome).evidence[0] else { panic!("{outcome:?}") };
        assert_eq!((*index, label.as_str()), (1, "deny[0]"));
        assert!(!finding(&outcome).message.contains("etc"));
    }
    for (tool, input) in [
        ("write_file", json!({"path": "/data/etc/x"})),
        ("write_file", json!({"other": "/etc/passwd"})),
        ("write_file", json!({})),
        ("read_file", json!({"path": "/etc/passwd"})),
    ] {
        assert_eq!(word(&policy(deny.clone(), tool, input.clone())), "pass", "{tool} {input}");
    }
    for hidden in [
        json!({"path": ["/tmp/x", "/etc/passwd"]}),
        json!({"path": {"at": "/etc/passwd"}}),
        json!("{\"path\": \"/etc/x\"}"),
    ] {
        assert_eq!(word(&policy(deny.clone(), "write_file", hidden.clone())), "fail", "{hidden}");
    }
}

#[test]
fn what_is_allowed_must_fit_in_every_way_it_can_be_meant() {
    let allow = json!({"allow": [{"tool": "read_file", "args": {"/path": "/data/**"}}, "search"]});
    assert_eq!(word(&policy(allow.clone(), "read_file", json!({"path": "/data/a/b.txt"}))), "pass");
    assert_eq!(word(&policy(allow.clone(), "search", json!({"q": "anything"}))), "pass");
    for (tool, input) in [
        ("read_file", json!({"path": "/data/../etc/passwd"})),
        ("read_file", json!({"path": "/data/%2e%2e/%2e%2e/etc/passwd"})),
        ("read_file", json!({"path": "/Data/a"})),
        ("read_file", json!({"path": ["/data/a"]})),
        ("read_file", json!({"path": format!("/data/{}", "x".repeat(5000))})),
        ("read_file", json!({})),
        ("Read_File", json!({"path": "/data/a"})),
        ("delete_file", json!({"path": "/data/a"})),
    ] {
        let outcome = policy(allow.clone(), tool, input.clone());
        assert_eq!(word(&outcome), "fail", "{tool} {input}");
    }
    let web = json!({"allow": [{"tool": "fetch", "args": {"/url": "https://api.example.com/**"}}]});
    assert_eq!(word(&policy(web.clone(), "fetch", json!({"url": "https://api.example.com/v1/x"}))), "pass");
    for url in
        ["https://api.example.com.evil.io/x", "http://api.example.com/x", "https://evil.io/?https://api.example.com/"]
    {
        assert_eq!(word(&policy(web.clone(), "fetch", json!({"url": url}))), "fail", "{url}");
    }
    let both = json!({"allow": ["*"], "deny": ["shell"]});
    assert_eq!(word(&policy(both, "shell", json!({}))), "fail", "deny wins");
}

#[test]
fn pointers_reach_elements_and_numbers_are_read_as_written() {
    let deny = json!({"deny": [{"tool": "pay", "args": {"/items/-/to": "acct-9*"}}]});
    let pay = |items: Value| word(&policy(deny.clone(), "pay", json!({"items": items}))).to_owned();
    assert_eq!(pay(json!([{"to": "acct-1"}, {"to": "acct-99"}])), "fail");
    assert_eq!(pay(json!([{"to": "acct-1"}])), "pass");
    let many: Vec<Value> = (0..100).map(|_| json!({"to": "acct-1"})).collect();
    assert_eq!(pay(Value::Array(many)), "defeated", "what was not looked at may be what is denied");
    let number = json!({"deny": [{"tool": "pay", "args": {"/amount": "1???*"}}]});
    assert_eq!(word(&policy(number, "pay", json!({"amount": 1500}))), "fail");
    let slash = json!({"deny": [{"tool": "t", "args": {"/a~1b/0": "x"}}]});
    assert_eq!(word(&policy(slash, "t", json!({"a/b": ["x"]}))), "fail");
}

#[test]
fn calls_too_large_to_look_at_defeat_the_rule() {
    let deny = json!({"deny": (0..100).map(|n| json!({"tool": "*", "args": {"/text": format!("**a{n}**b**")}})).collect::<Vec<_>>()});
    let calls: Vec<ToolCall> = (0..400).map(|_| call("t", json!({"text": "a".repeat(4096)}))).collect();
    let subject = Subject { tool_calls: Some(&calls), ..Subject::default() };
    assert_eq!(word(&judge("action_policy", deny, &subject)), "defeated");
    let none = Subject { tool_calls: Some(&[]), ..Subject::default() };
    assert_eq!(word(&judge("action_policy", json!({"deny": ["x"]}), &none)), "not_applicable");
}

#[test]
fn a_policy_with_a_slip_in_it_is_refused() {
    for (config, field) in [
        (json!({}), "config"),
        (json!({"deny": []}), "config"),
        (json!({"denny": ["x"], "allow": ["y"]}), "config.denny"),
        (json!({"deny": "x"}), "config.deny"),
        (json!({"deny": [1]}), "config.deny[0]"),
        (json!({"deny": [{"args": {}}]}), "config.deny[0]"),
        (json!({"deny": [{"tool": "x", "arguments": {}}]}), "config.deny[0]"),
        (json!({"deny": ["a", {"tool": ""}]}), "config.deny[1].tool"),
        (json!({"deny": [{"tool": "x", "args": {"path": "y"}}]}), "config.deny[0].args"),
        (json!({"allow": [{"tool": "x", "args": {"/path": 3}}]}), "config.allow[0].args"),
        (json!({"allow": vec!["x"; 101]}), "config"),
        (json!({"allow": ["x".repeat(513)]}), "config.allow[0]"),
    ] {
        let problem = compiled("action_policy", config.clone()).unwrap_err();
        assert_eq!(problem.field, field, "{config}: {problem}");
    }
}
