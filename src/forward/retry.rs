//! What an answer of the downstream means for a batch, and how long to wait before trying again.
//!
//! The OTLP rules: <https://github.com/open-telemetry/opentelemetry-proto/blob/main/docs/specification.md>.

use std::fmt;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use http::{HeaderMap, StatusCode, header};
use prost::Message as _;
use tonic::Code;

/// The longest wait that a downstream may ask for.
const ASKED_MAX: Duration = Duration::from_secs(300);
/// The shortest: one that asks for nothing is not to be asked a thousand times a second.
const ASKED_MIN: Duration = Duration::from_millis(100);

/// What came of one attempt to send one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// Taken, but for this many items that the downstream says it will never take.
    Accepted { rejected: u64 },
    /// Not now.
    Retry { class: Class, asked: Option<Duration> },
    /// A wrong set-up, ours or the downstream's: somebody has to act, and the batch is kept until then.
    Setup { class: Class },
    /// Never: this batch is lost.
    Refused { class: Class },
}

/// What went wrong, without a word of what the downstream said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// No connection could be made.
    Connect,
    /// No answer within the timeout.
    Timeout,
    /// The connection ended before the answer did.
    Disconnected,
    /// What answered speaks another protocol.
    NotOtlp,
    /// A gRPC status.
    Grpc(Code),
    /// An HTTP status.
    Http(u16),
    /// The body cannot be written in the encoding that the downstream takes.
    Transcode,
}

impl Class {
    /// Whether nothing of that name is served there.
    pub(super) const fn is_missing(self) -> bool {
        matches!(self, Self::Grpc(Code::Unimplemented) | Self::Http(404 | 405))
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect => f.write_str("connect"),
            Self::Timeout => f.write_str("timeout"),
            Self::Disconnected => f.write_str("disconnected"),
            Self::NotOtlp => f.write_str("not_otlp"),
            Self::Transcode => f.write_str("transcode"),
            Self::Http(status) => write!(f, "http_{status}"),
            Self::Grpc(code) => write!(f, "grpc_{code:?}"),
        }
    }
}

/// Exponential waits with jitter, so that many sidecars do not come back at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Backoff {
    /// Before the first retry.
    pub(super) initial: Duration,
    /// At most.
    pub(super) max: Duration,
}

impl Backoff {
    /// For one record that fails while others are taken: the downstream is there, so the first waits are short.
    pub(super) fn alone(self) -> Self {
        Self { initial: self.initial / 10, ..self }
    }

    /// The wait after the `failures`th failure in a row, counting from 1: 1.5 times the one before, then half to
    /// one and a half of it by `random`, at most `max`.
    pub(super) fn wait(&self, failures: u32, random: u32) -> Duration {
        let steps = i32::try_from(failures.saturating_sub(1).min(64)).unwrap_or(64);
        let plain = (self.initial.as_secs_f64() * 1.5f64.powi(steps)).min(self.max.as_secs_f64());
        let jitter = 0.5 + f64::from(random) / f64::from(u32::MAX);
        Duration::from_secs_f64((plain * jitter).min(self.max.as_secs_f64()))
    }
}

/// A random number for [`Backoff::wait`]; the middle when the system has none.
pub(super) fn random() -> u32 {
    getrandom::u32().unwrap_or(u32::MAX / 2)
}

/// Judges a gRPC status. `details` is the value of `grpc-status-details-bin`, as sent.
pub(super) fn judge_grpc(code: Code, details: Option<&[u8]>) -> Answer {
    let class = Class::Grpc(code);
    let asked = details.and_then(|details| {
        use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
        let bytes = STANDARD_NO_PAD.decode(details).or_else(|_| STANDARD.decode(details)).ok()?;
        retry_info(&bytes)
    });
    match code {
        Code::Ok => Answer::Accepted { rejected: 0 },
        Code::Cancelled
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unavailable
        | Code::DataLoss => Answer::Retry { class, asked },
        Code::ResourceExhausted if asked.is_some() => Answer::Retry { class, asked },
        Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented => Answer::Setup { class },
        _ => Answer::Refused { class },
    }
}

/// Judges an HTTP status that is not a success. `body` is the answer's, when it is protobuf.
pub(super) fn judge_http(status: StatusCode, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Answer {
    let class = Class::Http(status.as_u16());
    match status.as_u16() {
        429 | 502 | 503 | 504 => {
            let asked = headers.get(header::RETRY_AFTER).and_then(|value| retry_after(value.to_str().ok()?, now));
            Answer::Retry { class, asked: asked.or_else(|| retry_info(body)) }
        }
        // Beyond 401, 403 and 404: a redirect, a wrong method, a proxy that wants a login and a refused content type
        // say as plainly that the endpoint is not what it was taken for.
        300..=399 | 401 | 403 | 404 | 405 | 407 | 415 => Answer::Setup { class },
        _ => Answer::Refused { class },
    }
}

/// `Retry-After`: seconds or an HTTP date (RFC 9110, 10.2.3).
fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(wait.clamp(ASKED_MIN, ASKED_MAX))
}

/// The delay that a `google.rpc.RetryInfo` inside a `google.rpc.Status` asks for.
/// Source: <https://github.com/googleapis/googleapis/blob/master/google/rpc/error_details.proto>.
fn retry_info(status: &[u8]) -> Option<Duration> {
    let status = Status::decode(status).ok()?;
    let info = status.details.iter().find(|any| any.type_url.ends_with("/google.rpc.RetryInfo"))?;
    let delay = RetryInfo::decode(info.value.as_slice()).ok()?.retry_delay.unwrap_or_default();
    let seconds = u64::try_from(delay.seconds).unwrap_or_default();
    let wait =
        Duration::from_secs(seconds).saturating_add(Duration::from_nanos(delay.nanos.max(0).unsigned_abs().into()));
    Some(wait.clamp(ASKED_MIN, ASKED_MAX))
}

#[derive(Clone, PartialEq, prost::Message)]
struct Status {
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<Delay>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Delay {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `google.rpc.Status` with a `RetryInfo` of 1.5 s, put together by hand from the .proto files.
    fn status() -> Vec<u8> {
        let delay = b"\x08\x01\x10\x80\xca\xb5\xee\x01";
        let mut info = vec![0x0a, u8::try_from(delay.len()).unwrap()];
        info.extend_from_slice(delay);
        let url = b"type.googleapis.com/google.rpc.RetryInfo";
        let mut any = vec![0x0a, u8::try_from(url.len()).unwrap()];
        any.extend_from_slice(url);
        any.extend_from_slice(&[0x12, u8::try_from(info.len()).unwrap()]);
        any.extend_from_slice(&info);
        let mut status = vec![0x08, 0x0e, 0x1a, u8::try_from(any.len()).unwrap()];
        status.extend_from_slice(&any);
        status
    }

    #[test]
    fn retry_info_is_read_and_nonsense_is_not() {
        assert_eq!(retry_info(&status()), Some(Duration::from_millis(1500)));
        assert_eq!(retry_info(b""), None);
        assert_eq!(retry_info(b"\xff\xff"), None);
    }

    #[test]
    fn grpc_codes_are_told_apart_as_the_specification_says() {
        let verdict = |code| judge_grpc(Code::from_i32(code), None);
        for code in [1, 4, 10, 11, 14, 15] {
            assert!(matches!(verdict(code), Answer::Retry { asked: None, .. }), "{code}");
        }
        for code in [7, 12, 16] {
            assert!(matches!(verdict(code), Answer::Setup { .. }), "{code}");
        }
        for code in [2, 3, 5, 6, 8, 9, 13] {
            assert!(matches!(verdict(code), Answer::Refused { .. }), "{code}");
        }
        let details = base64::engine::general_purpose::STANDARD_NO_PAD.encode(status());
        let exhausted = judge_grpc(Code::ResourceExhausted, Some(details.as_bytes()));
        assert!(matches!(exhausted, Answer::Retry { asked: Some(wait), .. } if wait.as_millis() == 1500));
        assert!(matches!(judge_grpc(Code::ResourceExhausted, Some(b"!")), Answer::Refused { .. }));
        assert!(matches!(judge_grpc(Code::InvalidArgument, Some(details.as_bytes())), Answer::Refused { .. }));
    }

    #[test]
    fn http_statuses_are_told_apart_as_the_specification_says() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let judge = |status: u16, after: Option<&str>, body: &[u8]| {
            let mut headers = HeaderMap::new();
            if let Some(after) = after {
                headers.insert(header::RETRY_AFTER, after.parse().unwrap());
            }
            judge_http(StatusCode::from_u16(status).unwrap(), &headers, body, now)
        };
        for status in [429, 502, 503, 504] {
            assert!(matches!(judge(status, None, b""), Answer::Retry { asked: None, .. }), "{status}");
        }
        for status in [302, 401, 403, 404, 415] {
            assert!(matches!(judge(status, None, b""), Answer::Setup { .. }), "{status}");
        }
        for status in [400, 408, 413, 500, 501] {
            assert!(matches!(judge(status, Some("1"), b""), Answer::Refused { .. }), "{status}");
        }
        let asked = |after: &str, body: &[u8]| match judge(503, Some(after), body) {
            Answer::Retry { asked, .. } => asked,
            other => panic!("{other:?}"),
        };
        assert_eq!(asked("7", b""), Some(Duration::from_secs(7)));
        assert_eq!(asked("Sun, 06 Nov 1994 08:49:47 GMT", b""), Some(Duration::from_secs(10)));
        assert_eq!(asked("Sun, 06 Nov 1994 08:49:07 GMT", b""), Some(ASKED_MIN));
        assert_eq!(asked("99999999999", b""), Some(ASKED_MAX));
        assert_eq!(asked("soon", b""), None);
        assert_eq!(asked("soon", &status()), Some(Duration::from_millis(1500)));
    }

    #[test]
    fn waits_grow_by_half_and_stay_within_bounds() {
        let backoff = Backoff { initial: Duration::from_secs(5), max: Duration::from_secs(30) };
        let middle = u32::MAX / 2;
        let millis = |failures, random| backoff.wait(failures, random).as_millis();
        for (failures, plain) in [(1, 5_000), (2, 7_500), (3, 11_250)] {
            assert!(millis(failures, middle).abs_diff(plain) <= 1, "{failures}");
        }
        assert_eq!(millis(1, 0), 2500);
        assert_eq!(millis(1, u32::MAX), 7500);
        assert_eq!(millis(1_000_000, u32::MAX), 30_000);
    }
}
