//! What can be told about a lane from outside, kept in atomics that its task alone writes.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use iris_core::model::Lane;
use serde::Serialize;

use super::retry::Class;
use crate::journal::LaneStatus;

/// What a lane is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Everything is sent.
    Idle,
    /// Records are being sent, and taken.
    Sending,
    /// The downstream takes nothing at present; tried again by itself.
    Retrying,
    /// Something is set up wrongly, here or downstream: nothing is dropped, and it is tried again by itself.
    Paused,
}

/// One lane's standing, for `/readyz?full` and metrics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForwardStatus {
    /// Which lane.
    pub lane: Lane,
    /// What it is doing.
    pub state: State,
    /// What went wrong last, such as `connect`, `timeout`, `http_401`, `grpc_Unavailable`; kept when it is over.
    pub last_error_class: Option<String>,
    /// Records that the downstream took.
    pub sent: u64,
    /// Bytes of those, before compression.
    pub sent_bytes: u64,
    /// Attempts that failed and are made again.
    pub failed: u64,
    /// Records that will never be sent: refused for what they hold, or dropped by the journal because the
    /// downstream was behind by more than it holds.
    pub dropped: u64,
    /// Items that the downstream did not take from messages that it took.
    pub rejected_items: u64,
    /// Requests under way.
    pub in_flight: usize,
    /// Bytes those hold.
    pub in_flight_bytes: usize,
    /// The end of the unbroken run of answered records.
    pub cursor: u64,
    /// Records that are still to be answered, at most: the journal's oldest file with one of them counts whole.
    pub lag_records: u64,
    /// Bytes of those.
    pub lag_bytes: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    state: AtomicU8,
    last_error: Mutex<Option<Class>>,
    pub(super) sent: AtomicU64,
    pub(super) sent_bytes: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) rejected_items: AtomicU64,
    pub(super) in_flight: AtomicUsize,
    pub(super) in_flight_bytes: AtomicUsize,
    pub(super) cursor: AtomicU64,
    /// The downstream has no service for this signal.
    pub(super) unserved: AtomicBool,
}

impl Counters {
    pub(super) fn set_state(&self, state: State) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    fn state(&self) -> State {
        [State::Idle, State::Sending, State::Retrying, State::Paused]
            .into_iter()
            .find(|state| *state as u8 == self.state.load(Ordering::Relaxed))
            .unwrap_or(State::Idle)
    }

    pub(super) fn set_last_error(&self, class: Class) {
        *self.last_error.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(class);
    }

    /// A snapshot, with what the journal says of the lane.
    pub(super) fn status(&self, lane: Lane, journal: Option<&LaneStatus>) -> ForwardStatus {
        let last = *self.last_error.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        ForwardStatus {
            lane,
            state: self.state(),
            last_error_class: last.map(|class| class.to_string()),
            sent: self.sent.load(Ordering::Relaxed),
            sent_bytes: self.sent_bytes.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed) + journal.map_or(0, |journal| journal.dropped_records),
            rejected_items: self.rejected_items.load(Ordering::Relaxed),
            in_flight: self.in_flight.load(Ordering::Relaxed),
            in_flight_bytes: self.in_flight_bytes.load(Ordering::Relaxed),
            cursor: self.cursor.load(Ordering::Relaxed),
            lag_records: journal.map_or(0, |journal| journal.unforwarded_records),
            lag_bytes: journal.map_or(0, |journal| journal.unforwarded_bytes),
        }
    }
}
