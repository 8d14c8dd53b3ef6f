//! A wall clock that jumps.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{all_there, is_long, open, put};
use crate::support::iris::Iris;

pub const DAY: i64 = 24 * 60 * 60;
/// Back to the beginning of 1970, and a little after.
const LONG_AGO: i64 = -(56 * 365 * DAY);

/// The library that bends the clock; `None` where there is no C compiler.
#[expect(clippy::print_stderr, reason = "a test that did nothing says so")]
pub fn bent(folder: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/faults/clock.c");
    let library = folder.join("clock.so");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).args([&library, &source]).status();
    if !built.as_ref().is_ok_and(std::process::ExitStatus::success) {
        eprintln!("skipped: no C compiler: {built:?}");
        return None;
    }
    Some(library)
}

pub fn set(file: &Path, seconds: i64) {
    // In place: the sidecar has it mapped.
    use std::os::unix::fs::FileExt as _;
    let file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(file).unwrap();
    file.write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
}

/// Scenario: the wall clock jumps forwards and backwards under load, by seconds, by weeks and to 1970; between the jumps the
/// sidecar is killed and started with the clock as it is then.
/// Guarantees: everything is taken, judged and kept once, whatever the clock says; places in the journal are never used
/// twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_loses_and_doubles_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = bent(folder.path()) else { return };
    let file = folder.path().join("offset");
    set(&file, 0);
    let settings = [
        ("IRIS__ASSEMBLY__QUIET_MS", "200"),
        ("LD_PRELOAD", library.to_str().unwrap()),
        ("CLOCK_FILE", file.to_str().unwrap()),
    ];
    let mut iris = Iris::prepared(&settings);
    iris.start_again().await;
    let jumps = [5, -5, 20 * DAY, -20 * DAY, LONG_AGO, 3600, 0];
    let rounds = if is_long() { 10 } else { 1 };
    let mut number = 0;
    for _ in 0..rounds {
        for jump in jumps {
            set(&file, jump);
            for _ in 0..3 {
                number += 1;
                assert_eq!(put(&iris, number).await, 200, "{jump}");
            }
            all_there(&iris, [number], &format!("after a jump to {jump} s")).await;
            number += 1;
            assert_eq!(put(&iris, number).await, 200, "{jump}");
            iris.kill();
            iris.start_again().await;
            open(&iris).await;
            all_there(&iris, [number], &format!("started at {jump} s")).await;
        }
    }
    all_there(&iris, 1..=number, "at the end").await;
}
