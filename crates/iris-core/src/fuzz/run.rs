//! Runs a parser over a corpus and over what becomes of it by random harm: on the stable toolchain, in every test run.
//! With `IRIS_FAULTS=long` each parser gets minutes. `fuzz/` looks for more with coverage to guide it.
//!
//! Both halves of the product compile this file; it depends on neither.
#![allow(clippy::disallowed_methods)] // it runs in tests alone, and stops by the clock

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long each parser is tried: at a desk, with `IRIS_THOROUGH` as in `make test`, and with `IRIS_FAULTS=long`.
const BRIEF: Duration = Duration::from_millis(100);
const SHORT: Duration = Duration::from_millis(1500);
const LONG: Duration = Duration::from_secs(120);
/// The longest input, in bytes; what is longer is left out of the corpus.
const BYTES_MAX: usize = 64 * 1024;
/// No input may take longer, without optimisation and on a busy machine.
const ONE_MAX: Duration = Duration::from_secs(10);
/// Bytes at which numbers turn over, and those that parsers care for.
const TELLING: [u8; 16] = [0, 1, 0x7f, 0x80, 0xff, b'"', b'\\', b'{', b'}', b'[', b']', b'\'', b':', b',', b'\n', b'$'];

/// Numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

fn root() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let inner = folder.join("../..");
    if folder.join("tests/cases").is_dir() { folder.to_owned() } else { inner }
}

/// The files of a folder under `tests/cases`, by name.
fn files(folder: &str) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(root().join("tests/cases").join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let is_input = |path: &PathBuf| path.is_file() && path.file_name().is_some_and(|name| name != "SOURCE");
    paths.into_iter().filter(is_input).map(|path| fs::read(path).unwrap()).collect()
}

/// Holds a parser against the files of `tests/cases/fuzz/NAME` and of the other folders, as they are and harmed, with
/// `words` put in here and there.
pub fn hold(name: &str, folders: &[&str], words: &[&str], parse: fn(&[u8])) {
    let mut corpus = files(&format!("fuzz/{name}"));
    assert!(!corpus.is_empty(), "{name} has a corpus");
    for folder in folders {
        corpus.extend(files(folder).into_iter().filter(|input| input.len() <= BYTES_MAX));
    }
    for input in &corpus {
        once(name, parse, input);
    }
    let is_long = std::env::var("IRIS_FAULTS").is_ok_and(|form| form == "long");
    let is_thorough = std::env::var_os("IRIS_THOROUGH").is_some();
    let until = Instant::now()
        + if is_long {
            LONG
        } else if is_thorough {
            SHORT
        } else {
            BRIEF
        };
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    while Instant::now() < until {
        let mut input = corpus[random.below(corpus.len())].clone();
        for _ in 0..=random.below(4) {
            harm(&mut input, &corpus, words, &mut random);
        }
        input.truncate(BYTES_MAX);
        once(name, parse, &input);
    }
}

fn once(name: &str, parse: fn(&[u8]), input: &[u8]) {
    let begun = Instant::now();
    let done = catch_unwind(AssertUnwindSafe(|| parse(input)));
    let took = begun.elapsed();
    let shown = || format!("{name}: {} bytes\n{}", input.len(), input.escape_ascii());
    assert!(done.is_ok(), "a promise is broken by {}", shown());
    assert!(took < ONE_MAX, "{took:?} for {}", shown());
}

fn harm(input: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[&str], random: &mut Random) {
    let at = random.below(input.len() + 1);
    let byte = random.below(input.len());
    let count = 1 + random.below(16);
    match random.below(9) {
        0 if !input.is_empty() => input[byte] ^= 1 << random.below(8),
        1 if !input.is_empty() => input[byte] = TELLING[random.below(TELLING.len())],
        2 => drop(input.splice(at..at, std::iter::repeat_n(TELLING[random.below(TELLING.len())], count))),
        3 => drop(input.drain(at..input.len().min(at + count * count))),
        4 => {
            let again = input[at..input.len().min(at + count * 8)].repeat(count);
            drop(input.splice(at..at, again));
        }
        5 => input.truncate(at),
        6 => {
            let other = &corpus[random.below(corpus.len())];
            let from = random.below(other.len() + 1);
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
        7 if !words.is_empty() => {
            let word = words[random.below(words.len())].as_bytes();
            drop(input.splice(at..at, word.iter().copied()));
        }
        _ => drop(input.splice(at..at, (0..count).map(|_| random.below(256) as u8).collect::<Vec<_>>())),
    }
}
