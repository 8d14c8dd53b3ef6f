//! A socket in the home for processes of the same user: `iris-sidecar mcp` relays its standard streams to it, and the
//! command line asks the HTTP API there when the web door is shut. The first byte tells the two apart.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rmcp::ServiceExt;
use rustix::net::RecvFlags;
use tokio::io::{AsyncRead, AsyncWrite, Interest};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::lines::Peer;
use super::{DRAIN_MAX, Mcp};
use crate::tools::{App, Caller};

/// Peers served at once.
const PEERS_MAX: usize = 64;

/// How long the head of an HTTP request may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The socket's name in the home folder.
pub const NAME: &str = "iris.sock";

/// Serves MCP and the HTTP API on the socket in `home` until `cancel`. The caller holds the home's lock, so that a socket found there
/// is left over from a process that ended.
///
/// # Errors
/// When the socket cannot be made.
pub async fn listen(home: &Path, app: Arc<App>, message_bytes_max: usize, cancel: CancellationToken) -> io::Result<()> {
    let path = home.join(NAME);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    let peers = TaskTracker::new();
    let places = Arc::new(Semaphore::new(PEERS_MAX));
    loop {
        let place = tokio::select! {
            () = cancel.cancelled() => break,
            place = Arc::clone(&places).acquire_owned() => place.map_err(io::Error::other)?,
        };
        let stream = tokio::select! {
            () = cancel.cancelled() => break,
            accepted = listener.accept() => accepted?.0,
        };
        if !same_user(&stream) {
            tracing::warn!("refused a process of another user on the socket");
            continue;
        }
        let (app, cancel) = (Arc::clone(&app), cancel.child_token());
        peers.spawn(async move {
            let _place = place;
            let is_http = tokio::select! {
                () = cancel.cancelled() => return,
                is_http = speaks_http(&stream) => is_http,
            };
            if is_http {
                let router = super::answering(&app, Caller::local(), message_bytes_max);
                answer(stream, router, cancel).await;
            } else {
                attend_with(stream, Mcp::believing(app, Caller::local()), message_bytes_max, cancel).await;
            }
        });
    }
    peers.close();
    peers.wait().await;
    let _ = std::fs::remove_file(&path);
    Ok(())
}

/// Whether the peer begins with the name of an HTTP method: messages of MCP are JSON objects.
async fn speaks_http(stream: &UnixStream) -> bool {
    let peeked = stream.async_io(Interest::READABLE, || {
        let mut first = [0_u8; 1];
        let (got, _) = rustix::net::recv(stream, &mut first[..], RecvFlags::PEEK)?;
        Ok(got == 1 && first[0].is_ascii_uppercase())
    });
    peeked.await.unwrap_or(false)
}

/// Answers one peer over HTTP until it leaves or `cancel`.
async fn answer(stream: UnixStream, router: Router, cancel: CancellationToken) {
    let service = TowerToHyperService::new(router);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // How a connection ends is the peer's affair.
        _ = connection.as_mut() => return,
        () = cancel.cancelled() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = tokio::time::timeout(DRAIN_MAX, connection).await;
}

/// Serves MCP to one peer until it leaves or `cancel`.
pub async fn attend(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    app: Arc<App>,
    message_bytes_max: usize,
    cancel: CancellationToken,
) {
    attend_with(stream, Mcp::new(app, Caller::local()), message_bytes_max, cancel).await;
}

async fn attend_with(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    handler: Mcp,
    message_bytes_max: usize,
    cancel: CancellationToken,
) {
    let (read, write) = tokio::io::split(stream);
    let peer = Peer::new(read, write, message_bytes_max);
    match handler.serve_with_ct(peer, cancel).await {
        Ok(running) => drop(running.waiting().await),
        Err(error) => tracing::debug!(%error, "a peer left before it began"),
    }
}

fn same_user(stream: &UnixStream) -> bool {
    let ours = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == ours)
}

/// The socket in `home`. `None` when nobody listens there.
///
/// # Errors
/// When someone may listen there and cannot be reached.
pub async fn connect(home: &Path) -> io::Result<Option<UnixStream>> {
    match UnixStream::connect(home.join(NAME)).await {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => Ok(None),
        Err(error) => Err(error),
    }
}
