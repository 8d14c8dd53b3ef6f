use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use rustix::process::{DumpableBehavior, Resource, dumpable_behavior, getrlimit};

use super::*;
use crate::config::Sources;
use crate::ops::{Family, Kind};

#[test]
fn memory_is_not_dumped() {
    harden();
    assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    assert_eq!(getrlimit(Resource::Core).maximum, Some(0));
}

const INTRODUCTION: &str = "# Metrics

<!-- Written by `IRIS_BLESS=1 cargo test --workspace metrics_are_documented` from a running sidecar. -->

`GET /metrics` of the ops door (`http://127.0.0.1:13133/metrics`) answers in the OpenMetrics text format. Counters count from the start of the process. None
of them names an agent, a model or anything that was sent: labels come from closed lists, and `rule` from the rules in force, of which 256 are told apart.
[alerts.yaml](../deploy/prometheus/alerts.yaml) and [dashboard.json](../deploy/grafana/dashboard.json) are made for Prometheus and Grafana. `/readyz?full` says the same in words and more.

`iris_forward_*` and `iris_verdicts_sent_total`, `iris_verdicts_lost_total` are there when `forward.endpoint` is set, `iris_export_*` when `export.endpoint` is;
what tells of the database, of traces and of verdicts when the database is open.
";

/// One row a metric, by its prefix.
fn page(families: &[Family]) -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut values: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    page.push_str("\n## All of them\n\n| metric | type | labels | |\n|---|---|---|---|\n");
    for family in families {
        let (ending, kind) = match family.kind {
            Kind::Counter => ("_total", "counter"),
            Kind::Gauge => ("", "gauge"),
        };
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let _ = writeln!(page, "| `{}{ending}` | {kind} | {} | {} |", family.name, labels.join(", "), family.help);
        for label in family.labels {
            values.entry(label).or_default();
        }
        for (label, value) in family.samples.iter().flat_map(|sample| &sample.labels) {
            values.entry(label).or_default().insert(format!("`{value}`"));
        }
    }
    page.push_str("\n## Labels\n\n| label | values |\n|---|---|\n");
    for (label, values) in values {
        let known: Vec<String> = values.into_iter().collect();
        let meaning = match label {
            "state" => "`pass`, `fail`, `unknown`".to_owned(),
            "rule" => "names of [built-in](rules.md) and deployed rules; `other` beyond 256".to_owned(),
            "dialect" => "names of [dialects](dialects.md)".to_owned(),
            "outcome" => "`ok`, or why it failed".to_owned(),
            _ => known.join(", "),
        };
        assert!(!meaning.is_empty(), "the label {label} has no values and no meaning");
        let _ = writeln!(page, "| `{label}` | {meaning} |");
    }
    page
}

/// Guarantees: the page has every metric of a sidecar on which everything is turned on.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_documented() {
    let folder = tempfile::tempdir().unwrap();
    let doors = ["receive.grpc.listen", "receive.http.listen", "web.listen", "ops.listen"];
    let doors = doors.map(|door| (door.to_owned(), "127.0.0.1:0".to_owned()));
    // Nobody listens there.
    let targets =
        ["forward.endpoint", "export.endpoint"].map(|target| (target.to_owned(), "http://127.0.0.1:9".to_owned()));
    let flags = doors.into_iter().chain(targets).collect();
    let config = Config::load(&Sources { flags, ..Sources::default() }).unwrap().config;
    let sidecar = Sidecar::start(config, &folder.path().join("home")).await.unwrap();
    assert!(sidecar.opened(Duration::from_secs(60)).await);
    let text = page(&sidecar.ops.families());
    sidecar.drain().await;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/metrics.md");
    if std::env::var_os("IRIS_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let command = "IRIS_BLESS=1 cargo test --workspace metrics_are_documented";
    assert!(written == text, "{} is stale: {command}", path.display());
}
