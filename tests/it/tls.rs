//! TLS at the doors and towards the collector, with certificates and keys that are rotated while it runs.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::uri::PathAndQuery;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};

use crate::support::collector::{Collector, RawCodec};
use crate::support::iris::{Iris, tls, tls_path};
use crate::support::spans::{agent_run, request};

const WAIT: Duration = Duration::from_secs(30);
const PROTOBUF: &str = "application/x-protobuf";

/// A client that trusts one CA, and shows a certificate when it is to.
fn client(ca: &str, identity: Option<&str>) -> reqwest::Client {
    let ca = reqwest::Certificate::from_pem(&tls(ca)).unwrap();
    let mut client = reqwest::Client::builder().no_proxy().timeout(WAIT).tls_certs_only([ca]);
    if let Some(name) = identity {
        let pem = [tls(&format!("{name}.crt")), tls(&format!("{name}.key"))].concat();
        client = client.identity(reqwest::Identity::from_pem(&pem).unwrap());
    }
    client.build().unwrap()
}

async fn export(iris: &Iris, ca: &str, trace: u64) -> Result<Bytes, String> {
    let address = iris.door("grpc");
    let endpoint = Endpoint::from_shared(format!("https://localhost:{}", address.port())).unwrap();
    let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(tls(ca)));
    let channel = endpoint.tls_config(tls).unwrap().connect().await.map_err(|error| format!("{error:?}"))?;
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.map_err(|error| error.to_string())?;
    let path = PathAndQuery::from_static("/opentelemetry.proto.collector.trace.v1.TraceService/Export");
    let body = request(agent_run(trace, 2, "It is 18 C."));
    let answer = client.unary(tonic::Request::new(body), path, RawCodec).await;
    answer.map(tonic::Response::into_inner).map_err(|status| status.to_string())
}

/// Puts a certificate and its key where the sidecar reads them, each whole or not at all.
fn put(folder: &Path, name: &str) {
    for ending in ["crt", "key"] {
        let draft = folder.join(format!("draft.{ending}"));
        std::fs::write(&draft, tls(&format!("{name}.{ending}"))).unwrap();
        std::fs::rename(&draft, folder.join(format!("tls.{ending}"))).unwrap();
    }
}

/// Scenario: every door speaks TLS; then the certificate is replaced by one of another CA.
/// Guarantees: clients that trust the CA come in by each door, plain text and strangers do not; connections after the
/// replacement see the new certificate, without a restart and without one refused request in between.
#[tokio::test(flavor = "multi_thread")]
async fn every_door_speaks_tls_and_takes_a_new_certificate() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "server");
    let (cert, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let mut iris = Iris::start(&[
        ("IRIS__RECEIVE__TLS__CERT_FILE", cert),
        ("IRIS__RECEIVE__TLS__KEY_FILE", key),
        ("IRIS__WEB__TLS__CERT_FILE", cert),
        ("IRIS__WEB__TLS__KEY_FILE", key),
        ("IRIS__OPS__TLS__CERT_FILE", cert),
        ("IRIS__OPS__TLS__KEY_FILE", key),
    ])
    .await;
    let url = |iris: &Iris, scheme: &str, door: &str, path: &str| format!("{scheme}://{}{path}", iris.door(door));
    let trusted = client("ca.crt", None);
    for (door, path) in [("web", "/api/v1/health"), ("ops", "/metrics")] {
        let answer = trusted.get(url(&iris, "https", door, path)).send().await.unwrap();
        // The store may not be open yet.
        assert!(answer.status() == 200 || answer.status() == 503, "{door}");
        assert!(trusted.get(url(&iris, "http", door, path)).send().await.is_err(), "{door} in the clear");
        assert!(client("other-ca.crt", None).get(url(&iris, "https", door, path)).send().await.is_err(), "{door}");
    }
    let traces = url(&iris, "https", "http", "/v1/traces");
    let post = |client: reqwest::Client, trace: u64| {
        let body = request(agent_run(trace, 2, "It is 18 C."));
        client.post(traces.clone()).header("content-type", PROTOBUF).body(body).send()
    };
    assert_eq!(post(trusted.clone(), 1).await.unwrap().status(), 200);
    export(&iris, "ca.crt", 2).await.unwrap();
    assert!(export(&iris, "other-ca.crt", 3).await.is_err());

    put(folder.path(), "rotated");
    let deadline = Instant::now() + WAIT;
    // Every look is a connection of its own; the one that is open goes on.
    while post(client("other-ca.crt", None), 4).await.is_err() {
        assert_eq!(post(trusted.clone(), 5).await.unwrap().status(), 200);
        assert!(Instant::now() < deadline, "the new certificate is not shown:\n{}", iris.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(post(client("ca.crt", None), 6).await.is_err(), "the old certificate is still shown");
    // What cannot be used leaves what was there.
    std::fs::write(key, "no key").unwrap();
    let known = || iris.log().contains("stays in force");
    while !known() {
        assert!(Instant::now() < deadline, "{}", iris.log());
        assert_eq!(post(client("other-ca.crt", None), 7).await.unwrap().status(), 200);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    put(folder.path(), "server");
    assert!(iris.terminate().await.success());
}

/// Scenario: the OTLP doors ask for client certificates and for nothing else, at an address beyond loopback.
/// Guarantees: it starts; whoever shows none, or one of another CA, does not come in.
#[tokio::test(flavor = "multi_thread")]
async fn only_clients_with_a_certificate_send() {
    let iris = Iris::start(&[
        ("IRIS__RECEIVE__HTTP__LISTEN", "0.0.0.0:0"),
        ("IRIS__RECEIVE__TLS__CERT_FILE", &tls_path("server.crt")),
        ("IRIS__RECEIVE__TLS__KEY_FILE", &tls_path("server.key")),
        ("IRIS__RECEIVE__TLS__CLIENT_CA_FILE", &tls_path("ca.crt")),
    ])
    .await;
    let url = format!("https://127.0.0.1:{}/v1/traces", iris.door("http").port());
    let post = |client: reqwest::Client| {
        client.post(&url).header("content-type", PROTOBUF).body(request(agent_run(1, 2, "It is 18 C."))).send()
    };
    assert_eq!(post(client("ca.crt", Some("client"))).await.unwrap().status(), 200);
    assert!(post(client("ca.crt", None)).await.is_err());
    assert!(post(client("ca.crt", Some("rotated"))).await.is_err());
}

/// Scenario: the collector speaks TLS with a certificate of a CA that no system knows, and asks for one in return.
/// Guarantees: it gets nothing while the file of the CA has another's, and everything over gRPC and over HTTP once that is
/// replaced, without a restart; a file that cannot be used changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn the_collector_is_known_by_its_ca() {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.crt");
    for protocol in ["grpc", "http"] {
        std::fs::write(&ca, tls("other-ca.crt")).unwrap();
        let chain = vec![CertificateDer::from_pem_slice(&tls("server.crt")).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(&tls("server.key")).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&tls("ca.crt")).unwrap()).unwrap();
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().unwrap();
        let config =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions().unwrap();
        let mut config = config.with_client_cert_verifier(verifier).with_single_cert(chain, key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let collector = Collector::start_tls(config).await;
        let endpoint = format!("https://localhost:{}", collector.address().port());
        let settings = [
            ("IRIS__FORWARD__ENDPOINT", endpoint),
            ("IRIS__FORWARD__PROTOCOL", protocol.to_owned()),
            ("IRIS__FORWARD__RETRY_INITIAL_MS", "50".to_owned()),
            ("IRIS__FORWARD__RETRY_MAX_MS", "100".to_owned()),
            ("IRIS__FORWARD__CERT_FILE", tls_path("client.crt")),
            ("IRIS__FORWARD__KEY_FILE", tls_path("client.key")),
            ("IRIS__FORWARD__CA_FILE", ca.display().to_string()),
        ];
        let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let iris = Iris::start(&settings).await;
        let body = request(agent_run(1, 2, "It is 18 C."));
        assert_eq!(iris.post("traces", PROTOBUF, body.clone()).await.unwrap().0, 200);
        iris.until("ops", "/readyz?full", WAIT, |full| {
            let lanes = full["forward"].as_array().cloned().unwrap_or_default();
            lanes.iter().any(|lane| lane["lane"] == "traces" && lane["failed"].as_u64() > Some(2))
        })
        .await;
        assert!(collector.attempts("traces").is_empty(), "{protocol}: sent to whom it does not know");
        std::fs::write(&ca, tls("ca.crt")).unwrap();
        collector.until("the trace", |collector| collector.bodies("traces") == [body.clone()]).await;
        std::fs::write(&ca, "no certificate").unwrap();
        let deadline = Instant::now() + WAIT;
        let mut number = 1;
        while !iris.log().contains("stays in force") {
            number += 1;
            let body = request(agent_run(number, 2, "It is 18 C."));
            assert_eq!(iris.post("traces", PROTOBUF, body).await.unwrap().0, 200);
            assert!(Instant::now() < deadline, "{}", iris.log());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        collector.until("the others", |collector| collector.bodies("traces").len() as u64 == number).await;
    }
}

/// Scenario: a bearer token in a file with a line end of another system; the file is replaced while it runs, made empty,
/// and replaced again.
/// Guarantees: the token counts without its line end, the new one counts without a restart, the old one no more, and an
/// empty file lets nobody in who was not let in before.
#[tokio::test(flavor = "multi_thread")]
async fn g10_08_a_token_file_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "first\r\n").unwrap();
    let iris = Iris::start(&[("IRIS__RECEIVE__TOKEN_FILE", file.to_str().unwrap())]).await;
    let url = format!("http://{}/v1/traces", iris.door("http"));
    let post = |token: &'static str| {
        let sent = client("ca.crt", None).post(&url).header("content-type", PROTOBUF).bearer_auth(token);
        let sent = sent.body(request(agent_run(1, 2, "It is 18 C."))).send();
        async move { sent.await.unwrap().status().as_u16() }
    };
    assert_eq!((post("first").await, post("second").await), (200, 403));
    std::fs::write(&file, "second\n").unwrap();
    let deadline = Instant::now() + WAIT;
    while post("second").await != 200 {
        assert!(Instant::now() < deadline, "the new token does not count:\n{}", iris.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(post("first").await, 403);
    std::fs::write(&file, "").unwrap();
    while !iris.log().contains("stays in force") {
        assert!(Instant::now() < deadline, "{}", iris.log());
        assert_eq!(post("second").await, 200);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!((post("second").await, post("first").await, post("").await), (200, 403, 401));
}

/// Scenario: doors beyond loopback with nothing that says who may come in; key files that are absent, empty or unreadable.
/// Guarantees: it does not start, and says which setting is at fault.
#[tokio::test(flavor = "multi_thread")]
async fn g10_08_an_open_door_and_a_key_that_cannot_be_read_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "\r\n").unwrap();
    let (empty, absent) =
        (empty.to_str().unwrap().to_owned(), folder.path().join("absent").to_str().unwrap().to_owned());
    for (name, value, said) in [
        ("IRIS__RECEIVE__HTTP__LISTEN", "0.0.0.0:0", "receive.http.listen"),
        ("IRIS__RECEIVE__GRPC__LISTEN", "[::]:0", "receive.grpc.listen"),
        ("IRIS__WEB__LISTEN", "0.0.0.0:0", "web.listen"),
        ("IRIS__RECEIVE__TOKEN_FILE", &empty, "receive.token_file"),
        ("IRIS__RECEIVE__TOKEN_FILE", &absent, "receive.token_file"),
        ("IRIS__RECEIVE__TLS__CERT_FILE", &absent, "receive.tls"),
        ("IRIS__FORWARD__CERT_FILE", &absent, "forward.cert_file"),
    ] {
        let mut iris = Iris::prepared(&[(name, value)]);
        let (status, log) = iris.start_refused().await;
        assert!(!status.success() && log.contains(said), "{name}={value}: {status} {log}");
    }
}
