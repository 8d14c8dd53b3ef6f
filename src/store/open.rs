//! Opens the engine so that it can touch nothing but its own file.

use std::path::{Path, PathBuf};

use duckdb::Connection;

use super::{Config, Error, rewrite, schema};

/// The name under which every connection sees the file.
pub(super) const CATALOG: &str = "iris";

/// Rows of a row group, and so of the smallest transaction that is written past the write-ahead log.
/// 4,096 is the smallest at which compression still pays and a commit stays under 72 ms.
pub(super) const ROW_GROUP_ROWS: usize = 4096;

/// Where the files of a store lie.
#[derive(Debug, Clone)]
pub(super) struct Paths {
    pub database: PathBuf,
    pub wal: PathBuf,
    /// Where a copy is made.
    pub rewritten: PathBuf,
    temp: PathBuf,
    extensions: PathBuf,
}

impl Paths {
    pub fn of(home: &Path) -> Self {
        Self {
            database: home.join("iris.duckdb"),
            wal: home.join("iris.duckdb.wal"),
            rewritten: home.join("iris.duckdb.new"),
            temp: home.join("duckdb").join("temp"),
            extensions: home.join("duckdb").join("extensions"),
        }
    }
}

/// Opens or creates the file and brings its schema up to date. The order matters: limits before anything is
/// read, the file attached before external access ends (afterwards it could not be), the lock last.
pub(super) fn engine(home: &Path, config: &Config) -> Result<Connection, Error> {
    engine_with(home, config, schema::MIGRATIONS)
}

pub(super) fn engine_with(home: &Path, config: &Config, migrations: &[&str]) -> Result<Connection, Error> {
    let paths = Paths::of(home);
    rewrite::remove_leftover(&paths)?;
    let connection = bare(&paths, config)?;
    connection.execute_batch(&attach(&paths.database)?).map_err(Error::engine)?;
    schema::migrate(&connection, migrations)?;
    connection
        .execute_batch("SET enable_external_access = false; SET lock_configuration = true;")
        .map_err(Error::engine)?;
    Ok(connection)
}

/// Attaches a file as the one that is written.
pub(super) fn attach(file: &Path) -> Result<String, Error> {
    let file = quoted(file)?;
    Ok(format!(
        "ATTACH {file} AS {CATALOG} (STORAGE_VERSION 'v1.5.0', ROW_GROUP_SIZE {ROW_GROUP_ROWS}); USE {CATALOG};"
    ))
}

/// The engine without a file, with every limit set.
pub(super) fn bare(paths: &Paths, config: &Config) -> Result<Connection, Error> {
    for folder in [&paths.temp, &paths.extensions] {
        std::fs::create_dir_all(folder)?;
    }
    let flags = duckdb::Config::default()
        .max_memory(&format!("{}B", config.memory_bytes))
        .and_then(|flags| flags.threads(1))
        .and_then(|flags| flags.enable_autoload_extension(false))
        .map_err(Error::engine)?;
    let connection = Connection::open_in_memory_with_flags(flags).map_err(Error::engine)?;
    connection
        .execute_batch(&format!(
            "SET temp_directory = {temp};
             SET max_temp_directory_size = '{temp_bytes}B';
             SET extension_directory = {extensions};
             SET allow_community_extensions = false;
             SET allow_persistent_secrets = false;
             SET preserve_insertion_order = true;
             SET checkpoint_threshold = '1TB';
             PRAGMA disable_checkpoint_on_shutdown;",
            temp = quoted(&paths.temp)?,
            temp_bytes = config.temp_bytes,
            extensions = quoted(&paths.extensions)?,
        ))
        .map_err(Error::engine)?;
    Ok(connection)
}

/// A further connection to the same file.
pub(super) fn clone_of(connection: &Connection) -> Result<Connection, Error> {
    let clone = connection.try_clone().map_err(Error::engine)?;
    // A clone starts in the in-memory database.
    clone.execute_batch(&format!("USE {CATALOG}")).map_err(Error::engine)?;
    Ok(clone)
}

pub(super) fn quoted(path: &Path) -> Result<String, Error> {
    let text = path
        .to_str()
        .ok_or_else(|| Error::Setting("the path of home is not UTF-8; a UTF-8 path is valid".to_owned()))?;
    Ok(format!("'{}'", text.replace('\'', "''")))
}
