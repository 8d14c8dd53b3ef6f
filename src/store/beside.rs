//! What rows leave for tables other than their own, until it is appended in the same transaction.

use duckdb::Connection;

use super::Error;
use super::group::table;
use super::long::Pieces;
use super::shapes::Shapes;

/// Pieces of long values, and shapes of results.
#[derive(Default)]
pub(super) struct Beside {
    pub pieces: Pieces,
    pub shapes: Shapes,
}

impl Beside {
    /// As the file has them.
    pub fn of(connection: &Connection) -> Result<Self, Error> {
        Ok(Self { pieces: Pieces::of(connection)?, shapes: Shapes::of(connection)? })
    }

    /// A transaction begins: what one that failed left behind is of no row.
    pub fn begin(&mut self) {
        self.pieces.clear();
        self.shapes.forget();
    }

    /// Appends what waits, in the caller's transaction.
    pub fn append(&mut self, connection: &Connection) -> Result<(), Error> {
        let Self { pieces, shapes } = self;
        table(connection, "shapes", !shapes.is_empty(), |appender| shapes.append(appender))?;
        table(connection, "pieces", !pieces.is_empty(), |appender| pieces.append(appender))
    }

    /// A transaction was committed.
    pub fn committed(&mut self) {
        self.shapes.committed();
    }
}
