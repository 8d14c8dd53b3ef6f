//! What is made of the command line itself: completions and manual pages.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, Stop};

/// Print what makes a shell complete this command line.
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(super) fn run(&self) -> Result<ExitCode, Stop> {
        let mut written = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "iris-sidecar", &mut written);
        super::text::printed(io::Write::write_all(&mut io::stdout(), &written))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Write the manual pages, one for each command.
#[derive(Debug, Args)]
pub(super) struct Man {
    /// The folder that gets them, such as `/usr/local/share/man/man1`
    folder: PathBuf,
}

impl Man {
    pub(super) fn run(&self) -> Result<ExitCode, Stop> {
        let failed = |error: io::Error| Stop::usage(format!("{}: {error}", self.folder.display()));
        std::fs::create_dir_all(&self.folder).map_err(failed)?;
        clap_mangen::generate_to(Cli::command(), &self.folder).map_err(failed)?;
        Ok(ExitCode::SUCCESS)
    }
}
