//! The house rules as a test: who may import whom, how large a room may grow, what must not stand in it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines a source file may have.
const FILE_LINES_MAX: usize = 600;

/// Rooms of the core from the ground up; a room imports from its own floor's rooms below only.
const CORE_FLOORS: &[&[&str]] = &[
    &["model", "text"],
    &["otlp", "detect", "price", "citation"],
    &["dialect", "rules", "judge", "redact"],
    &["assemble", "evaluate"],
    &["proof"],
    &["contract"],
    &["fuzz"],
];

/// Rooms of the shell from the ground up. Rooms of one floor never import each other.
const SHELL_FLOORS: &[&[&str]] = &[
    &["telemetry", "door", "home", "deleted"],
    &["journal"],
    &["store", "rulebook", "forward", "judge", "fetch"],
    &["ingest"],
    &["tools"],
    &["receive", "serve", "ops", "demo"],
    &["config"],
    &["run"],
    &["cli"],
    &["fuzz"],
];

/// Imports within a floor, and the one that climbs, each with its reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("text", "model", "offsets are part of what evidence is"),
    ("dialect", "otlp", ""),
    ("assemble", "evaluate", "whether a verdict may be healed is asked of the evaluation"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no sources under {}", folder.display());
    found
}

fn all_sources() -> Vec<PathBuf> {
    let root = root();
    ["src", "tests/it", "crates/iris-core/src", "crates/iris-core/tests"]
        .iter()
        .flat_map(|folder| sources(&root.join(folder)))
        .collect()
}

/// The first name of the path below `src`.
fn room(path: &Path, src: &Path) -> String {
    let below = path.strip_prefix(src).unwrap();
    below.components().next().unwrap().as_os_str().to_str().unwrap().trim_end_matches(".rs").to_owned()
}

/// Every `crate::room` that a file names outside its tests.
fn imports(text: &str) -> BTreeSet<String> {
    text.split("crate::")
        .skip(1)
        .flat_map(|rest| match rest.strip_prefix('{') {
            Some(list) => {
                let list = list.split("};").next().unwrap_or_default();
                list.split(',').map(|one| one.trim().to_owned()).collect::<Vec<_>>()
            }
            None => vec![rest.to_owned()],
        })
        .map(|one| one.chars().take_while(|letter| letter.is_ascii_lowercase() || *letter == '_').collect::<String>())
        .filter(|one| !one.is_empty())
        .collect()
}

fn floor(floors: &[&[&str]], room: &str) -> Option<usize> {
    floors.iter().position(|rooms| rooms.contains(&room))
}

fn check_floors(src: &Path, floors: &[&[&str]]) {
    let mut wrong = Vec::new();
    for path in sources(src) {
        let room = room(&path, src);
        let is_test = path.file_name().is_some_and(|name| name == "tests.rs")
            || path.components().any(|part| part.as_os_str() == "tests");
        if matches!(room.as_str(), "lib" | "main") || is_test {
            continue;
        }
        let Some(own) = floor(floors, &room) else {
            wrong.push(format!("{}: the room {room} stands on no floor; add it to the table", path.display()));
            continue;
        };
        let text = fs::read_to_string(&path).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        // Links in comments point where they like.
        let code: String =
            text.lines().filter(|line| !line.trim_start().starts_with("//")).flat_map(|line| [line, "\n"]).collect();
        for other in imports(&code) {
            let Some(below) = floor(floors, &other) else { continue };
            let excepted = EXCEPTIONS.iter().any(|(from, to, _)| *from == room && *to == other);
            if other != room && below >= own && !excepted {
                wrong.push(format!(
                    "{}: {room} may not import {other}: put the shared type on a lower floor",
                    path.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_core_imports_downwards_only() {
    check_floors(&root().join("crates/iris-core/src"), CORE_FLOORS);
}

#[test]
fn the_shell_imports_downwards_only() {
    check_floors(&root().join("src"), SHELL_FLOORS);
}

#[test]
fn no_file_outgrows_its_room() {
    let large: Vec<String> = all_sources()
        .iter()
        .map(|path| (path, fs::read_to_string(path).unwrap().lines().count()))
        .filter(|(_, lines)| *lines > FILE_LINES_MAX)
        .map(|(path, lines)| {
            format!("{}: {lines} lines, at most {FILE_LINES_MAX}: split it by what it does", path.display())
        })
        .collect();
    assert!(large.is_empty(), "{}", large.join("\n"));
}

#[test]
fn every_room_says_what_it_is() {
    for path in all_sources() {
        let text = fs::read_to_string(&path).unwrap();
        let is_tests = path.file_name().is_some_and(|name| name == "tests.rs")
            || path.components().any(|part| part.as_os_str() == "tests")
                && path.components().any(|part| part.as_os_str() == "src");
        assert!(is_tests || text.starts_with("//!"), "{}: begins without saying what it holds (//!)", path.display());
    }
}

#[test]
fn nothing_grows_without_a_limit_and_nothing_is_left_for_later() {
    let banned = [
        ("unbounded_channel", "every queue has a limit"),
        ("mpsc::unbounded", "every queue has a limit"),
        ("FIXME", "finish it or say plainly what does not work"),
        ("XXX", "finish it or say plainly what does not work"),
        ("chrono::", "times are jiff's and our own Timestamp"),
    ];
    for path in all_sources() {
        if path.ends_with("tidy.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for (word, why) in banned {
            assert!(!text.contains(word), "{}: contains {word}: {why}", path.display());
        }
    }
}

/// Rooms have names of the domain. OTLP's own `common` package keeps its name.
#[test]
fn no_room_is_named_for_nothing() {
    for path in all_sources() {
        for part in path.strip_prefix(root()).unwrap().components() {
            let name = part.as_os_str().to_str().unwrap().trim_end_matches(".rs");
            assert!(
                path.ends_with("otlp/schema/common.rs")
                    || !["utils", "util", "common", "manager", "helpers", "helper", "service", "handler", "misc"]
                        .contains(&name),
                "{}: {name} says nothing about what it holds",
                path.display()
            );
        }
    }
}

/// Only `evaluate` computes whether an output passed.
#[test]
fn the_verdict_is_composed_in_one_place() {
    let root = root();
    for path in sources(&root.join("src")) {
        if path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        assert!(
            !text.contains("evaluation.passed = ") && !text.contains("passed: true"),
            "{}: decides a verdict outside evaluate",
            path.display()
        );
    }
}
