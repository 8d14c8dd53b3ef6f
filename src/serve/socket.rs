//! MCP for local processes: the sidecar serves a socket in its home, and `iris-sidecar mcp` copies its standard
//! streams to it. The two ends must belong to the same user.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleServer, ServiceExt};
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Mcp;
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
pub async fn listen(home: &Path, app: Arc<App>, cancel: CancellationToken) -> io::Result<()> {
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
        let mcp = Mcp::new(Arc::clone(&app), Caller::local());
        let cancel = cancel.child_token();
        peers.spawn(async move {
            let _place = place;
            match mcp.serve_with_ct(transport(stream), cancel).await {
                Ok(running) => drop(running.waiting().await),
                Err(error) => tracing::debug!(%error, "a peer left before it began"),
            }
        });
    }
    peers.close();
    peers.wait().await;
    let _ = std::fs::remove_file(&path);
    Ok(())
}

/// One message a line. A longer one is dropped before it is kept, and the peer stays.
fn transport(stream: UnixStream) -> AsyncRwTransport<RoleServer, ReadHalf<UnixStream>, WriteHalf<UnixStream>> {
    let (read, write) = tokio::io::split(stream);
    AsyncRwTransport::new_server(read, write).with_max_line_length(super::BODY_BYTES_MAX)
}

fn same_user(stream: &UnixStream) -> bool {
    let ours = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == ours)
}

/// Copies standard input and output to the socket in `home` until either side ends. False when nobody listens there.
///
/// # Errors
/// When copying fails.
pub async fn bridge(home: &Path) -> io::Result<bool> {
    let stream = match UnixStream::connect(home.join(NAME)).await {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    let (mut from_sidecar, mut to_sidecar) = stream.into_split();
    let (mut input, mut output) = rmcp::transport::io::stdio_pipes();
    let up = async {
        tokio::io::copy(&mut input, &mut to_sidecar).await?;
        to_sidecar.shutdown().await
    };
    let down = async {
        tokio::io::copy(&mut from_sidecar, &mut output).await?;
        output.flush().await
    };
    tokio::pin!(up, down);
    // The peer may close its input and still wait for answers; when the sidecar ends, so do we.
    tokio::select! {
        done = &mut down => done?,
        done = &mut up => { done?; down.await?; }
    }
    Ok(true)
}
