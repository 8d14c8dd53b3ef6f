//! The published accuracy: its statistics against figures computed elsewhere, which counts are reckoned with, and what
//! verdicts come of it.

use super::*;
use crate::model::ToolCall;

fn matrix(tp: u32, fp: u32, missed: u32, tn: u32) -> Matrix {
    Matrix { tp, fp, missed, tn }
}

/// The vectors are what another implementation publishes for these counts.
#[test]
fn statistics_agree_with_published_ones() {
    for (counts, precision, recall, f1, ppv) in [
        (matrix(11, 4, 2, 13), [0.733, 0.480, 0.891], [0.846, 0.578, 0.957], 0.786, [0.032, 0.147, 0.451, 0.767]),
        (matrix(44, 5, 5, 47), [0.898, 0.782, 0.956], [0.898, 0.782, 0.956], 0.898, [0.080, 0.311, 0.682, 0.896]),
        (matrix(29, 0, 9, 36), [1.000, 0.883, 1.000], [0.763, 0.608, 0.870], 0.866, [0.361, 0.747, 0.933, 0.982]),
    ] {
        let stats = counts.stats();
        let near = |got: &Value, want: f64| {
            let got = got.as_f64().unwrap();
            assert!((got - want).abs() < 0.000_51, "{counts:?}: {got} is not {want}");
        };
        for (name, want) in [("precision", precision), ("recall", recall)] {
            near(&stats[name], want[0]);
            near(&stats["intervals"][name][0], want[1]);
            near(&stats["intervals"][name][1], want[2]);
        }
        near(&stats["f1"], f1);
        for (prevalence, want) in ["0.01", "0.05", "0.20", "0.50"].into_iter().zip(ppv) {
            near(&stats["ppvAt"][prevalence], want);
        }
    }
    let nothing = matrix(0, 0, 0, 0).stats();
    assert_eq!([&nothing["precision"], &nothing["intervals"]["recall"], &nothing["f1"]], [&Value::Null; 3]);
}

#[test]
fn counts_of_others_go_before_a_rules_own_and_versions_are_not_mixed() {
    let (own, independent) = (matrix(30, 0, 0, 30), matrix(7, 2, 5, 90));
    let rules = BTreeMap::from([
        ("both".to_owned(), Measured { own: Some((2, own)), independent: Some((2, independent)) }),
        ("old".to_owned(), Measured { own: Some((2, own)), independent: Some((1, independent)) }),
    ]);
    let accuracy = Accuracy { corpus_version: None, rules };
    assert_eq!(accuracy.of("both", 2), Some((Source::Independent, independent)));
    assert_eq!(accuracy.of("old", 2), Some((Source::Own, own)));
    assert_eq!((accuracy.of("both", 3), accuracy.of("neither", 1)), (None, None));

    let set = |file: &str, version, apart: Option<&str>| SetCounts {
        file: file.to_owned(),
        measure: "loop".to_owned(),
        rule: Some("no_tool_loop".to_owned()),
        version,
        apart: apart.map(str::to_owned),
        counts: independent,
        skipped: 0,
    };
    let sets = vec![set("a", 1, None), set("b", 2, None), set("c", 2, None), set("d", 2, Some("not people's"))];
    let record = Record { independent: Run { sets, ..Run::default() }, ..Record::default() };
    let measured = record.accuracy().rules["no_tool_loop"];
    assert_eq!(measured.independent, Some((2, independent.and(independent))));
    assert_ne!(record.version(), Record::default().version());
}

#[test]
fn the_roster_shows_where_its_counts_come_from() {
    let shown = roster(&Ruleset::built_in(), &Settings::default());
    let proof = |name: &str| shown.iter().find(|rule| rule.name == name).unwrap().proof.clone();
    // A number held against a number: there is nothing to publish but that it is.
    for name in ["min_output_length", "max_steps", "cost_under_threshold"] {
        assert_eq!(proof(name), None, "{name}");
    }
    let accuracy = Record::published().accuracy();
    let mut by_others = 0;
    for rule in &shown {
        if accuracy.of(&rule.name, rule.version).is_none() {
            // A new rule or version: `the_published_counts_are_those_of_today` says how its counts are written.
            continue;
        }
        assert_eq!(
            rule.proof.is_none(),
            matches!(rule.kind.as_str(), "measurement" | "policy")
                && rule.mechanism == "formula"
                && rule.name != "answers_the_ask",
            "{}",
            rule.name
        );
        let Some(proof) = &rule.proof else { continue };
        // Counts of others stand first as long as they are of this very version, with the rule's own beside them.
        let measured = accuracy.rules.get(&rule.name).and_then(|measured| measured.independent);
        let is_by_others = measured.is_some_and(|(version, _)| version == rule.version);
        let source = if is_by_others { "independent" } else { "own" };
        assert_eq!((&proof["source"], proof["own"].is_null()), (&json!(source), !is_by_others), "{}", rule.name);
        assert!(proof["counts"]["n"].as_u64() >= Some(40), "{}: {proof}", rule.name);
        by_others += usize::from(is_by_others);
    }
    assert!(by_others > 0, "no rule is measured by others in its present version");
}

/// Rules that find little leave the share they start from almost as it was; together they must not fail what is clean.
#[test]
fn quiet_rules_pass_at_the_shipped_settings_whatever_was_examined() {
    let catalogue = json!([{"name": "get_ferry", "description": "Ferry times", "inputSchema": {"type": "object"}}]);
    let calls = [ToolCall {
        tool_name: "get_ferry".to_owned(),
        input: Some(json!({})),
        output: Some(json!("22:15")),
        ..ToolCall::default()
    }];
    let output = "The last ferry to Lindoria leaves Port Amsel at 22:15. Ferry tickets to Lindoria cost twelve crowns.";
    let alone = Subject { output: Some(output), ..Subject::default() };
    let asked = Subject { input: Some("When does the last ferry to Lindoria leave Port Amsel?"), ..alone };
    let acted = Subject { tool_calls: Some(&calls), tools_catalogue: Some(&catalogue), ..asked };
    let mut before = 0.0;
    for subject in [alone, asked, acted] {
        let evaluation =
            evaluate(&Ruleset::built_in(), &subject, &Settings::default(), EvalType::All, identity(), now());
        let verdict = compose(&evaluation);
        assert_eq!((verdict.basis, verdict.passed), (Basis::Clean, true), "{verdict:?}");
        let risk = verdict.risk.unwrap();
        assert!(risk.p_bad < 0.35 && before <= risk.p_bad, "{risk:?}");
        before = risk.p_bad;
    }
}

/// The verdict that is stored and the one that is shown differ in the risk alone.
#[test]
fn what_is_stored_is_what_is_shown() {
    for output in ["Port Amsel.", "SSN 536-22-8716", "", "Let me look into that and get back to you."] {
        let subject =
            Subject { output: Some(output), input: Some("What is the capital of Lindoria?"), ..Subject::default() };
        let evaluation =
            evaluate(&Ruleset::built_in(), &subject, &Settings::default(), EvalType::All, identity(), now());
        let (decided, composed) = (decide(&evaluation), compose(&evaluation));
        assert_eq!(decided, Verdict { risk: None, ..composed.clone() });
        assert_eq!(composed.risk.is_some(), composed.confidence.is_some());
        assert_eq!((evaluation.state, evaluation.passed), (composed.state, composed.passed));
    }
}
