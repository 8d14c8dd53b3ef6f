//! The published form of what was measured.

use serde_json::{Map, Value, json};

use crate::evaluate::{Matrix, Record, is_conformance};
use crate::rules::RULES;

/// Everything that was measured, with its statistics: what `iris://proof` and `iris-sidecar proof --format json` show.
pub fn document(record: &Record) -> Value {
    let accuracy = record.accuracy();
    let mut own = Map::new();
    let mut independent = Map::new();
    let mut in_force = Map::new();
    for rule in RULES {
        let meta = rule.meta();
        if let Some(counted) = record.own.get(&*meta.name) {
            let mut shown = json!({
                "version": counted.version,
                "conformance": conformance(counted.counts),
                "skips": {"n": counted.skips, "matched": counted.skips - counted.skips_judged.min(counted.skips)},
                "blind": conformance(counted.blind),
            });
            if !is_conformance(meta, &accuracy) {
                merge(&mut shown, counted.counts.stats());
            }
            own.insert(meta.name.to_string(), shown);
        }
        if let Some((version, counts)) = accuracy.rules.get(&*meta.name).and_then(|measured| measured.independent) {
            let mut shown = json!({"version": version});
            merge(&mut shown, counts.stats());
            independent.insert(meta.name.to_string(), shown);
        }
        let source = match accuracy.of(&meta.name, meta.version) {
            None => "none",
            Some(_) if is_conformance(meta, &accuracy) => "conformance",
            Some((source, _)) => source.as_str(),
        };
        in_force.insert(meta.name.to_string(), json!({"version": meta.version, "source": source}));
    }
    let sets: Vec<Value> = record
        .independent
        .sets
        .iter()
        .map(|set| {
            let mut shown = json!({
                "file": set.file, "measure": set.measure, "rule": set.rule, "version": set.version, "apart": set.apart,
                "skipped": set.skipped,
            });
            merge(&mut shown, set.counts.stats());
            shown
        })
        .collect();
    json!({
        "corpusVersion": accuracy.corpus_version,
        "inForce": in_force,
        "own": {"labelling": "by the authors of the rules, who repaired the rules on them", "rules": own},
        "independent": {
            "labelling": "by others",
            "recorded": record.independent.recorded,
            "files": record.independent.files,
            "rules": independent,
            "sets": sets,
        },
    })
}

/// Of how many cases the rule said what it should.
fn conformance(counts: Matrix) -> Value {
    json!({"n": counts.n(), "matched": counts.tp + counts.tn})
}

fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}
