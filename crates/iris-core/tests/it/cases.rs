//! The rules on the cases of `tests/cases/rule`: each comes out right or is listed there as a known miss, and what the
//! repository publishes of them is what comes out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use iris_core::evaluate::Record;
use iris_core::proof::{self, Label, RuleCase};
use iris_core::rules::{Case, Knobs, Need, Outcome, RULES, Rule, SkipClass, Subject, run};

/// Cases that a file holds at least, those of them that have a twin, and those that were written without having seen how
/// the rule works: a third of the least.
const CASES_MIN: usize = 60;
const TWINS_MIN: usize = 20;
const BLIND_MIN: usize = CASES_MIN / 3;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn rules() -> impl Iterator<Item = (&'static dyn Rule, &'static str, Vec<RuleCase>)> {
    RULES.iter().map(|rule| {
        let name: &'static str = &rule.meta().name;
        let cases = proof::cases(name)
            .unwrap_or_else(|| panic!("{name}: no line in FILES of crates/iris-core/src/proof/cases.rs"));
        (*rule, name, cases.unwrap_or_else(|why| panic!("{why}")))
    })
}

/// Scenario: `IRIS_RULE=name` looks at the cases of one rule only.
#[test]
fn every_rule_case_comes_out_right() {
    let only = std::env::var("IRIS_RULE").ok();
    let mut broken = String::new();
    for (rule, name, cases) in rules().filter(|(_, name, _)| only.as_ref().is_none_or(|only| only == name)) {
        for case in cases {
            let wrong = case.wrong(&case.judge(rule));
            let _ = match (&case.known_miss, wrong) {
                (None, Some(wrong)) => writeln!(broken, "{name}/{} ({}): {wrong}", case.id, case.note),
                (Some(_), None) => writeln!(broken, "{name}/{}: is right now; it is no known miss any more", case.id),
                _ => Ok(()),
            };
        }
    }
    assert!(broken.is_empty(), "{broken}");
}

#[test]
fn every_file_is_that_of_a_rule_and_is_part_of_the_program() {
    let folder = std::fs::read_dir(root().join("tests/cases/rule")).unwrap();
    let found: BTreeSet<String> = folder
        .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".jsonl")?.to_owned()))
        .collect();
    let listed: BTreeSet<String> = proof::files().map(str::to_owned).collect();
    let rules: BTreeSet<String> = RULES.iter().map(|rule| rule.meta().name.to_string()).collect();
    assert_eq!(
        (&found, &listed),
        (&rules, &rules),
        "one file in tests/cases/rule and one line in FILES of proof/cases.rs a rule"
    );
}

#[test]
fn the_cases_are_many_and_come_in_pairs() {
    let mut few = String::new();
    for (_, name, cases) in rules() {
        let by_id: BTreeMap<&str, &RuleCase> = cases.iter().map(|case| (case.id.as_str(), case)).collect();
        assert_eq!(by_id.len(), cases.len(), "{name}: two cases have one id");
        let count = |wanted: fn(&&RuleCase) -> bool| cases.iter().filter(wanted).count();
        for (what, got, least) in [
            ("cases", cases.len(), CASES_MIN),
            ("have a twin", count(|case| case.twin.is_some()), TWINS_MIN),
            ("were written blind", count(|case| case.blind), BLIND_MIN),
            ("should fail", count(|case| case.label == Label::Fail), TWINS_MIN),
            ("should pass", count(|case| case.label == Label::Pass), TWINS_MIN),
        ] {
            if got < least {
                let _ = writeln!(few, "{name}: {got} {what}, at least {least}");
            }
        }
        for case in cases.iter().filter(|case| case.twin.is_some()) {
            let twin = case.twin.as_deref().and_then(|twin| by_id.get(twin));
            let twin = twin.unwrap_or_else(|| panic!("{name}/{}: its twin is no case", case.id));
            assert_ne!(twin.label, case.label, "{name}/{}: a twin has the other label", case.id);
        }
    }
    assert!(few.is_empty(), "{few}");
}

/// What is committed of the own cases is what they say now. `IRIS_BLESS=1` writes it.
#[test]
fn the_published_counts_are_those_of_today() {
    let mut record = Record::published();
    let own = proof::own().unwrap_or_else(|why| panic!("{why}"));
    if record.own != own && std::env::var_os("IRIS_BLESS").is_some() {
        record.own = own.clone();
        let path = root().join("crates/iris-core/src/evaluate/accuracy.json");
        std::fs::write(path, serde_json::to_string_pretty(&record).unwrap() + "\n").unwrap();
    }
    assert_eq!(record.own, own, "IRIS_BLESS=1 cargo test -p iris-core counts writes accuracy.json; read what changed");
}

#[test]
fn what_is_published_is_counts_names_and_hashes() {
    let record = Record::published();
    // That every rule is in it, `the_published_counts_are_those_of_today` says.
    assert!(!record.own.is_empty() && !record.independent.sets.is_empty(), "accuracy.json does not read");
    for file in &record.independent.files {
        assert!(file.sha256.len() == 64 && file.sha256.bytes().all(|byte| byte.is_ascii_hexdigit()), "{}", file.name);
        assert!(file.rows > 0, "{}", file.name);
    }
    let day: Vec<&str> = record.independent.recorded.split('-').collect();
    assert_eq!(day.iter().map(|part| part.len()).collect::<Vec<_>>(), [4, 2, 2], "{}", record.independent.recorded);
    for set in &record.independent.sets {
        assert!(proof::MEASURES.iter().any(|measure| measure.name == set.measure), "{}", set.measure);
        assert!(record.independent.files.iter().any(|file| file.name == set.file), "{}", set.file);
        assert!(set.rule.is_none() || RULES.iter().any(|rule| set.rule.as_deref() == Some(&rule.meta().name)));
    }
}

/// F1 that a published implementation states for rules of these names, on cases of its own.
const PUBLISHED_F1: &[(&str, f64)] = &[
    ("min_output_length", 1.0),
    ("non_empty_output", 0.923),
    ("sentence_count", 1.0),
    ("expected_coverage", 1.0),
    ("valid_tool_arguments", 1.0),
    ("ask_coverage", 0.786),
    ("tool_sequence", 1.0),
    ("keyword_overlap", 1.0),
    ("topic_consistency", 0.957),
    ("tool_choice", 0.947),
    ("answers_the_ask", 0.930),
    ("no_pii", 0.898),
    ("no_blocklist_words", 0.968),
    ("no_injection_patterns", 0.978),
    ("no_stub_output", 0.790),
    ("no_hallucination_markers", 0.850),
    ("no_silent_tool_failure", 0.866),
    ("grounded_in_reads", 1.0),
    ("no_injection_compliance", 0.783),
    ("cost_under_threshold", 1.0),
    ("verbosity_ratio", 1.0),
    ("no_tool_loop", 1.0),
    ("max_steps", 1.0),
    ("cost_anomaly", 1.0),
    ("step_budget", 1.0),
];

/// Rules below that figure on their own cases, and how far: each has a known miss that the other's cases do not hold.
const BELOW: &[(&str, f64)] = &[("grounded_in_reads", 0.98), ("no_tool_loop", 0.98)];

#[test]
fn every_rule_is_at_or_above_the_published_figures_on_its_own_cases() {
    let own = proof::own().unwrap_or_else(|why| panic!("{why}"));
    let mut below = String::new();
    for (rule, published) in PUBLISHED_F1 {
        let least = BELOW.iter().find(|(name, _)| name == rule).map_or(*published, |(_, least)| *least);
        let got = own[*rule].counts.f1().unwrap();
        if got < least {
            let _ = writeln!(below, "{rule}: F1 {got:.3}, at least {least}");
        }
        assert!(got < *published || !BELOW.iter().any(|(name, _)| name == rule), "{rule} is no exception any more");
    }
    assert!(below.is_empty(), "{below}");
}

/// The subject without one kind of input.
fn without<'a>(subject: Subject<'a>, need: Need) -> Subject<'a> {
    let mut less = subject;
    match need {
        Need::Output => less.output = None,
        Need::Input => less.input = None,
        Need::Expected => less.expected = None,
        Need::ToolCalls | Need::ToolOutputs => less.tool_calls = None,
        Need::ToolsCatalogue => less.tools_catalogue = None,
        Need::ExpectedTrajectory => less.expected_trajectory = None,
        Need::Cost => less.cost_usd = None,
        Need::Tokens => less.token_usage = None,
        Need::Citations => {}
    }
    less
}

#[test]
fn taking_an_input_away_makes_the_rule_skip_whatever_the_case() {
    for (rule, name, cases) in rules() {
        let mut taken = 0;
        for case in &cases {
            for need in rule.meta().needs {
                let subject = without(case.subject(), *need);
                let outcome = run(rule, &Case::new(&subject), &Knobs::default());
                let skips = matches!(outcome, Outcome::Skip { class: SkipClass::NotApplicable, .. });
                assert!(skips, "{name}/{} without {}: {outcome:?}", case.id, need.as_str());
                taken += 1;
            }
        }
        assert!(taken >= CASES_MIN, "{name}");
    }
}
