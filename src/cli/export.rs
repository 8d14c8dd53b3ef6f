//! `export`: traces to a file, as JSON Lines or Parquet.

use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use duckdb::{Connection, params};
use iris_core::model::Timestamp;
use serde_json::Value;

use super::Stop;
use super::ask::{Asked, Whom};
use super::traces::Filter;

/// Traces that are asked for at a time.
const PAGE: usize = 100;

/// Memory of the engine that writes Parquet, and where it puts what does not fit: beside the file.
const ENGINE: &str = "SET memory_limit = '256MiB'; SET threads = 1; SET enable_progress_bar = false;";

/// Write traces to a file, oldest first.
#[derive(Debug, Args)]
pub(super) struct Export {
    /// The file, `-` for standard output
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// How to write; Parquet needs a file [default: as the name of the file ends]
    #[arg(long, value_enum)]
    format: Option<Written>,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    whom: Whom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Written {
    /// One trace a line, as get_traces has it
    Jsonl,
    /// One trace a row; tool calls and metadata are JSON text
    Parquet,
}

impl Export {
    pub(super) fn run(&self) -> Result<ExitCode, Stop> {
        let is_stdout = self.to.as_os_str() == "-";
        let by_name = match self.to.extension().and_then(|end| end.to_str()) {
            Some("parquet") => Some(Written::Parquet),
            None | Some("jsonl" | "ndjson" | "json") => Some(Written::Jsonl),
            Some(_) => None,
        };
        let Some(format) = self.format.or(by_name) else {
            let to = self.to.display();
            return Err(Stop::usage(format!(
                "--to {to}: a name that ends in .jsonl or .parquet is valid, or any with --format"
            )));
        };
        if is_stdout && format == Written::Parquet {
            return Err(Stop::usage("--to -: Parquet needs a file, its end is written first and last"));
        }
        let query = self.filter.query()?;
        let asked = self.whom.find()?;
        let written = match format {
            Written::Jsonl if is_stdout => lines(&asked, &query, io::stdout().lock()),
            Written::Jsonl => self.file(&asked, &query),
            Written::Parquet => parquet(&asked, &query, &self.to),
        };
        asked.close();
        let Counted { traces, cut, unsearched } = written?;
        let mut told = io::stderr();
        // What is told beside the file is no failure of the file.
        let _ = writeln!(told, "{traces} traces written");
        if let Some(unsearched) = unsearched {
            let _ = writeln!(told, "{unsearched}");
        }
        if cut > 0 {
            let _ = writeln!(told, "{cut} of them have values longer than one answer holds: those are cut, and say so");
        }
        Ok(ExitCode::SUCCESS)
    }

    /// A file that is whole or not there.
    fn file(&self, asked: &Asked, query: &[(&'static str, String)]) -> Result<Counted, Stop> {
        let unwritten = |error: io::Error| Stop::usage(format!("{}: {error}", self.to.display()));
        let draft = tempfile::NamedTempFile::new_in(folder(&self.to)).map_err(unwritten)?;
        let counted = lines(asked, query, draft.as_file())?;
        draft.persist(&self.to).map_err(|error| unwritten(error.error))?;
        Ok(counted)
    }
}

/// The folder of a file.
fn folder(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What was written.
#[derive(Debug, Default, Clone)]
struct Counted {
    traces: usize,
    /// Traces with values that no answer holds whole.
    cut: usize,
    /// What a search did not look at, in words.
    unsearched: Option<String>,
}

fn lines(asked: &Asked, query: &[(&'static str, String)], to: impl Write) -> Result<Counted, Stop> {
    let mut out = BufWriter::new(to);
    let counted = each(asked, query, |trace| {
        serde_json::to_writer(&mut out, trace).map_err(io::Error::from)?;
        Ok(out.write_all(b"\n")?)
    })?;
    out.flush()?;
    Ok(counted)
}

/// The rows as they came, with moments for microseconds.
const IN_ORDER: &str = "SELECT * REPLACE (to_timestamp(timestamp / 1e6) AS timestamp) FROM traces ORDER BY rowid";

/// The columns, and how each is found in a trace.
const COLUMNS: [(&str, &str, &str); 19] = [
    ("trace_id", "VARCHAR", "/trace_id"),
    ("timestamp", "TIME", "/timestamp"),
    ("agent_name", "VARCHAR", "/agent_name"),
    ("framework", "VARCHAR", "/framework"),
    ("model", "VARCHAR", "/model"),
    ("provider", "VARCHAR", "/provider"),
    ("session_id", "VARCHAR", "/session_id"),
    ("input", "VARCHAR", "/input"),
    ("output", "VARCHAR", "/output"),
    ("tool_calls", "VARCHAR", "/tool_calls"),
    ("metadata", "VARCHAR", "/metadata"),
    ("latency_ms", "DOUBLE", "/latency_ms"),
    ("prompt_tokens", "BIGINT", "/token_usage/prompt_tokens"),
    ("completion_tokens", "BIGINT", "/token_usage/completion_tokens"),
    ("total_tokens", "BIGINT", "/token_usage/total_tokens"),
    ("cost_usd", "DOUBLE", "/cost_usd"),
    ("verdict", "VARCHAR", "/verdict/state"),
    ("verdict_basis", "VARCHAR", "/verdict/basis"),
    ("verdict_by", "VARCHAR", "/verdict/by"),
];

fn parquet(asked: &Asked, query: &[(&'static str, String)], to: &Path) -> Result<Counted, Stop> {
    let engine = |error: duckdb::Error| Stop::failed(format!("the file could not be written: {error}"));
    let draft = tempfile::tempdir_in(folder(to)).map_err(|error| Stop::usage(format!("{}: {error}", to.display())))?;
    let connection = Connection::open(draft.path().join("draft.duckdb")).map_err(engine)?;
    let kind = |kind: &'static str| if kind == "TIME" { "BIGINT" } else { kind };
    let columns: Vec<String> = COLUMNS.iter().map(|(name, of, _)| format!("{name} {}", kind(of))).collect();
    connection.execute_batch(&format!("{ENGINE} CREATE TABLE traces ({})", columns.join(", "))).map_err(engine)?;
    let counted = {
        let mut rows = connection.appender("traces").map_err(engine)?;
        let counted = each(asked, query, |trace| {
            let cells = COLUMNS.map(|(_, kind, at)| cell(kind, trace.pointer(at)));
            rows.append_row(duckdb::appender_params_from_iter(cells)).map_err(engine)
        })?;
        rows.flush().map_err(engine)?;
        counted
    };
    let file = draft.path().join("traces.parquet");
    let name = file.display().to_string().replace('\'', "''");
    connection
        .execute(&format!("COPY ({IN_ORDER}) TO '{name}' (FORMAT parquet, COMPRESSION zstd)"), params![])
        .map_err(engine)?;
    // For its owner alone, as every other file with what agents said.
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).map_err(Stop::failed)?;
    std::fs::rename(&file, to).map_err(|error| Stop::usage(format!("{}: {error}", to.display())))?;
    Ok(counted)
}

fn cell(kind: &str, value: Option<&Value>) -> duckdb::types::Value {
    use duckdb::types::Value as Cell;
    match (kind, value) {
        (_, None | Some(Value::Null)) => Cell::Null,
        ("TIME", Some(value)) => {
            let time = value.as_str().and_then(Timestamp::parse);
            time.map_or(Cell::Null, |time| Cell::BigInt(i64::try_from(time.as_unix_nanos() / 1000).unwrap_or(i64::MAX)))
        }
        ("DOUBLE", Some(value)) => value.as_f64().map_or(Cell::Null, Cell::Double),
        ("BIGINT", Some(value)) => value.as_i64().map_or(Cell::Null, Cell::BigInt),
        (_, Some(Value::String(text))) => Cell::Text(text.clone()),
        (_, Some(value)) => Cell::Text(value.to_string()),
    }
}

/// Every trace that matches, oldest first, with its values whole as far as one answer can hold them.
fn each(
    asked: &Asked,
    query: &[(&'static str, String)],
    mut work: impl FnMut(&Value) -> Result<(), Stop>,
) -> Result<Counted, Stop> {
    let (mut counted, mut offset) = (Counted::default(), 0_u64);
    let progress = super::progress("traces");
    loop {
        let mut asks = query.to_vec();
        asks.extend([("limit", PAGE.to_string()), ("offset", offset.to_string()), ("sort_order", "asc".to_owned())]);
        let page = asked.get("/traces", &asks)?;
        let cut: Vec<&str> = page["truncated"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let rows = page["traces"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (index, row) in rows.iter().enumerate().filter(|(_, row)| row["in_progress"] != true) {
            let place = format!("traces[{index}].");
            if cut.iter().any(|name| name.starts_with(&place)) {
                let (whole, is_cut) = whole(asked, row)?;
                counted.cut += usize::from(is_cut);
                work(&whole)?;
            } else {
                work(row)?;
            }
            counted.traces += 1;
        }
        progress.set_position(counted.traces as u64);
        match page["next_offset"].as_u64() {
            Some(next) => offset = next,
            None => return Ok(Counted { unsearched: super::traces::unsearched(&page), ..counted }),
        }
    }
}

/// A trace by itself, where an answer about one holds more; and whether even that cuts it.
fn whole(asked: &Asked, row: &Value) -> Result<(Value, bool), Stop> {
    let id = row["trace_id"].as_str().unwrap_or_default().to_owned();
    let mut page = asked.get("/traces", &[("trace_id", id)])?;
    let is_cut = page["truncated"].as_array().is_some_and(|names| !names.is_empty());
    match page["traces"].get_mut(0) {
        Some(found) => Ok((found.take(), is_cut)),
        // It was deleted meanwhile: what was read of it is told.
        None => Ok((row.clone(), true)),
    }
}
