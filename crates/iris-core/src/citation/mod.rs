//! The citations of a text, the addresses of their sources, and which addresses must never be reached for them.
//!
//! Owns the four kinds of citation and where they stand ([`find`]), the address of each source ([`Target`]), and the
//! table of addresses and names that a text must not make this process connect to ([`Guard`]). Never looks a name up and
//! never connects: whoever does so asks the guard first about the name, then about every address it got, and connects to
//! one of those and to no other. A literal address is judged by its bits, after the parser that the connection is made
//! with has read it, never by how it is spelled.

mod address;
mod find;
mod guard;
mod plain;
mod score;
mod target;

pub use address::forbidden;
pub use find::{CITATIONS_MAX, Citation, Found, Kind, find};
pub use guard::{Cidr, Guard};
pub use plain::plain;
pub use score::{Tally, is_text};
pub use target::{Refused, Target, doi_address, is_allowed};

#[cfg(test)]
mod tests;
