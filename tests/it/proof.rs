//! `proof`: the built binary measures its rules anywhere, with nothing beside it.

use std::process::Command;

use serde_json::Value;

fn proof(arguments: &[&str]) -> (Option<i32>, String, String) {
    let anywhere = tempfile::tempdir().unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_iris-sidecar"))
        .arg("proof")
        .args(arguments)
        .env_clear()
        .current_dir(anywhere.path())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

/// Guarantees: own cases are run, the recorded run over others' sets is shown beside them and never in them, and no text
/// of a case is in what is printed.
#[test]
fn rules_are_measured_anywhere_and_the_two_sources_kept_apart() {
    let (code, printed, said) = proof(&["--format", "json"]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let document: Value = serde_json::from_str(&printed).unwrap();
    let own = &document["own"]["rules"]["no_pii"];
    let independent = &document["independent"]["rules"]["no_pii"];
    for measured in [own, independent] {
        for name in ["precision", "recall", "f1"] {
            assert!(measured[name].as_f64().is_some_and(|share| (0.0..=1.0).contains(&share)), "{name}: {measured}");
        }
        assert_eq!(measured["ppvAt"].as_object().unwrap().keys().collect::<Vec<_>>(), ["0.01", "0.05", "0.20", "0.50"]);
    }
    assert_ne!(own["counts"]["n"], independent["counts"]["n"]);
    let in_force = document["inForce"].as_object().unwrap();
    assert!(in_force.values().any(|counts| counts["source"] == "independent"), "{in_force:?}");
    assert_eq!(document["inForce"]["max_steps"]["source"], "conformance");
    assert!(!printed.contains("mara.lind@quayhaven.io"), "a case is printed");

    let (code, table, _) = proof(&[]);
    assert_eq!(code, Some(0));
    assert!(table.contains("labelled by others, recorded 20") && table.contains("no_silent_tool_failure"), "{table}");
}

/// Guarantees: a folder of one's own is measured; what cannot be read is named, with the exit code for it.
#[test]
fn a_folder_is_measured_and_a_broken_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    assert_eq!(proof(&["--data", path]).0, Some(2));
    let row = r#"{"text": "Write to mara.lind@quayhaven.io.", "labels": {"measures": {"pii_structured": true}}}"#;
    std::fs::write(folder.path().join("mine.jsonl"), row).unwrap();
    let (code, printed, _) = proof(&["--data", path, "--format", "record"]);
    let record: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((code, &record["independent"]["sets"][0]["counts"]["tp"]), (Some(0), &Value::from(1)));
    assert_eq!(record["independent"]["files"][0]["sha256"].as_str().unwrap().len(), 64);
    std::fs::write(folder.path().join("mine.jsonl"), "nonsense").unwrap();
    let (code, _, said) = proof(&["--data", path]);
    assert!(code == Some(2) && said.contains("mine.jsonl: line 1"), "{said}");
}
