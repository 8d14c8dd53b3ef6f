//! `proof`: how often the rules are right, measured here and now.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use flate2::read::MultiGzDecoder;
use iris_core::evaluate::{FileRecord, Matrix, Record, Ruleset, Run};
use iris_core::proof::{self, Labelled};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Stop;

/// What a line of a labelled set may hold, in bytes.
const LINE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Measure how often the rules are right.
#[derive(Debug, Args)]
pub(super) struct Proof {
    /// Folder of labelled sets, `NAME.jsonl` or `NAME.jsonl.gz`; left out: the recorded run over such sets is shown
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line a rule and a line a set, for people
    Table,
    /// Everything, with statistics, as `iris://proof` shows it
    Json,
    /// The counts alone, as the repository keeps them in accuracy.json
    Record,
}

impl Proof {
    pub(super) fn run(&self) -> Result<ExitCode, Stop> {
        let mut record = Record { own: proof::own().map_err(Stop::failed)?, ..Record::published() };
        if let Some(folder) = &self.data {
            record.independent = measure(folder)?;
        }
        let mut output = io::stdout().lock();
        let printed = match self.format {
            Format::Table => table(&mut output, &record),
            Format::Json => pretty(&mut output, &proof::document(&record)),
            Format::Record => pretty(&mut output, &record),
        };
        match printed {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
            printed => Ok(printed.map(|()| ExitCode::SUCCESS)?),
        }
    }
}

fn pretty(output: &mut impl Write, value: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *output, value)?;
    output.write_all(b"\n")
}

/// Every labelled set of a folder, in the order of their names.
fn measure(folder: &Path) -> Result<Run, Stop> {
    let unreadable = |path: &Path, error: io::Error| Stop::usage(format!("{}: {error}", path.display()));
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| unreadable(folder, error))? {
        let path = entry.map_err(|error| unreadable(folder, error))?.path();
        if set_name(&path).is_some() && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    let mut labelled = Labelled::new(Ruleset::built_in());
    let mut files = Vec::new();
    let progress = super::progress("labelled rows");
    for path in paths {
        let name = set_name(&path).unwrap_or_default();
        let rows = judge(&path, name, &mut labelled)?;
        let sha256 = hash(&path).map_err(|error| unreadable(&path, error))?;
        progress.inc(rows.into());
        if rows > 0 {
            files.push(FileRecord { name: name.to_owned(), sha256, rows });
        }
    }
    if files.is_empty() {
        return Err(Stop::usage(format!("{}: no labelled rows that a rule speaks to", folder.display())));
    }
    let recorded = crate::telemetry::now().to_string().chars().take("YYYY-MM-DD".len()).collect();
    Ok(Run { recorded, files, sets: labelled.sets() })
}

/// The name of a set without its endings.
fn set_name(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(".jsonl").or_else(|| name.strip_suffix(".jsonl.gz"))
}

/// Judges the rows of a file; returns how many had a label that a rule speaks to.
fn judge(path: &Path, set: &str, labelled: &mut Labelled) -> Result<u32, Stop> {
    let wrong = |at: usize, why: String| Stop::usage(format!("{}: line {at}: {why}", path.display()));
    let file = File::open(path).map_err(|error| wrong(0, error.to_string()))?;
    let is_packed = path.extension().is_some_and(|ending| ending == "gz");
    let packed: Box<dyn Read> = if is_packed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut input = BufReader::new(packed);
    let (mut rows, mut line) = (0, Vec::new());
    for at in 1.. {
        line.clear();
        let read = input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        if read.map_err(|error| wrong(at, error.to_string()))? == 0 {
            break;
        }
        if line.len() as u64 == LINE_BYTES_MAX {
            return Err(wrong(at, format!("longer than {LINE_BYTES_MAX} bytes")));
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let row: Value =
            serde_json::from_slice(&line).map_err(|error| wrong(at, format!("not JSON: column {}", error.column())))?;
        rows += u32::from(labelled.add(set, &row).is_some());
    }
    Ok(rows)
}

fn hash(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    let (mut file, mut part) = (File::open(path)?, vec![0; 64 * 1024]);
    loop {
        let read = file.read(&mut part)?;
        if read == 0 {
            return Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
        }
        hash.update(part.get(..read).unwrap_or_default());
    }
}

fn table(output: &mut impl Write, record: &Record) -> io::Result<()> {
    let head = ["n", "tp", "fp", "fn", "tn", "precision", "recall", "F1", "PPV at 1, 5, 20, 50 %"];
    let [n, tp, fp, missed, tn, precision, recall, f1, ppv] = head;
    let heading = format!("{n:>5} {tp:>4} {fp:>4} {missed:>4} {tn:>4}  {precision:<18} {recall:<18} {f1:>5}  {ppv}");
    let accuracy = record.accuracy();
    writeln!(output, "{:<62} {heading}", "own cases: by the rules' authors, who repaired the rules on them")?;
    for (rule, own) in &record.own {
        writeln!(output, "{rule:<62} {}", line(own.counts))?;
    }
    writeln!(output)?;
    writeln!(output, "{:<62} {heading}", format!("labelled by others, recorded {}", record.independent.recorded))?;
    for (rule, measured) in &accuracy.rules {
        if let Some((_, counts)) = measured.independent {
            writeln!(output, "{rule:<62} {}", line(counts))?;
        }
    }
    writeln!(output)?;
    writeln!(output, "{:<62} {heading}", "set by set; (-): not reckoned with")?;
    for set in &record.independent.sets {
        let mark = if set.apart.is_some() { " (-)" } else { "" };
        let name = format!("{} {}{mark}", set.file, set.measure);
        writeln!(output, "{name:<62} {}", line(set.counts))?;
    }
    Ok(())
}

fn line(counts: Matrix) -> String {
    let Matrix { tp, fp, missed, tn } = counts;
    let share = |value: Option<f64>, ends: Option<(f64, f64)>| match (value, ends) {
        (Some(value), Some((low, high))) => format!("{value:.3} [{low:.3}-{high:.3}]"),
        _ => "-".to_owned(),
    };
    let precision = share(counts.precision(), counts.precision_interval());
    let recall = share(counts.recall(), counts.recall_interval());
    let f1 = counts.f1().map_or_else(|| "-".to_owned(), |f1| format!("{f1:.3}"));
    let ppv: Vec<String> =
        [0.01, 0.05, 0.2, 0.5].iter().map(|prior| format!("{:.3}", counts.predictive_value(*prior))).collect();
    let ppv = ppv.join(" ");
    format!("{:>5} {tp:>4} {fp:>4} {missed:>4} {tn:>4}  {precision:<18} {recall:<18} {f1:>5}  {ppv}", counts.n())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guarantees: a packed and a plain set are read alike, rows without a label of ours are left out, and a line that is
    /// no JSON is named by its number.
    #[test]
    fn a_folder_of_labelled_sets_is_measured() {
        let folder = tempfile::tempdir().unwrap();
        let rows = concat!(
            r#"{"text": "Write to mara.lind@quayhaven.io.", "labels": {"measures": {"pii_structured": true}}}"#,
            "\n\n",
            r#"{"text": "Port Amsel is small.", "labels": {"measures": {"pii_structured": false, "taste": true}}}"#,
            "\n",
            r#"{"text": "Port Amsel is small.", "labels": {"measures": {"taste": true}}}"#,
            "\n"
        );
        fs::write(folder.path().join("plain.jsonl"), rows).unwrap();
        fs::write(folder.path().join("README.md"), "no set").unwrap();
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packed.write_all(rows.as_bytes()).unwrap();
        fs::write(folder.path().join("packed.jsonl.gz"), packed.finish().unwrap()).unwrap();

        let run = measure(folder.path()).unwrap();
        let files: Vec<_> = run.files.iter().map(|file| (file.name.as_str(), file.rows)).collect();
        assert_eq!(files, [("packed", 2), ("plain", 2)]);
        assert_ne!(run.files[0].sha256, run.files[1].sha256);
        assert_eq!(run.sets.len(), 2);
        for set in &run.sets {
            assert_eq!((set.rule.as_deref(), set.counts), (Some("no_pii"), Matrix { tp: 1, fp: 0, missed: 0, tn: 1 }));
        }

        fs::write(folder.path().join("broken.jsonl"), "{}\nnonsense\n").unwrap();
        assert!(measure(folder.path()).unwrap_err().message.contains("broken.jsonl: line 2"));
        assert!(measure(&folder.path().join("nowhere")).is_err());
    }
}
