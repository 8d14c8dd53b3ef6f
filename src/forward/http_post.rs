//! OTLP/HTTP to the downstream: one POST a body, to the base endpoint with `/v1/{signal}` appended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use iris_core::model::Lane;

use super::client::{CONNECT_MAX, USER_AGENT};
use super::config::{Error, Target};
use super::reply::{AnswerBytes, rejected_in_json, rejected_in_protobuf};
use super::retry::{Answer, Class, judge_http};
use crate::journal::Encoding;

/// What OTLP calls its encodings.
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

pub(super) struct Client {
    client: reqwest::Client,
    url: String,
    headers: HeaderMap,
    refuses_json: AtomicBool,
}

impl Client {
    pub(super) fn new(lane: Lane, target: &Target) -> Result<Self, Error> {
        let mut builder = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .connect_timeout(target.timeout.min(CONNECT_MAX))
            .pool_max_idle_per_host(target.concurrency)
            .tcp_nodelay(true)
            // A redirect would turn a POST into a GET, or carry the headers to a host nobody chose.
            .redirect(reqwest::redirect::Policy::none());
        if target.is_loopback() {
            builder = builder.no_proxy();
        }
        let failed = |error: reqwest::Error| Error::Client(error.without_url().to_string());
        if let Some(ca) = &target.trust.ca {
            builder = builder.tls_certs_only(reqwest::Certificate::from_pem_bundle(ca).map_err(failed)?);
        }
        if let Some(identity) = &target.trust.identity {
            let pem = [&identity.cert[..], b"\n", &identity.key[..]].concat();
            builder = builder.identity(reqwest::Identity::from_pem(&pem).map_err(failed)?);
        }
        let client = builder.build().map_err(failed)?;
        let base = target.endpoint.to_string();
        let url = format!("{}/v1/{}", base.trim_end_matches('/'), lane.as_str());
        Ok(Self { client, url, headers: target.headers.clone(), refuses_json: AtomicBool::new(false) })
    }

    /// Whether the downstream has answered 415 to JSON.
    pub(super) fn refuses_json(&self) -> bool {
        self.refuses_json.load(Ordering::Relaxed)
    }

    /// One POST. `body` is compressed already when `gzip` says so.
    pub(super) async fn send(&self, encoding: Encoding, body: Bytes, gzip: bool) -> Answer {
        let kind = if encoding == Encoding::Json { JSON } else { PROTOBUF };
        let mut request =
            self.client.post(&self.url).headers(self.headers.clone()).header(header::CONTENT_TYPE, kind).body(body);
        if gzip {
            request = request.header(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) if error.is_connect() => return Answer::Retry { class: Class::Connect, asked: None },
            Err(_) => return Answer::Retry { class: Class::Disconnected, asked: None },
        };
        let status = response.status();
        let headers = response.headers().clone();
        let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        if status.is_success() {
            return match read(response).await {
                Ok(answer) if kind.starts_with(JSON.as_bytes()) => {
                    Answer::Accepted { rejected: rejected_in_json(answer.kept()) }
                }
                Ok(answer) if kind.starts_with(PROTOBUF.as_bytes()) => {
                    Answer::Accepted { rejected: rejected_in_protobuf(answer.kept()) }
                }
                Ok(_) => Answer::Accepted { rejected: 0 },
                Err(_) => Answer::Retry { class: Class::Disconnected, asked: None },
            };
        }
        if status == StatusCode::UNSUPPORTED_MEDIA_TYPE && encoding == Encoding::Json {
            self.refuses_json.store(true, Ordering::Relaxed);
        }
        // A refusal stands by its status; its body matters only for the delay that it may ask for.
        let body = if kind.starts_with(PROTOBUF.as_bytes()) { read(response).await.ok() } else { None };
        let body = body.as_ref().map_or(&[][..], AnswerBytes::kept);
        judge_http(status, &headers, body, SystemTime::now())
    }
}

/// The answer, to its end or to the limit.
async fn read(mut response: reqwest::Response) -> reqwest::Result<AnswerBytes> {
    let mut answer = AnswerBytes::default();
    while let Some(chunk) = response.chunk().await? {
        if !answer.push(&chunk) {
            break;
        }
    }
    Ok(answer)
}
