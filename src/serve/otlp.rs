//! OTLP over HTTP on the web door, for clients that know no other address: the same way in as the OTLP doors, and on
//! request the verdicts in the same answer.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{MethodRouter, post};
use iris_core::contract::Scope;
use iris_core::model::{Lane, TraceId};
use iris_core::otlp::Encoding;
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTracePartialSuccess, ExportTraceServiceResponse};
use prost::Message;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::message::too_large;
use super::read_body;
use crate::ingest::{Accepted, Admission, Inlet, Refused, Submission};
use crate::journal::Door;
use crate::tools::{App, Caller};

/// How long an answer waits for verdicts. Clients give up after five seconds.
const VERDICTS_WITHIN: Duration = Duration::from_secs(3);

/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Traces of one request whose verdicts are waited for.
const JUDGED_MAX: usize = 64;

/// Traces of one request that the answer names.
const NAMED_MAX: usize = 2000;

/// The way in for spans.
#[derive(Clone)]
pub struct Spans {
    /// Where messages are made durable.
    pub inlet: Inlet,
    /// Memory for them.
    pub admission: Admission,
}

/// Answers `/v1/traces`.
pub(super) fn routes(app: Arc<App>, spans: Spans, message_bytes_max: usize) -> MethodRouter {
    post(move |Extension(caller): Extension<Caller>, headers: HeaderMap, body: Body| {
        let (app, spans) = (Arc::clone(&app), spans.clone());
        async move {
            match take(&spans, &caller, &headers, body, message_bytes_max).await {
                Ok((accepted, Some(traces))) => answer(&app, &caller, &accepted, traces).await,
                Ok((accepted, None)) => in_protobuf(&accepted),
                Err(refused) => refused,
            }
        }
    })
}

/// A trace that a request brought spans of.
#[derive(Debug, PartialEq)]
struct Brought {
    trace_id: TraceId,
    spans: usize,
    wants_verdict: bool,
}

async fn take(
    spans: &Spans,
    caller: &Caller,
    headers: &HeaderMap,
    body: Body,
    message_bytes_max: usize,
) -> Result<(Accepted, Option<Vec<Brought>>), Response> {
    if !caller.may(Scope::Write) {
        return Err(refusal(StatusCode::FORBIDDEN, "this key may not send: it needs the scope write"));
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let encoding = match kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "application/json" => Encoding::Json,
        "application/x-protobuf" => Encoding::Protobuf,
        _ => {
            let why = "Content-Type must be application/x-protobuf or application/json";
            return Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
    };
    let is_plain = headers.get(header::CONTENT_ENCODING).is_none_or(|encoding| encoding == "identity");
    if !is_plain {
        let why = "send uncompressed here, or to the OTLP door, which takes gzip, zstd and deflate";
        return Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    let busy = |_| busy("too many bytes are being received", Duration::from_secs(1));
    let mut permit = spans.admission.enter().map_err(busy)?;
    let Some(body) = read_body(body, message_bytes_max).await else {
        return Err(refusal(StatusCode::PAYLOAD_TOO_LARGE, &too_large(message_bytes_max)));
    };
    permit.hold(body.len()).map_err(busy)?;
    let brought = (encoding == Encoding::Json).then(|| brought(&body));
    let (tenant, names_tenants) = (caller.tenant.clone(), caller.may_set_tenant());
    let submission = Submission { lane: Lane::Traces, tenant, names_tenants, door: Door::Http, encoding, body };
    match spans.inlet.submit(submission, permit).await {
        Ok(accepted) => Ok((accepted, brought)),
        Err(refused) => Err(told(&refused)),
    }
}

fn told(refused: &Refused) -> Response {
    match refused {
        Refused::Malformed { .. } => refusal(StatusCode::BAD_REQUEST, &refused.to_string()),
        Refused::TooLarge { .. } | Refused::TooMany { .. } => {
            refusal(StatusCode::PAYLOAD_TOO_LARGE, &refused.to_string())
        }
        Refused::Busy { retry_after } | Refused::Full { retry_after } => busy(&refused.to_string(), *retry_after),
        Refused::Disk => busy(&refused.to_string(), Duration::from_secs(1)),
    }
}

fn busy(why: &str, retry_after: Duration) -> Response {
    let mut response = refusal(StatusCode::SERVICE_UNAVAILABLE, why);
    let seconds = retry_after.as_secs().max(1);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

/// OTLP's own form of a failure, with the word that the published client looks for.
fn refusal(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({ "message": why, "error": why }))).into_response()
}

/// The traces of a message, in its order.
fn brought(body: &[u8]) -> Vec<Brought> {
    let Ok(message) = serde_json::from_slice::<Value>(body) else { return Vec::new() };
    let list = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    let mut found: Vec<Brought> = Vec::new();
    let mut known = HashSet::new();
    for resource in list(&message, "resourceSpans") {
        let wants_verdict = list(&resource["resource"], "attributes").iter().any(|attribute| {
            attribute["key"] == "iris.evaluate" && attribute["value"]["boolValue"] == Value::Bool(true)
        });
        for span in list(&resource, "scopeSpans").iter().flat_map(|scope| list(scope, "spans")) {
            let id = span["traceId"].as_str().unwrap_or_default().to_ascii_lowercase();
            let Ok(trace_id) = id.parse::<TraceId>() else { continue };
            if known.insert(trace_id) && found.len() < NAMED_MAX {
                found.push(Brought { trace_id, spans: 0, wants_verdict });
            }
            if let Some(one) = found.iter_mut().find(|one| one.trace_id == trace_id) {
                one.spans += 1;
            }
        }
    }
    found
}

/// OTLP wants the answer in the encoding of the request.
/// Source: <https://opentelemetry.io/docs/specs/otlp/#otlphttp-response>.
fn in_protobuf(accepted: &Accepted) -> Response {
    let partial_success = (accepted.rejected > 0 || accepted.message.is_some()).then(|| ExportTracePartialSuccess {
        rejected_spans: i64::try_from(accepted.rejected).unwrap_or(i64::MAX),
        error_message: accepted.message.clone().unwrap_or_default(),
    });
    let body = ExportTraceServiceResponse { partial_success }.encode_to_vec();
    ([(header::CONTENT_TYPE, "application/x-protobuf")], body).into_response()
}

async fn answer(app: &App, caller: &Caller, accepted: &Accepted, brought: Vec<Brought>) -> Response {
    let mut body = json!({});
    if accepted.rejected > 0 || accepted.message.is_some() {
        body["partialSuccess"] = json!({
            "rejectedSpans": accepted.rejected.to_string(),
            "errorMessage": accepted.message.clone().unwrap_or_default(),
        });
    }
    let until = Instant::now() + VERDICTS_WITHIN;
    let (mut stored, mut waited) = (Vec::with_capacity(brought.len()), 0);
    for one in brought {
        let waits = one.wants_verdict && waited < JUDGED_MAX;
        waited += usize::from(waits);
        stored.push(described(app, caller, &one, waits.then_some(until)).await);
    }
    body["iris-eval"] = json!({ "count": stored.len(), "stored": stored });
    Json(body).into_response()
}

/// A trace and, when it is waited for, its evaluation.
async fn described(app: &App, caller: &Caller, one: &Brought, until: Option<Instant>) -> Value {
    let id = one.trace_id.to_string();
    let mut described = json!({ "trace_id": id, "otel_trace_id": id, "spans": one.spans });
    let Some(until) = until else { return described };
    loop {
        let asked = json!({ "trace_id": id, "detail": "brief" });
        let page = app.call("get_traces", asked, caller).await.unwrap_or_default();
        let row = &page["traces"][0];
        if row.is_object() {
            described["agent_name"] = row["agent_name"].clone();
            described["steps"] = json!(row["tool_calls"].as_array().map_or(0, Vec::len));
        }
        if let Some(evaluation) = row["evaluation_id"].as_str()
            && let Ok(Some(evaluation)) = app.evaluation(evaluation, caller).await
        {
            described["evaluation"] = evaluation;
            return described;
        }
        if Instant::now() >= until {
            return described;
        }
        sleep(LOOK_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_traces_of_a_message_are_told_in_its_order() {
        let (one, two) = ("0af7651916cd43dd8448eb211c80319c", "1af7651916cd43dd8448eb211c80319c");
        let message = json!({ "resourceSpans": [
            { "resource": { "attributes": [{ "key": "iris.evaluate", "value": { "boolValue": true } }] },
              "scopeSpans": [{ "spans": [{ "traceId": two }, { "traceId": one.to_uppercase() }, { "traceId": two }, { "traceId": "x" }] }] },
            { "scopeSpans": [{ "spans": [{ "traceId": one }] }, {}] },
        ] });
        let found = brought(message.to_string().as_bytes());
        let told: Vec<_> = found.iter().map(|one| (one.trace_id.to_string(), one.spans, one.wants_verdict)).collect();
        assert_eq!(told, [(two.to_owned(), 2, true), (one.to_owned(), 2, true)]);
        assert!(brought(b"[]").is_empty() && brought(b"{").is_empty());
    }
}
