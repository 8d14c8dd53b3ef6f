use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::model::{Evidence, Name};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: Name,
    kind: Name,
    state: Name,
    #[serde(default)]
    critical: bool,
    #[serde(default)]
    custom: bool,
    #[serde(default)]
    shipped: bool,
    matrix: Option<[u32; 4]>,
    #[serde(default)]
    classes: Vec<Name>,
    #[serde(default)]
    saw: Vec<Name>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Want {
    state: VerdictState,
    basis: Basis,
    by: Vec<String>,
    #[serde(default)]
    also: Vec<Basis>,
    #[serde(default)]
    risk: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    why: String,
    rules: Vec<Row>,
    #[serde(default)]
    inputs: Vec<String>,
    #[serde(default)]
    composer: Composer,
    want: Want,
}

#[derive(Debug, Deserialize)]
struct Table {
    case: Vec<Case>,
}

fn row(row: &Row) -> RuleResult {
    let mut result = super::result(&judge(&Subject { output: Some("x"), ..Subject::default() }), "no_pii").clone();
    let ran = matches!(&*row.state, "pass" | "fail");
    let shipped = Evidence::Count {
        stat: "n".to_owned(),
        unit: "n".to_owned(),
        value: 1.0,
        threshold: Some(1.0),
        threshold_source: Some("default".to_owned()),
    };
    result.rule_name.clone_from(&row.name);
    result.kind.clone_from(&row.kind);
    result.critical = row.critical;
    result.origin = row.custom.then(|| "custom".into());
    result.state = if ran { row.state.clone() } else { "not_checked".into() };
    result.passed = row.state == "pass";
    result.skipped = !ran;
    result.skip_class = (!ran).then(|| row.state.clone());
    result.evidence = if row.shipped { vec![shipped] } else { Vec::new() };
    result.classes.clone_from(&row.classes);
    result.saw.clone_from(&row.saw);
    result.uncertainty =
        row.matrix.map(|[tp, fp, missed, tn]| json!({"corpus": {"tp": tp, "fp": fp, "fn": missed, "tn": tn}}).into());
    result
}

fn evaluation(rules: Vec<RuleResult>, inputs: &[String], composer: &Composer) -> Evaluation {
    let mut evaluation = judge(&Subject { output: Some("x"), ..Subject::default() });
    evaluation.rule_results = rules;
    for (need, carried) in &mut evaluation.inputs {
        *carried = Value::Bool(inputs.contains(need));
    }
    evaluation.provenance["composer"] = serde_json::to_value(composer).unwrap();
    evaluation
}

#[test]
fn layers_compose_as_the_table_says() {
    let table: Table = toml::from_str(include_str!("../../../../../tests/cases/compose/layers.toml")).unwrap();
    assert!(table.case.len() >= 25);
    for case in &table.case {
        let evaluation = evaluation(case.rules.iter().map(row).collect(), &case.inputs, &case.composer);
        let verdict = compose(&evaluation);
        assert_eq!(compose::state(&evaluation, &case.composer), verdict.state, "{}", case.why);
        let also: Vec<Basis> = verdict.also.iter().map(|layer| layer.basis).collect();
        let got = (verdict.state, verdict.basis, verdict.by.clone(), also);
        assert_eq!(
            got,
            (case.want.state, case.want.basis, case.want.by.clone(), case.want.also.clone()),
            "{}",
            case.why
        );
        let risky = case.want.risk || case.want.basis == Basis::RiskOverLoss;
        assert_eq!(verdict.risk.is_some(), risky, "{}", case.why);
        assert_eq!(verdict.passed, verdict.state == VerdictState::Pass, "{}", case.why);
    }
}

/// Every combination of deciding layers: the first failing one decides, else the first unknown one, the rest is listed.
#[test]
fn every_combination_of_layers_ranks_alike() {
    let of = |name: &str, kind: &str, state: &str, critical, matrix| Row {
        name: name.to_owned().into(),
        kind: kind.to_owned().into(),
        state: state.to_owned().into(),
        critical,
        custom: false,
        shipped: false,
        matrix,
        classes: vec!["stub".into()],
        saw: Vec::new(),
    };
    for bits in 0_u32..32 {
        let on = |bit: u32| bits & (1 << bit) != 0;
        let state = |bit| if on(bit) { "fail" } else { "pass" };
        let rules = [
            of("gate", "policy", state(0), false, None),
            of("veto", "detection", state(1), true, None),
            of("unknown", "detection", if on(2) { "defeated" } else { "pass" }, true, None),
            of("risk", "inference", state(4), false, Some([30, 0, 3, 40])),
        ];
        let composer =
            Composer { required_evidence: if on(3) { vec![Need::Expected] } else { vec![] }, ..Composer::default() };
        let verdict = compose(&evaluation(rules.iter().map(row).collect(), &[], &composer));
        let order = [
            Basis::PolicyGate,
            Basis::DetectorVeto,
            Basis::CriticalUnknown,
            Basis::RequiredEvidenceMissing,
            Basis::RiskOverLoss,
        ];
        let deciding: Vec<Basis> = (0..5).filter(|bit| on(*bit)).map(|bit| order[bit as usize]).collect();
        let fails = |basis: &&Basis| !matches!(basis, Basis::CriticalUnknown | Basis::RequiredEvidenceMissing);
        let winner = deciding.iter().find(fails).or(deciding.first()).copied().unwrap_or(Basis::Clean);
        let rest: Vec<Basis> = deciding.into_iter().filter(|basis| *basis != winner).collect();
        let also: Vec<Basis> = verdict.also.iter().map(|layer| layer.basis).collect();
        assert_eq!((verdict.basis, also), (winner, rest), "{bits:05b}");
        assert!(verdict.state != VerdictState::Fail || !verdict.by.is_empty(), "{bits:05b}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::thorough::cases(60)))]
    #[test]
    fn a_stored_row_composes_to_the_same_verdict(
        output in prop_oneof![Just("x@quayhaven.io".to_owned()), any::<String>()],
        error in any::<Option<String>>(),
        prior in 0.01_f64..0.99,
        cost in 0.1_f64..20.0,
        measure in any::<bool>(),
        required in any::<bool>(),
        gate in any::<bool>(),
    ) {
        let calls = [crate::model::ToolCall { tool_name: "t".to_owned(), error, ..Default::default() }];
        let subject = Subject { output: Some(&output), tool_calls: Some(&calls), ..Subject::default() };
        let settings = Settings {
            prior,
            false_pass_cost: cost,
            defaults_gate: gate,
            required_evidence: if required { vec![Need::Expected] } else { vec![] },
            ..Settings::default()
        };
        let ruleset = if measure { Ruleset::built_in().with_accuracy(measured()) } else { Ruleset::built_in() };
        let first = evaluate(&ruleset, &subject, &settings, EvalType::All, identity(), now());
        let again = evaluate(&ruleset, &subject, &settings, EvalType::All, identity(), now());
        let bytes = serde_json::to_vec(&first).unwrap();
        prop_assert_eq!(&bytes, &serde_json::to_vec(&again).unwrap());
        let read: Evaluation = serde_json::from_slice(&bytes).unwrap();
        prop_assert_eq!(compose(&read), compose(&first));
        prop_assert_eq!(coverage(&read), coverage(&first));
        prop_assert_eq!(categories(&read), categories(&first));
        prop_assert_eq!(read.state, compose(&first).state);
    }
}

/// Any JSON, as arguments, results, catalogues and expectations come.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "(ignore all previous |send it to |a@b.io |```|\\n|error: |TODO ){0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let key = prop_oneof![
            "[a-z]{1,8}",
            proptest::sample::select(vec![
                "name",
                "tools",
                "inputSchema",
                "properties",
                "required",
                "type",
                "items",
                "enum",
                "pattern",
                "$ref",
                "tool_calls",
                "mode",
                "args",
                "step_budget",
                "tolerance",
                "path",
                "error",
                "status",
                "page",
            ])
            .prop_map(str::to_owned),
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            proptest::collection::vec((key, inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::thorough::cases(60)))]
    /// Whatever is supplied: every rule answers of itself, twice the same, and the row reads back to its verdict.
    #[test]
    fn no_input_makes_a_rule_panic_or_a_row_change(
        output in any::<Option<String>>(),
        input in any::<Option<String>>(),
        calls in proptest::collection::vec((any::<String>(), any_json(), any_json(), any::<Option<String>>()), 0..5),
        catalogue in any_json(),
        expected_trajectory in any_json(),
        cost in any::<f64>(),
        history in proptest::collection::vec(any::<f64>(), 0..40),
        tokens in any::<(Option<u64>, Option<u64>, Option<u64>)>(),
        reasons in proptest::collection::vec(any::<String>(), 0..3),
    ) {
        let calls: Vec<crate::model::ToolCall> = calls
            .into_iter()
            .map(|(tool_name, input, output, error)| crate::model::ToolCall {
                tool_name, input: Some(input), output: Some(output), error, ..Default::default()
            })
            .collect();
        let subject = Subject {
            output: output.as_deref(),
            input: input.as_deref(),
            expected: input.as_deref(),
            tool_calls: Some(&calls),
            tools_catalogue: Some(&catalogue),
            expected_trajectory: Some(&expected_trajectory),
            cost_usd: Some(cost),
            cost_parts: None,
            cost_history: &history,
            token_usage: Some(crate::model::TokenUsage {
                prompt_tokens: tokens.0, completion_tokens: tokens.1, total_tokens: tokens.2,
            }),
            finish_reasons: &reasons,
        };
        let judge = || evaluate(&Ruleset::built_in(), &subject, &Settings::default(), EvalType::All, identity(), now());
        let first = judge();
        let panicked: Vec<_> =
            first.rule_results.iter().filter(|one| one.message.contains("failed on this input")).collect();
        prop_assert!(panicked.is_empty(), "{panicked:?}");
        let bytes = serde_json::to_vec(&first).unwrap();
        prop_assert_eq!(&bytes, &serde_json::to_vec(&judge()).unwrap());
        let read: Evaluation = serde_json::from_slice(&bytes).unwrap();
        prop_assert_eq!(compose(&read), compose(&first));
        prop_assert_eq!(read.passed, compose(&first).passed);
    }
}
