//! `check-config`: is it right, and what is in effect?

use std::io::Write;
use std::process::ExitCode;

use clap::Args;

use super::{Settings, Stop};
use crate::config::FLAT;
use crate::forward::{self, Origin};
use crate::run;

/// Check the configuration and print what is in effect.
#[derive(Debug, Args)]
pub(super) struct CheckConfig {
    /// Print the environment variables that have a name of their own instead
    #[arg(long)]
    variables: bool,
    #[command(flatten)]
    settings: Settings,
}

impl CheckConfig {
    pub(super) fn run(&self) -> Result<ExitCode, Stop> {
        let mut out = std::io::stdout();
        if self.variables {
            for flat in FLAT {
                writeln!(out, "{:<18} {:<18} {}", flat.name, flat.key, flat.doc)?;
            }
            writeln!(
                out,
                "{:<18} {:<18} any other key, such as IRIS__ASSEMBLY__QUIET_MS",
                "IRIS__SECTION__KEY", "section.key"
            )?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut config = self.settings.load()?;
        if config.forward.origin == Origin::Inherited && run::is_own_listener(&config) {
            // As `serve` does, and says.
            writeln!(
                std::io::stderr(),
                "iris-sidecar: OTEL_EXPORTER_OTLP_ENDPOINT is our own listener and is ignored: nothing is forwarded"
            )?;
            config.forward = forward::Config::default();
        }
        let text = serde_saphyr::to_string(&config.effective()).map_err(Stop::failed)?;
        out.write_all(text.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}
