use std::net::SocketAddr;

use iris_core::model::Timestamp;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::*;
use crate::door::probe::get;
use crate::journal::{Journal, RealDisk};
use crate::rulebook::Rulebook;
use crate::tools::World;

mod cases;

const LIMIT: usize = 100_000;

pub(super) fn app(home: &std::path::Path) -> Arc<App> {
    let (journal, _) = Journal::open(home, &crate::journal::Config::default(), false, Arc::new(RealDisk)).unwrap();
    Arc::new(App {
        rulebook: Rulebook::open(home),
        settings: Arc::default(),
        journal,
        world: World::REAL,
        backend: crate::tools::Slot::default(),
        started: Timestamp::default(),
        deleted: crate::deleted::Deletions::default(),
        facts: crate::tools::Facts::default(),
        judging: None,
    })
}

async fn open(home: &std::path::Path, key: Option<&str>) -> (SocketAddr, CancellationToken) {
    let cancel = CancellationToken::new();
    let config = Config { api_key: key.map(SecretString::from), ..Config::default() };
    (open_app(app(home), config, Vec::new(), cancel.clone()).await, cancel)
}

/// Serves `app` on a free port.
pub(super) async fn open_app(
    app: Arc<App>,
    config: Config,
    keys: Vec<KeyConfig>,
    stop: CancellationToken,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = listener.local_addr().unwrap();
    tokio::spawn(async move { serve(listener, &config, &keys, LIMIT, app, Beside::default(), stop).await });
    to
}

/// Guarantees: every path but the health check needs the key, and whose page asks is checked before it.
#[tokio::test]
async fn with_a_key_set_every_request_needs_it() {
    let home = tempfile::tempdir().unwrap();
    let (to, _cancel) = open(home.path(), Some("s3cret")).await;
    let key = ("authorization", "Bearer s3cret");
    for path in ["/api/v1/tools", "/api/v1/traces", "/mcp", "/nowhere", "/v1/traces"] {
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

/// The status and the answer to a POST.
async fn post(to: SocketAddr, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
    let mut request = format!("POST {path} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut stream = tokio::net::TcpStream::connect(to).await.unwrap();
    stream.write_all(format!("{request}content-length: {}\r\n\r\n", body.len()).as_bytes()).await.unwrap();
    // A body that is refused may not be read to its end.
    let _ = stream.write_all(body).await;
    let mut answer = String::new();
    let _ = tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer).await;
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    assert!(head.to_lowercase().contains("content-type: application/json"), "{path}: {answer}");
    (status, body.to_owned())
}

const MCP: [(&str, &str); 2] =
    [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];

/// Guarantees: what is no message is answered as JSON-RPC says, in JSON, with the status HTTP has for it.
#[tokio::test]
async fn over_http_what_is_no_message_is_answered_as_json_rpc() {
    let home = tempfile::tempdir().unwrap();
    let (to, _cancel) = open(home.path(), None).await;
    for (headers, body, status, code) in [
        (&MCP[..], &b""[..], 400, -32700),
        (&MCP[1..], b"", 400, -32700),
        (&MCP, b" \n", 400, -32700),
        (&MCP, b"hello", 400, -32700),
        (&MCP, b"[]", 400, -32600),
        (&MCP, b"{}", 400, -32600),
        (&MCP, br#"{"jsonrpc":"2.0","id":1}"#, 400, -32600),
        (&MCP[1..], b"{}", 415, -32600),
        (&[("content-type", "text/plain"), MCP[1]], b"{}", 415, -32600),
        (&MCP[..1], br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, 406, -32600),
        (&MCP, &[b'x'; LIMIT + 1], 413, -32600),
    ] {
        let (got, answer) = post(to, "/mcp", headers, body).await;
        let error: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((got, error["error"]["code"].as_i64()), (status, Some(code)), "{answer}");
        assert_eq!(error["jsonrpc"], "2.0");
        if status == 413 {
            assert!(answer.contains("100000") && answer.contains("mcp.message_bytes_max"), "{answer}");
        }
    }
    let (status, answer) = post(to, "/mcp", &MCP, br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
    assert_eq!((status, answer.contains("\"result\"")), (200, true), "{answer}");
}

/// Guarantees: an unknown tool, an unknown method and malformed parameters are the protocol's errors; a refused
/// argument stays a tool result that a model can read.
#[tokio::test]
async fn wrong_calls_are_answered_by_the_right_code() {
    let home = tempfile::tempdir().unwrap();
    let (to, _cancel) = open(home.path(), None).await;
    let initialize = r#"{"protocolVersion":7}"#;
    for (method, params, code) in [
        ("tools/call", r#"{"name":"no_such_tool","arguments":{}}"#, -32602),
        ("tools/call", r#"{"name":7}"#, -32602),
        ("tools/call", r#"{"arguments":{}}"#, -32602),
        ("tools/call", r#"{"name":"list_rules","arguments":[1]}"#, -32602),
        ("tools/call", r#""list_rules""#, -32600),
        ("tools/list", r#"{"cursor":"x"}"#, -32602),
        ("initialize", initialize, -32602),
        ("no/such", "{}", -32601),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":5,"method":"{method}","params":{params}}}"#);
        let (_, answer) = post(to, "/mcp", &MCP, body.as_bytes()).await;
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((&answer["id"], answer["error"]["code"].as_i64()), (&5.into(), Some(code)), "{body}: {answer}");
    }
    let body = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"list_rules","arguments":{"x":1}}}"#;
    let (status, answer) = post(to, "/mcp", &MCP, body.as_bytes()).await;
    assert!(
        status == 200 && answer.contains("IRIS_INVALID_ARGUMENT") && answer.contains("\"isError\":true"),
        "{answer}"
    );
}

/// Guarantees: a client that looks for an authorization server finds a plain 404, with a key set as well.
#[tokio::test]
async fn where_an_authorization_server_would_be_is_nothing() {
    for key in [None, Some("s3cret")] {
        let home = tempfile::tempdir().unwrap();
        let (to, cancel) = open(home.path(), key).await;
        for path in [
            "/.well-known/oauth-protected-resource",
            "/.well-known/oauth-protected-resource/mcp",
            "/.well-known/oauth-authorization-server",
            "/.well-known/openid-configuration",
            "/mcp/.well-known/openid-configuration",
            "/register",
        ] {
            let (status, answer) = get(to, path, &[]).await;
            assert_eq!(status, 404, "{path}");
            assert!(answer.contains("application/json") && !answer.contains("www-authenticate"), "{answer}");
            assert_eq!(get(to, path, &[("host", "evil.example")]).await.0, 403, "{path}");
        }
        let (status, answer) = post(to, "/register", &MCP, b"{}").await;
        assert_eq!(status, 404, "{answer}");
        cancel.cancel();
    }
}

/// Guarantees: the HTTP API says of a body that is too large what the limit is and which setting moves it.
#[tokio::test]
async fn a_body_that_is_too_large_is_told_the_limit_and_the_setting() {
    let home = tempfile::tempdir().unwrap();
    let (to, _cancel) = open(home.path(), None).await;
    let (status, answer) = post(to, "/api/v1/tools/log_trace", &MCP, &[b'x'; LIMIT + 1]).await;
    assert_eq!(status, 413);
    assert!(
        answer.contains("100000 bytes (mcp.message_bytes_max)") && answer.contains("IRIS_INVALID_ARGUMENT"),
        "{answer}"
    );
}

/// Connects to a socket as soon as somebody listens there.
async fn connected(path: &std::path::Path) -> UnixStream {
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    loop {
        match UnixStream::connect(path).await {
            Ok(stream) => return stream,
            Err(error) => assert!(std::time::Instant::now() < deadline, "{error}"),
        }
        tokio::task::yield_now().await;
    }
}

/// Scenario: the HTTP API is asked over the socket, as the command line does when the web door is shut, while another
/// peer has said nothing yet.
/// Guarantees: it answers as everywhere; an end of the sidecar waits for neither.
#[tokio::test]
async fn over_the_socket_the_http_api_answers() {
    let home = tempfile::tempdir().unwrap();
    let cancel = CancellationToken::new();
    let (app, folder, stop) = (app(home.path()), home.path().to_owned(), cancel.clone());
    let serving = tokio::spawn(async move { listen_socket(&folder, app, LIMIT, stop).await });
    let path = home.path().join(socket::NAME);
    let silent = connected(&path).await;
    let client = reqwest::Client::builder().unix_socket(path).no_proxy().timeout(Duration::from_secs(20));
    let client = client.build().unwrap();
    for (path, status) in [("rules", 200), ("traces", 503), ("nothing", 404)] {
        let answer = client.get(format!("http://iris.sock/api/v1/{path}")).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{path}");
        let told: serde_json::Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
        assert!(told.is_object(), "{path}");
    }
    cancel.cancel();
    tokio::time::timeout(Duration::from_secs(20), serving).await.unwrap().unwrap().unwrap();
    drop(silent);
}

/// Guarantees: what is no message is answered, a message above the limit with the limit, whatever its length, and the
/// peer is served on.
#[tokio::test]
async fn over_the_socket_what_is_no_message_is_answered_and_the_session_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let cancel = CancellationToken::new();
    let (app, folder, stop) = (app(home.path()), home.path().to_owned(), cancel.clone());
    let serving = tokio::spawn(async move { listen_socket(&folder, app, LIMIT, stop).await });
    let stream = connected(&home.path().join(socket::NAME)).await;
    let (answers, mut messages) = stream.into_split();
    let mut answers = BufReader::new(answers);
    let mut told = async |message: &[u8]| {
        messages.write_all(message).await.unwrap();
        messages.write_all(b"\n").await.unwrap();
        let mut answer = String::new();
        let read = tokio::time::timeout(Duration::from_secs(20), answers.read_line(&mut answer)).await;
        read.unwrap().unwrap();
        serde_json::from_str::<serde_json::Value>(&answer).unwrap()
    };
    for round in 1..3 {
        for (message, code) in [
            (&[b'x'; 10 * LIMIT][..], -32600),
            (&[b'x'; LIMIT + 1], -32600),
            (&[b'x'; LIMIT], -32700),
            (b"hello", -32700),
            (b"[]", -32600),
            (b"{}", -32600),
        ] {
            let answer = told(message).await;
            assert_eq!((answer["error"]["code"].as_i64(), &answer["id"]), (Some(code), &serde_json::Value::Null));
            let names_it = answer["error"]["data"]["setting"] == "mcp.message_bytes_max";
            assert_eq!(names_it, message.len() > LIMIT, "{answer}");
        }
        let hello = match round {
            1 => {
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#
            }
            _ => r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
        };
        let answer = told(hello.as_bytes()).await;
        assert_eq!((&answer["id"], answer["result"].is_object()), (&round.into(), true), "{answer}");
    }
    cancel.cancel();
    serving.await.unwrap().unwrap();
}
