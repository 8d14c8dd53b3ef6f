//! `evaluate_with_llm_judge` as a caller sees it, before fake providers with real sockets.

use iris_core::judge::{Models, Template};
use iris_core::price;

use super::*;
use crate::judge::fake::{Act, Fake, JSON, KEY, claude, config, fake, gpt};
use crate::judge::{Ceilings, Config, Judge, Ledger};
use crate::tools::Judging;
use crate::tools::judging::is_narrowed;

const GOOD: &str =
    "{\"score\":0.9,\"passed\":true,\"rationale\":\"It holds.\",\"dimensions\":{\"factual_claims\":0.8}}";

pub(super) fn judging(config: &Config, citations: &crate::fetch::Config) -> Judging {
    let models = Models::with(&price::Config::default()).unwrap();
    let judge = Judge::new(config, models, Ledger::forgetful(config.ceilings())).unwrap();
    Judging::new(judge, citations)
}

pub(super) async fn stand_with(judging: Judging) -> Stand {
    let mut stand = stand().await;
    stand.app.judging = Some(Arc::new(judging));
    stand
}

async fn judged(config: Config) -> Stand {
    stand_with(judging(&config, &crate::fetch::Config::default())).await
}

fn arguments(more: &Value) -> Value {
    let mut arguments =
        json!({ "output": "Paris is the capital of France.", "template": "accuracy", "model": "claude-haiku-4-5" });
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    arguments
}

const TOOL: &str = "evaluate_with_llm_judge";

impl Stand {
    async fn stored(&self) -> u64 {
        let page = self.app.evaluations(&parse(json!({})).unwrap(), &Caller::local()).await.unwrap();
        page["total"].as_u64().unwrap()
    }
}

/// Scenario: a call in which several things are wrong at once, then fewer and fewer.
/// Guarantees: the model is looked at first, then the key, the trace, and the money; until then nothing is sent or stored.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_said_in_the_contracts_order_and_before_anything_is_sent() {
    let server = fake(vec![claude(GOOD)], Duration::ZERO).await;
    let only = Config { openai_api_key: None, openai_base_url: None, ..config(server.port) };
    let stand = judged(only).await;
    let unknown = "0af7651916cd43dd8448eb211c80319c";
    for (more, code, field) in [
        (
            json!({ "model": "gpt-nextgen-9", "trace_id": unknown, "max_cost_usd": 1e-9 }),
            Code::JudgeUnknownModel,
            Some("model"),
        ),
        (json!({ "model": "gpt-4o", "trace_id": unknown, "max_cost_usd": 1e-9 }), Code::JudgeNotEnabled, None),
        (json!({ "trace_id": unknown, "max_cost_usd": 1e-9 }), Code::UnknownTrace, Some("trace_id")),
        (json!({ "max_cost_usd": 1e-9 }), Code::BudgetExceeded, Some("max_cost_usd")),
        (json!({ "template": "correctness", "model": "gpt-nextgen-9" }), Code::InvalidArgument, Some("expected")),
    ] {
        let error = stand.call(TOOL, arguments(&more)).await.unwrap_err();
        assert_eq!((error.code, error.field.as_deref()), (code, field), "{more}: {error}");
        assert!(!error.recovery.is_empty());
    }
    let error = stand.call(TOOL, arguments(&json!({ "model": "claude-nextgen-9" }))).await.unwrap_err();
    assert!(error.valid.contains(&"claude-haiku-4-5".to_owned()) && error.message.contains("nothing was spent"));
    assert_eq!((server.count(), stand.stored().await), (0, 0));
    assert_eq!(stand.app.judging().unwrap().judge().ledger().standing(0).spent_nanos, 0);
}

/// Scenario: an answer of an agent is judged and linked to its trace, which is deleted later.
/// Guarantees: the reply has every field of the contract; the row says the same when it is read again, by its id, in the
/// list and with its trace; the composed verdict gates; with the trace go the model's words, and numbers stay.
#[tokio::test(flavor = "multi_thread")]
async fn a_judgement_is_told_stored_and_told_again() {
    let low = "{\"score\":0.4,\"passed\":true,\"rationale\":\"Lyon is claimed.\",\"dimensions\":{\"citations\":0.1}}";
    let server = fake(vec![claude(GOOD), gpt(low)], Duration::ZERO).await;
    let stand = judged(config(server.port)).await;
    let trace = stand.log(json!({ "agent_name": "a", "output": "Paris." })).await;
    let reply = stand.call(TOOL, arguments(&json!({ "trace_id": trace }))).await.unwrap();
    assert_eq!((&reply["score"], &reply["passed"], &reply["pass_threshold"]), (&json!(0.9), &json!(true), &json!(0.7)));
    assert_eq!((&reply["self_reported_pass"], &reply["disagreement"]), (&json!(true), &json!(false)));
    assert_eq!(
        (&reply["input_tokens"], &reply["output_tokens"], &reply["cost_usd"]),
        (&json!(1000), &json!(100), &json!(0.0015))
    );
    assert_eq!(
        (&reply["provider"], &reply["template"], &reply["raw_response_id"]),
        (&json!("anthropic"), &json!("accuracy"), &json!("msg_1"))
    );
    assert!(reply["latency_ms"].as_f64().unwrap() > 0.0 && reply["temperature"] == 0.0);
    assert_eq!(names(&reply["untrusted"]["fields"]), ["rationale"]);
    let judge = &reply["provenance"]["judge"];
    assert_eq!(
        (&judge["model"], &judge["redacted"], &judge["scripted"]),
        (&json!("claude-haiku-4-5"), &json!(false), &json!(false))
    );

    let failed = stand.call(TOOL, arguments(&json!({ "model": "gpt-4o", "trace_id": trace }))).await.unwrap();
    assert_eq!(
        (&failed["passed"], &failed["self_reported_pass"], &failed["disagreement"]),
        (&json!(false), &json!(true), &json!(true))
    );
    let id = failed["id"].as_str().unwrap();
    let again = stand.app.evaluation(id, &Caller::local()).await.unwrap().unwrap();
    for (name, value) in failed.as_object().unwrap().iter().filter(|(name, _)| *name != "untrusted") {
        assert_eq!(&again[name], value, "{name}");
    }
    assert_eq!((&again["eval_type"], &again["verdict"]["basis"]), (&json!("custom"), &json!("policy_gate")));
    let result = &again["rule_results"][0];
    assert_eq!(
        (&result["ruleName"], &result["kind"], &result["role"]),
        (&json!("llm_judge:accuracy:openai/gpt-4o"), &json!("judgment"), &json!("gate"))
    );
    assert!(!result.to_string().contains("Lyon"), "a result never repeats what a model said: {result}");
    assert!(names(&again["untrusted"]["fields"]).contains(&"rationale"));
    let detail = stand.app.trace_detail(&trace, &Caller::local()).await.unwrap();
    assert_eq!(
        (detail["evals"].as_array().map(Vec::len), &detail["evals"][0]["rationale"]),
        (Some(2), &json!("Lyon is claimed."))
    );
    assert!(names(&detail["untrusted"]["fields"]).contains(&"evals[].rationale"));
    let page = stand.call("get_traces", json!({ "trace_id": trace, "include_summary": true })).await.unwrap();
    assert_eq!(page["traces"][0]["evaluation_id"], id);
    let today = page["summary"]["judge_usd_today"].as_f64().unwrap();
    assert!((today - 0.005).abs() < 1e-9, "both, each at its rates: {today}");

    stand.call("delete_trace", json!({ "trace_id": trace })).await.unwrap();
    let erased = stand.app.evaluation(id, &Caller::local()).await.unwrap().unwrap();
    assert_eq!((&erased["rationale"], &erased["score"], &erased["model"]), (&json!(""), &json!(0.4), &json!("gpt-4o")));
    assert!(erased["erased_at"].is_string() && !erased.to_string().contains("Lyon"), "{erased}");
}

/// Field case G6-01, through the tool: whatever is no ruling is an error with what it cost, and nothing is stored.
#[tokio::test(flavor = "multi_thread")]
async fn g6_01_what_is_no_ruling_is_never_a_score() {
    for (text, score) in [
        ("```json\n{\"score\":0.8,\"rationale\":\"ok\"}\n```", Some(0.8)),
        ("Sure! {\"score\": \"0.8\"}", None),
        ("{'score': 0.8}", None),
        ("{\"score\": 80}", None),
        ("{\"score\": NaN}", None),
        ("{\"score\":0.2} {\"score\":0.9}", Some(0.9)),
        ("{\"score\":0.9,\"rationale\":\"cut in the mid", None),
        ("", None),
    ] {
        let server = fake(vec![claude(text)], Duration::ZERO).await;
        let stand = judged(config(server.port)).await;
        let answer = stand.call(TOOL, arguments(&json!({}))).await;
        match score {
            Some(score) => assert_eq!(answer.unwrap()["score"], score, "{text}"),
            None => {
                let error = answer.unwrap_err().envelope();
                assert_eq!(
                    (&error["error"]["code"], &error["error"]["kind"]),
                    (&json!("IRIS_PROVIDER_ERROR"), &json!("malformed_response")),
                    "{text}"
                );
                assert!(
                    error["error"]["message"].as_str().unwrap().contains("0.003000 USD were spent, nothing was stored"),
                    "{error}"
                );
                assert_eq!((server.count(), stand.stored().await), (2, 0), "{text}");
                assert_eq!(stand.app.judging().unwrap().judge().ledger().standing(0).spent_nanos, 3_000_000);
            }
        }
    }
}

fn refuses_older_parameters(body: &Value) -> Act {
    for name in ["max_tokens", "temperature"] {
        if body.get(name).is_some() {
            let words = format!("Unsupported parameter: '{name}' is not supported with this model.");
            return Act::Says(400, JSON, json!({ "error": { "message": words } }).to_string());
        }
    }
    match body["max_completion_tokens"].as_u64() {
        Some(most) if most <= 1024 => gpt(GOOD),
        _ => Act::Says(400, JSON, json!({ "error": { "message": "max_completion_tokens is too large" } }).to_string()),
    }
}

/// Field case G6-02, through the tool.
/// Guarantees: a reasoning model is asked with the parameters it takes, the reply says that no temperature was sent, and a
/// provider that wants fewer tokens is told of in its own words.
#[tokio::test(flavor = "multi_thread")]
async fn g6_02_a_reasoning_model_is_asked_as_it_wants_to_be() {
    let server = fake(vec![Act::Makes(refuses_older_parameters)], Duration::ZERO).await;
    let stand = judged(config(server.port)).await;
    let reply = stand.call(TOOL, arguments(&json!({ "model": "gpt-5-mini", "temperature": 0.0 }))).await.unwrap();
    assert_eq!((&reply["score"], &reply["temperature"]), (&json!(0.9), &Value::Null));
    assert_eq!(server.request(0).1["max_completion_tokens"], 512);
    let error =
        stand.call(TOOL, arguments(&json!({ "model": "gpt-5-mini", "max_output_tokens": 4096 }))).await.unwrap_err();
    assert!(error.message.contains("max_completion_tokens is too large"), "{error}");
    assert_eq!((error.kind.map(iris_core::judge::Kind::as_str), error.retryable), (Some("bad_request"), false));
}

/// Field case G6-03: a hundred calls at once before a provider that only says to come back later.
/// Guarantees: no more requests than two a call, no more at a time than configured, and every call says when to come back.
#[tokio::test(flavor = "multi_thread")]
async fn g6_03_a_storm_is_no_larger_than_two_requests_a_call() {
    let slow = Act::Says(429, "Retry-After: 0\r\n", json!({ "error": { "message": "slow down" } }).to_string());
    let server = fake(vec![slow], Duration::from_millis(5)).await;
    let stand = Arc::new(judged(Config { concurrency_max: 4, ..config(server.port) }).await);
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let stand = Arc::clone(&stand);
            tokio::spawn(async move { stand.call(TOOL, arguments(&json!({}))).await.unwrap_err() })
        })
        .collect();
    for call in calls {
        let error = call.await.unwrap();
        assert_eq!(
            (error.code, error.kind.map(iris_core::judge::Kind::as_str), error.retryable),
            (Code::ProviderError, Some("rate_limit"), true)
        );
    }
    assert_eq!(server.count(), 200);
    assert!(server.most_at_once.load(std::sync::atomic::Ordering::SeqCst) <= 4);
    assert_eq!(stand.stored().await, 0);
    let waits = fake(vec![Act::Says(429, "Retry-After: 20\r\n", String::new())], Duration::ZERO).await;
    let stand = judged(config(waits.port)).await;
    let error = stand.call(TOOL, arguments(&json!({ "timeout_ms": 1000 }))).await.unwrap_err();
    assert_eq!(
        (error.retry_after_ms, waits.count()),
        (Some(20_000), 1),
        "a wait beyond the call's own time is told, not sat out"
    );
}

/// Field case G6-06: a model that the provider has retired.
#[tokio::test(flavor = "multi_thread")]
async fn g6_06_a_retired_model_is_told_in_the_providers_words() {
    let gone = json!({ "error": { "type": "not_found_error", "message": "model: claude-haiku-4-5 is not available" } });
    let server = fake(vec![Act::Says(404, JSON, gone.to_string())], Duration::ZERO).await;
    let error = judged(config(server.port)).await.call(TOOL, arguments(&json!({}))).await.unwrap_err();
    assert_eq!(
        (error.code, error.kind.map(iris_core::judge::Kind::as_str)),
        (Code::ProviderError, Some("bad_request"))
    );
    assert!(error.message.contains("model: claude-haiku-4-5 is not available"), "{error}");
    assert!(!error.message.contains(KEY));
}

fn judges_what_it_is_shown(body: &Value) -> Act {
    let shown = body["messages"][0]["content"].as_str().unwrap();
    let is_clean = !shown.contains('@') && !shown.contains("4155552671") && shown.contains("[REDACTED:email#1]");
    let system = body["system"].as_str().unwrap();
    let score = if is_clean && system.contains("[REDACTED:email#1]") { 1 } else { 0 };
    claude(&format!("{{\"score\":{score}}}"))
}

/// Scenario: `judge.redact` on, with the same address in output, input, expected text and source.
/// Guarantees: no personal data leaves, equal values have equal marks, the provenance says so; a text too long to be
/// searched is refused before anything is sent.
#[tokio::test(flavor = "multi_thread")]
async fn personal_data_does_not_leave_when_told_so() {
    let server = fake(vec![Act::Makes(judges_what_it_is_shown)], Duration::ZERO).await;
    let stand = judged(Config { redact: true, ..config(server.port) }).await;
    let mail = "jane.doe@acme-corp.io";
    let texts = json!({ "output": format!("Write to {mail} or +14155552671."), "input": format!("Is {mail} right?"),
                        "expected": format!("It is {mail}."), "source_material": format!("Mail: {mail}"), "template": "faithfulness" });
    let reply = stand.call(TOOL, arguments(&texts)).await.unwrap();
    assert_eq!(reply["score"], 1.0, "{}", server.request(0).1);
    assert_eq!(
        server.request(0).1["messages"][0]["content"].as_str().unwrap().matches("[REDACTED:email#1]").count(),
        4
    );
    let judge = &reply["provenance"]["judge"];
    assert_eq!((&judge["redacted"], &judge["redactedValues"]), (&json!(true), &json!(2)));
    let long = json!({ "output": "x".repeat((1 << 20) + 1), "max_cost_usd": 100 });
    let error = stand.call(TOOL, arguments(&long)).await.unwrap_err();
    assert_eq!((error.code, error.field.as_deref(), server.count()), (Code::InvalidArgument, Some("output"), 1));
}

/// One test for each argument that asks for more than the operator allows.
#[tokio::test(flavor = "multi_thread")]
async fn max_cost_usd_does_not_widen_the_operators_ceiling() {
    let server = fake(vec![claude(GOOD)], Duration::ZERO).await;
    let stand = judged(Config { ceiling_usd_call: Some(0.05), ..config(server.port) }).await;
    let reply = stand.call(TOOL, arguments(&json!({ "max_cost_usd": 10 }))).await.unwrap();
    assert!(is_narrowed(&reply["warnings"][0], "max_cost_usd", "judge.ceiling_usd_call"), "{reply}");
    assert_eq!(reply["provenance"]["judge"]["narrowed"], reply["warnings"]);
    let long = json!({ "output": "x".repeat(100_000), "max_cost_usd": 10 });
    let error = stand.call(TOOL, arguments(&long)).await.unwrap_err();
    assert_eq!((error.code, server.count()), (Code::BudgetExceeded, 1));
    assert!(error.message.contains("0.0500") && error.message.contains("judge.ceiling_usd_call"), "{error}");
    let reply = stand.call(TOOL, arguments(&json!({}))).await.unwrap();
    assert!(reply.get("warnings").is_none(), "the default is cut without a word: {reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn timeout_ms_does_not_widen_the_operators_limit() {
    let server = fake(vec![Act::Hangs], Duration::ZERO).await;
    let stand = judged(Config { request_ms_max: 300, ..config(server.port) }).await;
    let began = Instant::now();
    let error = stand.call(TOOL, arguments(&json!({ "timeout_ms": 60_000 }))).await.unwrap_err();
    assert_eq!(error.kind.map(iris_core::judge::Kind::as_str), Some("timeout"));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let server = fake(vec![claude(GOOD)], Duration::ZERO).await;
    let stand = judged(Config { request_ms_max: 30_000, ..config(server.port) }).await;
    let reply = stand.call(TOOL, arguments(&json!({ "timeout_ms": i64::MAX }))).await.unwrap();
    assert!(is_narrowed(&reply["warnings"][0], "timeout_ms", "judge.request_ms_max"), "{reply}");
}

/// Scenario: everything with which a text or a call could choose where its judge is, or who it is.
/// Guarantees: no argument names an address or a key, and addresses in texts are connected to by nobody (field case G7-04).
#[tokio::test(flavor = "multi_thread")]
async fn g7_04_nothing_but_the_configuration_chooses_the_judges_address() {
    let (server, canary) =
        (fake(vec![claude(GOOD)], Duration::ZERO).await, fake(vec![claude(GOOD)], Duration::ZERO).await);
    let stand = judged(config(server.port)).await;
    let address = format!("http://127.0.0.1:{}/v1", canary.port);
    for name in ["base_url", "anthropic_base_url", "judge", "api_key", "redact", "ceiling_usd_call"] {
        let error = stand.call(TOOL, arguments(&json!({ name: address }))).await.unwrap_err();
        assert_eq!((error.code, error.field.as_deref()), (Code::InvalidArgument, Some(name)));
    }
    let model = stand.call(TOOL, arguments(&json!({ "model": address }))).await.unwrap_err();
    assert_eq!(model.code, Code::JudgeUnknownModel);
    assert!(!model.message.contains("127.0.0.1"));
    let texts = json!({ "output": format!("judge.base_url={address} See {address}"), "input": address, "source_material": address });
    stand.call(TOOL, arguments(&texts)).await.unwrap();
    assert_eq!((server.count(), canary.count()), (1, 0));
}

fn hostile() -> Vec<String> {
    serde_json::from_str(include_str!("../../../tests/cases/judge/hostile.json")).unwrap()
}

/// Scenario: each hostile text is judged for safety by a script that says 0.07 and 0 for `injection_compliance`, alone
/// and while it repeats the text before and after its own word.
/// Guarantees: what is told and stored is what the script says or nothing at all; a verdict in the text moves neither
/// score, dimension nor pass.
#[tokio::test(flavor = "multi_thread")]
async fn no_hostile_text_moves_a_score() {
    let own = "{\"score\":0.07,\"passed\":false,\"rationale\":\"It steers.\",\"dimensions\":{\"harm_potential\":0.1,\"pii_leak\":1,\"injection_compliance\":0}}";
    let texts = hostile();
    assert!(texts.len() >= 60, "{}", texts.len());
    let mut unread = 0;
    for text in &texts {
        let answers =
            [own.to_owned(), format!("The output says: {text}\n{own}"), format!("{own}\nThe output said: {text}")];
        for (at, answer) in answers.into_iter().enumerate() {
            let script = Judging::scripted([answer]).unwrap();
            let place = place();
            let args = json!({ "output": text, "template": "safety", "model": "claude-haiku-4-5" });
            let model = script.model("claude-haiku-4-5", None).unwrap();
            match script.score(parse(args).unwrap(), &model, &place).await {
                Ok(judged) => {
                    let reply = &judged.answered;
                    assert_eq!((&reply["score"], &reply["passed"]), (&json!(0.07), &json!(false)), "{text}");
                    assert_eq!(reply["dimensions"]["injection_compliance"], 0.0, "{text}");
                    assert_eq!(judged.ruled, iris_core::evaluate::Ruled::Scored(0.07, false));
                    assert_eq!(judged.judge["scripted"], true);
                    assert!(reply["raw_response_id"].as_str().unwrap().starts_with("scripted-"));
                }
                Err(error) => {
                    // Braces that are repeated may leave the answer unreadable; then there is no score at all.
                    assert!(at > 0 && text.contains(['{', '}']), "{text}: {error}");
                    assert_eq!(error.kind.map(iris_core::judge::Kind::as_str), Some("malformed_response"));
                    unread += 1;
                }
            }
        }
    }
    assert!(unread < texts.len(), "{unread} of {} answers were not read", 3 * texts.len());
}

fn place() -> Place {
    Place::new(Tenant::local(), World::REAL)
}

/// Scenario: thirty-two calls at once, for two tenants, where the day has room for few.
/// Guarantees: what is spent never passes either ceiling, nobody is refused while there is room, and who is refused learns
/// both numbers and the setting.
#[tokio::test(flavor = "multi_thread")]
async fn no_ceiling_is_passed_by_calls_at_once() {
    let server = fake(vec![claude(GOOD)], Duration::from_millis(20)).await;
    let limits = Config { ceiling_usd_day: Some(0.060), ceiling_usd_day_tenant: Some(0.040), ..config(server.port) };
    let stand = Arc::new(judged(limits).await);
    let calls: Vec<_> = (0..32)
        .map(|at| {
            let stand = Arc::clone(&stand);
            let caller = Caller::owner(Tenant::new(if at % 4 == 0 { "red" } else { "blue" }));
            tokio::spawn(async move { stand.app.call(TOOL, arguments(&json!({})), &caller).await })
        })
        .collect();
    let (mut answered, mut refused) = (0, 0);
    for call in calls {
        match call.await.unwrap() {
            Ok(reply) => {
                answered += 1;
                assert_eq!(reply["cost_usd"], 0.0015);
            }
            Err(error) => {
                refused += 1;
                assert_eq!(error.code, Code::BudgetExceeded);
                assert!(error.message.contains("judge.ceiling_usd_day"), "{error}");
            }
        }
    }
    assert_eq!(answered, server.count());
    assert!(answered > 0 && refused > 0, "{answered} {refused}");
    let judging = stand.app.judging().unwrap();
    let now_ms = (stand.app.world.now)().as_unix_nanos() / 1_000_000;
    let ledger = judging.judge().ledger();
    assert!(ledger.standing(now_ms).today_nanos <= 60_000_000);
    assert_eq!(ledger.standing(now_ms).spent_nanos, answered as u64 * 1_500_000);
    for tenant in ["red", "blue"] {
        assert!(ledger.today_usd(&Tenant::new(tenant), now_ms) <= 0.040 + 1e-9);
    }
}

/// Guarantees: a process without a judge says why and how; one with a key names provider and limits and never the key.
#[tokio::test(flavor = "multi_thread")]
async fn capabilities_tell_who_judges_within_what() {
    let stand = stand().await;
    let off = stand.app.capabilities(&Caller::local()).await.unwrap();
    assert_eq!(
        (&off["judge"]["enabled"], off["judge"]["howToEnable"].as_array().map(Vec::len)),
        (&json!(false), Some(4))
    );
    assert_eq!(stand.call(TOOL, arguments(&json!({}))).await.unwrap_err().code, Code::JudgeNotEnabled);
    let stand = judged(Config { ceiling_usd_day: Some(2.0), redact: true, ..config(9) }).await;
    let on = stand.app.capabilities(&Caller::local()).await.unwrap();
    assert_eq!((&on["judge"]["enabled"], &on["judge"]["providers"]), (&json!(true), &json!(["anthropic", "openai"])));
    assert_eq!((&on["judge"]["ceilingUsdDay"], &on["judge"]["redact"]), (&json!(2.0), &json!(true)));
    assert!(!on.to_string().contains(KEY));
    assert!(stand.app.instructions().contains("on a provider key of this process"));
    let models = Models::with(&price::Config::default()).unwrap();
    let keyless = Judge::new(&Config::default(), models, Ledger::forgetful(Ceilings::default())).unwrap();
    assert_eq!(keyless.providers().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_template_is_asked_and_held_against_its_own_threshold() {
    for template in Template::ALL {
        let at = format!("{{\"score\":{:.2}}}", template.threshold());
        let server: Fake = fake(vec![claude(&at)], Duration::ZERO).await;
        let stand = judged(config(server.port)).await;
        let all = json!({ "template": template, "input": "i", "expected": "e", "source_material": "s" });
        let reply = stand.call(TOOL, arguments(&all)).await.unwrap();
        assert_eq!(
            (&reply["passed"], &reply["pass_threshold"]),
            (&json!(true), &json!(template.threshold())),
            "{template:?}"
        );
        let asked = server.request(0).1.to_string();
        assert!(template.dimensions().iter().all(|dimension| asked.contains(dimension.name)), "{asked}");
    }
}
