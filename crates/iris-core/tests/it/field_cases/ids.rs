//! Which cases of the list there are, and that each has a test that bears its id.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The ids that tests in Rust bear; what only a deployment shows is in `tests/charts`.
const IDS: &[&str] = &[
    "G1-01", "G1-02", "G1-04", "G1-05", "G1-06", "G1-07", "G1-09", "G1-10", "G1-11", "G2-01", "G2-02", "G2-03",
    "G2-05", "G2-06", "G2-08", "G2-09", "G2-10", "G2-11", "G2-12", "G3-01", "G3-03", "G3-04", "G3-06", "G3-07",
    "G3-08", "G3-09", "G3-11", "G3-12", "G4-01", "G4-02", "G4-03", "G4-04", "G4-05", "G4-07", "G4-08", "G4-20",
    "G4-21", "G4-22", "G4-23", "G4-25", "G4-26", "G4-28", "G4-29", "G4-30", "G4-32", "G4-33", "G4-35", "G4-36",
    "G4-37", "G4-40", "G4-41", "G6-01", "G6-02", "G6-03", "G6-04", "G6-06", "G6-07", "G7-01", "G7-02", "G7-03",
    "G7-04", "G7-05", "G7-07", "G8-01", "G8-02", "G8-04", "G8-05", "G8-07", "G8-08", "G8-09", "G8-11", "G9-03",
    "G9-04", "G9-05", "G9-07",
];

/// Ids that the tests of a source file bear: `fn g4_01_...`.
fn borne(text: &str, into: &mut BTreeSet<String>) {
    for rest in text.split("fn g").skip(1) {
        let mut parts = rest.splitn(3, '_');
        let (Some(group), Some(number)) = (parts.next(), parts.next()) else { continue };
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if group.len() == 1 && number.len() == 2 && digits(group) && digits(number) {
            into.insert(format!("G{group}-{number}"));
        }
    }
}

#[test]
fn every_case_has_a_test_that_bears_its_id() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders: Vec<_> = ["src", "tests/it", "crates/iris-core"].iter().map(|folder| root.join(folder)).collect();
    let mut found = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                borne(&fs::read_to_string(path).unwrap(), &mut found);
            }
        }
    }
    let listed: BTreeSet<String> = IDS.iter().map(|id| (*id).to_owned()).collect();
    let untested: Vec<_> = listed.difference(&found).collect();
    assert!(untested.is_empty(), "no test bears {untested:?}");
    let unlisted: Vec<_> = found.difference(&listed).filter(|id| !id.starts_with("G5")).collect();
    assert!(unlisted.is_empty(), "{unlisted:?} are no ids of the list");
}
