//! Reads the lanes ahead, decodes inside a window, and gives the records back in order.

use std::collections::HashSet;
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::task::Poll;

use iris_core::model::{Lane, Timestamp};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::super::worker::{Answer, Panicked, Pool, Task, Work};
use super::Mind;
use super::decode::{Content, Decoded, decode};
use crate::journal::{Entry, Read, Reader};

/// The window is counted in pieces of this size.
pub(super) const PERMIT_BYTES: usize = 1024;
/// Records of one lane that are decoded ahead, however small they are.
const AHEAD_MAX: usize = 256;

/// A record on its way.
pub(super) struct Coming {
    seq: u64,
    arrived: Timestamp,
    decoded: Answer<Decoded>,
    permit: OwnedSemaphorePermit,
}

/// One lane's reader.
pub(super) struct Follow {
    pub lane: Lane,
    pub window: Arc<Semaphore>,
    pub pool: Pool,
    pub mind: Mind,
    pub aside: Arc<HashSet<Work>>,
    pub out: mpsc::Sender<Coming>,
}

impl Follow {
    /// Runs until the journal is closed or nobody takes its records any more.
    pub(super) async fn run(self, mut reader: Reader) {
        loop {
            match reader.next().await {
                Read::Entry(entry) => {
                    if self.take(entry).await.is_none() {
                        return;
                    }
                }
                Read::Gap { first, last } => {
                    tracing::error!(lane = self.lane.as_str(), first, last, "records are missing from the journal");
                }
                Read::Closed => return,
            }
        }
    }

    async fn take(&self, entry: Entry) -> Option<()> {
        let window = super::WINDOW_BYTES / PERMIT_BYTES;
        let weight = entry.record.body.len().div_ceil(PERMIT_BYTES).clamp(1, window);
        let weight = u32::try_from(weight).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.window).acquire_many_owned(weight).await.ok()?;
        let (seq, arrived, lane) = (entry.seq, entry.record.arrived, self.lane);
        let work = Work::Record { lane, seq };
        let decoded = if self.aside.contains(&work) {
            let why = "the process ended while it was decoded, time and again".to_owned();
            let set_aside = move || Decoded { lane, seq, arrived, content: Content::Unreadable(why) };
            self.pool.submit(Task::QUESTION, set_aside).await
        } else {
            let mind = self.mind.clone();
            let task = Task { work: Some(work), alone: None };
            self.pool.submit(task, move || decode(&entry, lane, &mind)).await
        };
        self.out.send(Coming { seq, arrived, decoded, permit }).await.ok()
    }
}

/// The lanes as the owner sees them: the record that came first is next.
#[derive(Default)]
pub(super) struct Feeds {
    lanes: Vec<Feed>,
}

struct Feed {
    lane: Lane,
    queue: mpsc::Receiver<Coming>,
    head: Option<Coming>,
    closed: bool,
}

/// A record for the owner. Its share of the window is held until its rows are with the writer.
pub(super) struct Arrived {
    pub decoded: Decoded,
    pub permit: OwnedSemaphorePermit,
}

impl Feeds {
    /// Adds a lane; what is sent into the channel comes out of [`Feeds::next`].
    pub(super) fn add(&mut self, lane: Lane) -> mpsc::Sender<Coming> {
        let (sender, queue) = mpsc::channel(AHEAD_MAX);
        self.lanes.push(Feed { lane, queue, head: None, closed: false });
        sender
    }

    /// The record with the lowest sequence number among those that are there. Lanes are read independently, so
    /// a lower one may still come from the other lane. Never ends. May be given up and asked again.
    pub(super) async fn next(&mut self) -> Arrived {
        loop {
            for feed in self.lanes.iter_mut().filter(|feed| feed.head.is_none()) {
                feed.head = feed.queue.try_recv().ok();
            }
            let first = self
                .lanes
                .iter_mut()
                .filter(|feed| feed.head.is_some())
                .min_by_key(|feed| feed.head.as_ref().map_or(u64::MAX, |head| head.seq));
            let Some(feed) = first else {
                self.wait().await;
                continue;
            };
            let lane = feed.lane;
            let Some(head) = &mut feed.head else { continue };
            let answer = (&mut head.decoded).await;
            let Some(head) = feed.head.take() else { continue };
            let unreadable = |why: &str| Decoded {
                lane,
                seq: head.seq,
                arrived: head.arrived,
                content: Content::Unreadable(why.to_owned()),
            };
            let decoded = match answer {
                Ok(Ok(decoded)) => decoded,
                Ok(Err(Panicked)) => unreadable("decoding it panicked"),
                // The threads are gone: the process is stopping, and the record must not count as read.
                Err(_) => pending().await,
            };
            return Arrived { decoded, permit: head.permit };
        }
    }

    /// Until a lane has a record.
    async fn wait(&mut self) {
        poll_fn(|context| {
            let mut ready = false;
            for feed in self.lanes.iter_mut().filter(|feed| !feed.closed) {
                match feed.queue.poll_recv(context) {
                    Poll::Ready(Some(coming)) => {
                        feed.head = Some(coming);
                        ready = true;
                    }
                    Poll::Ready(None) => feed.closed = true,
                    Poll::Pending => {}
                }
            }
            if ready { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}
