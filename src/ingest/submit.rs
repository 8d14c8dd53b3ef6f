//! One message on its way to the journal.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use iris_core::dialect;
use iris_core::model::{Lane, Tenant, Timestamp};
use iris_core::otlp::{self, Encoding, Limits, Refusal, Walked};
use iris_core::redact::Redactor;
use tokio_util::task::TaskTracker;

use super::admission::{Denied, Permit};
use super::counters::{LaneCounters, ReceiveCounters, add};
use super::duplicates::{Claim, Window, Writing};
use super::tenants;
use crate::deleted::{Deletions, Left};
use crate::journal::{self, AppendError, Door, Journal, Kind, Record};

/// Bodies above this are walked on the blocking pool, JSON of any size, and everything that is redacted: a walk takes
/// about a millisecond for a megabyte of protobuf, and sockets should not wait for it.
const WALK_HERE_MAX_BYTES: usize = 256 * 1024;

/// When to come back after a refusal that names no time of its own.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How a record and its hash are made durable. A field, so that a test can delay or fail it.
pub type Append = Arc<dyn Fn(Lane, Record, u128) -> BoxFuture<'static, Result<u64, AppendError>> + Send + Sync>;

/// One OTLP message, content decoding undone.
#[derive(Debug, Clone)]
pub struct Submission {
    /// The signal.
    pub lane: Lane,
    /// Whose.
    pub tenant: Tenant,
    /// Whether a resource in it may be another's, and say so.
    pub names_tenants: bool,
    /// The door it came in by.
    pub door: Door,
    /// How the body is written.
    pub encoding: Encoding,
    /// The message.
    pub body: Bytes,
}

/// What was accepted is on disk, or is known not to be kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Accepted {
    /// Items that were cut out.
    pub rejected: u64,
    /// Why, when some were.
    pub message: Option<String>,
}

/// Why nothing of a message was taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is not OTLP.
    #[error("{why}")]
    Malformed {
        /// What is wrong, and where.
        why: String,
    },
    /// It is larger than allowed.
    #[error("larger than {bytes_max} bytes")]
    TooLarge {
        /// The most that is allowed.
        bytes_max: u64,
    },
    /// It has more items than allowed.
    #[error("more than {max} items: at least {items}")]
    TooMany {
        /// How many were counted.
        items: usize,
        /// The most that is allowed.
        max: usize,
    },
    /// No memory for it now.
    #[error("busy, try again in {} ms", retry_after.as_millis())]
    Busy {
        /// When to come back.
        retry_after: Duration,
    },
    /// The journal has no room for it now.
    #[error("the journal is full, try again in {} ms", retry_after.as_millis())]
    Full {
        /// When to come back.
        retry_after: Duration,
    },
    /// The journal's disk failed.
    #[error("the journal cannot be written")]
    Disk,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::TooMany { items, max } => Self::TooMany { items, max },
            malformed => Self::Malformed { why: malformed.to_string() },
        }
    }
}

impl From<Denied> for Refused {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Busy => Self::Busy { retry_after: RETRY_AFTER },
            Denied::TooLarge { bytes_max } => Self::TooLarge { bytes_max },
        }
    }
}

impl From<AppendError> for Refused {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Full { retry_after } => Self::Full { retry_after },
            AppendError::TooLarge { bytes_max, .. } => Self::TooLarge { bytes_max },
            AppendError::Closed => Self::Full { retry_after: RETRY_AFTER },
            AppendError::Disk(_) => Self::Disk,
        }
    }
}

/// The one way in for OTLP. Clones share everything.
#[derive(Clone)]
pub struct Inlet(Arc<Shared>);

struct Shared {
    journal: Journal,
    append: Append,
    /// Whether a downstream is set.
    forwarding: bool,
    window: Window,
    counters: Arc<ReceiveCounters>,
    writes: TaskTracker,
    deleted: OnceLock<Deletions>,
    redactor: OnceLock<Arc<Redactor>>,
}

impl Inlet {
    /// An inlet to `journal`. `accepted` are the hashes of messages accepted before, oldest first, as the journal
    /// recovered them.
    pub fn new(
        journal: Journal,
        accepted: impl IntoIterator<Item = u128>,
        forwarding: bool,
        counters: Arc<ReceiveCounters>,
    ) -> Self {
        let appender = journal.clone();
        let append: Append = Arc::new(move |lane, record, hash| {
            let journal = appender.clone();
            Box::pin(async move { journal.append_hashed(lane, record, hash).await })
        });
        Self::with_append(journal, append, accepted, forwarding, counters)
    }

    /// The same with another way of making a record durable; `journal` only hashes then.
    pub fn with_append(
        journal: Journal,
        append: Append,
        accepted: impl IntoIterator<Item = u128>,
        forwarding: bool,
        counters: Arc<ReceiveCounters>,
    ) -> Self {
        let (window, writes) = (Window::with(accepted), TaskTracker::new());
        let (deleted, redactor) = (OnceLock::new(), OnceLock::new());
        Self(Arc::new(Shared { journal, append, forwarding, window, counters, writes, deleted, redactor }))
    }

    /// From here on nothing of what is deleted is kept: it is acknowledged and goes nowhere.
    pub fn obey(&self, deleted: &Deletions) {
        // Whoever came first stays: there is one list in a process.
        let _ = self.0.deleted.set(deleted.clone());
    }

    /// From here on what the redactor takes out is never kept or sent on. Before anything is submitted.
    pub fn redact(&self, redactor: &Arc<Redactor>) {
        // Whoever came first stays, as above.
        let _ = self.0.redactor.set(Arc::clone(redactor));
    }

    /// What came in so far.
    pub fn counters(&self) -> &Arc<ReceiveCounters> {
        &self.0.counters
    }

    /// Walks the message, answers a resend, makes the rest durable. `Ok` means that the journal has synced what
    /// was accepted. `permit` covers the body and is held until then, even if the caller stops waiting.
    ///
    /// # Errors
    /// Nothing of the message was taken, and [`Refused`] says why.
    pub async fn submit(&self, submission: Submission, permit: Permit) -> Result<Accepted, Refused> {
        let (door, lane) = (submission.door, submission.lane);
        let Walk { walked, parts } = self.walk(submission, permit).await?;
        let counters = self.0.counters.door(door).lane(lane);
        let items = walked.items;
        let accepted = Accepted { rejected: walked.rejected, message: walked.message };
        let mut result = Ok(());
        for part in parts {
            // What is written before one fails is known when the sender sends the message again.
            if result.is_ok() {
                result = self.keep(part, counters).await;
            }
        }
        match &result {
            Ok(()) => {
                add(&counters.accepted, items);
                add(&counters.rejected, accepted.rejected);
            }
            Err(Refused::Disk) => add(&counters.failed, items),
            Err(_) => add(&counters.refused, items),
        }
        result.map(|()| accepted)
    }

    /// Waits for the writes that are under way. Nothing may be submitted after.
    pub async fn close(&self) {
        self.0.writes.close();
        self.0.writes.wait().await;
    }

    async fn walk(&self, submission: Submission, permit: Permit) -> Result<Walk, Refused> {
        let is_quick = submission.encoding == Encoding::Protobuf && submission.body.len() <= WALK_HERE_MAX_BYTES;
        if is_quick && self.0.redactor.get().is_none() {
            return Walk::over(submission, permit, &self.0);
        }
        // The permit goes along: if the caller stops waiting, the body lives until the walk ends.
        let shared = Arc::clone(&self.0);
        let walk = tokio::task::spawn_blocking(move || Walk::over(submission, permit, &shared));
        walk.await.unwrap_or_else(|_| Err(Refused::Malformed { why: "the message cannot be read".to_owned() }))
    }

    async fn keep(&self, part: Part, counters: &LaneCounters) -> Result<(), Refused> {
        let items = part.items;
        if items == 0 {
            return Ok(());
        }
        if !part.is_wanted {
            add(&counters.unkept, items);
            return Ok(());
        }
        match self.0.window.claim(part.hash) {
            Claim::New(writing) => self.write(part, writing).await,
            Claim::Accepted => {
                add(&counters.resent, items);
                Ok(())
            }
            Claim::Writing(waiting) => {
                let outcome = waiting.outcome().await.unwrap_or(Err(Refused::Busy { retry_after: RETRY_AFTER }));
                if outcome.is_ok() {
                    add(&counters.resent, items);
                }
                outcome
            }
        }
    }

    /// Writes in a task of its own: a sender that gives up and sends again must find its message known.
    async fn write(&self, part: Part, writing: Writing) -> Result<(), Refused> {
        let shared = Arc::clone(&self.0);
        let task = self.0.writes.spawn(async move {
            let Part { submission, permit, hash, .. } = part;
            let (lane, record) = (submission.lane, record(submission));
            let outcome = (shared.append)(lane, record, hash).await.map(|_| ()).map_err(Refused::from);
            writing.end(outcome.clone());
            drop(permit);
            outcome
        });
        // A panic in the journal is a write nobody may count on.
        task.await.unwrap_or(Err(Refused::Disk))
    }
}

/// A message that was walked.
struct Walk {
    walked: Walked,
    /// What was accepted of it, a part a tenant.
    parts: Vec<Part>,
}

/// What one tenant has of a message.
struct Part {
    submission: Submission,
    items: u64,
    /// Whether anybody will read it: the forwarder, or something here.
    is_wanted: bool,
    hash: u128,
    permit: Arc<Permit>,
}

impl Walk {
    fn over(mut submission: Submission, mut permit: Permit, shared: &Shared) -> Result<Self, Refused> {
        let mut walked = otlp::walk(submission.lane, submission.encoding, &submission.body, &Limits::default())?;
        if let Some(rewritten) = walked.rewritten.take() {
            submission.body = rewritten.into();
        }
        let shares = tenants::shares(submission, &mut walked, &mut permit, &shared.counters)?;
        let permit = Arc::new(permit);
        let part = |(submission, items)| Part::of(submission, items, Arc::clone(&permit), shared);
        let parts = shares.into_iter().map(part).collect::<Result<_, _>>()?;
        Ok(Self { walked, parts })
    }
}

impl Part {
    fn of(mut submission: Submission, items: u64, permit: Arc<Permit>, shared: &Shared) -> Result<Self, Refused> {
        let left = shared.deleted.get().map_or(Left::All, |deleted| {
            deleted.left_of(&submission.tenant, submission.lane, submission.encoding, &submission.body)
        });
        let is_gone = left == Left::Nothing;
        if let Left::Part(body) = left {
            submission.body = body.into();
        }
        let is_wanted = !is_gone && (shared.forwarding || is_read_here(&submission)?);
        if let Some(redactor) = shared.redactor.get().filter(|_| is_wanted) {
            submission.body = redactor.body(submission.lane, submission.encoding, &submission.body)?.into();
            submission.encoding = Encoding::Protobuf;
        }
        let hash = shared.journal.hash(&submission.tenant, submission.lane, &submission.body);
        Ok(Self { submission, items, is_wanted, hash, permit })
    }
}

/// Whether something here reads the message: spans always, logs when a dialect does, metrics never.
fn is_read_here(submission: &Submission) -> Result<bool, Refusal> {
    match submission.lane {
        Lane::Traces => Ok(true),
        Lane::Logs => otlp::has_log_event(submission.encoding, &submission.body, &mut dialect::wants_log),
        Lane::Metrics => Ok(false),
    }
}

fn record(submission: Submission) -> Record {
    let Submission { tenant, door, encoding, body, .. } = submission;
    let encoding = match encoding {
        Encoding::Protobuf => journal::Encoding::Protobuf,
        Encoding::Json => journal::Encoding::Json,
    };
    Record { kind: Kind::Otlp, tenant, door, encoding, arrived: now(), body }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}
