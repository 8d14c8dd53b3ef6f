//! What was measured of the rules, as it is committed: counts, names, hashes and a date; never a text.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Accuracy, Matrix};

/// The committed file.
const PUBLISHED: &str = include_str!("accuracy.json");

/// Two sources, kept apart.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The repository's own cases, by rule.
    pub own: BTreeMap<String, OwnCounts>,
    /// Texts that others labelled.
    pub independent: Run,
}

/// A rule on its own cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnCounts {
    /// The version of the rule.
    pub version: u32,
    /// Cases that it should pass or fail.
    pub counts: Matrix,
    /// The part of those that was written without having seen how the rule works.
    pub blind: Matrix,
    /// Cases that it should not judge.
    pub skips: u32,
    /// The part of those that it judged all the same.
    pub skips_judged: u32,
}

/// One run over labelled sets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The day it was made.
    pub recorded: String,
    /// The files that were read.
    pub files: Vec<FileRecord>,
    /// What came out, by file and measure.
    pub sets: Vec<SetCounts>,
}

/// One file of labelled texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRecord {
    /// Its name without endings.
    pub name: String,
    /// SHA-256 of its bytes as stored, in hex.
    pub sha256: String,
    /// Its rows.
    pub rows: u32,
}

/// What came out for one measure on one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetCounts {
    /// The file.
    pub file: String,
    /// What was labelled.
    pub measure: String,
    /// The rule that speaks to it; none: the verdict does.
    pub rule: Option<String>,
    /// The version of the rule; 0 for the verdict.
    pub version: u32,
    /// Why these counts are shown and not reckoned with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<String>,
    /// The counts; a skip is no fail.
    pub counts: Matrix,
    /// How many of the rows the rule did not judge.
    pub skipped: u32,
}

impl Record {
    /// The committed record.
    pub fn published() -> Self {
        serde_json::from_str(PUBLISHED).unwrap_or_default()
    }

    /// The counts to reckon with, by rule. The sets of a rule are added up; sets that another version was measured on are
    /// left out.
    pub fn accuracy(&self) -> Accuracy {
        let mut accuracy = Accuracy { corpus_version: Some(self.version()), ..Accuracy::default() };
        for (rule, own) in &self.own {
            accuracy.rules.entry(rule.clone()).or_default().own = Some((own.version, own.counts));
        }
        for set in self.independent.sets.iter().filter(|set| set.apart.is_none()) {
            let Some(rule) = &set.rule else { continue };
            let measured = &mut accuracy.rules.entry(rule.clone()).or_default().independent;
            *measured = match *measured {
                Some((version, counts)) if version > set.version => Some((version, counts)),
                Some((version, counts)) if version == set.version => Some((version, counts.and(set.counts))),
                _ => Some((set.version, set.counts)),
            };
        }
        accuracy
    }

    /// The first 12 hex digits of the SHA-256 of everything that was measured.
    pub fn version(&self) -> String {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        Sha256::digest(bytes).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    }
}
