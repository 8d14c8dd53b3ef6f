//! From journalled requests to stored, judged traces.
//!
//! One follower a lane reads the journal after `stored_through` and has each record decoded and read by the
//! dialects on the workers, inside a window of bytes. One owner task takes the decoded records in lane order,
//! drives `iris_core::assemble`, hands settled traces to the workers to be understood and judged, and is the only
//! one that sends ordinary writes to the store. Back-pressure runs from the store's queue through the owner's
//! outbox and the window to the journal, and nobody waits the other way round: workers and store answer through
//! channels that cannot be full.
//!
//! Never answers a client, never writes a file but `home/in-work`, never decides when a trace is finished or what
//! its verdict is. Data enters from the journal and leaves as [`Write`](crate::store::Write)s; questions about open
//! traces enter through [`Pipeline::open_trace`] and its neighbour.

mod decode;
mod follow;
mod judge;
mod owner;
mod said;
mod shown;
mod status;
mod suspects;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use iris_core::assemble::{Assembler, Config, Settings, Settled};
use iris_core::model::{Lane, RowKey};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::costs::Costs;
use super::worker::{InWork, Pool, Task};
use crate::deleted::Deletions;
use crate::journal::{Follower, Journal};
use crate::store::{Boot, Store, Through};
use follow::{Feeds, Follow};
pub use judge::{Judge, Judging, Mind, Tell};
use owner::{Command, Owner};
pub use said::Said;
pub use status::{LaneLag, PipelineStatus, SetAside};

/// Bytes of journal records that are decoded and not yet taken by the writer: several times that in memory.
const WINDOW_BYTES: usize = 2 << 20;
/// The lanes the store follows.
const LANES: [Lane; 2] = [Lane::Traces, Lane::Logs];
/// Commands that wait for the owner before their senders do.
const COMMANDS_MAX: usize = 64;

/// What the pipeline works with.
pub struct Parts {
    /// Where `in-work` lies.
    pub home: PathBuf,
    /// What is read.
    pub journal: Journal,
    /// What is written.
    pub store: Store,
    /// What must not come back.
    pub deleted: Deletions,
    /// The pure half.
    pub mind: Mind,
}

/// The handle; clones share one pipeline.
#[derive(Clone)]
pub struct Pipeline {
    inner: Arc<Inner>,
}

struct Inner {
    commands: mpsc::Sender<Command>,
    store: Store,
    pool: Pool,
    mind: Mind,
    status: Arc<Mutex<PipelineStatus>>,
    stop: CancellationToken,
    tasks: TaskTracker,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Pipeline {
    /// Starts reading after what the store has. Returns once work that an earlier process may have died of was
    /// tried alone.
    ///
    /// # Errors
    /// When `home/in-work` cannot be opened or a thread cannot be started.
    pub async fn start(parts: Parts, config: &Config, keep_other_traces: bool, boot: Boot) -> io::Result<Self> {
        let Parts { home, journal, store, deleted, mind } = parts;
        let (in_work, suspects) = InWork::open(&home)?;
        let in_work = Arc::new(in_work);
        let workers = std::thread::available_parallelism().map_or(1, |cpus| cpus.get().saturating_sub(1).max(1));
        let (pool, threads) = Pool::start(workers, Arc::clone(&in_work))?;
        let suspects = suspects::try_alone(suspects, &journal, &pool, &mind, in_work, boot.stored_through).await?;

        let settings = Settings { keep_other_traces, ..Settings::default() };
        let covered = pushed(boot.stored_through);
        let mut assembler = Assembler::new(*config, settings, covered).with_forgotten(boot.forgotten);
        boot.known.iter().for_each(|known| assembler.remember(known));
        assembler.forgot(boot.horizon);
        for key in &boot.reopen {
            assembler.reopen(Duration::ZERO, key, pushed(boot.settled_through));
        }

        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let window = Arc::new(Semaphore::new(WINDOW_BYTES / follow::PERMIT_BYTES));
        let mut feeds = Feeds::default();
        for lane in LANES {
            let reader = journal.reader(lane, Follower::Store, boot.stored_through.of(lane));
            let follow = Follow {
                lane,
                window: Arc::clone(&window),
                pool: pool.clone(),
                mind: mind.clone(),
                aside: Arc::clone(&suspects.aside),
                out: feeds.add(lane),
            };
            let stop = stop.clone();
            tasks.spawn(async move { stop.run_until_cancelled(follow.run(reader)).await });
        }
        let (commands, requests) = mpsc::channel(COMMANDS_MAX);
        let status = Arc::new(Mutex::new(PipelineStatus::default()));
        let owner = Owner::new(owner::Rooms {
            assembler,
            journal,
            store: store.clone(),
            deleted,
            pool: pool.clone(),
            mind: mind.clone(),
            feeds,
            requests,
            stored: boot.stored,
            suspects,
            status: Arc::clone(&status),
        });
        let ended = stop.clone();
        tasks.spawn(async move {
            // The followers have nobody to read for once the owner has ended, for whatever reason.
            let _end = ended.clone().drop_guard();
            ended.run_until_cancelled(owner.run()).await;
        });
        let (costs, stored) = (mind.costs.clone(), store.clone());
        let ended = stop.clone();
        tasks.spawn(async move {
            match ended.run_until_cancelled(stored.costs()).await {
                Some(Ok(known)) => costs.learn(known),
                Some(Err(error)) => {
                    tracing::warn!(%error, "what earlier runs cost could not be read; cost_anomaly waits for new ones");
                }
                None => {}
            }
        });
        tasks.close();
        let inner = Inner { commands, store, pool, mind, status, stop, tasks, threads: Mutex::new(threads) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Lets go of an open trace that was deleted; what of it waited is not stored.
    pub async fn forget(&self, key: &RowKey) {
        let (answer, done) = oneshot::channel();
        if self.inner.commands.send(Command::Forget(key.clone(), answer)).await.is_ok() {
            // An error means that the pipeline ended, and with it every open trace.
            let _ = done.await;
        }
    }

    /// What the newest runs of each agent cost.
    pub fn costs(&self) -> &Costs {
        &self.inner.mind.costs
    }

    /// How far it is, for `/readyz?full` and the metrics.
    pub fn status(&self) -> PipelineStatus {
        let mut status = self.inner.status.lock().unwrap_or_else(PoisonError::into_inner).clone();
        status.panics = self.inner.pool.panics();
        status
    }

    /// Stops reading, judges what has settled, hands everything to the store and ends. Open traces are left for
    /// the next start, which finds them in the journal and the store.
    pub async fn drain(&self, deadline: Duration) {
        let (answer, done) = oneshot::channel();
        let drained = async {
            if self.inner.commands.send(Command::Drain(answer)).await.is_ok() {
                // An error means that the owner has ended already.
                let _ = done.await;
            }
        };
        if tokio::time::timeout(deadline, drained).await.is_err() {
            tracing::warn!(
                deadline_ms = deadline.as_millis(),
                "what had settled was not judged in time; the next start does it"
            );
        }
        self.inner.stop.cancel();
        self.inner.tasks.wait().await;
        // The threads end with the last handle of the pool; they are not waited for, because a handle is here.
        self.inner.threads.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Ends as a kill would: nothing is finished, nothing handed on. Returns once the workers have nothing in hand.
    pub async fn end(&self) {
        self.inner.stop.cancel();
        self.inner.tasks.wait().await;
        let alone = Task { work: None, alone: Some(0) };
        // An error says that they have ended.
        let _ = self.inner.pool.submit(alone, || ()).await.await;
    }
}

/// The store's positions as the Assembler counts them.
fn pushed(through: Through) -> Settled {
    Settled { traces: through.traces, logs: through.logs }
}

/// Traces that are judged alone, with how often they were.
type Careful = HashMap<u64, u8>;
