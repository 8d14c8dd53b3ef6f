//! The binary: everything is in the library, so that tests can reach it.

use std::process::ExitCode;

/// Traces come and go by the megabyte, and the memory limit is told by resident memory: what is free has to be given
/// back. Its settings are in `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    iris_sidecar::cli::main()
}
