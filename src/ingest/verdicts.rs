//! Verdicts on their way downstream: once an evaluation is committed, its log records are journalled in the logs lane,
//! from where the forwarder takes them.
//!
//! Judging never waits for it: what does not fit into a bounded queue, or into the journal, is dropped and counted. What
//! was committed and not yet journalled when the process ended is found at the next start: `home/verdicts` says up to
//! which time everything was, and hashes of evaluation ids tell what the journal has of the time around it.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;
use iris_core::model::{Evaluation, Lane, RowKey, SpanId, Tenant, Timestamp};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::pipeline::Tell;
use crate::forward::verdict;
use crate::journal::{Door, Encoding, Journal, Kind, Record};
use crate::store::{self, Bounds, Store};

/// Verdicts that wait to be journalled, each as the record it will be: 1 to 4 KiB.
const QUEUE_MAX: usize = 4096;
/// Verdicts that share a sync of the journal.
const TOGETHER_MAX: usize = 64;
/// How often the file is written at most.
const WRITE_EVERY: Duration = Duration::from_secs(1);
/// How much later than it was judged an evaluation may be committed.
const COMMIT_WITHIN: Duration = Duration::from_secs(60);
/// Evaluations looked at together at a start.
const PAGE: usize = 256;
/// Earlier evaluations of a trace that are looked through for the one that is replaced.
const EARLIER_MAX: usize = 16;

/// Whether the downstream takes log records at all.
pub type Serves = Arc<dyn Fn() -> bool + Send + Sync>;

/// The way downstream. Clones share it.
#[derive(Clone)]
pub struct Verdicts {
    jobs: mpsc::Sender<Job>,
    serves: Serves,
    lost: Arc<AtomicU64>,
    sent: Arc<AtomicU64>,
}

/// A verdict as it will be journalled. An evaluation is ten times as large, and thousands may wait.
struct Telling {
    id: String,
    tenant: Tenant,
    at: Timestamp,
    /// None when nothing is to be told.
    body: Option<Bytes>,
}

impl Telling {
    fn of(evaluation: &Evaluation, previous: Option<&Evaluation>, span: Option<SpanId>, serves: bool) -> Self {
        let body = serves.then(|| verdict::request(evaluation, previous, span)).flatten();
        Self { id: evaluation.id.clone(), tenant: evaluation.tenant.clone(), at: evaluation.created_at, body }
    }
}

enum Job {
    Judged(Telling),
    /// Answered when everything before is journalled.
    Flush(oneshot::Sender<()>),
}

/// What the task works with.
pub struct Work {
    jobs: mpsc::Receiver<Job>,
    journal: Journal,
    serves: Serves,
    file: PathBuf,
    /// Everything judged up to here is journalled.
    through: Timestamp,
    /// As the file says it.
    written: Option<Timestamp>,
    tried: Option<Instant>,
    /// Hashes of what the journal had at the start.
    known: HashSet<u128>,
    started: Timestamp,
    lost: Arc<AtomicU64>,
    sent: Arc<AtomicU64>,
}

impl Verdicts {
    /// Records for the verdicts of `home`. `known`: hashes that the journal has. At the first start with a downstream
    /// what was judged before `now` is not told.
    pub fn new(home: &Path, journal: Journal, known: HashSet<u128>, serves: Serves, now: Timestamp) -> (Self, Work) {
        let (sender, jobs) = mpsc::channel(QUEUE_MAX);
        let (lost, sent): (Arc<AtomicU64>, Arc<AtomicU64>) = Default::default();
        let file = home.join("verdicts");
        let written = fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok());
        let written = written.map(Timestamp::from_unix_nanos);
        let through = written.unwrap_or(now);
        let (count_lost, count_sent) = (Arc::clone(&lost), Arc::clone(&sent));
        let known_to_tell = Arc::clone(&serves);
        let work = Work { jobs, journal, serves, file, through, written, tried: None, known, started: now, lost, sent };
        (Self { jobs: sender, serves: known_to_tell, lost: count_lost, sent: count_sent }, work)
    }

    /// Forgets how far it was: with no downstream nobody is told, and later on not of what was judged meanwhile.
    pub fn forget(home: &Path) {
        // When it was never there, there is nothing to forget.
        let _ = fs::remove_file(home.join("verdicts"));
    }

    /// To be called of every judging that is committed.
    pub fn tell(&self) -> Tell {
        let verdicts = self.clone();
        Arc::new(move |judging| {
            let span = judging.run_spans.first().copied();
            let previous = judging.previous.as_deref();
            let telling = Telling::of(&judging.evaluation, previous, span, (verdicts.serves)());
            if verdicts.jobs.try_send(Job::Judged(telling)).is_err() {
                verdicts.lost.fetch_add(1, Ordering::Relaxed);
            }
        })
    }

    /// Waits until what was told before is journalled.
    pub async fn flush(&self) {
        let (done, waiting) = oneshot::channel();
        if self.jobs.send(Job::Flush(done)).await.is_ok() {
            // The task has ended: nothing more is journalled.
            let _ = waiting.await;
        }
    }

    /// Verdicts that were journalled to be sent, and those that were not.
    pub fn counts(&self) -> (u64, u64) {
        (self.sent.load(Ordering::Relaxed), self.lost.load(Ordering::Relaxed))
    }
}

impl Work {
    /// Journals what an earlier process left, then what is told, until `ending`.
    pub async fn run(mut self, store: Store, ending: CancellationToken) {
        if let Err(error) = self.catch_up(&store).await {
            tracing::warn!(%error, "verdicts of before the start may not have been sent");
        }
        loop {
            let job = tokio::select! {
                job = self.jobs.recv() => job,
                () = ending.cancelled() => None,
            };
            let Some(job) = job else { break };
            let (mut tellings, mut flush, mut next) = (Vec::new(), None, Some(job));
            while let Some(job) = next {
                match job {
                    Job::Judged(telling) => tellings.push(telling),
                    Job::Flush(done) => flush = Some(done),
                }
                let has_room = flush.is_none() && tellings.len() < TOGETHER_MAX;
                next = has_room.then(|| self.jobs.try_recv().ok()).flatten();
            }
            join_all(tellings.iter().map(|telling| self.journal_one(telling))).await;
            self.through = tellings.iter().fold(self.through, |through, telling| through.max(telling.at));
            self.write(flush.is_some());
            if let Some(done) = flush {
                // Whoever waited may be gone.
                let _ = done.send(());
            }
        }
        self.write(true);
    }

    async fn journal_one(&self, telling: &Telling) {
        let Some(body) = &telling.body else { return };
        let hash = self.hash(&telling.tenant, &telling.id);
        if self.known.contains(&hash) {
            return;
        }
        let record = Record {
            kind: Kind::Verdict,
            tenant: telling.tenant.clone(),
            door: Door::Sidecar,
            encoding: Encoding::Protobuf,
            arrived: telling.at,
            body: body.clone(),
        };
        let counter = match self.journal.append_hashed(Lane::Logs, record, hash).await {
            Ok(_) => &self.sent,
            Err(error) => {
                tracing::debug!(%error, "a verdict was not journalled");
                &self.lost
            }
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// By its id, so that it is the same however often the record is made.
    fn hash(&self, tenant: &Tenant, evaluation_id: &str) -> u128 {
        self.journal.hash(tenant, Lane::Logs, format!("verdict {evaluation_id}").as_bytes())
    }

    /// Journals what was committed and is not in the journal.
    async fn catch_up(&mut self, store: &Store) -> Result<(), store::Error> {
        if let Some(through) = self.written {
            let back = u64::try_from(COMMIT_WITHIN.as_nanos()).unwrap_or(u64::MAX);
            let mut since = Timestamp::from_unix_nanos(through.as_unix_nanos().saturating_sub(back));
            let mut after = String::new();
            loop {
                let page = store.judged_between((since, self.started), &after, PAGE).await?;
                let Some(last) = page.last() else { break };
                (since, after) = (last.at, last.id.clone());
                let is_last = page.len() < PAGE;
                for judged in page {
                    self.told_again(store, &judged.tenant, &judged.id).await?;
                    self.through = self.through.max(judged.at);
                }
                if is_last {
                    break;
                }
            }
        }
        // Judgings of this process are none of those.
        self.known = HashSet::new();
        self.write(true);
        Ok(())
    }

    async fn told_again(&mut self, store: &Store, tenant: &Tenant, id: &str) -> Result<(), store::Error> {
        let Some(evaluation) = store.evaluation(tenant, id).await? else { return Ok(()) };
        let Some(trace_id) = evaluation.trace_id.filter(|_| !self.known.contains(&self.hash(tenant, &evaluation.id)))
        else {
            return Ok(());
        };
        let key = RowKey { tenant: tenant.clone(), trace_id };
        let bounds = Bounds { items: EARLIER_MAX, ..Bounds::WHOLE };
        let all = store.evaluations(&key.tenant, trace_id, bounds).await?.items;
        let earlier = all.iter().filter(|one| one.inline && one.trace_version < evaluation.trace_version);
        let previous = earlier.max_by_key(|one| one.trace_version);
        let trace = store.trace(&key.tenant, trace_id).await?;
        let span = trace.and_then(|trace| trace.runs.iter().find_map(|run| run.span_id));
        self.journal_one(&Telling::of(&evaluation, previous, span, (self.serves)())).await;
        Ok(())
    }

    /// Writes down how far it is, at most once a second unless it must.
    fn write(&mut self, must: bool) {
        let is_due = must || self.tried.is_none_or(|at| at.elapsed() >= WRITE_EVERY);
        if !is_due || self.written == Some(self.through) {
            return;
        }
        self.tried = Some(Instant::now());
        match replace(&self.file, &self.through.as_unix_nanos().to_string()) {
            Ok(()) => self.written = Some(self.through),
            Err(error) => tracing::debug!(%error, "how far verdicts were sent could not be written down"),
        }
    }
}

/// Whole or not at all.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let draft = file.with_extension("new");
    fs::write(&draft, text)?;
    fs::rename(draft, file)
}
