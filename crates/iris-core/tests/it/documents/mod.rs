//! The documentation that is written from the code, and the links of all of it.

mod errors;
mod links;
mod rules;

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Holds the page of that name in `docs` against `text`; `IRIS_BLESS=1` writes it.
fn hold(name: &str, text: &str, test: &str) {
    let path = root().join("docs").join(name);
    if std::env::var_os("IRIS_BLESS").is_some() {
        fs::write(&path, text).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "{} is stale: IRIS_BLESS=1 cargo test -p iris-core {test}", path.display());
}
