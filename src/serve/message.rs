//! One JSON-RPC message as it came in: whether it is one, and what is answered when it is not.
//!
//! The same for standard input, the socket and HTTP, so that a client learns of one mistake in one way. Nothing of
//! what was sent stands in an answer but the id.
//!
//! Source: <https://www.jsonrpc.org/specification#error_object>; MCP allows ids that are strings or integers.

use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// The bytes are not JSON.
const PARSE_ERROR: i32 = -32700;

/// The JSON is not a message.
const INVALID_REQUEST: i32 = -32600;

/// From here down to -32019 the codes are the implementation's own.
const UNAVAILABLE: i32 = -32000;

/// Too many requests; from -32000 down to -32099 the codes are a server's own.
const TOO_OFTEN: i32 = -32029;

/// The setting that bounds a message, as messages name it.
pub const LIMIT_SETTING: &str = "mcp.message_bytes_max";

/// Integers that a number with a fraction of zero can be without doubt: below 2^53.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// What a message is, seen from outside.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Head {
    /// A string or an integer; notifications have none.
    pub(super) id: Option<Value>,
    /// Answers have none.
    pub(super) method: Option<String>,
}

impl Head {
    /// The id that must be answered.
    pub(super) fn request_id(&self) -> Option<&Value> {
        self.method.as_ref().and(self.id.as_ref())
    }
}

/// What is answered to something that is not served.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refusal {
    code: i32,
    message: String,
    /// Null when it cannot be told.
    id: Value,
    data: Option<Box<Value>>,
}

impl Refusal {
    fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), id: Value::Null, data: None }
    }

    /// The bytes are not JSON.
    pub(super) fn not_json(why: &str) -> Self {
        Self::new(PARSE_ERROR, format!("not JSON: {why}"))
    }

    /// The JSON is not a message.
    pub(super) fn no_message(why: &str) -> Self {
        Self::new(INVALID_REQUEST, format!("not a JSON-RPC 2.0 message: {why}"))
    }

    /// The request is not served, for what stands around the message.
    pub(super) fn not_served(why: &str) -> Self {
        Self::new(INVALID_REQUEST, why)
    }

    /// The caller asks too often.
    pub(super) fn too_often(why: &str) -> Self {
        Self::new(TOO_OFTEN, why)
    }

    /// More bytes than one message may have.
    pub(super) fn too_large(bytes_max: usize) -> Self {
        let data = json!({ "bytesMax": bytes_max, "setting": LIMIT_SETTING });
        Self { data: Some(Box::new(data)), ..Self::new(INVALID_REQUEST, too_large(bytes_max)) }
    }

    /// Nobody can answer now; the same call may succeed later. `data` is the contract's error.
    pub(super) fn unavailable(message: impl Into<String>, data: Value) -> Self {
        Self { data: Some(Box::new(data)), ..Self::new(UNAVAILABLE, message) }
    }

    /// Says which request it answers.
    pub(super) fn with_id(self, id: Value) -> Self {
        Self { id, ..self }
    }

    /// As JSON-RPC has it.
    pub(super) fn to_value(&self) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = Value::clone(data);
        }
        json!({ "jsonrpc": "2.0", "id": self.id, "error": error })
    }

    /// As one line.
    pub(super) fn to_line(&self) -> Bytes {
        let mut line = self.to_value().to_string();
        line.push('\n');
        line.into()
    }
}

/// What every transport says of a message that is too large.
pub(super) fn too_large(bytes_max: usize) -> String {
    format!("the message is larger than {bytes_max} bytes ({LIMIT_SETTING})")
}

/// Tells a message from anything else.
///
/// # Errors
/// What to answer: -32700 when it is not JSON, -32600 when it is no message, with its id when that can be told.
pub(super) fn head(bytes: &[u8]) -> Result<Head, Refusal> {
    #[derive(Deserialize)]
    struct Fields {
        jsonrpc: Option<Value>,
        id: Option<Value>,
        method: Option<Value>,
        result: Option<IgnoredAny>,
        error: Option<IgnoredAny>,
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Refusal::not_json("it is not UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let at = |error: &serde_json::Error| format!("line {} column {}", error.line(), error.column());
    if !text.trim_start().starts_with('{') {
        return Err(match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => Refusal::no_message("it must be one object; batches are not served"),
            Err(error) => Refusal::not_json(&at(&error)),
        });
    }
    let fields: Fields = serde_json::from_str(text).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => Refusal::no_message("a field stands in it twice"),
        _ => Refusal::not_json(&at(&error)),
    })?;
    let has_id = fields.id.is_some();
    let id = fields.id.and_then(plain_id);
    let refused = |why: &str| Err(Refusal::no_message(why).with_id(id.clone().unwrap_or_default()));
    if fields.jsonrpc != Some(Value::from("2.0")) {
        return refused("jsonrpc must be \"2.0\"");
    }
    if has_id && id.is_none() {
        return refused("id must be a string or an integer");
    }
    let is_answer = fields.result.is_some() || fields.error.is_some();
    match fields.method {
        Some(Value::String(method)) if !is_answer => Ok(Head { id, method: Some(method) }),
        None if is_answer && id.is_some() => Ok(Head { id, method: None }),
        Some(_) => refused("method must be a string, without result and error"),
        None => refused("there is neither a method, nor an id with a result or an error"),
    }
}

/// For fuzzers: whatever comes in is a message or is answered in one line that says nothing of it but its id.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzzed(data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n') {
        match head(line) {
            Ok(head) => {
                assert!(head.method.is_some() || head.id.is_some());
                let _ = serde_json::from_slice::<rmcp::model::ClientJsonRpcMessage>(line);
            }
            Err(refusal) => {
                let said = refusal.to_line();
                assert_eq!(said.iter().filter(|byte| **byte == b'\n').count(), 1, "an answer is one line");
                let answer: Value = serde_json::from_slice(&said).expect("an answer is JSON");
                let is_id = answer["id"].is_null() || answer["id"].is_string() || answer["id"].is_i64();
                assert!(is_id && answer["error"]["code"].is_i64(), "{answer}");
            }
        }
    }
}

/// The id as an answer carries it: `7.0` is 7.
fn plain_id(id: Value) -> Option<Value> {
    match &id {
        Value::String(_) => Some(id),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Some(whole.into()),
            (None, Some(float)) if float.fract() == 0.0 && float.abs() < EXACT_MAX => {
                float.to_string().parse::<i64>().ok().map(Value::from)
            }
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code and id of what is answered.
    fn refused(bytes: &[u8]) -> (i32, Value) {
        let refusal = head(bytes).unwrap_err();
        assert!(refusal.to_line().ends_with(b"\n"));
        (refusal.code, refusal.id)
    }

    #[test]
    fn a_message_is_told_from_anything_else() {
        let request = head(br#"{"jsonrpc":"2.0","id":7.0,"method":"ping"}"#).unwrap();
        assert_eq!(request.request_id(), Some(&json!(7)));
        let notification =
            head(b"\xef\xbb\xbf {\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}").unwrap();
        assert_eq!((notification.request_id(), notification.id.as_ref()), (None, None));
        let answer = head(br#"{"jsonrpc":"2.0","id":"a","result":{}}"#).unwrap();
        assert_eq!((answer.request_id(), answer.id.as_ref()), (None, Some(&json!("a"))));
    }

    #[test]
    fn what_is_not_json_is_a_parse_error_without_an_id() {
        for bytes in
            [&b"hello"[..], b"", b"{", b"{\"id\":1,", b"{\"id\":1}{}", b"[1,", b"\"\xff\"", b"nul", b"{'id':1}"]
        {
            assert_eq!(refused(bytes), (PARSE_ERROR, Value::Null), "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn json_that_is_no_message_is_an_invalid_request_with_its_id() {
        for (text, id) in [
            ("7", Value::Null),
            ("[]", Value::Null),
            (r#"["2.0",1,"ping"]"#, Value::Null),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, Value::Null),
            ("{}", Value::Null),
            (r#"{"id":1,"method":"ping"}"#, json!(1)),
            (r#"{"jsonrpc":"1.0","id":"x","method":"ping"}"#, json!("x")),
            (r#"{"jsonrpc":"2.0","id":1}"#, json!(1)),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, json!(1)),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, Value::Null),
            (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, Value::Null),
            (r#"{"jsonrpc":"2.0","id":18446744073709551615,"method":"ping"}"#, Value::Null),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#, json!(1)),
            (r#"{"jsonrpc":"2.0","result":{}}"#, Value::Null),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, Value::Null),
        ] {
            assert_eq!(refused(text.as_bytes()), (INVALID_REQUEST, id), "{text}");
        }
    }

    #[test]
    fn nothing_that_was_sent_is_echoed() {
        for text in [r#"{"jsonrpc":"2.0","id":1,"method":["s3cret"]}"#, "s3cret", r#"{"s3cret":1}"#] {
            let answer = head(text.as_bytes()).unwrap_err().to_value().to_string();
            assert!(!answer.contains("s3cret"), "{answer}");
        }
    }

    #[test]
    fn a_message_that_is_too_large_is_told_the_limit_and_the_setting() {
        let answer = Refusal::too_large(1024).to_value();
        assert_eq!((&answer["error"]["code"], &answer["error"]["data"]["bytesMax"]), (&json!(-32600), &json!(1024)));
        assert!(
            answer["error"]["message"].as_str().unwrap().contains("1024 bytes (mcp.message_bytes_max)"),
            "{answer}"
        );
    }
}
