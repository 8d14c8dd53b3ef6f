//! One lane's task: reads the journal from the cursor, keeps requests under way, and judges what comes back.
//!
//! Bodies are held only while they are under way. One that has to be sent again is read again from the journal,
//! so an outage costs no memory however long it lasts.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use iris_core::model::Lane;
use iris_core::otlp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::ToolTraceWriter;
use super::client::Client;
use super::retry::{Answer, Backoff, Class, random};
use super::status::{Counters, State};
use super::window::{Due, Window};
use crate::deleted::{Deletions, Left};
use crate::journal::{Encoding, Entry, Follower, Journal, Kind, Read, Reader, Record};

/// Once the process is to end, no wait of our own choosing is longer than this.
const HURRY_MAX: Duration = Duration::from_millis(500);
/// A draining lane with nothing to send for this long is done.
pub(super) const DRAIN_QUIET: Duration = Duration::from_millis(100);
/// A record that is read again is on disk; one that does not come within this time will not.
const READ_AGAIN_MAX: Duration = Duration::from_secs(10);
/// Losses are logged once in this time, and counted always.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// What a lane works with; cheap to clone, so that a lane can be started again.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) lane: Lane,
    pub(super) journal: Journal,
    pub(super) client: Arc<Client>,
    pub(super) concurrency: usize,
    pub(super) bytes_max: usize,
    pub(super) backoff: Backoff,
    pub(super) tool_trace: Option<ToolTraceWriter>,
    pub(super) counters: Arc<Counters>,
    /// Nothing of these is sent any more.
    pub(super) deleted: Deletions,
    /// The process is to end.
    pub(super) cancel: CancellationToken,
    /// Until when a draining lane may go on; `None`: not draining.
    pub(super) drain: watch::Receiver<Option<Instant>>,
}

type Reading = Pin<Box<dyn Future<Output = (Reader, Read)> + Send>>;
type Flight = Pin<Box<dyn Future<Output = Landed> + Send>>;

struct Landed {
    seq: u64,
    bytes: usize,
    /// It is the sidecar's own, and nobody waits for it.
    own: bool,
    outcome: Outcome,
}

enum Outcome {
    Answered(Answer),
    /// The journal dropped the record, and counted it; or all of it was deleted.
    Dropped,
    /// The journal cannot read the record any more.
    Unreadable,
}

/// The downstream takes nothing at present.
struct Hold {
    until: Instant,
    failures: u32,
    asked: bool,
    paused: bool,
    /// It was logged.
    told: bool,
}

struct Task {
    setup: Setup,
    window: Window,
    flights: FuturesUnordered<Flight>,
    reading: Option<Reading>,
    /// The next record that was never sent; read, and not under way.
    head: Option<Outgoing>,
    hold: Option<Hold>,
    hurried: bool,
    idle_since: Option<Instant>,
    logged: Option<Instant>,
}

struct Outgoing {
    seq: u64,
    own: bool,
    encoding: Encoding,
    body: Bytes,
}

/// Runs a lane until the journal is closed and everything is answered, or until it has drained.
pub(super) async fn run(setup: Setup) {
    let cursor = setup.journal.forward_cursor(setup.lane);
    setup.counters.cursor.store(cursor, Relaxed);
    let reader = setup.journal.reader(setup.lane, Follower::Forward, cursor);
    let task = Task {
        window: Window::new(cursor),
        flights: FuturesUnordered::new(),
        reading: Some(read_on(reader)),
        head: None,
        hold: None,
        hurried: false,
        idle_since: None,
        logged: None,
        setup,
    };
    task.run().await;
}

/// A read that is never broken off, whatever else happens meanwhile.
fn read_on(mut reader: Reader) -> Reading {
    Box::pin(async move {
        let read = reader.next().await;
        (reader, read)
    })
}

async fn finish(reading: &mut Option<Reading>) -> (Reader, Read) {
    match reading {
        Some(reading) => reading.await,
        None => std::future::pending().await,
    }
}

impl Task {
    async fn run(mut self) {
        loop {
            let now = Instant::now();
            self.launch(now);
            self.show();
            if self.is_done(now) {
                return;
            }
            let wake = tokio::time::Instant::from_std(self.wake(now));
            let may_read = self.head.is_none() && !self.window.is_full();
            tokio::select! {
                Some(landed) = self.flights.next() => self.land(&landed, Instant::now()),
                (reader, read) = finish(&mut self.reading), if may_read => self.take(reader, read),
                () = tokio::time::sleep_until(wake) => {}
                () = self.setup.cancel.cancelled(), if !self.hurried => self.hurry(Instant::now()),
                changed = self.setup.drain.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    self.hurry(Instant::now());
                }
            }
        }
    }

    /// Puts under way what may be.
    fn launch(&mut self, now: Instant) {
        let under_way_max = if self.hold.is_some() { 1 } else { self.setup.concurrency };
        while self.window.flying() < under_way_max && self.hold.as_ref().is_none_or(|hold| hold.until <= now) {
            let fresh = self.head.is_some() && !self.window.is_full();
            if let Some(Due { seq, charge }) = self.window.next_again(now, self.hold.is_some(), fresh) {
                if !self.fits(charge) {
                    return;
                }
                self.window.fly(seq, charge);
                self.flights.push(self.again(seq));
                continue;
            }
            let Some(outgoing) = self.head.take_if(|_| fresh) else { return };
            let charge = self.setup.client.charge(outgoing.encoding, outgoing.body.len());
            if !self.fits(charge) {
                self.head = Some(outgoing);
                return;
            }
            self.window.fly(outgoing.seq, charge);
            let client = Arc::clone(&self.setup.client);
            self.flights.push(Box::pin(send(client, outgoing)));
        }
    }

    /// A record too large for the lane's share is sent alone.
    fn fits(&self, charge: usize) -> bool {
        self.window.flying() == 0 || self.window.flying_bytes() + charge <= self.setup.bytes_max
    }

    /// Reads a record again and sends it.
    fn again(&self, seq: u64) -> Flight {
        let mut reader = self.setup.journal.reader(self.setup.lane, Follower::Forward, seq.saturating_sub(1));
        let client = Arc::clone(&self.setup.client);
        let (lane, tool_trace, deleted) = (self.setup.lane, self.setup.tool_trace, self.setup.deleted.clone());
        Box::pin(async move {
            let read = tokio::time::timeout(READ_AGAIN_MAX, reader.next()).await;
            let outcome = match read {
                Ok(Read::Entry(entry)) if entry.seq == seq => match outgoing(entry, lane, tool_trace, &deleted) {
                    Some(outgoing) => return send(client, outgoing).await,
                    None => Outcome::Dropped,
                },
                Ok(Read::Gap { .. }) => Outcome::Dropped,
                _ => Outcome::Unreadable,
            };
            Landed { seq, bytes: 0, own: false, outcome }
        })
    }

    /// Takes what was read next.
    fn take(&mut self, reader: Reader, read: Read) {
        match read {
            Read::Entry(entry) => {
                let seq = entry.seq;
                self.head = outgoing(entry, self.setup.lane, self.setup.tool_trace, &self.setup.deleted);
                if self.head.is_none() {
                    self.answered(seq);
                }
            }
            Read::Gap { first, last } => {
                // The journal counts what it drops, and says so.
                tracing::debug!(lane = self.setup.lane.as_str(), first, last, "records were dropped unsent");
                self.answered(last);
            }
            Read::Closed => {
                self.reading = None;
                return;
            }
        }
        self.reading = Some(read_on(reader));
    }

    /// Judges what came back.
    fn land(&mut self, landed: &Landed, now: Instant) {
        let seq = landed.seq;
        let counters = &self.setup.counters;
        match landed.outcome {
            Outcome::Answered(Answer::Accepted { rejected }) => {
                counters.sent.fetch_add(1, Relaxed);
                counters.unserved.store(false, Relaxed);
                counters.sent_bytes.fetch_add(landed.bytes as u64, Relaxed);
                counters.rejected_items.fetch_add(rejected, Relaxed);
                let outage_over = self.hold.as_ref().is_some_and(|hold| hold.until <= now);
                self.answered(seq);
                let soon = if outage_over { now } else { now + self.wait(self.setup.backoff.alone(), 1) };
                self.window.neighbours_passed(soon);
                self.well(now);
            }
            Outcome::Answered(Answer::Refused { class }) => {
                counters.set_last_error(class);
                self.lost("the downstream refused a message");
                self.answered(seq);
                self.well(now);
            }
            Outcome::Answered(Answer::Retry { class, asked }) => self.failed(seq, class, asked, false, now),
            Outcome::Answered(Answer::Setup { class }) if landed.own && class.is_missing() => self.unserved(seq, now),
            Outcome::Answered(Answer::Setup { class }) => self.failed(seq, class, None, true, now),
            Outcome::Dropped => self.answered(seq),
            Outcome::Unreadable => {
                self.lost("a message cannot be read from the journal any more");
                self.answered(seq);
            }
        }
    }

    /// A verdict met a downstream without this signal: it is left out, and so is every later one. Records that were
    /// accepted wait instead.
    fn unserved(&mut self, seq: u64, now: Instant) {
        let lane = self.setup.lane.as_str();
        if !self.setup.counters.unserved.swap(true, Relaxed) {
            tracing::warn!(lane, "the downstream does not take this signal, so verdicts are not sent");
        }
        self.answered(seq);
        self.well(now);
    }

    fn failed(&mut self, seq: u64, class: Class, asked: Option<Duration>, setup: bool, now: Instant) {
        self.setup.counters.failed.fetch_add(1, Relaxed);
        self.setup.counters.set_last_error(class);
        let own = self.window.own_failures(seq);
        // While the downstream takes nothing at all, no record is at fault.
        let unwell = self.hold.is_some();
        let blame = class != Class::Connect && (own.is_none() || !unwell);
        let due = match own {
            Some(failures) if asked.is_none() && !unwell => now + self.wait(self.setup.backoff.alone(), failures + 1),
            _ => self.hold(class, asked, setup, now),
        };
        if !self.window.failed(seq, due, asked.is_some(), blame) {
            self.lost("the downstream refused one message again and again while it took others");
            self.answered(seq);
        }
    }

    /// Nothing is sent until the time returned.
    fn hold(&mut self, class: Class, asked: Option<Duration>, paused: bool, now: Instant) -> Instant {
        if let Some(hold) = self.hold.as_mut().filter(|hold| hold.until > now) {
            // One of several that were under way together.
            hold.until = asked.map_or(hold.until, |asked| hold.until.max(now + asked));
            hold.asked |= asked.is_some();
            return hold.until;
        }
        let before = self.hold.take();
        let failures = before.as_ref().map_or(0, |hold| hold.failures).saturating_add(1);
        let wait = asked.unwrap_or_else(|| self.wait(self.setup.backoff, failures));
        let was_told = before.as_ref().is_some_and(|hold| hold.told && hold.paused == paused);
        // A single failure between successes is told by the counters.
        let told = was_told || paused || failures > 1;
        if told && !was_told {
            let lane = self.setup.lane.as_str();
            if paused {
                tracing::error!(lane, %class, "forwarding is paused, nothing is dropped: endpoint or credentials are wrong");
            } else {
                tracing::warn!(lane, %class, "forwarding waits for the downstream");
            }
        }
        let until = now + wait;
        self.hold = Some(Hold { until, failures, asked: asked.is_some(), paused, told });
        until
    }

    /// The downstream answered like one that works.
    fn well(&mut self, now: Instant) {
        if self.hold.take_if(|hold| !hold.asked || hold.until <= now).is_some_and(|hold| hold.told) {
            tracing::info!(lane = self.setup.lane.as_str(), "forwarding goes on");
        }
    }

    fn wait(&self, backoff: Backoff, failures: u32) -> Duration {
        let wait = backoff.wait(failures, random());
        if self.hurried { wait.min(HURRY_MAX) } else { wait }
    }

    fn answered(&mut self, seq: u64) {
        let before = self.window.through();
        self.window.answered(seq);
        self.moved(before);
    }

    fn moved(&self, before: u64) {
        let through = self.window.through();
        if through > before {
            self.setup.journal.forwarded(self.setup.lane, through);
            self.setup.counters.cursor.store(through, Relaxed);
        }
    }

    fn lost(&mut self, why: &'static str) {
        let dropped = self.setup.counters.dropped.fetch_add(1, Relaxed) + 1;
        if self.logged.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
            self.logged = Some(Instant::now());
            tracing::warn!(lane = self.setup.lane.as_str(), dropped, "{why}");
        }
    }

    /// The process is to end: waits of our own choosing are cut short.
    fn hurry(&mut self, now: Instant) {
        self.hurried = true;
        if let Some(hold) = self.hold.as_mut().filter(|hold| !hold.asked) {
            hold.until = hold.until.min(now);
        }
        self.window.hurry(now);
    }

    fn is_idle(&self) -> bool {
        self.window.is_empty() && self.head.is_none()
    }

    fn is_done(&mut self, now: Instant) -> bool {
        let idle_since = if self.is_idle() { Some(*self.idle_since.get_or_insert(now)) } else { None };
        self.idle_since = idle_since;
        let drain_until = *self.setup.drain.borrow();
        match (drain_until, idle_since) {
            (Some(deadline), Some(since)) => now >= deadline || now >= since + DRAIN_QUIET,
            (Some(deadline), None) => now >= deadline,
            (None, Some(_)) => self.reading.is_none(),
            (None, None) => false,
        }
    }

    /// When something is to be done although nothing happened.
    fn wake(&self, now: Instant) -> Instant {
        // Nothing depends on this one; it only ends a wait that has no other end.
        let mut wake = now + LOG_EVERY;
        let held = self.hold.as_ref().map(|hold| hold.until).filter(|until| *until > now);
        let due = self.window.next_due().filter(|due| *due > now);
        wake = wake.min(held.unwrap_or(wake)).min(due.unwrap_or(wake));
        if let Some(deadline) = *self.setup.drain.borrow() {
            wake = wake.min(deadline).min(self.idle_since.map_or(wake, |since| since + DRAIN_QUIET));
        }
        wake
    }

    fn show(&self) {
        let counters = &self.setup.counters;
        counters.in_flight.store(self.window.flying(), Relaxed);
        counters.in_flight_bytes.store(self.window.flying_bytes(), Relaxed);
        counters.set_state(match &self.hold {
            Some(Hold { paused: true, .. }) => State::Paused,
            Some(_) => State::Retrying,
            None if self.is_idle() => State::Idle,
            None if self.window.flying() == 0 && self.head.is_none() => State::Retrying,
            None => State::Sending,
        });
    }
}

/// What is to be sent of a record, `None` when it is none of the downstream's business.
fn outgoing(entry: Entry, lane: Lane, tool_trace: Option<ToolTraceWriter>, deleted: &Deletions) -> Option<Outgoing> {
    let Entry { seq, record, .. } = entry;
    match record.kind {
        Kind::Otlp => {
            let body = standing(&record, lane, deleted)?;
            Some(Outgoing { seq, own: false, encoding: record.encoding, body })
        }
        Kind::Verdict => {
            let body = standing(&record, Lane::Logs, deleted)?;
            Some(Outgoing { seq, own: true, encoding: record.encoding, body })
        }
        Kind::ToolTrace => {
            let body = tool_trace?(&record)?;
            let written = Record { encoding: Encoding::Protobuf, body, ..record };
            let body = standing(&written, lane, deleted)?;
            Some(Outgoing { seq, own: false, encoding: Encoding::Protobuf, body })
        }
        Kind::ToolEvaluation | Kind::Tombstone | Kind::Erased => None,
    }
}

/// The message without what was deleted; nothing when that is all of it.
fn standing(record: &Record, lane: Lane, deleted: &Deletions) -> Option<Bytes> {
    let encoding = match record.encoding {
        Encoding::Protobuf => otlp::Encoding::Protobuf,
        Encoding::Json => otlp::Encoding::Json,
    };
    match deleted.left_of(&record.tenant, lane, encoding, &record.body) {
        Left::All => Some(record.body.clone()),
        Left::Part(body) => Some(body.into()),
        Left::Nothing => None,
    }
}

async fn send(client: Arc<Client>, outgoing: Outgoing) -> Landed {
    let Outgoing { seq, own, encoding, body } = outgoing;
    let bytes = body.len();
    Landed { seq, bytes, own, outcome: Outcome::Answered(client.send(encoding, body).await) }
}
