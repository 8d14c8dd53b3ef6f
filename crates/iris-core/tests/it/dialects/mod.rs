//! What real instrumentations sent, understood and compared with what really happened.
//!
//! Cases lie in `tests/cases/dialect/DIALECT/SCENARIO`: the requests in the order they were sent and `expected.json`,
//! the truth of the program that ran. A field is scored only where the bytes carry it.

mod capture;
mod score;

use std::path::{Path, PathBuf};

use score::Board;

/// The least share of right answers, per field, over the cases of this repository.
const SHARE_MIN: f64 = 0.95;

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/dialect")
}

#[test]
fn cases_are_understood() {
    let board = Board::of(&capture::all(&cases()));
    let weak = board.below(SHARE_MIN);
    assert!(board.scored() > 100, "only {} answers were scored", board.scored());
    assert!(weak.is_empty(), "below {SHARE_MIN}: {weak:?}\n{board}");
}

/// Runs over a folder of captures: `IRIS_CAPTURES=dir cargo test -p iris-core captures -- --ignored --nocapture`.
#[test]
#[ignore = "needs a folder of captures"]
#[expect(clippy::print_stdout, reason = "the answer of a run by hand")]
fn captures_are_understood() {
    let Some(folder) = std::env::var_os("IRIS_CAPTURES") else { panic!("IRIS_CAPTURES names no folder") };
    println!("{}", Board::of(&capture::all(Path::new(&folder))));
}

#[test]
fn order_and_batching_do_not_matter() {
    for capture in capture::all(&cases()) {
        let straight = capture.traces(|rows| rows);
        let reversed = capture.traces(|mut rows| {
            rows.reverse();
            rows
        });
        let apart = capture.apart().traces(|mut rows| {
            let middle = rows.len() / 2;
            rows.rotate_left(middle);
            rows
        });
        assert_eq!(straight, reversed, "{}", capture.name());
        let plain = |traces: Vec<iris_core::model::Trace>| -> Vec<_> {
            traces.into_iter().map(|trace| iris_core::model::Trace { seen_through: 0, ..trace }).collect()
        };
        assert_eq!(plain(straight), plain(apart), "{}", capture.name());
    }
}
