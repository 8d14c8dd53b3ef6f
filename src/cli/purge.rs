//! `purge`: delete traces, and every byte of them, while no sidecar runs.

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use iris_core::contract::{PurgeArgs, parse};
use iris_core::model::Tenant;
use serde_json::json;

use super::{Settings, Stop};
use crate::home;
use crate::run::Sidecar;
use crate::tools::Caller;

/// How long the store may take to open, and the files to be written anew.
const WAIT_MAX: Duration = Duration::from_secs(600);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Delete traces with their spans and evaluations, and every byte of them. Rules, the log of changes and settings stay.
/// Without a filter it deletes all. A sidecar that runs is asked with `POST /api/v1/purge` instead.
#[derive(Debug, Args)]
pub(super) struct Purge {
    /// Only those of this tenant [default: of every tenant]
    #[arg(long)]
    tenant: Option<String>,
    /// Only those of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only those that came before this time, ISO 8601 with an offset or Z
    #[arg(long, value_name = "TIME")]
    before: Option<String>,
    /// Only those that came so many days ago or earlier
    #[arg(long, value_name = "DAYS")]
    older_than_days: Option<u32>,
    #[command(flatten)]
    settings: Settings,
}

impl Purge {
    pub(super) fn run(&self) -> Result<ExitCode, Stop> {
        let wanted = json!({
            "agent_name": self.agent, "before": self.before, "older_than_days": self.older_than_days,
        });
        let wanted: PurgeArgs = parse(wanted).map_err(|error| Stop::usage(error.message))?;
        let mut config = self.settings.load()?;
        crate::telemetry::start(&config.logging);
        // The bytes go before this command ends; what waits for a collector goes on waiting.
        config.erase.within_minutes = 0;
        config.forward = crate::forward::Config::default();
        let runtime = super::runtime()?;
        let folder = config.home(std::env::var_os("HOME").as_deref());
        let done = runtime.block_on(async {
            let sidecar = match Sidecar::start_alone(config, &folder).await {
                Ok(sidecar) => sidecar,
                Err(error) => return Err(told(&error, &folder)),
            };
            let purged = self.purge(&sidecar, &wanted).await;
            sidecar.drain().await;
            purged
        });
        runtime.shutdown_timeout(Duration::from_secs(1));
        done.map_err(Stop::failed)?;
        Ok(ExitCode::SUCCESS)
    }

    async fn purge(&self, sidecar: &Sidecar, wanted: &PurgeArgs) -> anyhow::Result<()> {
        anyhow::ensure!(sidecar.opened(WAIT_MAX).await, "the database could not be opened; the log says why");
        let app = sidecar.app();
        let tenants = match &self.tenant {
            Some(name) => vec![Tenant::new(name)],
            None => sidecar.tenants().await?,
        };
        let mut out = std::io::stdout();
        for tenant in tenants {
            let caller = Caller::owner(tenant.clone());
            let mut purged = 0;
            loop {
                let reply = app.purge(wanted, &caller).await.map_err(|error| anyhow::anyhow!(error.message))?;
                purged += reply["traces"].as_u64().unwrap_or_default();
                if reply["more"] != true {
                    break;
                }
            }
            writeln!(out, "{}: {purged} traces deleted, with their spans and evaluations", tenant.as_str())?;
        }
        let until = Instant::now() + WAIT_MAX;
        while !app.is_erased() {
            anyhow::ensure!(
                Instant::now() < until,
                "the files could not be written anew yet; the next sidecar does it"
            );
            tokio::time::sleep(LOOK_EVERY).await;
        }
        writeln!(out, "the files were written anew: nothing of what was deleted is left in them")?;
        Ok(())
    }
}

/// Who holds the home can do it.
fn told(error: &anyhow::Error, folder: &std::path::Path) -> anyhow::Error {
    let is_held = matches!(error.downcast_ref(), Some(home::Error::Held { .. }));
    let web = home::runtime(folder).and_then(|runtime| runtime.web).filter(|_| is_held);
    match web {
        Some(web) => anyhow::anyhow!("{error:#}: ask it, POST http://{web}/api/v1/purge, or stop it"),
        None => anyhow::anyhow!("{error:#}"),
    }
}
