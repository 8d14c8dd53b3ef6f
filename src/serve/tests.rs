use std::net::SocketAddr;
use std::sync::OnceLock;

use iris_core::model::Timestamp;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::*;
use crate::door::probe::get;
use crate::journal::{Journal, RealDisk};
use crate::rulebook::Rulebook;
use crate::tools::World;

fn app(home: &std::path::Path) -> Arc<App> {
    let (journal, _) = Journal::open(home, &crate::journal::Config::default(), false, Arc::new(RealDisk)).unwrap();
    Arc::new(App {
        rulebook: Rulebook::built_in(),
        settings: Arc::default(),
        journal,
        world: World::REAL,
        backend: OnceLock::new(),
        started: Timestamp::default(),
    })
}

async fn open(home: &std::path::Path, key: Option<&str>) -> (SocketAddr, CancellationToken) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (to, cancel) = (listener.local_addr().unwrap(), CancellationToken::new());
    let config = Config { api_key: key.map(SecretString::from), ..Config::default() };
    let (app, stop) = (app(home), cancel.clone());
    tokio::spawn(async move { serve(listener, &config, app, stop).await });
    (to, cancel)
}

/// Guarantees: every path but the health check needs the key, and whose page asks is checked before it.
#[tokio::test]
async fn with_a_key_set_every_request_needs_it() {
    let home = tempfile::tempdir().unwrap();
    let (to, _cancel) = open(home.path(), Some("s3cret")).await;
    let key = ("authorization", "Bearer s3cret");
    for path in ["/api/v1/tools", "/api/v1/traces", "/mcp", "/nowhere"] {
        let (status, answer) = get(to, path, &[]).await;
        assert!(status == 401 && answer.contains("www-authenticate: Bearer"), "{path}: {answer}");
        assert_eq!(get(to, path, &[("authorization", "Bearer wrong")]).await.0, 403, "{path}");
        assert_eq!(get(to, path, &[key, ("origin", "https://evil.example")]).await.0, 403, "{path}");
        assert_eq!(get(to, path, &[key, ("host", "evil.example")]).await.0, 403, "{path}");
    }
    assert_eq!(get(to, "/api/v1/tools", &[key]).await.0, 200);
    assert_eq!(get(to, "/api/v1/health", &[]).await.0, 503, "the store is not open, and that is told without a key");
}

/// Guarantees: a name that a caller made up comes back short, without control characters.
#[tokio::test]
async fn a_made_up_parameter_is_not_echoed() {
    let home = tempfile::tempdir().unwrap();
    let (to, _cancel) = open(home.path(), None).await;
    let name = format!("{}%1b%0a", "n".repeat(2000));
    for query in [format!("{name}=1&{name}=2"), format!("{name}=1")] {
        let (status, answer) = get(to, &format!("/api/v1/traces?{query}"), &[]).await;
        assert_eq!(status, 400);
        assert!(answer.contains(&"n".repeat(64)) && !answer.contains(&"n".repeat(65)), "{answer}");
        assert!(!answer.contains("\\u001b"), "{answer}");
    }
}

/// Guarantees: a message above the limit is dropped, whatever its length, and the peer is answered after it.
#[tokio::test]
async fn a_message_too_long_for_the_socket_is_dropped() {
    let home = tempfile::tempdir().unwrap();
    let cancel = CancellationToken::new();
    let (app, folder, stop) = (app(home.path()), home.path().to_owned(), cancel.clone());
    let serving = tokio::spawn(async move { listen_socket(&folder, app, stop).await });
    let path = home.path().join(socket::NAME);
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    let stream = loop {
        match UnixStream::connect(&path).await {
            Ok(stream) => break stream,
            Err(error) => assert!(std::time::Instant::now() < deadline, "{error}"),
        }
        tokio::task::yield_now().await;
    };
    let (answers, mut messages) = stream.into_split();
    let long = vec![b'x'; BODY_BYTES_MAX + 1024];
    let hello = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    for message in [&long[..], b"\n", hello, b"\n"] {
        messages.write_all(message).await.unwrap();
    }
    let mut answer = String::new();
    let read = tokio::time::timeout(Duration::from_secs(20), BufReader::new(answers).read_line(&mut answer)).await;
    read.unwrap().unwrap();
    assert!(answer.contains("\"id\":1") && answer.contains("iris-sidecar"), "{answer}");
    cancel.cancel();
    serving.await.unwrap().unwrap();
}
