//! The rule file of one tenant: read entry by entry, replaced whole.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use iris_core::contract::{CustomRule, Quarantined};
use iris_core::evaluate::Dormant;
use iris_core::model::Tenant;
use iris_core::rules::custom::CustomRule as Compiled;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::pieces::{NoFile, Pieces};

/// Deployed rules of a tenant.
pub(super) const RULES_MAX: usize = 200;
/// Bytes of all of them, written out.
pub(super) const RULES_BYTES_MAX: usize = 512 * 1024;
/// Memory that the rules of a tenant may take, compiled.
pub(super) const COMPILED_BYTES_MAX: usize = 16 << 20;
/// Bytes and entries of a file that is read: more than a full one written by hand.
const FILE_BYTES_MAX: u64 = 1 << 20;
const ENTRIES_MAX: usize = 1000;

/// One entry of the file.
#[derive(Clone)]
pub(super) enum Entry {
    /// A rule that can fire.
    Rule(Box<CustomRule>, Arc<Compiled>),
    /// One that cannot be read, as it was written.
    Damaged(String, Quarantined, Option<Dormant>),
}

/// What a file holds.
#[derive(Clone, Default)]
pub(super) struct Content {
    pub entries: Vec<Entry>,
    /// Other keys, with their values as written.
    rest: Vec<(String, String)>,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Shape(#[from] NoFile),
    #[error("it has {0} bytes, more than 1 MiB")]
    TooLarge(u64),
    #[error("it has {0} entries, more than 1000")]
    TooMany(usize),
    #[error("it is not UTF-8")]
    NotText,
}

/// What a file was when it was read: another program has written it since when this differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp(Option<(u64, u64, i64, i64)>);

impl Stamp {
    pub fn of(path: &Path) -> Self {
        let found = fs::metadata(path).ok();
        Self(found.map(|found| (found.ino(), found.len(), found.mtime(), found.mtime_nsec())))
    }
}

/// The name of a tenant's rule file. Names that are no plain file names are told apart by their hash.
pub(super) fn name(tenant: &Tenant) -> String {
    if *tenant == Tenant::local() {
        return "custom-rules.json".to_owned();
    }
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    let given = tenant.as_str();
    if (1..=64).contains(&given.len()) && given.chars().all(plain) {
        return format!("custom-rules-{given}.json");
    }
    let kept: String = given.chars().map(|letter| if plain(letter) { letter } else { '_' }).take(40).collect();
    let hash: String = Sha256::digest(given.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("custom-rules-{kept}_{hash}.json")
}

/// Reads a file; one that does not exist holds nothing.
pub(super) fn read(path: &Path) -> Result<Content, Fault> {
    let file = match OpenOptions::new().read(true).custom_flags(nofollow()).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Content::default()),
        Err(error) => return Err(error.into()),
    };
    let bytes = file.metadata()?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(Fault::TooLarge(bytes));
    }
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut text)?;
    understand(text)
}

/// What the bytes of a file hold.
pub(super) fn understand(bytes: Vec<u8>) -> Result<Content, Fault> {
    let text = String::from_utf8(bytes).map_err(|_| Fault::NotText)?;
    let pieces = Pieces::of(&text)?;
    if pieces.rules.len() > ENTRIES_MAX {
        return Err(Fault::TooMany(pieces.rules.len()));
    }
    let (mut names, mut ids, mut bytes) = (BTreeSet::new(), BTreeSet::new(), 0);
    let entries = pieces.rules.iter().enumerate().map(|(index, text)| {
        let entry = entry(index, text);
        let Entry::Rule(rule, compiled) = &entry else { return entry };
        bytes += compiled.bytes();
        let why = if index >= RULES_MAX {
            format!("only the first {RULES_MAX} entries are read")
        } else if !ids.insert(rule.id.clone()) {
            "an earlier entry has its id".to_owned()
        } else if !names.insert(rule.name.clone()) {
            "an earlier entry has its name".to_owned()
        } else if bytes > COMPILED_BYTES_MAX {
            format!("with it the rules would compile to more than {} MiB", COMPILED_BYTES_MAX >> 20)
        } else {
            return entry;
        };
        damaged(index, text, why)
    });
    let rest = pieces.rest.iter().map(|(name, text)| (name.clone(), (*text).to_owned()));
    Ok(Content { entries: entries.collect(), rest: rest.collect() })
}

fn entry(index: usize, text: &str) -> Entry {
    let rule: CustomRule = match serde_json::from_str(text) {
        Ok(rule) => rule,
        Err(error) => return damaged(index, text, unread(&error)),
    };
    if let Some(why) = rule.fault() {
        return damaged(index, text, why);
    }
    match rule.compile() {
        Ok(compiled) => Entry::Rule(Box::new(rule), Arc::new(compiled)),
        Err(problem) => damaged(index, text, format!("definition.{problem}")),
    }
}

/// Why an entry cannot be read, without its values.
fn unread(error: &serde_json::Error) -> String {
    const KNOWN: [&str; 3] = ["missing field", "unknown field", "duplicate field"];
    let why = error.to_string();
    let known = KNOWN.iter().find(|known| why.starts_with(**known));
    let place = format!("line {} column {} of the entry", error.line(), error.column());
    match known {
        // The name of a field that is missing is ours.
        Some(&"missing field") => format!("{} ({place})", why.split(" at line").next().unwrap_or_default()),
        Some(known) => format!("{known} ({place})"),
        None => format!("a value of the wrong type, or of no known kind ({place})"),
    }
}

/// What can be seen of an entry whatever else is wrong with it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Glimpse {
    id: Value,
    name: Value,
    severity: Value,
    enabled: Value,
}

fn damaged(index: usize, text: &str, reason: String) -> Entry {
    let seen: Glimpse = serde_json::from_str(text).unwrap_or_default();
    let told = |value: &Value| {
        let text = value.as_str()?;
        Some(text.chars().filter(|letter| !letter.is_control()).take(80).collect::<String>())
    };
    let (id, name) = (told(&seen.id), told(&seen.name));
    let vetoes = !matches!(seen.severity.as_str(), Some("low" | "medium"));
    let is_on = seen.enabled != Value::Bool(false);
    let dormant = (vetoes && is_on).then(|| Dormant {
        rule_id: id.clone().unwrap_or_default(),
        name: name.clone().unwrap_or_default(),
        reason: reason.clone(),
    });
    Entry::Damaged(text.to_owned(), Quarantined { index, id, name, reason }, dormant)
}

impl Content {
    /// The rules, in order.
    pub fn rules(&self) -> impl Iterator<Item = (&CustomRule, &Arc<Compiled>)> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Rule(rule, compiled) => Some((&**rule, compiled)),
            Entry::Damaged(..) => None,
        })
    }

    /// The file's text.
    pub fn text(&self) -> serde_json::Result<String> {
        let mut text = String::from("{\n  \"version\": 1,\n");
        for (name, value) in &self.rest {
            text.push_str(&format!("  {}: {value},\n", serde_json::to_string(name)?));
        }
        text.push_str("  \"rules\": [");
        for (at, entry) in self.entries.iter().enumerate() {
            text.push_str(if at == 0 { "\n    " } else { ",\n    " });
            match entry {
                Entry::Rule(rule, _) => text.push_str(&serde_json::to_string_pretty(rule)?.replace('\n', "\n    ")),
                Entry::Damaged(raw, ..) => text.push_str(raw),
            }
        }
        text.push_str(if self.entries.is_empty() { "]\n}\n" } else { "\n  ]\n}\n" });
        Ok(text)
    }
}

/// Replaces a file: after a crash at any moment it is the old one or the new one.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let draft = draft(path);
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).custom_flags(nofollow()).open(&draft)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    drop(file);
    if let Err(error) = written.and_then(|()| fs::rename(&draft, path)) {
        // What is left of it is overwritten by the next change.
        let _ = fs::remove_file(&draft);
        return Err(error);
    }
    sync_folder(path)
}

/// Puts back what was there before.
pub(super) fn restore(path: &Path, before: Option<&str>) -> io::Result<()> {
    match before {
        Some(text) => replace(path, text),
        None => {
            fs::remove_file(path)?;
            sync_folder(path)
        }
    }
}

/// What a file holds as text; nothing when it does not exist.
pub(super) fn raw(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn draft(path: &Path) -> PathBuf {
    path.with_extension("json.new")
}

/// Makes a rename in the folder of a file durable.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

fn nofollow() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default()
}
