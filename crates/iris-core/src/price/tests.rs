use std::collections::BTreeSet;

use super::table::{File, TEXT};
use super::*;

fn price(provider: &str, model: &str) -> Option<f64> {
    let ask = Ask { provider: Some(provider).filter(|name| !name.is_empty()), model: Some(model), request_model: None };
    Prices::list().of(&ask).map(|rates| rates.input)
}

fn used(input: u64, cache_read: u64, cache_write: u64, output: u64) -> Usage {
    Usage {
        input: Some(input),
        output: Some(output),
        cache_read: Some(cache_read).filter(|count| *count > 0),
        cache_write: Some(cache_write).filter(|count| *count > 0),
        ..Usage::default()
    }
}

#[test]
fn every_price_of_the_list_is_sound() {
    let file: File = toml::from_str(TEXT).unwrap();
    let mut count = 0;
    let names: BTreeSet<&str> = file.provider.iter().map(|provider| provider.name.as_str()).collect();
    assert_eq!(names.len(), file.provider.len(), "a provider twice");
    for section in &file.provider {
        assert!(section.source.starts_with("https://"), "{}", section.name);
        assert!(super::name::read_day(&section.date).is_some(), "{}: {}", section.name, section.date);
        assert!(section.shares.iter().all(|name| names.contains(name.as_str())), "{}", section.name);
        let mut models = BTreeSet::new();
        for entry in &section.model {
            count += 1;
            let place = format!("{} {}", section.name, entry.name);
            assert!(entry.source.is_some() == entry.date.is_some(), "{place}: a source of its own has a date");
            assert!(entry.date.as_deref().is_none_or(|date| super::name::read_day(date).is_some()), "{place}");
            for name in std::iter::once(&entry.name).chain(&entry.aliases) {
                assert_eq!(*name, name.to_lowercase(), "{place}");
                assert!(models.insert(name.clone()), "{place}: {name} is listed twice");
            }
            let rates = entry.rates;
            assert!(rates.all().all(|rate| rate > 0.0 && rate < 1000.0), "{place}: {rates:?}");
            assert!(rates.cached_read.is_none_or(|read| read <= rates.input), "{place}: a cache costs more");
            assert!(rates.cache_write.is_none_or(|write| write >= rates.input), "{place}: writing costs less");
            assert!(rates.output.is_none_or(|output| output >= rates.input * 0.99), "{place}: {rates:?}");
            assert!(
                rates.above.is_none_or(|above| above.tokens >= 100_000 && above.input > Some(rates.input)),
                "{place}"
            );
        }
    }
    assert!(count > 150, "{count} models");
    assert_eq!(table::providers().len(), file.provider.len());
}

#[test]
fn a_model_is_found_by_name_alias_and_day() {
    for (provider, model, input) in [
        ("openai", "gpt-4o", 2.5),
        ("openai", "GPT-4o", 2.5),
        ("openai", "gpt-4o-2024-08-06", 2.5),
        ("openai", "gpt-4o-2024-05-13", 5.0),
        ("openai", "gpt-4o-mini-2024-07-18", 0.15),
        ("azure.ai.openai", "gpt-4o-2024-08-06", 2.5),
        ("azure.ai.openai", "gpt-4.1-mini", 0.4),
        ("anthropic", "claude-sonnet-4-20250514", 3.0),
        ("anthropic", "claude-3-5-sonnet-20241022", 3.0),
        ("anthropic", "claude-3-5-haiku-latest", 0.8),
        ("gcp.vertex_ai", "claude-sonnet-4@20250514", 3.0),
        ("gcp.vertex_ai", "publishers/google/models/gemini-2.5-pro", 1.25),
        ("gcp.gemini", "models/gemini-2.5-flash", 0.3),
        ("gcp.gen_ai", "gemini-2.5-flash", 0.3),
        ("aws.bedrock", "us.anthropic.claude-sonnet-4-20250514-v1:0", 3.0),
        ("aws.bedrock", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", 3.3),
        ("aws.bedrock", "global.anthropic.claude-sonnet-4-5-20250929-v1:0", 3.0),
        ("aws.bedrock", "arn:aws:bedrock:us-east-1:1:inference-profile/us.amazon.nova-pro-v1:0", 0.8),
        ("aws.bedrock", "meta.llama3-3-70b-instruct-v1:0", 0.72),
        ("groq", "llama-3.3-70b-versatile", 0.59),
        ("together", "meta-llama/Llama-3.3-70B-Instruct-Turbo", 0.88),
        ("x_ai", "grok-4", 3.0),
        ("", "us.anthropic.claude-sonnet-4-20250514-v1:0", 3.0),
        ("", "anthropic/claude-opus-4-5", 5.0),
        ("", "gpt-4o", 2.5),
        ("openai", "openai/gpt-4o", 2.5),
        ("openai", "grok-4", 3.0),
    ] {
        assert_eq!(price(provider, model), Some(input), "{provider} {model}");
    }
}

#[test]
fn what_is_not_listed_has_no_price() {
    for (provider, model) in [
        ("openai", "gpt-4o-2031-01-01"),
        ("openai", "gpt-4o-2024-13-01"),
        ("openai", "gpt-4o-turbo"),
        ("openai", "my-gpt-4o"),
        ("openai", "ft:gpt-4o-mini-2024-07-18:harbor::abc"),
        ("openai", "MY-FINETUNE:ft-123"),
        ("openai", "gpt-4o-audio"),
        ("openai", ""),
        ("gcp.gemini", "models/gemini-x"),
        ("", "openrouter/meta/llama"),
        ("openrouter", "anthropic/claude-opus-4-5"),
        ("ollama", "gpt-4o"),
        ("my.gateway", "gpt-4o"),
        ("anthropic", "gpt-4o"),
        ("", "llama-3.3-70b-versatile"),
        ("azure.ai.openai", "my-turbo-deploy"),
    ] {
        assert_eq!(price(provider, model), None, "{provider} {model}");
    }
    let long = "gpt-4o".repeat(10_000);
    assert_eq!(price("openai", &long), None);
    let deployed =
        Ask { provider: Some("azure.ai.openai"), model: Some("gpt-4"), request_model: Some("my-turbo-deploy") };
    assert_eq!(Prices::list().of(&deployed), None, "a family's name is not the model that was deployed");
    let asked = Ask { request_model: Some("gpt-4"), ..deployed };
    assert_eq!(Prices::list().of(&asked).map(|rates| rates.input), Some(30.0));
    let only_asked = Ask { provider: Some("openai"), model: None, request_model: Some("gpt-4o") };
    assert_eq!(Prices::list().of(&only_asked).map(|rates| rates.input), Some(2.5));
}

#[test]
fn an_operators_price_comes_first() {
    let config = Config {
        prices: vec![
            Override {
                model: "My-Turbo-Deploy".to_owned(),
                like: Some("openai/gpt-4o".to_owned()),
                ..Override::default()
            },
            Override {
                model: "gpt-4o".to_owned(),
                provider: Some("openai".to_owned()),
                input: Some(1.0),
                output: Some(2.0),
                ..Override::default()
            },
            Override { model: "local".to_owned(), input: Some(0.0), output: Some(0.0), ..Override::default() },
        ],
        ..Config::default()
    };
    let prices = Prices::with(&config).unwrap();
    let of = |provider: &str, model: &str, asked: &str| {
        let ask = Ask { provider: Some(provider), model: Some(model), request_model: Some(asked) };
        prices.of(&ask).map(|rates| rates.input)
    };
    assert_eq!(of("azure.ai.openai", "gpt-4", "my-turbo-deploy"), Some(2.5));
    assert_eq!(of("openai", "gpt-4o", "gpt-4o"), Some(1.0));
    assert_eq!(of("openai", "gpt-4o-2024-08-06", "gpt-4o"), Some(1.0), "what was asked for is what was agreed on");
    assert_eq!(of("azure.ai.openai", "gpt-4o", "gpt-4o"), Some(2.5), "that price is for another provider");
    assert_eq!(of("ollama", "local", "local"), Some(0.0), "an operator may say that it is free");
    let closed = Prices::with(&Config { list_prices: false, ..config }).unwrap();
    assert_eq!(closed.of(&Ask { provider: Some("openai"), model: Some("gpt-4.1"), request_model: None }), None);
    assert!(closed.of(&Ask { provider: None, model: Some("local"), request_model: None }).is_some());
}

#[test]
fn a_wrong_price_is_refused_and_named() {
    let wrong = |price: Override| Config { prices: vec![price], ..Config::default() }.problems().concat();
    assert!(wrong(Override { input: Some(1.0), ..Override::default() }).contains("cost.prices[0]: model"));
    let named = Override { model: "m".to_owned(), ..Override::default() };
    assert!(wrong(named.clone()).contains("neither input nor like"));
    assert!(wrong(Override { like: Some("gpt-9".to_owned()), ..named.clone() }).contains("like"));
    for rate in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(wrong(Override { input: Some(rate), ..named.clone() }).contains("rate"), "{rate}");
    }
    let twice = Override { input: Some(1.0), ..named };
    let problems = Config { prices: vec![twice.clone(), twice], ..Config::default() }.problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    let many = vec![Override { model: "m".to_owned(), input: Some(1.0), ..Override::default() }; 1001];
    assert!(Config { prices: many, ..Config::default() }.problems()[0].contains("1001"));
}

#[test]
fn parts_are_charged_at_their_own_rates() {
    let rates = |provider: &str, model: &str| {
        Prices::list().of(&Ask { provider: Some(provider), model: Some(model), request_model: None }).unwrap()
    };
    let close = |got: f64, want: f64| assert!((got - want).abs() < 1e-12, "{got} is not {want}");
    // 20,212 tokens sent, of which 16,298 from the cache at half the price.
    let charge = rates("openai", "gpt-4o").charge(&used(20_212, 16_298, 0, 931)).unwrap();
    close(charge.input_usd, 3_914.0 * 2.5e-6);
    close(charge.cached_read_usd, 16_298.0 * 1.25e-6);
    close(charge.output_usd, 931.0 * 10e-6);
    close(charge.total_usd(), 0.009_785 + 0.020_372_5 + 0.009_31);
    let charge = rates("anthropic", "claude-sonnet-4-5").charge(&used(39_019, 0, 39_000, 10)).unwrap();
    close(charge.total_usd(), 19.0 * 3e-6 + 39_000.0 * 3.75e-6 + 10.0 * 15e-6);
    let long = rates("gcp.gemini", "gemini-2.5-pro");
    close(long.charge(&used(200_000, 0, 0, 100)).unwrap().total_usd(), 0.25 + 0.001);
    close(long.charge(&used(200_001, 0, 0, 100)).unwrap().total_usd(), 200_001.0 * 2.5e-6 + 0.0015);
    let spoken = Usage { input_audio: Some(100), output_audio: Some(50), ..used(300, 0, 0, 60) };
    let charge = rates("openai", "gpt-audio").charge(&spoken).unwrap();
    close(charge.input_usd, 200.0 * 2.5e-6 + 100.0 * 32e-6);
    close(charge.output_usd, 10.0 * 10e-6 + 50.0 * 64e-6);
    // No rate for a cache: cached tokens are not free.
    let plain = rates("openai", "o3-pro").charge(&used(1_000_000, 500_000, 0, 0)).unwrap();
    close(plain.total_usd(), 20.0);
}

#[test]
fn what_is_not_counted_has_no_cost() {
    let rates =
        Prices::list().of(&Ask { provider: Some("openai"), model: Some("gpt-4o"), request_model: None }).unwrap();
    assert_eq!(rates.charge(&Usage::default()), None);
    assert_eq!(rates.charge(&Usage { input: Some(10), ..Usage::default() }), None);
    assert_eq!(rates.charge(&Usage { output: Some(10), ..Usage::default() }), None);
    assert_eq!(rates.charge(&Usage { total: Some(10), ..Usage::default() }), None);
    let embed = Ask { provider: Some("openai"), model: Some("text-embedding-3-small"), request_model: None };
    let embed = Prices::list().of(&embed).unwrap();
    assert!(embed.charge(&Usage { input: Some(10), ..Usage::default() }).is_some(), "an embedding answers nothing");
    assert_eq!(embed.charge(&used(10, 0, 0, 10)), None);
}
