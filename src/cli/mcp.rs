//! `mcp`: the tools on standard input and output.
//!
//! When a sidecar runs on the same home, this process only copies its streams to it. Otherwise it opens the store
//! itself, with every network door closed, and serves the socket until its client leaves.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rmcp::ServiceExt;

use super::{Settings, Stop};
use crate::config::Config;
use crate::door::Listen;
use crate::forward::{self, Origin};
use crate::tools::Caller;
use crate::{home, run, serve};

/// How long to look for the socket of a process that holds the home but does not serve it yet.
const HELD_MAX: Duration = Duration::from_secs(10);

/// How often to look.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long the first call is held back for the store to open; later ones say that it does.
const OPEN_MAX: Duration = Duration::from_secs(10);

/// Serve the tools over MCP on standard input and output.
#[derive(Debug, Args)]
pub(super) struct Mcp {
    #[command(flatten)]
    settings: Settings,
}

impl Mcp {
    pub(super) fn run(&self) -> Result<ExitCode, Stop> {
        let config = self.settings.load()?;
        crate::telemetry::start(&config.logging);
        let runtime = super::runtime()?;
        let home = config.home(std::env::var_os("HOME").as_deref());
        let done = runtime.block_on(async {
            // Several clients may start at once: one takes the home, the others find its socket a moment later.
            let deadline = tokio::time::Instant::now() + HELD_MAX;
            loop {
                if serve::bridge(&home).await? {
                    return anyhow::Ok(());
                }
                match alone(config.clone(), &home).await {
                    Err(error) if is_held(&error) && tokio::time::Instant::now() < deadline => {
                        tokio::time::sleep(LOOK_EVERY).await;
                    }
                    done => return done,
                }
            }
        });
        // A read of standard input cannot be cancelled: do not wait for it.
        runtime.shutdown_background();
        done.map_err(Stop::failed)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn is_held(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(home::Error::Held { .. }))
}

async fn alone(mut config: Config, home: &std::path::Path) -> anyhow::Result<()> {
    config.receive.grpc.listen = Listen::Off;
    config.receive.http.listen = Listen::Off;
    config.web.listen = Listen::Off;
    config.ops.listen = Listen::Off;
    // What the environment says of a collector is meant for the agent that started us, or for its sidecar.
    if config.forward.origin == Origin::Inherited {
        config.forward = forward::Config::default();
    }
    let sidecar = run::Sidecar::start(config, home).await?;
    sidecar.opened(OPEN_MAX).await;
    let mcp = serve::Mcp::new(Arc::clone(sidecar.app()), Caller::local());
    match mcp.serve(rmcp::transport::io::stdio_pipes()).await {
        Ok(running) => {
            tokio::select! {
                _ = running.waiting() => {}
                done = run::signal() => done?,
            }
        }
        // A client that leaves before it begins has not failed.
        Err(error) => tracing::debug!(%error, "the client left before it began"),
    }
    sidecar.drain().await;
    Ok(())
}
