//! The vectors were computed by hand from the counts that the reference published; the counts are input here.

use proptest::prelude::*;

use super::*;
use crate::model::Name;
use crate::rules::FailureClass;

const COUNTS: [(&str, [u32; 4], &[&str]); 6] = [
    ("no_pii", [34, 5, 11, 43], &["pii_leak", "credential_leak"]),
    ("no_injection_patterns", [41, 0, 1, 48], &["injection"]),
    ("no_stub_output", [30, 5, 12, 42], &["stub"]),
    ("no_hallucination_markers", [34, 0, 12, 44], &["fabrication"]),
    ("no_silent_tool_failure", [17, 0, 8, 28], &["silent_tool_failure"]),
    ("no_tool_loop", [19, 0, 0, 23], &["tool_loop"]),
];

fn estimate(rules: usize, fired: &str, classes: u32) -> Risk {
    let named: Vec<Vec<Name>> =
        COUNTS.iter().map(|(_, _, classes)| classes.iter().map(|class| (*class).into()).collect()).collect();
    let examined: Vec<Examined<'_>> = COUNTS
        .iter()
        .zip(&named)
        .take(rules)
        .map(|((rule, [tp, fp, missed, tn], _), classes)| Examined {
            rule,
            classes,
            fired: *rule == fired,
            matrix: Matrix { tp: *tp, fp: *fp, missed: *missed, tn: *tn },
        })
        .collect();
    risk(&examined, Prior { share: 0.5, classes }).unwrap()
}

#[test]
fn agrees_with_the_vectors() {
    // The share is spread over a constant number of classes; with that number equal to the classes examined the
    // estimate is the reference's own.
    for (rules, classes, fired, want) in [
        (4, 5, "", 0.1598),
        (4, 5, "no_pii", 0.7705),
        (4, 5, "no_injection_patterns", 0.9439),
        (4, 5, "no_stub_output", 0.5412),
        (4, 5, "no_hallucination_markers", 0.9193),
        (4, 1, "", 0.6511),
        (6, 7, "", 0.1473),
        (6, 7, "no_pii", 0.6857),
        (6, 7, "no_injection_patterns", 0.9211),
        (6, 7, "no_stub_output", 0.4637),
        (6, 7, "no_hallucination_markers", 0.8887),
        (6, 7, "no_silent_tool_failure", 0.8258),
        (6, 7, "no_tool_loop", 0.8544),
        (6, 1, "", 0.7447),
    ] {
        let got = estimate(rules, fired, classes).p_bad;
        assert!((got - want).abs() < 0.000_15, "{rules} rules, {classes} classes, {fired:?}: {got}, want {want}");
    }
}

#[test]
fn examining_more_never_lowers_the_risk() {
    for fired in ["", "no_pii", "no_stub_output"] {
        let risks: Vec<f64> = (3..=6).map(|rules| estimate(rules, fired, 5).p_bad).collect();
        assert!(risks.windows(2).all(|pair| pair[0] <= pair[1]), "{fired}: {risks:?}");
    }
}

#[test]
fn the_interval_holds_the_point_and_is_the_same_every_time() {
    let quiet = estimate(6, "", 5);
    assert_eq!(quiet, estimate(6, "", 5));
    assert!(quiet.lo < quiet.p_bad && quiet.p_bad < quiet.hi);
    assert!(quiet.hi - quiet.lo < 0.2, "{quiet:?}");
}

#[test]
fn no_corpus_makes_a_rule_certain() {
    let perfect = Matrix { tp: 50, fp: 0, missed: 0, tn: 50 };
    assert!(perfect.predictive_value(0.01) < 1.0 && perfect.miss_rate(0.5) > 0.0);
    assert!(risk(&[], Prior { share: 0.5, classes: 5 }).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::thorough::cases(40)))]
    /// Whatever the rules are worth and say: one more that was looked at with the same results of the others never makes
    /// it less likely that something is wrong.
    #[test]
    fn one_more_class_examined_never_lowers_the_risk(
        counts in proptest::collection::vec((0_u32..300, 0_u32..300, 0_u32..300, 0_u32..300, any::<bool>()), 1..9),
        share in 0.01_f64..0.99,
        classes in 1_u32..20,
    ) {
        let named: Vec<Vec<Name>> = (0..counts.len()).map(|at| vec![FailureClass::ALL[at].as_str().into()]).collect();
        let examined: Vec<Examined<'_>> = counts
            .iter()
            .zip(&named)
            .map(|((tp, fp, missed, tn, fired), classes)| Examined {
                rule: &classes[0],
                classes,
                fired: *fired,
                matrix: Matrix { tp: *tp, fp: *fp, missed: *missed, tn: *tn },
            })
            .collect();
        let prior = Prior { share, classes };
        let all = risk(&examined, prior).unwrap();
        prop_assert!((0.0..=1.0).contains(&all.p_bad) && all.lo <= all.p_bad && all.p_bad <= all.hi);
        for fewer in 1..examined.len() {
            let less = super::super::risk::p_bad(&examined[..fewer], prior).unwrap();
            prop_assert!(less <= all.p_bad, "{} rules: {}, all: {}", fewer, less, all.p_bad);
        }
    }
}
