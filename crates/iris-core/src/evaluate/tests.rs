mod composing;
mod inline;
mod published;
mod riskiness;
mod settings;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::model::{EvalType, Evaluation, RuleResult, Tenant, Timestamp, VerdictState};

fn now() -> Timestamp {
    Timestamp::parse("2026-12-01T10:00:00Z").unwrap()
}

fn identity() -> Identity {
    Identity {
        id: "00000000-0000-4000-8000-000000000000".to_owned(),
        tenant: Tenant::local(),
        trace_id: None,
        trace_version: None,
        seen_through: 0,
        position: None,
        inline: false,
    }
}

/// The rules with nothing measured of them.
fn unmeasured() -> Ruleset {
    Ruleset::built_in().with_accuracy(Accuracy::default())
}

fn judge(subject: &Subject<'_>) -> Evaluation {
    evaluate(&unmeasured(), subject, &Settings::default(), EvalType::All, identity(), now())
}

fn result<'a>(evaluation: &'a Evaluation, rule: &str) -> &'a RuleResult {
    evaluation.rule_results.iter().find(|result| result.rule_name == rule).unwrap()
}

/// Counts published for the reference's rules: numbers to compute with, not ours.
fn measured() -> Accuracy {
    let matrix = |tp, fp, missed, tn| Matrix { tp, fp, missed, tn };
    let version =
        |rule: &str| crate::rules::RULES.iter().map(|one| one.meta()).find(|one| one.name == rule).unwrap().version;
    let own =
        |rule: &str, counts| (rule.to_owned(), Measured { own: Some((version(rule), counts)), independent: None });
    Accuracy {
        corpus_version: Some("c0ffee".to_owned()),
        rules: BTreeMap::from([
            own("no_pii", matrix(34, 5, 11, 43)),
            own("no_silent_tool_failure", matrix(17, 0, 8, 28)),
        ]),
    }
}

#[test]
fn an_output_that_was_read_is_never_missing_because_there_are_too_many_steps() {
    let step = crate::model::ToolCall { tool_name: "t".to_owned(), ..Default::default() };
    let steps = vec![step; crate::rules::STEPS_MAX + 1];
    let subject = Subject { output: Some("It is done."), tool_calls: Some(&steps), ..Subject::default() };
    let evaluation = judge(&subject);
    assert!(!result(&evaluation, "non_empty_output").skipped && !result(&evaluation, "no_pii").skipped);
    let skipped = result(&evaluation, "no_silent_tool_failure");
    assert_eq!(skipped.skip_class.as_deref(), Some("defeated"));
    let verdict = compose(&evaluation);
    let says_missing = |basis: Basis| basis == Basis::RequiredEvidenceMissing;
    assert!(!says_missing(verdict.basis) && !verdict.also.iter().any(|layer| says_missing(layer.basis)), "{verdict:?}");
}

#[test]
fn a_leak_vetoes_whatever_the_score_says() {
    let evaluation = judge(&Subject { output: Some("SSN 536-22-8716"), ..Subject::default() });
    let verdict = compose(&evaluation);
    assert_eq!((verdict.state, verdict.basis), (VerdictState::Fail, Basis::DetectorVeto));
    assert_eq!(verdict.by, ["no_pii"]);
    assert_eq!(critical_failures(&evaluation), ["no_pii"]);
    assert!(!evaluation.passed && evaluation.state == VerdictState::Fail);
    let weighed: f64 = evaluation.rule_results.iter().filter(|one| !one.skipped).map(|one| one.weight).sum();
    let earned: f64 = evaluation.rule_results.iter().filter(|one| !one.skipped).map(|one| one.weight * one.score).sum();
    assert!(earned > 0.0 && (evaluation.score - earned / weighed).abs() < 0.0006, "{}", evaluation.score);
    assert_eq!(result(&evaluation, "no_pii").role.as_deref(), Some("veto"));
}

/// One rule looks for two kinds of leak; the estimate names the one that was seen, and both where both were.
#[test]
fn the_estimate_names_the_kind_of_leak_that_was_seen() {
    const MAIL: &str = "Write to hana.lindqvist@quayhaven.io";
    const KEY: &str = "the key is AKIAQ7RWTX3MPL2VD5KE";
    for (output, classes) in [
        (MAIL.to_owned(), &["pii_leak"][..]),
        (KEY.to_owned(), &["credential_leak"]),
        (format!("{MAIL}, {KEY}"), &["credential_leak", "pii_leak"]),
    ] {
        let subject = Subject { output: Some(&output), ..Subject::default() };
        let judged =
            evaluate(&Ruleset::built_in(), &subject, &Settings::default(), EvalType::Safety, identity(), now());
        let verdict = compose(&judged);
        let also: Vec<&Deciding> = verdict.also.iter().filter(|layer| layer.basis == Basis::RiskOverLoss).collect();
        assert_eq!(also.len(), 1, "{output}: {verdict:?}");
        assert_eq!(also[0].by, classes, "{output}");
    }
}

#[test]
fn a_blank_answer_gates_and_an_absent_one_is_not_judged() {
    let blank = judge(&Subject { output: Some(" \u{200B}"), ..Subject::default() });
    assert_eq!(compose(&blank).basis, Basis::PolicyGate);
    let absent = judge(&Subject::default());
    assert_eq!(compose(&absent).basis, Basis::NoRules);
    assert_eq!((absent.passed, absent.score), (false, 0.0));
    assert_eq!(critical_skipped(&absent), ["no_pii", "no_blocklist_words", "no_injection_patterns"]);
}

#[test]
fn results_carry_a_receipt() {
    let evaluation = judge(&Subject { output: Some("Port Amsel."), input: Some("Capital?"), ..Subject::default() });
    let pii = result(&evaluation, "no_pii");
    assert_eq!(pii.saw, ["output", "input"]);
    assert_eq!(pii.uncertainty.as_ref().unwrap()["basis"], "unmeasured");
    assert_eq!((&*pii.state, pii.critical, &*pii.critical_source), ("pass", true, "default"));
    let silent = result(&evaluation, "no_silent_tool_failure");
    assert_eq!((silent.skip_class.as_deref(), silent.role.as_deref()), (Some("not_applicable"), None));
    assert!(silent.uncertainty.is_none() && !silent.passed);
    assert_eq!(evaluation.inputs["output"], true);
    assert_eq!(evaluation.inputs["tool_calls"], false);
    assert_eq!(evaluation.inputs.len(), Need::ALL.len());
}

#[test]
fn measured_rules_carry_their_counts_and_a_risk() {
    let ruleset = Ruleset::built_in().with_accuracy(measured());
    let subject = Subject { output: Some("Port Amsel."), ..Subject::default() };
    let evaluation = evaluate(&ruleset, &subject, &Settings::default(), EvalType::All, identity(), now());
    let verdict = compose(&evaluation);
    let risk = verdict.risk.unwrap();
    assert_eq!((verdict.basis, verdict.confidence), (Basis::Clean, Some(Confidence::Marginal)));
    assert!(risk.lo <= risk.p_bad && risk.p_bad <= risk.hi);
    assert_eq!(risk.per_class["tool_loop"], None);
    assert_eq!(result(&evaluation, "no_pii").uncertainty.as_ref().unwrap()["corpus"]["fn"], 11);
    assert_eq!(evaluation.provenance["corpusVersion"], "c0ffee");
    let shown = roster(&ruleset, &Settings::default());
    let proof = shown.iter().find(|rule| rule.name == "no_pii").unwrap().proof.clone().unwrap();
    assert_eq!((&proof["counts"]["n"], &proof["source"]), (&json!(93), &json!("own")));
}

#[test]
fn the_roster_shows_what_is_in_force() {
    let settings = Settings {
        critical_rules: vec!["non_empty_output".to_owned()],
        non_critical_rules: vec!["no_pii".to_owned()],
        ..Settings::default()
    };
    let roster = roster(&unmeasured(), &settings);
    let shown: Vec<_> =
        roster.iter().map(|rule| (rule.name.as_str(), rule.critical, rule.critical_source.as_str())).collect();
    for told in [
        ("non_empty_output", true, "config"),
        ("no_pii", false, "config"),
        ("no_silent_tool_failure", false, "default"),
    ] {
        assert!(shown.contains(&told), "{told:?}");
    }
    let names: Vec<_> = crate::rules::RULES.iter().map(|rule| rule.meta().name.as_ref()).collect();
    assert_eq!(shown.iter().map(|(name, ..)| *name).collect::<Vec<_>>(), names);
    assert!(roster.iter().all(|rule| rule.proof.is_none()));
}

#[test]
fn a_bundle_runs_its_own_rules_only() {
    let subject = Subject { output: Some("SSN 536-22-8716"), ..Subject::default() };
    let evaluation =
        evaluate(&Ruleset::built_in(), &subject, &Settings::default(), EvalType::Completeness, identity(), now());
    assert!(evaluation.rule_results.iter().any(|result| result.rule_name == "non_empty_output"));
    assert!(evaluation.rule_results.iter().all(|result| result.category == "completeness"));
}

#[test]
fn questions_and_bundles_are_accounted_for() {
    let evaluation = judge(&Subject { output: Some("SSN 536-22-8716"), ..Subject::default() });
    let coverage = coverage(&evaluation);
    let status: Vec<_> = coverage.questions.iter().map(|one| (one.id.as_str(), one.status.as_str())).collect();
    assert_eq!(status[0], ("safe_output", "judged"));
    assert_eq!(status[2], ("complete", "judged"));
    assert_eq!(status[1], ("grounded", "judged"));
    let tools = coverage.questions.iter().find(|one| one.id == "tool_use_correct").unwrap();
    assert!(
        tools.why.as_deref().is_some_and(|why| why.starts_with("not supplied: tool_calls not supplied")),
        "{tools:?}"
    );
    let categories = categories(&evaluation);
    assert_eq!((categories["completeness"].passed, categories["safety"].passed), (Some(true), Some(false)));
    assert!(!categories.contains_key("custom"));
    let empty = super::categories(&judge(&Subject::default()));
    assert_eq!((empty["safety"].passed, empty["safety"].score), (None, None));
}

#[test]
fn time_that_runs_out_is_said_and_never_passed() {
    let subject = Subject { output: Some("Port Amsel."), ..Subject::default() };
    let evaluation = evaluate_within(
        &Ruleset::built_in(),
        &subject,
        &Settings::default(),
        EvalType::All,
        identity(),
        now(),
        &|| true,
    );
    assert_eq!(compose(&evaluation).basis, Basis::CriticalUnknown);
}

#[test]
fn provenance_names_what_decided() {
    let evaluation = judge(&Subject { output: Some("x"), ..Subject::default() });
    let provenance = Provenance::read(&evaluation).unwrap();
    assert_eq!(provenance.ruleset_hash.len(), 16);
    assert_eq!(provenance.composer.prior_classes, 5);
    assert_eq!(evaluation.provenance["judgedAt"], "2026-12-01T10:00:00.000Z");
    assert_eq!(evaluation.provenance["corpusVersion"], Value::Null);
    let stricter = Settings { prior: 0.4, ..Settings::default() };
    let other = evaluate(
        &Ruleset::built_in(),
        &Subject { output: Some("x"), ..Subject::default() },
        &stricter,
        EvalType::All,
        identity(),
        now(),
    );
    assert_ne!(other.provenance["configHash"], evaluation.provenance["configHash"]);
    assert_eq!(other.provenance["rulesetHash"], evaluation.provenance["rulesetHash"]);
}

#[test]
fn a_row_whose_settings_cannot_be_read_is_unknown() {
    let mut evaluation = judge(&Subject { output: Some("x"), ..Subject::default() });
    evaluation.provenance = json!(null);
    assert_eq!(compose(&evaluation).basis, Basis::NoRules);
}
