//! The tests of the pure half that need files or more than one room.

mod judging;
mod dialects;
mod otlp;
