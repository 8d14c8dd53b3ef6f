//! The journal's second reader: sends what was accepted on to the downstream collector over OTLP.
//!
//! Owns the forward cursors, the connections downstream, and the judgement of what a downstream's answer means. A
//! lane is a task: it reads its journal from the cursor, keeps a bounded number of requests under way, and reports
//! the end of the unbroken run of answered records to the journal. Everything accepted arrives at least once, byte
//! for byte; what was under way when the process ended may arrive twice.
//!
//! It never decodes what it sends (JSON for a gRPC downstream excepted), never blocks an acknowledgement, a lane or
//! the store, and never shows a header's value or a word of what the downstream said. Data enters through
//! [`Journal::reader`] and leaves by [`grpc`] or [`http_post`].
//!
//! What an answer means (`retry`): taken, also in part; not now, with waits that grow and obey the downstream; a
//! wrong set-up, which pauses the lane and drops nothing; never, which drops that message and counts it. A message
//! that keeps failing lets others pass (`window`), and is given up only when those were taken.

mod client;
mod config;
mod export;
mod grpc;
mod http_post;
mod inherit;
mod lane;
mod reply;
mod retry;
mod status;
pub mod verdict;
mod window;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use iris_core::model::Lane;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use config::{Compression, Config, Error, Origin, Protocol, Target};
pub use export::{Config as ExportConfig, Exporter};
pub use status::{ForwardStatus, State};

use crate::deleted::Deletions;
use crate::journal::{Follower, Journal, Kind, Read, Record};
use status::Counters;

/// Bytes of bodies under way, over all lanes; a lane has a fixed share, so that none can take another's. Beside it
/// each lane holds one record read ahead, and one larger than the lane's share is sent alone.
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// A lane whose task ended by a fault of ours starts again from its cursor after this time.
const RESTART_AFTER: Duration = Duration::from_secs(5);

/// Writes a tool's trace as an OTLP/protobuf trace request, for `forward.tool_traces`. `None`: nothing to send.
pub type ToolTraceWriter = fn(&Record) -> Option<Bytes>;

/// The running forwarder. Dropping it stops at once.
pub struct Forwarder {
    lanes: Lanes,
    tasks: JoinSet<()>,
    drain: watch::Sender<Option<Instant>>,
}

/// What can be seen of the lanes from anywhere.
#[derive(Clone)]
pub struct Lanes {
    journal: Journal,
    counters: Arc<[(Lane, Arc<Counters>)]>,
}

/// Starts forwarding all lanes. Must be called inside a runtime. `tool_trace` is used when `forward.tool_traces`
/// is set. From `cancel` on no wait of our own choosing lasts longer than half a second; sending goes on until
/// [`Forwarder::drain`].
///
/// # Errors
/// When the client cannot be set up, such as without any root certificate for `https`.
pub fn start(
    journal: &Journal,
    target: &Target,
    tool_trace: Option<ToolTraceWriter>,
    deleted: &Deletions,
    cancel: &CancellationToken,
) -> Result<Forwarder, Error> {
    let (drain, draining) = watch::channel(None);
    let mut tasks = JoinSet::new();
    let mut counters = Vec::new();
    for lane in Lane::ALL {
        let setup = lane::Setup {
            lane,
            journal: journal.clone(),
            client: Arc::new(client::Client::new(lane, target)?),
            concurrency: target.concurrency,
            bytes_max: share(lane),
            backoff: target.backoff,
            tool_trace: tool_trace.filter(|_| target.tool_traces),
            counters: Arc::default(),
            deleted: deleted.clone(),
            cancel: cancel.clone(),
            drain: draining.clone(),
        };
        counters.push((lane, Arc::clone(&setup.counters)));
        tasks.spawn(keep(setup));
    }
    Ok(Forwarder { lanes: Lanes { journal: journal.clone(), counters: counters.into() }, tasks, drain })
}

/// The lane's part of [`BYTES_MAX`].
const fn share(lane: Lane) -> usize {
    match lane {
        Lane::Traces => BYTES_MAX / 2,
        Lane::Logs | Lane::Metrics => BYTES_MAX / 4,
    }
}

/// Runs a lane, and again should a fault of ours end it.
async fn keep(setup: lane::Setup) {
    let mut tasks = JoinSet::new();
    loop {
        tasks.spawn(lane::run(setup.clone()));
        match tasks.join_next().await {
            Some(Err(error)) if error.is_panic() => {
                tracing::error!(
                    lane = setup.lane.as_str(),
                    "a fault ended forwarding; it starts again from its cursor"
                );
                tokio::time::sleep(RESTART_AFTER).await;
            }
            _ => return,
        }
    }
}

/// Stands in for the forwarder of a lane in a process that sends nothing: what is never sent is passed over, and the
/// first record that waits for a downstream stays, with everything after it, for a process that has one.
pub async fn keep_unsent(journal: Journal, lane: Lane, cancel: CancellationToken) {
    let mut reader = journal.reader(lane, Follower::Forward, journal.forward_cursor(lane));
    loop {
        let read = tokio::select! {
            () = cancel.cancelled() => return,
            read = reader.next() => read,
        };
        match read {
            Read::Entry(entry) if is_never_sent(entry.record.kind) => journal.forwarded(lane, entry.seq),
            Read::Gap { last, .. } => journal.forwarded(lane, last),
            Read::Entry(_) => {
                let lane = lane.as_str();
                tracing::info!(
                    lane,
                    "the journal keeps what no collector has taken: an earlier process had one, or a later one may"
                );
                return;
            }
            Read::Closed => return,
        }
    }
}

/// Kinds of records that a tool made, which stay here.
fn is_never_sent(kind: Kind) -> bool {
    matches!(kind, Kind::ToolTrace | Kind::ToolEvaluation | Kind::Tombstone | Kind::Erased)
}

impl Forwarder {
    /// What can be seen of the lanes, to keep after [`Forwarder::drain`].
    pub fn lanes(&self) -> Lanes {
        self.lanes.clone()
    }

    /// Sends what the journal still has, and returns when everything is answered or `within` is over, whichever
    /// comes first; what was under way then may be sent twice after a restart. To be called when nothing more is
    /// appended. The cursors are the journal's to write out when it closes.
    pub async fn drain(mut self, within: Duration) {
        let deadline = Instant::now() + within;
        self.drain.send_replace(Some(deadline));
        let all = async { while self.tasks.join_next().await.is_some() {} };
        // The lanes end by the deadline themselves; this bounds one that is being started again.
        let _ = tokio::time::timeout(within + lane::DRAIN_QUIET, all).await;
    }
}

impl Lanes {
    /// Whether the downstream takes this signal, as far as is known: it may not have the service at all.
    pub fn serves(&self, lane: Lane) -> bool {
        let of = self.counters.iter().find(|(one, _)| *one == lane);
        of.is_none_or(|(_, counters)| !counters.unserved.load(std::sync::atomic::Ordering::Relaxed))
    }

    /// Each lane's standing.
    pub fn status(&self) -> Vec<ForwardStatus> {
        let journal = self.journal.status();
        let of = |lane: Lane| journal.iter().find(|status| status.lane == lane);
        self.counters.iter().map(|(lane, counters)| counters.status(*lane, of(*lane))).collect()
    }
}

#[cfg(test)]
mod tests;
