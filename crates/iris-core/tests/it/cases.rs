//! The rules on the cases of `tests/cases/rule`: each comes out right or is listed there as a known miss, and what the
//! repository publishes of them is what comes out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use iris_core::evaluate::Record;
use iris_core::proof::{self, Label, RuleCase};
use iris_core::rules::{RULES, Rule};

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
        let cases = proof::cases(name).unwrap_or_else(|| panic!("{name} has no file in tests/cases/rule"));
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
    assert_eq!((&found, &listed), (&rules, &rules), "files in the folder and in proof/cases.rs; want one a rule");
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
    assert_eq!(record.own, own, "IRIS_BLESS=1 cargo test -p iris-core writes accuracy.json; read what changed");
}

#[test]
fn what_is_published_is_counts_names_and_hashes() {
    let record = Record::published();
    assert!(record.own.len() == RULES.len() && !record.independent.sets.is_empty(), "it does not read");
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
