//! How a provider fails: kinds, what may be told of its words, and how long it wants to be left alone.

use std::sync::LazyLock;

use jiff::Timestamp as Instant;
use regex::Regex;
use serde::Serialize;
use serde_json::Value;

use super::Redactor;

/// Code points of a provider's own words that are told.
const MESSAGE_CHARS_MAX: usize = 300;
/// Bytes of a provider's own words that are looked at.
const MESSAGE_BYTES_MAX: usize = 8 * 1024;

/// How a provider failed. The list is the contract's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The key is not taken.
    Auth,
    /// Too many calls, also after one wait.
    RateLimit,
    /// The call itself is refused.
    BadRequest,
    /// The provider is at fault, or cannot be reached.
    ServerError,
    /// No whole answer in time.
    Timeout,
    /// An answer that is no judgement.
    MalformedResponse,
}

impl Kind {
    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::RateLimit => "rate_limit",
            Self::BadRequest => "bad_request",
            Self::ServerError => "server_error",
            Self::Timeout => "timeout",
            Self::MalformedResponse => "malformed_response",
        }
    }

    /// Whether the same call may succeed later.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::RateLimit | Self::Timeout | Self::ServerError)
    }

    /// What an HTTP status says; none for one of success. A redirect is a fault: it is never followed.
    pub const fn of_status(status: u16) -> Option<Self> {
        match status {
            200..=299 => None,
            401 | 403 => Some(Self::Auth),
            429 => Some(Self::RateLimit),
            500.. => Some(Self::ServerError),
            _ => Some(Self::BadRequest),
        }
    }
}

/// How long a provider asks to wait, in milliseconds: seconds or an HTTP date, as `Retry-After` and
/// `anthropic-ratelimit-requests-reset` (RFC 3339) carry them. `now_ms` is Unix time.
pub fn asked_wait_ms(value: &str, now_ms: i64) -> Option<u64> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        // A cast saturates: a wait of years is still a wait, and the caller has a limit of its own.
        return (seconds.is_finite() && seconds >= 0.0).then_some((seconds * 1000.0) as u64);
    }
    let at = jiff::fmt::rfc2822::parse(value).map(|at| at.timestamp()).or_else(|_| value.parse::<Instant>()).ok()?;
    u64::try_from(at.as_millisecond().saturating_sub(now_ms)).ok().or(Some(0))
}

/// The words of a provider's error body that may be told: its message alone, scrubbed.
pub fn message_of(body: &[u8]) -> String {
    let body = body.get(..body.len().min(MESSAGE_BYTES_MAX)).unwrap_or_default();
    let text = String::from_utf8_lossy(body);
    let stated = serde_json::from_str::<Value>(&text).ok().and_then(|value| {
        let places = ["/error/message", "/message", "/detail", "/error"];
        places.iter().find_map(|place| value.pointer(place).and_then(Value::as_str).map(str::to_owned))
    });
    // A body of another shape may hold anything, such as the prompt.
    stated.map(|stated| scrubbed(&stated)).unwrap_or_default()
}

/// What looks like a key, whole or masked in the middle as providers show it.
static KEY_LIKE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:sk|pk|rk|key|api|org|proj)[-_][A-Za-z0-9_*.\-]{5,}[A-Za-z0-9_*\-]|\bBearer\s+\S+|\b[A-Za-z0-9_\-]{32,}\b")
        .ok()
});

/// Short, on one line, without anything that looks like a key or like personal data.
pub fn scrubbed(text: &str) -> String {
    let text = crate::text::head(text, MESSAGE_BYTES_MAX);
    let without_keys = match KEY_LIKE.as_ref() {
        Some(pattern) => pattern.replace_all(text, "[key]"),
        None => return String::new(),
    };
    let redacted = Redactor::default().redact(&without_keys);
    let line: String = redacted.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((at, _)) => format!("{}…", words.get(..at).unwrap_or_default()),
        None => words,
    }
}
