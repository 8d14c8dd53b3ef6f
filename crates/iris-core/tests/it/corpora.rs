//! Measuring the rules on labelled texts that are not part of this repository, with what came out wrong. By hand only;
//! `iris-sidecar proof --data FOLDER` measures the same without it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use iris_core::evaluate::Ruleset;
use iris_core::proof::Labelled;
use serde_json::Value;

/// The lines of a file, packed or not.
fn rows(path: &Path) -> Vec<Value> {
    let bytes = if path.extension().is_some_and(|ending| ending == "gz") {
        Command::new("gzip").arg("-dc").arg(path).output().expect("gzip unpacks").stdout
    } else {
        std::fs::read(path).unwrap()
    };
    String::from_utf8(bytes)
        .unwrap()
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn sets(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut sets: Vec<(String, PathBuf)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| {
            let (name, _) = path.file_name()?.to_str()?.split_once(".jsonl")?;
            Some((name.to_owned(), path.clone()))
        })
        .collect();
    sets.sort();
    sets
}

/// Scenario: `IRIS_CORPORA=folder cargo test -p iris-core -- --ignored rules_on_the_corpora --nocapture` measures every
/// labelled set in it; `IRIS_SET=name` those with the name in theirs; `IRIS_MISSES=file` keeps what came out wrong. Rows
/// with `labels.subset` or `suite` are counted by it; others as one.
#[test]
#[ignore = "needs corpora that are not part of this repository"]
fn rules_on_the_corpora() {
    let folder = PathBuf::from(std::env::var("IRIS_CORPORA").expect("IRIS_CORPORA names the folder"));
    let only = std::env::var("IRIS_SET").unwrap_or_default();
    let mut misses = std::env::var("IRIS_MISSES").ok().map(|path| std::fs::File::create(path).unwrap());
    let mut labelled = Labelled::new(Ruleset::built_in());
    for (name, path) in sets(&folder).into_iter().filter(|(name, _)| name.contains(&only)) {
        for row in rows(&path) {
            let part = row["labels"]["subset"].as_str().or_else(|| row["suite"].as_str());
            let set = part.map_or_else(|| name.clone(), |part| format!("{name} / {part}"));
            let Some((evaluation, said)) = labelled.add(&set, &row) else { continue };
            for (measure, want, got) in said.iter().filter(|(_, want, got)| *got != Some(*want)) {
                let Some(file) = misses.as_mut() else { break };
                let failed: Vec<_> = evaluation
                    .rule_results
                    .iter()
                    .filter(|result| result.state == "fail")
                    .map(|result| (&result.rule_name, &result.message, &result.evidence))
                    .collect();
                let miss = serde_json::json!({"set": name, "measure": measure, "want": want, "got": got, "said": failed, "row": row});
                writeln!(file, "{miss}").unwrap();
            }
        }
    }
    let sets = labelled.sets();
    assert!(!sets.is_empty(), "no labelled rows");
    let mut out = std::io::stderr().lock();
    for set in sets {
        let counts = set.counts;
        writeln!(
            out,
            "{:56} {:24} tp {:4} fp {:4} fn {:4} tn {:4} skip {:4}  P {:.3} R {:.3} FPR {:.3}",
            set.file,
            set.measure,
            counts.tp,
            counts.fp,
            counts.missed,
            counts.tn,
            set.skipped,
            counts.precision().unwrap_or(f64::NAN),
            counts.recall().unwrap_or(f64::NAN),
            f64::from(counts.fp) / f64::from(counts.fp + counts.tn)
        )
        .unwrap();
    }
}
