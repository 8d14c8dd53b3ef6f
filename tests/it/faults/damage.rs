//! Files of the database, its log and the journal that are damaged while the sidecar is down.

use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Random, all_there, is_long, open, prepared, put};
use crate::support::collector::Collector;
use crate::support::iris::Iris;

pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// What is done to a file.
#[derive(Debug, Clone, Copy)]
enum Harm {
    FlipBit,
    Truncate,
    /// The last part of so many is cut off: whole columns are lost, everything before them is there.
    CutEnd(u64),
    ZeroPage,
    Empty,
    Garbage,
    /// Two segments change places; of the database, its first and second half.
    Swap,
    Missing,
}

const HARMS: [Harm; 7] =
    [Harm::FlipBit, Harm::Truncate, Harm::ZeroPage, Harm::Empty, Harm::Garbage, Harm::Swap, Harm::Missing];

fn segments(home: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(home.join("journal/traces")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Harms one file; says where.
fn harm(home: &Path, file: &Path, harm: Harm, random: &mut Random) -> String {
    let bytes = fs::metadata(file).map_or(0, |data| data.len());
    let place = random.below(bytes);
    let mut opened = OpenOptions::new().read(true).write(true).open(file).unwrap();
    match harm {
        Harm::FlipBit => {
            let mut byte = [0];
            opened.seek(SeekFrom::Start(place)).unwrap();
            opened.read_exact(&mut byte).unwrap();
            opened.seek(SeekFrom::Start(place)).unwrap();
            opened.write_all(&[byte[0] ^ 1 << random.below(8)]).unwrap();
        }
        Harm::Truncate => opened.set_len(place).unwrap(),
        Harm::CutEnd(part) => opened.set_len(bytes - bytes / part).unwrap(),
        Harm::ZeroPage => {
            let start = place / 4096 * 4096;
            opened.seek(SeekFrom::Start(start)).unwrap();
            let length = usize::try_from(4096.min(bytes - start)).unwrap();
            opened.write_all(&vec![0; length]).unwrap();
        }
        Harm::Empty => opened.set_len(0).unwrap(),
        Harm::Garbage => {
            let noise: Vec<u8> = (0..bytes).map(|_| u8::try_from(random.below(256)).unwrap()).collect();
            opened.write_all(&noise).unwrap();
        }
        Harm::Swap => {
            let all = segments(home);
            let other = all.iter().find(|other| other.as_path() != file);
            match other.filter(|_| file.extension().is_some_and(|ending| ending == "seg")) {
                Some(other) => {
                    let (one, two) = (fs::read(file).unwrap(), fs::read(other).unwrap());
                    fs::write(file, two).unwrap();
                    fs::write(other, one).unwrap();
                }
                None => {
                    let mut content = fs::read(file).unwrap();
                    let half = content.len() / 2;
                    content.rotate_left(half);
                    fs::write(file, content).unwrap();
                }
            }
        }
        Harm::Missing => fs::remove_file(file).unwrap(),
    }
    format!("{harm:?} of {} at {place} of {bytes}", file.strip_prefix(home).unwrap().display())
}

/// A home in which some traces are in the database, some in its log, and all in the journal, because the collector is
/// gone. Returns how many.
pub async fn filled(iris: &mut Iris) -> u64 {
    iris.start_again().await;
    open(iris).await;
    for number in 1..=30 {
        assert_eq!(put(iris, number).await, 200);
    }
    all_there(iris, 1..=30, "before").await;
    // It ends in order: everything is behind a checkpoint.
    assert!(iris.terminate().await.success());
    iris.start_again().await;
    open(iris).await;
    for number in 31..=45 {
        assert_eq!(put(iris, number).await, 200);
    }
    all_there(iris, 31..=45, "before").await;
    iris.kill();
    45
}

/// One file of a copy is harmed while nothing runs: all of it is there after a start, and after another one. Returns how
/// often the database was looked over.
#[expect(clippy::print_stderr, reason = "which one, should it fail")]
async fn harmed(endpoint: &str, first: &Iris, count: u64, file: &Path, kind: Harm, random: &mut Random) -> u64 {
    let mut iris = prepared(endpoint);
    let home = iris.home();
    copy_folder(&first.home(), &home);
    let file = home.join(file.strip_prefix(first.home()).unwrap());
    if !file.exists() {
        return 0;
    }
    let what = harm(&home, &file, kind, random);
    eprintln!("{what}");
    iris.start_again().await;
    open(&iris).await;
    all_there(&iris, 1..=count, &what).await;
    assert_eq!(put(&iris, 100).await, 200, "{what}");
    all_there(&iris, [100], &what).await;
    let (_, state) = iris.get("ops", "/readyz?full").await;
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    iris.kill();
    iris.start_again().await;
    open(&iris).await;
    all_there(&iris, [1, count, 100], &what).await;
    state["store_looks"].as_u64().unwrap()
}

/// Scenario: one file of the database, its log or the journal is harmed in some way while the sidecar is down.
/// Guarantees: it starts, says what was damaged, has everything that was acknowledged (the database's rows are in the
/// journal, the journal's in the database), and takes, judges and keeps what comes next. Damage in the middle of the
/// database that a start does not meet is repaired once a question meets it.
#[expect(clippy::print_stderr, reason = "what came out")]
#[tokio::test(flavor = "multi_thread")]
async fn a_harmed_file_costs_nothing_that_is_elsewhere() {
    let collector = Collector::stopped().await;
    let endpoint = collector.endpoint();
    let mut first = prepared(&endpoint);
    let count = filled(&mut first).await;
    let cases = if is_long() { 200 } else { 12 };
    let (mut random, mut looked_over) = (Random(0x9e37_79b9_7f4a_7c15), 0);
    for case in 0..cases {
        let segment = {
            let all = segments(&first.home());
            let at = usize::try_from(random.below(all.len() as u64)).unwrap();
            all[at].clone()
        };
        let file = match case % 3 {
            0 => first.home().join("iris.duckdb"),
            1 => first.home().join("iris.duckdb.wal"),
            _ => segment,
        };
        looked_over += harmed(&endpoint, &first, count, &file, HARMS[case / 3 % HARMS.len()], &mut random).await;
        if is_long() && case % 20 == 19 {
            eprintln!("{} files harmed, {looked_over} databases looked over", case + 1);
        }
    }
    // Each costs another table.
    for part in [50, 8, 4, 2] {
        let file = first.home().join("iris.duckdb");
        looked_over += harmed(&endpoint, &first, count, &file, Harm::CutEnd(part), &mut random).await;
    }
    eprintln!("{cases} files harmed, {looked_over} databases looked over because a question met damage");
}

/// Runs the program on a home: its exit code and what it printed.
fn run(iris: &Iris, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iris-sidecar"));
    let done = command.env_clear().env("IRIS_HOME", iris.home()).args(arguments).output().unwrap();
    let said = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8_lossy(&said).into_owned())
}

/// Scenario: places in the database file are overwritten until `store-check` finds damage; it is repaired by hand.
/// Guarantees: the check says when there is none yet, and tells whole from damaged by its exit code; the repaired file is whole; the next start has
/// everything, completed from the journal.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_database_is_found_and_repaired_by_hand() {
    let collector = Collector::stopped().await;
    let mut iris = prepared(&collector.endpoint());
    let (code, said) = run(&iris, &["store-check"]);
    assert!(code == Some(0) && said.contains("no database yet"), "{said}");
    let count = filled(&mut iris).await;
    let (code, said) = run(&iris, &["store-check"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("spans"), "{said}");
    let file = iris.home().join("iris.duckdb");
    let bytes = fs::metadata(&file).unwrap().len();
    let mut found = false;
    for part in 1..16 {
        let mut opened = OpenOptions::new().write(true).open(&file).unwrap();
        opened.seek(SeekFrom::Start(bytes / 16 * part)).unwrap();
        opened.write_all(&vec![0xa5; usize::try_from(bytes / 16).unwrap()]).unwrap();
        if run(&iris, &["store-check"]).0 == Some(3) {
            found = true;
            break;
        }
    }
    assert!(found, "no place mattered");
    let (code, said) = run(&iris, &["store-check", "--repair"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(&iris, &["store-check"]);
    assert_eq!(code, Some(0), "{said}");
    iris.start_again().await;
    open(&iris).await;
    all_there(&iris, 1..=count, "after a repair").await;
}
