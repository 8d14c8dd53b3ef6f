//! Why a request is not answered with success, in words both protocols can say, and `google.rpc.Status`.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use prost::Message;
use serde_json::{Value, json};
use tonic::Code;

use crate::door;
use crate::ingest::{Denied, Refused, RequestCounters, add};

/// How long a whole body may take to arrive. Counted from its request, so that a byte now and then buys nothing.
pub(super) const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// When to come back after having been told that there is no memory.
const BUSY_RETRY_AFTER: Duration = Duration::from_secs(1);

/// When to come back after the journal's disk failed.
const DISK_RETRY_AFTER: Duration = Duration::from_secs(5);

/// Answers stay small: OTLP asks for a limit on responses, and a message is for a person to read.
const MESSAGE_BYTES_MAX: usize = 1024;

/// Why a request is counted as not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    Malformed,
    TooLarge,
    Busy,
    Full,
    Failed,
    TimedOut,
    Aborted,
    Unauthenticated,
    Foreign,
    Misdirected,
}

/// A refusal: the code for each protocol, the words, and when to come back if that would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) reason: Reason,
    pub(super) code: Code,
    pub(super) http: StatusCode,
    pub(super) message: String,
    pub(super) retry_after: Option<Duration>,
}

impl Fault {
    fn new(reason: Reason, code: Code, http: StatusCode, message: impl Into<String>) -> Self {
        Self { reason, code, http, message: shortened(message.into()), retry_after: None }
    }

    fn retryable(reason: Reason, message: &str, retry_after: Duration) -> Self {
        let retry_after = Some(retry_after.max(Duration::from_secs(1)));
        Self { retry_after, ..Self::new(reason, Code::Unavailable, StatusCode::SERVICE_UNAVAILABLE, message) }
    }

    /// The bytes are not what they should be; sending them again will not help.
    pub(super) fn malformed(message: impl Into<String>) -> Self {
        Self::new(Reason::Malformed, Code::InvalidArgument, StatusCode::BAD_REQUEST, message)
    }

    /// Larger than allowed. Without a time to come back: a client must not send it again.
    pub(super) fn too_large(bytes_max: u64) -> Self {
        let message =
            format!("the message is larger than {bytes_max} bytes after decompression (receive.body_bytes_max)");
        Self::new(Reason::TooLarge, Code::ResourceExhausted, StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    /// No memory now.
    pub(super) fn busy() -> Self {
        Self::retryable(Reason::Busy, "too many bytes are being received, try again", BUSY_RETRY_AFTER)
    }

    /// The body did not arrive in time.
    pub(super) fn timed_out() -> Self {
        let message = format!("the message did not arrive within {} s", READ_TIMEOUT.as_secs());
        Self::new(Reason::TimedOut, Code::DeadlineExceeded, StatusCode::REQUEST_TIMEOUT, message)
    }

    /// The sender went away; nobody reads this.
    pub(super) fn aborted() -> Self {
        let message = "the message ended before it was whole";
        Self::new(Reason::Aborted, Code::Cancelled, StatusCode::BAD_REQUEST, message)
    }

    /// Not served here; the message says what is.
    pub(super) fn misdirected(http: StatusCode, message: impl Into<String>) -> Self {
        Self::new(Reason::Misdirected, Code::Unimplemented, http, message)
    }

    /// Counts the request under its reason.
    pub(super) fn count(&self, counters: &RequestCounters) {
        let counter = match self.reason {
            Reason::Malformed => &counters.malformed,
            Reason::TooLarge => &counters.too_large,
            Reason::Busy => &counters.busy,
            Reason::Full => &counters.full,
            Reason::Failed => &counters.failed,
            Reason::TimedOut => &counters.timed_out,
            Reason::Aborted => &counters.aborted,
            Reason::Unauthenticated => &counters.unauthenticated,
            Reason::Foreign => &counters.foreign,
            Reason::Misdirected => &counters.misdirected,
        };
        add(counter, 1);
    }

    /// Whole seconds for `Retry-After`, rounded up.
    pub(super) fn retry_after_s(&self) -> Option<u64> {
        self.retry_after.map(|wait| wait.as_millis().div_ceil(1000)).and_then(|s| u64::try_from(s).ok())
    }

    /// As `google.rpc.Status`, with `RetryInfo` or `BadRequest` where they belong.
    pub(super) fn to_protobuf(&self) -> Bytes {
        let mut details = Vec::new();
        if let Some(wait) = self.retry_after {
            let seconds = i64::try_from(wait.as_secs()).unwrap_or(i64::MAX);
            let nanos = i32::try_from(wait.subsec_nanos()).unwrap_or(0);
            let info = RetryInfo { retry_delay: Some(Wait { seconds, nanos }) };
            details.push(Detail { type_url: RETRY_INFO.to_owned(), value: info.encode_to_vec() });
        }
        if self.reason == Reason::Malformed {
            let violation = Violation { field: BODY.to_owned(), description: self.message.clone() };
            let bad = BadRequest { field_violations: vec![violation] };
            details.push(Detail { type_url: BAD_REQUEST.to_owned(), value: bad.encode_to_vec() });
        }
        RpcStatus { code: self.code as i32, message: self.message.clone(), details }.encode_to_vec().into()
    }

    /// The same by the JSON rules of protobuf.
    pub(super) fn to_json(&self) -> Bytes {
        let mut details: Vec<Value> = Vec::new();
        if let Some(wait) = self.retry_after {
            details.push(json!({ "@type": RETRY_INFO, "retryDelay": format!("{:.3}s", wait.as_secs_f64()) }));
        }
        if self.reason == Reason::Malformed {
            let violation = json!({ "field": BODY, "description": self.message });
            details.push(json!({ "@type": BAD_REQUEST, "fieldViolations": [violation] }));
        }
        let mut status = json!({ "code": self.code as i32, "message": self.message });
        if !details.is_empty() {
            status["details"] = Value::Array(details);
        }
        status.to_string().into()
    }

    /// As the status of a gRPC call.
    pub(super) fn to_grpc(&self) -> tonic::Status {
        tonic::Status::with_details(self.code, self.message.clone(), self.to_protobuf())
    }
}

impl From<door::Refused> for Fault {
    fn from(refused: door::Refused) -> Self {
        Self::new(Reason::Foreign, Code::PermissionDenied, StatusCode::FORBIDDEN, refused.to_string())
    }
}

impl From<door::Unwelcome> for Fault {
    fn from(unwelcome: door::Unwelcome) -> Self {
        let (code, http) = match unwelcome {
            door::Unwelcome::Missing => (Code::Unauthenticated, StatusCode::UNAUTHORIZED),
            door::Unwelcome::Wrong | door::Unwelcome::NoTenant => (Code::PermissionDenied, StatusCode::FORBIDDEN),
        };
        Self::new(Reason::Unauthenticated, code, http, unwelcome.to_string())
    }
}

impl From<Denied> for Fault {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Busy => Self::busy(),
            Denied::TooLarge { bytes_max } => Self::too_large(bytes_max),
        }
    }
}

impl From<Refused> for Fault {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Malformed { why } => Self::malformed(why),
            Refused::TooLarge { bytes_max } => Self::too_large(bytes_max),
            Refused::TooMany { max, .. } => {
                let message = format!(
                    "the message has more than {max} items (spans, events, links, log records, points, attributes \
                     and array elements added up); send smaller batches"
                );
                Self::new(Reason::TooLarge, Code::ResourceExhausted, StatusCode::PAYLOAD_TOO_LARGE, message)
            }
            Refused::Busy { retry_after } => Self { retry_after: Some(retry_after), ..Self::busy() },
            Refused::Full { retry_after } => {
                Self::retryable(Reason::Full, "the journal is full, try again", retry_after)
            }
            Refused::Disk => {
                Self::retryable(Reason::Failed, "the journal cannot be written, try again", DISK_RETRY_AFTER)
            }
        }
    }
}

/// Cuts a message to [`MESSAGE_BYTES_MAX`] at a character.
pub(super) fn shortened(mut message: String) -> String {
    if message.len() > MESSAGE_BYTES_MAX {
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
        message.push('…');
    }
    message
}

/// What a violation is about: there is only the body.
const BODY: &str = "body";
const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";

/// `google.rpc.Status`: <https://github.com/googleapis/googleapis/blob/master/google/rpc/status.proto>.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct RpcStatus {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
    #[prost(string, tag = "2")]
    pub(super) message: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) details: Vec<Detail>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Detail {
    #[prost(string, tag = "1")]
    pub(super) type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) value: Vec<u8>,
}

/// `google.rpc.RetryInfo`:
/// <https://github.com/googleapis/googleapis/blob/master/google/rpc/error_details.proto>.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    pub(super) retry_delay: Option<Wait>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Wait {
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(super) nanos: i32,
}

/// `google.rpc.BadRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct BadRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) field_violations: Vec<Violation>,
}

/// `google.rpc.BadRequest.FieldViolation`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Violation {
    #[prost(string, tag = "1")]
    pub(super) field: String,
    #[prost(string, tag = "2")]
    pub(super) description: String,
}
