//! One judge before fake providers.

use std::sync::Arc;

use iris_core::judge::{Nonce, Ruling, Template, Texts, ask, read_ruling};
use iris_core::model::Tenant;
use iris_core::price;
use secrecy::SecretString;
use serde_json::json;

use super::fake::{Act, JSON, KEY, claude, config, fake, gpt};
use super::*;

fn judge(config: &Config, ceilings: Ceilings) -> Judge {
    let models = Models::with(&price::Config::default()).unwrap();
    Judge::new(config, models, Ledger::forgetful(ceilings)).unwrap()
}

async fn rule(judge: &Judge, model: &str, timeout_ms: u64) -> Result<Said<Ruling>, Failed> {
    let model = judge.models().find(model, None).unwrap();
    let texts = Texts { output: "Paris is in France.", ..Texts::default() };
    let prompt = ask(Template::Accuracy, &texts, &Nonce::new([7; 6]));
    let ask = Ask {
        model: &model,
        prompt: &prompt,
        output_tokens_max: 512,
        temperature: 0.0,
        timeout: Duration::from_millis(timeout_ms),
    };
    let reserved = judge.ledger().reserve(&Tenant::local(), ask.worst_usd(), 0).unwrap();
    judge.ask(&ask, reserved, |text| read_ruling(text, Template::Accuracy, &[texts.output])).await
}

fn usd(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

const GOOD: &str = "{\"score\":0.9,\"passed\":true,\"rationale\":\"ok\",\"dimensions\":{\"citations\":1}}";

#[tokio::test(flavor = "multi_thread")]
async fn both_providers_are_asked_as_they_want_to_be() {
    let server = fake(vec![claude(GOOD), gpt(GOOD), gpt(GOOD)], Duration::ZERO).await;
    let judge = judge(&config(server.port), Ceilings::default());
    let said = rule(&judge, "claude-haiku-4-5", 5_000).await.unwrap();
    assert_eq!((said.value.score, said.id.as_deref(), said.temperature), (0.9, Some("msg_1"), Some(0.0)));
    assert_eq!((said.bill.input_tokens, said.bill.output_tokens, said.bill.told_usd()), (1000, 100, 0.0015));
    let (head, body) = server.request(0);
    assert!(head.starts_with("post /v1/messages http/1.1\r\n"), "{head}");
    assert!(
        head.contains(&format!("\r\nx-api-key: {KEY}")) && head.contains("\r\nanthropic-version: 2023-06-01"),
        "{head}"
    );
    assert!(!head.contains("authorization"), "{head}");
    assert_eq!((&body["max_tokens"], &body["temperature"]), (&json!(512), &json!(0.0)));
    rule(&judge, "gpt-4o", 5_000).await.unwrap();
    let (head, body) = server.request(1);
    assert!(head.starts_with("post /v1/chat/completions http/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("\r\nauthorization: bearer {KEY}")) && !head.contains("x-api-key"), "{head}");
    assert_eq!(body["messages"][0]["role"], "system");
    // Field case G6-02.
    let said = rule(&judge, "gpt-5-mini", 5_000).await.unwrap();
    let (_, body) = server.request(2);
    assert_eq!((said.temperature, &body["max_completion_tokens"]), (None, &json!(512)));
    assert!(body.get("temperature").is_none() && body.get("max_tokens").is_none(), "{body}");
}

/// Guarantees: each way to fail has its kind, costs what it costs, and takes two requests at most.
#[tokio::test(flavor = "multi_thread")]
async fn g6_03_every_fault_has_its_kind_and_two_requests_at_most() {
    let fault =
        |status, headers, words: &str| Act::Says(status, headers, json!({ "error": { "message": words } }).to_string());
    let refusal =
        json!({ "content": [], "stop_reason": "refusal", "usage": { "input_tokens": 1000, "output_tokens": 1 } })
            .to_string();
    let cut = json!({ "content": [{ "type": "text", "text": GOOD }], "stop_reason": "max_tokens", "usage": { "input_tokens": 1000, "output_tokens": 512 } }).to_string();
    let broken: &[u8] =
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{\"content\":";
    for (act, kind, requests, costs) in [
        (fault(401, JSON, "bad key"), Kind::Auth, 1, false),
        (fault(403, JSON, "no"), Kind::Auth, 1, false),
        (fault(400, JSON, "temperature is deprecated"), Kind::BadRequest, 1, false),
        (fault(404, JSON, "model_not_found"), Kind::BadRequest, 1, false),
        (fault(429, "Retry-After: 0\r\n", "slow"), Kind::RateLimit, 2, false),
        (fault(429, "Retry-After: 120\r\n", "slow"), Kind::RateLimit, 1, false),
        (fault(500, JSON, "oops"), Kind::ServerError, 1, false),
        (fault(503, JSON, "busy"), Kind::ServerError, 1, false),
        (fault(529, JSON, "overloaded"), Kind::ServerError, 1, false),
        (fault(302, "Location: http://127.0.0.1:9/\r\n", "moved"), Kind::BadRequest, 1, false),
        (Act::Hangs, Kind::Timeout, 1, true),
        (Act::Raw(broken), Kind::ServerError, 1, true),
        (Act::Raw(b""), Kind::ServerError, 1, true),
        (claude("I would say 0.9."), Kind::MalformedResponse, 2, true),
        (claude("{\"score\":0.9,\"rat"), Kind::MalformedResponse, 2, true),
        (Act::Says(200, JSON, cut), Kind::MalformedResponse, 2, true),
        (Act::Says(200, JSON, refusal), Kind::MalformedResponse, 1, true),
        (Act::Says(200, "Content-Type: text/html\r\n", "<html>".to_owned()), Kind::MalformedResponse, 2, true),
        (Act::Says(200, JSON, "{}".to_owned()), Kind::MalformedResponse, 2, true),
        (Act::Says(200, JSON, String::new()), Kind::MalformedResponse, 2, true),
    ] {
        let server = fake(vec![act], Duration::ZERO).await;
        let judge = judge(&config(server.port), Ceilings::default());
        let failed = rule(&judge, "claude-haiku-4-5", 1_500).await.unwrap_err();
        assert_eq!((failed.kind, server.count()), (kind, requests), "{failed:?}");
        assert_eq!((failed.bill.cost_usd > 0.0, failed.bill.requests as usize), (costs, requests), "{failed:?}");
        assert!(!failed.words.contains(KEY));
    }
    let server = fake(vec![fault(429, "Retry-After: 120\r\n", "slow")], Duration::ZERO).await;
    let failed = rule(&judge(&config(server.port), Ceilings::default()), "claude-haiku-4-5", 1_500).await.unwrap_err();
    assert_eq!((failed.retry_after_ms, failed.words.as_str()), (Some(120_000), "slow"));
    drop(server);
    let closed = config(1);
    let failed = rule(&judge(&closed, Ceilings::default()), "claude-haiku-4-5", 1_500).await.unwrap_err();
    assert_eq!((failed.kind, failed.bill.cost_usd), (Kind::ServerError, 0.0));
}

/// Guarantees: a second answer counts, is asked for more strictly, and both are paid for.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_attempt_is_stricter_and_summed() {
    let server = fake(vec![claude("Well, 0.9?"), claude(GOOD)], Duration::ZERO).await;
    let judge = judge(&config(server.port), Ceilings::default());
    let said = rule(&judge, "claude-haiku-4-5", 5_000).await.unwrap();
    assert_eq!((said.bill.input_tokens, said.bill.output_tokens, said.bill.requests), (2000, 200, 2));
    let (first, second) = (server.request(0).1, server.request(1).1);
    assert!(second["system"].as_str().unwrap().len() > first["system"].as_str().unwrap().len());
    let server = fake(vec![Act::Says(429, "Retry-After: 0\r\n", String::new()), claude(GOOD)], Duration::ZERO).await;
    let said = rule(&self::judge(&config(server.port), Ceilings::default()), "claude-haiku-4-5", 5_000).await;
    assert_eq!(said.unwrap().bill.input_tokens, 1000);
}

/// Guarantees: a provider that repeats the key back, or the prompt, is not passed on, and a key is printed nowhere.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_told_to_nobody() {
    let words = format!("Incorrect API key provided: {KEY}");
    let server =
        fake(vec![Act::Says(401, JSON, json!({ "error": { "message": words } }).to_string())], Duration::ZERO).await;
    let config = config(server.port);
    let failed = rule(&judge(&config, Ceilings::default()), "gpt-4o", 5_000).await.unwrap_err();
    assert_eq!(failed.words, "Incorrect API key provided: [key]");
    for text in [format!("{config:?}"), serde_json::to_string(&config).unwrap()] {
        assert!(!text.contains("0123456789"), "{text}");
    }
    let url = |url: &str| Config {
        openai_api_key: Some(SecretString::from(KEY)),
        openai_base_url: Some(url.to_owned()),
        ..Config::default()
    };
    for refused in ["http://vllm.svc:8000/v1", "ftp://x/", "x", "https://user:pass@host/v1", "https://host/v1?key=1"] {
        assert_eq!(url(refused).problems().len(), 1, "{refused}");
    }
    for taken in
        ["https://gateway.example.org/v1", "http://127.0.0.1:8000/v1", "http://localhost:8000", "http://[::1]:8000/v1"]
    {
        assert_eq!(url(taken).problems(), Vec::<String>::new(), "{taken}");
    }
    let without_key = Config { openai_base_url: Some("http://vllm.svc:8000/v1".to_owned()), ..Config::default() };
    assert_eq!(without_key.problems(), Vec::<String>::new(), "no key, nothing to overhear");
}

/// Field case G6-07.
#[tokio::test(flavor = "multi_thread")]
async fn g6_07_an_endpoint_of_ones_own_needs_no_key_and_takes_its_own_header() {
    let own = price::Override {
        model: "qwen3-32b".to_owned(),
        input: Some(0.0),
        output: Some(0.0),
        ..price::Override::default()
    };
    let models = || Models::with(&price::Config { prices: vec![own.clone()], ..price::Config::default() }).unwrap();
    for base in ["", "/", "/v1", "/v1/"] {
        let server = fake(vec![gpt(GOOD)], Duration::ZERO).await;
        let mut config =
            Config { openai_base_url: Some(format!("http://127.0.0.1:{}{base}", server.port)), ..Config::default() };
        let said =
            rule(&Judge::new(&config, models(), Ledger::forgetful(Ceilings::default())).unwrap(), "qwen3-32b", 5_000)
                .await;
        assert_eq!(said.unwrap().bill.cost_usd, 0.0);
        let (head, body) = server.request(0);
        assert!(head.starts_with("post /v1/chat/completions ") && !head.contains("authorization"), "{head}");
        assert!(body["max_tokens"] == 512 && body.get("response_format").is_none(), "{body}");
        config.openai_api_key = Some(SecretString::from(KEY));
        config.openai_key_header = Some("api-key".to_owned());
        let judge = Judge::new(&config, models(), Ledger::forgetful(Ceilings::default())).unwrap();
        rule(&judge, "qwen3-32b", 5_000).await.unwrap();
        let (head, _) = server.request(1);
        assert!(head.contains(&format!("\r\napi-key: {KEY}")) && !head.contains("authorization"), "{head}");
        assert!(!judge.reaches(Provider::Anthropic));
    }
}

/// Guarantees: thirty-two calls at once stay below the limits of the day together, and no more run at once than may.
#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_under_calls_at_once() {
    let server = fake(vec![claude(GOOD)], Duration::from_millis(50)).await;
    let config = Config { concurrency_max: 3, ..config(server.port) };
    let probe = judge(&config, Ceilings::default());
    let model = probe.models().find("claude-haiku-4-5", None).unwrap();
    let prompt = ask(Template::Accuracy, &Texts { output: "x", ..Texts::default() }, &Nonce::new([1; 6]));
    let ask = |judge: Arc<Judge>, tenant: Tenant| {
        let (model, prompt) = (model.clone(), prompt.clone());
        async move {
            let timeout = Duration::from_secs(20);
            let ask = Ask { model: &model, prompt: &prompt, output_tokens_max: 512, temperature: 0.0, timeout };
            match judge.ledger().reserve(&tenant, ask.worst_usd(), 0) {
                Ok(reserved) => {
                    judge.ask(&ask, reserved, |text| read_ruling(text, Template::Accuracy, &[])).await.is_ok()
                }
                Err(_) => false,
            }
        }
    };
    let worst =
        Ask { model: &model, prompt: &prompt, output_tokens_max: 512, temperature: 0.0, timeout: WAIT_MAX }.worst_usd();
    // Room for five at their worst at once.
    let limited = Arc::new(judge(&config, Ceilings { day: Some(worst * 5.0 + 1e-6), day_tenant: None }));
    let calls: Vec<_> = (0..32).map(|_| tokio::spawn(ask(Arc::clone(&limited), Tenant::local()))).collect();
    let mut answered = 0;
    for call in calls {
        answered += usize::from(call.await.unwrap());
    }
    let standing = limited.ledger().standing(0);
    assert!(usd(standing.today_nanos) <= worst * 5.0 + 1e-6, "{standing:?}");
    assert!(answered >= 5 && answered == server.count(), "{answered} {}", server.count());
    assert_eq!(standing.refused as usize, 32 - answered);
    assert!(
        (usd(standing.today_nanos) - answered as f64 * 0.0015).abs() < 1e-6,
        "settled at what it cost: {standing:?}"
    );
    assert!(server.most_at_once.load(Ordering::SeqCst) <= 3);
}

#[test]
fn each_limit_holds_and_a_new_day_begins_at_nought() {
    let (one, other) = (Tenant::local(), Tenant::new("other"));
    let ledger = Ledger::forgetful(Ceilings { day: Some(1.0), day_tenant: Some(0.6) });
    let first = ledger.reserve(&one, 0.5, 0).unwrap();
    let over = ledger.reserve(&one, 0.2, 0).err().unwrap();
    assert_eq!((over.setting, (over.left_usd * 10.0).round()), ("judge.ceiling_usd_day_tenant", 1.0));
    let second = ledger.reserve(&other, 0.5, 0).unwrap();
    assert_eq!(ledger.reserve(&other, 0.01, 0).err().unwrap().setting, "judge.ceiling_usd_day");
    first.settle(0.1);
    assert!(ledger.reserve(&one, 0.35, 0).is_ok());
    drop(second);
    assert!(ledger.reserve(&other, 0.2, 0).is_err(), "what nobody settles stays set aside");
    assert!(ledger.reserve(&other, 0.6, 86_400_000).is_ok(), "another day");
    assert_eq!(ledger.standing(86_400_000).today_nanos, 600_000_000);
    assert_eq!((ledger.today_usd(&other, 86_400_000), ledger.today_usd(&one, 86_400_000)), (0.6, 0.0));
}

#[test]
fn what_a_day_cost_outlives_the_process() {
    let home = tempfile::tempdir().unwrap();
    let ceilings = Ceilings { day: Some(1.0), day_tenant: None };
    let ledger = Ledger::open(home.path(), ceilings).unwrap();
    ledger.reserve(&Tenant::local(), 0.5, 0).unwrap().settle(0.4);
    // The process ends within the second call.
    std::mem::forget(ledger.reserve(&Tenant::local(), 0.3, 0).unwrap());
    let again = Ledger::open(home.path(), ceilings).unwrap();
    assert_eq!(again.standing(0).today_nanos, 700_000_000);
    assert!(again.reserve(&Tenant::local(), 0.31, 0).is_err());
    std::fs::write(home.path().join("spend.json"), "{").unwrap();
    assert!(Ledger::open(home.path(), ceilings).is_err(), "a damaged file is no empty day");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_is_told_apart() {
    let models = Models::with(&price::Config::default()).unwrap();
    let script = Scripted::new([GOOD.to_owned()]);
    let judge = Judge::scripted(&Config::default(), models, Ledger::forgetful(Ceilings::default()), &script);
    let said = rule(&judge, "gpt-4o", 1_000).await.unwrap();
    assert_eq!(said.id.as_deref(), Some("scripted-0"));
}
