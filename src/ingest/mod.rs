//! From accepted bytes to judged traces.
//!
//! [`Inlet::submit`] is the one way in for OTLP: it walks a message, answers a resend, appends to the journal
//! and returns only when the record is on disk. [`Admission`] says how many bytes may be on their way there.
//! From there the [`Pipeline`] reads on at its own pace: it decodes, assembles, has the store keep and the rules
//! judge, and begins again where it was after a restart. [`Verdicts`] tell the downstream what was said.
//!
//! Never speaks a protocol (that is `receive`), never writes a file itself (that is `journal` and `store`).
//! Bytes enter as a [`Submission`] with a [`Permit`] and leave as a journal record; that record enters again and
//! leaves as rows, traces and evaluations.

mod admission;
mod costs;
mod counters;
mod duplicates;
mod erase;
mod memory;
mod pipeline;
mod submit;
mod tenants;
mod verdicts;
mod worker;

pub use admission::{Admission, Denied, Permit};
pub use costs::Costs;
pub(crate) use counters::add;
pub use counters::{DoorCounters, LaneCounters, ReceiveCounters, RequestCounters};
pub use duplicates::REMEMBERED_MAX;
pub use erase::Eraser;
pub use memory::{DEFAULT_LIMIT_BYTES, limit_bytes};
pub use pipeline::{Judge, Judging, LaneLag, Mind, Parts, Pipeline, PipelineStatus, Said, SetAside, Tell};
pub use submit::{Accepted, Append, Inlet, Refused, Submission};
pub use verdicts::{Serves, Verdicts, Work as VerdictWork};
