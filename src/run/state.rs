//! What the ops door tells: the state of every room as JSON, and its counters as metrics.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use iris_core::model::Lane;
use serde_json::{Value, json};

use super::judged;
use super::life::Life;
use crate::door;
use crate::forward::{ForwardStatus, Lanes};
use crate::home;
use crate::ingest::{
    Admission, DoorCounters, LaneCounters, LaneLag, PipelineStatus, ReceiveCounters, RequestCounters, Verdicts,
};
use crate::journal::{Journal, LaneStatus};
use crate::ops::{Family, Kind, Ops, Sample};
use crate::rulebook::FileStatus;
use crate::serve;
use crate::store;
use crate::tools::{App, Backend};

/// Reads one counter of a signal at a door.
type Read = fn(&LaneCounters) -> &AtomicU64;

/// What is counted of each signal at each door: the collector's names where it has one.
const RECEIVED: [(Lane, &str, &str, Read); 17] = [
    (Lane::Traces, "otelcol_receiver_accepted_spans", "Spans acknowledged", |lane| &lane.accepted),
    (Lane::Traces, "otelcol_receiver_refused_spans", "Spans refused because the journal is full", |lane| &lane.refused),
    (Lane::Traces, "otelcol_receiver_failed_spans", "Spans refused because the disk failed", |lane| &lane.failed),
    (Lane::Traces, "iris_receiver_rejected_spans", "Spans cut out and named in partial_success", |lane| &lane.rejected),
    (Lane::Traces, "iris_receiver_resent_spans", "Spans acknowledged again without another record", |lane| {
        &lane.resent
    }),
    (Lane::Logs, "otelcol_receiver_accepted_log_records", "Log records acknowledged", |lane| &lane.accepted),
    (Lane::Logs, "otelcol_receiver_refused_log_records", "Log records refused because the journal is full", |lane| {
        &lane.refused
    }),
    (Lane::Logs, "otelcol_receiver_failed_log_records", "Log records refused because the disk failed", |lane| {
        &lane.failed
    }),
    (Lane::Logs, "iris_receiver_rejected_log_records", "Log records cut out and named in partial_success", |lane| {
        &lane.rejected
    }),
    (Lane::Logs, "iris_receiver_resent_log_records", "Log records acknowledged again without another record", |lane| {
        &lane.resent
    }),
    (Lane::Logs, "iris_receiver_unkept_log_records", "Log records acknowledged and not kept", |lane| &lane.unkept),
    (Lane::Metrics, "otelcol_receiver_accepted_metric_points", "Metric points acknowledged", |lane| &lane.accepted),
    (
        Lane::Metrics,
        "otelcol_receiver_refused_metric_points",
        "Metric points refused because the journal is full",
        |lane| &lane.refused,
    ),
    (Lane::Metrics, "otelcol_receiver_failed_metric_points", "Metric points refused because the disk failed", |lane| {
        &lane.failed
    }),
    (
        Lane::Metrics,
        "iris_receiver_rejected_metric_points",
        "Metric points cut out and named in partial_success",
        |lane| &lane.rejected,
    ),
    (
        Lane::Metrics,
        "iris_receiver_resent_metric_points",
        "Metric points acknowledged again without another record",
        |lane| &lane.resent,
    ),
    (Lane::Metrics, "iris_receiver_unkept_metric_points", "Metric points acknowledged and not kept", |lane| {
        &lane.unkept
    }),
];

/// One metric: its name, what it counts, how it moves, and where it is read.
struct Row<T> {
    name: &'static str,
    help: &'static str,
    kind: Kind,
    read: fn(&T) -> u64,
}

const fn counter<T>(name: &'static str, help: &'static str, read: fn(&T) -> u64) -> Row<T> {
    Row { name, help, kind: Kind::Counter, read }
}

const fn gauge<T>(name: &'static str, help: &'static str, read: fn(&T) -> u64) -> Row<T> {
    Row { name, help, kind: Kind::Gauge, read }
}

/// Of each OTLP door.
const DOORS: &[Row<DoorCounters>] = &[
    counter("iris_receiver_connections", "Connections taken", |door| load(&door.connections)),
    counter("iris_receiver_evicted_connections", "Idle connections closed to make room for new ones", |door| {
        load(&door.evicted)
    }),
];

/// Reads one reason for which a door did not accept a request.
type ReadRequests = fn(&RequestCounters) -> &AtomicU64;

/// Why a door did not accept requests.
const REASONS: &[(&str, ReadRequests)] = &[
    ("malformed", |requests| &requests.malformed),
    ("too_large", |requests| &requests.too_large),
    ("busy", |requests| &requests.busy),
    ("full", |requests| &requests.full),
    ("failed", |requests| &requests.failed),
    ("timed_out", |requests| &requests.timed_out),
    ("aborted", |requests| &requests.aborted),
    ("unauthenticated", |requests| &requests.unauthenticated),
    ("foreign", |requests| &requests.foreign),
    ("misdirected", |requests| &requests.misdirected),
];

/// Of each lane of the journal.
const JOURNAL: &[Row<LaneStatus>] = &[
    gauge("iris_journal_bytes", "Bytes on disk", |lane| lane.bytes),
    gauge("iris_journal_bytes_max", "Bytes a lane may have", |lane| lane.bytes_max),
    counter("iris_journal_records", "Records acknowledged", |lane| lane.records),
    counter("iris_journal_syncs", "Syncs that records waited for", |lane| lane.syncs),
    counter("iris_journal_failures", "Failed writes and syncs", |lane| lane.failures),
    counter("iris_journal_damaged", "Damaged places found", |lane| lane.damaged),
    counter("iris_journal_dropped_records", "Records dropped for the forwarder", |lane| lane.dropped_records),
    counter("iris_journal_dropped_segments", "Segments dropped for the forwarder", |lane| lane.dropped_segments),
    counter("iris_journal_refused_records", "Records refused because the lane was full", |lane| lane.refused_full),
    gauge("iris_journal_refusing", "1 from a refused record to the next that is taken", |lane| {
        u64::from(lane.refusing_ms.is_some())
    }),
    gauge("iris_journal_unstored_bytes", "Bytes that no checkpoint of the database contains yet", |lane| {
        lane.unstored_bytes
    }),
    gauge("iris_journal_unforwarded_bytes", "Bytes that the forwarder is not past the end of", |lane| {
        lane.unforwarded_bytes
    }),
];

/// Of each lane that is forwarded.
const FORWARD: &[Row<ForwardStatus>] = &[
    counter("iris_forward_sent_records", "Records the downstream took", |lane| lane.sent),
    counter("iris_forward_failed_attempts", "Attempts made again", |lane| lane.failed),
    counter("iris_forward_dropped_records", "Records never sent", |lane| lane.dropped),
    gauge("iris_forward_lag_records", "Records behind the cursor", |lane| lane.lag_records),
];

/// Of the store, once it is open.
const STORE: &[Row<store::Status>] = &[
    counter("iris_store_rows", "Rows of spans committed to DuckDB", |store| store.rows),
    counter("iris_store_groups", "Transactions that committed them", |store| store.groups),
    counter("iris_store_rows_set_aside", "Rows that DuckDB refused", |store| store.set_aside),
    counter("iris_store_rows_unreadable", "Rows left out of answers because they cannot be read", |store| {
        store.unreadable
    }),
    gauge("iris_store_wal_bytes", "Bytes of DuckDB's write-ahead log", |store| store.wal_bytes),
    gauge("iris_store_file_bytes", "Bytes of the database file when it was last looked at", |store| store.file_bytes),
    gauge("iris_store_failing", "1 while commits fail and rows wait in the journal", |store| {
        u64::from(store.failed.is_some())
    }),
    gauge(
        "iris_store_no_space",
        "1 while no space is left for commits, on the disk or of retention.bytes_max",
        |store| u64::from(store.no_space),
    ),
];

/// Of the way from the journal to the verdict, once the store is open.
const PIPELINE: &[Row<PipelineStatus>] = &[
    gauge("iris_traces_open", "Traces that have not settled", |pipeline| count(pipeline.traces.open)),
    gauge("iris_traces_remembered", "Traces let go of that are known without asking DuckDB", |pipeline| {
        count(pipeline.traces.remembered)
    }),
    counter("iris_traces_looked_up", "Traces whose earlier rows DuckDB was asked for", |pipeline| {
        pipeline.traces.loads
    }),
    counter("iris_traces_judged", "Traces settled and judged", |pipeline| pipeline.judged),
    counter("iris_pipeline_panics", "Panics caught while understanding or judging", |pipeline| pipeline.panics),
    counter("iris_pipeline_poisoned", "Records and traces set aside", |pipeline| pipeline.poisoned),
];

/// Of each lane that is read.
const LAGS: &[Row<LaneLag>] =
    &[gauge("iris_pipeline_lag_records", "Acknowledged records not yet understood", |lane| lane.lag)];

/// Tenants whose rule files are shown.
const TENANTS_SHOWN_MAX: usize = 100;

/// Of each tenant's rule file.
const RULES: &[Row<FileStatus>] = &[
    gauge("iris_rules_deployed", "Custom rules that are deployed, of all tenants", |file| count(file.rules)),
    gauge("iris_rules_enabled", "Custom rules that fire", |file| count(file.enabled)),
    gauge("iris_rules_quarantined", "Entries of the rule file that cannot be read and do not fire", |file| {
        count(file.quarantined)
    }),
    gauge("iris_rules_files_unreadable", "Rule files that cannot be read; nothing passes meanwhile", |file| {
        u64::from(file.state == "unreadable")
    }),
    counter("iris_rules_changes", "Changes of the rules", |file| file.changes),
];
/// The journal has every record after these.
pub fn journal_from(journal: &Journal) -> store::Through {
    let from = |lane| journal.status().iter().find(|one| one.lane == lane).map_or(0, |one| one.first.saturating_sub(1));
    store::Through { traces: from(Lane::Traces), logs: from(Lane::Logs), metrics: 0 }
}

/// Everything the ops door looks at.
pub(super) struct Rooms {
    pub app: Arc<App>,
    pub counters: Arc<ReceiveCounters>,
    pub admission: Admission,
    pub forward: Option<Lanes>,
    pub verdicts: Option<Verdicts>,
    /// What the store went through.
    pub life: Arc<Life>,
    pub home: PathBuf,
    /// `retention.bytes_max`.
    pub home_bytes_max: u64,
}

/// The ops door over the running rooms.
pub(super) fn ops(rooms: &Arc<Rooms>) -> Arc<Ops> {
    let (rooms, for_ready, for_state) = (Arc::clone(rooms), Arc::clone(rooms), Arc::clone(rooms));
    Ops::new(move || for_ready.obstacle(), move || for_state.state(), move || rooms.families())
}

/// What the dashboard tells of the running rooms.
pub(super) fn around(rooms: &Arc<Rooms>, doors: serve::Doors) -> serve::Around {
    let (for_state, rooms) = (Arc::clone(rooms), Arc::clone(rooms));
    let counter = |family: &Family, sample: Sample| serve::Counter {
        name: family.name,
        help: family.help,
        labels: sample.labels,
        value: sample.value,
    };
    let counters = move || {
        let counters = rooms.families().into_iter().flat_map(|mut family| {
            let samples = std::mem::take(&mut family.samples);
            samples.into_iter().map(|sample| counter(&family, sample)).collect::<Vec<_>>()
        });
        counters.collect()
    };
    serve::Around { doors, state: Arc::new(move || for_state.state()), counters: Arc::new(counters) }
}

impl Rooms {
    /// Why spans cannot be acknowledged, or not for long, although the doors are open.
    fn obstacle(&self) -> Option<&'static str> {
        let lanes = self.app.journal.status();
        let traces = lanes.iter().find(|status| status.lane == Lane::Traces);
        let failed = self.app.backend.get().is_some_and(|backend| backend.pipeline.status().failed);
        hindrance(traces.and_then(|status| status.refusing_ms), failed)
    }

    fn state(&self) -> Value {
        let backend = self.app.backend.get();
        let journal: Vec<Value> = self.app.journal.status().iter().map(lane).collect();
        let pipeline = backend.as_ref().map(|backend| backend.pipeline.status());
        json!({
            "store": self.store(backend.as_deref()),
            "pipeline": pipeline.map(|status| json!({
                "open": status.traces.open,
                "undecided": status.traces.undecided,
                "judged": status.judged,
                "lanes": status.lanes,
                "panics": status.panics,
                "set_aside": status.set_aside,
                "poisoned": status.poisoned,
                "failed": status.failed,
            })),
            "erasure": self.app.erasure(),
            "home": self.home(),
            "store_restarts": self.life.restarts(),
            "store_looks": self.life.looks(),
            "journal": journal,
            "judge": judged::state(self.app.judging.as_deref(), self.now_ms()),
            "rules": self.app.rulebook.status().into_iter().take(TENANTS_SHOWN_MAX).collect::<Vec<_>>(),
            "forward": self.forward.as_ref().map(Lanes::status),
            "admission": { "bytes_max": self.admission.bytes_max(), "bytes_free": self.admission.bytes_free() },
        })
    }

    /// How the store is doing, and what was found damaged in it since the start.
    fn store(&self, backend: Option<&Backend>) -> Value {
        let mut state = match backend {
            Some(backend) => {
                let mut status = json!(backend.store.status());
                status["state"] = json!(if status["failed"].is_null() { "open" } else { "failing" });
                status
            }
            None if self.life.is_looked_over() => json!({
                "state": "looked_over",
                "why": "a part of the database could not be read: all of it is looked over, and what can be read put in a new file",
            }),
            None => json!({ "state": "opening" }),
        };
        let damage = self.life.damage();
        if !damage.is_empty() {
            state["damage"] = json!(damage);
        }
        state
    }

    fn now_ms(&self) -> u64 {
        (self.app.world.now)().as_unix_nanos() / 1_000_000
    }

    /// What the folder takes, what it may take, and what the disk has left.
    fn home(&self) -> Value {
        let used = home::used(&self.home);
        json!({ "bytes": used.bytes, "bytes_max": self.home_bytes_max, "disk_free_bytes": used.disk_free_bytes })
    }

    fn families(&self) -> Vec<Family> {
        let doors = [("grpc", &self.counters.grpc), ("http", &self.counters.http)];
        let mut families = received(&doors);
        families.extend(by(DOORS, &["transport"], doors));
        families.push(not_accepted(&doors));
        let lanes = self.app.journal.status();
        families.extend(by(JOURNAL, &["lane"], lanes.iter().map(|status| (status.lane.as_str(), status))));
        if let Some(lanes) = self.forward.as_ref().map(Lanes::status) {
            families.extend(by(FORWARD, &["lane"], lanes.iter().map(|status| (status.lane.as_str(), status))));
        }
        let used = home::used(&self.home);
        for (name, help, value) in [
            ("iris_home_bytes", "Bytes of all files in the home folder", used.bytes),
            ("iris_home_bytes_max", "What retention.bytes_max lets them have", self.home_bytes_max),
            ("iris_home_disk_free_bytes", "Bytes that the disk of the home folder has left", used.disk_free_bytes),
        ] {
            families.push(Family::one(name, help, Kind::Gauge, value));
        }
        let help = "Times the store could not go on and was opened as at a start";
        families.push(Family::one("iris_store_restarts", help, Kind::Counter, self.life.restarts()));
        let help = "Times a part of the database could not be read and all of it was looked over";
        families.push(Family::one("iris_store_looks", help, Kind::Counter, self.life.looks()));
        families.extend(rules(&self.app.rulebook.status()));
        let help = "Requests that named a tenant with a key that may not";
        families.push(Family::one("iris_tenant_headers_ignored", help, Kind::Counter, door::tenants_ignored()));
        let help = "Messages with a resource that named a tenant, sent with a key that may not";
        let ignored = load(&self.counters.tenants_ignored);
        families.push(Family::one("iris_tenant_attributes_ignored", help, Kind::Counter, ignored));
        if let Some(verdicts) = &self.verdicts {
            let (sent, lost) = verdicts.counts();
            let help = "Verdicts journalled to be sent downstream";
            families.push(Family::one("iris_verdicts_sent", help, Kind::Counter, sent));
            let help = "Verdicts not sent downstream, because the journal had no room";
            families.push(Family::one("iris_verdicts_lost", help, Kind::Counter, lost));
        }
        if let Some(judging) = &self.app.judging {
            families.extend(judged::families(judging, self.now_ms()));
        }
        if let Some(exporter) = &self.app.facts.export {
            let help = "Traces of log_trace that export.endpoint did not get";
            families.push(Family::one("iris_export_lost_traces", help, Kind::Counter, exporter.lost()));
        }
        if let Some(backend) = self.app.backend.get() {
            let (store, pipeline) = (backend.store.status(), backend.pipeline.status());
            families.extend(STORE.iter().map(|row| Family::one(row.name, row.help, row.kind, (row.read)(&store))));
            families
                .extend(PIPELINE.iter().map(|row| Family::one(row.name, row.help, row.kind, (row.read)(&pipeline))));
            families.extend(by(LAGS, &["lane"], pipeline.lanes.iter().map(|lag| (lag.lane.as_str(), lag))));
            families.push(unread(&pipeline));
            families.extend(said(&pipeline));
        }
        families
    }
}

/// Of all tenants together: a gateway may name any number of them.
fn rules(files: &[FileStatus]) -> Vec<Family> {
    let sum = |row: &Row<FileStatus>| Family::one(row.name, row.help, row.kind, files.iter().map(row.read).sum());
    let loaded = files.iter().map(|file| file.loaded.as_unix_nanos() / 1_000_000_000).max().unwrap_or_default();
    let help = "Unix time at which rules were last taken from a file";
    RULES.iter().map(sum).chain([Family::one("iris_rules_loaded_seconds", help, Kind::Gauge, loaded)]).collect()
}

/// One metric a row, with one value for each that is asked.
fn by<'a, T: 'static>(
    table: &'static [Row<T>],
    labels: &'static [&'static str; 1],
    all: impl IntoIterator<Item = (&'static str, &'a T)>,
) -> impl Iterator<Item = Family> {
    let all: Vec<_> = all.into_iter().collect();
    table.iter().map(move |row| {
        let values = all.iter().map(|(name, one)| ((*name).to_owned(), (row.read)(one)));
        Family::by(row.name, row.help, row.kind, labels, values)
    })
}

/// In the collector's names, one a signal.
fn received(doors: &[(&'static str, &DoorCounters); 2]) -> Vec<Family> {
    RECEIVED
        .iter()
        .map(|(lane, name, help, read)| {
            let values = doors.map(|(door, counters)| (door.to_owned(), load(read(counters.lane(*lane)))));
            Family::by(name, help, Kind::Counter, &["transport"], values)
        })
        .collect()
}

fn not_accepted(doors: &[(&'static str, &DoorCounters); 2]) -> Family {
    let sample = |door: &str, counters: &DoorCounters, (reason, read): &(&str, ReadRequests)| Sample {
        labels: vec![("transport", door.to_owned()), ("reason", (*reason).to_owned())],
        value: load(read(&counters.requests)),
    };
    let samples = doors.iter().flat_map(|(door, counters)| REASONS.iter().map(move |row| sample(door, counters, row)));
    Family {
        name: "iris_receiver_requests_not_accepted",
        help: "OTLP requests that were not accepted",
        kind: Kind::Counter,
        labels: &["transport", "reason"],
        samples: samples.collect(),
    }
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// What was said of traces: by state, and by rules, whose names are an operator's.
fn said(pipeline: &PipelineStatus) -> [Family; 2] {
    let states = pipeline.said.states.iter().map(|(state, count)| ((*state).to_owned(), *count));
    let rules = pipeline.said.failed.iter().map(|(rule, count)| (rule.clone(), *count));
    [
        Family::by("iris_verdicts", "Verdicts of settled traces", Kind::Counter, &["state"], states),
        Family::by("iris_rules_failed", "Settled traces that a rule failed", Kind::Counter, &["rule"], rules),
    ]
}

/// How long a refused append counts: who sends only to what is ready would never show that it is over.
const REFUSED_COUNTS_MS: u64 = 30_000;

/// By dialect, never by key: keys are chosen by whoever sends spans.
fn unread(pipeline: &PipelineStatus) -> Family {
    Family::by(
        "iris_spans_with_unmapped_attributes",
        "Spans with content under keys that nothing here reads",
        Kind::Counter,
        &["dialect"],
        pipeline.unmapped.iter().map(|(dialect, spans)| ((*dialect).to_owned(), *spans)),
    )
}

fn hindrance(refusing_ms: Option<u64>, pipeline_failed: bool) -> Option<&'static str> {
    if refusing_ms.is_some_and(|ago| ago < REFUSED_COUNTS_MS) {
        return Some("the journal took no spans: it is full or cannot be written");
    }
    pipeline_failed.then_some("nothing reads the journal any more")
}

fn lane(status: &LaneStatus) -> Value {
    json!({
        "lane": status.lane, "bytes": status.bytes, "bytes_max": status.bytes_max, "segments": status.segments,
        "acknowledged": status.acknowledged, "stored": status.stored, "forwarded": status.forwarded, "records": status.records,
        "syncs": status.syncs, "failures": status.failures, "refused_full": status.refused_full, "damaged": status.damaged,
        "dropped_records": status.dropped_records, "dropped_segments": status.dropped_segments,
        "refusing_ms": status.refusing_ms, "unstored_bytes": status.unstored_bytes,
        "unforwarded_records": status.unforwarded_records, "unforwarded_bytes": status.unforwarded_bytes,
    })
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_acknowledge_is_not_ready() {
        assert_eq!(hindrance(None, false), None);
        assert!(hindrance(Some(0), false).is_some_and(|why| why.contains("journal")));
        assert!(hindrance(None, true).is_some());
        assert_eq!(hindrance(Some(REFUSED_COUNTS_MS), false), None, "else no sender would ever find out");
    }

    #[test]
    fn no_counter_is_told_twice() {
        fn names<T>(table: &'static [Row<T>]) -> impl Iterator<Item = &'static str> {
            table.iter().map(|row| row.name)
        }
        let all: Vec<&str> = RECEIVED.iter().map(|row| row.1).chain(names(DOORS)).chain(names(JOURNAL)).collect();
        let all: Vec<&str> = all.into_iter().chain(names(FORWARD)).chain(names(STORE)).chain(names(PIPELINE)).collect();
        let all: Vec<&str> = all.into_iter().chain(names(LAGS)).chain(names(RULES)).collect();
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
    }
}
