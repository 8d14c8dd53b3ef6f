//! A client for tests: one request a connection, any header.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Asks with GET. Returns the status and the answer as it came. `headers` replace the usual Host or come beside it.
pub(crate) async fn get(to: SocketAddr, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let own = to.to_string();
    let host = [("host", own.as_str())];
    let has_host = headers.iter().any(|(name, _)| *name == "host");
    let usual = if has_host { &host[..0] } else { &host[..] };
    let mut request = format!("GET {path} HTTP/1.1\r\nconnection: close\r\n");
    for (name, value) in usual.iter().chain(headers) {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut stream = TcpStream::connect(to).await.unwrap();
    stream.write_all(format!("{request}\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    (status.unwrap_or_default(), answer)
}
