use super::*;

#[test]
fn the_defaults_are_sound() {
    assert_eq!(Settings::default().problems(), Vec::<String>::new());
    assert_eq!(Settings::default().ingest_required_evidence, [Need::Output]);
}

#[test]
fn all_problems_are_listed_at_once() {
    let settings = Settings {
        critical_rules: vec!["no_pii".to_owned(), "no_such_rule".to_owned()],
        non_critical_rules: vec!["no_pii".to_owned()],
        rule_thresholds: BTreeMap::from([("no_such_threshold".to_owned(), 1.0)]),
        prior: 1.0,
        false_pass_cost: f64::NAN,
        prior_classes: 0,
        ..Settings::default()
    };
    let problems = settings.problems();
    for part in [
        "\"no_such_rule\"",
        "the rules are min_output_length, non_empty_output, ",
        "can be in one",
        "no_such_threshold",
        "prior:",
        "false_pass_cost",
        "prior_classes",
    ] {
        assert!(problems.iter().any(|problem| problem.contains(part)), "{part}: {problems:#?}");
    }
}

#[test]
fn both_spellings_of_a_key_are_read_and_others_refused() {
    let camel: Settings = serde_json::from_value(json!({"criticalRules": ["no_pii"], "falsePassCost": 2.0})).unwrap();
    let snake: Settings =
        serde_json::from_value(json!({"critical_rules": ["no_pii"], "false_pass_cost": 2.0})).unwrap();
    assert_eq!(camel, snake);
    assert!(serde_json::from_value::<Settings>(json!({"critical": []})).is_err());
}

#[test]
fn a_rule_can_be_made_not_to_veto() {
    let settings = Settings { non_critical_rules: vec!["no_pii".to_owned()], ..Settings::default() };
    let subject = Subject { output: Some("SSN 536-22-8716"), ..Subject::default() };
    let evaluation = evaluate(&unmeasured(), &subject, &settings, EvalType::All, identity(), now());
    assert!(compose(&evaluation).passed);
    assert_eq!(result(&evaluation, "no_pii").critical_source, "config");
}

/// What was worked out for one deployment's settings is not taken for another's, whatever was judged first.
#[test]
fn settings_that_were_judged_under_before_leave_no_trace() {
    let strict = Settings { critical_rules: vec!["says_something".to_owned()], ..Settings::default() };
    let lax = Settings { rule_thresholds: BTreeMap::from([("min_length".to_owned(), 3.0)]), ..Settings::default() };
    let called = Settings { call_thresholds: BTreeMap::from([("min_length".to_owned(), 4.0)]), ..Settings::default() };
    let seeing = Settings { required_evidence: vec![Need::Input], ..Settings::default() };
    let all = [Settings::default(), strict, called, lax, seeing, Settings::default()];
    let subject = Subject { output: Some("ok"), input: Some("List the ferries."), ..Subject::default() };
    let shared = Ruleset::built_in();
    for settings in all.iter().chain(all.iter().rev()) {
        let judge = |ruleset| evaluate(ruleset, &subject, settings, EvalType::All, identity(), now());
        assert_eq!(judge(&shared), judge(&Ruleset::built_in()), "{settings:?}");
    }
}

#[test]
fn a_threshold_is_found_under_its_other_name() {
    let settings =
        Settings { rule_thresholds: BTreeMap::from([("min_length".to_owned(), 3.0)]), ..Settings::default() };
    assert_eq!(settings.problems(), Vec::<String>::new());
    let subject = Subject { output: Some("Yes."), ..Subject::default() };
    let evaluation = evaluate(&unmeasured(), &subject, &settings, EvalType::All, identity(), now());
    assert_eq!(result(&evaluation, "min_output_length").state, "pass");
}

#[test]
fn relevance_advises_until_a_threshold_is_set() {
    let subject = Subject {
        input: Some("Compare the prices of ferry, train, coach and airship tickets"),
        output: Some("Whales breathe air through blowholes. Bakers bake bread before sunrise. Bicycles stand still."),
        ..Subject::default()
    };
    let shipped = judge(&subject);
    assert_eq!(result(&shipped, "answers_the_ask").state, "fail");
    assert!(shipped.passed, "{:?}", compose(&shipped));
    let settings =
        Settings { rule_thresholds: BTreeMap::from([("keyword_overlap".to_owned(), 0.35)]), ..Settings::default() };
    let set = evaluate(&unmeasured(), &subject, &settings, EvalType::All, identity(), now());
    assert_eq!(compose(&set).by, ["answers_the_ask"]);
}

/// Guarantees: a list that no rule reads, or that is longer than one reads, is refused by name; the others take effect.
#[test]
fn lists_are_read_or_refused_by_name() {
    let with = |name: &str, list: Vec<String>| Settings {
        rule_lists: std::iter::once((name.to_owned(), list)).collect(),
        ..Settings::default()
    };
    let refused = |name: &str, list: Vec<String>| with(name, list).problems().join("; ");
    assert!(refused("blocklists", vec!["x".to_owned()]).contains("they are blocklist, stub_markers"));
    assert!(refused("stub_markers", vec!["x".to_owned(); 101]).contains("101 entries; at most 100"));
    assert!(refused("blocklist", vec!["a".to_owned(), " ".to_owned()]).contains("blocklist[1]"));
    let settings = with("blocklist", vec!["project  Heron".to_owned(), "codename".to_owned()]);
    assert_eq!(settings.problems(), Vec::<String>::new());
    let told = |output: &str, settings: &Settings| {
        let subject = Subject { output: Some(output), ..Subject::default() };
        let identity = Identity {
            id: "e".to_owned(),
            tenant: Tenant::local(),
            trace_id: None,
            trace_version: None,
            seen_through: 0,
            position: None,
            inline: false,
        };
        let evaluation =
            evaluate(&Ruleset::built_in(), &subject, settings, EvalType::Safety, identity, Timestamp::default());
        let blocked = evaluation.rule_results.into_iter().find(|result| result.rule_name == "no_blocklist_words");
        blocked.unwrap().state
    };
    for _ in 0..2 {
        assert_eq!(told("All about Project Heron, at length.", &settings), "fail");
        assert_eq!(
            told("How to hack a loom is another matter.", &settings),
            "pass",
            "the list replaces the shipped one"
        );
        assert_eq!(told("How to hack a loom is another matter.", &Settings::default()), "fail");
    }
}
