use serde_json::{Value, json};

use crate::judge::*;

fn sent(provider: Provider, model: &str, temperature: f64, own_endpoint: bool) -> Value {
    let manner = manner(provider, model, temperature, own_endpoint);
    let request = Request { provider, model, system: "S", user: "U", output_tokens_max: 512, manner };
    serde_json::from_slice(&body(&request)).unwrap()
}

/// Field case G6-02: each model gets the parameters it takes and no other.
#[test]
fn g6_02_parameters_are_those_the_model_takes() {
    let claude = sent(Provider::Anthropic, "claude-haiku-4-5", 0.0, false);
    assert_eq!(
        claude,
        json!({ "model": "claude-haiku-4-5", "max_tokens": 512, "temperature": 0.0, "system": "S", "messages": [{ "role": "user", "content": "U" }] })
    );
    assert_eq!(sent(Provider::Anthropic, "claude-sonnet-4-6", 1.7, false)["temperature"], 1.0, "as hot as it gets");
    for model in [
        "claude-opus-4-7",
        "claude-opus-4-8",
        "claude-opus-5",
        "claude-sonnet-5",
        "claude-fable-5",
        "claude-unheard-of",
    ] {
        let body = sent(Provider::Anthropic, model, 0.0, false);
        assert!(body.get("temperature").is_none() && body["max_tokens"] == 512, "{body}");
    }
    let gpt = sent(Provider::OpenAi, "gpt-4o", 0.5, false);
    assert_eq!((&gpt["max_tokens"], &gpt["temperature"]), (&json!(512), &json!(0.5)));
    assert_eq!(gpt["messages"], json!([{ "role": "system", "content": "S" }, { "role": "user", "content": "U" }]));
    for model in ["gpt-5-mini", "gpt-5", "gpt-5.1", "o1", "o3-mini", "o4-mini", "gpt-6-unheard-of"] {
        let body = sent(Provider::OpenAi, model, 0.0, false);
        assert!(body.get("temperature").is_none() && body.get("max_tokens").is_none(), "{body}");
        assert_eq!(body["max_completion_tokens"], 512);
    }
    let own = sent(Provider::OpenAi, "qwen3-32b", 0.0, true);
    assert_eq!((&own["max_tokens"], &own["temperature"]), (&json!(512), &json!(0.0)));
    assert!(own.get("response_format").is_none(), "servers of other makers refuse it");
    assert_eq!(sent(Provider::OpenAi, "gpt-5-mini", 0.0, true)["max_completion_tokens"], 512);
}

fn answer(provider: Provider, body: &Value) -> Option<Answer> {
    read_answer(provider, body.to_string().as_bytes())
}

#[test]
fn answers_are_read_with_what_they_used() {
    let claude = answer(
        Provider::Anthropic,
        &json!({ "id": "msg_1", "content": [{ "type": "thinking", "thinking": "{\"score\":1}" }, { "type": "text", "text": "a" }, { "type": "text", "text": "b" }],
                "stop_reason": "end_turn", "usage": { "input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2, "output_tokens": 3 } }),
    )
    .unwrap();
    assert_eq!(
        claude,
        Answer { text: "a\nb".to_owned(), stop: Stop::End, id: Some("msg_1".to_owned()), usage: Some((17, 3)) }
    );
    let gpt = answer(
        Provider::OpenAi,
        &json!({ "id": "chatcmpl-1", "choices": [{ "message": { "content": "a" }, "finish_reason": "stop" }], "usage": { "prompt_tokens": 9, "completion_tokens": 4 } }),
    )
    .unwrap();
    assert_eq!((gpt.text.as_str(), gpt.stop, gpt.usage), ("a", Stop::End, Some((9, 4))));
    for (provider, body, stop) in [
        (
            Provider::Anthropic,
            json!({ "content": [{ "type": "text", "text": "{\"score\":1}" }], "stop_reason": "max_tokens" }),
            Stop::Cut,
        ),
        (Provider::Anthropic, json!({ "content": [], "stop_reason": "refusal" }), Stop::Refused),
        (
            Provider::OpenAi,
            json!({ "choices": [{ "message": { "content": "{\"score\":1}" }, "finish_reason": "length" }] }),
            Stop::Cut,
        ),
        (
            Provider::OpenAi,
            json!({ "choices": [{ "message": { "content": null, "refusal": "I will not" }, "finish_reason": "stop" }] }),
            Stop::Refused,
        ),
        (
            Provider::OpenAi,
            json!({ "choices": [{ "message": { "content": "x" }, "finish_reason": "content_filter" }] }),
            Stop::Refused,
        ),
    ] {
        let answer = answer(provider, &body).unwrap();
        assert_eq!((answer.stop, answer.usage), (stop, None), "{body}");
    }
    for provider in Provider::ALL {
        for bytes in [
            &b""[..],
            b"null",
            b"[]",
            b"<html>",
            b"{}",
            b"{\"content\":5}",
            b"{\"choices\":[]}",
            b"{\"choices\":[{}]}",
            b"\xff\xfe",
        ] {
            assert_eq!(read_answer(provider, bytes), None);
        }
    }
}

#[test]
fn a_status_says_what_kind_of_fault_it_is() {
    for (status, kind, retryable) in [
        (400, Kind::BadRequest, false),
        (401, Kind::Auth, false),
        (403, Kind::Auth, false),
        (404, Kind::BadRequest, false),
        (302, Kind::BadRequest, false),
        (413, Kind::BadRequest, false),
        (429, Kind::RateLimit, true),
        (500, Kind::ServerError, true),
        (503, Kind::ServerError, true),
        (529, Kind::ServerError, true),
    ] {
        assert_eq!((Kind::of_status(status), kind.is_retryable()), (Some(kind), retryable), "{status}");
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
    }
    assert_eq!(Kind::of_status(200), None);
}

#[test]
fn a_wait_is_read_from_seconds_and_dates() {
    let now = 1_445_412_420_000;
    assert_eq!(asked_wait_ms("20", now), Some(20_000));
    assert_eq!(asked_wait_ms(" 0.5 ", now), Some(500));
    assert_eq!(asked_wait_ms("Wed, 21 Oct 2015 07:28:00 GMT", now), Some(1_445_412_480_000 - 1_445_412_420_000));
    assert_eq!(asked_wait_ms("2015-10-21T07:28:00Z", now), Some(60_000));
    assert_eq!(asked_wait_ms("Wed, 21 Oct 2015 07:00:00 GMT", now), Some(0), "in the past");
    assert_eq!(asked_wait_ms("99999999999999999999", now), Some(u64::MAX), "no overflow");
    for nonsense in ["", "soon", "-3", "NaN", "inf"] {
        assert_eq!(asked_wait_ms(nonsense, now), None, "{nonsense}");
    }
}

/// Guarantees: nothing that looks like a key, no personal data and no body of another shape is told.
#[test]
fn a_providers_words_are_scrubbed() {
    let body = json!({ "error": { "type": "authentication_error", "message": "Incorrect API key provided: sk-proj-abc123DEF456ghi789. Find yours at\nthe page." } });
    assert_eq!(message_of(body.to_string().as_bytes()), "Incorrect API key provided: [key]. Find yours at the page.");
    for words in [
        "bad key sk-ant-api03-AAAABBBBCCCC1111 sent",
        "bad key sk-pr***********wxyz sent",
        "header was Bearer abc.def",
        "token 0123456789abcdef0123456789abcdef refused",
    ] {
        let told = scrubbed(words);
        assert!(
            told.contains("[key]") && !told.contains("abc.def") && !told.contains("AAAA") && !told.contains("wxyz"),
            "{told}"
        );
    }
    assert!(!scrubbed("user jane.doe@acme-corp.io is blocked").contains("jane"));
    assert_eq!(message_of(b"<html>your prompt was: my secret diary</html>"), "");
    assert_eq!(message_of(json!({ "prompt": "my secret diary" }).to_string().as_bytes()), "");
    assert!(message_of(json!({ "message": "word ".repeat(500) }).to_string().as_bytes()).chars().count() <= 301);
    assert_eq!(
        message_of(json!({ "error": { "message": "model_not_found: no such model" } }).to_string().as_bytes()),
        "model_not_found: no such model"
    );
}
