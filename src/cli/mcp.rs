//! `mcp`: the tools on standard input and output.
//!
//! When a process holds the home, this one relays its client's messages to it. Otherwise it takes the home, opens the
//! store itself with every network door closed, and serves the socket until its client leaves. Should the holder end
//! first, the client does not: this process finds the next one, or becomes it.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::io::AsyncRead;
use tokio::net::UnixStream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Settings, Stop};
use crate::config::Config;
use crate::run::Sidecar;
use crate::serve::{End, Relay};
use crate::tools::World;
use crate::{home, run, serve};

/// How long to look for the socket of a process that holds the home but does not serve it yet.
const HELD_MAX: Duration = Duration::from_secs(10);

/// How often to look.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How often to try again what failed for another reason than a held home.
const FAILED_AGAIN: Duration = Duration::from_secs(1);

/// How long a sidecar that ended may take to come back before its home is taken: it is restarted by what runs it, and
/// would find its home held.
const RETURN_MAX: Duration = Duration::from_secs(5);

/// How long the first call is held back for the store to open; later ones say that it does.
const OPEN_MAX: Duration = Duration::from_secs(10);

/// What lies between us and our own tools.
const PIPE_BYTES: usize = 64 * 1024;

/// Serve the tools over MCP on standard input and output.
#[derive(Debug, Args)]
pub(super) struct Mcp {
    #[command(flatten)]
    settings: Settings,
}

/// Whoever answers.
enum Link {
    /// Another process, and whether it is a sidecar that takes spans.
    Other(UnixStream, bool),
    /// This one.
    Own(Box<Sidecar>),
}

impl Mcp {
    pub(super) fn run(&self) -> Result<ExitCode, Stop> {
        let config = self.settings.load()?;
        crate::telemetry::start(&config.logging);
        run::harden();
        let runtime = super::runtime()?;
        let home = config.home(std::env::var_os("HOME").as_deref());
        let done = runtime.block_on(async {
            let (input, output) = rmcp::transport::io::stdio_pipes();
            let (mut relay, writing) = serve::relay(input, output, config.mcp.message_bytes());
            // The two tools that cost money use the keys and limits of the process that the agent started.
            if let Some(judging) = run::judging(&config, &home).await? {
                relay = relay.asking(judging, World::REAL);
            }
            let (served, written) = tokio::join!(attend(relay, &config, &home), writing);
            served.and(written.map_err(Into::into))
        });
        // A read of standard input cannot be cancelled: do not wait for it.
        runtime.shutdown_background();
        match done {
            Err(error) if !is_gone(&error) => Err(Stop::failed(error)),
            _ => Ok(ExitCode::SUCCESS),
        }
    }
}

/// Serves the client until it leaves or a signal comes, whoever answers.
async fn attend(mut relay: Relay<impl AsyncRead + Unpin>, config: &Config, home: &Path) -> anyhow::Result<()> {
    let signal = run::signal()?;
    tokio::pin!(signal);
    let mut before = None;
    loop {
        let link = tokio::select! {
            link = relay.wait_for(attach(config, home, before)) => link?,
            () = &mut signal => return Ok(()),
        };
        let Some(link) = link.transpose()? else { return Ok(()) };
        match link {
            Link::Other(stream, is_sidecar) => {
                let end = tokio::select! {
                    end = relay.carry_and_ask(stream) => end?,
                    () = &mut signal => return Ok(()),
                };
                if end == End::ClientLeft {
                    return Ok(());
                }
                tracing::info!("the process that held the home ended");
                before = Some(Before { at: Instant::now(), is_sidecar });
            }
            Link::Own(sidecar) => {
                let carried = tokio::select! {
                    carried = carry_own(&mut relay, &sidecar, config.mcp.message_bytes()) => carried,
                    () = &mut signal => Ok(()),
                };
                sidecar.drain().await;
                return carried;
            }
        }
    }
}

/// The client and our own tools, until the client leaves.
async fn carry_own(
    relay: &mut Relay<impl AsyncRead + Unpin>,
    sidecar: &Sidecar,
    message_bytes_max: usize,
) -> anyhow::Result<()> {
    if relay.wait_for(sidecar.opened(OPEN_MAX)).await?.is_none() {
        return Ok(());
    }
    loop {
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        let attending = serve::attend(far, Arc::clone(sidecar.app()), message_bytes_max, CancellationToken::new());
        let (end, ()) = tokio::join!(relay.carry(near), attending);
        if end? == End::ClientLeft {
            return Ok(());
        }
        // Our own end gives up a client that does not begin as the protocol says; the client may still begin anew.
        if relay.wait_for(tokio::time::sleep(LOOK_EVERY)).await?.is_none() {
            return Ok(());
        }
    }
}

/// Whoever answered before.
#[derive(Debug, Clone, Copy)]
struct Before {
    /// When it ended.
    at: Instant,
    /// Whether it took spans.
    is_sidecar: bool,
}

/// Finds whoever holds the home, or takes it. Several clients may look at once: one takes it, the others find its
/// socket a moment later. A client that was served before is never given up.
async fn attach(config: &Config, home: &Path, before: Option<Before>) -> anyhow::Result<Link> {
    let begun = Instant::now();
    let mut told = None;
    let mut wait = if before.is_some() { LOOK_EVERY } else { Duration::ZERO };
    loop {
        tokio::time::sleep(wait).await;
        let error = match reach(config, home, before).await {
            Ok(Some(link)) => return Ok(link),
            Ok(None) => {
                wait = LOOK_EVERY;
                continue;
            }
            Err(error) => error,
        };
        let is_held = matches!(error.downcast_ref(), Some(home::Error::Held { .. }));
        if before.is_none() && !(is_held && begun.elapsed() < HELD_MAX) {
            return Err(error);
        }
        wait = if is_held { LOOK_EVERY } else { FAILED_AGAIN };
        let error = format!("{error:#}");
        if told.as_ref() != Some(&error) {
            tracing::warn!(error, "nobody answers for this home yet");
            told = Some(error);
        }
    }
}

/// One attempt. `None`: a sidecar that ended may still come back.
async fn reach(config: &Config, home: &Path, before: Option<Before>) -> anyhow::Result<Option<Link>> {
    if let Some(stream) = serve::connect(home).await? {
        let is_sidecar = home::runtime(home).is_some_and(|runtime| runtime.takes_spans());
        return Ok(Some(Link::Other(stream, is_sidecar)));
    }
    if before.is_some_and(|before| before.is_sidecar && before.at.elapsed() < RETURN_MAX) {
        return Ok(None);
    }
    Ok(Some(Link::Own(Box::new(Sidecar::start_alone(config.clone(), home).await?))))
}

/// Whether a client that no longer reads is all that happened.
fn is_gone(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
