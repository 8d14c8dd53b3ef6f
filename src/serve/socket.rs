//! MCP for local processes: the sidecar serves a socket in its home, and `iris-sidecar mcp` relays its standard
//! streams to it. The two ends must belong to the same user.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use rmcp::ServiceExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Mcp;
use super::lines::Peer;
use crate::tools::{App, Caller};

/// Peers served at once.
const PEERS_MAX: usize = 64;

/// The socket's name in the home folder.
pub const NAME: &str = "iris.sock";

/// Serves MCP on the socket in `home` until `cancel`. The caller holds the home's lock, so that a socket found there
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
        let handler = Mcp::believing(Arc::clone(&app), Caller::local());
        let attending = attend_with(stream, handler, message_bytes_max, cancel.child_token());
        peers.spawn(async move {
            let _place = place;
            attending.await;
        });
    }
    peers.close();
    peers.wait().await;
    let _ = std::fs::remove_file(&path);
    Ok(())
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
