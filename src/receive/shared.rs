//! What both OTLP doors share: who may come in, and the way of one message from its first byte to its answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::HeaderMap;
use iris_core::contract::Scope;
use iris_core::model::{Lane, Tenant};
use iris_core::otlp::Encoding;
use tokio::sync::Semaphore;

use super::fault::{Fault, READ_TIMEOUT, Reason};
use super::intake::{self, Compression};
use crate::door::{Guard, KeyRing, Unwelcome};
use crate::ingest::{Accepted, Admission, DoorCounters, Inlet, Permit, Submission};
use crate::journal;
use crate::telemetry::Seldom;

/// How many bodies are decompressed at a time, at both doors together. The wait is for work, never for a
/// sender: a body is whole before it waits.
const INFLATING_MAX: usize = 4;

/// What came to a door that does not serve it: by door, and by the status of the answer.
static MISDIRECTED: Seldom<(&str, u16)> = Seldom::new();

/// One door.
pub(super) struct Door {
    pub(super) kind: journal::Door,
    /// The names it answers to.
    pub(super) guard: Guard,
    /// Where the other door is, for those who came to the wrong one.
    pub(super) other: Option<std::net::SocketAddr>,
    pub(super) shared: Arc<Shared>,
}

/// Who sends a message.
pub(super) struct Sender {
    tenant: Tenant,
    /// Whether what is in it may be another's.
    names_tenants: bool,
}

/// What the doors hold in common.
pub(super) struct Shared {
    pub(super) inlet: Inlet,
    pub(super) admission: Admission,
    pub(super) body_bytes_max: usize,
    /// Who may send; when there are none, everybody.
    pub(super) keys: KeyRing,
    /// How long a whole body may take to arrive.
    pub(super) read_timeout: Duration,
    inflating: Semaphore,
    activity: Activity,
}

impl Shared {
    pub(super) fn new(inlet: Inlet, admission: Admission, body_bytes_max: usize, keys: KeyRing) -> Self {
        Self {
            inlet,
            admission,
            body_bytes_max,
            keys,
            read_timeout: READ_TIMEOUT,
            inflating: Semaphore::new(INFLATING_MAX),
            activity: Activity::default(),
        }
    }

    pub(super) fn activity(&self) -> &Activity {
        &self.activity
    }
}

impl Door {
    pub(super) fn counters(&self) -> &DoorCounters {
        self.shared.inlet.counters().door(self.kind)
    }

    /// Counts a request that is not accepted. One that belongs elsewhere is also logged, seldom: whoever set up the sender
    /// reads logs rather than the answers that an SDK throws away.
    pub(super) fn refused(&self, fault: &Fault) {
        fault.count(&self.counters().requests);
        if fault.reason != Reason::Misdirected {
            return;
        }
        let door = if self.kind == journal::Door::Grpc { "grpc" } else { "http" };
        if let Some(times) = MISDIRECTED.happened((door, fault.http.as_u16())) {
            let hint = fault.message.trim_end();
            tracing::warn!(door, times, hint, "a request came that this door does not serve");
        }
    }

    /// Whose data is sent here. Refuses who does not carry a key that may write, when there are any.
    pub(super) fn authenticate(&self, headers: &HeaderMap) -> Result<Sender, Fault> {
        let keys = self.shared.keys.now();
        if keys.is_empty() {
            return Ok(Sender { tenant: Tenant::local(), names_tenants: false });
        }
        let holder = keys.admit(headers)?;
        match holder.scopes.contains(&Scope::Write) {
            true => Ok(Sender { tenant: holder.tenant.clone(), names_tenants: holder.may_set_tenant }),
            false => Err(Unwelcome::Wrong.into()),
        }
    }

    /// Undoes the compression, and submits.
    pub(super) async fn take(
        &self,
        sender: Sender,
        lane: Lane,
        encoding: Encoding,
        compression: Option<Compression>,
        body: bytes::Bytes,
        permit: Permit,
    ) -> Result<Accepted, Fault> {
        let (body, permit) = match compression {
            None => (body, permit),
            Some(compression) => {
                // Nobody closes this semaphore.
                let _slot = self.shared.inflating.acquire().await.map_err(|_| Fault::busy())?;
                intake::inflate(compression, body, self.shared.body_bytes_max, permit).await?
            }
        };
        let Sender { tenant, names_tenants } = sender;
        let submission = Submission { lane, tenant, names_tenants, door: self.kind, encoding, body };
        Ok(self.shared.inlet.submit(submission, permit).await?)
    }
}

/// When the doors were last used.
#[derive(Debug)]
pub(super) struct Activity {
    born: Instant,
    running: AtomicU64,
    last_ms: AtomicU64,
}

impl Default for Activity {
    fn default() -> Self {
        Self { born: Instant::now(), running: AtomicU64::new(0), last_ms: AtomicU64::new(0) }
    }
}

impl Activity {
    /// A request begins; it ends when what is returned is dropped.
    pub(super) fn begin(&self) -> Running<'_> {
        self.running.fetch_add(1, Ordering::Relaxed);
        Running(self)
    }

    /// How long no request has been running, in milliseconds; zero while one is.
    pub(super) fn quiet_ms(&self) -> u64 {
        if self.running.load(Ordering::Relaxed) > 0 {
            return 0;
        }
        self.now_ms().saturating_sub(self.last_ms.load(Ordering::Relaxed))
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A request that is running.
pub(super) struct Running<'a>(&'a Activity);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.last_ms.store(self.0.now_ms(), Ordering::Relaxed);
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}
