//! Every token, cost and tool call once, and in one run.

use super::*;
use crate::model::CostSource;

fn counted(model: &str, input: u64, output: u64) -> Value {
    json!({"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": model,
        "gen_ai.usage.input_tokens": input, "gen_ai.usage.output_tokens": output})
}

fn prompt_tokens(trace: &Trace) -> Option<u64> {
    trace.token_usage?.prompt_tokens
}

#[test]
fn what_lies_beside_several_runs_is_in_one_of_them() {
    let trace = Sketch::default()
        .span(1, 0, "execute_tool early", tool("early", &json!({})))
        .span(2, 0, "invoke_agent One", agent("One"))
        .with(|span| span.end = span.start.after(std::time::Duration::from_millis(3)))
        .span(3, 2, "execute_tool own", tool("own", &json!({})))
        .span(4, 0, "execute_tool during", tool("during", &json!({})))
        .span(5, 0, "chat m", counted("gpt-4o", 100, 10))
        .span(6, 0, "invoke_agent Two", agent("Two"))
        .span(7, 6, "chat m", chat("Second?", "Second.", "r2"))
        .span(8, 0, "chat m", chat("Second?", "Second.", "r2"))
        .span(9, 0, "execute_tool late", tool("late", &json!({})))
        .span(10, 9, "execute_tool inner", tool("inner", &json!({})))
        .trace()
        .unwrap();
    let of =
        |at: usize| -> Vec<&str> { trace.runs[at].tool_calls.iter().map(|call| call.tool_name.as_str()).collect() };
    assert_eq!((of(0), of(1)), (vec!["early", "own", "during"], vec!["late", "inner"]));
    assert_eq!(names(&trace), Some(vec!["early", "own", "during", "late", "inner"]));
    let input = |at: usize| trace.runs[at].token_usage.unwrap().prompt_tokens;
    assert_eq!((input(0), input(1), prompt_tokens(&trace)), (Some(100), Some(10), Some(110)), "one answer once");
    assert_eq!((trace.input.as_deref(), trace.output.as_deref()), (None, Some("Second.")), "each its own words");
}

#[test]
fn an_agent_without_spans_of_its_calls_counts_beside_one_with_them() {
    let mut sum = agent("Two");
    sum["gen_ai.usage.input_tokens"] = json!(50);
    let mut all = agent("Both");
    all["gen_ai.usage.input_tokens"] = json!(150);
    let trace = Sketch::default()
        .span(1, 0, "invoke_agent Both", all)
        .span(2, 1, "invoke_agent One", agent("One"))
        .span(3, 2, "chat m", counted("gpt-4o", 100, 10))
        .span(4, 1, "invoke_agent Two", sum)
        .trace()
        .unwrap();
    assert_eq!((prompt_tokens(&trace), trace.notes.usage_mismatch), (Some(150), false));
}

#[test]
fn an_agents_sum_beside_its_calls_is_not_added() {
    let mut sum = agent("Guide");
    sum["gen_ai.usage.input_tokens"] = json!(300);
    let trace = Sketch::default()
        .span(1, 0, "run", json!({"openinference.span.kind": "CHAIN"}))
        .span(2, 1, "invoke_agent Guide", sum)
        .span(3, 1, "chat m", counted("gpt-4o", 100, 10))
        .span(4, 1, "chat m", counted("gpt-4o", 200, 20))
        .trace()
        .unwrap();
    assert_eq!(prompt_tokens(&trace), Some(300));
}

#[test]
fn a_retry_counts_what_was_used() {
    let failed = json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"});
    let trace = Sketch::default()
        .span(1, 0, "ChatOpenAI", json!({"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o", "llm.token_count.prompt": 100, "llm.token_count.completion": 10}))
        .span(2, 1, "chat gpt-4o", failed)
        .failed("RateLimitError")
        .span(3, 1, "chat gpt-4o", counted("gpt-4o", 100, 10))
        .trace()
        .unwrap();
    assert_eq!((prompt_tokens(&trace), trace.cost_source), (Some(100), Some(CostSource::Estimated)));
    assert_eq!(trace.cost_parts.unwrap().calls, 1);
}

#[test]
fn a_reported_cost_comes_before_an_estimate_and_zero_is_none() {
    let mut reported = counted("gpt-4o", 1000, 100);
    reported["gen_ai.usage.cost"] = json!(0.25);
    let trace = Sketch::default()
        .span(1, 0, "chat m", reported.clone())
        .span(2, 1, "chat m", counted("gpt-4o", 1000, 100))
        .trace()
        .unwrap();
    assert_eq!((trace.cost_usd, trace.cost_source), (Some(0.25), Some(CostSource::Reported)), "by a span around it");
    let mixed = Sketch::default()
        .span(1, 0, "chat m", reported.clone())
        .span(2, 0, "chat m", counted("gpt-4o", 1000, 100))
        .trace()
        .unwrap();
    assert!((mixed.cost_usd.unwrap() - 0.2535).abs() < 1e-12, "{:?}", mixed.cost_usd);
    assert_eq!(mixed.cost_source, Some(CostSource::Estimated));
    let parts = mixed.cost_parts.unwrap();
    assert_eq!((parts.reported_usd, parts.calls, parts.priced_calls), (Some(0.25), 2, 2));
    let strange = Sketch::default()
        .span(1, 0, "chat m", reported)
        .span(2, 0, "chat m", counted("unheard-of", 1000, 100))
        .trace()
        .unwrap();
    assert_eq!((strange.cost_usd, strange.cost_source), (None, None), "a part is no total");
    let mut free = counted("unheard-of", 1000, 100);
    free["gen_ai.usage.cost"] = json!(0);
    let free = Sketch::default().span(1, 0, "chat m", free).trace().unwrap();
    assert_eq!((free.cost_usd, free.cost_source), (None, None), "an unknown price is written as 0");
}

#[test]
fn an_operators_price_is_used() {
    use crate::price::{Config, Override, Prices};
    let own = Override { model: "unheard-of".to_owned(), input: Some(1.0), output: Some(2.0), ..Override::default() };
    let prices = Prices::with(&Config { prices: vec![own], ..Config::default() }).unwrap();
    let sketch = Sketch::default().span(1, 0, "chat m", counted("unheard-of", 1_000_000, 500_000));
    let rows: Vec<Arc<Row>> = sketch.rows.into_iter().map(Arc::new).collect();
    let trace = understand_with(&key(), 1, &rows, &prices).unwrap();
    assert_eq!((trace.cost_usd, trace.cost_source), (Some(2.0), Some(CostSource::Estimated)));
}

#[test]
fn tools_without_spans_are_added_where_the_models_were_told_their_results() {
    let call = |id: &str, name: &str| json!({"type": "tool_call", "id": id, "name": name, "arguments": {"q": id}});
    let told =
        |id: &str| json!({"role": "tool", "parts": [{"type": "tool_call_response", "id": id, "response": "ok"}]});
    let asks =
        json!([{"role": "assistant", "parts": [call("c1", "seen"), call("c2", "unseen"), call("c3", "asked_only")]}]);
    let second = json!([says("user", "Go")[0], asks[0], told("c1"), told("c2")]);
    let with_span = |more: Value| {
        Sketch::default()
            .span(1, 0, "invoke_agent Guide", agent("Guide"))
            .span(
                2,
                1,
                "chat m",
                silent_chat(&json!({"gen_ai.input.messages": says("user", "Go"), "gen_ai.output.messages": asks})),
            )
            .span(3, 1, "execute_tool seen", tool("seen", &more))
            .span(
                4,
                1,
                "chat m",
                silent_chat(
                    &json!({"gen_ai.input.messages": second, "gen_ai.output.messages": says("assistant", "Done.")}),
                ),
            )
            .trace()
            .unwrap()
    };
    let trace = with_span(json!({"gen_ai.tool.call.id": "c1"}));
    assert_eq!(names(&trace), Some(vec!["seen", "unseen"]));
    assert_eq!(trace.tool_calls.as_ref().unwrap()[1].output, Some(json!("ok")));
    let stranger = Sketch::default()
        .span(1, 0, "invoke_agent Guide", agent("Guide"))
        .span(
            2,
            1,
            "execute_tool harbor_seen",
            tool("harbor_seen", &json!({"gen_ai.tool.call.arguments": "{\"q\": \"c1\"}"})),
        )
        .span(
            3,
            1,
            "chat m",
            silent_chat(
                &json!({"gen_ai.input.messages": second, "gen_ai.output.messages": says("assistant", "Done.")}),
            ),
        )
        .trace()
        .unwrap();
    assert_eq!(names(&stranger), Some(vec!["harbor_seen"]), "names that differ could be the same calls");
}
