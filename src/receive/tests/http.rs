use super::*;

#[tokio::test]
async fn success_is_answered_in_the_encoding_of_the_request_with_nothing_in_it() {
    let stand = Stand::usual().await;
    let body = spans(0, 3).encode_to_vec();
    for (n, path) in ["/v1/traces", "/v1/traces/", "/api/public/otel/v1/traces"].iter().enumerate() {
        let body = spans(n as u64 * 10, 3).encode_to_vec();
        let answer = stand.post(path, &[("Content-Type", "application/x-protobuf; foo=bar")], &body).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/x-protobuf")), "{path}");
        assert!(answer.body.is_empty(), "a response whose partial_success is unset has no bytes");
    }
    assert_eq!(stand.bodies()[0], body, "byte for byte");
    let json = br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0AF7651916CD43DD8448EB211C80319C","spanId":"00f067aa0ba902b7","name":"a","foo":1}]}]}]}"#;
    let answer = stand.post("/v1/traces", &[("Content-Type", "Application/JSON; charset=utf-8")], json).await;
    assert_eq!((answer.status, answer.json()), (200, serde_json::json!({})));
    let (lane, record) = stand.records.lock().unwrap().pop().unwrap();
    assert_eq!((lane, record.door, record.encoding), (Lane::Traces, journal::Door::Http, journal::Encoding::Json));
    assert_eq!(&record.body[..], json);
    assert_eq!(count(&stand.counters.http.traces.accepted), 10);
    stand.assert_nothing_held().await;
}

#[tokio::test]
async fn every_signal_has_its_lane() {
    let stand = Stand::usual().await;
    for (path, body) in [
        ("/v1/traces", spans(0, 1).encode_to_vec()),
        ("/v1/logs", logs().encode_to_vec()),
        ("/v1/metrics", metrics().encode_to_vec()),
    ] {
        assert_eq!(stand.post(path, &[PROTOBUF], &body).await.status, 200, "{path}");
    }
    let lanes: Vec<Lane> = stand.records.lock().unwrap().iter().map(|(lane, _)| *lane).collect();
    assert_eq!(lanes, Lane::ALL);
    let http = &stand.counters.http;
    assert_eq!([&http.traces, &http.logs, &http.metrics].map(|lane| count(&lane.accepted)), [1, 1, 1]);
}

#[tokio::test]
async fn an_empty_request_succeeds_and_leaves_no_record() {
    let stand = Stand::usual().await;
    for path in ["/v1/traces", "/v1/logs", "/v1/metrics"] {
        assert_eq!(stand.post(path, &[PROTOBUF], b"").await.status, 200, "{path}");
        assert_eq!(stand.post(path, &[JSON], b"{}").await.status, 200, "{path}");
    }
    assert_eq!(stand.bodies().len(), 0);
}

#[tokio::test]
async fn without_a_downstream_metrics_are_counted_and_not_kept() {
    let stand = Stand::with(Setup { forwarding: false, ..Setup::default() }).await;
    assert_eq!(stand.post("/v1/metrics", &[PROTOBUF], &metrics().encode_to_vec()).await.status, 200);
    assert_eq!(stand.post("/v1/metrics", &[PROTOBUF], b"\x0a\x05bad").await.status, 400, "validated all the same");
    assert_eq!(stand.bodies().len(), 0);
    assert_eq!((count(&stand.counters.http.metrics.accepted), count(&stand.counters.http.metrics.unkept)), (1, 1));
}

#[tokio::test]
async fn without_a_downstream_only_logs_that_something_here_reads_are_kept() {
    let stand = Stand::with(Setup { forwarding: false, ..Setup::default() }).await;
    let mut unread = logs();
    unread.resource_logs[0].scope_logs[0].log_records[0].event_name = "cart.emptied".to_owned();
    for request in [unread, logs()] {
        assert_eq!(stand.post("/v1/logs", &[PROTOBUF], &request.encode_to_vec()).await.status, 200);
    }
    assert_eq!(stand.bodies(), [logs().encode_to_vec()]);
    assert_eq!((count(&stand.counters.http.logs.accepted), count(&stand.counters.http.logs.unkept)), (2, 1));
}

#[tokio::test]
async fn what_is_rejected_is_named_and_the_rest_is_kept() {
    let stand = Stand::usual().await;
    let body = spans_with_a_bad_one().encode_to_vec();
    let answer = stand.post("/v1/traces", &[PROTOBUF], &body).await;
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
    let partial = ExportTraceServiceResponse::decode(answer.body.clone()).unwrap().partial_success.unwrap();
    assert_eq!((answer.status, partial.rejected_spans), (200, 1));
    assert!(partial.error_message.contains("32"), "{}", partial.error_message);
    let kept = ExportTraceServiceRequest::decode(stand.bodies()[0].clone()).unwrap();
    assert_eq!(kept.resource_spans[0].scope_spans[0].spans.len(), 3);
    let again = stand.post("/v1/traces", &[PROTOBUF], &body).await;
    assert_eq!(again.body, answer.body, "a resend hears the same");
    assert_eq!(stand.bodies().len(), 1, "and is not kept twice");
    let json = br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"xyz","spanId":"00f067aa0ba902b7"}]}]}]}"#;
    let answer = stand.post("/v1/traces", &[JSON], json).await;
    assert_eq!((answer.status, &answer.json()["partialSuccess"]["rejectedSpans"]), (200, &"1".into()));
    assert_eq!(stand.bodies().len(), 1, "nothing was left to keep");
    assert_eq!(count(&stand.counters.http.traces.rejected), 3);
}

#[tokio::test]
async fn bytes_that_are_not_otlp_are_a_bad_request_in_the_encoding_they_came_in() {
    let stand = Stand::usual().await;
    let noise = [
        0x8f, 0x3c, 0xe1, 0x07, 0xb2, 0x5d, 0xff, 0x90, 0x41, 0x6a, 0x13, 0xc8, 0x77, 0xde, 0x02, 0xab, 0x39, 0xf4,
        0x86, 0x1b,
    ];
    for path in ["/v1/traces", "/v1/logs", "/v1/metrics"] {
        let answer = stand.post(path, &[PROTOBUF], &noise).await;
        let status = answer.rpc_status();
        assert_eq!((answer.status, status.code), (400, 3), "{path}");
        assert!(!status.message.is_empty() && violation(&status) == Some(status.message.clone()), "{status:?}");
        assert_eq!(retry_delay(&status), None);
        let answer = stand.post(path, &[JSON], b"{\"resourceSpans\": [").await;
        assert_eq!((answer.status, &answer.json()["code"]), (400, &3.into()), "{path}");
        assert_eq!(answer.json()["details"][0]["@type"], "type.googleapis.com/google.rpc.BadRequest");
        assert_eq!(answer.header("retry-after"), None);
    }
    assert_eq!(stand.bodies().len(), 0);
    assert_eq!(count(&stand.counters.http.requests.malformed), 6);
    stand.assert_nothing_held().await;
}

#[tokio::test]
async fn what_is_not_served_is_answered_with_what_is() {
    let stand = Stand::usual().await;
    let body = spans(0, 1).encode_to_vec();
    for headers in
        [&[("content-type", "text/plain")][..], &[], &[("content-type", "application/protobuf")], &[PROTOBUF, JSON]]
    {
        let answer = stand.post("/v1/traces", headers, &body).await;
        let message = answer.json()["message"].to_string();
        assert_eq!(answer.status, 415, "{headers:?}");
        assert!(message.contains("application/x-protobuf") && message.contains("application/json"), "{message}");
    }
    for encoding in ["br", "gzip, gzip", "zip"] {
        let answer = stand.post("/v1/traces", &[PROTOBUF, ("content-encoding", encoding)], &body).await;
        let status = answer.rpc_status();
        assert_eq!(answer.status, 415, "{encoding}");
        assert!(["gzip", "zstd", "deflate", "identity"].iter().all(|name| status.message.contains(name)), "{status:?}");
    }
    for method in ["GET", "PUT", "DELETE", "OPTIONS"] {
        let answer = exchange(stand.http(), method, "/v1/traces", &[PROTOBUF], b"").await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{method}");
    }
    for path in ["/", "/v1/trace", "/v1/traces/x", "/v1development/profiles", "//v1/traces"] {
        let answer = stand.post(path, &[PROTOBUF], &body).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.rpc_status().message.contains("/v1/traces, /v1/metrics and /v1/logs"), "{path}");
    }
    assert_eq!(stand.bodies().len(), 0);
    assert_eq!(count(&stand.counters.http.requests.misdirected), 4 + 3 + 4 + 5);
}

#[tokio::test]
async fn compressed_bodies_are_kept_as_what_they_stand_for() {
    let stand = Stand::usual().await;
    for (n, encoding) in ["gzip", "GZIP", "x-gzip", "zstd", "deflate", "identity"].into_iter().enumerate() {
        let body = spans(n as u64 * 100, 50).encode_to_vec();
        let compressed = match encoding {
            "zstd" => zstd::encode_all(&body[..], 1).unwrap(),
            "deflate" => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(&body).unwrap();
                encoder.finish().unwrap()
            }
            "identity" => body.clone(),
            _ => gzip(&body),
        };
        let answer = stand.post("/v1/traces", &[PROTOBUF, ("content-encoding", encoding)], &compressed).await;
        assert_eq!(answer.status, 200, "{encoding}");
        assert_eq!(stand.bodies()[n], body, "{encoding}");
        let lying = stand.post("/v1/traces", &[PROTOBUF, ("content-encoding", encoding)], b"plain words").await;
        assert_eq!((lying.status, lying.rpc_status().code), (400, 3), "{encoding}");
    }
    stand.assert_nothing_held().await;
}

#[tokio::test]
async fn a_foreign_host_or_page_is_refused_before_its_body() {
    let mut setup = Setup::default();
    setup.config.http.allowed_hosts = vec!["iris.agents.svc".to_owned()];
    setup.config.http.allowed_origins = vec!["https://console.example.com".to_owned()];
    let stand = Stand::with(setup).await;
    // None of the announced bytes is ever sent.
    let unsent = ("content-length", "1000");
    let port = stand.http().port();
    let own_page = format!("http://localhost:{port}");
    for (name, value) in [
        ("host", "evil.example:4318"),
        ("host", "localhost:1"),
        ("origin", "null"),
        ("origin", "https://evil.example"),
        ("origin", "http://localhost:1"),
    ] {
        let answer = stand.post("/v1/traces", &[JSON, unsent, (name, value)], b"").await;
        assert_eq!((answer.status, &answer.json()["code"]), (403, &7.into()), "{name}: {value}");
        assert_eq!(answer.header("connection"), Some("close"), "the rest is not waited for");
    }
    assert_eq!(count(&stand.counters.http.requests.foreign), 5);
    for (name, value) in [("host", "iris.agents.svc"), ("origin", &own_page), ("origin", "https://console.example.com")]
    {
        assert_eq!(stand.post("/v1/traces", &[JSON, (name, value)], b"{}").await.status, 200, "{name}: {value}");
    }
}

#[tokio::test]
async fn with_a_token_set_every_request_needs_it() {
    let stand = Stand::with(Setup { token: Some("s3cret"), ..Setup::default() }).await;
    let unsent = ("content-length", "1000");
    let answer = stand.post("/v1/traces", &[PROTOBUF, unsent], b"").await;
    assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Bearer")));
    assert_eq!(answer.rpc_status().code, 16);
    let answer = stand.post("/v1/traces", &[PROTOBUF, unsent, ("authorization", "Bearer wrong")], b"").await;
    assert_eq!((answer.status, answer.rpc_status().code), (403, 7));
    let answer = stand.post("/v1/traces", &[PROTOBUF, ("authorization", "Bearer s3cret")], b"").await;
    assert_eq!(answer.status, 200);
    assert_eq!(count(&stand.counters.http.requests.unauthenticated), 2);
    let answer = exchange(stand.http(), "GET", "/.well-known/oauth-authorization-server", &[], b"").await;
    assert_eq!((answer.status, answer.header("www-authenticate")), (404, None), "nobody authorizes here");
}

#[tokio::test]
async fn calls_at_the_wrong_door_are_told_the_right_one() {
    let stand = Stand::usual().await;
    let (grpc, http) = (stand.doors.grpc().unwrap(), stand.http());
    let answer = exchange(grpc, "POST", "/v1/traces", &[PROTOBUF], b"").await;
    assert_eq!(answer.status, 415);
    let words = String::from_utf8(answer.body.to_vec()).unwrap();
    assert!(words.contains(&http.to_string()) && words.contains("/v1/traces"), "{words}");
    assert_eq!(count(&stand.counters.grpc.requests.misdirected), 1);
    let status = super::grpc::export(&stand, http, spans(0, 1)).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unimplemented);
    assert!(status.message().contains(&grpc.to_string()), "{}", status.message());
    assert_eq!(count(&stand.counters.http.requests.misdirected), 1);
}

/// A gateway's key: each resource may name its tenant, over both doors; another key's are ignored.
#[tokio::test]
async fn a_gateways_resources_go_to_the_tenants_they_name() {
    let key = |name: &str, may_set_tenant| KeyConfig {
        name: name.to_owned(),
        key: Some(format!("{name}-key").into()),
        key_file: None,
        tenant: name.to_owned(),
        scopes: vec![Scope::Write],
        may_set_tenant,
    };
    let stand = Stand::with(Setup { keys: vec![key("gate", true), key("plain", false)], ..Setup::default() }).await;
    let message = serde_json::json!({ "resourceSpans": [
        { "resource": { "attributes": [{ "key": "iris.tenant", "value": { "stringValue": "red" } }] },
          "scopeSpans": [{ "spans": [{ "traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174" }] }] },
        { "scopeSpans": [{ "spans": [{ "traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b175" }] }] },
    ] });
    for (bearer, wanted) in [("Bearer gate-key", &["gate", "red"][..]), ("Bearer plain-key", &["plain"])] {
        let answer = stand.post("/v1/traces", &[JSON, ("authorization", bearer)], message.to_string().as_bytes()).await;
        assert_eq!((answer.status, answer.json()), (200, serde_json::json!({})));
        let records = std::mem::take(&mut *stand.records.lock().unwrap());
        let tenants: Vec<_> = records.iter().map(|(_, record)| record.tenant.as_str()).collect();
        assert_eq!(tenants, wanted);
    }
    assert_eq!(stand.counters.tenants_ignored.load(Ordering::Relaxed), 1);
    stand.assert_nothing_held().await;
}
