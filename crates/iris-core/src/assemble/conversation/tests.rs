use serde_json::{Map, json};

use super::*;
use crate::model::{Notes, Tenant};

fn call(id: Option<&str>, name: &str, input: u32, output: Option<&str>) -> ToolCall {
    ToolCall {
        tool_name: name.to_owned(),
        input: Some(json!({"n": input})),
        output: output.map(|text| json!(text)),
        call_id: id.map(str::to_owned),
        ..ToolCall::default()
    }
}

fn bare(n: u8, calls: Vec<ToolCall>) -> Trace {
    Trace {
        tenant: Tenant::local(),
        trace_id: TraceId::from_bytes(&[n; 16]).unwrap(),
        version: 1,
        source: TraceSource::Otlp,
        agent_name: "harbor".to_owned(),
        framework: None,
        input: Some("Where is my order?".to_owned()),
        output: Some(format!("answer {n}")),
        tool_calls: Some(calls),
        latency_ms: Some(500.0),
        token_usage: Some(TokenUsage {
            prompt_tokens: Some(100),
            completion_tokens: Some(10),
            total_tokens: Some(110),
        }),
        cost_usd: Some(0.5),
        cost_source: Some(CostSource::Estimated),
        cost_parts: Some(CostParts { calls: 1, priced_calls: 1, ..CostParts::default() }),
        metadata: Map::new(),
        timestamp: Timestamp::from_unix_nanos(u64::from(n) * 1_000_000_000),
        session_id: Some("s-1".to_owned()),
        user_id: None,
        model: None,
        provider: None,
        environment: None,
        service_version: None,
        runs: vec![Run::default()],
        partial: false,
        in_progress: false,
        conflicting_spans: false,
        span_count: 1,
        error_count: 0,
        notes: Notes { bare: true, ..Notes::default() },
        seen_through: u64::from(n),
    }
}

#[test]
fn a_tool_loop_over_several_traces_is_one_trajectory() {
    for with_ids in [true, false] {
        let id = |id: &'static str| Some(id).filter(|_| with_ids);
        // Each call repeats what went before, now with its result.
        let first = bare(1, vec![call(id("c1"), "find", 1, None)]);
        let second = bare(2, vec![call(id("c1"), "find", 1, Some("gone")), call(id("c2"), "find", 1, None)]);
        let third = bare(3, vec![call(id("c1"), "find", 1, Some("gone")), call(id("c2"), "find", 1, Some("gone"))]);
        let traces = [third, first, second];
        let told = conversation(&traces).unwrap();
        assert_eq!(told.trace_ids.len(), 3);
        assert_eq!((told.trace.output.as_deref(), told.trace.latency_ms), (Some("answer 3"), Some(2500.0)));
        let calls = told.trace.tool_calls.clone().unwrap();
        let outputs: Vec<_> = calls.iter().map(|call| call.output.clone().unwrap()).collect();
        assert_eq!(outputs, [json!("gone"), json!("gone")], "ids: {with_ids}");
        assert_eq!(told.trace.token_usage.unwrap().prompt_tokens, Some(300));
        assert_eq!((told.trace.cost_usd, told.trace.cost_parts.clone().unwrap().calls), (Some(1.5), 3));
        assert_eq!(told.trace.runs[0].tool_calls, calls);
        let mut turned = traces.to_vec();
        turned.reverse();
        assert_eq!(conversation(&turned), Some(told));
    }
}

#[test]
fn only_bare_traces_of_one_conversation_belong_together() {
    let agents = Trace { notes: Notes::default(), ..bare(2, Vec::new()) };
    let other = Trace { session_id: Some("s-2".to_owned()), ..bare(3, Vec::new()) };
    let nameless = Trace { session_id: None, ..bare(4, Vec::new()) };
    let strange = Trace { tenant: Tenant::new("other"), ..bare(5, Vec::new()) };
    assert_eq!(conversation(&[bare(1, Vec::new()), agents, other, nameless, strange]), None);
    assert_eq!(conversation(&[]), None);
    let unpriced = Trace { cost_usd: None, cost_source: None, ..bare(2, Vec::new()) };
    let told = conversation(&[bare(1, Vec::new()), unpriced]).unwrap();
    assert_eq!((told.trace.cost_usd, told.trace.cost_source), (None, None), "a part is no total");
}
