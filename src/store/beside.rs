//! What rows leave for tables other than their own, until it is appended in the same transaction.

use duckdb::Connection;

use super::Error;
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

    /// A transaction was committed.
    pub fn committed(&mut self) {
        self.shapes.committed();
    }
}
