//! `delete_trace`: remove one stored trace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arguments, Code, Hints, Prose, Scope, Tool};

/// The tool.
pub struct DeleteTrace;

/// Arguments of `delete_trace`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The trace's id: 32 hex digits.
    #[schemars(regex(pattern = "^[0-9a-f]{32}$"))]
    pub trace_id: String,
}

/// Reply of `delete_trace`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reply {
    /// True when a trace was removed; false when none with that id existed for this tenant, which is no error.
    pub deleted: bool,
    /// The id that was asked for.
    pub trace_id: String,
    /// Where bytes of it may still be, and until when; also for a trace that was deleted before. Absent when none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erasure: Option<Erasure>,
}

/// Where bytes of a deleted trace may still be. Nothing can be read of it any more, whatever stands here.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Erasure {
    /// In the database file.
    pub store: Bytes,
    /// In the journal of what was received.
    pub journal: Bytes,
    /// In the collector that traces are forwarded to.
    pub downstream: Downstream,
}

/// When bytes go.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Bytes {
    /// `due`: they go by `due_at`; `done`: none is left.
    pub state: BytesState,
    /// ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_at: Option<String>,
}

/// See [`Bytes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BytesState {
    /// They go by `due_at`.
    Due,
    /// None is left.
    Done,
}

/// What the collector has of a deleted trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Downstream {
    /// It may have been sent: delete it there too.
    Sent,
    /// No collector is configured.
    None,
}

impl Arguments for Args {}

impl Tool for DeleteTrace {
    const NAME: &'static str = "delete_trace";
    const TITLE: &'static str = "Delete a trace";
    const PROSE: Prose = Prose {
        summary: "Removes one trace by its id, with its spans; evaluations of it keep their verdict and lose every word of it.",
        does: "Deletes the trace of the caller's tenant, its spans and every version in one transaction. Evaluations linked to it keep verdict, \
               scores, criticality and evidence offsets; output, expected text, suggestions and messages are erased and erased_at is set. Spans of \
               the trace that come later are dropped, and what names it is forwarded no more. erasure says until when bytes of it may still lie \
               on this disk; ask again to see it done. No audit entry is written: traces are user data, not policy.",
        not_for: "To expire old data in bulk (retention.days). To delete evaluations: retention does that. To change a trace: delete it and log it \
                  again.",
        errors: "An id that is unknown, already deleted or another tenant's answers deleted: false.",
    };
    const ERRORS: &'static [Code] = &[Code::StorageError];
    const SIBLINGS: &'static [(&'static str, &'static str)] = &[
        ("get_traces", "find the trace_id"),
        ("log_trace", "record it again"),
        ("delete_rule", "remove a rule instead"),
    ];
    const SCOPE: Scope = Scope::Admin;
    const HINTS: Hints = Hints { read_only: false, destructive: true, idempotent: true, open_world: false };
    type Args = Args;
    type Reply = Reply;
}
