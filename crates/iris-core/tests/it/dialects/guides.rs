//! `docs/dialects.md` is what the dialects say of themselves, and every folder of cases is some dialect's.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use iris_core::dialect::DIALECTS;

const INTRODUCTION: &str = "# Dialects

<!-- Written by `IRIS_BLESS=1 cargo test -p iris-core dialects_are_documented` from the guides beside the code. -->

Every library writes its spans in its own way. What the sidecar reads is told here, a section a dialect, in the order in
which they are asked: of two that know the same field the earlier wins, and the key it came from is kept with the span. A span
may be read by several dialects, and a trace may mix libraries.

Where content is expected and only keys stand that nothing reads, their names are in `metadata.otel.unmapped_attributes` of the
trace and in `coverage.unmapped_attributes` of its evaluation, and `iris_spans_with_unmapped_attributes_total` counts the spans:
names only, never values.

Whatever the library, the endpoint is `http://127.0.0.1:4318` for OTLP over HTTP and `127.0.0.1:4317` for gRPC, or the address
of the sidecar's container. Content that the library does not send cannot be judged: such a trace is `unknown`, never a pass.
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for dialect in DIALECTS {
        let guide = dialect.guide();
        write!(page, "\n## {}\n\n`{}`. {}\n\n", guide.title, dialect.name(), guide.setup).unwrap();
        page.push_str("| read | from |\n|---|---|\n");
        for (what, keys) in guide.reads {
            writeln!(page, "| {what} | {keys} |").unwrap();
        }
        if !guide.notes.is_empty() {
            write!(page, "\n{}\n", guide.notes).unwrap();
        }
        if !guide.cases.is_empty() {
            let folders: Vec<String> = guide.cases.iter().map(|folder| format!("`{folder}`")).collect();
            write!(page, "\nCases: {}.\n", folders.join(", ")).unwrap();
        }
    }
    page
}

#[test]
fn dialects_are_documented() {
    let path = root().join("docs/dialects.md");
    if std::env::var_os("IRIS_BLESS").is_some() {
        fs::write(&path, page()).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page(),
        "{} is stale: IRIS_BLESS=1 cargo test -p iris-core dialects_are_documented",
        path.display()
    );
}

#[test]
fn every_case_belongs_to_a_dialect_and_says_where_it_is_from() {
    let mut named = BTreeSet::new();
    for dialect in DIALECTS {
        for folder in dialect.guide().cases {
            assert!(named.insert((*folder).to_owned()), "{folder} is named twice");
        }
    }
    let folder = root().join("tests/cases/dialect");
    let mut found = BTreeSet::new();
    for dialect in fs::read_dir(&folder).unwrap() {
        let dialect = dialect.unwrap();
        for scenario in fs::read_dir(dialect.path()).unwrap() {
            let source = fs::read_to_string(scenario.unwrap().path().join("SOURCE")).unwrap_or_default();
            assert!(source.len() > 40, "{}: a case without its source", dialect.path().display());
        }
        found.insert(dialect.file_name().to_string_lossy().into_owned());
    }
    assert_eq!(named, found, "folders named by guides, and folders of cases");
}
