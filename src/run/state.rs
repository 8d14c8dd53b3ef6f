//! What the ops door tells: the state of every room as JSON, and its counters as metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use iris_core::model::Lane;
use serde_json::{Value, json};

use crate::forward::{Forwarder, Lanes};
use crate::ingest::{Admission, DoorCounters, LaneCounters, ReceiveCounters};
use crate::journal::{Journal, LaneStatus};
use crate::ops::{Family, Kind, Ops, Sample};
use crate::tools::App;

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

/// Everything the ops door looks at.
struct Rooms {
    app: Arc<App>,
    journal: Journal,
    counters: Arc<ReceiveCounters>,
    admission: Admission,
    forward: Option<Lanes>,
}

/// The ops door over the running rooms.
pub(super) fn ops(
    app: &Arc<App>,
    journal: &Journal,
    counters: &Arc<ReceiveCounters>,
    admission: &Admission,
    forwarder: Option<&Forwarder>,
) -> Arc<Ops> {
    let rooms = Arc::new(Rooms {
        app: Arc::clone(app),
        journal: journal.clone(),
        counters: Arc::clone(counters),
        admission: admission.clone(),
        forward: forwarder.map(Forwarder::lanes),
    });
    let (for_ready, for_state) = (Arc::clone(&rooms), Arc::clone(&rooms));
    Ops::new(move || for_ready.obstacle(), move || for_state.state(), move || rooms.families())
}

impl Rooms {
    /// Why spans cannot be acknowledged, or not for long, although the doors are open.
    fn obstacle(&self) -> Option<&'static str> {
        let lanes = self.journal.status();
        let traces = lanes.iter().find(|status| status.lane == Lane::Traces);
        let failed = self.app.backend.get().is_some_and(|backend| backend.pipeline.status().failed);
        hindrance(traces.and_then(|status| status.refusing_ms), failed)
    }

    fn state(&self) -> Value {
        let backend = self.app.backend.get();
        let journal: Vec<Value> = self.journal.status().iter().map(lane).collect();
        let pipeline = backend.map(|backend| backend.pipeline.status());
        json!({
            "store": backend.map_or_else(|| json!({ "state": "opening" }), |backend| {
                let mut status = json!(backend.store.status());
                status["state"] = json!(if status["failed"].is_null() { "open" } else { "failing" });
                status
            }),
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
            "journal": journal,
            "forward": self.forward.as_ref().map(Lanes::status),
            "admission": { "bytes_max": self.admission.bytes_max(), "bytes_free": self.admission.bytes_free() },
        })
    }

    fn families(&self) -> Vec<Family> {
        let mut families = self.received();
        families.extend(self.journalled());
        families.extend(self.forwarded());
        if let Some(backend) = self.app.backend.get() {
            let (store, pipeline) = (backend.store.status(), backend.pipeline.status());
            families.push(Family::one(
                "iris_store_rows",
                "Rows of spans committed to DuckDB",
                Kind::Counter,
                store.rows,
            ));
            families.push(Family::one(
                "iris_store_groups",
                "Transactions that committed them",
                Kind::Counter,
                store.groups,
            ));
            families.push(Family::one(
                "iris_store_rows_set_aside",
                "Rows that DuckDB refused",
                Kind::Counter,
                store.set_aside,
            ));
            families.push(Family::one(
                "iris_store_wal_bytes",
                "Bytes of DuckDB's write-ahead log",
                Kind::Gauge,
                store.wal_bytes,
            ));
            families.push(Family::one(
                "iris_traces_open",
                "Traces that have not settled",
                Kind::Gauge,
                count(pipeline.traces.open),
            ));
            families.push(Family::one(
                "iris_traces_judged",
                "Traces settled and judged",
                Kind::Counter,
                pipeline.judged,
            ));
            families.push(Family::one(
                "iris_pipeline_panics",
                "Panics caught while understanding or judging",
                Kind::Counter,
                pipeline.panics,
            ));
            families.push(Family::one(
                "iris_pipeline_poisoned",
                "Records and traces set aside",
                Kind::Counter,
                pipeline.poisoned,
            ));
            let lags = pipeline.lanes.iter().map(|lane| (lane.lane.as_str().to_owned(), lane.lag));
            families.push(Family::by(
                "iris_pipeline_lag_records",
                "Acknowledged records not yet understood",
                Kind::Gauge,
                "lane",
                lags,
            ));
        }
        families
    }

    /// In the collector's names, one a signal.
    fn received(&self) -> Vec<Family> {
        let doors: [(&str, &DoorCounters); 2] = [("grpc", &self.counters.grpc), ("http", &self.counters.http)];
        let by_door = |lane: Lane, read: Read| {
            doors.map(|(door, counters)| (door.to_owned(), read(counters.lane(lane)).load(Ordering::Relaxed)))
        };
        let mut families: Vec<Family> = RECEIVED
            .iter()
            .map(|(lane, name, help, read)| Family::by(name, help, Kind::Counter, "transport", by_door(*lane, *read)))
            .collect();
        let by_transport = |read: fn(&DoorCounters) -> &AtomicU64| {
            doors.map(|(door, counters)| (door.to_owned(), read(counters).load(Ordering::Relaxed)))
        };
        families.push(Family::by(
            "iris_receiver_connections",
            "Connections taken",
            Kind::Counter,
            "transport",
            by_transport(|door| &door.connections),
        ));
        families.push(Family::by(
            "iris_receiver_evicted_connections",
            "Idle connections closed to make room for new ones",
            Kind::Counter,
            "transport",
            by_transport(|door| &door.evicted),
        ));
        families.push(self.not_accepted(&doors));
        families
    }

    fn not_accepted(&self, doors: &[(&str, &DoorCounters); 2]) -> Family {
        let mut samples = Vec::new();
        for (door, counters) in doors {
            let requests = &counters.requests;
            let reasons = [
                ("malformed", &requests.malformed),
                ("too_large", &requests.too_large),
                ("busy", &requests.busy),
                ("full", &requests.full),
                ("failed", &requests.failed),
                ("timed_out", &requests.timed_out),
                ("aborted", &requests.aborted),
                ("unauthenticated", &requests.unauthenticated),
                ("foreign", &requests.foreign),
                ("misdirected", &requests.misdirected),
            ];
            samples.extend(reasons.map(|(reason, counter)| Sample {
                labels: vec![("transport", (*door).to_owned()), ("reason", reason.to_owned())],
                value: counter.load(Ordering::Relaxed),
            }));
        }
        Family {
            name: "iris_receiver_requests_not_accepted",
            help: "OTLP requests that were not accepted",
            kind: Kind::Counter,
            samples,
        }
    }

    fn journalled(&self) -> Vec<Family> {
        let lanes = self.journal.status();
        let by = |read: fn(&LaneStatus) -> u64| {
            lanes.iter().map(|lane| (lane.lane.as_str().to_owned(), read(lane))).collect::<Vec<_>>()
        };
        vec![
            Family::by("iris_journal_bytes", "Bytes on disk", Kind::Gauge, "lane", by(|lane| lane.bytes)),
            Family::by(
                "iris_journal_bytes_max",
                "Bytes a lane may have",
                Kind::Gauge,
                "lane",
                by(|lane| lane.bytes_max),
            ),
            Family::by("iris_journal_records", "Records acknowledged", Kind::Counter, "lane", by(|lane| lane.records)),
            Family::by(
                "iris_journal_syncs",
                "Syncs that records waited for",
                Kind::Counter,
                "lane",
                by(|lane| lane.syncs),
            ),
            Family::by(
                "iris_journal_failures",
                "Failed writes and syncs",
                Kind::Counter,
                "lane",
                by(|lane| lane.failures),
            ),
            Family::by("iris_journal_damaged", "Damaged places found", Kind::Counter, "lane", by(|lane| lane.damaged)),
            Family::by(
                "iris_journal_dropped_records",
                "Records dropped for the forwarder",
                Kind::Counter,
                "lane",
                by(|lane| lane.dropped_records),
            ),
            Family::by(
                "iris_journal_dropped_segments",
                "Segments dropped for the forwarder",
                Kind::Counter,
                "lane",
                by(|lane| lane.dropped_segments),
            ),
            Family::by(
                "iris_journal_refused_records",
                "Records refused because the lane was full",
                Kind::Counter,
                "lane",
                by(|lane| lane.refused_full),
            ),
        ]
    }

    fn forwarded(&self) -> Vec<Family> {
        let Some(lanes) = self.forward.as_ref().map(Lanes::status) else { return Vec::new() };
        let by = |read: fn(&crate::forward::ForwardStatus) -> u64| {
            lanes.iter().map(|lane| (lane.lane.as_str().to_owned(), read(lane))).collect::<Vec<_>>()
        };
        vec![
            Family::by(
                "iris_forward_sent_records",
                "Records the downstream took",
                Kind::Counter,
                "lane",
                by(|lane| lane.sent),
            ),
            Family::by(
                "iris_forward_failed_attempts",
                "Attempts made again",
                Kind::Counter,
                "lane",
                by(|lane| lane.failed),
            ),
            Family::by(
                "iris_forward_dropped_records",
                "Records never sent",
                Kind::Counter,
                "lane",
                by(|lane| lane.dropped),
            ),
            Family::by(
                "iris_forward_lag_records",
                "Records behind the cursor",
                Kind::Gauge,
                "lane",
                by(|lane| lane.lag_records),
            ),
        ]
    }
}

/// How long a refused append counts: who sends only to what is ready would never show that it is over.
const REFUSED_COUNTS_MS: u64 = 30_000;

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
        "refusing_ms": status.refusing_ms,
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
        let names: std::collections::BTreeSet<_> = RECEIVED.iter().map(|row| row.1).collect();
        assert_eq!(names.len(), RECEIVED.len());
    }
}
