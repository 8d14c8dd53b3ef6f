//! What can go wrong with the store, and what each engine error means for the rows at hand.

use std::time::Duration;

/// Kinds of messages that speak of a statement and may quote it, whatever words are in it.
const STATEMENT: [&str; 7] = [
    "Binder Error",
    "Parser Error",
    "Catalog Error",
    "Conversion Error",
    "Invalid Input Error",
    "Out of Range Error",
    "Constraint Error",
];

/// Why the store could not do something. Messages never hold stored text.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Another process has the file open.
    #[error("the database is in use by {}", holder(*.pid))]
    Locked {
        /// Its process id, when the engine said.
        pid: Option<u32>,
    },
    /// A newer binary has written the file.
    #[error(
        "the database has schema version {found}, written by iris-sidecar {writer}; this binary knows {known}: use {writer} or newer"
    )]
    Newer {
        /// The version in the file.
        found: u32,
        /// The newest version this binary knows.
        known: u32,
        /// The binary that wrote it.
        writer: String,
    },
    /// The file or its write-ahead log cannot be read.
    #[error("the database is damaged: {0}")]
    Corrupt(String),
    /// No space is left on the device.
    #[error("no space left for the database: {0}")]
    NoSpace(String),
    /// The engine's memory limit is reached; nothing is wrong with a row or the file.
    #[error("the database engine's memory limit is reached: {0}")]
    NoMemory(String),
    /// The file or its folder may not be opened or written.
    #[error("no permission for the database: {0}")]
    NoPermission(String),
    /// The engine gave up on the database and must be opened again.
    #[error("the database engine stopped: {0}")]
    Fatal(String),
    /// Any other engine error.
    #[error("database error: {0}")]
    Engine(String),
    /// A query took too long and was stopped.
    #[error("the query was stopped after {} ms", .0.as_millis())]
    Deadline(Duration),
    /// What came before it, other queries or what is being written, took all the time it had.
    #[error("nothing was begun within {} ms: the database is busy with what came before", .0.as_millis())]
    Busy(Duration),
    /// Not a single reading statement.
    #[error("refused: {0}; one SELECT statement is valid")]
    Refused(&'static str),
    /// A statement that a caller wrote is not taken, or failed; the reason holds no stored text.
    #[error("the statement is not taken: {0}")]
    Statement(String),
    /// A stored row does not read back.
    #[error("a row of {table} cannot be read: {why}")]
    Unreadable {
        /// Which table.
        table: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A setting has a value that cannot be.
    #[error("{0}")]
    Setting(String),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// A folder or thread could not be made.
    #[error("cannot prepare the store: {0}")]
    Io(String),
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error.to_string())
    }
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("the process with id {pid}"))
}

impl Error {
    /// Sorts an engine error by the words the engine opens it with.
    #[expect(clippy::needless_pass_by_value, reason = "shaped for map_err")]
    pub(super) fn engine(error: duckdb::Error) -> Self {
        Self::from_message(&error.to_string())
    }

    pub(super) fn from_message(message: &str) -> Self {
        let short = first_line(message);
        let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
        if has(&["Could not set lock on file", "Conflicting lock is held"]) {
            return Self::Locked { pid: pid(message) };
        }
        // Before its cause, which it quotes: nothing works until the engine is opened again.
        if has(&["FATAL Error", "has been invalidated", "must be restarted prior to being used again"]) {
            return Self::Fatal(with_cause(short, message));
        }
        if is_about_space(message) {
            return Self::NoSpace(short);
        }
        if has(&["Out of Memory Error", "failed to offload data block"]) {
            return Self::NoMemory(short);
        }
        if has(&["Permission denied", "Read-only file system"]) {
            return Self::NoPermission(short);
        }
        let is_about_the_statement = STATEMENT.iter().any(|kind| message.starts_with(kind));
        if !is_about_the_statement
            && has(&[
                "Serialization Error",
                "not a valid DuckDB database",
                "Could not read enough bytes",
                "Corrupt",
                "corrupt",
                "Checksum",
                "checksum",
            ])
            || (has(&["INTERNAL Error"]) && has(&["replaying WAL"]))
        {
            return Self::Corrupt(short);
        }
        Self::Engine(short)
    }

    /// Whether the fault may lie in a row and not in the file, the disk or the engine.
    pub(super) const fn may_be_a_row(&self) -> bool {
        matches!(self, Self::Engine(_))
    }

    /// Whether nothing works until the engine is opened again.
    pub(super) const fn ends_engine(&self) -> bool {
        matches!(self, Self::Fatal(_))
    }

    /// Whether it says of a file that was being opened, and read with statements of our own, that it is damaged. What the
    /// disk refused for another reason passes.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Corrupt(_) | Self::Unreadable { .. } => true,
            Self::Fatal(why) => !passes(why),
            Self::Engine(why) => !why.contains("IO Error") || why.contains("Could not read enough bytes"),
            _ => false,
        }
    }

    /// Whether it says of a file that is in use that a part of it may be damaged: worth a look at all of it.
    pub(super) fn tells_of_damage(&self) -> bool {
        match self {
            Self::Corrupt(_) => true,
            Self::Fatal(why) => !passes(why),
            _ => false,
        }
    }

    /// Whether the same call may succeed later without anybody changing anything in the request.
    pub const fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Locked { .. }
                | Self::NoSpace(_)
                | Self::NoMemory(_)
                | Self::Deadline(_)
                | Self::Busy(_)
                // It is opened again, by the process or by the next one.
                | Self::Fatal(_)
                | Self::Closed
        )
    }
}

fn is_about_space(message: &str) -> bool {
    ["No space left on device", "Disk quota exceeded"].iter().any(|words| message.contains(words))
}

/// Whether the engine ended over what has nothing to do with what is in the file.
fn passes(message: &str) -> bool {
    const PASSING: [&str; 4] =
        ["Permission denied", "Read-only file system", "Out of Memory Error", "failed to offload data block"];
    is_about_space(message) || PASSING.iter().any(|words| message.contains(words))
}

/// An engine that ended names its cause behind the first line.
fn with_cause(short: String, message: &str) -> String {
    const CAUSES: [&str; 8] = [
        "No space left on device",
        "Disk quota exceeded",
        "Permission denied",
        "Read-only file system",
        "Out of Memory Error",
        "failed to offload data block",
        "Corrupt database file",
        "INTERNAL Error",
    ];
    match CAUSES.iter().find(|cause| message.contains(**cause) && !short.contains(**cause)) {
        Some(cause) => format!("{short} ({cause})"),
        None => short,
    }
}

/// Engine messages quote offending values after the first line and in single quotes: neither may leave.
fn first_line(message: &str) -> String {
    const CHARS_MAX: usize = 300;
    let line = message.lines().next().unwrap_or_default();
    let mut kept = String::with_capacity(line.len().min(CHARS_MAX));
    let mut quoted = false;
    for letter in line.chars().take(CHARS_MAX) {
        if letter == '\'' {
            if !quoted {
                kept.push_str("'...'");
            }
            quoted = !quoted;
        } else if !quoted {
            kept.push(letter);
        }
    }
    kept
}

fn pid(message: &str) -> Option<u32> {
    let (_, after) = message.split_once("(PID ")?;
    after.split(')').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_names_its_holder() {
        let message = "IO Error: Could not set lock on file \"/h/iris.duckdb\": Conflicting lock is held in /usr/bin/x (PID 4711) by user root. See also ...";
        let error = Error::from_message(message);
        assert!(matches!(error, Error::Locked { pid: Some(4711) }), "{error:?}");
        assert_eq!(error.to_string(), "the database is in use by the process with id 4711");
        assert!(matches!(Error::from_message("IO Error: Could not set lock on file"), Error::Locked { pid: None }));
    }

    #[test]
    fn a_full_memory_is_no_fault_of_a_row_and_passes() {
        let error =
            Error::from_message("Out of Memory Error: failed to pin block of size 392.0 KiB (95.8 MiB/96.0 MiB used)");
        assert!(matches!(error, Error::NoMemory(_)) && error.is_retryable() && !error.may_be_a_row(), "{error:?}");
    }

    /// Scenario: what a question, a write or a checkpoint is told of a damaged block; twins: statements that hold the same
    /// words, and what has nothing to do with the file.
    /// Guarantees: only the first is worth a look at the whole file.
    #[test]
    fn a_damaged_block_is_told_from_words_of_a_statement() {
        for told in [
            "IO Error: Corrupt database file: computed checksum 1 does not match stored checksum 2 in block at location 3",
            "FATAL Error: Failed to create checkpoint because of error: Corrupt database file: computed checksum 1",
            "INTERNAL Error: Checksum of a block",
            "Serialization Error: Failed to deserialize: field id mismatch",
            "IO Error: Could not read enough bytes from file: attempted to read 262144 bytes from location 4096",
        ] {
            assert!(Error::from_message(told).tells_of_damage(), "{told}");
        }
        for told in [
            "Conversion Error: Could not convert string 'Corrupt database file' to INT32",
            "Binder Error: Referenced column \"checksum\" not found",
            "Invalid Input Error: Corrupt database file",
            "IO Error: No space left on device",
            "FATAL Error: Failed to create checkpoint because of error: Read-only file system",
            "Out of Memory Error: could not allocate block of size 256.0 KiB",
        ] {
            assert!(!Error::from_message(told).tells_of_damage(), "{told}");
        }
    }

    #[test]
    fn messages_never_quote_a_value() {
        let error = Error::from_message("Conversion Error: Could not convert string 'my secret' to INT32\nLINE 1: my");
        assert_eq!(error.to_string(), "database error: Conversion Error: Could not convert string '...' to INT32");
    }

    #[test]
    fn disk_and_damage_are_told_apart() {
        assert!(matches!(Error::from_message("IO Error: No space left on device"), Error::NoSpace(_)));
        assert!(matches!(Error::from_message("Serialization Error: Failed to deserialize"), Error::Corrupt(_)));
        assert!(matches!(Error::from_message("FATAL Error: Failed"), Error::Fatal(_)));
        let ended = "FATAL Error: Failed: database has been invalidated because of a previous fatal error: No space left on device";
        let ended = Error::from_message(ended);
        assert!(ended.ends_engine() && !ended.is_damage(), "what caused it is not what it is, and no damage");
        assert!(Error::from_message("FATAL Error: Failed").is_damage());
        let ended = "FATAL Error: Failed: database has been invalidated because of a previous fatal error. The database must be restarted prior to being used again.\nOriginal error: \"IO Error: Could not write file \"/h/x\": No space left on device\"";
        assert!(!Error::from_message(ended).tells_of_damage(), "the cause stands behind the first line");
        assert!(Error::from_message("Constraint Error: NOT NULL").may_be_a_row());
        assert!(!Error::from_message("IO Error: No space left on device").may_be_a_row());
    }
}
