//! The tests of the pure half that need files or more than one room.

mod dialects;
mod judging;
mod otlp;
mod tidy;
