//! Group 3: what dialects mean, and what calls cost.

use iris_core::rules::{Need, Subject};

use super::*;

/// What a trace names as carried and not read.
fn unmapped(trace: &Trace) -> Value {
    trace.metadata["otel"]["unmapped_attributes"].clone()
}

/// What a rule about cost that is skipped says.
fn why_no_cost(trace: &Trace) -> String {
    let subject = Subject { cost_usd: trace.cost_usd, cost_parts: trace.cost_parts.as_ref(), ..Subject::default() };
    assert!(!subject.carries(Need::Cost), "a cost");
    subject.lack(Need::Cost)
}

#[test]
fn g3_01_an_agents_sum_is_not_added_to_its_calls() {
    let mut rollup = agent("Guide");
    rollup.as_object_mut().unwrap().extend(counted(300, 30).as_object().unwrap().clone());
    rollup["gen_ai.operation.name"] = json!("invoke_agent");
    let trace = Sent::default()
        .span(1, 0, "invoke_agent Guide", &rollup)
        .span(2, 1, "chat gpt-4o", &counted(100, 10))
        .span(3, 1, "execute_tool find", &tool("find", &json!({})))
        .span(4, 1, "chat gpt-4o", &counted(200, 20))
        .trace();
    assert_eq!(tokens(&trace), (Some(300), Some(30)));
    close(trace.cost_usd, 300.0 * 2.5e-6 + 30.0 * 10e-6);
    let parts = trace.cost_parts.clone().unwrap();
    assert_eq!((parts.calls, parts.priced_calls, trace.notes.usage_mismatch), (2, 2, false));
    assert_eq!(trace.runs[0].cost_usd, trace.cost_usd);
}

/// The first call of a session agrees with its agent; later ones do not, and the calls count.
#[test]
fn g3_03_a_counter_of_the_whole_session_is_noted_and_not_counted() {
    for (at, total) in [100_000_u64, 200_000, 300_000].into_iter().enumerate() {
        let mut root = agent("Guide");
        root["gen_ai.conversation.id"] = json!("c-1");
        root["gen_ai.usage.input_tokens"] = json!(total);
        root["gen_ai.usage.cost"] = json!(total as f64 * 1e-5);
        let trace = Sent::default()
            .span(1, 0, "invoke_agent Guide", &root)
            .span(2, 1, "chat gpt-4o", &counted(100_000, 10))
            .trace();
        assert_eq!((tokens(&trace).0, trace.session_id.as_deref()), (Some(100_000), Some("c-1")));
        assert_eq!(trace.notes.usage_mismatch, at > 0);
        // What the agent says it cost is believed as long as its tokens are.
        let want = if at == 0 { 1.0 } else { 100_000.0 * 2.5e-6 + 10.0 * 10e-6 };
        close(trace.cost_usd, want);
    }
}

#[test]
fn g3_04_content_is_found_under_its_newer_names_and_what_is_not_read_is_named() {
    let answer =
        json!([{"role": "assistant", "parts": [{"type": "text", "content": "Paris"}], "finish_reason": "stop"}]);
    for (arguments, result) in
        [("gen_ai.tool.call.arguments", "gen_ai.tool.call.result"), ("tool_arguments", "tool_response")]
    {
        let called = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather",
            arguments: json!({"city": "Oslo"}).to_string(), result: json!({"t": 4}).to_string()});
        let trace = Sent::default()
            .span(1, 0, "chat gpt-4o", &chat(&json!({"gen_ai.output.messages": answer.to_string()})))
            .by("pydantic-ai")
            .span(2, 0, "execute_tool weather", &called)
            .by("pydantic-ai")
            .trace();
        assert_eq!(trace.output.as_deref(), Some("Paris"));
        let call = &trace.tool_calls.as_ref().unwrap()[0];
        assert_eq!((call.input.clone(), call.output.clone()), (Some(json!({"city": "Oslo"})), Some(json!({"t": 4}))));
        assert_eq!(unmapped(&trace), Value::Null);
    }
    let strange = Sent::default()
        .span(
            1,
            0,
            "chat gpt-4o",
            &chat(&json!({"harbor.llm.answer": "It is 18 C in Oslo.", "harbor.kind": "long enough"})),
        )
        .trace();
    assert_eq!((strange.output.as_deref(), unmapped(&strange)), (None, json!(["harbor.llm.answer"])));
}

#[test]
fn g3_06_a_stream_that_states_no_usage_costs_an_unknown_amount() {
    let long = "word ".repeat(180);
    for usage in [json!({}), json!({"gen_ai.usage.input_tokens": 0, "gen_ai.usage.output_tokens": 0})] {
        let mut attributes = chat(&json!({"gen_ai.output.messages": says("assistant", &long)}));
        attributes.as_object_mut().unwrap().extend(usage.as_object().unwrap().clone());
        let trace = Sent::default().span(1, 0, "chat gpt-4o", &attributes).trace();
        assert_eq!((trace.token_usage, trace.cost_usd, trace.cost_source), (None, None, None));
        assert_eq!(trace.cost_parts.as_ref().unwrap().calls_without_usage, 1);
        assert!(why_no_cost(&trace).contains("1 of 1 model call without token counts"));
        let beside =
            Sent::default().span(1, 0, "chat gpt-4o", &attributes).span(2, 0, "chat gpt-4o", &counted(100, 10)).trace();
        assert_eq!((tokens(&beside), beside.cost_usd), ((Some(100), Some(10)), None), "a part is no total");
        let parts = beside.cost_parts.unwrap();
        assert_eq!((parts.calls, parts.priced_calls, parts.calls_without_usage), (2, 1, 1));
    }
    let failed = Sent::default()
        .span(1, 0, "chat gpt-4o", &chat(&json!({"error.type": "RateLimitError"})))
        .with(|span| span["status"] = json!({"code": 2, "message": "slow down"}))
        .span(2, 0, "chat gpt-4o", &counted(100, 10))
        .trace();
    close(failed.cost_usd, 100.0 * 2.5e-6 + 10.0 * 10e-6);
}

/// Cents by the rule of `docs/cost.md`: cached tokens are part of the input, whoever leaves them out.
#[test]
fn g3_07_cached_tokens_are_charged_once_at_their_own_rate() {
    let of = |provider: &str, model: &str, usage: Value| {
        let mut attributes =
            json!({"gen_ai.operation.name": "chat", "gen_ai.provider.name": provider, "gen_ai.request.model": model});
        attributes.as_object_mut().unwrap().extend(usage.as_object().unwrap().clone());
        Sent::default().span(1, 0, "chat", &attributes).trace()
    };
    let openai = of(
        "openai",
        "gpt-4o",
        json!({"gen_ai.usage.input_tokens": 20212, "gen_ai.usage.cache_read.input_tokens": 16298, "gen_ai.usage.output_tokens": 931}),
    );
    close(openai.cost_usd, 3914.0 * 2.5e-6 + 16298.0 * 1.25e-6 + 931.0 * 10e-6);
    assert_eq!(tokens(&openai), (Some(20212), Some(931)));
    let parts = openai.cost_parts.unwrap();
    let part = |part: Option<iris_core::model::CostPart>| part.map(|part| part.tokens);
    assert_eq!((part(parts.input), part(parts.cached_read), part(parts.output)), (Some(3914), Some(16298), Some(931)));
    let native = of(
        "anthropic",
        "claude-sonnet-4-5",
        json!({"gen_ai.usage.input_tokens": 19, "gen_ai.usage.cache_creation.input_tokens": 39000, "gen_ai.usage.cache_read.input_tokens": 0, "gen_ai.usage.output_tokens": 10}),
    );
    assert_eq!(tokens(&native).0, Some(39019));
    close(native.cost_usd, 19.0 * 3e-6 + 39000.0 * 3.75e-6 + 10.0 * 15e-6);
    let summed = of(
        "anthropic",
        "claude-sonnet-4-5",
        json!({"gen_ai.usage.input_tokens": 39019, "gen_ai.usage.cache_read.input_tokens": 39000, "gen_ai.usage.output_tokens": 10}),
    );
    assert_eq!(tokens(&summed).0, Some(39019));
    close(summed.cost_usd, 19.0 * 3e-6 + 39000.0 * 0.3e-6 + 10.0 * 15e-6);
    let impossible = of(
        "openai",
        "gpt-4o",
        json!({"gen_ai.usage.input_tokens": 10, "gen_ai.usage.cache_read.input_tokens": 90, "gen_ai.usage.output_tokens": 1}),
    );
    assert_eq!(tokens(&impossible).0, Some(100), "what cannot be a part stands beside it");
}

/// Unpriced models are named on the trace, not in a metric: metrics carry no text from spans.
#[test]
fn g3_08_a_model_without_a_price_costs_an_unknown_amount() {
    let of = |provider: &str, asked: &str, answered: &str| {
        let mut attributes = counted(1000, 100);
        attributes["gen_ai.provider.name"] = json!(provider);
        attributes["gen_ai.request.model"] = json!(asked);
        attributes["gen_ai.response.model"] = json!(answered);
        Sent::default().span(1, 0, "chat", &attributes).trace()
    };
    for (provider, asked, answered) in [
        ("azure.ai.openai", "my-turbo-deploy", "gpt-4"),
        ("gcp.gemini", "models/gemini-x", "models/gemini-x"),
        ("openrouter", "openrouter/meta/llama", "openrouter/meta/llama"),
        ("openai", "gpt-4o-2031-01-01", "gpt-4o-2031-01-01"),
        ("openai", "MY-FINETUNE:ft-123", "MY-FINETUNE:ft-123"),
    ] {
        let trace = of(provider, asked, answered);
        assert_eq!((trace.cost_usd, trace.cost_source), (None, None), "{answered}");
        assert_eq!(trace.cost_parts.as_ref().unwrap().unpriced_models, [answered]);
        let why = why_no_cost(&trace);
        assert!(why.contains("no price for 1 of the models") && !why.contains(answered), "{why}");
    }
    let regional =
        of("aws.bedrock", "us.anthropic.claude-sonnet-4-20250514-v1:0", "us.anthropic.claude-sonnet-4-20250514-v1:0");
    close(regional.cost_usd, 1000.0 * 3e-6 + 100.0 * 15e-6);
    // Of two calls one is priced: no total, and it is said why.
    let mut strange = counted(1000, 100);
    strange["gen_ai.request.model"] = json!("unheard-of");
    let both = Sent::default().span(1, 0, "chat", &counted(1000, 100)).span(2, 0, "chat", &strange).trace();
    let parts = both.cost_parts.unwrap();
    assert_eq!((both.cost_usd, parts.calls, parts.priced_calls), (None, 2, 1));
    close(parts.output.map(|part| part.usd), 100.0 * 10e-6);
}

#[test]
fn g3_09_a_total_is_a_check_and_never_a_part() {
    let all = Sent::default()
        .span(1, 0, "chat", &chat(&json!({"gen_ai.usage.total_tokens": 1000, "gen_ai.usage.input_tokens": 700, "gen_ai.usage.output_tokens": 300})))
        .trace();
    assert_eq!((tokens(&all), all.token_usage.unwrap().total_tokens), ((Some(700), Some(300)), Some(1000)));
    let only = Sent::default().span(1, 0, "chat", &chat(&json!({"gen_ai.usage.total_tokens": 1000}))).trace();
    assert_eq!(
        (tokens(&only), only.token_usage.unwrap().total_tokens, only.cost_usd),
        ((None, None), Some(1000), None)
    );
}

const QUESTION: &str = "Capital of France?";
const ANSWER: &str = "Paris";

/// One call in the conventions' attributes, and more.
#[expect(clippy::needless_pass_by_value, reason = "attributes are written in place")]
fn called(more: Value) -> Value {
    let mut attributes = json!({"gen_ai.request.model": "gpt-4o", "gen_ai.response.model": "gpt-4o-2024-08-06"});
    attributes.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    attributes
}

/// The same call as five generations of libraries write it, with its messages as text, as values and in a log record.
fn one_call() -> [(&'static str, Sent); 6] {
    let span = |name: &str, attributes: &Value| Sent::default().span(1, 0, name, attributes);
    let current = json!({"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai",
        "gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 3});
    let older = json!({"gen_ai.operation.name": "chat", "gen_ai.system": "openai",
        "gen_ai.usage.prompt_tokens": 12, "gen_ai.usage.completion_tokens": 3});
    let choice = json!({"index": 0, "finish_reason": "stop", "message": json!({"content": ANSWER}).to_string()});
    let traceloop = json!({"gen_ai.system": "OpenAI", "llm.request.type": "chat", "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": QUESTION, "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": ANSWER, "llm.usage.total_tokens": 15, "gen_ai.usage.prompt_tokens": 12,
        "gen_ai.usage.completion_tokens": 3});
    let openinference = json!({"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o-2024-08-06",
        "llm.provider": "openai", "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": QUESTION, "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": ANSWER, "llm.token_count.prompt": 12, "llm.token_count.completion": 3});
    let (asked, answered) = (says("user", QUESTION), says("assistant", ANSWER));
    let values = json!({"gen_ai.input.messages": asked, "gen_ai.output.messages": answered});
    let texts = json!({"gen_ai.input.messages": asked.to_string(), "gen_ai.output.messages": answered.to_string()});
    let with = |messages: &Value| {
        let mut attributes = called(current.clone());
        attributes.as_object_mut().unwrap().extend(messages.as_object().unwrap().clone());
        span("chat gpt-4o", &attributes)
    };
    let events = span("chat gpt-4o", &called(older))
        .event("gen_ai.user.message", &json!({"content": QUESTION}))
        .event("gen_ai.choice", &choice);
    let logged =
        span("chat gpt-4o", &called(current.clone())).log(1, "gen_ai.client.inference.operation.details", &values);
    [
        ("values", with(&values)),
        ("text", with(&texts)),
        ("log", logged),
        ("events", events),
        ("traceloop", span("openai.chat", &called(traceloop))),
        ("openinference", span("ChatCompletion", &openinference)),
    ]
}

#[test]
fn g3_11_one_call_in_five_dialects_is_one_call() {
    let told = |sent: &Sent| {
        let trace = sent.trace();
        (trace.input, trace.output, trace.tool_calls, trace.token_usage, trace.model, trace.provider, trace.cost_usd)
    };
    let calls = one_call();
    let want = told(&calls[0].1);
    assert_eq!(
        (want.0.as_deref(), want.1.as_deref(), want.5.as_deref()),
        (Some(QUESTION), Some(ANSWER), Some("openai"))
    );
    for (name, sent) in &calls {
        assert_eq!(told(sent), want, "{name}");
    }
}

/// Which of two names it was stands in the reading of the span.
#[test]
fn g3_11_of_two_names_of_one_number_the_newer_wins() {
    let both = called(json!({"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai",
        "gen_ai.usage.prompt_tokens": 99, "gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 3}));
    let both = Sent::default().span(1, 0, "chat gpt-4o", &both);
    assert_eq!(tokens(&both.trace()).0, Some(12));
    assert_eq!(both.rows()[0].reading.sources["usage.input"], "gen_ai.usage.input_tokens");
}

#[test]
fn g3_12_a_call_without_content_is_unknown_and_its_cost_is_judged() {
    let trace = Sent::default().span(1, 0, "chat gpt-4o", &counted(1000, 100)).trace();
    assert_eq!((trace.input.as_deref(), trace.output.as_deref()), (None, None));
    let results = results(&trace);
    assert!(trace.cost_usd.is_some(), "the cost can be judged");
    for rule in ["no_pii", "non_empty_output"] {
        assert_eq!(results[rule], "not_checked", "{rule}");
    }
    assert_eq!(verdict(&trace), ("unknown".to_owned(), "required_evidence_missing".to_owned()));
}
