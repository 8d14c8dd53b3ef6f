mod actions;
mod patterns;
mod schemas;

use serde_json::{Value, json};

use super::*;
use crate::model::{Evidence, ToolCall};
use crate::rules::{Finding, Subject, run};

fn definition(kind: &str, config: Value) -> Definition {
    let mut definition = json!({"type": kind});
    definition["config"] = config;
    serde_json::from_value(definition).unwrap()
}

fn compiled(kind: &str, config: Value) -> Result<CustomRule, Problem> {
    CustomRule::compile("ours", "", Bundle::Custom, Severity::Medium, &definition(kind, config))
}

fn judge(kind: &str, config: Value, subject: &Subject<'_>) -> Outcome {
    run(&compiled(kind, config).unwrap(), &Case::new(subject), &Knobs::default())
}

fn said(kind: &str, config: Value, output: &str) -> Outcome {
    judge(kind, config, &Subject { output: Some(output), ..Subject::default() })
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Pass(_) => "pass",
        Outcome::Fail(_) => "fail",
        Outcome::Skip { class, .. } => class.as_str(),
    }
}

fn finding(outcome: &Outcome) -> &Finding {
    match outcome {
        Outcome::Pass(finding) | Outcome::Fail(finding) => finding,
        Outcome::Skip { why, .. } => panic!("{why}"),
    }
}

fn spans(outcome: &Outcome) -> Vec<(usize, usize, &str)> {
    let span = |one: &'_ Evidence| match one {
        Evidence::Span { start, end, .. } => Some((*start, *end)),
        _ => None,
    };
    let labels = finding(outcome).evidence.iter().filter_map(|one| match one {
        Evidence::Span { label, .. } => Some(label.as_str()),
        _ => None,
    });
    finding(outcome).evidence.iter().filter_map(span).zip(labels).map(|((a, b), label)| (a, b, label)).collect()
}

#[test]
fn every_type_passes_fails_and_skips_without_its_input() {
    let calls = |name: &str| vec![ToolCall { tool_name: name.to_owned(), ..ToolCall::default() }];
    let (good, bad) = (calls("read"), calls("shell"));
    let text = |output| Subject { output: Some(output), ..Subject::default() };
    let cost = |usd| Subject { cost_usd: Some(usd), ..Subject::default() };
    let tools = |calls| Subject { tool_calls: Some(calls), ..Subject::default() };
    let cases = [
        ("regex_match", json!({"pattern": "^order \\d+"}), text("order 17"), text("no order 17")),
        ("regex_no_match", json!({"pattern": "forever"}), text("for a while"), text("live forever")),
        ("min_length", json!({"min_length": 5}), text("hello"), text("hell")),
        ("max_length", json!({"max_length": 5}), text("hello"), text("hello!")),
        ("contains_keywords", json!({"keywords": ["refund", "ORDER"]}), text("Refund of order 1"), text("a refund")),
        ("excludes_keywords", json!({"keywords": ["guarantee"]}), text("we try"), text("we Guarantee it")),
        ("json_schema", json!({}), text(" {\"a\": [1, null]} "), text("{\"a\": ")),
        ("cost_threshold", json!({"max_cost": 0.1}), cost(0.1), cost(0.11)),
        ("action_policy", json!({"deny": ["sh*"]}), tools(&good), tools(&bad)),
    ];
    assert_eq!(cases.len(), TYPES.len());
    assert_eq!(RuleType::ALL.len(), TYPES.len());
    for (kind, config, passing, failing) in cases {
        let passes = judge(kind, config.clone(), &passing);
        assert_eq!((word(&passes), finding(&passes).score), ("pass", 1.0), "{kind}");
        let fails = judge(kind, config.clone(), &failing);
        assert_eq!(word(&fails), "fail", "{kind}");
        assert!(finding(&fails).score < 1.0, "{kind}");
        assert_eq!(word(&judge(kind, config, &Subject::default())), "not_applicable", "{kind}");
    }
}

#[test]
fn scores_say_how_far_off_it_is() {
    let score = |kind, config, output| finding(&said(kind, config, output)).score;
    assert_eq!(score("min_length", json!({"min": 10}), "12345"), 0.5);
    assert_eq!(score("max_length", json!({"length": 5}), "1234567890"), 0.5);
    assert_eq!(score("contains_keywords", json!({"keywords": ["a", "b", "c", "d"]}), "abc"), 0.75);
    assert_eq!(score("contains_keywords", json!({"keywords": ["a", "b", "c", "d"], "threshold": 0.75}), "abc"), 1.0);
    assert_eq!(score("min_length", json!({"min_length": 3}), "éあ👍"), 1.0, "code points, not bytes");
    let free = Subject { cost_usd: Some(0.0), ..Subject::default() };
    assert_eq!(word(&judge("cost_threshold", json!({"max_usd": 0}), &free)), "pass", "0 means free");
}

#[test]
fn evidence_counts_code_points_of_the_raw_text_and_never_repeats_it() {
    let outcome = said("regex_no_match", json!({"pattern": "b+"}), "éb あbb");
    assert_eq!(spans(&outcome), [(1, 2, "pattern"), (4, 6, "pattern")]);
    let keywords = json!({"keywords": ["STRASSE", "über", "eins"]});
    let outcome = said("excludes_keywords", keywords, "İÜBER die Strasse");
    assert_eq!(spans(&outcome), [(1, 5, "keywords[1]"), (10, 17, "keywords[0]")]);
    assert!(!finding(&outcome).message.to_lowercase().contains("strasse"), "{:?}", finding(&outcome).message);
    let many = said("regex_no_match", json!({"pattern": "x"}), &"x".repeat(100));
    assert_eq!(spans(&many).len(), crate::rules::EVIDENCE_MAX);
    assert!(finding(&many).message.contains("at least 25"));
    assert_eq!(spans(&said("regex_no_match", json!({"pattern": "x*"}), "axé")).len(), 4, "empty matches end too");
}

#[test]
fn a_definition_is_refused_by_the_key_that_is_wrong_and_what_would_be_right() {
    for (kind, config, field, words) in [
        ("regex_match", json!({}), "config.pattern", "is missing"),
        ("regex_match", json!({"pattern": null}), "config.pattern", "regular expression"),
        ("regex_match", json!({"pattern": ""}), "config.pattern", "must not be empty"),
        ("regex_match", json!({"pattern": "("}), "config.pattern", "unclosed group"),
        ("regex_match", json!({"pattern": "a(?=b)"}), "config.pattern", "look-around"),
        ("regex_match", json!({"pattern": "(a)\\1"}), "config.pattern", "backreferences"),
        ("regex_match", json!({"pattern": "(a+)+$"}), "config.pattern", "ReDoS"),
        ("regex_no_match", json!({"pattern": "x".repeat(1001)}), "config.pattern", "1001 characters; at most 1000"),
        ("regex_no_match", json!({"pattern": "a{1000}{1000}"}), "config.pattern", "compiles to more than"),
        ("regex_match", json!({"pattern": "a", "flags": "iq"}), "config.flags", "must be letters of i"),
        ("regex_match", json!({"pattern": "a", "flags": 1}), "config.flags", "must be letters of i"),
        ("min_length", json!({}), "config.min_length", "also read: length, min"),
        ("min_length", json!({"min_length": "5"}), "config.min_length", "a number of characters above 0"),
        ("min_length", json!({"min_length": 0}), "config.min_length", "above 0"),
        ("max_length", json!({"max_length": -1}), "config.max_length", "above 0"),
        ("contains_keywords", json!({}), "config.keywords", "is missing"),
        ("contains_keywords", json!({"keywords": []}), "config.keywords", "a list of 1 to 500 texts"),
        ("contains_keywords", json!({"keywords": [1, 2]}), "config.keywords", "a list of 1 to 500 texts"),
        ("contains_keywords", json!({"keywords": ["a", " "]}), "config.keywords", "none of them blank"),
        ("contains_keywords", json!({"keywords": vec!["a"; 501]}), "config.keywords", "1 to 500"),
        ("contains_keywords", json!({"keywords": ["a"], "threshold": 1.5}), "config.threshold", "from 0 to 1"),
        ("excludes_keywords", json!({"keywords": ["x".repeat(20_001)]}), "config.keywords", "20000 characters"),
        ("cost_threshold", json!({}), "config.max_cost", "US dollars"),
        ("cost_threshold", json!({"max_cost": -0.1}), "config.max_cost", "0 or more"),
    ] {
        let problem = compiled(kind, config.clone()).unwrap_err();
        assert_eq!(problem.field, field, "{kind} {config} {problem}");
        assert!(problem.why.contains(words), "{kind} {config} {problem}");
    }
    let known = definition("min_length", json!({"min_length": 5}));
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY, 1001.0] {
        let heavy = Definition { weight: Some(weight), ..known.clone() };
        let problem = CustomRule::compile("ours", "", Bundle::Custom, Severity::Low, &heavy).unwrap_err();
        assert_eq!(problem.field, "weight");
    }
}

#[test]
fn the_first_usable_number_counts_and_unknown_keys_are_left_alone() {
    let config = json!({"min_length": "five", "length": null, "min": 5, "note": "as agreed"});
    assert_eq!(word(&said("min_length", config, "hello")), "pass");
}

#[test]
fn severity_decides_whether_it_vetoes_and_the_bundle_what_it_asks() {
    for (severity, vetoes) in
        [(Severity::Low, false), (Severity::Medium, false), (Severity::High, true), (Severity::Critical, true)]
    {
        let definition = definition("json_schema", json!({}));
        let rule = CustomRule::compile("ours", "why", Bundle::Safety, severity, &definition).unwrap();
        let meta = rule.meta();
        assert_eq!((meta.critical, meta.kind, meta.question), (vetoes, Kind::Policy, Question::SafeOutput));
        assert_eq!((&*meta.name, &*meta.description, meta.weight), ("ours", "why", 1.0));
    }
}

#[test]
fn what_lies_beyond_the_part_that_is_read_is_never_a_pass_and_never_a_false_fail() {
    let long = format!("{}zebra", "x ".repeat(TEXT_BYTES_MAX / 2));
    for (kind, config) in [
        ("regex_match", json!({"pattern": "zebra"})),
        ("regex_no_match", json!({"pattern": "zebra"})),
        ("regex_no_match", json!({"pattern": " $"})),
        ("contains_keywords", json!({"keywords": ["zebra"]})),
        ("excludes_keywords", json!({"keywords": ["zebra"]})),
        ("json_schema", json!({})),
    ] {
        assert_eq!(word(&said(kind, config, &long)), "defeated", "{kind}");
    }
    assert_eq!(word(&said("regex_no_match", json!({"pattern": "x"}), &long)), "fail");
    assert_eq!(word(&said("excludes_keywords", json!({"keywords": ["x x"]}), &long)), "fail");
    assert_eq!(word(&said("max_length", json!({"max_length": 10}), &long)), "fail");
}

#[test]
fn keywords_that_lie_within_each_other_cost_no_more_than_a_rule_may() {
    let mut words: Vec<String> = (1..=190).map(|length| "a".repeat(length)).collect();
    words.push("zebra".to_owned());
    let text = "a".repeat(TEXT_BYTES_MAX);
    assert_eq!(word(&said("contains_keywords", json!({"keywords": words.clone()}), &text)), "defeated");
    assert_eq!(word(&said("excludes_keywords", json!({"keywords": words}), &text)), "fail", "what was met was met");
}

#[test]
fn a_broken_rule_says_so_and_nothing_else() {
    let rule = BrokenRule::new("ours", Bundle::Custom, true, "config.pattern: is missing");
    let outcome = run(&rule, &Case::new(&Subject::default()), &Knobs::default());
    assert_eq!(
        outcome,
        Outcome::Skip { class: SkipClass::ConfigInvalid, why: "config.pattern: is missing".to_owned() }
    );
    assert!(rule.meta().critical);
}

#[test]
fn every_example_of_the_documentation_deploys() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/custom-rules.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for example in page.split("```json\n").skip(1) {
        let example = example.split("```").next().unwrap();
        let rule: Value = serde_json::from_str(example).unwrap_or_else(|error| panic!("{error}: {example}"));
        let args = crate::contract::parse::<crate::contract::DeployRuleArgs>(rule)
            .unwrap_or_else(|e| panic!("{e}: {example}"));
        let bundle = args.bundle().unwrap();
        CustomRule::compile(&args.name, "", bundle, Severity::Medium, &args.definition)
            .unwrap_or_else(|e| panic!("{e}: {example}"));
        seen.insert(args.definition.rule_type);
    }
    assert_eq!(seen.len(), RuleType::ALL.len(), "a type without an example: {seen:?}");
}
