//! `serve`: run the sidecar until a signal ends it.

use std::process::ExitCode;

use clap::Args;

use super::{Settings, Stop};
use crate::run;

/// Run the sidecar: take OTLP, forward it, judge it, answer questions.
#[derive(Debug, Args)]
pub(super) struct Serve {
    #[command(flatten)]
    settings: Settings,
}

impl Serve {
    pub(super) fn run(&self) -> Result<ExitCode, Stop> {
        let config = self.settings.load()?;
        crate::telemetry::start(&config.logging);
        let runtime = super::runtime()?;
        let home = config.home(std::env::var_os("HOME").as_deref());
        let scheme = if config.web.tls.is_on() { "https" } else { "http" };
        let done = runtime.block_on(async {
            let signal = run::signal()?;
            let sidecar = run::Sidecar::start(config, &home).await?;
            if let Some(web) = &sidecar.runtime().web {
                tracing::info!("the dashboard is at {scheme}://{web}/");
            }
            signal.await;
            sidecar.drain().await;
            anyhow::Ok(())
        });
        runtime.shutdown_timeout(std::time::Duration::from_secs(1));
        done.map_err(Stop::failed)?;
        Ok(ExitCode::SUCCESS)
    }
}
