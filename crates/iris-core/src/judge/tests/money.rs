use proptest::prelude::*;

use crate::judge::*;
use crate::price;

fn models() -> Models {
    Models::with(&price::Config::default()).unwrap()
}

/// Field case G6-06: a name that has no price is unknown, and nothing is guessed by cutting off a date.
#[test]
fn g6_06_only_models_with_a_price_judge() {
    let models = models();
    for name in [
        "claude-nextgen-9",
        "gpt-9",
        "",
        " ",
        "gpt-4o-2024-08-06",
        "claude-opus-4-5-20991231",
        "text-embedding-3-small",
        "gpt-5-pro",
        "gpt-5-codex",
        "openai/gpt-4o",
    ] {
        assert!(models.find(name, None).is_none(), "{name}");
    }
    for (name, provider, input, output) in [
        ("claude-haiku-4-5", Provider::Anthropic, 1.0, 5.0),
        ("claude-haiku-4-5-20251001", Provider::Anthropic, 1.0, 5.0),
        ("claude-opus-4-7", Provider::Anthropic, 5.0, 25.0),
        ("gpt-4o", Provider::OpenAi, 2.5, 10.0),
        ("gpt-4o-mini", Provider::OpenAi, 0.15, 0.6),
        ("gpt-4o-2024-05-13", Provider::OpenAi, 5.0, 15.0),
        ("gpt-5-mini", Provider::OpenAi, 0.25, 2.0),
    ] {
        let model = models.find(name, None).unwrap_or_else(|| panic!("{name}"));
        assert_eq!((model.provider, model.rates.input, model.rates.output), (provider, input, Some(output)), "{name}");
        assert!(models.find(name, Some(provider)).is_some());
        let other = if provider == Provider::Anthropic { Provider::OpenAi } else { Provider::Anthropic };
        assert!(models.find(name, Some(other)).is_none(), "{name} is not run by {other:?}");
    }
    let valid = models.valid(None);
    assert!(valid.len() > 20 && valid.iter().all(|name| models.find(name, None).is_some()));
    assert!(models.valid(Some(Provider::Anthropic)).iter().all(|name| name.starts_with("claude")));
}

/// Field case G6-07: an operator adds a model of an endpoint of its own with a price, which may be nought.
#[test]
fn g6_07_an_operator_adds_a_model() {
    let own = |model: &str, provider: Option<&str>| price::Override {
        model: model.to_owned(),
        provider: provider.map(str::to_owned),
        input: Some(0.0),
        output: Some(0.0),
        ..price::Override::default()
    };
    let config = price::Config {
        prices: vec![own("qwen3-32b", None), own("claude-internal", None), own("gpt-4o", Some("openai"))],
        list_prices: false,
    };
    let models = Models::with(&config).unwrap();
    let qwen = models.find("qwen3-32b", None).unwrap();
    assert_eq!((qwen.provider, qwen.rates.input), (Provider::OpenAi, 0.0));
    assert_eq!(models.find("claude-internal", None).unwrap().provider, Provider::Anthropic);
    assert_eq!(models.find("gpt-4o", None).unwrap().rates.input, 0.0, "the operator's price comes first");
    assert!(models.find("claude-haiku-4-5", None).is_some(), "whether spans are priced by list does not matter");
    assert!(models.valid(None).contains(&"qwen3-32b".to_owned()));
}

/// Both attempts at full length, and each side at its own rate.
#[test]
fn the_worst_case_is_two_full_attempts() {
    let rates = models().find("claude-haiku-4-5", None).unwrap().rates;
    let prompt = Prompt { system: String::new(), user: "x".repeat(1_000_000), suspicions: Vec::new() };
    let worst = worst_case_usd(&rates, &prompt, 1_000).unwrap();
    assert!((2.01..2.02).contains(&worst), "{worst}");
    assert_eq!(spent_usd(&rates, 1_000_000, 200_000).map(rounded_usd), Some(2.0));
    assert_eq!(rounded_usd(0.123_456_7), 0.123_457);
    let above = models().find("gpt-5.4", None).unwrap().rates;
    let (small, large) = (spent_usd(&above, 100_000, 0).unwrap(), spent_usd(&above, 1_000_000, 0).unwrap());
    assert!(large > small * 10.0, "a long prompt is priced at the rates of long prompts");
}

const ENCODINGS: [fn() -> &'static tiktoken_rs::CoreBPE; 2] =
    [tiktoken_rs::cl100k_base_singleton, tiktoken_rs::o200k_base_singleton];

fn holds(text: &str) -> Result<(), TestCaseError> {
    for encoding in ENCODINGS {
        let tokens = u64::try_from(encoding().encode_ordinary(text).len()).unwrap();
        prop_assert!(tokens <= tokens_at_most(text), "{} bytes, {tokens} tokens", text.len());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::thorough::cases(2_500)))]

    /// The bound on 10,000 texts of four kinds, against two tokenizers in use.
    #[test]
    fn no_text_is_more_tokens_than_its_bound(
        any in "\\PC{0,120}",
        chinese in "[\u{4e00}-\u{9fff}\u{3040}-\u{30ff}\u{ac00}-\u{d7a3}]{0,120}",
        encoded in "[A-Za-z0-9+/]{0,200}={0,2}",
        mixed in "([a-z]{1,8} |\u{1f600}|\u{200d}|\u{fdfa}|\u{0}|[0-9]{1,5}|\n| ){0,60}",
    ) {
        holds(&any)?;
        holds(&chinese)?;
        holds(&encoded)?;
        holds(&mixed)?;
    }
}

#[test]
fn the_bound_holds_where_a_tokenizer_normalises_first() {
    // One character of three bytes becomes eighteen letters.
    assert!(tokens_at_most("\u{fdfa}") >= 33);
    assert_eq!(tokens_at_most("abc"), 3);
    assert_eq!(tokens_at_most("漢"), 3);
    assert_eq!(tokens_at_most(""), 0);
}
